//! The part of lock owners (transactions) that other threads see, and their waits.

use std::sync::Arc;
use std::time::Instant;

use cohort_base::{IndexId, TrxId};

use crate::names::{Name, Ticket};
use crate::party::{Part, Party};
use crate::points::Claims;
use crate::row_key::RowKey;
use crate::sleep::Sleeper;
use crate::sync::{AtomicBool, AtomicU64, Mutex};

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
    /// Names that it has locked. Changed only by the thread of its session, possibly on behalf of another
    /// owner of that session; reports read it.
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
    /// The key of the row that the owner waits for, for reports.
    pub key: Box<[u8]>,
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
    pub fn new(trx: TrxId) -> Owner {
        Owner {
            trx,
            weight: AtomicU64::new(0),
            waited_for: AtomicBool::new(false),
            released: AtomicU64::new(0),
            range_bytes: AtomicU64::new(0),
            claims: Mutex::default(),
            wait: Mutex::new(Wait {
                on: None,
                verdict: Verdict::Waiting,
                since: None,
                sleeper: None,
                key: Box::default(),
            }),
            party: Mutex::new(None),
            names: Mutex::default(),
        }
    }

    /// Begins a wait of the owner and of its party. The caller holds the graph mutex.
    pub fn start_wait(self: &Arc<Owner>, on: WaitOn, sleeper: Arc<dyn Sleeper>) {
        let since = Some(Instant::now());
        debug_assert!(self.wait.lock().on.is_none(), "an owner waits for one lock at a time");
        *self.wait.lock() = Wait {
            on: Some(on),
            verdict: Verdict::Waiting,
            since,
            sleeper: Some(sleeper),
            key: Box::default(),
        };
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
