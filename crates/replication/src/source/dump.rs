//! One dump: sends events from the requested start until the connection ends.
//!
//! # Order of events
//!
//! ```text
//! fake ROTATE | format description | events ... | (ROTATE of the file) | fake ROTATE | format description |
//! ...
//! ```
//!
//! # Invariants
//!
//! - The file being read and all later ones are pinned against purge (I7).
//! - All events come from [`Feed`], so they are durable (I3).
//! - A dump holds locks of the commit path only briefly: a slow replica slows only its own dump.
//!
//! # On failure
//!
//! An error goes to the replica as the last packet. A broken or stuck connection ends the dump without a
//! message.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cohort_base::{BinlogPos, ServerId};
use cohort_binlog::event::{Checksum, Event, EventType, GtidListEvent, HEADER_LEN, flags};
use cohort_binlog::{BinlogError, BinlogFileWriter, Pin};
use cohort_types::SqlError;

use super::artificial;
use super::errors::{self, Coordinates};
use super::feed::{Feed, FeedStep, split_run};
use super::filter::{Filter, GroupKind, GtidHead, Verdict, ends_group};
use super::registry::{DumpHandle, Source, WhyEnd};
use super::request::{Annotations, AtEnd, Capability, ChecksumWish, DumpRequest, MarkedEvents, SemiSyncWish};
use super::send_buffer::{ConnectionClosed, Header, ReplicaLink, SendBuffer};
use super::start;

/// Maximum time that a waiting dump sleeps before it checks for a request to end.
const LOOK_AROUND: Duration = Duration::from_secs(1);

/// State of a dump, as shown by SHOW PROCESSLIST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpState {
    Sending,
    Switching,
    Waiting,
    Ending,
}

impl DumpState {
    /// Returns the text of the column State.
    pub fn text(self) -> &'static str {
        match self {
            DumpState::Sending => "Sending binlog event to slave",
            DumpState::Switching => "Finished reading one binlog; switching to next binlog",
            DumpState::Waiting => "Master has sent all binlog to slave; waiting for more updates",
            DumpState::Ending => "Waiting to finalize termination",
        }
    }
}

/// An observer of a dump's state.
pub trait DumpObserver {
    /// Called when the state changes.
    fn state(&self, state: DumpState);
}

/// How a dump ended.
#[derive(Debug)]
pub enum DumpEnd {
    /// As requested: the caller sends an EOF packet with this sequence number.
    Finished(u8),
    /// By an error: the caller sends it with this sequence number.
    Failed(SqlError, u8),
    /// The connection is closed.
    Gone,
}

/// Why the loop stops.
enum Stop {
    Finished,
    Failed(SqlError),
    Gone,
}

impl From<ConnectionClosed> for Stop {
    fn from(_: ConnectionClosed) -> Stop {
        Stop::Gone
    }
}

/// Runs a dump to its end on the caller's thread.
pub fn run_dump<L: ReplicaLink>(
    source: &Source,
    request: &DumpRequest,
    handle: &DumpHandle,
    observer: &dyn DumpObserver,
    link: L,
) -> DumpEnd {
    let mut send_buffer = SendBuffer::new(link);
    let acknowledges = request.semi_sync == SemiSyncWish::Acknowledges;
    if acknowledges {
        source.semi_sync().add_replica();
    }
    observer.state(DumpState::Sending);
    let stop = match Dump::open(source, request, handle, observer) {
        Ok(mut dump) => match dump.run(&mut send_buffer) {
            Ok(never) => match never {},
            Err(stop) => stop,
        },
        Err(error) => Stop::Failed(error),
    };
    observer.state(DumpState::Ending);
    if acknowledges {
        source.semi_sync().remove_replica();
    }
    let flushed = send_buffer.flush();
    let sequence = send_buffer.into_sequence();
    match (stop, flushed) {
        (Stop::Finished, Ok(())) => DumpEnd::Finished(sequence),
        (Stop::Failed(error), Ok(())) => DumpEnd::Failed(error, sequence),
        _ => DumpEnd::Gone,
    }
}

/// The loop ends only with a [`Stop`].
enum Never {}

struct Dump<'a> {
    source: &'a Source,
    request: &'a DumpRequest,
    handle: &'a DumpHandle,
    observer: &'a dyn DumpObserver,
    files: Arc<BinlogFileWriter>,
    server: ServerId,
    pin: Pin,
    feed: Feed,
    filter: Filter,
    /// Checksum of the current file.
    sum: Checksum,
    start: BinlogPos,
    start_name: String,
    file_name: String,
    /// Start and end of the last event that was sent or skipped.
    last_event: u64,
    last_byte: u64,
    /// The open group.
    group: Option<GroupKind>,
    /// End of the event in the current run whose acknowledgement is requested.
    acknowledge_at: Option<u64>,
    /// Complete groups were sent after the last one whose acknowledgement was requested.
    is_unconfirmed: bool,
}

impl<'a> Dump<'a> {
    fn open(
        source: &'a Source,
        request: &'a DumpRequest,
        handle: &'a DumpHandle,
        observer: &'a dyn DumpObserver,
    ) -> Result<Dump<'a>, SqlError> {
        let files = source.files().ok_or_else(|| errors::fatal("Binary log is not open"))?;
        // Pins all files while the start is determined.
        let who = match request.server_id {
            0 => "a reader without a server_id".to_owned(),
            id => format!("the replica with server_id {id}"),
        };
        let pin = files.with_files(|files| files.pins().pin(0, who));
        let pin = pin.ok_or_else(|| errors::fatal("Binary log is being reset"))?;
        let start = start::find(&files, &source.logged(), request)?;
        pin.advance(start.at.file);
        let name = files.name().file(start.at.file);
        Ok(Dump {
            source,
            request,
            handle,
            observer,
            server: source.server_id(),
            pin,
            feed: Feed::new(files.clone(), start.at),
            files,
            filter: start.filter,
            sum: match request.checksum {
                ChecksumWish::Crc32 => Checksum::Crc32,
                ChecksumWish::None | ChecksumWish::Unaware => Checksum::None,
            },
            start: start.at,
            start_name: name.clone(),
            file_name: name,
            last_event: start.at.offset,
            last_byte: start.at.offset,
            group: None,
            acknowledge_at: None,
            is_unconfirmed: false,
        })
    }

    fn run<L: ReplicaLink>(&mut self, out: &mut SendBuffer<L>) -> Result<Never, Stop> {
        self.filter.stop_if_until_is_past();
        self.announce(out, self.start.offset)?;
        let first = BinlogPos { file: self.start.file, offset: 4 };
        if self.start.offset > first.offset {
            self.send_format_of_start(out)?;
        }
        let mut alive = Instant::now();
        loop {
            match self.step(Duration::ZERO)? {
                FeedStep::Nothing => {
                    if self.request.at_end == AtEnd::Stop {
                        return Err(Stop::Finished);
                    }
                    out.flush()?;
                    self.note_caught_up();
                    if let Some(step) = self.wait(out, &mut alive)? {
                        self.take(out, step)?;
                    }
                }
                step => self.take(out, step)?,
            }
            alive = Instant::now();
        }
    }

    fn take<L: ReplicaLink>(&mut self, out: &mut SendBuffer<L>, step: FeedStep) -> Result<(), Stop> {
        match step {
            FeedStep::Nothing => Ok(()),
            FeedStep::NewFile(number) => {
                self.observer.state(DumpState::Switching);
                self.pin.advance(number);
                self.file_name = self.files.name().file(number);
                self.announce(out, 4)?;
                self.observer.state(DumpState::Sending);
                Ok(())
            }
            FeedStep::Events(at) => self.forward_run(out, at),
        }
    }

    fn step(&mut self, timeout: Duration) -> Result<FeedStep, Stop> {
        match self.handle.why_end() {
            WhyEnd::GoesOn => {}
            WhyEnd::Gone => return Err(Stop::Gone),
            WhyEnd::SameServerId => {
                let what =
                    "A slave with the same server_uuid/server_id as this slave has connected to the master";
                let text = self.coordinates().detail(what);
                return Err(Stop::Failed(SqlError::same_server_id(&text)));
            }
        }
        self.feed.next(timeout).map_err(|error| self.unreadable(&error))
    }

    fn unreadable(&self, error: &BinlogError) -> Stop {
        Stop::Failed(errors::unreadable(error, &self.coordinates()))
    }

    fn coordinates(&self) -> Coordinates {
        Coordinates {
            first_file: self.start_name.clone(),
            first_offset: self.start.offset,
            file: self.file_name.clone(),
            last_event: self.last_event,
            last_byte: self.last_byte,
        }
    }

    /// Waits for more events and sends heartbeats meanwhile. Never returns `Ok(None)`.
    fn wait<L: ReplicaLink>(
        &mut self,
        out: &mut SendBuffer<L>,
        alive: &mut Instant,
    ) -> Result<Option<FeedStep>, Stop> {
        self.observer.state(DumpState::Waiting);
        loop {
            let quiet = alive.elapsed();
            let beat_in = self.request.heartbeat.map(|period| period.saturating_sub(quiet));
            let step = self.step(beat_in.unwrap_or(LOOK_AROUND).min(LOOK_AROUND))?;
            if step != FeedStep::Nothing {
                self.observer.state(DumpState::Sending);
                return Ok(Some(step));
            }
            // An acknowledgement may have arrived meanwhile.
            self.note_caught_up();
            if self.request.heartbeat.is_some_and(|period| alive.elapsed() >= period) {
                let beat =
                    artificial::heartbeat(self.server, &self.file_name, self.feed.position(), self.sum);
                out.event(self.header(), &beat)?;
                out.flush()?;
                *alive = Instant::now();
            }
        }
    }

    /// Sends a fake ROTATE that names the current file.
    fn announce<L: ReplicaLink>(&mut self, out: &mut SendBuffer<L>, offset: u64) -> Result<(), Stop> {
        let rotate = artificial::fake_rotate(self.server, &self.file_name, offset, self.sum);
        Ok(out.event(self.header(), &rotate)?)
    }

    fn header(&self) -> Header {
        match self.request.semi_sync {
            SemiSyncWish::Asynchronous => Header::Plain,
            SemiSyncWish::Acknowledges => Header::SemiSync,
        }
    }

    /// Returns the header for an event of the stream. It requests an acknowledgement for the end of the last
    /// group of a run, if one is needed.
    fn header_of_event(&mut self) -> Header {
        if self.request.semi_sync == SemiSyncWish::Asynchronous {
            return Header::Plain;
        }
        let end = BinlogPos { file: self.feed.position().file, offset: self.last_byte };
        if self.acknowledge_at == Some(end.offset) {
            self.handle.ask(end);
            self.is_unconfirmed = false;
            return Header::SemiSyncAcknowledge;
        }
        self.is_unconfirmed |= self.group.is_none();
        Header::SemiSync
    }

    /// Called when nothing is left to send. A replica whose start position or acknowledgements show that it
    /// has everything counts as having acknowledged everything.
    fn note_caught_up(&self) {
        let acknowledges = self.request.semi_sync == SemiSyncWish::Acknowledges;
        if acknowledges && !self.is_unconfirmed && !self.handle.is_asked() {
            self.source.semi_sync().has(self.feed.position());
        }
    }

    /// Sends the format description of the file in whose middle the dump starts.
    fn send_format_of_start<L: ReplicaLink>(&mut self, out: &mut SendBuffer<L>) -> Result<(), Stop> {
        let number = self.start.file;
        let mut reader =
            self.files.with_files(|files| files.reader(number)).map_err(|e| self.unreadable(&e))?;
        let raw = reader.next_event().map_err(|e| self.unreadable(&e))?;
        let raw =
            raw.ok_or_else(|| Stop::Failed(errors::fatal("binlog truncated in the middle of event")))?;
        self.format_description(out, &raw.bytes, true)
    }

    fn format_description<L: ReplicaLink>(
        &mut self,
        out: &mut SendBuffer<L>,
        event: &[u8],
        is_middle: bool,
    ) -> Result<(), Stop> {
        let number = event.len().checked_sub(5).and_then(|at| event.get(at)).copied();
        let Some(sum) = number.and_then(Checksum::from_u8) else {
            return Err(Stop::Failed(errors::fatal(self.coordinates().detail("bogus data in log event"))));
        };
        self.sum = sum;
        if self.request.checksum == ChecksumWish::Unaware && sum != Checksum::None {
            let what =
                "Slave can not handle replication events with the checksum that master is configured to log";
            return Err(Stop::Failed(errors::fatal(self.coordinates().detail(what))));
        }
        // A replica that continues still needs its temporary tables.
        let keeps_tables = self.filter.is_by_gtid && !self.filter.is_position_reached();
        let made = artificial::format_description(event, is_middle, keeps_tables);
        out.event(self.header(), &made)?;
        self.end_if_until(out, event)
    }

    fn forward_run<L: ReplicaLink>(&mut self, out: &mut SendBuffer<L>, at: BinlogPos) -> Result<(), Stop> {
        // The feed keeps the bytes until its next step. The run is taken out so that `self` is not borrowed.
        let run = self.feed.take_run();
        self.last_byte = at.offset;
        self.acknowledge_at = self.last_group_end(run.bytes(), at);
        let mut outcome = Ok(());
        for event in split_run(run.bytes()) {
            self.last_event = self.last_byte;
            self.last_byte += event.len() as u64;
            outcome = self.forward(out, event);
            if outcome.is_err() {
                break;
            }
        }
        self.feed.give_back(run);
        outcome
    }

    /// Returns the end of the last group in a run, if the replica must acknowledge it. So groups that are
    /// sent together need only one acknowledgement.
    fn last_group_end(&self, run: &[u8], at: BinlogPos) -> Option<u64> {
        if self.request.semi_sync == SemiSyncWish::Asynchronous {
            return None;
        }
        let (mut offset, mut group, mut last) = (at.offset, self.group, None);
        // While the replica catches up, some groups are filtered out.
        let mut probe = (!self.filter.is_open()).then(|| self.filter.clone());
        for event in split_run(run) {
            offset += event.len() as u64;
            group = self.group_after(group, event);
            let is_passed = probe.as_mut().is_none_or(|probe| self.passes(probe, event));
            let is_sent = is_passed && !self.is_left_out(event);
            // After a ROTATE the replica's position is in the next file.
            let counts = is_sent && group.is_none() && event[4] != EventType::ROTATE.0;
            last = if counts { Some(offset) } else { last };
        }
        let end = BinlogPos { file: at.file, offset: last? };
        self.source.semi_sync().wants_acknowledgement(end).then_some(end.offset)
    }

    /// Returns whether a filter lets an event pass. An error of the filter surfaces when the event is sent.
    fn passes(&self, filter: &mut Filter, event: &[u8]) -> bool {
        if event[4] == EventType::GTID.0
            && let Some(head) = GtidHead::read(event)
            && filter.gtid(&head, &|| self.source.logged()).is_err()
        {
            return false;
        }
        filter.event(event, self.sum) == Verdict::Send
    }

    /// Returns the group that is open after an event.
    fn group_after(&self, group: Option<GroupKind>, event: &[u8]) -> Option<GroupKind> {
        match EventType(event[4]) {
            EventType::GTID => GtidHead::read(event).map(|head| head.kind),
            _ => group.filter(|kind| !ends_group(*kind, event, self.sum)),
        }
    }

    fn forward<L: ReplicaLink>(&mut self, out: &mut SendBuffer<L>, event: &[u8]) -> Result<(), Stop> {
        let kind = EventType(event[4]);
        self.group = self.group_after(self.group, event);
        match kind {
            EventType::FORMAT_DESCRIPTION => return self.format_description(out, event, false),
            EventType::GTID => {
                let bogus = || Stop::Failed(errors::fatal("Failed to read Gtid_log_event: corrupt binlog"));
                let head = GtidHead::read(event).ok_or_else(bogus)?;
                let source = self.source;
                self.filter.gtid(&head, &|| source.logged()).map_err(Stop::Failed)?;
            }
            EventType::GTID_LIST if self.filter.is_by_gtid => self.note_list(event)?,
            // Announces an encryption key. Our files are not encrypted, so the replica must not get it.
            EventType::START_ENCRYPTION => return Ok(()),
            _ => {}
        }
        if self.filter.event(event, self.sum) == Verdict::Send {
            self.send(out, kind, event)?;
        }
        if self.filter.take_list_due() {
            self.send_list(out, 0)?;
        }
        self.end_if_until(out, event)
    }

    fn note_list(&mut self, event: &[u8]) -> Result<(), Stop> {
        let bogus = || Stop::Failed(errors::fatal("Failed to read Gtid_list_log_event: corrupt binlog"));
        let end = event.len().checked_sub(self.sum.len()).ok_or_else(bogus)?;
        let body = event.get(HEADER_LEN..end).ok_or_else(bogus)?;
        match Event::decode(EventType::GTID_LIST, body) {
            Ok(Event::GtidList(list)) => self.filter.gtid_list(&list.gtids),
            _ => return Err(bogus()),
        }
        Ok(())
    }

    /// Sends an event in a form that the replica understands, unless the replica must not get it.
    fn send<L: ReplicaLink>(
        &mut self,
        out: &mut SendBuffer<L>,
        kind: EventType,
        event: &[u8],
    ) -> Result<(), Stop> {
        let capability = self.request.capability;
        let may_omit = capability >= Capability::TolerateHoles;
        let needed = match kind {
            EventType::ANNOTATE_ROWS if self.request.annotations == Annotations::Skip => {
                if may_omit {
                    return Ok(());
                }
                Capability::Annotate
            }
            EventType::ANNOTATE_ROWS => Capability::Annotate,
            EventType::BINLOG_CHECKPOINT => Capability::Checkpoint,
            EventType::GTID | EventType::GTID_LIST => Capability::Gtid,
            _ => Capability::Unknown,
        };
        if self.is_left_out(event) {
            return Ok(());
        }
        if capability >= needed {
            return Ok(out.event(self.header_of_event(), event)?);
        }
        let is_transaction = kind == EventType::GTID
            && GtidHead::read(event).is_some_and(|head| head.kind == GroupKind::Transaction);
        let made = match (is_transaction, may_omit) {
            (true, _) => artificial::begin(event, self.sum),
            (false, true) => return Ok(()),
            (false, false) => artificial::dummy(event, self.sum),
        };
        let too_small = "Failed to replace an event with one that the slave knows: too small event.";
        let made = made.ok_or_else(|| Stop::Failed(errors::fatal(too_small)))?;
        Ok(out.event(self.header_of_event(), &made)?)
    }

    /// Returns whether the replica asked to omit events logged under `@@skip_replication`, and this is one.
    fn is_left_out(&self, event: &[u8]) -> bool {
        let flags_of_event = u16::from_le_bytes([event[17], event[18]]);
        self.request.marked == MarkedEvents::Skip && flags_of_event & flags::SKIP_REPLICATION != 0
    }

    fn send_list<L: ReplicaLink>(&mut self, out: &mut SendBuffer<L>, list_flags: u8) -> Result<(), Stop> {
        let gtids = self.filter.seen.list();
        let list = artificial::fake_gtid_list(self.server, gtids, list_flags, self.last_byte, self.sum);
        Ok(out.event(self.header(), &list)?)
    }

    fn end_if_until<L: ReplicaLink>(&mut self, out: &mut SendBuffer<L>, event: &[u8]) -> Result<(), Stop> {
        if self.filter.is_until_reached(event, self.sum) {
            self.send_list(out, GtidListEvent::UNTIL_REACHED)?;
            return Err(Stop::Finished);
        }
        Ok(())
    }
}
