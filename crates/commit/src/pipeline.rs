//! The commit protocol: how transactions get their order, become durable in groups, and are let out.
//!
//! # Purpose
//! One flush per group serves the binlog and every engine, and the order stage never waits for the disk.
//! This file holds the whole protocol. What the stages *do* to logs, engines and locks is behind
//! [`CommitEnv`], so the same protocol runs in tests with counters, with an environment that crashes, and
//! under a scheduler that permutes threads (`tests/model.rs`).
//!
//! # Outline
//! ```text
//! order(trx):                             lead():
//!   under arrivals: seq = next place        while something is queued:
//!   order_arrived()                           try_lock leader, or return
//!   if it ordered others: lead()              if more is worth waiting for: leave the group open
//!                                             else flush_group():
//! order_arrived():                              under order: take the queue, make its boundary
//!   while arrived > ordered:                    write the records, sync once
//!     try_lock order, or return                 lock decider; unlock leader if the next may overlap
//!     apply all arrivals as one batch           decide; put the group behind the others
//!     append them to the queue                  let_out(): publish and acknowledge, gate by gate
//!                                               unlock decider and leader, then tell the clients
//! ```
//! A session calls `order` and parks its reply with `when_acknowledged`. Its worker then calls `lead`, or
//! `lead_later` if there are others to serve. A lone client's worker therefore flushes inline.
//!
//! # States and the function that makes each move
//! ```text
//! prepared --order()--> ordered --flush_group()--> hardened --let_out()--> published -> acknowledged
//!           any worker            the leader                   the leader, or whoever opened the gate
//! ```
//!
//! # Concepts
//! - **Arrivals**: prepared transactions that want their place. A transaction's [`CommitSeq`] is its place
//!   among the arrivals.
//! - **Order stage**: the holder of `order` applies *all* arrivals as one batch. A caller that finds the
//!   stage taken returns at once; the holder rechecks the arrivals after releasing it. Only callers that need
//!   the result wait for the stage ([`Pipeline::await_ordered`]).
//! - **Conditional order** ([`Pipeline::order_if`]): a transaction that may follow only some states (it has a
//!   sequence number of its own, which must be the largest) is checked while `order` and `arrivals` are held,
//!   so nothing comes between the check and its place. A refused transaction never got a place (I6).
//! - **Queue**: ordered transactions that no leader has taken yet.
//! - **Group** (flush group): what a leader takes from the queue at once and hardens by one sync.
//! - **Leader**: the worker that holds `leader`. There is no leader while nothing is queued. `lead` only
//!   tries the lock, so it costs next to nothing while another worker leads.
//! - **Decider**: the thread that holds `decider` and hardens a group that is synced. Its group's leader goes
//!   on to be it. With one log the sync has hardened the group, and there is nothing left to decide. Where
//!   the binlog decides, the leader may hand the leadership on before it decides: then the next group is
//!   written and synced meanwhile (two groups are under way, never more). It calls the timekeeper to lead
//!   what is queued already.
//! - **Open group**: a queue that is left for more transactions to join (`pace.rs`). It has no leader: the
//!   worker that completes the group leads, or the timekeeper does when the time is up.
//! - **Boundary**: the environment's memory of the state right after the group's last transaction (the read
//!   view). It is made under `order` while the queue is empty, and published once the group is hardened (I5).
//! - **Behind**: hardened groups on their way out, oldest first. A [`Gate`] that the environment holds shut
//!   (semi-synchronous replication) keeps them there, unpublished or unacknowledged, while later groups go on
//!   being hardened. The thread that opens the gate calls [`Pipeline::gate_opened`].
//! - **Alone** ([`Pipeline::order_alone`]): a transaction too large for the order stage. Its engines have its
//!   writes staged. It is ordered and hardened with the order stage held, and only then do the engines ingest
//!   what they staged. Its locks stay until then.
//!
//! Binlog positions and LSNs are given when the group is written, not at the order stage: a GTID event is
//! shorter without a commit id, and only a closed group shows which transactions share one. The leader goes
//! through the group in CommitSeq order, so log order, binlog order and CommitSeq order are one (I1).
//!
//! # Invariants
//! - I1: `arrivals` gives CommitSeqs without a hole. The holder of `order` drains the arrivals in that order.
//!   A leader takes all that is ordered. Leaders exclude each other from taking to syncing (asserted in
//!   `take_group`), and a leader takes `decider` before it lets go of `leader`: groups are decided, and put
//!   behind each other, in the order in which they were taken. `behind` loses groups only at its front.
//! - I4: no client is told before `acknowledged` has reached its transaction. `acknowledged` only grows, and
//!   only over hardened groups.
//! - I5: a group's boundary is published after the group is hardened.
//! - I6: from `order()` on nothing returns an error. A failed sync stops the pipeline for good
//!   ([`CommitEnv::stop`]; the real one ends the process), and no waiting client is told OK. A panic between
//!   a transaction's place and its acknowledgement ends the process ([`NoUnwind`]): the next leader would
//!   acknowledge what the panicked one took and never hardened.
//! - No arrival is left behind. The holder of `order` rechecks the arrivals after releasing it: an arrival
//!   before that check is ordered by the holder, an arrival after it finds `order` free.
//! - No transaction is left behind. A leader rechecks the queue *after* releasing `leader`: what is queued
//!   before that check is taken by it, what is queued later finds `leader` free. Whoever orders another's
//!   transaction leads afterwards, because the other may have found nothing to lead. An open group, and a
//!   queue that workers leave to each other, has an end and a timekeeper.
//!
//! # Lock order
//! `leader` > `decider` > `order` > `arrivals`; `decider` > `behind`; `waiting` is taken with none of them
//! held. `order` and `arrivals` are held for microseconds and never over I/O, except by [`Pipeline::hold`]
//! and [`Pipeline::order_alone`], which harden what is ordered.
//!
//! # On failure
//! See I6. A group that overlaps a failed one is not decided: its leader finds the pipeline stopped when it
//! has `decider`. A client that went away changes nothing: its acknowledgement goes nowhere.

use std::collections::VecDeque;
use std::sync::Arc;

use cohort_base::{CommitSeq, ConnectionId, NoUnwind};

use crate::pace::{Pace, PaceOptions};
use crate::seam::{CommitEnv, Stopped, Wake};
use crate::stage::{Gate, Hardened, Ordered, Point, Prepared, Stage};
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, fence};

/// Between two looks of a thread that waits for an acknowledgement; a wake-up comes sooner.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(1);

const AT_ORDER: &str = "the order stage";

struct Arrivals<T> {
    next: CommitSeq,
    /// In CommitSeq order.
    waiting: Vec<Ordered<T>>,
}

impl<T> Arrivals<T> {
    /// Gives the next place (I1).
    fn place(&mut self, trx: Prepared<T>) -> Ordered<T> {
        let seq = self.next;
        self.next = CommitSeq(seq.0 + 1);
        trx.order(seq)
    }
}

/// A flush group that is written and synced.
struct Flush<E: CommitEnv> {
    written: E::Written,
    /// When the leader began to sync; none once the pace knows how long it had to.
    began_ns: Option<u64>,
}

/// A flush group after its flush.
struct HardenedGroup<E: CommitEnv> {
    last: CommitSeq,
    trxs: Vec<Hardened<E::Trx>>,
    boundary: E::Boundary,
}

/// Hardened groups on their way out, oldest first; those of `published` come before those of `hardened`.
struct Behind<E: CommitEnv> {
    hardened: VecDeque<HardenedGroup<E>>,
    published: VecDeque<HardenedGroup<E>>,
}

/// Which transactions a thread ordered besides its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Batches {
    /// None.
    OfOwn,
    /// Some; the thread leads afterwards.
    OfOthers,
}

/// Somebody who is told once a transaction is acknowledged.
type Parked = (CommitSeq, Arc<dyn Wake>);

struct Waiting {
    /// Sessions whose reply is held, by CommitSeq; nearly sorted, so a plain vector is scanned.
    parked: Vec<Parked>,
}

/// The protocol's shared state.
pub struct Pipeline<E: CommitEnv> {
    env: E,
    arrivals: Mutex<Arrivals<E::Trx>>,
    /// The queue. Holding it is holding the order stage.
    order: Mutex<Vec<Ordered<E::Trx>>>,
    leader: Mutex<Leader<E::Trx>>,
    /// Holding it is deciding.
    decider: Mutex<()>,
    /// Holding it is publishing.
    behind: Mutex<Behind<E>>,
    waiting: Mutex<Waiting>,
    progress: Condvar,
    sleepers: AtomicUsize,
    /// Last that has a place; written under `arrivals`.
    arrived: AtomicU64,
    /// Last ordered; written under `order`.
    ordered: AtomicU64,
    /// Last taken by a leader; written under `leader` and `order`.
    taken: AtomicU64,
    /// Last whose client may be told; written under `behind`.
    acknowledged: AtomicU64,
    stopped: AtomicBool,
    /// Threads wait at gates no longer: the server stops.
    leaves_gates: AtomicBool,
    pace: Arc<Pace>,
}

impl<E: CommitEnv> Drop for Pipeline<E> {
    fn drop(&mut self) {
        self.pace.stop_timekeeper();
    }
}

/// What only the leader touches.
struct Leader<T> {
    /// The queue's spare vector: taking a group swaps, so that no allocation happens under `order`.
    spare: Vec<Ordered<T>>,
}

impl<E: CommitEnv> Pipeline<E> {
    /// A pipeline whose next transaction follows `last`.
    pub fn new(env: E, last: CommitSeq, pace: PaceOptions) -> Pipeline<E> {
        Pipeline {
            env,
            arrivals: Mutex::new(Arrivals { next: CommitSeq(last.0 + 1), waiting: Vec::new() }),
            order: Mutex::new(Vec::new()),
            leader: Mutex::new(Leader { spare: Vec::new() }),
            decider: Mutex::new(()),
            behind: Mutex::new(Behind { hardened: VecDeque::new(), published: VecDeque::new() }),
            waiting: Mutex::new(Waiting { parked: Vec::new() }),
            progress: Condvar::new(),
            sleepers: AtomicUsize::new(0),
            arrived: AtomicU64::new(last.0),
            ordered: AtomicU64::new(last.0),
            taken: AtomicU64::new(last.0),
            acknowledged: AtomicU64::new(last.0),
            stopped: AtomicBool::new(false),
            leaves_gates: AtomicBool::new(false),
            pace: Arc::new(Pace::new(pace)),
        }
    }

    /// A transaction whose environment has done all that can fail (I6).
    pub fn prepared(trx: E::Trx) -> Prepared<E::Trx> {
        Prepared::new(trx)
    }

    /// What the stages work on.
    pub fn env(&self) -> &E {
        &self.env
    }

    /// How groups are gathered; settings may change at any time.
    pub fn pace(&self) -> &Arc<Pace> {
        &self.pace
    }

    /// The newest transaction whose client may be told: it and all before it are hardened and published.
    pub fn acknowledged(&self) -> CommitSeq {
        CommitSeq(self.acknowledged.load(Ordering::Acquire))
    }

    /// The newest ordered transaction.
    pub fn ordered(&self) -> CommitSeq {
        CommitSeq(self.ordered.load(Ordering::Acquire))
    }

    /// The newest transaction that has a place, applied or about to be. Engines show nothing later.
    pub fn placed(&self) -> CommitSeq {
        CommitSeq(self.arrived.load(Ordering::SeqCst))
    }

    /// Gives the transaction its place (I1). At return the engines have applied it, or the holder of the
    /// order stage is about to. Never waits. The caller leads afterwards ([`Pipeline::lead`]), at the latest
    /// when it waits for something else.
    pub fn order(&self, trx: Prepared<E::Trx>) -> CommitSeq {
        self.env.reached(Point::Before(Stage::Order));
        let guard = NoUnwind::during(AT_ORDER);
        let seq = {
            let mut arrivals = self.arrivals.lock();
            let trx = self.place(&mut arrivals, trx);
            let seq = trx.seq();
            arrivals.waiting.push(trx);
            seq
        };
        let ordered = self.order_arrived(Some(seq));
        self.env.reached(Point::After(Stage::Order));
        guard.passed();
        if ordered == Batches::OfOthers {
            self.lead();
        }
        seq
    }

    /// At return the engines have applied `seq`: for a caller that goes on before its client is told.
    pub fn await_ordered(&self, seq: CommitSeq) {
        if self.ordered() >= seq {
            return;
        }
        let guard = NoUnwind::during(AT_ORDER);
        let mut queue = self.order.lock();
        let wakeups = self.order_arrivals(&mut queue);
        drop(queue);
        drop(wakeups);
        self.order_arrived(None);
        guard.passed();
        self.lead();
    }

    fn place(&self, arrivals: &mut Arrivals<E::Trx>, trx: Prepared<E::Trx>) -> Ordered<E::Trx> {
        if let Some(client) = self.env.client(trx.get()) {
            self.pace.arrived(client, &|| self.env.now_ns());
        }
        let trx = arrivals.place(trx);
        self.arrived.store(trx.seq().0, Ordering::SeqCst);
        trx
    }

    /// Orders what has arrived, unless another thread holds the order stage. Every caller that brought an
    /// arrival calls this, and so does every thread that has released `order`.
    fn order_arrived(&self, own: Option<CommitSeq>) -> Batches {
        let mut batches = Batches::OfOwn;
        // Between what the caller did before (an arrival, the release) and the look at the other side.
        fence(Ordering::SeqCst);
        while self.ordered.load(Ordering::SeqCst) < self.arrived.load(Ordering::SeqCst) {
            let Some(mut queue) = self.order.try_lock() else { return batches };
            let start = queue.len();
            let wakeups = self.order_arrivals(&mut queue);
            if queue[start..].iter().any(|trx| Some(trx.seq()) != own) {
                batches = Batches::OfOthers;
            }
            drop(queue);
            drop(wakeups);
            self.pace.queued(self.queue_len());
            fence(Ordering::SeqCst);
        }
        batches
    }

    /// [`Pipeline::order`] for a transaction that may follow only some states. `check` sees the state right
    /// before the transaction's place: all earlier ones are ordered, and no other gets a place meanwhile. A
    /// refused transaction comes back as it was, with no place (I6).
    pub fn order_if<X>(
        &self,
        trx: Prepared<E::Trx>,
        check: impl FnOnce(&E, &E::Trx) -> Result<(), X>,
    ) -> Result<CommitSeq, (X, Prepared<E::Trx>)> {
        self.env.reached(Point::Before(Stage::Order));
        let guard = NoUnwind::during(AT_ORDER);
        let mut queue = self.order.lock();
        let mut arrivals = self.arrivals.lock();
        let start = queue.len();
        queue.append(&mut arrivals.waiting);
        let of_earlier = self.order_batch(&mut queue[start..]);
        let outcome = match check(&self.env, trx.get()) {
            Ok(()) => {
                let trx = self.place(&mut arrivals, trx);
                let seq = trx.seq();
                let at = queue.len();
                queue.push(trx);
                Ok((seq, self.order_batch(&mut queue[at..])))
            }
            Err(why) => Err((why, trx)),
        };
        drop(arrivals);
        drop(queue);
        let is_of_others = of_earlier.is_some();
        drop(of_earlier);
        let (outcome, own) = match outcome {
            Ok((seq, wakeups)) => {
                drop(wakeups);
                self.env.reached(Point::After(Stage::Order));
                (Ok(seq), Some(seq))
            }
            Err(refused) => (Err(refused), None),
        };
        let later = self.order_arrived(own);
        self.pace.queued(self.queue_len());
        guard.passed();
        if is_of_others || later == Batches::OfOthers {
            self.lead();
        }
        outcome
    }

    fn order_arrivals(&self, queue: &mut Vec<Ordered<E::Trx>>) -> Option<E::Wakeups> {
        let start = queue.len();
        queue.append(&mut self.arrivals.lock().waiting);
        self.order_batch(&mut queue[start..])
    }

    fn order_batch(&self, batch: &mut [Ordered<E::Trx>]) -> Option<E::Wakeups> {
        let last = batch.last().map(Ordered::seq)?;
        let wakeups = self.env.order(batch);
        self.ordered.store(last.0, Ordering::SeqCst);
        Some(wakeups)
    }

    /// Gives a transaction with staged writes its place, and hardens it before the engines ingest them. At
    /// return it is applied and on its way out. The order stage is held for one flush and for what the
    /// engines need.
    pub fn order_alone(&self, trx: Prepared<E::Trx>) -> Result<CommitSeq, Stopped> {
        self.env.reached(Point::Before(Stage::Order));
        let guard = NoUnwind::during("the commit of a large transaction");
        let done = self.take_alone(trx);
        guard.passed();
        let (seq, done) = done?;
        self.acknowledge(done);
        self.lead();
        Ok(seq)
    }

    fn take_alone(&self, trx: Prepared<E::Trx>) -> Result<(CommitSeq, Vec<Hardened<E::Trx>>), Stopped> {
        let mut leader = self.leader.lock();
        let _decider = self.decider.lock();
        let mut queue = self.order.lock();
        let start = queue.len();
        let seq = {
            let mut arrivals = self.arrivals.lock();
            let trx = self.place(&mut arrivals, trx);
            let seq = trx.seq();
            queue.append(&mut arrivals.waiting);
            queue.push(trx);
            seq
        };
        let wakeups = self.order_batch(&mut queue[start..]);
        self.env.reached(Point::After(Stage::Order));
        let spare = std::mem::take(&mut leader.spare);
        let mut group = self.take_group(&mut queue, spare);
        let flush = self.harden(&mut group)?;
        let more = self.env.apply_staged(group.last_mut().expect("it was just queued"));
        let boundary = self.env.boundary(seq);
        drop(queue);
        drop((wakeups, more));
        self.order_arrived(None);
        leader.spare = self.put_behind(group, flush, boundary);
        Ok((seq, self.let_out()))
    }

    /// Flushes what is queued, group after group, until the queue is empty or the group is left open. Returns
    /// at once while another thread leads. Every session that ordered a transaction calls this once, and so
    /// does the timekeeper when an open group's time is up.
    pub fn lead(&self) {
        let now_ns = || self.env.now_ns();
        // Between what the caller queued, or the release of `leader`, and the look at the other side.
        fence(Ordering::SeqCst);
        while self.has_queued() && !self.is_stopped() && !self.pace.is_open(&now_ns) {
            let Some(leader) = self.leader.try_lock() else { return };
            let guard = NoUnwind::during("a flush of the log");
            match self.opens() {
                true => drop(leader),
                false => self.flush_group(leader),
            }
            guard.passed();
            // A transaction queued while `leader` was held may have found it taken: recheck now that it is
            // free.
            fence(Ordering::SeqCst);
            self.pace.queued(self.queue_len());
        }
    }

    /// For a worker that serves somebody next: leaves what is queued to the first worker that finds nobody to
    /// serve, which calls [`Pipeline::lead`], or to the timekeeper after a while. Leads where that does not
    /// pay.
    pub fn lead_later(&self) {
        // As in `lead`.
        fence(Ordering::SeqCst);
        if self.has_queued() && !self.pace.leaves(&|| self.env.now_ns()) {
            self.lead();
        }
    }

    /// Whether a worker that has nothing to serve shall lead before it rests.
    pub fn has_queued(&self) -> bool {
        self.queue_len() > 0
    }

    fn queue_len(&self) -> usize {
        let taken = self.taken.load(Ordering::SeqCst);
        self.ordered.load(Ordering::SeqCst).saturating_sub(taken) as usize
    }

    /// Whether to leave the group open for more, because that pays (pace) or the operator asked for it
    /// (`binlog_commit_wait_*`).
    fn opens(&self) -> bool {
        let is_waited_for = || {
            let is_waited_for = self.env.is_waited_for(&self.order.lock());
            self.order_arrived(None);
            is_waited_for
        };
        self.pace.opens(&|| self.env.now_ns(), &|| self.queue_len(), &is_waited_for)
    }

    /// One group: take, write, sync, decide, publish, resign, acknowledge.
    fn flush_group(&self, mut leader: MutexGuard<'_, Leader<E::Trx>>) {
        let (mut group, boundary) = {
            let mut queue = self.order.lock();
            let Some(last) = queue.last().map(Ordered::seq) else { return };
            let spare = std::mem::take(&mut leader.spare);
            (self.take_group(&mut queue, spare), self.env.boundary(last))
        };
        self.order_arrived(None);
        let Ok(mut flush) = self.write_and_sync(&mut group) else { return };
        // Before `leader` goes, so that no later group gets here first (I1).
        let decider = self.decider.lock();
        let leader = match self.env.overlaps(&flush.written) {
            true => self.hand_on(leader, &mut flush),
            false => Some(leader),
        };
        if self.decide(&mut flush).is_err() {
            return;
        }
        let spare = self.put_behind(group, flush, boundary);
        let done = self.let_out();
        drop(decider);
        if let Some(mut leader) = leader {
            leader.spare = spare;
            MutexGuard::unlock_fair(leader);
        }
        self.acknowledge(done);
    }

    /// Lets another lead while this thread decides. What is queued already is led by the timekeeper: whoever
    /// queued it found `leader` taken.
    fn hand_on<'a>(
        &self,
        leader: MutexGuard<'a, Leader<E::Trx>>,
        flush: &mut Flush<E>,
    ) -> Option<MutexGuard<'a, Leader<E::Trx>>> {
        self.note_flush_time(flush);
        MutexGuard::unlock_fair(leader);
        fence(Ordering::SeqCst);
        self.pace.queued(self.queue_len());
        if self.has_queued() {
            self.pace.call_timekeeper();
        }
        None
    }

    fn take_group(
        &self,
        queue: &mut Vec<Ordered<E::Trx>>,
        spare: Vec<Ordered<E::Trx>>,
    ) -> Vec<Ordered<E::Trx>> {
        let group = std::mem::replace(queue, spare);
        let (first, last) = (group[0].seq(), group[group.len() - 1].seq());
        // I1: groups continue each other without a hole, and hold all that is ordered.
        assert_eq!(first.0, self.taken.load(Ordering::Relaxed) + 1, "a group continues the last one");
        assert_eq!(last.0 - first.0 + 1, group.len() as u64, "a group has no hole");
        self.taken.store(last.0, Ordering::SeqCst);
        self.pace.closed();
        group
    }

    /// Hardens the group; `leader` and `decider` are held.
    fn harden(&self, group: &mut [Ordered<E::Trx>]) -> Result<Flush<E>, Stopped> {
        let mut flush = self.write_and_sync(group)?;
        self.decide(&mut flush)?;
        Ok(flush)
    }

    fn write_and_sync(&self, group: &mut [Ordered<E::Trx>]) -> Result<Flush<E>, Stopped> {
        self.env.reached(Point::Before(Stage::Harden));
        let mut written = self.env.write(group);
        let began_ns = Some(self.env.now_ns());
        self.or_stop(self.env.sync(&mut written))?;
        Ok(Flush { written, began_ns })
    }

    fn decide(&self, flush: &mut Flush<E>) -> Result<(), Stopped> {
        // The group before this one may have failed meanwhile.
        if self.is_stopped() {
            return Err(Stopped);
        }
        self.or_stop(self.env.decide(&mut flush.written))?;
        self.note_flush_time(flush);
        self.env.reached(Point::After(Stage::Harden));
        Ok(())
    }

    /// For so long the next group had to wait.
    fn note_flush_time(&self, flush: &mut Flush<E>) {
        if let Some(began_ns) = flush.began_ns.take() {
            self.pace.flushed(self.env.now_ns().saturating_sub(began_ns));
        }
    }

    /// I6: nothing may fail here, so the server ends. Nobody is told OK.
    fn or_stop(&self, done: Result<(), E::Error>) -> Result<(), Stopped> {
        done.map_err(|error| {
            self.stop();
            self.env.stop(&error);
            Stopped
        })
    }

    /// Puts a hardened group behind the earlier ones. Returns the emptied vector for reuse.
    fn put_behind(
        &self,
        mut group: Vec<Ordered<E::Trx>>,
        flush: Flush<E>,
        mut boundary: E::Boundary,
    ) -> Vec<Ordered<E::Trx>> {
        let trxs: Vec<Hardened<E::Trx>> = group.drain(..).map(Ordered::harden).collect();
        let last = trxs.last().expect("a group is not empty").seq();
        self.env.hardened(&trxs, flush.written, &mut boundary);
        self.behind.lock().hardened.push_back(HardenedGroup { last, trxs, boundary });
        group
    }

    /// Publishes the hardened groups that no gate holds, oldest first. Returns the transactions whose clients
    /// may be told.
    fn let_out(&self) -> Vec<Hardened<E::Trx>> {
        let mut done = Vec::new();
        let mut behind = self.behind.lock();
        let behind = &mut *behind;
        while let Some(group) = self.pop_let(Gate::Publish, &mut behind.hardened) {
            behind.published.push_back(self.publish(group));
        }
        while let Some(mut group) = self.pop_let(Gate::Acknowledge, &mut behind.published) {
            self.env.released(&group.trxs, &mut group.boundary);
            self.acknowledged.store(group.last.0, Ordering::SeqCst);
            match done.is_empty() {
                true => done = group.trxs,
                false => done.extend(group.trxs),
            }
        }
        done
    }

    /// The oldest group, unless the gate holds it.
    fn pop_let(&self, gate: Gate, groups: &mut VecDeque<HardenedGroup<E>>) -> Option<HardenedGroup<E>> {
        let is_let = groups.front().is_some_and(|group| !self.env.holds(gate, &group.boundary));
        if is_let { groups.pop_front() } else { None }
    }

    fn publish(&self, mut group: HardenedGroup<E>) -> HardenedGroup<E> {
        self.env.reached(Point::Before(Stage::Publish));
        self.env.publish(&mut group.trxs, &mut group.boundary);
        self.env.reached(Point::After(Stage::Publish));
        group
    }

    /// Lets out the groups that a gate held back and holds no longer.
    pub fn gate_opened(&self) {
        let guard = NoUnwind::during("the release of hardened groups");
        let done = self.let_out();
        guard.passed();
        self.acknowledge(done);
    }

    /// Tells the clients that waited. The next leader may be at work already.
    fn acknowledge(&self, done: Vec<Hardened<E::Trx>>) {
        if done.is_empty() {
            return;
        }
        let guard = NoUnwind::during("telling clients");
        self.env.reached(Point::Before(Stage::Acknowledge));
        let began_ns = self.env.now_ns();
        let acknowledged = self.acknowledged();
        let due: Vec<Arc<dyn Wake>> = {
            let mut waiting = self.waiting.lock();
            waiting.parked.extract_if(.., |(seq, _)| *seq <= acknowledged).map(|(_, wake)| wake).collect()
        };
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(self.waiting.lock());
            self.progress.notify_all();
        }
        let clients = done.iter().filter_map(|trx| self.env.client(trx.get()));
        self.pace.acknowledging(clients, &|| self.env.now_ns());
        for wake in due {
            wake.acknowledged();
        }
        self.env.told(done.len(), self.env.now_ns().saturating_sub(began_ns));
        drop(done);
        self.env.reached(Point::After(Stage::Acknowledge));
        guard.passed();
    }

    /// Registers `wake` for the moment when the client of `seq` may be told. Returns false if that moment has
    /// passed; `wake` is then not called. After [`Pipeline::stop`] no wake is called any more.
    pub fn when_acknowledged(&self, seq: CommitSeq, wake: Arc<dyn Wake>) -> bool {
        let mut waiting = self.waiting.lock();
        if self.acknowledged() >= seq {
            return false;
        }
        waiting.parked.push((seq, wake));
        true
    }

    /// Tells one client that is parked for `seq`, whose group is published and held at the last gate. Returns
    /// false if it is not parked. Others who wait for `seq` wait on: sessions that need it published, and
    /// clients whose replies show what it wrote.
    pub fn tell_early(&self, seq: CommitSeq, client: ConnectionId) -> bool {
        let guard = NoUnwind::during("telling a client early");
        let early: Vec<Arc<dyn Wake>> = {
            let mut waiting = self.waiting.lock();
            let is_its =
                |(waits_for, wake): &mut Parked| *waits_for == seq && wake.replies_to() == Some(client);
            waiting.parked.extract_if(.., is_its).map(|(_, wake)| wake).collect()
        };
        let is_told = !early.is_empty();
        for wake in early {
            wake.acknowledged();
        }
        guard.passed();
        is_told
    }

    /// Blocks until the client of `seq` may be told. Leads while no other thread does.
    pub fn wait_acknowledged(&self, seq: CommitSeq) -> Result<(), Stopped> {
        self.wait_acknowledged_while(seq, &|| true).map(|_| ())
    }

    /// Visits entries as long as the caller goes on; returns false if it stops.
    pub fn wait_acknowledged_while(
        &self,
        seq: CommitSeq,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<bool, Stopped> {
        loop {
            self.lead();
            self.sleepers.fetch_add(1, Ordering::SeqCst);
            let mut waiting = self.waiting.lock();
            let mut due = self.acknowledged() >= seq;
            if !due && !self.is_stopped() {
                // Another thread leads and will notify. The time limit only covers a leader that resigned in
                // between.
                self.progress.wait_for(&mut waiting, LOOK_AGAIN);
                due = self.acknowledged() >= seq;
            }
            drop(waiting);
            self.sleepers.fetch_sub(1, Ordering::SeqCst);
            if due || self.has_acknowledged(seq)? {
                return Ok(true);
            }
            if !goes_on() {
                return Ok(false);
            }
        }
    }

    /// Whether the client of `seq` may be told. An error: nobody shall wait for it any more.
    pub fn has_acknowledged(&self, seq: CommitSeq) -> Result<bool, Stopped> {
        let is_due = self.acknowledged() >= seq;
        let is_over = self.is_stopped() || (self.leaves_gates.load(Ordering::SeqCst) && self.env.has_gate());
        if !is_due && is_over { Err(Stopped) } else { Ok(is_due) }
    }

    /// From now on no thread waits at a gate: it gets [`Stopped`]. The groups that a gate holds stay held.
    pub fn leave_gates(&self) {
        self.leaves_gates.store(true, Ordering::SeqCst);
    }

    /// Runs `work` with the order stage held and everything ordered hardened: for checkpoints (I3) and for
    /// bytes that belong to no transaction.
    pub fn hold<R>(&self, work: impl FnOnce(CommitSeq) -> R) -> Result<R, Stopped> {
        let guard = NoUnwind::during("work that holds the order stage");
        let held = self.hold_order(work);
        guard.passed();
        let (result, done) = held?;
        self.acknowledge(done);
        self.lead();
        Ok(result)
    }

    fn hold_order<R>(
        &self,
        work: impl FnOnce(CommitSeq) -> R,
    ) -> Result<(R, Vec<Hardened<E::Trx>>), Stopped> {
        let _leader = self.leader.lock();
        let _decider = self.decider.lock();
        if self.is_stopped() {
            return Err(Stopped);
        }
        let mut queue = self.order.lock();
        let wakeups = self.order_arrivals(&mut queue);
        let last = self.ordered();
        if !queue.is_empty() {
            let mut group = self.take_group(&mut queue, Vec::new());
            let boundary = self.env.boundary(last);
            let flush = self.harden(&mut group)?;
            self.put_behind(group, flush, boundary);
        }
        let result = work(last);
        drop(queue);
        drop(wakeups);
        self.order_arrived(None);
        Ok((result, self.let_out()))
    }

    /// Ends the pipeline: no further group is flushed, and waiting threads get [`Stopped`].
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.waiting.lock().parked.clear();
        self.progress.notify_all();
    }

    /// Whether [`Pipeline::stop`] was called or the log failed.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }
}
