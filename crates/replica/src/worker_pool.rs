//! The applier worker pool: workers apply groups (the source's transactions, as event groups) in parallel,
//! and *order* them, which gives them their place in this server's commit order, in the source's order.
//!
//! # Path of a group
//! ```text
//! SQL thread: push() --> queue of the group's domain
//! worker: take a group that may start ([`After`])
//!           -> not exclusive:  apply and park() it; order_parked(): if the head is parked, order it and
//!                              every parked group that follows it without a gap
//!           -> exclusive:      may start only as the head; the worker applies and orders it
//! ```
//! - There is one queue per domain ([`DomainQueues`]). Without GTIDs there is a single queue, and all of its
//!   groups are exclusive. The **head** of a
//!   queue is its oldest group that is not ordered. Queues progress independently: a slow group does not
//!   delay another domain, unless their locks conflict (below).
//! - No worker waits for the commit of another: it parks its group, and a worker that finds the head parked
//!   orders it (`ring.rs` has the states of a group).
//! - These groups are exclusive: groups whose changes are not known in advance (DDL, statements), groups
//!   that are not transactional, and large groups.
//! - A large group is not held in memory. Its worker reads it from the relay log, where it may still be
//!   arriving, while the SQL thread continues to read after the group. If the source disconnects in the
//!   middle, the worker rolls the group back and waits. After the source has reconnected, the relay log holds
//!   a format description instead of the rest of the group. The worker then removes the group from the queue;
//!   the source sends it again.
//!
//! # Conflicts outside of the queues
//! Appliers take the same row locks and metadata locks as local sessions. A parked group keeps its locks. It
//! may block a head through a third session in a way that no wait graph shows, or all workers may wait for
//! the locks of the parked group, so that none is left to run the head.
//!
//! The SQL thread therefore watches the heads whenever it waits: for the pool, for events, or for another
//! source ([`WorkerPool::watch`]). If a queue has the same head for [`PATIENCE`] while later groups of the
//! queue run or are parked, these are rolled back. Each of them runs again once it is the head. If the heads
//! of several queues wait for each other, this happens in each of the queues. Then only heads hold locks, and
//! deadlocks between heads are cycles of row locks, which deadlock detection finds.
//!
//! # On failure
//! The group is rolled back. [`WorkerPool::handle_failure`] decides by its position and the failure:
//! - The group was not the head when it started, or it was interrupted ([`WorkerPool::watch`], KILL QUERY):
//!   it runs again once it is the head. An earlier group may have caused the failure.
//! - The head, temporary error (a lock conflict, or an error of `slave_transaction_retry_errors`): it runs
//!   again after a pause, at most `slave_transaction_retries` times.
//! - The head, disk full: it runs again after a pause, without limit.
//! - The head, any other error, or too many retries: the pool stops with this error. No later group of the
//!   queue is ordered. The groups of all queues that are not ordered by then are rolled back.
//!
//! STOP SLAVE ends the pool in the same way, without an error: groups that are not ordered are rolled back.
//!
//! # Lock order
//! `shared` is held briefly. While holding it, a thread may only lock a connection's `sql`, or a worker's
//! status: [`WorkerProgress::now`] and its state in the process list.

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
use crate::domain_queues::{DomainQueueNo, DomainQueues};
use crate::flusher::Flusher;
use crate::job::{Coming, Content, Found, GroupReader, Job, Whole};
use crate::place::SourcePlace;
use crate::progress::{Reached, Ticket};
use crate::ring::{After, Taken};

/// Maximum time that a head may stand still while later groups hold locks.
const PATIENCE: Duration = Duration::from_millis(200);
const APPLIER_STACK_BYTES: usize = 8 << 20;
/// Pause between two checks of a relay log that does not grow.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Maximum number of groups in a domain queue, however small they are.
const SLOTS_MAX: usize = 4096;

const IDLE: &str = "Waiting for work from SQL thread";

/// A group that a worker has applied.
struct Applied {
    group: FinishedGroup,
    kind: (bool, bool),
}

/// State protected by `shared`.
struct Shared {
    domain_queues: DomainQueues<Job, Applied>,
    waits: Waits,
}

/// The condition that the SQL thread waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    Nothing,
    /// All groups are ordered.
    Idle,
    /// The domain queue has space for more than a few groups.
    Room(DomainQueueNo),
}

/// How an exclusively applied group ended.
enum ExclusiveOutcome {
    Ordered(Done, Reached),
    /// The source did not continue the group.
    Void(Reached),
}

/// State shared by the SQL thread and its workers.
pub struct WorkerPool {
    connection: Arc<Connection>,
    db: Arc<Database>,
    flusher: Arc<Flusher>,
    rules: Rules,
    shared: Mutex<Shared>,
    /// Signals workers that a group may be ready to start.
    work: Condvar,
    /// Signals the SQL thread that its wait condition holds, or that something failed.
    progress: Condvar,
    is_ending: AtomicBool,
    failure: Mutex<Option<ThreadError>>,
    /// Process list entries, indexed by worker.
    processes: Mutex<Vec<Arc<Process>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Memory limit for the queued groups of all sources.
    budget: Arc<QueueBudget>,
    /// Maximum bytes in one domain queue.
    domain_queue_bytes_max: usize,
    /// Maximum bytes in all domain queues of all sources.
    all_bytes_max: usize,
}

impl WorkerPool {
    /// Starts the workers.
    pub fn start(
        connection: &Arc<Connection>,
        db: &Arc<Database>,
        flusher: &Arc<Flusher>,
        rules: &Rules,
        budget: &Arc<QueueBudget>,
        ids: Vec<ConnectionId>,
    ) -> Result<Arc<WorkerPool>, ThreadError> {
        let queued_max = db.globals.uint(VarId::SlaveParallelMaxQueued) as usize;
        let domain_queue_workers_max = db.globals.uint(VarId::SlaveDomainParallelThreads) as usize;
        let domain_queue_workers =
            if domain_queue_workers_max == 0 { ids.len() } else { domain_queue_workers_max.min(ids.len()) };
        let base = connection.sql.lock().executed.clone();
        let worker_pool = Arc::new(WorkerPool {
            connection: Arc::clone(connection),
            db: Arc::clone(db),
            flusher: Arc::clone(flusher),
            rules: rules.clone(),
            shared: Mutex::new(Shared {
                domain_queues: DomainQueues::new(base, domain_queue_workers_max),
                waits: Waits::Nothing,
            }),
            work: Condvar::new(),
            progress: Condvar::new(),
            is_ending: AtomicBool::new(false),
            failure: Mutex::new(None),
            processes: Mutex::default(),
            threads: Mutex::default(),
            budget: Arc::clone(budget),
            domain_queue_bytes_max: queued_max.saturating_mul(domain_queue_workers),
            all_bytes_max: queued_max.saturating_mul(ids.len()),
        });
        let logs = db.globals.flag(VarId::LogSlaveUpdates);
        connection.sql.lock().workers.clear();
        for (worker, id) in ids.into_iter().enumerate() {
            let started = worker_pool.start_worker(worker, id, logs);
            if let Err(error) = started {
                worker_pool.end();
                return Err(error);
            }
        }
        Ok(worker_pool)
    }

    fn start_worker(
        self: &Arc<Self>,
        worker: usize,
        id: ConnectionId,
        logs: bool,
    ) -> Result<(), ThreadError> {
        let temporary = Arc::clone(&self.connection.temporary);
        let session = Applier::new(&self.db, id, Command::SlaveWorker, logs, temporary);
        let session = session.map_err(|e| ThreadError::new(e.number().into(), e.message))?;
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

    /// Returns the failure that stopped the pool.
    pub fn failure(&self) -> Option<ThreadError> {
        self.failure.lock().clone()
    }

    /// Stops the workers and rolls back all groups that are not ordered.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::Release);
        for process in self.processes.lock().iter() {
            process.kill(KillLevel::Connection);
        }
        self.wake_all();
        for thread in self.threads.lock().drain(..) {
            // The panic hook has logged a panic.
            let _ = thread.join();
        }
        let parked = {
            let domain_queues = &mut self.shared.lock().domain_queues;
            self.budget.give(domain_queues.bytes());
            domain_queues.clear()
        };
        let counts = &self.connection.counts;
        counts.queued.store(0, Ordering::Relaxed);
        counts.queued_bytes.store(0, Ordering::Relaxed);
        counts.busy_workers.store(0, Ordering::Relaxed);
        drop(parked);
    }

    /// Returns the queue of a domain, the number that its next group will get, and the number of its head.
    pub fn domain_queue(&self, domain: DomainId) -> (DomainQueueNo, u64, u64) {
        let domain_queues = &mut self.shared.lock().domain_queues;
        let domain_queue = domain_queues.domain_queue(domain);
        let ring = domain_queues.ring(domain_queue);
        (domain_queue, ring.next_number(), ring.first())
    }

    /// Queues the next group of the source. Waits while too much is queued. Returns false if the pool ends.
    pub fn push(&self, domain_queue: DomainQueueNo, job: Job, after: After, bytes: usize) -> bool {
        let mut watch = Watch::default();
        loop {
            let mut shared = self.shared.lock();
            if self.is_ending() || self.connection.sql_stops() {
                return false;
            }
            let (slots, queued) = shared.domain_queues.ring(domain_queue).load();
            let is_first = shared.domain_queues.is_empty();
            let has_room = slots == 0 || slots < SLOTS_MAX && queued + bytes <= self.domain_queue_bytes_max;
            if has_room && self.budget.take(bytes, self.all_bytes_max, is_first) {
                shared.domain_queues.push(domain_queue, job, after, bytes);
                self.show_queue(&shared.domain_queues);
                drop(shared);
                self.work.notify_one();
                return true;
            }
            self.wait(shared, Waits::Room(domain_queue));
            self.watch(&mut watch);
        }
    }

    /// Waits briefly for `waits` to hold.
    fn wait(&self, mut shared: MutexGuard<'_, Shared>, waits: Waits) {
        shared.waits = waits;
        self.progress.wait_for(&mut shared, PATIENCE / 4);
        shared.waits = Waits::Nothing;
    }

    /// Waits until all groups are ordered. Returns false if the pool ends.
    pub fn drain(&self) -> bool {
        let mut watch = Watch::default();
        loop {
            let shared = self.shared.lock();
            if self.is_ending() || self.connection.sql_stops() {
                return false;
            }
            if shared.domain_queues.is_empty() {
                return true;
            }
            self.wait(shared, Waits::Idle);
            self.watch(&mut watch);
        }
    }

    /// Returns whether all groups are ordered.
    pub fn is_idle(&self) -> bool {
        self.shared.lock().domain_queues.is_empty()
    }

    /// Returns whether exactly one group is not ordered.
    pub fn has_one(&self) -> bool {
        self.shared.lock().domain_queues.count() == 1
    }

    fn show_queue(&self, domain_queues: &DomainQueues<Job, Applied>) {
        let counts = &self.connection.counts;
        counts.queued.store(domain_queues.count() as u64, Ordering::Relaxed);
        counts.queued_bytes.store(domain_queues.bytes() as u64, Ordering::Relaxed);
    }

    /// Checks that the heads advance, and resolves conflicts of those that do not.
    pub fn watch(&self, watch: &mut Watch) {
        let (mut dropped, mut workers) = (Vec::new(), Vec::new());
        {
            let domain_queues = &mut self.shared.lock().domain_queues;
            for domain_queue in watch.standing(
                domain_queues
                    .rings()
                    .map(|(domain_queue, ring)| (domain_queue, ring.first(), ring.has_others())),
            ) {
                let (parked, running) = domain_queues.undo_others(domain_queue);
                dropped.extend(parked);
                workers.extend(running);
            }
        }
        drop(dropped);
        let processes = self.processes.lock();
        workers.into_iter().filter_map(|worker| processes.get(worker)).for_each(|p| p.kill(KillLevel::Query));
    }

    /// Runs a worker.
    fn work(&self, worker: usize, mut applier: GroupApplier, progress: &WorkerProgress) {
        let process = Arc::clone(applier.session.process());
        process.set_state(IDLE);
        let busy = &self.connection.counts.busy_workers;
        while let Some((domain_queue, taken)) = self.next(worker, &process, progress) {
            busy.fetch_add(1, Ordering::Relaxed);
            self.begins(&taken.group, progress);
            if let Err(failure) = self.run_slot(&mut applier, domain_queue, &taken) {
                applier.rollback();
                let error = failure.error.clone();
                self.handle_failure(&taken.group, taken.is_first, failure);
                self.note_failure(progress, error);
                self.shared.lock().domain_queues.give_back(domain_queue, taken.number);
                self.work.notify_all();
            }
            busy.fetch_sub(1, Ordering::Relaxed);
        }
        applier.rollback();
    }

    /// Publishes the group that a worker begins.
    fn begins(&self, job: &Job, progress: &WorkerProgress) {
        let mut now = progress.now.lock();
        now.seen = job.gtid().map(|(_, gtid)| gtid);
        now.retries = job.retries.load(Ordering::Relaxed);
    }

    /// Publishes a worker's failure, if it is the one that stopped the pool.
    fn note_failure(&self, progress: &WorkerProgress, error: ThreadError) {
        if self.failure.lock().as_ref() == Some(&error) {
            let mut now = progress.now.lock();
            (now.error, now.error_at_us) = (error, self.db.clock.wall_us());
        }
    }

    fn run_slot(
        &self,
        applier: &mut GroupApplier,
        domain_queue: DomainQueueNo,
        taken: &Taken<Job>,
    ) -> Result<(), ApplyError> {
        let alone = match &taken.group.content {
            Content::Whole(whole) if !whole.is_alone => {
                let applied = self.apply(applier, taken, whole)?;
                let starts_more = self.shared.lock().domain_queues.park(domain_queue, taken.number, applied);
                if starts_more {
                    self.work.notify_one();
                }
                self.order_parked(domain_queue, applier);
                return Ok(());
            }
            Content::Whole(whole) => self.apply_alone(applier, taken, whole)?,
            Content::InRelay(coming) => self.apply_from_relay(applier, taken, coming)?,
        };
        self.ordered_alone(domain_queue, taken, alone, applier);
        Ok(())
    }

    fn next(
        &self,
        worker: usize,
        process: &Process,
        progress: &WorkerProgress,
    ) -> Option<(DomainQueueNo, Taken<Job>)> {
        let mut shared = self.shared.lock();
        let mut idle_since = None;
        loop {
            if self.is_ending() {
                return None;
            }
            if let Some(taken) = shared.domain_queues.take(worker) {
                if let Some(since) = idle_since {
                    process.set_state(READING);
                    progress.now.lock().idle += Instant::now().duration_since(since);
                }
                // Each worker wakes the next one while there is work.
                if shared.domain_queues.has_startable() {
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

    /// Builds the mark of a group's commit: its GTID and the position that the commit makes durable.
    fn mark(&self, job: &Job, ticket: Ticket, own: &SourcePlace) -> Mark {
        let place = self.shared.lock().domain_queues.place_with(ticket, own);
        Mark { gtid: job.gtid().map(|(_, gtid)| gtid), name: self.connection.name.clone(), place }
    }

    fn apply_alone(
        &self,
        applier: &mut GroupApplier,
        taken: &Taken<Job>,
        whole: &Whole,
    ) -> Result<ExclusiveOutcome, ApplyError> {
        let job = &taken.group;
        applier.begin(&job.header, job.gtid(), job.has_transaction, job.passes_over)?;
        for (header, event) in &whole.events {
            applier.event(header, event, &whole.end.source)?;
        }
        let (header, event, end) = &whole.last;
        let done = applier.end(header, event, *end, &self.mark(job, taken.ticket, &whole.end.source))?;
        Ok(ExclusiveOutcome::Ordered(done, whole.end.clone()))
    }

    /// Applies a group while reading it from the relay log, where it may still be arriving. If its source
    /// disconnects in the middle, the group is rolled back: the source sends it again from its beginning, and
    /// its locks must not block another source's copy.
    fn apply_from_relay(
        &self,
        applier: &mut GroupApplier,
        taken: &Taken<Job>,
        coming: &Coming,
    ) -> Result<ExclusiveOutcome, ApplyError> {
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
                    return Ok(ExclusiveOutcome::Ordered(done, reader.reached().clone()));
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
                    return Ok(ExclusiveOutcome::Void(reader.reached().clone()));
                }
            }
        }
    }

    /// Removes an exclusively applied group from its queue and updates the progress.
    fn ordered_alone(
        &self,
        domain_queue: DomainQueueNo,
        taken: &Taken<Job>,
        alone: ExclusiveOutcome,
        applier: &GroupApplier,
    ) {
        let (reached, done) = match alone {
            ExclusiveOutcome::Ordered(done, reached) => (reached, Some(done)),
            ExclusiveOutcome::Void(reached) => (reached, None),
        };
        if let Some(done) = done {
            applier.await_done(done, &self.flusher);
        }
        {
            let shared = &mut *self.shared.lock();
            let before = shared.domain_queues.bytes();
            let moved = shared.domain_queues.ordered_by_worker(domain_queue, taken.ticket, reached.clone());
            self.budget.give(before - shared.domain_queues.bytes());
            let kind = applier.kind();
            let ordered = done.map(|done| ((kind.0 || done.is_ddl, kind.1), done.seq));
            self.record_end(&taken.group, ordered, &reached, moved);
            self.show_queue(&shared.domain_queues);
            self.wake_waiting(shared);
        }
        self.work.notify_all();
    }

    /// Handles a failure according to its kind.
    fn handle_failure(&self, job: &Job, is_first: bool, failure: ApplyError) {
        let is_asked = self.is_ending() || self.connection.sql_stops();
        match failure.kind {
            // An earlier group may have blocked it, or something it needs is not there yet.
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

    /// Orders the head of a queue and the parked groups that follow it.
    fn order_parked(&self, domain_queue: DomainQueueNo, applier: &mut GroupApplier) {
        let mut newest = None;
        loop {
            if self.is_ending() {
                break;
            }
            let (next, end, place) = {
                let domain_queues = &mut self.shared.lock().domain_queues;
                let Some(next) = domain_queues.next_to_order(domain_queue) else { break };
                let Content::Whole(whole) = &next.group.content else {
                    unreachable!("what is read from the relay log is never parked")
                };
                let end = whole.end.clone();
                let place = domain_queues.place_with(next.ticket, &end.source);
                (next, end, place)
            };
            let job = &next.group;
            let mark =
                Mark { gtid: job.gtid().map(|(_, gtid)| gtid), name: self.connection.name.clone(), place };
            match applier.commit_finished(next.result.group, &mark) {
                Ok(done) => {
                    // Makes the changes visible to the next group.
                    applier.session.await_ordered();
                    newest = Some(done.seq);
                    let has_work = {
                        let shared = &mut *self.shared.lock();
                        let before = shared.domain_queues.bytes();
                        let moved = shared.domain_queues.ordered(domain_queue, next.ticket, end.clone());
                        self.budget.give(before - shared.domain_queues.bytes());
                        self.record_end(job, Some((next.result.kind, done.seq)), &end, moved);
                        self.show_queue(&shared.domain_queues);
                        self.wake_waiting(shared);
                        shared.domain_queues.has_startable()
                    };
                    if has_work {
                        self.work.notify_one();
                    }
                }
                Err(failure) => {
                    self.handle_failure(job, true, failure);
                    self.shared.lock().domain_queues.refused(domain_queue, next.number);
                    self.work.notify_all();
                }
            }
        }
        if let Some(seq) = newest {
            self.flusher.note(seq);
        }
    }

    /// Wakes the SQL thread if its wait condition holds.
    fn wake_waiting(&self, shared: &Shared) {
        let is_there = match shared.waits {
            Waits::Nothing => false,
            Waits::Idle => shared.domain_queues.is_empty(),
            Waits::Room(domain_queue) => {
                let (slots, bytes) = shared.domain_queues.ring(domain_queue).load();
                slots <= SLOTS_MAX / 2
                    && bytes <= self.domain_queue_bytes_max / 2
                    && self.budget.used() <= self.all_bytes_max / 4 * 3
            }
        };
        if is_there {
            self.progress.notify_all();
        }
    }

    /// Records that a group is ordered (`ordered` has its kind and its place in this server's commit order)
    /// or dropped. `moved` is the position before which everything is ordered, if it has changed.
    fn record_end(
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

/// Memory of the watch over the heads.
#[derive(Default)]
pub struct Watch {
    /// The head of each queue, and the time since which it has been the head.
    heads: BTreeMap<DomainQueueNo, (u64, Instant)>,
}

impl Watch {
    /// Returns the queues whose head stands still while later groups hold locks. `heads` yields the queue,
    /// the number of its head, and whether its later groups hold any locks.
    fn standing(&mut self, heads: impl Iterator<Item = (DomainQueueNo, u64, bool)>) -> Vec<DomainQueueNo> {
        let now = Instant::now();
        let mut standing = Vec::new();
        for (domain_queue, head, has_others) in heads {
            let known = self.heads.entry(domain_queue).or_insert((head, now));
            if known.0 != head || !has_others {
                *known = (head, now);
            } else if now.duration_since(known.1) >= PATIENCE {
                known.1 = now;
                standing.push(domain_queue);
            }
        }
        standing
    }
}
