//! Lock owners (transactions), their waits, and KILL.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cohort_base::{CommitSeq, IndexId, TrxId};

use crate::LockTable;
use crate::groups::{GroupKey, Packing};
use crate::mode::{MetadataKey, MetadataMode};
use crate::names::{Name, Ticket};
use crate::party::{Part, Party};
use crate::ranges::Claims;
use crate::rows::RowKey;
use crate::sleep::Sleeper;
use crate::sync::{AtomicBool, AtomicU8, AtomicU64, Mutex, Ordering};

/// Maximum number of released names that an owner keeps for reuse.
const IDLE_NAMES_MAX: usize = 8;

/// Estimated bytes of a row lock, and of a group of row locks.
const ROW_BYTES: usize = 200;
const GROUP_BYTES: usize = 250;

/// The part of an owner that other threads see. Holders and waiters in the queues are pointers to it.
pub(crate) struct Owner {
    pub trx: TrxId,
    /// Rollback cost, for the choice of a deadlock victim: row locks held and rows changed. Written only by
    /// the owner's thread.
    pub weight: AtomicU64,
    /// True once another owner has waited for a lock that this owner holds or waits for. While false, the
    /// owner is in no cycle. Set by the waiter, cleared when all locks are released.
    pub waited_for: AtomicBool,
    /// 0 while active; afterwards the CommitSeq with which its points and ranges were released, or
    /// [`ENDED`](crate::ranges::ENDED).
    pub released: AtomicU64,
    /// Estimated bytes of its ranges. Updated by wrapping additions, also when the ranges shrink.
    pub range_bytes: AtomicU64,
    /// Keys that it has inserted.
    pub claims: Mutex<Claims>,
    /// The innermost lock of an owner; only a party's `waiting` is locked after it.
    pub wait: Mutex<Wait>,
    /// The session that it belongs to, and its role there.
    pub party: Mutex<Option<(Arc<Party>, Part)>>,
    /// Names that it has locked. Accessed only by the thread of its session, possibly on behalf of another
    /// owner of that session.
    pub names: Mutex<Vec<Ticket>>,
}

/// State of an owner's wait. An owner waits for one lock at a time.
pub(crate) struct Wait {
    pub on: Option<WaitOn>,
    pub verdict: Verdict,
    /// Start of the wait. `None` if the owner has never waited.
    pub since: Option<Instant>,
    /// Wait slot of the owner. Kept until its next wait, so that a late wake has a target.
    pub sleeper: Option<Arc<dyn Sleeper>>,
}

/// The lock that an owner waits for.
#[derive(Clone)]
pub(crate) enum WaitOn {
    Row(RowKey),
    Name(Arc<Name>),
    /// A range of this index, or the insertion of a key into one.
    Range(IndexId),
}

/// Outcome of a wait. `Granted` wins over `Victim`: once the lock is granted, the cycle no longer exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Waiting,
    /// With the predecessor, 0 if none.
    Granted(u64),
    Victim,
}

impl Owner {
    fn new(trx: TrxId) -> Owner {
        Owner {
            trx,
            weight: AtomicU64::new(0),
            waited_for: AtomicBool::new(false),
            released: AtomicU64::new(0),
            range_bytes: AtomicU64::new(0),
            claims: Mutex::default(),
            wait: Mutex::new(Wait { on: None, verdict: Verdict::Waiting, since: None, sleeper: None }),
            party: Mutex::new(None),
            names: Mutex::default(),
        }
    }

    /// Begins a wait of the owner and of its party. The caller holds the graph mutex.
    pub fn start_wait(self: &Arc<Owner>, on: WaitOn, sleeper: Arc<dyn Sleeper>) {
        let since = Some(Instant::now());
        debug_assert!(self.wait.lock().on.is_none(), "an owner waits for one lock at a time");
        *self.wait.lock() = Wait { on: Some(on), verdict: Verdict::Waiting, since, sleeper: Some(sleeper) };
        if let Some(party) = self.party() {
            party.set_waiting(Some(Arc::clone(self)));
        }
    }

    /// Ends the party's wait; the thread continues.
    pub fn end_wait(&self) {
        if let Some(party) = self.party() {
            party.set_waiting(None);
        }
    }

    /// Ends the wait with a grant. The caller wakes the owner after it has released its own mutexes.
    pub fn grant(&self, predecessor: u64) {
        let mut wait = self.wait.lock();
        debug_assert!(wait.on.is_some(), "a lock is granted to an owner that does not wait");
        debug_assert!(!matches!(wait.verdict, Verdict::Granted(_)), "a request is granted twice");
        debug_assert!(wait.sleeper.is_some(), "an owner waits where no wake reaches it");
        wait.on = None;
        wait.verdict = Verdict::Granted(predecessor);
    }

    /// Wakes the owner, which then checks the verdict. The caller holds no lock.
    pub fn wake(&self) {
        let sleeper = self.wait.lock().sleeper.clone();
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }

    /// Aborts the wait as a deadlock victim, unless it has just ended otherwise. The caller wakes the owner.
    pub fn abort_victim(&self) {
        let mut wait = self.wait.lock();
        if wait.on.is_some() && wait.verdict == Verdict::Waiting {
            wait.verdict = Verdict::Victim;
        }
    }

    /// Returns the lock that it waits for, if its wait has not been decided.
    pub fn waits_on(&self) -> Option<WaitOn> {
        let wait = self.wait.lock();
        if wait.verdict == Verdict::Waiting { wait.on.clone() } else { None }
    }
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
    recent_groups: [u64; 4],
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

    /// Returns whether it had to wait for a row lock (the GTID flag WAITED).
    pub fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// Returns the number of metadata locks that it holds.
    pub fn names_held(&self) -> usize {
        self.shared.names.lock().len()
    }

    /// Returns whether it holds no row or range locks, has no dependency and has never waited. Then another
    /// transaction may reuse it.
    pub fn is_as_new(&self) -> bool {
        let has_locks = self.row_locks() > 0 || self.has_claims();
        !has_locks && self.depends_on == CommitSeq(0) && !self.has_waited
    }

    /// Returns whether it has inserted keys or locked ranges.
    pub(crate) fn has_claims(&self) -> bool {
        self.has_points || !self.ranges_in.is_empty()
    }

    /// Returns the estimated bytes of its keys and ranges.
    pub fn claim_bytes(&self) -> usize {
        self.point_bytes + self.shared.range_bytes.load(Ordering::Relaxed) as usize
    }

    /// Chooses where to store a new row lock: in a group if the previous request was for a neighbour.
    pub(crate) fn packing(&mut self, key: RowKey, grouped_from: usize) -> Packing {
        if self.rows.len() < grouped_from {
            return Packing::Apart;
        }
        let recent = &mut self.recent_groups[key.index.0 as usize % 4];
        match std::mem::replace(recent, key.group) == key.group {
            true => Packing::Grouped,
            false => Packing::Apart,
        }
    }

    /// Returns the transaction id.
    pub fn trx(&self) -> TrxId {
        self.shared.trx
    }

    /// Returns the newest predecessor of all locks taken (I8), `CommitSeq(0)` if none.
    pub fn depends_on(&self) -> CommitSeq {
        self.depends_on
    }

    /// Returns the estimated bytes of its row locks.
    pub fn row_lock_bytes(&self) -> usize {
        self.rows.len() * ROW_BYTES + self.groups.len() * GROUP_BYTES
    }

    /// Takes over the dependencies of another owner without taking its locks (I8).
    pub fn inherit_from(&mut self, other: &LockOwner) {
        debug_assert!(!Arc::ptr_eq(&self.shared, &other.shared), "an owner inherits from itself");
        self.depends_on = self.depends_on.max(other.depends_on);
        self.has_waited |= other.has_waited;
    }

    /// Returns the names that it has locked, with their modes.
    pub fn held_names(&self) -> Vec<(MetadataKey, MetadataMode)> {
        self.shared.names.lock().iter().map(|ticket| (ticket.name.key().clone(), ticket.mode)).collect()
    }

    /// Returns the number of row locks that it holds.
    pub fn row_locks(&self) -> usize {
        self.rows.len() + self.grouped_rows
    }

    /// Returns an upper bound of the entries that a release must visit.
    pub fn release_steps(&self) -> usize {
        self.row_locks() + self.groups.len()
    }

    /// Adds changed rows to the rollback cost, which decides on the victim of a deadlock.
    pub fn add_weight(&mut self, rows: u64) {
        self.shared.weight.fetch_add(rows, Ordering::Relaxed);
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

impl Drop for LockOwner {
    fn drop(&mut self) {
        let table = self.table.clone();
        table.release_all(self);
        debug_assert!(self.shared.wait.lock().on.is_none(), "an owner ends while it waits");
        self.leave();
    }
}

/// Scope of a KILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KillLevel {
    /// `KILL QUERY`: the running statement.
    Query,
    /// `KILL`: the connection.
    Connection,
}

/// KILL flag of a session. KILL sets it and wakes the statement if it sleeps; the statement checks it. Clones
/// share one flag.
#[derive(Clone, Default)]
pub struct KillFlag {
    inner: Arc<KillInner>,
}

#[derive(Default)]
struct KillInner {
    /// 0, or 1 + level.
    level: AtomicU8,
    /// Wait slot in which the statement sleeps now.
    sleeper: Mutex<Option<Arc<dyn Sleeper>>>,
    /// Start of the current lock wait, if there is one.
    waiting_since: Mutex<Option<Instant>>,
}

impl KillFlag {
    /// Sets the flag and wakes the sleeper. A higher level replaces a lower one.
    pub fn kill(&self, level: KillLevel) {
        self.inner.level.fetch_max(1 + level as u8, Ordering::SeqCst);
        let sleeper = self.inner.sleeper.lock().clone();
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }

    /// Returns the level of the kill, if any.
    pub fn killed(&self) -> Option<KillLevel> {
        match self.inner.level.load(Ordering::SeqCst) {
            0 => None,
            1 => Some(KillLevel::Query),
            _ => Some(KillLevel::Connection),
        }
    }

    /// Clears a `KILL QUERY`, at the start of the next statement.
    pub fn clear_query(&self) {
        let query = 1 + KillLevel::Query as u8;
        // Fails if there was none, or if the connection was killed: that kill stays.
        let _ = self.inner.level.compare_exchange(query, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Returns how long the statement has been waiting for a lock, `None` if it does not wait.
    pub fn waited_for_lock(&self) -> Option<Duration> {
        self.inner.waiting_since.lock().map(|since| since.elapsed())
    }

    /// Records that a lock wait begins or ends.
    pub(crate) fn set_waiting_since(&self, since: Option<Instant>) {
        *self.inner.waiting_since.lock() = since;
    }

    /// Registers the wait slot before the statement sleeps. The statement checks [`KillFlag::killed`]
    /// afterwards.
    pub(crate) fn set_sleeper(&self, sleeper: Option<Arc<dyn Sleeper>>) {
        *self.inner.sleeper.lock() = sleeper;
    }
}
