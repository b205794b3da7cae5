//! [`Job`]: a group queued for the worker pool. [`GroupReader`]: reads a group that is too large to be
//! queued.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use cohort_base::Gtid;
use cohort_binlog::event::{CHECKSUM_LEN, Event, GtidEvent, HEADER_LEN, SharedBytes, TableMap, flags};
use cohort_binlog::{BinlogError, Checksum, DecodeError, EventHeader, EventType, RawEvent};

use crate::apply::ApplyError;
use crate::connection::ThreadError;
use crate::group::{End, Groups, Part};
use crate::place::RelayPlace;
use crate::progress::Reached;
use crate::relay::{RelayLog, RelayReader};

/// A queued group.
pub struct Job {
    pub header: EventHeader,
    pub gtid: Option<(GtidEvent, Gtid)>,
    /// It may contain more than one statement.
    pub has_transaction: bool,
    pub passes_over: bool,
    pub content: Content,
    pub retries: AtomicU64,
}

/// The events of a group.
pub enum Content {
    /// All events, in memory.
    Whole(Box<Whole>),
    /// A large group, which may still be arriving: its applier reads it from the relay log.
    InRelay(Coming),
}

/// A group that may still be arriving.
#[derive(Clone)]
pub struct Coming {
    /// Position of its beginning.
    pub start: Reached,
    /// Set when its source has disconnected in the middle of it, and its worker has rolled it back.
    pub is_undone: Arc<AtomicBool>,
}

/// All events of a group.
pub struct Whole {
    pub events: Vec<(EventHeader, Event)>,
    pub last: (EventHeader, Event, End),
    pub end: Reached,
    /// Runs exclusively: its worker applies it once all earlier groups are ordered, and orders it itself.
    pub is_alone: bool,
}

impl Job {
    /// Returns the GTID event and its GTID.
    pub fn gtid(&self) -> Option<(&GtidEvent, Gtid)> {
        self.gtid.as_ref().map(|(event, gtid)| (event, *gtid))
    }
}

/// Returns the bytes of an event between its header and its checksum.
pub fn body_of(raw: &RawEvent) -> &[u8] {
    raw.bytes.get(HEADER_LEN..raw.bytes.len().saturating_sub(CHECKSUM_LEN)).unwrap_or_default()
}

/// Decodes events of the relay log. Row images are not copied. A table map equal to a recent one shares its
/// decoded form.
#[derive(Default)]
pub struct Decoder {
    /// Recent table maps: encoded bodies and decoded forms, oldest first.
    maps: VecDeque<(SharedBytes, Arc<TableMap>)>,
}

/// Maximum number of cached table maps.
const MAPS_MAX: usize = 32;
/// Maximum size of a cached table map.
const MAP_BYTES_MAX: usize = 16 << 10;

impl Decoder {
    /// Decodes one event.
    pub fn decode(&mut self, raw: &RawEvent) -> Result<Event, DecodeError> {
        // All events of a relay log have checksums.
        let body = raw.body(Checksum::Crc32)?;
        if raw.header.kind != EventType::TABLE_MAP || body.len() > MAP_BYTES_MAX {
            return Event::decode_shared(raw.header.kind, &body);
        }
        if let Some((_, map)) = self.maps.iter().find(|(known, _)| *known == body) {
            return Ok(Event::TableMap(Arc::clone(map)));
        }
        let event = Event::decode_shared(raw.header.kind, &body)?;
        if let Event::TableMap(map) = &event {
            if self.maps.len() >= MAPS_MAX {
                self.maps.pop_front();
            }
            self.maps.push_back((body, Arc::clone(map)));
        }
        Ok(event)
    }
}

/// Error 1594, for an event.
pub fn unreadable(what: &DecodeError) -> ApplyError {
    let text = format!("Relay log read failure: Could not parse relay log event entry ({what}).");
    ApplyError::fatal(1594, text)
}

/// Error 1594, for a file.
pub fn relay_failure(error: &BinlogError) -> ThreadError {
    let text = format!("Relay log read failure: Could not parse relay log event entry ({error}).");
    ThreadError::new(1594, text)
}

/// Reads one group from its first event on.
pub struct GroupReader {
    reader: RelayReader,
    decoder: Decoder,
    groups: Groups,
    /// Position after the last event read.
    reached: Reached,
}

/// Result of reading the next event.
pub enum Found {
    /// An event of the group.
    Event(EventHeader, Event),
    /// The last event of the group.
    Last(EventHeader, Event, End),
    /// The next event has not arrived yet.
    Nothing,
    /// The source does not continue the group; it will send it again from the beginning.
    Abandoned,
}

impl GroupReader {
    /// Opens a reader at the start of the group.
    pub fn open(relay: &Arc<RelayLog>, start: &Reached) -> Result<GroupReader, ApplyError> {
        let fatal = |error: ThreadError| ApplyError::fatal(error.number, error.text);
        let reader = RelayReader::at(relay, start.relay).map_err(|e| fatal(relay_failure(&e)))?;
        let reader =
            reader.ok_or_else(|| ApplyError::fatal(1594, "Relay log read failure: a file is gone"))?;
        let (decoder, groups) = (Decoder::default(), Groups::default());
        Ok(GroupReader { reader, decoder, groups, reached: start.clone() })
    }

    /// Returns the position after the last event read.
    pub fn reached(&self) -> &Reached {
        &self.reached
    }

    /// Returns the position of the next event.
    pub fn place(&self) -> RelayPlace {
        self.reader.place()
    }

    fn decode(&mut self, raw: &RawEvent) -> Result<Event, ApplyError> {
        self.decoder.decode(raw).map_err(|e| unreadable(&e))
    }

    /// Returns the next event of the group. Skips the first event, which the caller already has.
    pub fn next(&mut self) -> Result<Found, ApplyError> {
        loop {
            let raw = self.reader.next_event().map_err(|e| {
                let error = relay_failure(&e);
                ApplyError::fatal(error.number, error.text)
            })?;
            let Some(raw) = raw else { return Ok(Found::Nothing) };
            self.reached.relay = self.reader.place();
            if raw.header.flags & flags::RELAY_LOG != 0 {
                continue;
            }
            if raw.header.kind == EventType::FORMAT_DESCRIPTION {
                return Ok(Found::Abandoned);
            }
            let body = body_of(&raw);
            self.reached.source.follow(&raw.header, body).map_err(|e| unreadable(&e))?;
            match self.groups.see(&raw.header, body).map_err(|e| unreadable(&e))? {
                Part::Outside | Part::Gtid(..) | Part::Begin => {}
                Part::Inside => return Ok(Found::Event(raw.header, self.decode(&raw)?)),
                Part::End(end) => return Ok(Found::Last(raw.header, self.decode(&raw)?, end)),
            }
        }
    }
}
