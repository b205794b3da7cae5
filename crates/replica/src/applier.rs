//! The applier (SQL thread): reads the relay log and applies its groups in order.
//!
//! A *group* is the events of a transaction, or of a statement outside of one. A group is *ordered* when it
//! has its place in this server's commit order; it may become durable later.
//!
//! # Path of a group
//! ```text
//! relay log --> Groups: finds the group boundaries --> begin(): which path?
//!     ^             serially:       GroupApplier, in this thread -------------------> ordered
//!     |             with workers:   gather(), hand_over() --> WorkerPool -----------> ordered
//!     |             not at all:     already applied, or beyond START SLAVE UNTIL
//!     +--- failed(): roll back --+-- temporary error: pause, read it again, slave_transaction_retries times
//!                                +-- disk full: pause, read it again, without limit
//!                                +-- other error: wait for the pool to order all earlier groups, then end
//! ```
//! `failed` handles the groups of this thread, the pool those of its own (`worker_pool.rs`). The commit of a
//! group also stores the position after the group. The thread begins the next group when this one is ordered.
//! It does not wait for the flush, which the [`Flusher`] does. After DDL it waits until the new definitions
//! are published.
//!
//! # Parallel apply
//! With `slave_parallel_threads` this thread collects the events of a group and passes the group to the
//! worker pool ([`WorkerPool`]), into the queue of its domain, with the dependencies found by [`Planner`].
//! Three kinds of groups are treated differently:
//! - A group of more than [`GATHERED_BYTES_MAX`] bytes: the thread passes only its start position and reads
//!   on after it. A worker reads it from the relay log and applies it exclusively: after all earlier groups
//!   of its queue, before all later ones.
//! - A group whose keys are unknown (DDL, statements) is applied exclusively, too.
//! - A group for which the order of all groups matters (START SLAVE UNTIL a file position, groups after the
//!   first one that a GTID in UNTIL holds back, `sql_slave_skip_counter`): the thread processes it after the
//!   pool has ordered all earlier groups. Of a group that `sql_slave_skip_counter` skips it commits only the
//!   position.
//!
//! # Where it begins
//! - Without GTIDs: at the first event that is not applied. Its position in the source's log is the applied
//!   position, so groups are ordered in the order of that log.
//! - With GTIDs the thread may read groups again that are already applied. If only the applier was restarted,
//!   these are groups of domains that were ahead of the others. If both threads were restarted, the relay log
//!   is read from its beginning; it was kept because its events were acknowledged to a semi-synchronous
//!   source (`begin.rs`).
//!
//! With GTIDs, the thread decides in `begin` whether a group is *known*, that is, applied. Known groups are
//! skipped without a commit. A group is known in these cases:
//! - It begins before the position up to which its domain is applied (`applied_until`, `ahead`).
//! - Its domain has no `applied_until`, it begins before `known_until`, and its sequence number is not above
//!   the last one of its domain that was applied or passed to the pool.
//! - With `gtid_ignore_duplicates`, another source has delivered it ([`Claim::Known`]).
//!
//! Any other group whose sequence number is not above the last applied one ends the thread with error 1950 if
//! `gtid_strict_mode` is set. Without it the group is applied.
//!
//! # Several sources
//! With `gtid_ignore_duplicates`, the thread claims a group before it applies anything of it ([`Owners`]). It
//! waits while another source has groups of this domain in progress, and skips the group if it is known
//! afterwards. An open group whose source has disconnected is rolled back, by its worker if it is large and
//! otherwise by this thread. Its claim is given up ([`Follower::give_up_unfinished`]), so that no other
//! source waits for it. Another source may deliver the group before this one sends it again.
//!
//! # On failure
//! The group is rolled back, SHOW SLAVE STATUS reports MariaDB's error number and text, and the position
//! stays before the group.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use cohort_base::{CommitSeq, ConnectionId, DomainId, Gtid};
use cohort_binlog::event::{Event, GtidListEvent, flags};
use cohort_binlog::{EventHeader, EventType, RawEvent};
use cohort_config::VarId;
use cohort_exec::{Applier, Command, Database};

use crate::apply::{ApplyError, Failure, GroupApplier, Mark, NO_SPACE_PAUSE, Rules};
use crate::budget::QueueBudget;
use crate::connection::{Connection, READING, ThreadError};
use crate::flusher::Flusher;
use crate::group::{End, Groups, Part};
use crate::job::{Coming, Content, Decoder, Job, Whole, body_of, relay_failure, unreadable};
use crate::open_group::{GATHERED_BYTES_MAX, Gathered, Handed, OpenGroup};
use crate::owners::{Claim, DomainReached, Owners};
use crate::place::{RelayPlace, SourcePlace};
use crate::planner::{Plan, Planner};
use crate::progress::Reached;
use crate::relay::RelayReader;
use crate::replica_log::ReplicaLog;
use crate::settings::{SourceSettings, UseGtid};
use crate::state::{ReplicaState, StateStore};
use crate::until::Until;
use crate::worker_pool::{Watch, WorkerPool};

/// Pause between two attempts to claim a domain that another source owns.
const CLAIM_AGAIN: Duration = Duration::from_millis(2);

/// Pause between two checks of a relay log that does not grow.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Pause between two checks of the relay log while the worker pool is busy.
const LOOK_AT_WORKER_POOL: Duration = Duration::from_millis(20);

const CLAIMING: &str = "Waiting for other master connection to process the same GTID";
const DELAYING: &str = "Waiting until MASTER_DELAY seconds after master executed event";

/// Everything that the SQL thread needs.
pub struct SqlThread {
    pub connection: Arc<Connection>,
    pub settings: SourceSettings,
    pub db: Arc<Database>,
    pub state: Arc<StateStore>,
    pub flusher: Arc<Flusher>,
    /// Memory limit for the queued groups of all sources.
    pub budget: Arc<QueueBudget>,
    /// Domain ownership, for `gtid_ignore_duplicates`.
    pub owners: Arc<Owners>,
    pub id: ConnectionId,
    /// Process list ids for the workers.
    pub worker_ids: Vec<ConnectionId>,
    pub log: ReplicaLog,
}

/// Releases a thread's claims when it ends, even by a panic.
struct Claims<'t>(&'t SqlThread);

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        self.0.owners.leave(&self.0.connection.name);
    }
}

/// The next step of the read loop.
enum Turn {
    /// Read the next event.
    On,
    /// Read the group again from its beginning, after a rollback.
    Again,
    /// End the thread.
    End,
}

impl SqlThread {
    /// Runs the thread.
    pub fn run(self) {
        let connection = Arc::clone(&self.connection);
        let outcome = {
            let _claims = Claims(&self);
            self.follow()
        };
        self.flusher.finish();
        {
            let mut sql = connection.sql.lock();
            if let Err(error) = outcome {
                if !error.text.is_empty() {
                    self.log.error(&connection.name, format_args!("Slave SQL: {}", error.text));
                }
                sql.failed(error, self.db.clock.wall_us());
            }
            sql.is_running = false;
            sql.state = "";
            sql.waits_for_more = false;
            sql.timestamp = None;
            sql.delayed_until = None;
            sql.applier_id = None;
            sql.processes.clear();
        }
        connection.relay.wake();
        connection.notify();
    }

    fn follow(&self) -> Result<(), ThreadError> {
        let logs = self.db.globals.flag(VarId::LogSlaveUpdates);
        let temporary = Arc::clone(&self.connection.temporary);
        let session = Applier::new(&self.db, self.id, Command::SlaveSql, logs, temporary);
        let session = session.map_err(|e| ThreadError::new(e.number().into(), e.message))?;
        {
            let mut sql = self.connection.sql.lock();
            sql.processes.push(Arc::clone(session.process()));
            (sql.applier_id, sql.seen) = (Some(self.id), None);
        }
        let mut rules = Rules::of(&self.db.globals);
        rules.takes_back_lost = self.settings.use_gtid != UseGtid::No;
        let applier = GroupApplier::new(session, rules, &self.connection.counts);
        let is_parallel = Planner::new(&self.db.globals).is_parallel();
        let worker_pool = match is_parallel && !self.worker_ids.is_empty() {
            true => {
                let ids = self.worker_ids.clone();
                let (db, flusher, budget) = (&self.db, &self.flusher, &self.budget);
                Some(WorkerPool::start(&self.connection, db, flusher, &applier.rules, budget, ids)?)
            }
            false => None,
        };
        let mut follower = Follower {
            thread: self,
            applier,
            decoder: Decoder::default(),
            groups: Groups::default(),
            open: None,
            place: self.connection.sql.lock().executed.clone(),
            held_back: None,
            held_domains: BTreeSet::new(),
            retries: 0,
            waits_for_more: false,
            ignores_duplicates: self.settings.use_gtid != UseGtid::No
                && self.db.globals.flag(VarId::GtidIgnoreDuplicates),
            worker_pool,
            planners: BTreeMap::new(),
            watch: Watch::default(),
            newest: BTreeMap::new(),
            newest_seq: None,
        };
        let outcome = follower.run();
        follower.applier.rollback();
        let Some(worker_pool) = &follower.worker_pool else { return outcome };
        worker_pool.end();
        // A failure of the worker pool came first.
        worker_pool.failure().map_or(outcome, Err)
    }

    fn show(&self, state: &'static str) {
        self.connection.sql.lock().show(state);
    }
}

struct Follower<'t> {
    thread: &'t SqlThread,
    applier: GroupApplier,
    decoder: Decoder,
    groups: Groups,
    open: Option<OpenGroup>,
    /// Position in the source's log after the last event.
    place: SourcePlace,
    /// Start of the first group beyond START SLAVE UNTIL, if later groups are applied nevertheless.
    held_back: Option<RelayPlace>,
    /// Domains whose groups are held back.
    held_domains: BTreeSet<DomainId>,
    retries: u64,
    /// As shown in `Sql::waits_for_more`.
    waits_for_more: bool,
    /// Other sources send the same transactions.
    ignores_duplicates: bool,
    worker_pool: Option<Arc<WorkerPool>>,
    /// Planners by domain.
    planners: BTreeMap<DomainId, Planner>,
    watch: Watch,
    /// Newest sequence number of each domain that was passed to the worker pool.
    newest: BTreeMap<DomainId, u64>,
    /// Last commit that this thread ordered itself.
    newest_seq: Option<CommitSeq>,
}

/// Ends the worker pool even if the thread panics, because parked groups hold locks.
impl Drop for Follower<'_> {
    fn drop(&mut self) {
        if let Some(worker_pool) = &self.worker_pool {
            worker_pool.end();
        }
    }
}

impl Follower<'_> {
    fn run(&mut self) -> Result<(), ThreadError> {
        self.await_published()?;
        let connection = &self.thread.connection;
        let mut reader: Option<RelayReader> = None;
        loop {
            if connection.sql_stops() || self.is_killed()? {
                return Ok(());
            }
            if let Some(error) = self.worker_pool.as_ref().and_then(|worker_pool| worker_pool.failure()) {
                return Err(error);
            }
            let Some(open) = &mut reader else {
                let start = connection.sql.lock().relay;
                let start = match start.file {
                    0 => RelayPlace { file: connection.relay.first().unwrap_or(0), offset: 0 },
                    _ => start,
                };
                reader = RelayReader::at(&connection.relay, start).map_err(|e| relay_failure(&e))?;
                if reader.is_none() {
                    let pause = self.nothing_more(start, false);
                    connection.relay.await_growth(start, pause);
                }
                continue;
            };
            let raw = match open.next_event() {
                Ok(raw) => raw,
                Err(error) => return Err(self.stopped_at(relay_failure(&error))),
            };
            let Some(raw) = raw else {
                let pause = self.nothing_more(open.place(), true);
                connection.relay.await_growth(open.place(), pause);
                continue;
            };
            if std::mem::take(&mut self.waits_for_more) {
                connection.sql.lock().waits_for_more = false;
            }
            let start = RelayPlace { file: open.place().file, offset: raw.offset };
            let end = open.place();
            let turn = match self.take(&raw, start, end) {
                Ok(turn) => turn,
                Err(error) => self.failed(error)?,
            };
            match turn {
                Turn::On => {}
                Turn::Again => {
                    self.groups.abandon();
                    self.open = None;
                    reader = None;
                }
                Turn::End => return Ok(()),
            }
        }
    }

    /// Waits until everything ordered is published, so that the first group sees all definitions. Those of an
    /// earlier applier may still wait for replicas of this server.
    fn await_published(&mut self) -> Result<(), ThreadError> {
        let thread = self.thread;
        let commit = &thread.db.commit;
        let placed = commit.placed();
        self.applier.session.process().hold_until(placed);
        thread.show(READING);
        while commit.read_view().seq() < placed && !thread.connection.sql_stops() && !self.is_killed()? {
            thread.flusher.flush();
            thread.connection.pause(LOOK_AT_WORKER_POOL, Connection::sql_stops);
        }
        Ok(())
    }

    /// Returns whether the thread was killed by a stop request. Fails if it was killed otherwise.
    fn is_killed(&self) -> Result<bool, ThreadError> {
        match self.applier.session.check_killed() {
            Ok(()) => Ok(false),
            Err(_) if self.thread.connection.sql_stops() => Ok(true),
            Err(error) => {
                Err(ThreadError::new(error.number().into(), "Slave SQL thread was killed".to_owned()))
            }
        }
    }

    /// Handles the end of the available relay log at `place`. `is_read` says that the log was read up to
    /// there. Returns how long to wait before the next check.
    fn nothing_more(&mut self, place: RelayPlace, is_read: bool) -> Duration {
        if is_read {
            self.give_up_unfinished(place);
        }
        let thread = self.thread;
        let connection = &thread.connection;
        // An incomplete group that the pool already has does not count as work: it waits for its source.
        let is_waiting = |worker_pool: &Arc<WorkerPool>| {
            worker_pool.is_idle() || self.is_handed() && worker_pool.has_one()
        };
        let is_idle = self.worker_pool.as_ref().is_none_or(is_waiting);
        self.waits_for_more = is_idle || self.open.is_some();
        connection.sql.lock().waits_for_more = self.waits_for_more;
        if let Some(worker_pool) = self.worker_pool.as_ref().filter(|_| !is_idle) {
            worker_pool.watch(&mut self.watch);
            return LOOK_AT_WORKER_POOL;
        }
        thread.flusher.flush();
        match is_read && self.open.is_none() {
            true => self.move_on(place),
            false => self.purge(),
        }
        let published = thread.db.commit.read_view().seq();
        if !connection.show_all_read(place, self.newest_seq.unwrap_or_default(), published) {
            // More has arrived, or a commit waits for a semi-synchronous replica.
            return LOOK_AT_WORKER_POOL;
        }
        connection.notify();
        LOOK_AGAIN
    }

    /// Handles the failure of the open group.
    fn failed(&mut self, failure: ApplyError) -> Result<Turn, ThreadError> {
        let connection = &self.thread.connection;
        self.applier.rollback();
        match failure.kind {
            Failure::Stopped if connection.sql_stops() => Ok(Turn::End),
            Failure::NoSpace => {
                self.thread.show("Waiting for someone to free space");
                connection.pause(NO_SPACE_PAUSE, Connection::sql_stops);
                Ok(Turn::Again)
            }
            Failure::Temporary => {
                self.retries += 1;
                if self.retries > self.thread.db.globals.uint(VarId::SlaveTransactionRetries) {
                    return Err(failure.error);
                }
                connection.counts.retried.fetch_add(1, Ordering::Relaxed);
                let pause = self.thread.db.globals.uint(VarId::SlaveTransactionRetryInterval);
                connection.pause(Duration::from_secs(pause), Connection::sql_stops);
                Ok(Turn::Again)
            }
            Failure::Stopped => Err(failure.error),
            Failure::Final => Err(self.stopped_at(failure.error)),
        }
    }

    /// Lets the pool finish everything before an error, so that the position is that of the error.
    fn stopped_at(&mut self, error: ThreadError) -> ThreadError {
        self.drained();
        error
    }

    fn decode(&mut self, raw: &RawEvent) -> Result<Event, ApplyError> {
        self.decoder.decode(raw).map_err(|what| unreadable(&what))
    }

    /// Processes one event. `start` and `end` are its bounds in the relay log.
    fn take(&mut self, raw: &RawEvent, start: RelayPlace, end: RelayPlace) -> Result<Turn, ApplyError> {
        let header = &raw.header;
        let body = body_of(raw);
        let connection = &self.thread.connection;
        connection.counts.events.fetch_add(1, Ordering::Relaxed);
        if header.flags & flags::RELAY_LOG != 0 {
            let event = self.decode(raw)?;
            return Ok(self.own(header, &event, end));
        }
        if header.kind == EventType::FORMAT_DESCRIPTION {
            let format = self.decode(raw)?;
            self.begin_file(&format);
        }
        let part = self.groups.see(header, body).map_err(|what| unreadable(&what))?;
        let begins = matches!(part, Part::Gtid(..) | Part::Begin)
            || self.open.is_none() && matches!(part, Part::Inside | Part::End(_));
        let start = begins.then(|| Reached { relay: start, source: self.place.clone() });
        self.place.follow(header, body).map_err(|what| unreadable(&what))?;
        if let Some(start) = start
            && let Some(turn) = self.begin(raw, &part, start)?
        {
            return Ok(turn);
        }
        match part {
            Part::Outside => {
                if self.open.is_none() {
                    self.move_on(end);
                }
                if header.kind == EventType::GTID_LIST && self.ends_all(raw, end)? {
                    return Ok(Turn::End);
                }
                Ok(Turn::On)
            }
            Part::Gtid(..) | Part::Begin => Ok(Turn::On),
            Part::Inside => {
                if self.is_gathering() {
                    let event = self.decode(raw)?;
                    if !self.gather(raw, event) {
                        return Ok(Turn::End);
                    }
                } else if self.is_applied() {
                    let event = self.decode(raw)?;
                    self.applier.event(header, &event, &self.place)?;
                }
                self.count_skipped(false);
                Ok(Turn::On)
            }
            Part::End(how) if self.is_gathering() || self.is_handed() => {
                let is_taken = match self.is_handed() {
                    true => true,
                    false => {
                        let event = self.decode(raw)?;
                        self.hand_over(raw, event, how, end)
                    }
                };
                let gtid = self.open.take().and_then(|open| open.gtid);
                let ends = !is_taken
                    || self.until().may_be_last(gtid) && (!self.drained() || self.until().is_reached());
                Ok(if ends { Turn::End } else { Turn::On })
            }
            Part::End(how) => {
                if self.open.as_ref().is_some_and(|open| !open.is_known) {
                    let mark = Mark {
                        gtid: self.open.as_ref().and_then(|open| open.gtid),
                        name: connection.name.clone(),
                        place: self.place.clone(),
                    };
                    let event = self.decode(raw)?;
                    let done = self.applier.end(header, &event, how, &mark)?;
                    self.ordered(done);
                }
                self.count_skipped(true);
                let gtid = self.open.take().and_then(|open| open.gtid);
                if let Some(gtid) = gtid
                    && self.held_back.is_some()
                    && !self.held_domains.contains(&gtid.domain)
                {
                    connection.came_ahead(gtid.domain, end, self.newest_seq);
                }
                self.retries = 0;
                self.move_on(end);
                Ok(if self.until().is_reached() { Turn::End } else { Turn::On })
            }
        }
    }

    /// Handles a format description of the source: a new file, or the same file after a reconnect. The source
    /// does not continue an open group, so the group is dropped; the source sends it again.
    fn begin_file(&mut self, format: &Event) {
        let temporary = Arc::clone(&self.thread.connection.temporary);
        // A restarted source has lost all earlier connections. After a mere reconnect the creation time is 0.
        let has_started = matches!(format, Event::FormatDescription(format) if format.created != 0);
        let open = self.open.take();
        if open.is_some() {
            self.applier.rollback();
            self.groups.abandon();
        }
        if has_started && !temporary.is_empty() && self.drained() {
            temporary.clear();
        }
        let Some(open) = open else { return };
        if let Some(gtid) = open.gtid.filter(|_| self.ignores_duplicates) {
            self.thread.owners.give_up(&self.thread.connection.name, gtid);
        }
        if let (Some(gtid), Some(handed)) = (open.gtid, open.handed) {
            match handed.newest_before {
                Some(number) => self.newest.insert(gtid.domain, number),
                None => self.newest.remove(&gtid.domain),
            };
        }
    }

    /// Returns whether this thread itself applies the events of the open group.
    fn is_applied(&self) -> bool {
        self.open.as_ref().is_some_and(|open| !open.is_known && !open.is_skipped && open.handed.is_none())
    }

    fn ordered(&mut self, done: crate::apply::Done) {
        let thread = self.thread;
        let (is_ddl, is_transactional) = self.applier.kind();
        thread.connection.counts.applied((is_ddl || done.is_ddl, is_transactional));
        self.newest_seq = Some(done.seq);
        self.applier.await_done(done, &thread.flusher);
    }

    /// Processes an event that this server wrote into the relay log.
    fn own(&mut self, header: &EventHeader, event: &Event, end: RelayPlace) -> Turn {
        // The artificial ROTATE at the head of a file gives the source position. The one at the end names the
        // next relay log file.
        if let Event::Rotate(rotate) = event
            && header.flags & flags::ARTIFICIAL != 0
        {
            let file = String::from_utf8_lossy(&rotate.name).into_owned();
            // Inside a group the position is not needed, because the next event gives it, too.
            if self.open.is_none() && !file.is_empty() {
                self.place = SourcePlace { file, position: rotate.position };
            }
        }
        if self.open.is_none() {
            self.move_on(end);
        }
        Turn::On
    }

    /// Advances the position to `end`, unless groups before it are still with the worker pool.
    fn move_on(&mut self, end: RelayPlace) {
        if self.worker_pool.as_ref().is_some_and(|worker_pool| !worker_pool.is_idle()) {
            return self.purge();
        }
        let connection = &self.thread.connection;
        match self.held_back {
            None => connection.came_to(end, &self.place, self.newest_seq),
            Some(place) => {
                let mut sql = connection.sql.lock();
                (sql.relay, sql.known_until) = (place, end);
                let newest = sql.newest.max(self.newest_seq.unwrap_or_default());
                let source = sql.executed.clone();
                sql.shown.came_to(newest, Reached { relay: place, source });
            }
        }
        self.purge();
    }

    /// Removes relay log files that are applied and durable.
    fn purge(&self) {
        if self.thread.db.globals.flag(VarId::RelayLogPurge) {
            self.thread.connection.purge_applied(self.thread.db.commit.acknowledged());
        }
    }

    /// Begins a group. Returns a value if the caller must do that instead of processing the group.
    fn begin(&mut self, raw: &RawEvent, part: &Part, start: Reached) -> Result<Option<Turn>, ApplyError> {
        let thread = self.thread;
        let header = &raw.header;
        let (gtid_event, gtid) = match part {
            Part::Gtid(event, gtid) => (Some((&**event, *gtid)), Some(*gtid)),
            _ => (None, None),
        };
        let applied =
            gtid.and_then(|gtid| thread.state.ordered(|state| state.gtids.get(&gtid.domain).copied()));
        let uses_gtid = thread.settings.use_gtid != UseGtid::No;
        // A domain stops at its first group beyond UNTIL, because later sequence numbers may be lower.
        let is_held = gtid.is_some_and(|gtid| self.held_domains.contains(&gtid.domain));
        let is_behind_until = is_held || self.until().is_behind(gtid);
        let is_duplicate = match gtid.filter(|_| self.ignores_duplicates && !is_behind_until) {
            Some(gtid) => match self.claim(gtid) {
                Some(claim) => claim == Claim::Known,
                None => return Ok(Some(Turn::End)),
            },
            None => false,
        };
        let is_before = gtid.is_some_and(|gtid| {
            let applied = applied.map_or(0, |applied| applied.seq_no);
            gtid.seq_no <= applied.max(self.newest.get(&gtid.domain).copied().unwrap_or(0))
        });
        let is_known = is_duplicate
            || uses_gtid && {
                let sql = thread.connection.sql.lock();
                let ahead = gtid.and_then(|gtid| sql.ahead.get(&gtid.domain));
                let is_applied = match gtid.and_then(|gtid| sql.applied_until.get(&gtid.domain)) {
                    Some(until) => start.relay < *until,
                    None => start.relay < sql.known_until && is_before,
                };
                is_applied || ahead.is_some_and(|ahead| start.relay < *ahead)
            };
        if let Some(gtid) = gtid
            && is_before
            && !is_known
            && self.applier.rules.is_strict
            && uses_gtid
        {
            let existing = applied.map_or_else(String::new, |applied| applied.to_string());
            let text = format!(
                "An attempt was made to binlog GTID {gtid} which would create an out-of-order sequence number with \
                 existing GTID {existing}, and gtid strict mode is enabled"
            );
            return Err(ApplyError::fatal(1950, text));
        }
        if self.until().is_place_reached() {
            return Ok(Some(Turn::End));
        }
        if is_behind_until {
            if !self.drained() || self.until().is_reached() {
                return Ok(Some(Turn::End));
            }
            self.held_back.get_or_insert(start.relay);
            self.held_domains.extend(gtid.map(|gtid| gtid.domain));
        }
        if is_known {
            // An applier of another source may have ordered it without its being published yet.
            self.newest_seq = self.newest_seq.max(Some(thread.db.commit.placed()));
        }
        let is_known = is_known || is_behind_until;
        {
            let mut sql = thread.connection.sql.lock();
            sql.timestamp = Some(header.timestamp);
            if self.worker_pool.is_none() {
                sql.seen = gtid;
            }
        }
        if !self.wait_for_delay(header.timestamp) {
            return Ok(Some(Turn::End));
        }
        thread.show(READING);
        let skips = thread.connection.sql.lock().skip_counter > 0;
        let ignores = gtid.is_some_and(|gtid| thread.settings.ignores_domain(gtid.domain.0))
            || thread.settings.ignore_server_ids.contains(&header.server_id.0);
        let has_transaction = match gtid_event {
            Some((event, _)) => event.flags2 & cohort_binlog::event::gtid_flags2::STANDALONE == 0,
            None => *part == Part::Begin,
        };
        let passes_over = skips || ignores;
        let is_for_worker_pool = self.worker_pool.is_some() && !is_known && !skips && self.may_run_ahead();
        // Without GTIDs the source log position is the applied position and must advance in order.
        let domain = gtid.filter(|_| uses_gtid).map_or(DomainId(0), |gtid| gtid.domain);
        if is_for_worker_pool && let Some(worker_pool) = &self.worker_pool {
            let (_, _, first) = worker_pool.domain_queue(domain);
            let planner = self.planners.entry(domain).or_insert_with(|| Planner::new(&thread.db.globals));
            planner.begin(gtid_event.map(|(event, _)| event), first);
        }
        let gathered = is_for_worker_pool.then(|| Gathered {
            domain,
            start,
            header: *header,
            gtid: gtid_event.map(|(event, gtid)| (event.clone(), gtid)),
            passes_over,
            events: Vec::new(),
            bytes: raw.bytes.len(),
            has_transaction,
        });
        self.open = Some(OpenGroup { gtid, is_known, is_skipped: skips, gathered, handed: None });
        if !is_for_worker_pool && !is_known {
            if !self.drained() {
                return Ok(Some(Turn::End));
            }
            self.applier.begin(header, gtid_event, has_transaction, passes_over)?;
        }
        Ok(None)
    }

    /// Waits until it is decided which source applies the group. Returns `None` if the thread must end.
    fn claim(&mut self, gtid: Gtid) -> Option<Claim> {
        let thread = self.thread;
        let newest = |state: &ReplicaState| state.gtids.get(&gtid.domain).map_or(0, |newest| newest.seq_no);
        let reached = || DomainReached {
            ordered: thread.state.ordered(newest),
            published: thread.state.published(thread.db.commit.read_view().seq(), newest),
        };
        let mut watch = Watch::default();
        loop {
            let claim = thread.owners.claim(&thread.connection.name, gtid, reached);
            if claim != Claim::Wait {
                return Some(claim);
            }
            thread.show(CLAIMING);
            // Groups of this source in other domains continue meanwhile.
            match &self.worker_pool {
                Some(worker_pool) if worker_pool.failure().is_some() => return None,
                Some(worker_pool) => worker_pool.watch(&mut watch),
                None => {}
            }
            thread.flusher.flush();
            thread.connection.pause(CLAIM_AGAIN, Connection::sql_stops);
            if thread.connection.sql_stops() {
                return None;
            }
        }
    }

    /// Gives up an open group whose source is disconnected, so that other sources that send the same
    /// transactions need not wait. The group is rolled back, as it would be once the source sends it again.
    fn give_up_unfinished(&mut self, place: RelayPlace) {
        let Some(open) = self.open.as_mut().filter(|_| self.ignores_duplicates) else { return };
        let Some(gtid) = open.gtid.filter(|_| !open.is_known) else { return };
        let is_undone = match &open.handed {
            // A large group is its worker's.
            Some(handed) => handed.is_undone.load(Ordering::Acquire),
            None if self.thread.connection.is_cut_off(place) => {
                (open.is_known, open.gathered) = (true, None);
                self.applier.rollback();
                true
            }
            None => false,
        };
        if is_undone {
            self.thread.owners.give_up(&self.thread.connection.name, gtid);
        }
    }

    /// Returns whether groups may go to the worker pool. Not if START SLAVE UNTIL gives a file position,
    /// which needs serial apply, nor after a group that is held back.
    fn may_run_ahead(&self) -> bool {
        !self.until().is_by_order() && self.held_back.is_none()
    }

    fn until(&self) -> Until<'_> {
        Until { connection: &self.thread.connection, state: &self.thread.state }
    }

    fn is_gathering(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.gathered.is_some())
    }

    /// Returns whether the worker pool already has the open group.
    fn is_handed(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.handed.is_some())
    }

    /// Waits until the worker pool has ordered all its groups. Returns false if the pool ends.
    fn drained(&mut self) -> bool {
        self.planners.values_mut().for_each(Planner::barrier);
        self.worker_pool.as_ref().is_none_or(|worker_pool| worker_pool.drain())
    }

    /// Collects an event of a group for the worker pool. Returns false if the pool ends.
    fn gather(&mut self, raw: &RawEvent, event: Event) -> bool {
        let Some(gathered) = self.open.as_mut().and_then(|open| open.gathered.as_mut()) else { return true };
        gathered.bytes += raw.bytes.len();
        if gathered.bytes > GATHERED_BYTES_MAX {
            return self.hand_over_place();
        }
        if let Some(planner) = self.planners.get_mut(&gathered.domain) {
            let inflated = match &event {
                Event::Rows(rows) => rows.inflated_bytes(),
                _ => Ok(0),
            };
            let room = self.applier.reserve_to_unpack(inflated);
            if room.is_err() {
                // Applied exclusively, the group meets the same error and reports it.
                planner.keep_alone();
            } else {
                planner.event(&self.thread.db, &self.applier.rules, &event);
            }
        }
        gathered.events.push((raw.header, event));
        true
    }

    /// Passes the start position of a large group to the worker pool. Returns false if the pool ends.
    fn hand_over_place(&mut self) -> bool {
        let Some(open) = &mut self.open else { return false };
        let Some(gathered) = open.gathered.take() else { return false };
        let newest_before = open.gtid.and_then(|gtid| self.newest.insert(gtid.domain, gtid.seq_no));
        let is_undone = Arc::<AtomicBool>::default();
        let coming = Coming { start: gathered.start.clone(), is_undone: Arc::clone(&is_undone) };
        open.handed = Some(Handed { newest_before, is_undone });
        let content = Content::InRelay(coming);
        self.push(gathered, content, None)
    }

    /// Passes a completely collected group to the worker pool. Returns false if the pool ends.
    fn hand_over(&mut self, raw: &RawEvent, event: Event, how: End, end: RelayPlace) -> bool {
        let Some(open) = &mut self.open else { return false };
        let Some(mut gathered) = open.gathered.take() else { return false };
        if let Some(gtid) = open.gtid {
            self.newest.insert(gtid.domain, gtid.seq_no);
        }
        gathered.bytes += raw.bytes.len();
        let end = Reached { relay: end, source: self.place.clone() };
        let events = std::mem::take(&mut gathered.events);
        let whole = Whole { events, last: (raw.header, event, how), end, is_alone: false };
        self.purge();
        self.push(gathered, Content::Whole(Box::new(whole)), Some(how))
    }

    /// Queues a group in the worker pool. `how` is its end, which is unknown for a large group.
    fn push(&mut self, gathered: Gathered, mut content: Content, how: Option<End>) -> bool {
        let Some(worker_pool) = &self.worker_pool else { return false };
        let (domain_queue, number, first) = worker_pool.domain_queue(gathered.domain);
        let Some(planner) = self.planners.get_mut(&gathered.domain) else { return false };
        let plan = match how {
            Some(how) => planner.end(how, number, first),
            None => planner.alone(number),
        };
        let (after, is_alone) = match plan {
            Plan::Start(after) => (after, false),
            Plan::Exclusive(after) => (after, true),
        };
        let bytes = match &mut content {
            Content::Whole(whole) => {
                whole.is_alone = is_alone;
                gathered.bytes
            }
            Content::InRelay(_) => 0,
        };
        let job = Job {
            header: gathered.header,
            gtid: gathered.gtid,
            has_transaction: gathered.has_transaction,
            passes_over: gathered.passes_over,
            content,
            retries: AtomicU64::new(0),
        };
        worker_pool.push(domain_queue, job, after, bytes)
    }

    /// Waits for MASTER_DELAY. Returns false if the thread must end.
    fn wait_for_delay(&mut self, timestamp: u32) -> bool {
        let thread = self.thread;
        if thread.settings.delay_s == 0 {
            return true;
        }
        let due_s = thread.connection.here(timestamp) + u64::from(thread.settings.delay_s);
        let now_s = || thread.db.clock.wall_us() / 1_000_000;
        if now_s() >= due_s {
            return true;
        }
        // Earlier groups are due, and this thread does not watch the pool during the delay.
        if !self.drained() {
            return false;
        }
        loop {
            let now_s = now_s();
            if now_s >= due_s {
                break;
            }
            thread.flusher.flush();
            thread.show(DELAYING);
            thread.connection.sql.lock().delayed_until = Some(due_s);
            thread.connection.pause(Duration::from_secs(due_s - now_s), Connection::sql_stops);
            if thread.connection.sql_stops() {
                return false;
            }
        }
        thread.connection.sql.lock().delayed_until = None;
        true
    }

    /// Counts an event for `sql_slave_skip_counter`. Skipping ends only at the end of a group.
    fn count_skipped(&mut self, is_end: bool) {
        if self.open.as_ref().is_some_and(|open| open.is_skipped) {
            let mut sql = self.thread.connection.sql.lock();
            if sql.skip_counter > 1 || is_end {
                sql.skip_counter = sql.skip_counter.saturating_sub(1);
            }
        }
    }

    /// Returns whether the event says that the source has sent everything up to START SLAVE UNTIL. If so, all
    /// of it is applied at return.
    fn ends_all(&mut self, raw: &RawEvent, end: RelayPlace) -> Result<bool, ApplyError> {
        let is_last = self.until().may_end_after(end)
            && matches!(self.decode(raw)?, Event::GtidList(list)
                if list.flags & GtidListEvent::UNTIL_REACHED != 0);
        if is_last {
            self.drained();
        }
        Ok(is_last)
    }
}
