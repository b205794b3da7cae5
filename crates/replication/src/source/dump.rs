//! One dump: from the start that the replica asked for to the end of the connection.
//!
//! # Order of events
//!
//! ```text
//! fake ROTATE | format description | events ... | (ROTATE of the file) | fake ROTATE | format description | ...
//! ```
//!
//! # Invariants
//!
//! - The file being read, and all behind it, are kept from purge (I7).
//! - What is sent comes from [`Feed`], so it is hardened (I3).
//! - Nothing here takes a lock of the commit path for longer than a look: a slow replica slows only its own
//!   dump.
//!
//! # On failure
//!
//! An error goes to the replica as its last packet; a broken or stuck connection ends the dump in silence.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cohort_base::{BinlogPos, ServerId};
use cohort_binlog::event::{Checksum, Event, EventType, GtidListEvent, HEADER_LEN, flags};
use cohort_binlog::{BinlogError, Materialiser, Pin};
use cohort_types::{ErrorCode, SqlError};

use super::errors::{self, Coordinates};
use super::feed::{Feed, FeedStep, split_run};
use super::filter::{Filter, GroupKind, GtidHead, Verdict, ends_group};
use super::made_up;
use super::outbox::{Header, LinkGone, Outbox, ReplicaLink};
use super::registry::{DumpHandle, Source, WhyEnd};
use super::request::{Annotations, AtEnd, Capability, ChecksumWish, DumpRequest, MarkedEvents, SemiSyncWish};
use super::start;

/// A dump that waits looks at its surroundings at least so often.
const LOOK_AROUND: Duration = Duration::from_secs(1);

/// What a dump is doing, in the words of SHOW PROCESSLIST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpState {
    Sending,
    Switching,
    Waiting,
    Ending,
}

impl DumpState {
    /// The text of the column State.
    pub fn text(self) -> &'static str {
        match self {
            DumpState::Sending => "Sending binlog event to slave",
            DumpState::Switching => "Finished reading one binlog; switching to next binlog",
            DumpState::Waiting => "Master has sent all binlog to slave; waiting for more updates",
            DumpState::Ending => "Waiting to finalize termination",
        }
    }
}

/// Told of every change of the state.
pub trait DumpObserver {
    /// The dump does this from now on.
    fn state(&self, state: DumpState);
}

/// How a dump ended.
#[derive(Debug)]
pub enum DumpEnd {
    /// As asked for: an EOF packet with this sequence number goes to the replica.
    Finished(u8),
    /// This error goes to it.
    Failed(SqlError, u8),
    /// There is nobody to tell.
    Gone,
}

/// Why the loop stops.
enum Stop {
    Finished,
    Failed(SqlError),
    Gone,
}

impl From<LinkGone> for Stop {
    fn from(_: LinkGone) -> Stop {
        Stop::Gone
    }
}

/// Runs a dump to its end, on the caller's thread.
pub fn run_dump<L: ReplicaLink>(
    source: &Source,
    request: &DumpRequest,
    handle: &DumpHandle,
    observer: &dyn DumpObserver,
    link: L,
) -> DumpEnd {
    let mut outbox = Outbox::new(link);
    let acknowledges = request.semi_sync == SemiSyncWish::Acknowledges;
    if acknowledges {
        source.semi_sync().add_replica();
    }
    observer.state(DumpState::Sending);
    let stop = match Dump::open(source, request, handle, observer) {
        Ok(mut dump) => match dump.run(&mut outbox) {
            Ok(never) => match never {},
            Err(stop) => stop,
        },
        Err(error) => Stop::Failed(error),
    };
    observer.state(DumpState::Ending);
    if acknowledges {
        source.semi_sync().remove_replica();
    }
    let flushed = outbox.flush();
    let sequence = outbox.into_sequence();
    match (stop, flushed) {
        (Stop::Finished, Ok(())) => DumpEnd::Finished(sequence),
        (Stop::Failed(error), Ok(())) => DumpEnd::Failed(error, sequence),
        _ => DumpEnd::Gone,
    }
}

/// The loop ends only by a [`Stop`].
enum Never {}

struct Dump<'a> {
    source: &'a Source,
    request: &'a DumpRequest,
    handle: &'a DumpHandle,
    observer: &'a dyn DumpObserver,
    files: Arc<Materialiser>,
    server: ServerId,
    pin: Pin,
    feed: Feed,
    filter: Filter,
    /// Of the current file.
    sum: Checksum,
    start: BinlogPos,
    start_name: String,
    file_name: String,
    /// Where the last event sent or skipped starts and ends.
    last_event: u64,
    last_byte: u64,
    /// The group that is open.
    group: Option<GroupKind>,
    /// Of this run: the end of the event that the replica is to acknowledge.
    acknowledge_at: Option<u64>,
    /// Whole groups were sent behind the last one that the replica was asked to acknowledge.
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
        // Nothing may be purged while the start is looked for.
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

    fn run<L: ReplicaLink>(&mut self, out: &mut Outbox<L>) -> Result<Never, Stop> {
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

    fn take<L: ReplicaLink>(&mut self, out: &mut Outbox<L>, step: FeedStep) -> Result<(), Stop> {
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
                return Err(Stop::Failed(SqlError::new(ErrorCode::SlaveSameId, text)));
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

    /// Waits for more; heartbeats meanwhile. `None`: look around, then wait again.
    fn wait<L: ReplicaLink>(
        &mut self,
        out: &mut Outbox<L>,
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
            // An answer may have come meanwhile.
            self.note_caught_up();
            if self.request.heartbeat.is_some_and(|period| alive.elapsed() >= period) {
                let beat = made_up::heartbeat(self.server, &self.file_name, self.feed.position(), self.sum);
                out.event(self.header(), &beat)?;
                out.flush()?;
                *alive = Instant::now();
            }
        }
    }

    /// Names the file.
    fn announce<L: ReplicaLink>(&mut self, out: &mut Outbox<L>, offset: u64) -> Result<(), Stop> {
        let rotate = made_up::fake_rotate(self.server, &self.file_name, offset, self.sum);
        Ok(out.event(self.header(), &rotate)?)
    }

    fn header(&self) -> Header {
        match self.request.semi_sync {
            SemiSyncWish::Asynchronous => Header::Plain,
            SemiSyncWish::Acknowledges => Header::SemiSync,
        }
    }

    /// Of an event of the stream; the last one of the last group of a run may want an answer.
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

    /// Nothing is left to send. A replica that has shown by its start, or by its answers, that it has
    /// everything counts as one that has acknowledged.
    fn note_caught_up(&self) {
        let acknowledges = self.request.semi_sync == SemiSyncWish::Acknowledges;
        if acknowledges && !self.is_unconfirmed && !self.handle.is_asked() {
            self.source.semi_sync().has(self.feed.position());
        }
    }

    /// The description of the file in whose middle the dump starts.
    fn send_format_of_start<L: ReplicaLink>(&mut self, out: &mut Outbox<L>) -> Result<(), Stop> {
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
        out: &mut Outbox<L>,
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
        // Its temporary tables are still needed if it has been here before.
        let keeps_tables = self.filter.is_by_gtid && !self.filter.is_position_reached();
        let made = made_up::format_description(event, is_middle, keeps_tables);
        out.event(self.header(), &made)?;
        self.end_if_until(out, event)
    }

    fn forward_run<L: ReplicaLink>(&mut self, out: &mut Outbox<L>, at: BinlogPos) -> Result<(), Stop> {
        // The feed keeps the bytes until its next step; the run is taken out so that `self` stays free.
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

    /// The end of the last group in a run, if the replica is to acknowledge it: once for many groups that
    /// come together.
    fn last_group_end(&self, run: &[u8], at: BinlogPos) -> Option<u64> {
        if self.request.semi_sync == SemiSyncWish::Asynchronous {
            return None;
        }
        let (mut offset, mut group, mut last) = (at.offset, self.group, None);
        // While the replica catches up, some groups will not be sent.
        let mut probe = (!self.filter.is_open()).then(|| self.filter.clone());
        for event in split_run(run) {
            offset += event.len() as u64;
            group = self.group_behind(group, event);
            let is_passed = probe.as_mut().is_none_or(|probe| self.passes(probe, event));
            let is_sent = is_passed && !self.is_left_out(event);
            // Behind a ROTATE the replica's position is in the next file.
            let counts = is_sent && group.is_none() && event[4] != EventType::ROTATE.0;
            last = if counts { Some(offset) } else { last };
        }
        let end = BinlogPos { file: at.file, offset: last? };
        self.source.semi_sync().wants_acknowledgement(end).then_some(end.offset)
    }

    /// Whether a filter lets an event through. An error shows itself when the event is sent.
    fn passes(&self, filter: &mut Filter, event: &[u8]) -> bool {
        if event[4] == EventType::GTID.0
            && let Some(head) = GtidHead::read(event)
            && filter.gtid(&head, &|| self.source.logged()).is_err()
        {
            return false;
        }
        filter.event(event, self.sum) == Verdict::Send
    }

    /// The group that is open behind an event.
    fn group_behind(&self, group: Option<GroupKind>, event: &[u8]) -> Option<GroupKind> {
        match EventType(event[4]) {
            EventType::GTID => GtidHead::read(event).map(|head| head.kind),
            _ => group.filter(|kind| !ends_group(*kind, event, self.sum)),
        }
    }

    fn forward<L: ReplicaLink>(&mut self, out: &mut Outbox<L>, event: &[u8]) -> Result<(), Stop> {
        let kind = EventType(event[4]);
        self.group = self.group_behind(self.group, event);
        match kind {
            EventType::FORMAT_DESCRIPTION => return self.format_description(out, event, false),
            EventType::GTID => {
                let bogus = || Stop::Failed(errors::fatal("Failed to read Gtid_log_event: corrupt binlog"));
                let head = GtidHead::read(event).ok_or_else(bogus)?;
                let source = self.source;
                self.filter.gtid(&head, &|| source.logged()).map_err(Stop::Failed)?;
            }
            EventType::GTID_LIST if self.filter.is_by_gtid => self.note_list(event)?,
            // Told by the key the replica would need; nothing of ours is encrypted.
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

    /// Sends an event in the form that this replica understands, if it is to get it.
    fn send<L: ReplicaLink>(
        &mut self,
        out: &mut Outbox<L>,
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
            (true, _) => made_up::begin(event, self.sum),
            (false, true) => return Ok(()),
            (false, false) => made_up::dummy(event, self.sum),
        };
        let too_small = "Failed to replace an event with one that the slave knows: too small event.";
        let made = made.ok_or_else(|| Stop::Failed(errors::fatal(too_small)))?;
        Ok(out.event(self.header_of_event(), &made)?)
    }

    /// Whether the replica has asked to be spared events that were logged under `@@skip_replication`.
    fn is_left_out(&self, event: &[u8]) -> bool {
        let flags_of_event = u16::from_le_bytes([event[17], event[18]]);
        self.request.marked == MarkedEvents::Skip && flags_of_event & flags::SKIP_REPLICATION != 0
    }

    fn send_list<L: ReplicaLink>(&mut self, out: &mut Outbox<L>, list_flags: u8) -> Result<(), Stop> {
        let gtids = self.filter.seen.list();
        let list = made_up::fake_gtid_list(self.server, gtids, list_flags, self.last_byte, self.sum);
        Ok(out.event(self.header(), &list)?)
    }

    fn end_if_until<L: ReplicaLink>(&mut self, out: &mut Outbox<L>, event: &[u8]) -> Result<(), Stop> {
        if self.filter.is_until_reached(event, self.sum) {
            self.send_list(out, GtidListEvent::UNTIL_REACHED)?;
            return Err(Stop::Finished);
        }
        Ok(())
    }
}
