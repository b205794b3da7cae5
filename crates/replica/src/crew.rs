//! The crew: workers that apply groups in parallel and order them in the source's order.
//!
//! # Concepts
//! The SQL thread puts groups into the lane of their domain ([`Lanes`]) with what they follow; workers take
//! them, apply them and park them there. An applier that finds the head of a lane parked orders it, and all
//! that are parked behind it: no worker waits for the commit of another one. Lanes come on independently of
//! each other, so a group that takes long keeps nobody of another domain.
//!
//! A group that is applied alone runs as the head of its lane, and its worker orders it. If it is large the
//! worker reads it from the relay log, while the SQL thread reads on behind it.
//!
//! # What conflicts beside the rings
//! Appliers take row locks and name locks like every session, and so do local sessions. A parked group keeps
//! its locks, and may be in the way of a head through somebody outside of the rings, whom no wait graph
//! shows; or all workers may wait for what it locks, and none is left for the head. The SQL thread watches: a
//! head that does not come on for [`PATIENCE`] has all others of its lane undo what they did
//! ([`Crew::watch`]). They run again when they are the head. Of heads that wait for each other over several
//! lanes each one stands still, so each lane frees what it holds; what is left are heads, and their cycles
//! are those of row locks, which are found.
//!
//! # On failure
//! A group's failure counts when it ran as the head. The crew stops: what is behind it is undone, nothing of
//! it ordered. STOP SLAVE cuts at the same place.
//!
//! # Lock order
//! `shared` is held for moments; inside of it only a connection's `sql` or what a worker shows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use cohort_base::{CommitSeq, ConnectionId, DomainId};
use cohort_config::VarId;
use cohort_exec::{Applier, Command, Database, FinishedGroup, Process};
use cohort_locks::KillLevel;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::apply::{ApplyError, Done, Failure, GroupApplier, Mark, NO_SPACE_PAUSE, Rules};
use crate::budget::QueueBudget;
use crate::connection::{Connection, READING, ThreadError, WorkerProgress};
use crate::flusher::Flusher;
use crate::job::{Coming, Content, Found, GroupReader, Job, Whole};
use crate::lanes::{LaneNo, Lanes};
use crate::place::SourcePlace;
use crate::progress::{Reached, Ticket};
use crate::ring::{After, Taken};

/// How long the head may stand still while others hold locks.
const PATIENCE: Duration = Duration::from_millis(200);
const APPLIER_STACK_BYTES: usize = 8 << 20;
/// Between two looks at a relay log that does not grow.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Groups in a lane, however small they are.
const SLOTS_MAX: usize = 4096;

const IDLE: &str = "Waiting for work from SQL thread";

/// A group that a worker has applied.
struct Applied {
    group: FinishedGroup,
    kind: (bool, bool),
}

/// What `shared` protects.
struct Shared {
    lanes: Lanes<Job, Applied>,
    waits: Waits,
}

/// What the SQL thread waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    Nothing,
    /// All is ordered.
    Idle,
    /// A lane has room for more than a few groups.
    Room(LaneNo),
}

/// How a group that is applied alone ended.
enum Alone {
    Ordered(Done, Reached),
    /// The source did not go on with it.
    Void(Reached),
}

/// What the SQL thread and its workers share.
pub struct Crew {
    connection: Arc<Connection>,
    db: Arc<Database>,
    flusher: Arc<Flusher>,
    rules: Rules,
    shared: Mutex<Shared>,
    /// Something may start.
    work: Condvar,
    /// What the SQL thread waits for is there, or something failed.
    progress: Condvar,
    is_ending: AtomicBool,
    failure: Mutex<Option<ThreadError>>,
    /// By worker.
    processes: Mutex<Vec<Arc<Process>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// What waits for the workers of all sources.
    budget: Arc<QueueBudget>,
    /// Bytes that may wait in a lane.
    lane_bytes_max: usize,
    /// And in all lanes of all sources together.
    all_bytes_max: usize,
}

impl Crew {
    /// Starts the workers.
    pub fn start(
        connection: &Arc<Connection>,
        db: &Arc<Database>,
        flusher: &Arc<Flusher>,
        rules: &Rules,
        budget: &Arc<QueueBudget>,
        ids: Vec<ConnectionId>,
    ) -> Result<Arc<Crew>, ThreadError> {
        let queued_max = db.globals.uint(VarId::SlaveParallelMaxQueued) as usize;
        let lane_workers_max = db.globals.uint(VarId::SlaveDomainParallelThreads) as usize;
        let lane_workers = if lane_workers_max == 0 { ids.len() } else { lane_workers_max.min(ids.len()) };
        let base = connection.sql.lock().executed.clone();
        let crew = Arc::new(Crew {
            connection: Arc::clone(connection),
            db: Arc::clone(db),
            flusher: Arc::clone(flusher),
            rules: rules.clone(),
            shared: Mutex::new(Shared { lanes: Lanes::new(base, lane_workers_max), waits: Waits::Nothing }),
            work: Condvar::new(),
            progress: Condvar::new(),
            is_ending: AtomicBool::new(false),
            failure: Mutex::new(None),
            processes: Mutex::default(),
            threads: Mutex::default(),
            budget: Arc::clone(budget),
            lane_bytes_max: queued_max.saturating_mul(lane_workers),
            all_bytes_max: queued_max.saturating_mul(ids.len()),
        });
        let logs = db.globals.flag(VarId::LogSlaveUpdates);
        connection.sql.lock().workers.clear();
        for (worker, id) in ids.into_iter().enumerate() {
            let started = crew.start_worker(worker, id, logs);
            if let Err(error) = started {
                crew.end();
                return Err(error);
            }
        }
        Ok(crew)
    }

    fn start_worker(
        self: &Arc<Self>,
        worker: usize,
        id: ConnectionId,
        logs: bool,
    ) -> Result<(), ThreadError> {
        let temporary = Arc::clone(&self.connection.temporary);
        let session = Applier::new(&self.db, id, Command::SlaveWorker, logs, temporary);
        let session = session.map_err(|e| ThreadError::new(e.code.number().into(), e.message))?;
        let process = Arc::clone(session.process());
        self.processes.lock().push(Arc::clone(&process));
        let progress = Arc::new(WorkerProgress::default());
        progress.now.lock().id = Some(id);
        {
            let mut sql = self.connection.sql.lock();
            sql.processes.push(process);
            sql.workers.push(Arc::clone(&progress));
        }
        let applier = GroupApplier::new(session, self.rules.clone(), &self.connection.counts);
        let own = Arc::clone(self);
        let run = move || {
            let guarded = std::panic::AssertUnwindSafe(|| own.work(worker, applier, &progress));
            if std::panic::catch_unwind(guarded).is_err() {
                let what = "A worker hit a bug in the server; see the message of the panic in the error log";
                own.fail(ThreadError::new(1105, what));
            }
            progress.now.lock().id = None;
        };
        let spawned =
            Builder::new().name("slave-worker".to_owned()).stack_size(APPLIER_STACK_BYTES).spawn(run);
        let thread = spawned
            .map_err(|error| ThreadError::new(1135, format!("Can't create a new thread ({error})")))?;
        self.threads.lock().push(thread);
        Ok(())
    }

    fn fail(&self, error: ThreadError) {
        self.failure.lock().get_or_insert(error);
        self.is_ending.store(true, Ordering::Release);
        self.wake_all();
    }

    fn wake_all(&self) {
        let _shared = self.shared.lock();
        self.work.notify_all();
        self.progress.notify_all();
    }

    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
    }

    /// What stopped the crew.
    pub fn failure(&self) -> Option<ThreadError> {
        self.failure.lock().clone()
    }

    /// Ends the workers; what is not ordered is undone.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::Release);
        for process in self.processes.lock().iter() {
            process.kill(KillLevel::Connection);
        }
        self.wake_all();
        for thread in self.threads.lock().drain(..) {
            // A panic was told by the panic hook.
            let _ = thread.join();
        }
        let parked = {
            let lanes = &mut self.shared.lock().lanes;
            self.budget.give(lanes.bytes());
            lanes.clear()
        };
        let counts = &self.connection.counts;
        counts.queued.store(0, Ordering::Relaxed);
        counts.queued_bytes.store(0, Ordering::Relaxed);
        counts.busy_workers.store(0, Ordering::Relaxed);
        drop(parked);
    }

    /// The lane of a domain, with the number that its next group gets, and its head's.
    pub fn lane(&self, domain: DomainId) -> (LaneNo, u64, u64) {
        let lanes = &mut self.shared.lock().lanes;
        let lane = lanes.lane(domain);
        let ring = lanes.ring(lane);
        (lane, ring.next_number(), ring.first())
    }

    /// Takes the next group of the source; waits while too much is queued. False if the crew ends.
    pub fn push(&self, lane: LaneNo, job: Job, after: After, bytes: usize) -> bool {
        let mut watch = Watch::default();
        loop {
            let mut shared = self.shared.lock();
            if self.is_ending() || self.connection.sql_stops() {
                return false;
            }
            let (slots, queued) = shared.lanes.ring(lane).load();
            let is_first = shared.lanes.is_empty();
            let has_room = slots == 0 || slots < SLOTS_MAX && queued + bytes <= self.lane_bytes_max;
            if has_room && self.budget.take(bytes, self.all_bytes_max, is_first) {
                shared.lanes.push(lane, job, after, bytes);
                self.show_queue(&shared.lanes);
                drop(shared);
                self.work.notify_one();
                return true;
            }
            self.wait(shared, Waits::Room(lane));
            self.watch(&mut watch);
        }
    }

    /// Waits for a moment.
    fn wait(&self, mut shared: MutexGuard<'_, Shared>, waits: Waits) {
        shared.waits = waits;
        self.progress.wait_for(&mut shared, PATIENCE / 4);
        shared.waits = Waits::Nothing;
    }

    /// Waits until all is ordered; false if the crew ends.
    pub fn drain(&self) -> bool {
        let mut watch = Watch::default();
        loop {
            let shared = self.shared.lock();
            if self.is_ending() || self.connection.sql_stops() {
                return false;
            }
            if shared.lanes.is_empty() {
                return true;
            }
            self.wait(shared, Waits::Idle);
            self.watch(&mut watch);
        }
    }

    /// Whether all is ordered.
    pub fn is_idle(&self) -> bool {
        self.shared.lock().lanes.is_empty()
    }

    /// Answers: is one group all that is not ordered?
    pub fn has_one(&self) -> bool {
        self.shared.lock().lanes.count() == 1
    }

    fn show_queue(&self, lanes: &Lanes<Job, Applied>) {
        let counts = &self.connection.counts;
        counts.queued.store(lanes.count() as u64, Ordering::Relaxed);
        counts.queued_bytes.store(lanes.bytes() as u64, Ordering::Relaxed);
    }

    /// Looks after the heads.
    pub fn watch(&self, watch: &mut Watch) {
        let (mut dropped, mut workers) = (Vec::new(), Vec::new());
        {
            let lanes = &mut self.shared.lock().lanes;
            for lane in
                watch.standing(lanes.rings().map(|(lane, ring)| (lane, ring.first(), ring.has_others())))
            {
                let (parked, running) = lanes.undo_others(lane);
                dropped.extend(parked);
                workers.extend(running);
            }
        }
        drop(dropped);
        let processes = self.processes.lock();
        workers.into_iter().filter_map(|worker| processes.get(worker)).for_each(|p| p.kill(KillLevel::Query));
    }

    /// A worker's life.
    fn work(&self, worker: usize, mut applier: GroupApplier, progress: &WorkerProgress) {
        let process = Arc::clone(applier.session.process());
        process.set_state(IDLE);
        let busy = &self.connection.counts.busy_workers;
        while let Some((lane, taken)) = self.next(worker, &process, progress) {
            busy.fetch_add(1, Ordering::Relaxed);
            self.begins(&taken.group, progress);
            if let Err(failure) = self.run_slot(&mut applier, lane, &taken) {
                applier.rollback();
                let error = failure.error.clone();
                self.judge(&taken.group, taken.is_first, failure);
                self.note_failure(progress, error);
                self.shared.lock().lanes.give_back(lane, taken.number);
                self.work.notify_all();
            }
            busy.fetch_sub(1, Ordering::Relaxed);
        }
        applier.rollback();
    }

    /// What others see of a worker.
    fn begins(&self, job: &Job, progress: &WorkerProgress) {
        let mut now = progress.now.lock();
        now.seen = job.gtid().map(|(_, gtid)| gtid);
        now.retries = job.retries.load(Ordering::Relaxed);
    }

    /// A worker's failure, if it is what stopped the crew.
    fn note_failure(&self, progress: &WorkerProgress, error: ThreadError) {
        if self.failure.lock().as_ref() == Some(&error) {
            let mut now = progress.now.lock();
            (now.error, now.error_at_us) = (error, self.db.clock.wall_us());
        }
    }

    fn run_slot(
        &self,
        applier: &mut GroupApplier,
        lane: LaneNo,
        taken: &Taken<Job>,
    ) -> Result<(), ApplyError> {
        let alone = match &taken.group.content {
            Content::Whole(whole) if !whole.is_alone => {
                let applied = self.apply(applier, taken, whole)?;
                let starts_more = self.shared.lock().lanes.park(lane, taken.number, applied);
                if starts_more {
                    self.work.notify_one();
                }
                self.order_parked(lane, applier);
                return Ok(());
            }
            Content::Whole(whole) => self.apply_alone(applier, taken, whole)?,
            Content::InRelay(coming) => self.apply_from_relay(applier, taken, coming)?,
        };
        self.ordered_alone(lane, taken, alone, applier);
        Ok(())
    }

    fn next(
        &self,
        worker: usize,
        process: &Process,
        progress: &WorkerProgress,
    ) -> Option<(LaneNo, Taken<Job>)> {
        let mut shared = self.shared.lock();
        let mut idle_since = None;
        loop {
            if self.is_ending() {
                return None;
            }
            if let Some(taken) = shared.lanes.take(worker) {
                if let Some(since) = idle_since {
                    process.set_state(READING);
                    progress.now.lock().idle += Instant::now().duration_since(since);
                }
                // One wakes the next, as long as there is work.
                if shared.lanes.has_startable() {
                    self.work.notify_one();
                }
                return Some(taken);
            }
            if idle_since.is_none() {
                idle_since = Some(Instant::now());
                process.set_state(IDLE);
            }
            self.work.wait(&mut shared);
        }
    }

    fn apply(
        &self,
        applier: &mut GroupApplier,
        taken: &Taken<Job>,
        whole: &Whole,
    ) -> Result<Applied, ApplyError> {
        let job = &taken.group;
        applier.begin(&job.header, job.gtid(), true, job.passes_over)?;
        for (header, event) in &whole.events {
            applier.event(header, event, &whole.end.source)?;
        }
        let (header, event, end) = &whole.last;
        let group = applier.finish(header, event, *end, &whole.end.source)?;
        Ok(Applied { group, kind: applier.kind() })
    }

    /// What the commit of a group says of how far all have come.
    fn mark(&self, job: &Job, ticket: Ticket, own: &SourcePlace) -> Mark {
        let place = self.shared.lock().lanes.place_with(ticket, own);
        Mark { gtid: job.gtid().map(|(_, gtid)| gtid), name: self.connection.name.clone(), place }
    }

    fn apply_alone(
        &self,
        applier: &mut GroupApplier,
        taken: &Taken<Job>,
        whole: &Whole,
    ) -> Result<Alone, ApplyError> {
        let job = &taken.group;
        applier.begin(&job.header, job.gtid(), job.has_transaction, job.passes_over)?;
        for (header, event) in &whole.events {
            applier.event(header, event, &whole.end.source)?;
        }
        let (header, event, end) = &whole.last;
        let done = applier.end(header, event, *end, &self.mark(job, taken.ticket, &whole.end.source))?;
        Ok(Alone::Ordered(done, whole.end.clone()))
    }

    /// Applies a group while it is read, and may still be coming. If its source goes away in the middle, what
    /// came is undone: the group comes again from its beginning, and its locks must not keep another source's.
    fn apply_from_relay(
        &self,
        applier: &mut GroupApplier,
        taken: &Taken<Job>,
        coming: &Coming,
    ) -> Result<Alone, ApplyError> {
        let job = &taken.group;
        let relay = &self.connection.relay;
        let is_undone = &coming.is_undone;
        let mut reader = GroupReader::open(relay, &coming.start)?;
        applier.begin(&job.header, job.gtid(), job.has_transaction, job.passes_over)?;
        loop {
            applier.check_killed()?;
            match reader.next()? {
                // Read again after an error.
                Found::Event(..) if is_undone.load(Ordering::Acquire) => {}
                Found::Last(..) if is_undone.load(Ordering::Acquire) => {
                    let text = "Relay log read failure: a transaction goes on that was cut off";
                    return Err(ApplyError::fatal(1594, text));
                }
                Found::Event(header, event) => applier.event(&header, &event, &reader.reached().source)?,
                Found::Last(header, event, end) => {
                    let mark = self.mark(job, taken.ticket, &reader.reached().source);
                    let done = applier.end(&header, &event, end, &mark)?;
                    return Ok(Alone::Ordered(done, reader.reached().clone()));
                }
                Found::Nothing => {
                    let place = reader.place();
                    if !is_undone.load(Ordering::Acquire) && self.connection.is_cut_off(place) {
                        applier.rollback();
                        is_undone.store(true, Ordering::Release);
                    }
                    relay.await_growth(place, LOOK_AGAIN);
                }
                Found::Abandoned => {
                    applier.rollback();
                    return Ok(Alone::Void(reader.reached().clone()));
                }
            }
        }
    }

    /// A group that was applied alone has its place.
    fn ordered_alone(&self, lane: LaneNo, taken: &Taken<Job>, alone: Alone, applier: &GroupApplier) {
        let (reached, done) = match alone {
            Alone::Ordered(done, reached) => (reached, Some(done)),
            Alone::Void(reached) => (reached, None),
        };
        if let Some(done) = done {
            applier.await_done(done, &self.flusher);
        }
        {
            let shared = &mut *self.shared.lock();
            let before = shared.lanes.bytes();
            let moved = shared.lanes.ordered_by_worker(lane, taken.ticket, reached.clone());
            self.budget.give(before - shared.lanes.bytes());
            let kind = applier.kind();
            let ordered = done.map(|done| ((kind.0 || done.is_ddl, kind.1), done.seq));
            self.told(&taken.group, ordered, &reached, moved);
            self.show_queue(&shared.lanes);
            self.tell_waiting(shared);
        }
        self.work.notify_all();
    }

    /// What a failure means.
    fn judge(&self, job: &Job, is_first: bool, failure: ApplyError) {
        let is_asked = self.is_ending() || self.connection.sql_stops();
        match failure.kind {
            // Somebody before it may have been in its way, or what it needs is not there yet.
            _ if !is_first || is_asked => {}
            Failure::Stopped if failure.error.number == u32::from(KILLED_QUERY) => {}
            Failure::NoSpace => self.connection.pause(NO_SPACE_PAUSE, Connection::sql_stops),
            Failure::Temporary => {
                self.connection.counts.retried.fetch_add(1, Ordering::Relaxed);
                let tries = job.retries.fetch_add(1, Ordering::Relaxed) + 1;
                if tries > self.db.globals.uint(VarId::SlaveTransactionRetries) {
                    self.fail(failure.error);
                    return;
                }
                let pause = self.db.globals.uint(VarId::SlaveTransactionRetryInterval);
                self.connection.pause(Duration::from_secs(pause), Connection::sql_stops);
            }
            Failure::Stopped | Failure::Final => self.fail(failure.error),
        }
    }

    /// Orders the head of a lane and what is parked behind it.
    fn order_parked(&self, lane: LaneNo, applier: &mut GroupApplier) {
        let mut newest = None;
        loop {
            if self.is_ending() {
                break;
            }
            let (next, end, place) = {
                let lanes = &mut self.shared.lock().lanes;
                let Some(next) = lanes.next_to_order(lane) else { break };
                let Content::Whole(whole) = &next.group.content else {
                    unreachable!("what is read from the relay log is never parked")
                };
                let end = whole.end.clone();
                let place = lanes.place_with(next.ticket, &end.source);
                (next, end, place)
            };
            let job = &next.group;
            let mark =
                Mark { gtid: job.gtid().map(|(_, gtid)| gtid), name: self.connection.name.clone(), place };
            match applier.commit_finished(next.result.group, &mark) {
                Ok(done) => {
                    // The next group finds it applied.
                    applier.session.await_ordered();
                    newest = Some(done.seq);
                    let has_work = {
                        let shared = &mut *self.shared.lock();
                        let before = shared.lanes.bytes();
                        let moved = shared.lanes.ordered(lane, next.ticket, end.clone());
                        self.budget.give(before - shared.lanes.bytes());
                        self.told(job, Some((next.result.kind, done.seq)), &end, moved);
                        self.show_queue(&shared.lanes);
                        self.tell_waiting(shared);
                        shared.lanes.has_startable()
                    };
                    if has_work {
                        self.work.notify_one();
                    }
                }
                Err(failure) => {
                    self.judge(job, true, failure);
                    self.shared.lock().lanes.refused(lane, next.number);
                    self.work.notify_all();
                }
            }
        }
        if let Some(seq) = newest {
            self.flusher.note(seq);
        }
    }

    /// Wakes the SQL thread if what it waits for is there.
    fn tell_waiting(&self, shared: &Shared) {
        let is_there = match shared.waits {
            Waits::Nothing => false,
            Waits::Idle => shared.lanes.is_empty(),
            Waits::Room(lane) => {
                let (slots, bytes) = shared.lanes.ring(lane).load();
                slots <= SLOTS_MAX / 2
                    && bytes <= self.lane_bytes_max / 2
                    && self.budget.used() <= self.all_bytes_max / 4 * 3
            }
        };
        if is_there {
            self.progress.notify_all();
        }
    }

    /// A group is ordered (`kind` and place in this server's order), or left out; `moved` is the place before
    /// which all is, if that has changed.
    fn told(
        &self,
        job: &Job,
        ordered: Option<((bool, bool), CommitSeq)>,
        end: &Reached,
        moved: Option<Reached>,
    ) {
        let connection = &self.connection;
        let seq = ordered.map(|(_, seq)| seq);
        if let Some((kind, _)) = ordered {
            connection.counts.applied(kind);
        }
        match (moved, job.gtid()) {
            (Some(reached), _) => connection.came_to(reached.relay, &reached.source, seq),
            (None, Some((_, gtid))) => connection.came_ahead(gtid.domain, end.relay, seq),
            (None, None) => {}
        }
    }
}

/// Error 1317.
const KILLED_QUERY: u16 = 1317;

/// What the watch over the heads remembers.
#[derive(Default)]
pub struct Watch {
    /// The head of each lane, and since when it is that.
    heads: BTreeMap<LaneNo, (u64, Instant)>,
}

impl Watch {
    /// The lanes whose head stands still while others hold something. `heads`: lane, its head, whether others
    /// of it hold anything.
    fn standing(&mut self, heads: impl Iterator<Item = (LaneNo, u64, bool)>) -> Vec<LaneNo> {
        let now = Instant::now();
        let mut standing = Vec::new();
        for (lane, head, has_others) in heads {
            let known = self.heads.entry(lane).or_insert((head, now));
            if known.0 != head || !has_others {
                *known = (head, now);
            } else if now.duration_since(known.1) >= PATIENCE {
                known.1 = now;
                standing.push(lane);
            }
        }
        standing
    }
}
