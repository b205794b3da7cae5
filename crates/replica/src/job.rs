//! [`Job`]: a group on its way through a crew, and the reading of one that is too large to be kept.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use cohort_base::Gtid;
use cohort_binlog::event::{CHECKSUM_LEN, Event, GtidEvent, HEADER_LEN, SharedBytes, TableMap, flags};
use cohort_binlog::{BinlogError, Checksum, DecodeError, EventHeader, EventType, RawEvent};

use crate::apply::ApplyError;
use crate::connection::ThreadError;
use crate::group::{End, Groups, Part};
use crate::progress::Reached;
use crate::relay::{RelayLog, RelayPlace, RelayReader};

/// A group.
pub struct Job {
    pub header: EventHeader,
    pub gtid: Option<(GtidEvent, Gtid)>,
    /// It may have more than one statement.
    pub has_transaction: bool,
    pub passes_over: bool,
    pub content: Content,
    pub retries: AtomicU64,
}

/// What the group does.
pub enum Content {
    /// All of it; `end` is the place behind it.
    Whole(Box<Whole>),
    /// It is large, and may still be coming: its applier reads it, from this place on.
    InRelay(Coming),
}

/// A group that may still be coming.
#[derive(Clone)]
pub struct Coming {
    /// Its beginning.
    pub start: Reached,
    /// Set when its source went away in the middle of it, and its worker has undone what came.
    pub is_undone: Arc<AtomicBool>,
}

/// All events of a group.
pub struct Whole {
    pub events: Vec<(EventHeader, Event)>,
    pub last: (EventHeader, Event, End),
    pub end: Reached,
    /// The worker that applies it, when all before it is ordered, orders it.
    pub is_alone: bool,
}

impl Job {
    /// The GTID event and what it says.
    pub fn gtid(&self) -> Option<(&GtidEvent, Gtid)> {
        self.gtid.as_ref().map(|(event, gtid)| (event, *gtid))
    }
}

/// Bytes of an event between its header and its checksum.
pub fn body_of(raw: &RawEvent) -> &[u8] {
    raw.bytes.get(HEADER_LEN..raw.bytes.len().saturating_sub(CHECKSUM_LEN)).unwrap_or_default()
}

/// Decodes events of the relay log. Row images stay where the event was read to; a table map that is like one
/// of the last ones is that one.
#[derive(Default)]
pub struct Decoder {
    /// Bodies and what they are, oldest first.
    maps: VecDeque<(SharedBytes, Arc<TableMap>)>,
}

/// Table maps that are remembered.
const MAPS_MAX: usize = 32;
/// Larger ones are not.
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

/// Error 1594.
pub fn unreadable(what: &DecodeError) -> ApplyError {
    let text = format!("Relay log read failure: Could not parse relay log event entry ({what}).");
    ApplyError::fatal(1594, text)
}

/// The same of a file.
pub fn relay_failure(error: &BinlogError) -> ThreadError {
    let text = format!("Relay log read failure: Could not parse relay log event entry ({error}).");
    ThreadError::new(1594, text)
}

/// Reads one group, from its first event on.
pub struct GroupReader {
    reader: RelayReader,
    decoder: Decoder,
    groups: Groups,
    /// Behind the last event.
    reached: Reached,
}

/// What comes next.
pub enum Found {
    /// An event of the group.
    Event(EventHeader, Event),
    /// The last one.
    Last(EventHeader, Event, End),
    /// It has not come yet.
    Nothing,
    /// The source does not go on with the group: it comes again from its beginning.
    Abandoned,
}

impl GroupReader {
    /// Begins where the group does.
    pub fn open(relay: &Arc<RelayLog>, start: &Reached) -> Result<GroupReader, ApplyError> {
        let fatal = |error: ThreadError| ApplyError::fatal(error.number, error.text);
        let reader = RelayReader::at(relay, start.relay).map_err(|e| fatal(relay_failure(&e)))?;
        let reader =
            reader.ok_or_else(|| ApplyError::fatal(1594, "Relay log read failure: a file is gone"))?;
        let (decoder, groups) = (Decoder::default(), Groups::default());
        Ok(GroupReader { reader, decoder, groups, reached: start.clone() })
    }

    /// Behind what was read.
    pub fn reached(&self) -> &Reached {
        &self.reached
    }

    /// Where the next event will be.
    pub fn place(&self) -> RelayPlace {
        self.reader.place()
    }

    fn decode(&mut self, raw: &RawEvent) -> Result<Event, ApplyError> {
        self.decoder.decode(raw).map_err(|e| unreadable(&e))
    }

    /// The next event of the group, whose first one is passed over.
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
