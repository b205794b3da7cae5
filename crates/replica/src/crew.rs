//! The crew: workers that apply groups in parallel and order them in the source's order.
//!
//! # Concepts
//! The SQL thread puts groups into the [`Ring`] with what they follow; workers take them, apply them and park
//! them there. Whoever finds the head parked orders it, and all that are parked behind it: no worker waits
//! for the commit of another one.
//!
//! # What conflicts beside the ring
//! Appliers take row locks and name locks like every session, and so do local sessions. A parked group keeps
//! its locks, and may be in the way of the head through somebody outside of the ring, whom no wait graph
//! shows; or all workers may wait for what it locks, and none is left for the head. The SQL thread watches: a
//! head that does not come on for [`PATIENCE`] has all others undo what they did ([`Crew::watch`]). They run
//! again when they are the head.
//!
//! # On failure
//! A group's failure counts when it ran as the head. The crew stops: what is behind it is undone, nothing of
//! it ordered. STOP SLAVE cuts at the same place.
//!
//! # Lock order
//! `ring` is held for moments, with no other lock inside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use cohort_base::{CommitSeq, ConnectionId, Gtid};
use cohort_binlog::EventHeader;
use cohort_binlog::event::{Event, GtidEvent};
use cohort_config::VarId;
use cohort_exec::{Applier, Command, Database, FinishedGroup, Process};
use cohort_locks::KillLevel;
use parking_lot::{Condvar, Mutex};

use crate::apply::{ApplyError, Failure, GroupApplier, Mark, NO_SPACE_PAUSE, Rules};
use crate::connection::{Connection, ThreadError};
use crate::flusher::Flusher;
use crate::group::End;
use crate::relay::RelayPlace;
use crate::ring::{Ring, Taken};

/// How long the head may stand still while others hold locks.
const PATIENCE: Duration = Duration::from_millis(200);
const APPLIER_STACK_BYTES: usize = 8 << 20;
/// Groups in the ring, however small they are.
const SLOTS_MAX: usize = 4096;

const IDLE: &str = "Waiting for work from SQL thread";
const APPLYING: &str = "Reading event from the relay log";

/// A group with all its events.
pub struct Job {
    pub header: EventHeader,
    pub gtid: Option<(GtidEvent, Gtid)>,
    pub passes_over: bool,
    pub events: Vec<(EventHeader, Event)>,
    pub last: (EventHeader, Event, End),
    pub mark: Mark,
    /// Behind it in the relay log.
    pub relay_end: RelayPlace,
    pub retries: AtomicU64,
}

/// A group that a worker has applied.
struct Applied {
    group: FinishedGroup,
    kind: (bool, bool),
}

/// What the SQL thread and its workers share.
pub struct Crew {
    connection: Arc<Connection>,
    db: Arc<Database>,
    flusher: Arc<Flusher>,
    rules: Rules,
    ring: Mutex<Ring<Job, Applied>>,
    /// Something may start.
    work: Condvar,
    /// Something was ordered, or failed.
    progress: Condvar,
    is_ending: AtomicBool,
    failure: Mutex<Option<ThreadError>>,
    /// By worker.
    processes: Mutex<Vec<Arc<Process>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Bytes that may wait.
    bytes_max: usize,
}

impl Crew {
    /// Starts the workers.
    pub fn start(
        connection: &Arc<Connection>,
        db: &Arc<Database>,
        flusher: &Arc<Flusher>,
        rules: &Rules,
        ids: Vec<ConnectionId>,
    ) -> Result<Arc<Crew>, ThreadError> {
        let queued_max = db.globals.uint(VarId::SlaveParallelMaxQueued) as usize;
        let crew = Arc::new(Crew {
            connection: Arc::clone(connection),
            db: Arc::clone(db),
            flusher: Arc::clone(flusher),
            rules: rules.clone(),
            ring: Mutex::new(Ring::new()),
            work: Condvar::new(),
            progress: Condvar::new(),
            is_ending: AtomicBool::new(false),
            failure: Mutex::new(None),
            processes: Mutex::default(),
            threads: Mutex::default(),
            bytes_max: queued_max.saturating_mul(ids.len()).max(1),
        });
        let logs = db.globals.flag(VarId::LogSlaveUpdates);
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
        let session = Applier::new(&self.db, id, Command::SlaveWorker, logs);
        let session = session.map_err(|e| ThreadError::new(e.code.number().into(), e.message))?;
        let process = Arc::clone(session.process());
        self.processes.lock().push(Arc::clone(&process));
        self.connection.sql.lock().processes.push(process);
        let applier = GroupApplier::new(session, self.rules.clone());
        let own = Arc::clone(self);
        let run = move || {
            let guarded = std::panic::AssertUnwindSafe(|| own.work(worker, applier));
            if std::panic::catch_unwind(guarded).is_err() {
                let what = "A worker hit a bug in the server; see the message of the panic in the error log";
                own.fail(ThreadError::new(1105, what));
            }
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
        let _ring = self.ring.lock();
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
        let parked = self.ring.lock().clear();
        self.connection.counts.queued.store(0, Ordering::Relaxed);
        drop(parked);
    }

    /// The number and the head that the next group is to be pushed with.
    pub fn next_number(&self) -> (u64, u64) {
        let ring = self.ring.lock();
        (ring.next_number(), ring.first())
    }

    /// Takes the next group of the source; waits while too much is queued. False if the crew ends.
    pub fn push(&self, job: Job, follows: u64, bytes: usize) -> bool {
        let mut watch = Watch::begin();
        loop {
            let mut ring = self.ring.lock();
            let (slots, queued) = ring.load();
            if self.is_ending() || self.connection.sql_stops() {
                return false;
            }
            if slots == 0 || slots < SLOTS_MAX && queued + bytes <= self.bytes_max {
                ring.push(job, follows, bytes);
                self.connection.counts.queued.store(slots as u64 + 1, Ordering::Relaxed);
                drop(ring);
                self.work.notify_one();
                return true;
            }
            self.progress.wait_for(&mut ring, PATIENCE / 4);
            drop(ring);
            self.watch(&mut watch);
        }
    }

    /// Waits until all is ordered; false if the crew ends.
    pub fn drain(&self) -> bool {
        let mut watch = Watch::begin();
        loop {
            let mut ring = self.ring.lock();
            if self.is_ending() || self.connection.sql_stops() {
                return false;
            }
            if ring.is_empty() {
                return true;
            }
            self.progress.wait_for(&mut ring, PATIENCE / 4);
            drop(ring);
            self.watch(&mut watch);
        }
    }

    /// Whether all is ordered.
    pub fn is_idle(&self) -> bool {
        self.ring.lock().is_empty()
    }

    /// Looks after the head.
    pub fn watch(&self, watch: &mut Watch) {
        let (dropped, workers) = {
            let mut ring = self.ring.lock();
            if ring.first() != watch.head || !ring.has_others() {
                (watch.head, watch.since) = (ring.first(), Instant::now());
                return;
            }
            if watch.since.elapsed() < PATIENCE {
                return;
            }
            watch.since = Instant::now();
            ring.undo_others()
        };
        drop(dropped);
        let processes = self.processes.lock();
        workers.into_iter().filter_map(|worker| processes.get(worker)).for_each(|p| p.kill(KillLevel::Query));
    }

    /// A worker's life.
    fn work(&self, worker: usize, mut applier: GroupApplier) {
        let process = Arc::clone(applier.session.process());
        process.set_state(IDLE);
        while let Some(taken) = self.next(worker, &process) {
            let number = taken.number;
            match self.apply(&mut applier, &taken) {
                Ok(applied) => {
                    self.ring.lock().park(number, applied);
                    self.order_parked(&mut applier);
                }
                Err(failure) => {
                    applier.rollback();
                    self.judge(&taken.group, taken.is_first, failure);
                    self.ring.lock().give_back(number);
                    self.work.notify_all();
                }
            }
        }
        applier.rollback();
    }

    fn next(&self, worker: usize, process: &Process) -> Option<Taken<Job>> {
        let mut ring = self.ring.lock();
        let mut is_idle = false;
        loop {
            if self.is_ending() {
                return None;
            }
            if let Some(taken) = ring.take(worker) {
                if is_idle {
                    process.set_state(APPLYING);
                }
                // One wakes the next, as long as there is work.
                if ring.has_startable() {
                    self.work.notify_one();
                }
                return Some(taken);
            }
            if !is_idle {
                is_idle = true;
                process.set_state(IDLE);
            }
            self.work.wait(&mut ring);
        }
    }

    fn apply(&self, applier: &mut GroupApplier, taken: &Taken<Job>) -> Result<Applied, ApplyError> {
        let job = &taken.group;
        let gtid = job.gtid.as_ref().map(|(event, gtid)| (event, *gtid));
        applier.begin(&job.header, gtid, true, job.passes_over)?;
        for (header, event) in &job.events {
            applier.event(header, event, &job.mark.place)?;
        }
        let (header, event, end) = &job.last;
        let group = applier.finish(header, event, *end, &job.mark)?;
        Ok(Applied { group, kind: applier.kind() })
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
                }
            }
            Failure::Stopped | Failure::Final => self.fail(failure.error),
        }
    }

    /// Orders the head and what is parked behind it.
    fn order_parked(&self, applier: &mut GroupApplier) {
        let mut newest = None;
        loop {
            let next = match self.is_ending() {
                true => None,
                false => self.ring.lock().next_to_order(),
            };
            let Some((number, job, applied)) = next else { break };
            match applier.commit_finished(applied.group, &job.mark) {
                Ok(done) => {
                    // Who follows finds it applied.
                    applier.session.await_ordered();
                    self.told(&job, applied.kind, done.seq);
                    newest = Some(done.seq);
                    let has_work = {
                        let mut ring = self.ring.lock();
                        ring.ordered();
                        self.connection.counts.queued.store(ring.load().0 as u64, Ordering::Relaxed);
                        ring.has_startable()
                    };
                    if has_work {
                        self.work.notify_one();
                    }
                    self.progress.notify_all();
                }
                Err(failure) => {
                    self.judge(&job, true, failure);
                    self.ring.lock().give_back(number);
                    self.work.notify_all();
                }
            }
        }
        if let Some(seq) = newest {
            self.flusher.note(seq);
        }
    }

    /// A group is ordered.
    fn told(&self, job: &Job, (is_ddl, is_transactional): (bool, bool), seq: CommitSeq) {
        let counts = &self.connection.counts;
        let count = match (is_ddl, is_transactional) {
            (true, _) => &counts.ddl,
            (false, true) => &counts.transactional,
            (false, false) => &counts.non_transactional,
        };
        count.fetch_add(1, Ordering::Relaxed);
        self.connection.came_to(job.relay_end, &job.mark.place, Some(seq));
    }
}

/// Error 1317.
const KILLED_QUERY: u16 = 1317;

/// What the watch over the head remembers.
pub struct Watch {
    head: u64,
    since: Instant,
}

impl Watch {
    /// From now on.
    pub fn begin() -> Watch {
        Watch { head: 0, since: Instant::now() }
    }
}
