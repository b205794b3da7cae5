//! The lock table: takes locks, waits and releases.
//!
//! # States of a request
//! ```text
//! request --> granted
//!    \------> refused (`NoWait`)    it conflicts, and the caller does not want to wait
//!     \-----> queued --> granted    by the thread that releases, downgrades or withdraws what conflicted
//!                    --> victim     by the thread whose wait closed a cycle
//!                    --> timed out  by the waiter
//!                    --> killed     by the waiter, after another thread has set the flag
//! ```
//! A grant removes the request from the queue and sets the verdict ([`Owner::grant`]).
//! [`Owner::abort_victim`] only sets the verdict. In the last three cases the waiter itself removes its
//! request ([`LockTable::give_up`]). If the request is gone because it was granted in the meantime, the grant
//! stands, and the wait has succeeded.
//!
//! # How a wait begins
//! One wait begins at a time, under the `graph` mutex:
//! 1. Register the anonymous metadata locks of the session (`names.rs`), so that the graph has them.
//! 2. Request again, and queue the request if it still conflicts.
//! 3. Search for cycles, and abort victims until the waiter is in none.
//!
//! Then the mutex is released, the victims are woken, and the thread sleeps in its wait slot.
//!
//! # Lock order
//! `graph` > an owner's `names` > the lock of one part of the table > an owner's `wait` > a party's `waiting`
//! (`party.rs`). The parts are a row shard, the queue of a name, and a shard of index range locks. A thread
//! holds one of them at a time; for the locks inside the last see `ranges.rs`. The table's `waiting` and
//! `last_deadlock` are leaf locks. A sleeper is woken while the waker holds at most its own `names`.
//!
//! # Deliberately missing
//! Lock escalation.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::RandomState;
use cohort_base::{CommitSeq, Histogram, HistogramSnapshot, IndexId, TrxId};

use crate::graph;
use crate::kill::{KillFlag, KillLevel};
use crate::mode::{MetadataKey, MetadataMode, RowMode};
use crate::names::{Name, Names, Ticket};
use crate::owner::{Owner, Verdict, WaitOn};
use crate::party::Part;
use crate::queue::Request;
use crate::ranges::Ranges;
use crate::row_key::{GroupKey, RowKey};
use crate::rows::{Home, Rows};
use crate::sleep::{Sleeper, SleeperOf};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};
use crate::waits::Deadlock;

/// Maximum number of released names that an owner keeps for reuse.
const IDLE_NAMES_MAX: usize = 8;

/// Limit of a lock wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitLimit {
    /// Do not wait: return [`LockError::NoWait`].
    NoWait,
    /// Wait at most this long, then return [`LockError::Timeout`].
    For(Duration),
}

/// Reason why a lock was not granted, and what the caller must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockError {
    /// Roll the transaction back: it was chosen as the victim of a deadlock (error 1213).
    Deadlock,
    /// Roll the statement back: the wait limit passed (error 1205).
    Timeout,
    /// Roll back the statement or the connection, as the kill level says.
    Killed(KillLevel),
    /// Another owner holds the lock and the caller did not want to wait.
    NoWait,
}

/// A lock that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The transaction that released this row early and may not be durable yet (I5, I8).
    pub predecessor: Option<CommitSeq>,
}

/// Counters since the server started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockStats {
    /// Row locks that had to wait.
    pub row_waits: u64,
    /// Row locks waiting now.
    pub row_waits_current: u64,
    /// Time spent in waits for row locks.
    pub row_wait_us_total: u64,
    /// The longest wait for a row lock.
    pub row_wait_us_max: u64,
    /// Deadlocks found.
    pub deadlocks: u64,
    /// Waits that ended by timeout.
    pub timeouts: u64,
    /// Rows that are locked, or remembered after an early release.
    pub rows: u64,
    /// Bytes of the row lock tables.
    pub row_table_bytes: u64,
    /// Transactions with range locks, counted once per index.
    pub range_holders: u64,
}

#[derive(Default)]
struct Counters {
    row_waits: AtomicU64,
    row_waits_current: AtomicU64,
    /// Nanoseconds.
    row_wait_times: Histogram,
    deadlocks: AtomicU64,
    timeouts: AtomicU64,
}

/// A transaction with this many row locks keeps further ones on neighbouring keys in groups.
const GROUPED_FROM: usize = 256;

/// All locks of a server.
pub struct LockTable {
    pub(crate) rows: Rows,
    pub(crate) ranges: Ranges,
    names: Names,
    /// Held while a wait begins (`graph.rs`).
    graph: Mutex<()>,
    /// Owners that are waiting now, for lists of waits.
    pub(crate) waiting: Mutex<HashMap<TrxId, Arc<Owner>>>,
    pub(crate) last_deadlock: Mutex<Option<Deadlock>>,
    hasher: RandomState,
    /// A transaction with this many row locks keeps further ones on neighbours in groups.
    grouped_from: usize,
    sleeper_of: SleeperOf,
    counters: Counters,
}

fn wake(owners: &[Arc<Owner>]) {
    for owner in owners {
        owner.wake();
    }
}

/// Owners whose locks were granted, woken when this is dropped. Waking may cost a system call each, and a
/// woken thread may preempt the caller, so the caller drops this after it has released the locks that the
/// woken thread needs next.
#[derive(Default)]
pub struct Wakeups(Vec<Arc<Owner>>);

impl Wakeups {
    pub(crate) fn owners(&mut self) -> &mut Vec<Arc<Owner>> {
        &mut self.0
    }

    /// Adds the owners of `other`.
    pub fn append(&mut self, mut other: Wakeups) {
        self.0.append(&mut other.0);
    }
}

impl Drop for Wakeups {
    fn drop(&mut self) {
        wake(&self.0);
    }
}

/// Sleeps until `answer` returns a result, the deadline passes or KILL arrives. The thread that causes one of
/// these wakes the sleeper afterwards; a wake before the sleep is not lost.
fn sleep_until<T>(
    sleeper: Arc<dyn Sleeper>,
    deadline: Option<Instant>,
    kill: &KillFlag,
    answer: impl Fn() -> Option<Result<T, LockError>>,
) -> Result<T, LockError> {
    kill.set_sleeper(Some(Arc::clone(&sleeper)));
    let ended = loop {
        if let Some(answer) = answer() {
            break answer;
        }
        if let Some(level) = kill.killed() {
            break Err(LockError::Killed(level));
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            break Err(LockError::Timeout);
        }
        sleeper.sleep(deadline);
    };
    kill.set_sleeper(None);
    ended
}

/// A transaction in the lock table with all locks that it holds. Dropping it releases everything.
pub struct LockOwner {
    pub(crate) table: Arc<LockTable>,
    pub(crate) shared: Arc<Owner>,
    pub(crate) rows: Vec<RowKey>,
    /// Groups of rows that it holds in addition to `rows`.
    pub(crate) groups: Vec<GroupKey>,
    /// Number of rows that these groups hold, or that have moved out of them.
    pub(crate) grouped_rows: usize,
    /// Groups of the most recently requested rows, by index modulo 4.
    pub(crate) recent_groups: [u64; 4],
    /// Its role in its party; `None` if it is in no party.
    pub(crate) part: Option<Part>,
    /// Some names that it has released. The next transaction of the session often locks them again, and then
    /// needs neither a lookup nor a new reference count.
    pub(crate) idle_names: Vec<Arc<Name>>,
    pub(crate) depends_on: CommitSeq,
    pub(crate) has_waited: bool,
    /// Indexes in which it has ranges.
    pub(crate) ranges_in: Vec<IndexId>,
    /// True if it has inserted keys.
    pub(crate) has_points: bool,
    /// Estimated bytes of its points.
    pub(crate) point_bytes: usize,
}

impl LockOwner {
    pub(crate) fn new(table: Arc<LockTable>, trx: TrxId) -> LockOwner {
        LockOwner {
            table,
            shared: Arc::new(Owner::new(trx)),
            rows: Vec::new(),
            groups: Vec::new(),
            grouped_rows: 0,
            recent_groups: [0; 4],
            part: None,
            idle_names: Vec::new(),
            depends_on: CommitSeq(0),
            has_waited: false,
            ranges_in: Vec::new(),
            has_points: false,
            point_bytes: 0,
        }
    }
}

impl Drop for LockOwner {
    fn drop(&mut self) {
        let table = self.table.clone();
        table.release_all(self);
        debug_assert!(self.shared.wait.lock().on.is_none(), "an owner ends while it waits");
        self.leave();
    }
}

/// Keeps a released name for reuse, if there is space.
pub(crate) fn keep_idle(idle: &mut Vec<Arc<Name>>, name: Arc<Name>) {
    debug_assert!(
        !idle.iter().any(|known| Arc::ptr_eq(known, &name)),
        "an idle name is kept twice: a lock on it was held twice"
    );
    if idle.len() < IDLE_NAMES_MAX {
        idle.push(name);
    }
}

impl LockTable {
    /// Returns an empty table. `seed` keys the hash of row keys; `sleeper_of` returns the wait slot of the
    /// calling thread.
    pub fn new(seed: u64, sleeper_of: SleeperOf) -> Arc<LockTable> {
        LockTable::grouping_from(GROUPED_FROM, seed, sleeper_of)
    }

    /// Like [`LockTable::new`], but with another number of row locks after which a transaction's locks on
    /// neighbours are grouped. For tests.
    pub fn grouping_from(grouped_from: usize, seed: u64, sleeper_of: SleeperOf) -> Arc<LockTable> {
        let hasher = RandomState::with_seeds(seed, !seed, seed.rotate_left(32), 0x6c6f_636b_7321);
        Arc::new(LockTable {
            rows: Rows::new(),
            ranges: Ranges::new(&hasher),
            names: Names::new(hasher.clone()),
            graph: Mutex::new(()),
            waiting: Mutex::default(),
            last_deadlock: Mutex::default(),
            hasher,
            grouped_from,
            sleeper_of,
            counters: Counters::default(),
        })
    }

    /// Returns a new lock owner for a transaction.
    pub fn owner(self: &Arc<Self>, trx: TrxId) -> LockOwner {
        LockOwner::new(self.clone(), trx)
    }

    /// Returns the caller's wait slot.
    pub fn sleeper(&self) -> Arc<dyn Sleeper> {
        (self.sleeper_of)()
    }

    fn row_key(&self, index: IndexId, key: &[u8]) -> RowKey {
        let (last, rest) = key.split_last().unwrap_or((&0, &[]));
        RowKey { group: self.hasher.hash_one((index, rest)), index, last: *last }
    }

    /// Locks a row, or upgrades the lock on it. In rare cases two keys of one index share a lock (64-bit
    /// hash).
    pub fn lock_row(
        &self,
        owner: &mut LockOwner,
        index: IndexId,
        key: &[u8],
        mode: RowMode,
        wait: WaitLimit,
        kill: &KillFlag,
    ) -> Result<Granted, LockError> {
        let bytes = key;
        let key = self.row_key(index, bytes);
        let packing = owner.packing(key, self.grouped_from);
        let answer = self.rows.request(key, &owner.shared, mode, packing);
        let (request, predecessor) = match (answer.request, wait) {
            (Request::Blocked, WaitLimit::NoWait) => return Err(LockError::NoWait),
            (Request::Blocked, WaitLimit::For(limit)) => {
                self.wait_for_row(owner, (key, bytes), mode, limit, kill)?
            }
            (request, _) => (request, answer.predecessor),
        };
        if request == Request::Granted {
            match answer.home {
                Home::Slot => owner.rows.push(key),
                Home::Group => owner.grouped_rows += 1,
                Home::NewGroup => {
                    owner.grouped_rows += 1;
                    owner.groups.push(GroupKey::of(key));
                }
            }
            owner.shared.weight.fetch_add(1, Ordering::Relaxed);
        }
        owner.depends_on = owner.depends_on.max(CommitSeq(predecessor));
        Ok(Granted { predecessor: (predecessor != 0).then_some(CommitSeq(predecessor)) })
    }

    fn wait_for_row(
        &self,
        owner: &mut LockOwner,
        (key, bytes): (RowKey, &[u8]),
        mode: RowMode,
        limit: Duration,
        kill: &KillFlag,
    ) -> Result<(Request, u64), LockError> {
        let graph = self.begin_wait(owner);
        let on = WaitOn::Row(key);
        let shared = owner.shared.clone();
        let held = self.rows.holds(key, &shared);
        let answer = self.rows.request_or_enqueue(key, &shared, mode, || {
            shared.start_wait(on.clone(), (self.sleeper_of)());
            shared.wait.lock().key = bytes.into();
        });
        if answer.request != Request::Blocked {
            return Ok((answer.request, answer.predecessor));
        }
        debug_assert!(
            owner.part.is_none() || owner.shared.party().is_some(),
            "the session of a wait is unknown"
        );
        let request = if held { Request::Upgraded } else { Request::Granted };
        self.wait_counted(graph, owner, &on, limit, kill).map(|predecessor| (request, predecessor))
    }

    /// Waits for a queued row or range request, and counts the wait. Returns the predecessor.
    pub(crate) fn wait_counted(
        &self,
        graph: MutexGuard<'_, ()>,
        owner: &mut LockOwner,
        on: &WaitOn,
        limit: Duration,
        kill: &KillFlag,
    ) -> Result<u64, LockError> {
        owner.has_waited = true;
        let started = Instant::now();
        self.counters.row_waits.fetch_add(1, Ordering::Relaxed);
        self.counters.row_waits_current.fetch_add(1, Ordering::Relaxed);
        let waited = self.wait(graph, &owner.shared, on, started.checked_add(limit), kill);
        self.counters.row_waits_current.fetch_sub(1, Ordering::Relaxed);
        self.counters.row_wait_times.record(started.elapsed().as_nanos() as u64);
        waited
    }

    /// Registers the anonymous locks of the owner and of its session. No other wait begins while the returned
    /// guard is held.
    pub(crate) fn begin_wait(&self, owner: &mut LockOwner) -> MutexGuard<'_, ()> {
        let graph = self.graph.lock();
        owner.shared.make_names_known();
        let party = owner.shared.party().filter(|_| owner.part != Some(Part::Transaction));
        if let Some(transaction) = party.and_then(|party| party.transaction()) {
            transaction.make_names_known();
        }
        debug_assert!(owner.shared.waits_on().is_none(), "an owner that waits begins another wait");
        graph
    }

    /// Waits for a queued request. Returns the predecessor.
    fn wait(
        &self,
        graph: MutexGuard<'_, ()>,
        owner: &Arc<Owner>,
        on: &WaitOn,
        deadline: Option<Instant>,
        kill: &KillFlag,
    ) -> Result<u64, LockError> {
        let victims = self.break_cycles(owner);
        drop(graph);
        wake(&victims);
        self.waiting.lock().insert(owner.trx, Arc::clone(owner));
        let ended = Self::sleep_for_lock(owner, deadline, kill);
        self.waiting.lock().remove(&owner.trx);
        let ended = match ended {
            Ok(predecessor) => Ok(predecessor),
            Err(error) => self.give_up(owner, on, error),
        };
        debug_assert!(owner.wait.lock().on.is_none(), "a wait ends while its request is queued");
        owner.end_wait();
        ended
    }

    /// Aborts victims until the owner that begins to wait is in no cycle. Returns the sleepers to wake.
    fn break_cycles(&self, owner: &Arc<Owner>) -> Vec<Arc<Owner>> {
        let mut victims = Vec::new();
        while let Some(cycle) = graph::find_cycle(&self.rows, &self.ranges, owner) {
            self.counters.deadlocks.fetch_add(1, Ordering::Relaxed);
            let victim = graph::victim(&cycle);
            self.note_deadlock(&cycle, victim);
            victim.abort_victim();
            debug_assert!(victim.waits_on().is_none(), "the victim of a cycle goes on to wait");
            if Arc::ptr_eq(victim, owner) {
                break;
            }
            victims.push(Arc::clone(victim));
        }
        victims
    }

    fn sleep_for_lock(owner: &Owner, deadline: Option<Instant>, kill: &KillFlag) -> Result<u64, LockError> {
        let sleeper = owner.wait.lock().sleeper.clone().expect("set when the wait began");
        kill.set_waiting_since(Some(Instant::now()));
        let ended = sleep_until(sleeper, deadline, kill, || match owner.wait.lock().verdict {
            Verdict::Granted(predecessor) => Some(Ok(predecessor)),
            Verdict::Victim => Some(Err(LockError::Deadlock)),
            Verdict::Waiting => None,
        });
        kill.set_waiting_since(None);
        ended
    }

    /// Sleeps in the caller's wait slot until the time has passed or KILL arrives.
    pub fn sleep(&self, time: Duration, kill: &KillFlag) -> Result<(), LockError> {
        match sleep_until((self.sleeper_of)(), Instant::now().checked_add(time), kill, || None) {
            Err(LockError::Timeout) => Ok(()),
            ended => ended,
        }
    }

    /// Sleeps in the wait slot `own` until `is_over` returns true, for at most `look_again`; the caller then
    /// checks its condition again. A thread that changes the condition must wake the sleeper afterwards.
    pub fn sleep_until(
        &self,
        own: Arc<dyn Sleeper>,
        look_again: Duration,
        kill: &KillFlag,
        is_over: impl Fn() -> bool,
    ) -> Result<(), LockError> {
        match sleep_until(own, Instant::now().checked_add(look_again), kill, || is_over().then_some(Ok(()))) {
            Err(LockError::Timeout) => Ok(()),
            ended => ended,
        }
    }

    /// Withdraws a request, unless it was granted at the last moment.
    fn give_up(&self, owner: &Arc<Owner>, on: &WaitOn, error: LockError) -> Result<u64, LockError> {
        let (gone, granted) = match on {
            WaitOn::Row(key) => self.rows.abandon(*key, owner),
            WaitOn::Name(name) => name.abandon(owner),
            // No other request queues after it.
            WaitOn::Range(index) => (self.ranges.abandon(*index, owner), Vec::new()),
        };
        wake(&granted);
        let mut wait = owner.wait.lock();
        if let (false, Verdict::Granted(predecessor)) = (gone, wait.verdict) {
            return Ok(predecessor);
        }
        wait.on = None;
        if error == LockError::Timeout {
            self.counters.timeouts.fetch_add(1, Ordering::Relaxed);
        }
        Err(error)
    }

    /// Releases a row lock that turned out to be unnecessary (READ COMMITTED, the row does not match).
    pub fn unlock_row(&self, owner: &mut LockOwner, index: IndexId, key: &[u8]) {
        let key = self.row_key(index, key);
        if !owner.groups.is_empty()
            && let Some((is_gone, woken)) = self.rows.release_grouped(key, &owner.shared)
        {
            if is_gone {
                // A row of it was locked a moment ago, so the search from the end is short.
                let of = GroupKey::of(key);
                let at = owner.groups.iter().rposition(|&group| group == of);
                owner.groups.swap_remove(at.expect("the owner knows its groups"));
            }
            debug_assert!(owner.grouped_rows > 0, "more rows leave groups than were locked in them");
            owner.grouped_rows -= 1;
            owner.shared.weight.fetch_sub(1, Ordering::Relaxed);
            return wake(&woken);
        }
        // It was locked a moment ago, so the search from the end is short.
        if let Some(at) = owner.rows.iter().rposition(|&held| held == key) {
            owner.rows.remove(at);
            owner.shared.weight.fetch_sub(1, Ordering::Relaxed);
            wake(&self.rows.release(key, &owner.shared, None));
        }
    }

    /// Downgrades an exclusive row lock to a shared one. Nothing was changed under it.
    pub fn downgrade_row(&self, owner: &mut LockOwner, index: IndexId, key: &[u8]) {
        wake(&self.rows.downgrade(self.row_key(index, key), &owner.shared));
    }

    /// Releases all row and range locks when the transaction is ordered. Each remembers `seq` until
    /// [`LockTable::set_durable`] has passed it. Metadata locks stay. Owners that are granted a lock by this
    /// are woken when the returned value is dropped.
    pub fn release_early(&self, owner: &mut LockOwner, seq: CommitSeq) -> Wakeups {
        self.release_rows(owner, Some(seq))
    }

    fn release_rows(&self, owner: &mut LockOwner, seq: Option<CommitSeq>) -> Wakeups {
        let mut wakeups = Wakeups::default();
        for key in owner.rows.drain(..) {
            wakeups.0.append(&mut self.rows.release(key, &owner.shared, seq));
        }
        owner.rows.shrink_to(64);
        for group in std::mem::take(&mut owner.groups) {
            wakeups.0.append(&mut self.rows.release_group(group, &owner.shared, seq));
        }
        owner.grouped_rows = 0;
        owner.shared.weight.store(0, Ordering::Relaxed);
        if owner.has_claims() && owner.shared.released.load(Ordering::Relaxed) == 0 {
            wakeups.0.append(&mut self.ranges.release(&owner.shared, seq));
        }
        wakeups
    }

    /// Releases all row, range and metadata locks, at rollback or when the transaction is published. Also
    /// removes the owner's ranges and keys from the lists that others search.
    pub fn release_all(&self, owner: &mut LockOwner) {
        drop(self.release_rows(owner, None));
        if owner.has_claims() {
            self.ranges.forget(&owner.shared, &std::mem::take(&mut owner.ranges_in), owner.has_points);
            owner.has_points = false;
        }
        self.unlock_names(owner);
        debug_assert!(
            owner.row_locks() == 0 && owner.groups.is_empty(),
            "rows stay locked after their transaction"
        );
        debug_assert!(!owner.has_claims(), "ranges stay locked after their transaction");
        debug_assert_eq!(owner.names_held(), 0, "a table stays locked after its transaction");
        owner.shared.waited_for.store(false, Ordering::SeqCst);
    }

    /// Records that everything up to `seq` is durable.
    pub fn set_durable(&self, seq: CommitSeq) {
        self.rows.set_durable(seq);
        self.ranges.set_durable(seq);
    }

    /// Returns whether another owner waits, or has waited, for a lock that this transaction holds or waits
    /// for.
    pub fn waits_for(&self, owner: &LockOwner) -> bool {
        owner.shared.waited_for.load(Ordering::SeqCst)
    }

    /// Returns whether a request for [`MetadataKey::Global`] in a shared mode might have to wait. One atomic
    /// load, for callers that only poll.
    pub fn is_global_guarded(&self) -> bool {
        self.names.is_global_guarded()
    }

    /// Takes a metadata lock, or upgrades the one held.
    pub fn lock_metadata(
        &self,
        owner: &mut LockOwner,
        name: &MetadataKey,
        mode: MetadataMode,
        wait: WaitLimit,
        kill: &KillFlag,
    ) -> Result<(), LockError> {
        let mut names = owner.shared.names.lock();
        let held = names.iter().position(|t| t.name.is(name));
        match held {
            Some(at) if names[at].mode >= mode => return Ok(()),
            Some(at) => owner.shared.make_known(&mut names[at]),
            None => {
                let idle = owner.idle_names.iter().position(|known| known.is(name));
                let name = match idle {
                    Some(at) => owner.idle_names.swap_remove(at),
                    None => self.names.get(name),
                };
                let anonymous = matches!(owner.part, None | Some(Part::Transaction));
                if anonymous && name.take_anonymously(mode) {
                    names.push(Ticket { name, mode, anonymous: true });
                    return Ok(());
                }
                names.push(Ticket { name, mode, anonymous: false });
            }
        }
        let at = held.unwrap_or(names.len() - 1);
        let lock = names[at].name.clone();
        drop(names);
        let taken = self.take_name(owner, &lock, mode, wait, kill);
        let mut names = owner.shared.names.lock();
        match (taken, held) {
            (Ok(()), _) => {
                debug_assert!(
                    names[at].name.is(name) && !names[at].anonymous,
                    "a lock is noted for another name"
                );
                names[at].mode = mode;
            }
            (Err(_), None) => {
                let gone = names.pop();
                debug_assert!(
                    gone.is_some_and(|ticket| ticket.name.is(name)),
                    "another lock's ticket is lost"
                );
            }
            (Err(_), Some(_)) => {}
        }
        drop(names);
        if taken.is_ok() {
            owner.note_server(name, Some(mode));
        }
        taken
    }

    /// Takes a mode through the queue of the name; waits if it must.
    fn take_name(
        &self,
        owner: &mut LockOwner,
        name: &Arc<Name>,
        mode: MetadataMode,
        wait: WaitLimit,
        kill: &KillFlag,
    ) -> Result<(), LockError> {
        let shared = owner.shared.clone();
        if name.request(&shared, mode, None::<fn()>) != Request::Blocked {
            return Ok(());
        }
        let WaitLimit::For(limit) = wait else { return Err(LockError::NoWait) };
        let graph = self.begin_wait(owner);
        let on = WaitOn::Name(name.clone());
        if name.request(&shared, mode, Some(|| shared.start_wait(on.clone(), (self.sleeper_of)())))
            != Request::Blocked
        {
            return Ok(());
        }
        self.wait(graph, &shared, &on, Instant::now().checked_add(limit), kill).map(|_| ())
    }

    /// Returns whether the owner holds the metadata lock in this mode or a stronger one.
    pub fn has_name(&self, owner: &LockOwner, name: &MetadataKey, mode: MetadataMode) -> bool {
        owner.shared.names.lock().iter().any(|ticket| ticket.name.is(name) && ticket.mode >= mode)
    }

    /// Downgrades an exclusive metadata lock. Returns false if the owner has no exclusive lock on the name.
    pub fn downgrade_metadata(&self, owner: &mut LockOwner, name: &MetadataKey, mode: MetadataMode) -> bool {
        let is_it = |t: &&mut Ticket| t.name.is(name) && t.mode == MetadataMode::Exclusive;
        let mut names = owner.shared.names.lock();
        let Some(ticket) = names.iter_mut().find(is_it) else { return false };
        debug_assert!(!ticket.anonymous, "an exclusive lock is in the queue");
        debug_assert!(mode < MetadataMode::Exclusive, "an exclusive lock stays exclusive");
        ticket.mode = mode;
        wake(&ticket.name.downgrade(&owner.shared, mode));
        true
    }

    /// Releases one metadata lock.
    pub fn unlock_name(&self, owner: &mut LockOwner, name: &MetadataKey) {
        owner.note_server(name, None);
        let mut names = owner.shared.names.lock();
        let Some(at) = names.iter().position(|t| t.name.is(name)) else { return };
        let ticket = names.swap_remove(at);
        drop(names);
        Self::unlock_ticket(&owner.shared, &ticket);
    }

    /// Releases the most recently taken metadata locks, until `held` are left.
    pub fn unlock_names_after(&self, owner: &mut LockOwner, held: usize) {
        let mut names = owner.shared.names.lock();
        while names.len() > held
            && let Some(ticket) = names.pop()
        {
            Self::unlock_ticket(&owner.shared, &ticket);
        }
    }

    /// Releases all metadata locks, but no row locks.
    pub fn unlock_names(&self, owner: &mut LockOwner) {
        owner.note_server(&MetadataKey::Global, None);
        let LockOwner { shared, idle_names, .. } = owner;
        let mut names = shared.names.lock();
        while let Some(ticket) = names.pop() {
            Self::unlock_ticket(shared, &ticket);
            keep_idle(idle_names, ticket.name);
        }
    }

    fn unlock_ticket(owner: &Arc<Owner>, ticket: &Ticket) {
        wake(&match ticket.anonymous {
            true => ticket.name.leave_anonymously(ticket.mode),
            false => ticket.name.release(owner),
        });
    }

    /// Returns a histogram of the durations of row lock waits in nanoseconds, whatever their outcome.
    pub fn row_wait_times(&self) -> HistogramSnapshot {
        self.counters.row_wait_times.snapshot()
    }

    /// Returns the counters.
    pub fn stats(&self) -> LockStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LockStats {
            row_waits: get(&self.counters.row_waits),
            row_waits_current: get(&self.counters.row_waits_current),
            row_wait_us_total: self.counters.row_wait_times.sum() / 1000,
            row_wait_us_max: self.counters.row_wait_times.max() / 1000,
            deadlocks: get(&self.counters.deadlocks),
            timeouts: get(&self.counters.timeouts),
            rows: self.rows.len() as u64,
            row_table_bytes: self.rows.table_bytes() as u64,
            range_holders: self.ranges.len() as u64,
        }
    }
}
