//! The commit protocol: how transactions get their order, become durable in groups, and are let out.
//!
//! # Purpose
//! One flush per group for the binlog and every engine, with an order stage that never waits for the disk.
//! The protocol is all here; what the stages *do* to logs, engines and locks is behind [`CommitEnv`], so that
//! the protocol runs in tests with counters and with an environment that crashes.
//!
//! # States and the function that makes each move
//! ```text
//! prepared --order()--> ordered --flush_group()--> hardened --let_out()--> published -> acknowledged
//!           any worker            the leader                   the leader, or who opened the gate
//! ```
//!
//! # Concepts
//! - **Arrivals**: prepared transactions that want their place. A transaction's [`CommitSeq`] is its place
//!   among the arrivals.
//! - **Order stage**: whoever holds `order` applies *all* arrivals as one batch. Who finds it taken goes on
//!   at once: the holder looks at the arrivals again after he let go. So nobody waits for the stage but those
//!   who need its outcome ([`Pipeline::await_ordered`]).
//! - **Asked** ([`Pipeline::order_if`]): a transaction that may follow some states only (a sequence number of
//!   its own, which must be the largest) is asked for while `order` and `arrivals` are held, so that nobody
//!   comes between the answer and its place. It has not begun to be ordered then (I6).
//! - **Queue**: ordered, not yet taken by a leader.
//! - **Group** (flush group): what a leader takes from the queue at once, hardened by one sync.
//! - **Leader**: the worker that holds `leader`. It takes everything that is queued, writes it to the log
//!   buffer, syncs, lets out what may go, resigns, and then acknowledges. There is no leader while nothing is
//!   queued; a worker that ordered a transaction calls [`Pipeline::lead`], which is a try-lock when somebody
//!   leads already. So a lone client's worker flushes inline.
//! - **Open group**: what is queued may be left open for more (`pace.rs`). Nobody leads then: who completes
//!   the group does, or who comes when its time is up, which the timekeeper sees to.
//! - **Boundary**: what the environment remembers of the state right after the group's last transaction (the
//!   read view), taken under `order` while the queue is empty; published once the group is hardened (I5).
//! - **Behind**: hardened groups on their way out, oldest first. Mostly they pass at once. A [`Gate`] that
//!   the environment holds shut (semi-synchronous replication) keeps them there, unpublished or
//!   unacknowledged, while later groups go on being hardened; whoever opens it calls
//!   [`Pipeline::gate_opened`].
//!
//! Positions in the binlog and LSNs are given when the group is written, not at the order stage: the GTID
//! event is shorter without a commit id, and whether a transaction shares one is known when its group is
//! closed. The leader goes through the group in CommitSeq order, so log order = binlog order = CommitSeq
//! order (I1).
//!
//! - **Alone**: a transaction too large for the order stage. Its engines have its writes ready on the side;
//!   it is ordered and hardened with the order stage held, and then taken in at once
//!   ([`Pipeline::order_alone`]). Its locks stay until then.
//!
//! # Invariants
//! - I1: `arrivals` gives CommitSeqs densely; the holder of `order` drains them in that order; a leader takes
//!   a prefix of what is ordered; leaders exclude each other from taking to hardening (asserted in
//!   `take_group`), and put their groups behind each other in that order; `behind` is emptied from its front
//!   only.
//! - I4: nothing here tells a client before `acknowledged` reached him; it only grows, and only over hardened
//!   groups.
//! - I5: the boundary of a group is published after the group is hardened, never before.
//! - I6: from `order()` on nothing returns an error. A failed sync stops the pipeline for good
//!   ([`CommitEnv::stop`]; the real one ends the process): nobody waiting is told OK.
//! - No arrival is left behind: who lets go of `order` looks at the arrivals again; who arrived before that
//!   look is ordered by him, who arrived after it finds `order` free. He who orders leads afterwards, because
//!   those he ordered may have found nothing to lead.
//! - No transaction is left behind: a leader that resigns, or leaves the group open, looks at the queue again
//!   *after* it let go of `leader`; who queued before that look is taken by it, who queued after it finds
//!   `leader` free. An open group has an end, and a timekeeper.
//!
//! # Lock order
//! `leader` > `order` > `arrivals`; `leader` > `behind`; `waiting` is taken with none of them held. `order`
//! and `arrivals` are held for microseconds, never over I/O (but by [`Pipeline::hold`] and
//! [`Pipeline::order_alone`], which harden what is ordered first).
//!
//! # On failure
//! See I6. A client that went away changes nothing: its acknowledgement goes nowhere.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

use cohort_base::CommitSeq;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::pace::{Pace, PaceOptions};
use crate::seam::{CommitEnv, Stopped, Wake};
use crate::stage::{Gate, Hardened, Ordered, Point, Prepared, Stage};

struct Arrivals<T> {
    next: CommitSeq,
    /// With the monotonic time of arrival for the pace; in CommitSeq order.
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

struct Waiting {
    /// Sessions whose reply is held, by CommitSeq; nearly sorted, so a plain vector is scanned.
    parked: Vec<(CommitSeq, Arc<dyn Wake>)>,
}

/// The protocol's shared state.
pub struct Pipeline<E: CommitEnv> {
    env: E,
    arrivals: Mutex<Arrivals<E::Trx>>,
    /// The queue. Holding it is holding the order stage.
    order: Mutex<Vec<Ordered<E::Trx>>>,
    leader: Mutex<Leader<E::Trx>>,
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

    /// The newest transaction that has a place, applied or about to be: engines show nothing later.
    pub fn placed(&self) -> CommitSeq {
        CommitSeq(self.arrived.load(Ordering::SeqCst))
    }

    /// Gives the transaction its place (I1). At return it is applied in the engines, or about to be by who
    /// holds the order stage. Never waits.
    pub fn order(&self, trx: Prepared<E::Trx>) -> CommitSeq {
        self.env.reached(Point::Before(Stage::Order));
        let seq = {
            let mut arrivals = self.arrivals.lock();
            let trx = self.place(&mut arrivals, trx);
            let seq = trx.seq();
            arrivals.waiting.push(trx);
            seq
        };
        self.order_arrived();
        self.env.reached(Point::After(Stage::Order));
        seq
    }

    /// At return `seq` is applied in the engines: for who goes on before he is told.
    pub fn await_ordered(&self, seq: CommitSeq) {
        if self.ordered() >= seq {
            return;
        }
        let mut queue = self.order.lock();
        let wakeups = self.order_arrivals(&mut queue);
        drop(queue);
        drop(wakeups);
        self.order_arrived();
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

    /// Orders what has arrived, unless somebody is at it. Called by who brought something, and after each
    /// time that `order` was held.
    fn order_arrived(&self) {
        // Between what was done before (an arrival, letting go) and the look at the other.
        fence(Ordering::SeqCst);
        while self.ordered.load(Ordering::SeqCst) < self.arrived.load(Ordering::SeqCst) {
            let Some(mut queue) = self.order.try_lock() else { return };
            let wakeups = self.order_arrivals(&mut queue);
            drop(queue);
            drop(wakeups);
            self.pace.queued(self.queue_len());
            fence(Ordering::SeqCst);
        }
    }

    /// The same for a transaction that may follow some states only. `ask` looks at the state right before its
    /// place: everybody earlier is ordered, and nobody gets a place until it has answered. A refused
    /// transaction comes back as it was, with no place (I6).
    pub fn order_if<X>(
        &self,
        trx: Prepared<E::Trx>,
        ask: impl FnOnce(&E, &E::Trx) -> Result<(), X>,
    ) -> Result<CommitSeq, (X, Prepared<E::Trx>)> {
        self.env.reached(Point::Before(Stage::Order));
        let mut queue = self.order.lock();
        let mut arrivals = self.arrivals.lock();
        let start = queue.len();
        queue.append(&mut arrivals.waiting);
        let of_earlier = self.order_batch(&mut queue[start..]);
        let outcome = match ask(&self.env, trx.get()) {
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
        drop(of_earlier);
        self.order_arrived();
        self.pace.queued(self.queue_len());
        match outcome {
            Ok((seq, wakeups)) => {
                drop(wakeups);
                self.env.reached(Point::After(Stage::Order));
                Ok(seq)
            }
            Err(refused) => {
                self.lead();
                Err(refused)
            }
        }
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

    /// Gives a transaction whose writes are staged its place, and hardens it before engines take them in: at
    /// return it is applied and on its way out. The order stage is held for one flush and what the engines
    /// need.
    pub fn order_alone(&self, trx: Prepared<E::Trx>) -> Result<CommitSeq, Stopped> {
        self.env.reached(Point::Before(Stage::Order));
        let mut leader = self.leader.lock();
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
        self.harden(&mut group)?;
        let more = self.env.apply_staged(group.last_mut().expect("it was just queued"));
        let boundary = self.env.boundary(seq);
        drop(queue);
        drop((wakeups, more));
        self.order_arrived();
        leader.spare = self.put_behind(group, boundary);
        let done = self.let_out();
        drop(leader);
        self.acknowledge(done);
        self.lead();
        Ok(seq)
    }

    /// Flushes what is queued if nobody does, group after group until the queue is empty or the group is left
    /// open for more. Whoever ordered a transaction calls this once, and so does the timekeeper when an open
    /// group's time is up; it returns at once when somebody leads.
    pub fn lead(&self) {
        let now_ns = || self.env.now_ns();
        while self.has_queued() && !self.is_stopped() && !self.pace.is_open(&now_ns) {
            let Some(leader) = self.leader.try_lock() else { return };
            match self.opens() {
                true => drop(leader),
                false => self.flush_group(leader),
            }
            // Whoever queued while `leader` was held may have found it taken: look again now that it is free.
            self.pace.queued(self.queue_len());
        }
    }

    fn has_queued(&self) -> bool {
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
            self.order_arrived();
            is_waited_for
        };
        self.pace.opens(&|| self.env.now_ns(), &|| self.queue_len(), &is_waited_for)
    }

    /// One group: take, write, harden, publish, resign, acknowledge.
    fn flush_group(&self, mut leader: MutexGuard<'_, Leader<E::Trx>>) {
        let (mut group, boundary) = {
            let mut queue = self.order.lock();
            let Some(last) = queue.last().map(Ordered::seq) else { return };
            let spare = std::mem::take(&mut leader.spare);
            (self.take_group(&mut queue, spare), self.env.boundary(last))
        };
        self.order_arrived();
        if self.harden(&mut group).is_err() {
            return;
        }
        leader.spare = self.put_behind(group, boundary);
        let done = self.let_out();
        MutexGuard::unlock_fair(leader);
        self.acknowledge(done);
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

    /// Writes and syncs the group.
    fn harden(&self, group: &mut [Ordered<E::Trx>]) -> Result<(), Stopped> {
        self.env.reached(Point::Before(Stage::Harden));
        self.env.write(group);
        let start_ns = self.env.now_ns();
        if let Err(error) = self.env.harden() {
            // I6: nothing may fail here, so the server ends. Nobody is told OK.
            self.stop();
            self.env.stop(&error);
            return Err(Stopped);
        }
        self.pace.flushed(self.env.now_ns().saturating_sub(start_ns), group.len());
        self.env.reached(Point::After(Stage::Harden));
        Ok(())
    }

    /// Puts a hardened group behind those before. Answers the vector it came in, empty.
    fn put_behind(&self, mut group: Vec<Ordered<E::Trx>>, mut boundary: E::Boundary) -> Vec<Ordered<E::Trx>> {
        let trxs: Vec<Hardened<E::Trx>> = group.drain(..).map(Ordered::harden).collect();
        let last = trxs.last().expect("a group is not empty").seq();
        self.env.hardened(&trxs, &mut boundary);
        self.behind.lock().hardened.push_back(HardenedGroup { last, trxs, boundary });
        group
    }

    /// Publishes the hardened groups that no gate holds, oldest first, and answers the transactions to be
    /// acknowledged.
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

    /// A gate that held groups back may let some through now.
    pub fn gate_opened(&self) {
        let done = self.let_out();
        self.acknowledge(done);
    }

    /// Tells everybody who waited. The next leader may be at work already.
    fn acknowledge(&self, done: Vec<Hardened<E::Trx>>) {
        if done.is_empty() {
            return;
        }
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
    }

    /// Has `wake` told when the client of `seq` may be told. False: it is already, and nothing is told. After
    /// [`Pipeline::stop`] nothing is told any more.
    pub fn when_acknowledged(&self, seq: CommitSeq, wake: Arc<dyn Wake>) -> bool {
        let mut waiting = self.waiting.lock();
        if self.acknowledged() >= seq {
            return false;
        }
        waiting.parked.push((seq, wake));
        true
    }

    /// Tells those who are parked for `seq`, whose group is published and held at the last gate. False if
    /// there is nobody.
    pub fn tell_early(&self, seq: CommitSeq) -> bool {
        let early: Vec<Arc<dyn Wake>> = {
            let mut waiting = self.waiting.lock();
            waiting.parked.extract_if(.., |(waits_for, _)| *waits_for == seq).map(|(_, wake)| wake).collect()
        };
        let is_told = !early.is_empty();
        for wake in early {
            wake.acknowledged();
        }
        is_told
    }

    /// Blocks until the client of `seq` may be told, flushing itself if nobody does.
    pub fn wait_acknowledged(&self, seq: CommitSeq) -> Result<(), Stopped> {
        loop {
            self.lead();
            self.sleepers.fetch_add(1, Ordering::SeqCst);
            let mut waiting = self.waiting.lock();
            let mut due = self.acknowledged() >= seq;
            if !due && !self.is_stopped() {
                // Someone else leads and will notify; the time limit only covers a leader that resigned in
                // between.
                self.progress.wait_for(&mut waiting, std::time::Duration::from_millis(1));
                due = self.acknowledged() >= seq;
            }
            drop(waiting);
            self.sleepers.fetch_sub(1, Ordering::SeqCst);
            if due {
                return Ok(());
            }
            if self.is_stopped() || (self.leaves_gates.load(Ordering::SeqCst) && self.env.has_gate()) {
                return Err(Stopped);
            }
        }
    }

    /// From now on no thread waits at a gate: it is told [`Stopped`]. What is held stays held.
    pub fn leave_gates(&self) {
        self.leaves_gates.store(true, Ordering::SeqCst);
    }

    /// Runs `work` with the order stage held and everything ordered hardened: for checkpoints (I3) and what
    /// belongs to no transaction.
    pub fn hold<R>(&self, work: impl FnOnce(CommitSeq) -> R) -> Result<R, Stopped> {
        let leader = self.leader.lock();
        if self.is_stopped() {
            return Err(Stopped);
        }
        let mut queue = self.order.lock();
        let wakeups = self.order_arrivals(&mut queue);
        let last = self.ordered();
        if !queue.is_empty() {
            let mut group = self.take_group(&mut queue, Vec::new());
            let boundary = self.env.boundary(last);
            self.harden(&mut group)?;
            self.put_behind(group, boundary);
        }
        let result = work(last);
        drop(queue);
        drop(wakeups);
        self.order_arrived();
        let done = self.let_out();
        drop(leader);
        self.acknowledge(done);
        self.lead();
        Ok(result)
    }

    /// No further group is flushed; who waits is told [`Stopped`].
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
