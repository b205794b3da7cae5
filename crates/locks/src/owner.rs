//! Transactions as the lock table knows them, and KILL.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cohort_base::{CommitSeq, IndexId, TrxId};

use crate::LockTable;
use crate::groups::{GroupKey, Packing};
use crate::mode::{MetadataMode, NameKey};
use crate::names::{Name, Ticket};
use crate::party::{Part, Party};
use crate::ranges::Claims;
use crate::rows::RowKey;
use crate::sleep::Sleeper;
use crate::sync::{AtomicBool, AtomicU8, AtomicU64, Mutex, Ordering};

/// Names that an owner keeps when it has given them back.
const IDLE_NAMES_MAX: usize = 8;

/// What a row lock takes in the lock table, and a group of them.
const ROW_BYTES: usize = 200;
const GROUP_BYTES: usize = 250;

/// The part of an owner that others see: holders and waiters in the queues are pointers to it.
pub(crate) struct Owner {
    pub trx: TrxId,
    /// What a rollback would undo: row locks held and rows changed. Written by the owner's thread.
    pub weight: AtomicU64,
    /// Somebody has waited for a lock that this owner holds or waits for. If nobody has, it is in no cycle.
    /// Set by the waiter, cleared when all locks go.
    pub waited_for: AtomicBool,
    /// 0 while it is active; then the CommitSeq with which its points and ranges were released, or
    /// [`ENDED`](crate::ranges::ENDED).
    pub released: AtomicU64,
    /// What its ranges take in memory; wraps when they shrink.
    pub range_bytes: AtomicU64,
    /// The keys that it has put.
    pub claims: Mutex<Claims>,
    /// Innermost of its own locks; a party's `waiting` comes after it.
    pub wait: Mutex<Wait>,
    /// The session that it belongs to, and its part there.
    pub party: Mutex<Option<(Arc<Party>, Part)>>,
    /// The names that it has locked. Its own thread alone looks at them, also by another owner of the
    /// session.
    pub names: Mutex<Vec<Ticket>>,
}

/// An owner's wait. An owner waits for one lock at a time.
pub(crate) struct Wait {
    pub on: Option<WaitOn>,
    pub verdict: Verdict,
    /// When it began; None: it has never waited.
    pub since: Option<Instant>,
    /// Where the owner sleeps while it waits; kept until its next wait, so that a late wake finds somebody.
    pub sleeper: Option<Arc<dyn Sleeper>>,
}

/// The lock waited for.
#[derive(Clone)]
pub(crate) enum WaitOn {
    Row(RowKey),
    Name(Arc<Name>),
    /// A range, or a key in one, of this key space.
    Range(IndexId),
}

/// How the wait stands. `Granted` wins over `Victim`: once the lock is there, the cycle is gone.
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

    /// Begins a wait, which is the party's too. The caller holds the graph's mutex.
    pub fn start_wait(self: &Arc<Owner>, on: WaitOn, sleeper: Arc<dyn Sleeper>) {
        let since = Some(Instant::now());
        *self.wait.lock() = Wait { on: Some(on), verdict: Verdict::Waiting, since, sleeper: Some(sleeper) };
        if let Some(party) = self.party() {
            party.set_waiting(Some(Arc::clone(self)));
        }
    }

    /// The wait is over, and its thread goes on.
    pub fn end_wait(&self) {
        if let Some(party) = self.party() {
            party.set_waiting(None);
        }
    }

    /// Ends the wait well. The caller wakes the owner once it has left its own locks.
    pub fn grant(&self, predecessor: u64) {
        let mut wait = self.wait.lock();
        wait.on = None;
        wait.verdict = Verdict::Granted(predecessor);
    }

    /// Wakes the owner, which looks at the verdict then. The caller holds no lock.
    pub fn wake(&self) {
        let sleeper = self.wait.lock().sleeper.clone();
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }

    /// Ends the wait as a deadlock's victim, unless it has just ended otherwise. The caller wakes the owner.
    pub fn condemn(&self) {
        let mut wait = self.wait.lock();
        if wait.on.is_some() && wait.verdict == Verdict::Waiting {
            wait.verdict = Verdict::Victim;
        }
    }

    /// What it waits for, if it does and will go on doing so.
    pub fn waits_on(&self) -> Option<WaitOn> {
        let wait = self.wait.lock();
        if wait.verdict == Verdict::Waiting { wait.on.clone() } else { None }
    }
}

/// A transaction as the lock table knows it, and all it holds. Releases everything when dropped.
pub struct LockOwner {
    pub(crate) table: Arc<LockTable>,
    pub(crate) shared: Arc<Owner>,
    pub(crate) rows: Vec<RowKey>,
    /// Groups of rows that it has beside those.
    pub(crate) groups: Vec<GroupKey>,
    /// Rows that it has in them, or moved out of them.
    pub(crate) grouped_rows: usize,
    /// The groups of the rows that were asked for last, by index.
    recent_groups: [u64; 4],
    /// Its part in its party; None: it is in none.
    pub(crate) part: Option<Part>,
    /// Some names that were given back: the next transaction of the session often wants them again, and need
    /// neither look for them nor count a reference to them.
    pub(crate) idle_names: Vec<Arc<Name>>,
    pub(crate) depends_on: CommitSeq,
    pub(crate) has_waited: bool,
    /// Key spaces where it has ranges.
    pub(crate) ranges_in: Vec<IndexId>,
    /// Whether it has put keys.
    pub(crate) has_points: bool,
    /// Bytes of its points, roughly.
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

    /// Whether it had to wait for a row lock: the GTID flag WAITED.
    pub fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// How many metadata locks it holds.
    pub fn names_held(&self) -> usize {
        self.shared.names.lock().len()
    }

    /// Whether it holds no row or range locks and never had to do with others: then another transaction may
    /// use it.
    pub fn is_as_new(&self) -> bool {
        let has_locks = self.row_locks() > 0 || self.has_claims();
        !has_locks && self.depends_on == CommitSeq(0) && !self.has_waited
    }

    /// Whether it has put keys or locked ranges.
    pub(crate) fn has_claims(&self) -> bool {
        self.has_points || !self.ranges_in.is_empty()
    }

    /// Bytes that its keys and ranges take, roughly.
    pub fn claim_bytes(&self) -> usize {
        self.point_bytes + self.shared.range_bytes.load(Ordering::Relaxed) as usize
    }

    /// How to keep a lock on a row, if it is new: with its neighbour, which was asked for right before.
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

    /// The transaction.
    pub fn trx(&self) -> TrxId {
        self.shared.trx
    }

    /// The newest predecessor of all row locks taken (I8); `CommitSeq(0)` if none.
    pub fn depends_on(&self) -> CommitSeq {
        self.depends_on
    }

    /// Bytes that its row locks take, roughly.
    pub fn row_lock_bytes(&self) -> usize {
        self.rows.len() * ROW_BYTES + self.groups.len() * GROUP_BYTES
    }

    /// Comes behind what another owner came behind, whose locks it does not get (I8).
    pub fn inherit_from(&mut self, other: &LockOwner) {
        self.depends_on = self.depends_on.max(other.depends_on);
        self.has_waited |= other.has_waited;
    }

    /// The names that it has locked.
    pub fn held_names(&self) -> Vec<(NameKey, MetadataMode)> {
        self.shared.names.lock().iter().map(|ticket| (ticket.name.key().clone(), ticket.mode)).collect()
    }

    /// Number of row locks held.
    pub fn row_locks(&self) -> usize {
        self.rows.len() + self.grouped_rows
    }

    /// What a release has to go through, at most.
    pub fn release_steps(&self) -> usize {
        self.row_locks() + self.groups.len()
    }

    /// Adds to the weight that decides which transaction of a deadlock is rolled back: rows changed.
    pub fn add_weight(&mut self, rows: u64) {
        self.shared.weight.fetch_add(rows, Ordering::Relaxed);
    }
}

/// Keeps the lock of a name that was given back, if there is room.
pub(crate) fn keep_idle(idle: &mut Vec<Arc<Name>>, name: Arc<Name>) {
    if idle.len() < IDLE_NAMES_MAX {
        idle.push(name);
    }
}

impl Drop for LockOwner {
    fn drop(&mut self) {
        let table = self.table.clone();
        table.release_all(self);
        self.leave();
    }
}

/// What KILL ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KillLevel {
    /// `KILL QUERY`: the running statement.
    Query,
    /// `KILL`: the connection.
    Connection,
}

/// Set by KILL, looked at by the statement; wakes it if it sleeps. Cloning shares it.
#[derive(Clone, Default)]
pub struct KillFlag {
    inner: Arc<KillInner>,
}

#[derive(Default)]
struct KillInner {
    /// 0, or 1 + level.
    level: AtomicU8,
    /// Where the statement sleeps now.
    sleeper: Mutex<Option<Arc<dyn Sleeper>>>,
    /// Since when it waits for a lock, if it does.
    waiting_since: Mutex<Option<Instant>>,
}

impl KillFlag {
    /// Kills; wakes the sleeper. A higher level replaces a lower one.
    pub fn kill(&self, level: KillLevel) {
        self.inner.level.fetch_max(1 + level as u8, Ordering::SeqCst);
        let sleeper = self.inner.sleeper.lock().clone();
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }

    /// What was killed.
    pub fn killed(&self) -> Option<KillLevel> {
        match self.inner.level.load(Ordering::SeqCst) {
            0 => None,
            1 => Some(KillLevel::Query),
            _ => Some(KillLevel::Connection),
        }
    }

    /// Forgets a `KILL QUERY`, at the start of the next statement.
    pub fn clear_query(&self) {
        let query = 1 + KillLevel::Query as u8;
        // It fails when there was none, or when the connection was killed: that stays.
        let _ = self.inner.level.compare_exchange(query, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// How long the statement has been waiting for a lock; `None` when it is not.
    pub fn waited_for_lock(&self) -> Option<Duration> {
        self.inner.waiting_since.lock().map(|since| since.elapsed())
    }

    /// A wait for a lock begins, or ends.
    pub(crate) fn set_waiting_since(&self, since: Option<Instant>) {
        *self.inner.waiting_since.lock() = since;
    }

    /// Says where the statement is going to sleep; it looks at [`KillFlag::killed`] afterwards.
    pub(crate) fn set_sleeper(&self, sleeper: Option<Arc<dyn Sleeper>>) {
        *self.inner.sleeper.lock() = sleeper;
    }
}
