//! BINLOG '...': what `mariadb-binlog` prints row events as, so that a binlog file can be piped into a client.
//!
//! The text is base64, one chunk per event, each with its own padding. The first statement of a file holds the format
//! description, which says whether the events end with a checksum; it and the table maps are kept in the session.

use cohort_binlog::event::{Checksum, Event, EventHeader, HEADER_LEN, TableMap, split_event};
use cohort_binlog::{DecodeError, EventType};
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::dml::apply::apply_rows;
use crate::dml::outcome::DmlOutcome;
use crate::statement::StatementContext;

/// What a session keeps from one BINLOG statement to the next.
#[derive(Debug, Default)]
pub(crate) struct BinlogApplier {
    /// Set by a format description.
    checksum: Option<Checksum>,
    /// Until the statement of the source ends.
    maps: Vec<TableMap>,
}

/// Runs BINLOG with the text given.
pub fn run_binlog_statement(ctx: &mut StatementContext<'_>, text: &[u8]) -> SqlResult<DmlOutcome> {
    let bytes = decode_base64(text)
        .ok_or_else(|| SqlError::new(ErrorCode::Base64DecodeError, "Decoding of base64 string failed"))?;
    let mut applier = std::mem::take(&mut ctx.trx.applier);
    let result = apply_events(ctx, &mut applier, &bytes);
    ctx.trx.applier = applier;
    result.map(|()| DmlOutcome::default())
}

fn apply_events(
    ctx: &mut StatementContext<'_>,
    applier: &mut BinlogApplier,
    mut rest: &[u8],
) -> SqlResult<()> {
    while !rest.is_empty() {
        let header = EventHeader::decode(rest).map_err(bad_event)?;
        let len = header.event_len as usize;
        let event = rest
            .get(..len)
            .filter(|_| len >= HEADER_LEN)
            .ok_or_else(|| bad_event(DecodeError::Truncated))?;
        rest = &rest[len..];
        apply_event(ctx, applier, header.kind, event)?;
    }
    Ok(())
}

fn apply_event(
    ctx: &mut StatementContext<'_>,
    applier: &mut BinlogApplier,
    kind: EventType,
    event: &[u8],
) -> SqlResult<()> {
    let checksum = match (kind, applier.checksum) {
        (EventType::FORMAT_DESCRIPTION, _) => Checksum::Crc32,
        (_, Some(checksum)) => checksum,
        (_, None) => {
            return Err(SqlError::new(
                ErrorCode::NoFormatDescriptionEvent,
                "The BINLOG statement was not preceded by a format description BINLOG statement",
            ));
        }
    };
    let (_, body) = split_event(event, checksum).map_err(bad_event)?;
    match Event::decode(kind, body).map_err(bad_event)? {
        Event::FormatDescription(format) => {
            applier.checksum = Some(format.checksum);
            applier.maps.clear();
            Ok(())
        }
        Event::TableMap(map) => {
            applier.maps.retain(|known| known.table_id != map.table_id);
            applier.maps.push(map);
            Ok(())
        }
        Event::Rows(rows) => {
            let map = applier.maps.iter().find(|map| map.table_id == rows.table_id);
            let map = map.ok_or_else(|| bad_event(DecodeError::BadValue("rows of a table without a table map")))?;
            apply_rows(ctx, map, &rows)?;
            if rows.ends_statement() {
                applier.maps.clear();
            }
            Ok(())
        }
        _ => Err(SqlError::new(
            ErrorCode::UnknownError,
            "Only Format_description_log_event and row events are allowed in BINLOG statements",
        )),
    }
}

/// The client's error for bytes that are no event.
pub(super) fn bad_event(error: DecodeError) -> SqlError {
    SqlError::new(ErrorCode::UnknownError, format!("BINLOG statement: {error}"))
}

/// Decodes base64 of several chunks; white space is passed over. None if it is no base64.
fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut digits, mut padding) = (0_u32, 0, 0);
    for &c in text.iter().filter(|c| !c.is_ascii_whitespace()) {
        let digit = match c {
            b'=' if digits >= 2 => {
                padding += 1;
                0
            }
            _ if padding > 0 => return None,
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        digits += 1;
        if digits == 4 {
            out.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
            (bits, digits, padding) = (0, 0, 0);
        }
    }
    (digits == 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_several_chunks_is_their_bytes_one_after_the_other() {
        assert_eq!(decode_base64(b"TWFu\nTWE=\nTQ==\n TWFu"), Some(b"ManMaMMan".to_vec()));
        assert_eq!(decode_base64(b""), Some(Vec::new()));
        for bad in [&b"TWF"[..], b"TW=u", b"T===", b"TW*u", b"=TWF"] {
            assert_eq!(decode_base64(bad), None, "{:?}", String::from_utf8_lossy(bad));
        }
    }
}
