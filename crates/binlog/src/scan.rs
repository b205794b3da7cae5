//! Goes through a file and finds out what it holds: verification, and the GTID state at its end.

use std::io;
use std::path::Path;

use cohort_base::Gtid;
use cohort_vfs::SharedFs;

use crate::event::{DecodeError, Event, EventHeader, EventType, flags, gtid_flags2};
use crate::{BinlogError, EventReader, GtidState, RawEvent};

/// What a file holds.
#[derive(Debug)]
pub(crate) struct Scan {
    /// Behind the last whole transaction (or event outside of one).
    pub end: u64,
    /// Behind the last whole transaction; 0 without one.
    pub trx_end: u64,
    /// At `end`; `None` if the file's head has no GTID list.
    pub state: Option<GtidState>,
    /// Whether the last event is ROTATE or STOP and the file is not marked as in use.
    pub closed: bool,
    /// What stands behind `end` and is no whole transaction.
    pub tail: Option<BinlogError>,
}

/// Scans up to `limit` (or the end). Damage is reported in [`Scan::tail`]; an error is one of reading.
pub(crate) fn scan(fs: &SharedFs, path: &Path, limit: Option<u64>) -> Result<Scan, BinlogError> {
    let mut scan = Scan { end: 0, trx_end: 0, state: None, closed: false, tail: None };
    let mut reader = match EventReader::open(fs, path) {
        Ok(reader) => reader,
        Err(damage @ BinlogError::Corrupt { .. }) => {
            scan.tail = Some(damage);
            return Ok(scan);
        }
        Err(BinlogError::Io { action, path, source }) if source.kind() == io::ErrorKind::NotFound => {
            scan.tail = Some(BinlogError::Io { action, path, source });
            return Ok(scan);
        }
        Err(err) => return Err(err),
    };
    reader.set_limit(limit.unwrap_or(u64::MAX));
    let mut walk = Walk::default();
    loop {
        let step = match reader.next_event() {
            Ok(Some(raw)) => verify(path, &raw).and_then(|()| walk.step(path, &reader, &raw)),
            Ok(None) => break,
            Err(err) => Err(err),
        };
        match step {
            Ok(is_last) if is_last => scan.trx_end = reader.offset(),
            Ok(_) => {}
            Err(damage @ BinlogError::Corrupt { .. }) => {
                scan.tail = Some(damage);
                break;
            }
            Err(err) => return Err(err),
        }
        if walk.open.is_none() {
            scan.end = reader.offset();
        }
    }
    let until = reader.file_len()?.min(limit.unwrap_or(u64::MAX));
    if scan.tail.is_none() && scan.end < until {
        scan.tail = Some(BinlogError::corrupt(path, scan.end, DecodeError::Truncated));
    }
    scan.state = walk.state;
    scan.closed = walk.ended && !walk.in_use && scan.tail.is_none();
    Ok(scan)
}

/// Verifies a file that nobody writes any more: every checksum and position, and that it ends with an event.
/// `progress` is given the bytes of each event that was read.
pub fn verify_file(fs: &SharedFs, path: &Path, progress: &mut dyn FnMut(u64)) -> Result<(), BinlogError> {
    let mut reader = EventReader::open(fs, path)?;
    while let Some(raw) = reader.next_event()? {
        verify(path, &raw)?;
        progress(raw.bytes.len() as u64);
    }
    match reader.offset() == reader.file_len()? {
        true => Ok(()),
        false => Err(BinlogError::corrupt(path, reader.offset(), DecodeError::Truncated)),
    }
}

fn verify(path: &Path, raw: &RawEvent) -> Result<(), BinlogError> {
    let (stored, expected) = (raw.header.log_pos, raw.end() as u32);
    // Servers from 11.4 on leave the position of an event inside a transaction 0.
    if stored != expected && stored != 0 {
        return Err(BinlogError::corrupt(path, raw.offset, DecodeError::BadLogPos { stored, expected }));
    }
    Ok(())
}

/// The transaction that is being gone through.
#[derive(Clone, Copy)]
struct OpenGroup {
    gtid: Gtid,
    standalone: bool,
}

#[derive(Default)]
struct Walk {
    state: Option<GtidState>,
    open: Option<OpenGroup>,
    in_use: bool,
    ended: bool,
}

impl Walk {
    /// Goes over an event; true if it is the last one of a transaction.
    fn step(&mut self, path: &Path, reader: &EventReader, raw: &RawEvent) -> Result<bool, BinlogError> {
        let kind = raw.header.kind;
        self.ended = matches!(kind, EventType::ROTATE | EventType::STOP);
        let looked_at = matches!(
            kind,
            EventType::GTID | EventType::GTID_LIST | EventType::QUERY | EventType::START_ENCRYPTION
        );
        if kind == EventType::FORMAT_DESCRIPTION {
            self.in_use = raw.header.flags & flags::IN_USE != 0;
        }
        let event = match looked_at {
            true => Some(reader.decode(raw).map_err(|what| BinlogError::corrupt(path, raw.offset, what))?),
            false => None,
        };
        match &event {
            Some(Event::GtidList(list)) if self.state.is_none() => {
                self.state = Some(GtidState::from_list(&list.gtids));
            }
            Some(Event::Gtid(event)) => {
                if self.open.is_some() {
                    let what = DecodeError::BadValue("a transaction starts inside another");
                    return Err(BinlogError::corrupt(path, raw.offset, what));
                }
                let standalone = event.flags2 & gtid_flags2::STANDALONE != 0;
                self.open = Some(OpenGroup { gtid: event.gtid(raw.header.server_id), standalone });
            }
            Some(Event::StartEncryption(_)) => {
                let what = DecodeError::BadValue("the file is encrypted; this server cannot read it");
                return Err(BinlogError::corrupt(path, raw.offset, what));
            }
            event => return Ok(self.maybe_end(&raw.header, event.as_ref())),
        }
        Ok(false)
    }

    fn maybe_end(&mut self, header: &EventHeader, event: Option<&Event>) -> bool {
        let Some(open) = self.open else { return false };
        let is_last = ends_group(open.standalone, header.kind, event);
        if is_last {
            self.state.get_or_insert_default().update(open.gtid);
            self.open = None;
        }
        is_last
    }
}

/// Whether this event is the last one of a transaction that started with (or without) STANDALONE.
pub(crate) fn ends_group(standalone: bool, kind: EventType, event: Option<&Event>) -> bool {
    match kind {
        EventType::XID | EventType::XA_PREPARE => true,
        EventType::INTVAR | EventType::RAND | EventType::USER_VAR | EventType::ANNOTATE_ROWS => false,
        EventType::TABLE_MAP | EventType::BEGIN_LOAD_QUERY | EventType::APPEND_BLOCK => false,
        EventType::QUERY if !standalone => match event {
            Some(Event::Query(query)) => matches!(query.sql.as_slice(), b"COMMIT" | b"ROLLBACK"),
            _ => false,
        },
        _ => standalone,
    }
}
