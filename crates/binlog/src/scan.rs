//! Scans a file: verification, and the GTID state at its end.

use std::io;
use std::path::Path;

use cohort_base::Gtid;
use cohort_vfs::SharedFs;

use crate::event::{DecodeError, Event, EventHeader, EventType, InGroup, flags, gtid_flags2};
use crate::reader::Passed;
use crate::{BinlogError, EventReader, GtidState};

/// Result of a scan up to an offset; a later scan may continue from it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reached {
    /// End of the last complete transaction, or of the last event outside of a transaction.
    pub end: u64,
    /// End of the last complete transaction; 0 if there is none.
    pub trx_end: u64,
    /// GTID state at `end`; `None` if the file's head has no GTID list.
    pub state: Option<GtidState>,
    /// True if the event before `end` is ROTATE or STOP.
    ended: bool,
}

/// Result of a scan.
#[derive(Debug)]
pub(crate) struct Scan {
    pub reached: Reached,
    /// True if the last event is ROTATE or STOP and the file is not marked as in use.
    pub closed: bool,
    /// The damage found after the last complete transaction, if any.
    pub tail: Option<BinlogError>,
}

/// Scans to the end, continuing from `known`. Damage is reported in [`Scan::tail`]; errors are read errors.
pub(crate) fn scan(fs: &SharedFs, path: &Path, known: Reached) -> Result<Scan, BinlogError> {
    let mut scan = Scan { reached: known, closed: false, tail: None };
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
    let reached = &mut scan.reached;
    let mut walk = Walk { state: reached.state.take(), ..Walk::default() };
    loop {
        let step = match reader.pass_event(is_looked_at) {
            Ok(Some(passed)) => verify(path, &passed).and_then(|()| walk.step(path, &reader, &passed)),
            Ok(None) => break,
            Err(err) => Err(err),
        };
        match step {
            Ok(is_last) if is_last => reached.trx_end = reader.offset(),
            Ok(_) => {}
            Err(damage @ BinlogError::Corrupt { .. }) => {
                scan.tail = Some(damage);
                break;
            }
            Err(err) => return Err(err),
        }
        // Only the format description, the first event, is read again.
        if reader.offset() < reached.end {
            reader.seek(reached.end);
        } else if walk.open.is_none() {
            reached.end = reader.offset();
            reached.ended = walk.ended;
        }
    }
    if scan.tail.is_none() && reached.end < reader.file_len()? {
        scan.tail = Some(BinlogError::corrupt(path, reached.end, DecodeError::Truncated));
    }
    reached.state = walk.state;
    scan.closed = reached.ended && !walk.in_use && scan.tail.is_none();
    Ok(scan)
}

/// Verifies a file that is no longer written: every checksum and position, and that it ends with a complete
/// event. Calls `progress` with the length of each event.
pub fn verify_file(fs: &SharedFs, path: &Path, progress: &mut dyn FnMut(u64)) -> Result<(), BinlogError> {
    let mut reader = EventReader::open(fs, path)?;
    while let Some(passed) = reader.pass_event(|_| false)? {
        verify(path, &passed)?;
        progress(passed.header.event_len.into());
    }
    match reader.offset() == reader.file_len()? {
        true => Ok(()),
        false => Err(BinlogError::corrupt(path, reader.offset(), DecodeError::Truncated)),
    }
}

fn verify(path: &Path, passed: &Passed) -> Result<(), BinlogError> {
    let (stored, expected) = (passed.header.log_pos, passed.end() as u32);
    // Servers from 11.4 on leave the position of an event inside a transaction 0.
    if stored != expected && stored != 0 {
        return Err(BinlogError::corrupt(path, passed.offset, DecodeError::BadLogPos { stored, expected }));
    }
    Ok(())
}

/// Returns whether the kind of event matters for GTIDs or for the end of a transaction. Others are only
/// verified.
fn is_looked_at(kind: EventType) -> bool {
    matches!(kind, EventType::GTID | EventType::GTID_LIST | EventType::QUERY | EventType::START_ENCRYPTION)
}

/// The transaction that the scan is in.
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
    /// Processes an event. Returns true if it is the last one of a transaction.
    fn step(&mut self, path: &Path, reader: &EventReader, passed: &Passed) -> Result<bool, BinlogError> {
        let header = &passed.header;
        self.ended = matches!(header.kind, EventType::ROTATE | EventType::STOP);
        if header.kind == EventType::FORMAT_DESCRIPTION {
            self.in_use = header.flags & flags::IN_USE != 0;
        }
        let corrupt = |what| BinlogError::corrupt(path, passed.offset, what);
        let raw = passed.raw.as_ref().filter(|_| is_looked_at(header.kind));
        let event = raw.map(|raw| reader.decode(raw).map_err(corrupt)).transpose()?;
        match &event {
            Some(Event::GtidList(list)) if self.state.is_none() => {
                self.state = Some(GtidState::from_list(&list.gtids));
            }
            Some(Event::Gtid(event)) => {
                if self.open.is_some() {
                    return Err(corrupt(DecodeError::BadValue("a transaction starts inside another")));
                }
                let standalone = event.flags2 & gtid_flags2::STANDALONE != 0;
                self.open = Some(OpenGroup { gtid: event.gtid(header.server_id), standalone });
            }
            Some(Event::StartEncryption(_)) => {
                let what = DecodeError::BadValue("the file is encrypted; this server cannot read it");
                return Err(corrupt(what));
            }
            event => return Ok(self.maybe_end(header, event.as_ref())),
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

/// Returns whether this event is the last one of a transaction that started with (or without) STANDALONE.
pub(crate) fn ends_group(standalone: bool, kind: EventType, event: Option<&Event>) -> bool {
    match kind.in_group() {
        InGroup::Ends => true,
        InGroup::Before => false,
        InGroup::ByText if !standalone => match event {
            Some(Event::Query(query)) => matches!(query.sql.as_slice(), b"COMMIT" | b"ROLLBACK"),
            _ => false,
        },
        InGroup::ByText | InGroup::Single => standalone,
    }
}
