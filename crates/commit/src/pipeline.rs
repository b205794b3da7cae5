//! The commit protocol: transactions get their commit order, become durable in groups, and are published and
//! acknowledged.
//!
//! # Purpose
//! The *log* holds the redo of every engine and the bytes of the binlog. One flush of it per group makes them
//! all durable; engine files and binlog files are written from it later. The order stage, which applies
//! transactions and queues them for that flush, does not wait for the disk. There are two exceptions, for
//! large transactions and for checkpoints (see Lock order). This file holds the whole protocol. Logs, engines
//! and locks are accessed only through the trait [`CommitEnv`], so the same protocol runs in tests with
//! counters, in an environment that crashes, and under a scheduler that permutes threads (`tests/model.rs`).
//!
//! # States of a transaction
//! ```text
//! prepared --order()--> arrived --holder of `order`--> ordered --the leader--> durable
//! durable --publish_ready(): two gates open--> published --publish_ready(): last gate open--> acknowledged
//! ```
//! | state | meaning | entered in |
//! |---|---|---|
//! | prepared | everything that can fail is done | before the pipeline |
//! | arrived | it has its [`CommitSeq`] and is in the arrivals list | `order` |
//! | ordered | the engines have applied it, and it is in the flush queue. Exclusive: its writes are staged, and applied after the flush | `order_arrived`; `await_ordered`, `order_if`, `take_exclusive`, `hold_order` |
//! | durable | it is durable: it and everything before it survive a crash | `flush_group`; `take_exclusive`, `hold_order` |
//! | published | plain reads see it | `publish_ready` |
//! | acknowledged | its client gets the reply | `publish_ready`, then `acknowledge` notifies the waiters |
//!
//! The types in `stage.rs` have fewer states: an arrived transaction is an [`Ordered`] already, because it
//! has its CommitSeq.
//!
//! # Outline
//! ```text
//! order(trx):                             lead():
//!   under arrivals: assign next CommitSeq   while the flush queue is not empty:
//!   order_arrived()                           try_lock leader, or return
//!   if it ordered others: lead()              if waiting for more pays: leave the group open
//!                                             else flush_group():
//! order_arrived():                              under order: take the flush queue, take its snapshot
//!   while arrived > ordered:                    write the records, sync once
//!     try_lock order, or return                 lock decision; unlock leader if the next may overlap
//!     apply all arrivals as one batch           decide; append the group to the publish queue
//!     append them to the flush queue            publish_ready()
//!                                               unlock decision and leader, then notify the clients
//! ```
//! A session calls `order` and parks its reply with `when_acknowledged`. Its worker then calls `lead`, or
//! `lead_later` if it has other connections to serve. With a single client, the client's own worker therefore
//! flushes inline.
//!
//! # Concepts: ordering
//! - **Arrivals list** (`arrivals`): transactions that have a CommitSeq and are not yet applied.
//! - **Order stage** (the lock `order`): the thread that holds it applies all arrivals as one batch and
//!   appends them to the flush queue. A caller of `order` that finds the stage taken does not wait for it,
//!   because the holder rechecks the arrivals after it has released the stage. `await_ordered` and `order_if`
//!   wait for the stage because they need the result, `order_exclusive` and `hold` because they need the
//!   stage for themselves, and a leader waits for it to take the flush queue.
//! - **Conditional order** ([`Pipeline::order_if`]): for a transaction with its own GTID sequence number,
//!   which must be larger than all numbers of its domain before it. The check of the number runs with `order`
//!   and `arrivals` held, so no other transaction gets its CommitSeq between the check and the assignment. A
//!   refused transaction never gets a CommitSeq (I6).
//! - **Exclusive commit** ([`Pipeline::order_exclusive`]): for a large transaction. Applying its writes one
//!   by one would hold the order stage too long, so the engines have staged them before. The caller holds the
//!   order stage only while it flushes the transaction, with everything queued before it, and while the
//!   engines ingest the staged writes in one step ([`CommitEnv::apply_staged`]). The transaction keeps its
//!   locks until then.
//!
//! # Concepts: flushing
//! - **Flush queue** (the vector in `order`): ordered transactions that no leader has taken yet.
//! - **Group** (flush group): the transactions that a leader takes from the flush queue in one step and makes
//!   durable by one sync.
//! - **Leader**: the thread that holds `leader`. There is none while the flush queue is empty. `lead` only
//!   tries the lock, so a call costs almost nothing while another thread leads. `order_exclusive` and `hold`
//!   wait for it, so that no other thread flushes meanwhile.
//! - **Decision stage** (`decision`): turns a synced group into a durable one, in group order. The log may
//!   need a step after the sync for that, [`CommitEnv::decide`]. The protocol is the same with and without
//!   it.
//! - **Overlap**: if the log allows it ([`CommitEnv::overlaps`]), a leader releases `leader` before it
//!   decides. The next group is written and synced meanwhile, and then waits for `decision`. So at most two
//!   groups are in progress. Transactions that were queued before the release still need a leader, because
//!   their threads found `leader` taken. After it has decided, this thread returns to the loop in `lead` and
//!   flushes them. If flushes are slow, it asks the timer thread before that to lead them at once
//!   (`call_timer`).
//! - **Open group**: a flush queue that is left for more transactions to join (`group_commit.rs`). It has no
//!   leader. The thread that completes the group leads, or the timer thread does when the time is up.
//! - **Positions**: a GTID gets its sequence number when its transaction is applied. Binlog positions and
//!   LSNs are assigned later, when the leader writes the group, because they depend on the length of GTID
//!   events: transactions that share a group have a commit id in these events, and a transaction that is
//!   alone in its group has none. Only a closed group shows which transactions share it.
//!
//! # Concepts: publishing
//! - **Group snapshot** ([`CommitEnv::GroupSnapshot`]): the state right after the group's last transaction,
//!   with its read view. It is taken under `order` while nothing later is ordered, and published once the
//!   group is durable (I5).
//! - **Publish queue** (`publish_queue`): durable groups that are not yet acknowledged, oldest first.
//! - **Gates** ([`Gate`]): a group passes two gates before it is published and another before it is
//!   acknowledged. The environment keeps the first or the last shut while semi-synchronous replication waits
//!   for a replica, and the second while the archive waits for its repository (`archive/gate.rs`). Groups
//!   then stay in the publish queue, while later groups continue to become durable. The thread that opens a gate
//!   calls [`Pipeline::gate_opened`].
//!
//! # Invariants
//! ARCHITECTURE.md defines I1 to I8. I2 is kept by recovery (`recovery.rs`), and I3 by the
//! environment: engine files and binlog files get only what is durable ([`CommitEnv::made_durable`], and
//! [`Pipeline::hold`] for checkpoints). This file keeps the following:
//! - I1: log order, binlog order, CommitSeq order, and the order in which engines apply transactions are the
//!   same.
//!   - `arrivals` assigns CommitSeqs without gaps, and the holder of `order` drains the list in this order.
//!   - A leader takes the whole flush queue. `take_group` asserts that a group continues the previous one and
//!     has no gap.
//!   - A leader holds `leader` from taking a group until it is synced, and locks `decision` before it unlocks
//!     `leader`. So groups are written, synced, decided and appended to the publish queue in the order in
//!     which they were taken.
//!   - The publish queue loses groups only at its front.
//! - I4: no client gets its reply before the counter `acknowledged`, the last acknowledged CommitSeq, has
//!   reached its transaction. `acknowledged` only grows, and covers only durable groups. The exception is a
//!   client that is killed while its published group waits at the last gate: [`Pipeline::acknowledge_early`]
//!   wakes it. Its transaction is durable, too.
//! - I5: a group's snapshot is published after the group is durable.
//! - I6: no operation on a transaction with a CommitSeq can fail. A failed sync stops the pipeline for good,
//!   and no waiting client gets an OK. Waiting functions then return [`Stopped`], and [`CommitEnv::stop`]
//!   ends the process in a server. A panic between the assignment of a CommitSeq and its acknowledgement ends
//!   the process, too ([`AbortOnUnwind`]). Otherwise the next leader would acknowledge transactions that the
//!   panicked leader took and never made durable.
//! - No arrival is missed. The holder of `order` rechecks the arrivals after it has released the lock: it
//!   applies a transaction that arrived before the check, and a thread whose transaction arrives later finds
//!   `order` free.
//! - No queued transaction is missed. A leader rechecks the flush queue *after* it has released `leader`: it
//!   takes a transaction queued before the check, and a thread that queues one later finds `leader` free. A
//!   thread that ordered transactions of other threads calls `lead` afterwards, because those threads may
//!   have found an empty flush queue. An open group, and a queue that busy workers leave to idle ones, has a
//!   time limit and a timer thread.
//!
//! # Lock order
//! `A > B`: a thread that holds both has locked A first. `leader` > `decision` > `order` > `arrivals`;
//! `decision` > `publish_queue`; `order` > `publish_queue`. `waiting` is a leaf lock: no pipeline lock is
//! taken while it is held. A failed sync takes it ([`Pipeline::stop`]) with `leader`, `decision` or `order`
//! held.
//!
//! `arrivals` is held for microseconds. So is `order`, except by `order_exclusive` (a flush, then the engines
//! ingest the staged writes) and by [`Pipeline::hold`] (a flush, then its `work`). Transactions that arrive
//! meanwhile are ordered afterwards.
//!
//! # On failure
//! See I6. A group that overlaps a failed one is not decided: its leader finds the pipeline stopped once it
//! has `decision`. A client that has disconnected changes nothing: its acknowledgement is dropped.

use std::collections::VecDeque;
use std::sync::Arc;

use cohort_base::{AbortOnUnwind, CommitSeq, ConnectionId};

use crate::commit_env::{CommitEnv, Stopped, Wake};
use crate::group_commit::{GroupCommitOptions, GroupCommitPolicy};
use crate::stage::{Durable, Gate, Ordered, Point, Prepared, Stage};
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, fence};

/// Polling interval of a thread that waits for an acknowledgement. Normally a notification wakes it earlier.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(1);

const AT_ORDER: &str = "the order stage";

struct Arrivals<T> {
    next: CommitSeq,
    /// In CommitSeq order.
    waiting: Vec<Ordered<T>>,
}

impl<T> Arrivals<T> {
    /// Assigns the next CommitSeq (I1).
    fn place(&mut self, trx: Prepared<T>) -> Ordered<T> {
        let seq = self.next;
        self.next = CommitSeq(seq.0 + 1);
        trx.order(seq)
    }
}

/// A flush group that is written and synced.
struct Flush<E: CommitEnv> {
    written: E::Written,
    /// When the leader began to sync. `None` once the flush time was reported to the group-commit policy.
    began_ns: Option<u64>,
}

/// A durable flush group in the publish queue.
struct DurableGroup<E: CommitEnv> {
    last: CommitSeq,
    trxs: Vec<Durable<E::Trx>>,
    snapshot: E::GroupSnapshot,
}

/// The publish queue: durable groups, oldest first. The groups in `published` precede those in `replicated`,
/// and these those in `durable`.
struct PublishQueue<E: CommitEnv> {
    durable: VecDeque<DurableGroup<E>>,
    /// Groups that have passed [`Gate::Publish`].
    replicated: VecDeque<DurableGroup<E>>,
    published: VecDeque<DurableGroup<E>>,
}

impl<E: CommitEnv> PublishQueue<E> {
    fn new() -> PublishQueue<E> {
        let (durable, replicated, published) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        PublishQueue { durable, replicated, published }
    }
}

/// The transactions that a call has ordered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Batches {
    /// Only its own.
    OfOwn,
    /// Other threads' transactions too; the caller has to lead afterwards.
    OfOthers,
}

/// A waiter to notify when its transaction is acknowledged.
type Parked = (CommitSeq, Arc<dyn Wake>);

struct Waiting {
    /// Sessions whose reply is held, with the awaited CommitSeq. Nearly sorted, so a plain vector is scanned.
    parked: Vec<Parked>,
}

/// The shared state of the protocol.
pub struct Pipeline<E: CommitEnv> {
    env: E,
    arrivals: Mutex<Arrivals<E::Trx>>,
    /// The queue. Its lock is the order stage.
    order: Mutex<Vec<Ordered<E::Trx>>>,
    leader: Mutex<Leader<E::Trx>>,
    /// The lock of the decision stage.
    decision: Mutex<()>,
    /// The lock of the publish stage.
    publish_queue: Mutex<PublishQueue<E>>,
    waiting: Mutex<Waiting>,
    progress: Condvar,
    sleepers: AtomicUsize,
    /// Last CommitSeq assigned; written under `arrivals`.
    arrived: AtomicU64,
    /// Last ordered; written under `order`.
    ordered: AtomicU64,
    /// Last CommitSeq taken by a leader; written under `leader` and `order`.
    taken: AtomicU64,
    /// Last CommitSeq whose client may get its reply; written under `publish_queue`.
    acknowledged: AtomicU64,
    stopped: AtomicBool,
    /// Threads do not wait at gates any more, because the server is stopping.
    leaves_gates: AtomicBool,
    group_commit: Arc<GroupCommitPolicy>,
}

impl<E: CommitEnv> Drop for Pipeline<E> {
    fn drop(&mut self) {
        self.group_commit.stop_timer();
    }
}

/// State that only the leader accesses.
struct Leader<T> {
    /// The queue's spare vector. Taking a group swaps the two, so that nothing is allocated under `order`.
    spare: Vec<Ordered<T>>,
}

impl<E: CommitEnv> Pipeline<E> {
    /// Makes a pipeline whose next transaction follows `last`.
    pub fn new(env: E, last: CommitSeq, group_commit: GroupCommitOptions) -> Pipeline<E> {
        Pipeline {
            env,
            arrivals: Mutex::new(Arrivals { next: CommitSeq(last.0 + 1), waiting: Vec::new() }),
            order: Mutex::new(Vec::new()),
            leader: Mutex::new(Leader { spare: Vec::new() }),
            decision: Mutex::new(()),
            publish_queue: Mutex::new(PublishQueue::new()),
            waiting: Mutex::new(Waiting { parked: Vec::new() }),
            progress: Condvar::new(),
            sleepers: AtomicUsize::new(0),
            arrived: AtomicU64::new(last.0),
            ordered: AtomicU64::new(last.0),
            taken: AtomicU64::new(last.0),
            acknowledged: AtomicU64::new(last.0),
            stopped: AtomicBool::new(false),
            leaves_gates: AtomicBool::new(false),
            group_commit: Arc::new(GroupCommitPolicy::new(group_commit)),
        }
    }

    /// Wraps a transaction for which the environment has done everything that can fail (I6).
    pub fn prepared(trx: E::Trx) -> Prepared<E::Trx> {
        Prepared::new(trx)
    }

    /// Returns the environment that the stages work on.
    pub fn env(&self) -> &E {
        &self.env
    }

    /// Returns the group-commit policy, whose settings may change at any time.
    pub fn group_commit(&self) -> &Arc<GroupCommitPolicy> {
        &self.group_commit
    }

    /// Returns the newest transaction whose client may get its reply: it, and all before it, are durable and
    /// published.
    pub fn acknowledged(&self) -> CommitSeq {
        CommitSeq(self.acknowledged.load(Ordering::Acquire))
    }

    /// Returns the newest ordered transaction.
    pub fn ordered(&self) -> CommitSeq {
        CommitSeq(self.ordered.load(Ordering::Acquire))
    }

    /// Returns the newest transaction that has a CommitSeq. It is applied or about to be; reads in the
    /// engines see nothing later.
    pub fn placed(&self) -> CommitSeq {
        CommitSeq(self.arrived.load(Ordering::SeqCst))
    }

    /// Assigns the transaction its CommitSeq (I1). At return the engines have applied it, or the holder of
    /// the order stage is about to. Does not wait for the order stage. Leads if it ordered transactions of
    /// other threads. Otherwise the caller must call [`Pipeline::lead`], at the latest before it waits for
    /// something else.
    pub fn order(&self, trx: Prepared<E::Trx>) -> CommitSeq {
        self.env.reached(Point::Before(Stage::Order));
        let guard = AbortOnUnwind::during(AT_ORDER);
        let seq = {
            let mut arrivals = self.arrivals.lock();
            let trx = self.place(&mut arrivals, trx);
            let seq = trx.seq();
            arrivals.waiting.push(trx);
            seq
        };
        let ordered = self.order_arrived(Some(seq));
        self.env.reached(Point::After(Stage::Order));
        guard.disarm();
        if ordered == Batches::OfOthers {
            self.lead();
        }
        seq
    }

    /// Waits until the engines have applied `seq`: for a caller that continues before its commit is
    /// acknowledged.
    pub fn await_ordered(&self, seq: CommitSeq) {
        if self.ordered() >= seq {
            return;
        }
        let guard = AbortOnUnwind::during(AT_ORDER);
        let mut queue = self.order.lock();
        let wakeups = self.order_arrivals(&mut queue);
        drop(queue);
        drop(wakeups);
        self.order_arrived(None);
        guard.disarm();
        self.lead();
    }

    fn place(&self, arrivals: &mut Arrivals<E::Trx>, trx: Prepared<E::Trx>) -> Ordered<E::Trx> {
        if let Some(client) = self.env.client(trx.get()) {
            self.group_commit.arrived(client, &|| self.env.now_ns());
        }
        let trx = arrivals.place(trx);
        self.arrived.store(trx.seq().0, Ordering::SeqCst);
        trx
    }

    /// Orders all arrivals, unless another thread holds the order stage. Every caller that added an arrival
    /// calls this, and so does every thread that has released `order`.
    fn order_arrived(&self, own: Option<CommitSeq>) -> Batches {
        let mut batches = Batches::OfOwn;
        // Orders the caller's last write (an arrival, or the release of `order`) before the reads below.
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
            self.group_commit.queued(self.queue_len());
            fence(Ordering::SeqCst);
        }
        batches
    }

    /// Orders a transaction like [`Pipeline::order`] if `check` accepts the state. `check` sees the state
    /// right before the transaction: all earlier ones are ordered, and no other transaction gets a CommitSeq
    /// meanwhile. Returns a refused transaction unchanged; it has no CommitSeq (I6).
    pub fn order_if<X>(
        &self,
        trx: Prepared<E::Trx>,
        check: impl FnOnce(&E, &E::Trx) -> Result<(), X>,
    ) -> Result<CommitSeq, (X, Prepared<E::Trx>)> {
        self.env.reached(Point::Before(Stage::Order));
        let guard = AbortOnUnwind::during(AT_ORDER);
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
        self.group_commit.queued(self.queue_len());
        guard.disarm();
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

    /// Commits a transaction with staged writes exclusively: makes it durable before the engines ingest the
    /// staged writes. At return it is applied and in the publish queue, or already published. The order stage
    /// is held for one flush and for the time that the engines need.
    pub fn order_exclusive(&self, trx: Prepared<E::Trx>) -> Result<CommitSeq, Stopped> {
        self.env.reached(Point::Before(Stage::Order));
        let guard = AbortOnUnwind::during("the commit of a large transaction");
        let done = self.take_exclusive(trx);
        guard.disarm();
        let (seq, done) = done?;
        self.acknowledge(done);
        self.lead();
        Ok(seq)
    }

    fn take_exclusive(&self, trx: Prepared<E::Trx>) -> Result<(CommitSeq, Vec<Durable<E::Trx>>), Stopped> {
        let mut leader = self.leader.lock();
        let _decider = self.decision.lock();
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
        let flush = self.make_durable(&mut group)?;
        let more = self.env.apply_staged(group.last_mut().expect("it was just queued"));
        let snapshot = self.env.snapshot(seq);
        drop(queue);
        drop((wakeups, more));
        self.order_arrived(None);
        leader.spare = self.enqueue_for_publish(group, flush, snapshot);
        Ok((seq, self.publish_ready()))
    }

    /// Flushes the queue, group after group, until it is empty or the group is left open. Returns immediately
    /// while another thread leads. Every session that ordered a transaction calls this once, and so does the
    /// timer thread when an open group's time is up.
    pub fn lead(&self) {
        let now_ns = || self.env.now_ns();
        // Orders the caller's last write (a queued transaction, or the release of `leader`) before the reads
        // below.
        fence(Ordering::SeqCst);
        while self.has_queued() && !self.is_stopped() && !self.group_commit.is_open(&now_ns) {
            let Some(leader) = self.leader.try_lock() else { return };
            let guard = AbortOnUnwind::during("a flush of the log");
            match self.opens() {
                true => drop(leader),
                false => self.flush_group(leader),
            }
            guard.disarm();
            // A thread that queued a transaction while `leader` was held may have found it taken: recheck now
            // that it is free.
            fence(Ordering::SeqCst);
            self.group_commit.queued(self.queue_len());
        }
    }

    /// Leaves the queue to another thread, for a worker that has other connections to serve: the first worker
    /// that has none calls [`Pipeline::lead`], or the timer thread leads after a while. Leads immediately
    /// where that does not pay.
    pub fn lead_later(&self) {
        // See `lead`.
        fence(Ordering::SeqCst);
        if self.has_queued() && !self.group_commit.leaves(&|| self.env.now_ns()) {
            self.lead();
        }
    }

    /// Returns whether a worker without connections to serve has to lead before it goes idle.
    pub fn has_queued(&self) -> bool {
        self.queue_len() > 0
    }

    fn queue_len(&self) -> usize {
        let taken = self.taken.load(Ordering::SeqCst);
        self.ordered.load(Ordering::SeqCst).saturating_sub(taken) as usize
    }

    /// Returns whether to leave the group open for more transactions, because that pays (`group_commit.rs`)
    /// or the operator asked for it (`binlog_commit_wait_*`).
    fn opens(&self) -> bool {
        let is_waited_for = || {
            let is_waited_for = self.env.is_waited_for(&self.order.lock());
            self.order_arrived(None);
            is_waited_for
        };
        self.group_commit.opens(&|| self.env.now_ns(), &|| self.queue_len(), &is_waited_for)
    }

    /// Flushes one group: take, write, sync, decide, publish, release `leader`, acknowledge.
    fn flush_group(&self, mut leader: MutexGuard<'_, Leader<E::Trx>>) {
        let (mut group, snapshot) = {
            let mut queue = self.order.lock();
            let Some(last) = queue.last().map(Ordered::seq) else { return };
            let spare = std::mem::take(&mut leader.spare);
            (self.take_group(&mut queue, spare), self.env.snapshot(last))
        };
        self.order_arrived(None);
        let Ok(mut flush) = self.write_and_sync(&mut group) else { return };
        // Taken before `leader` is released, so that no later group gets here first (I1).
        let decision = self.decision.lock();
        let leader = match self.env.overlaps(&flush.written) {
            true => self.release_leadership(leader, &mut flush),
            false => Some(leader),
        };
        if self.decide(&mut flush).is_err() {
            return;
        }
        let spare = self.enqueue_for_publish(group, flush, snapshot);
        let done = self.publish_ready();
        drop(decision);
        if let Some(mut leader) = leader {
            leader.spare = spare;
            MutexGuard::unlock_fair(leader);
        }
        self.acknowledge(done);
    }

    /// Releases `leader` while this thread decides. The transactions that are queued already still need a
    /// leader: the threads that queued them found `leader` taken. This thread leads them after it has
    /// decided; if flushes are slow, the timer thread leads them at once.
    fn release_leadership<'a>(
        &self,
        leader: MutexGuard<'a, Leader<E::Trx>>,
        flush: &mut Flush<E>,
    ) -> Option<MutexGuard<'a, Leader<E::Trx>>> {
        self.note_flush_time(flush);
        MutexGuard::unlock_fair(leader);
        fence(Ordering::SeqCst);
        self.group_commit.queued(self.queue_len());
        if self.has_queued() {
            self.group_commit.call_timer();
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
        // I1: a group continues the previous one without a gap, and holds everything that is ordered.
        assert_eq!(first.0, self.taken.load(Ordering::Relaxed) + 1, "a group continues the last one");
        assert_eq!(last.0 - first.0 + 1, group.len() as u64, "a group has no hole");
        self.taken.store(last.0, Ordering::SeqCst);
        self.group_commit.closed();
        group
    }

    /// Makes the group durable; `leader` and `decision` are held.
    fn make_durable(&self, group: &mut [Ordered<E::Trx>]) -> Result<Flush<E>, Stopped> {
        let mut flush = self.write_and_sync(group)?;
        self.decide(&mut flush)?;
        Ok(flush)
    }

    fn write_and_sync(&self, group: &mut [Ordered<E::Trx>]) -> Result<Flush<E>, Stopped> {
        self.env.reached(Point::Before(Stage::Flush));
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
        self.env.reached(Point::After(Stage::Flush));
        Ok(())
    }

    /// Reports the flush duration to the group-commit policy, once per group: the next group had to wait for
    /// that long.
    fn note_flush_time(&self, flush: &mut Flush<E>) {
        if let Some(began_ns) = flush.began_ns.take() {
            self.group_commit.flushed(self.env.now_ns().saturating_sub(began_ns));
        }
    }

    /// Stops the server on an error, because nothing may fail here (I6). No client gets an OK.
    fn or_stop(&self, done: Result<(), E::Error>) -> Result<(), Stopped> {
        done.map_err(|error| {
            self.stop();
            self.env.stop(&error);
            Stopped
        })
    }

    /// Appends a durable group to the publish queue. Returns the emptied vector for reuse.
    fn enqueue_for_publish(
        &self,
        mut group: Vec<Ordered<E::Trx>>,
        flush: Flush<E>,
        mut snapshot: E::GroupSnapshot,
    ) -> Vec<Ordered<E::Trx>> {
        let trxs: Vec<Durable<E::Trx>> = group.drain(..).map(Ordered::into_durable).collect();
        let last = trxs.last().expect("a group is not empty").seq();
        self.env.made_durable(&trxs, flush.written, &mut snapshot);
        self.publish_queue.lock().durable.push_back(DurableGroup { last, trxs, snapshot });
        group
    }

    /// Publishes the durable groups that no gate holds, oldest first. Returns the transactions whose clients
    /// may get their replies.
    fn publish_ready(&self) -> Vec<Durable<E::Trx>> {
        let mut done = Vec::new();
        let mut queue = self.publish_queue.lock();
        let queue = &mut *queue;
        while let Some(group) = self.pop_passed(Gate::Publish, &mut queue.durable) {
            queue.replicated.push_back(group);
        }
        while let Some(group) = self.pop_passed(Gate::Archive, &mut queue.replicated) {
            queue.published.push_back(self.publish(group));
        }
        while let Some(group) = self.pop_passed(Gate::Acknowledge, &mut queue.published) {
            self.acknowledged.store(group.last.0, Ordering::SeqCst);
            match done.is_empty() {
                true => done = group.trxs,
                false => done.extend(group.trxs),
            }
        }
        done
    }

    /// Removes and returns the oldest group, unless the gate holds it.
    fn pop_passed(&self, gate: Gate, groups: &mut VecDeque<DurableGroup<E>>) -> Option<DurableGroup<E>> {
        groups.front().filter(|group| !self.env.holds(gate, &group.snapshot))?;
        let mut group = groups.pop_front()?;
        self.env.passed(gate, &group.trxs, &mut group.snapshot);
        Some(group)
    }

    fn publish(&self, mut group: DurableGroup<E>) -> DurableGroup<E> {
        self.env.reached(Point::Before(Stage::Publish));
        self.env.publish(&mut group.trxs, &mut group.snapshot);
        self.env.reached(Point::After(Stage::Publish));
        group
    }

    /// Publishes and acknowledges the groups that a gate held and no longer holds.
    pub fn gate_opened(&self) {
        let guard = AbortOnUnwind::during("the release of durable groups");
        let done = self.publish_ready();
        guard.disarm();
        self.acknowledge(done);
    }

    /// Notifies the waiters of acknowledged transactions. The next leader may be at work already.
    fn acknowledge(&self, done: Vec<Durable<E::Trx>>) {
        if done.is_empty() {
            return;
        }
        let guard = AbortOnUnwind::during("the notification of clients");
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
        self.group_commit.acknowledging(clients, &|| self.env.now_ns());
        for wake in due {
            wake.acknowledged();
        }
        self.env.notified(done.len(), self.env.now_ns().saturating_sub(began_ns));
        drop(done);
        self.env.reached(Point::After(Stage::Acknowledge));
        guard.disarm();
    }

    /// Registers `wake` to be called when the client of `seq` may get its reply. Returns false if it may
    /// already; `wake` is then not called. After [`Pipeline::stop`] no `wake` is called any more.
    pub fn when_acknowledged(&self, seq: CommitSeq, wake: Arc<dyn Wake>) -> bool {
        let mut waiting = self.waiting.lock();
        if self.acknowledged() >= seq {
            return false;
        }
        waiting.parked.push((seq, wake));
        true
    }

    /// Notifies the waiter for the reply of one client that is parked for `seq`, whose group is published and
    /// held at the last gate. Returns false if the client is not parked. The others that wait for `seq`
    /// continue to wait: sessions that need it published, and clients whose replies show what it wrote.
    pub fn acknowledge_early(&self, seq: CommitSeq, client: ConnectionId) -> bool {
        let guard = AbortOnUnwind::during("the early notification of a client");
        let early: Vec<Arc<dyn Wake>> = {
            let mut waiting = self.waiting.lock();
            let is_its =
                |(waits_for, wake): &mut Parked| *waits_for == seq && wake.replies_to() == Some(client);
            waiting.parked.extract_if(.., is_its).map(|(_, wake)| wake).collect()
        };
        let has_early = !early.is_empty();
        for wake in early {
            wake.acknowledged();
        }
        guard.disarm();
        has_early
    }

    /// Blocks until the client of `seq` may get its reply. Leads while no other thread does.
    pub fn wait_acknowledged(&self, seq: CommitSeq) -> Result<(), Stopped> {
        self.wait_acknowledged_while(seq, &|| true).map(|_| ())
    }

    /// Blocks like [`Pipeline::wait_acknowledged`], as long as `goes_on` returns true. Returns false once
    /// `goes_on` ended the wait.
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
                // Another thread leads and will notify. The timeout only covers a leader that stepped down in
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

    /// Returns whether the client of `seq` may get its reply, or an error if the caller must not wait for it
    /// any more.
    pub fn has_acknowledged(&self, seq: CommitSeq) -> Result<bool, Stopped> {
        let is_due = self.acknowledged() >= seq;
        let is_over = self.is_stopped() || (self.leaves_gates.load(Ordering::SeqCst) && self.env.has_gate());
        if !is_due && is_over { Err(Stopped) } else { Ok(is_due) }
    }

    /// Makes threads that wait at a gate return [`Stopped`] from now on. Groups held by a gate stay held.
    pub fn leave_gates(&self) {
        self.leaves_gates.store(true, Ordering::SeqCst);
    }

    /// Runs `work` with the order stage held and everything ordered durable: for checkpoints (I3), and for
    /// log records that belong to no transaction.
    pub fn hold<R>(&self, work: impl FnOnce(CommitSeq) -> R) -> Result<R, Stopped> {
        let guard = AbortOnUnwind::during("work that holds the order stage");
        let held = self.hold_order(work);
        guard.disarm();
        let (result, done) = held?;
        self.acknowledge(done);
        self.lead();
        Ok(result)
    }

    fn hold_order<R>(&self, work: impl FnOnce(CommitSeq) -> R) -> Result<(R, Vec<Durable<E::Trx>>), Stopped> {
        let _leader = self.leader.lock();
        let _decider = self.decision.lock();
        if self.is_stopped() {
            return Err(Stopped);
        }
        let mut queue = self.order.lock();
        let wakeups = self.order_arrivals(&mut queue);
        let last = self.ordered();
        if !queue.is_empty() {
            let mut group = self.take_group(&mut queue, Vec::new());
            let snapshot = self.env.snapshot(last);
            let flush = self.make_durable(&mut group)?;
            self.enqueue_for_publish(group, flush, snapshot);
        }
        let result = work(last);
        drop(queue);
        drop(wakeups);
        self.order_arrived(None);
        Ok((result, self.publish_ready()))
    }

    /// Ends the pipeline: no further group is flushed, and waiting threads get [`Stopped`].
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.waiting.lock().parked.clear();
        self.progress.notify_all();
    }

    /// Returns whether [`Pipeline::stop`] was called or the log failed.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }
}
