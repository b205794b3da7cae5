//! The BINLOG statement: row events in base64, as printed by `mariadb-binlog`.
//!
//! The text is a sequence of events in lines of base64. Each event is encoded separately, so padding may
//! occur in the middle. The first BINLOG statement of a session contains a format description, which defines
//! how the later ones are framed.

use std::fmt;

use crate::event::{
    Checksum, DecodeError, Event, EventHeader, EventType, FormatDescription, RowsKind, split_event,
};

/// Reason why the text of a BINLOG statement is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementError {
    /// Error 1575: invalid base64.
    Base64,
    /// Error 1609: there was no format description before this event.
    NoFormatDescription(EventType),
    /// Error 1730: only format descriptions, table maps and row events are allowed.
    NotAllowed(EventType),
    /// A damaged event (error 1064, as in MariaDB).
    Damaged(DecodeError),
}

impl fmt::Display for StatementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StatementError::Base64 => f.write_str("Decoding of base64 string failed"),
            StatementError::NoFormatDescription(kind) => write!(
                f,
                "The BINLOG statement of type `{}` was not preceded by a format description BINLOG statement",
                kind.name()
            ),
            StatementError::NotAllowed(kind) => write!(
                f,
                "Only Format_description_log_event and row events are allowed in BINLOG statements (but {} was \
                 provided)",
                kind.name()
            ),
            StatementError::Damaged(what) => what.fmt(f),
        }
    }
}

impl std::error::Error for StatementError {}

impl From<DecodeError> for StatementError {
    fn from(what: DecodeError) -> StatementError {
        StatementError::Damaged(what)
    }
}

/// Decoder state that a session keeps from one BINLOG statement to the next.
#[derive(Clone, Debug, Default)]
pub struct StatementDecoder {
    format: Option<FormatDescription>,
}

impl StatementDecoder {
    /// Decodes the text of a statement (or its joined fragments). Returns the table maps and row events, with
    /// their checksums verified. Format descriptions are stored and not returned.
    pub fn decode(&mut self, text: &[u8]) -> Result<Vec<(EventHeader, Event)>, StatementError> {
        let bytes = decode_base64(text).ok_or(StatementError::Base64)?;
        let mut rest = bytes.as_slice();
        let mut events = Vec::new();
        while !rest.is_empty() {
            let kind = EventHeader::decode(rest)?.kind;
            let checksum = self.checksum_of(kind)?;
            let (header, body) = split_event(rest, checksum)?;
            match Event::decode(kind, body)? {
                Event::FormatDescription(format) => self.format = Some(format),
                event => events.push((header, event)),
            }
            rest = &rest[header.event_len as usize..];
        }
        Ok(events)
    }

    fn checksum_of(&self, kind: EventType) -> Result<Checksum, StatementError> {
        match (kind, &self.format) {
            (EventType::FORMAT_DESCRIPTION, _) => Ok(Checksum::Crc32),
            (kind, _) if kind != EventType::TABLE_MAP && RowsKind::of(kind).is_none() => {
                Err(StatementError::NotAllowed(kind))
            }
            (kind, None) => Err(StatementError::NoFormatDescription(kind)),
            (_, Some(format)) => Ok(format.checksum),
        }
    }
}

/// Decodes groups of four characters with white space between them; any event may end with padding.
fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut group, mut count, mut padding) = (0u32, 0, 0);
    for &byte in text.iter().filter(|byte| !byte.is_ascii_whitespace()) {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' if count >= 2 => {
                padding += 1;
                0
            }
            _ => return None,
        };
        if padding > 0 && byte != b'=' {
            return None;
        }
        group = group << 6 | u32::from(six);
        count += 1;
        if count == 4 {
            bytes.extend_from_slice(&group.to_be_bytes()[1..4 - padding]);
            (group, count, padding) = (0, 0, 0);
        }
    }
    (count == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_takes_lines_and_padding_in_the_middle() {
        assert_eq!(decode_base64(b"YWJj\nZA==\nZWY=").as_deref(), Some(&b"abcdef"[..]));
        for bad in [&b"YWJ"[..], b"YW=j", b"=WJj", b"YWJ*", b"Y==="] {
            assert_eq!(decode_base64(bad), None);
        }
    }

    #[test]
    fn output_of_mariadb_binlog_decodes() {
        let format = b"
            AnQBaw8HAAAA/AAAAAABAAAAAAQAMTAuMTEuMTktTWFyaWFEQi0wK2RlYjEydTEtbG9nAAAAAAAA
            AAAAAAAAAAAAAAAAAAACdAFrEzgNAAgAEgAEBAQEEgAA5AAEGggAAAAICAgCAAAACgoKAAAAAAAA
            CgoKAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
            AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
            AAAAAAAAAAAEEwQADQgICAoKCgEtJ/jD";
        let rows = b"
            M3QBaxMHAAAAMAAAALEHAAAAABYAAAAAAAEABHRlc3QAAnQyAAQBAgkIAA46Ur89
            M3QBaxcHAAAAPwAAAPAHAAAAABYAAAAAAAEABA/wAQIAAwAABAAAAAAAAADwBQYABwAACAAAAAAA
            AAA2N851";
        let mut decoder = StatementDecoder::default();
        let early = decoder.decode(rows).expect_err("no format description yet");
        assert_eq!(early, StatementError::NoFormatDescription(EventType::TABLE_MAP));
        assert_eq!(decoder.decode(format), Ok(vec![]));
        let events = decoder.decode(rows).expect("decodes");
        let [(_, Event::TableMap(map)), (_, Event::Rows(rows))] = events.as_slice() else {
            panic!("{events:?}")
        };
        assert_eq!((map.table.as_slice(), map.column_types.as_slice()), (&b"t2"[..], &[1, 2, 9, 8][..]));
        assert_eq!(map.table_id, rows.table_id);
        assert!(rows.ends_statement());
    }
}
