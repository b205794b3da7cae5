//! [`TrxStats`]: transaction statistics of a session for other sessions. Written by the session, read by
//! lists.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use cohort_base::{CommitSeq, TrxId, add_alone};

use crate::settings::{AccessMode, Isolation};

/// Transaction statistics of one connection.
#[derive(Debug, Default)]
pub struct TrxStats {
    /// 0 if no transaction runs. Written last when one begins.
    trx: AtomicU64,
    /// `Clock::wall_us` at the start of the command that began the transaction.
    began_us: AtomicU64,
    command_us: AtomicU64,
    isolation: AtomicU8,
    reads_only: AtomicBool,
    rows_locked: AtomicU64,
    rows_changed: AtomicU64,
    /// Newest commit of the session.
    committed: AtomicU64,
}

/// Statistics of a running transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrxSnapshot {
    pub trx: TrxId,
    pub began_us: u64,
    pub isolation: Isolation,
    pub access_mode: AccessMode,
    pub rows_locked: u64,
    pub rows_changed: u64,
}

const LEVELS: [Isolation; 4] = [
    Isolation::ReadUncommitted,
    Isolation::ReadCommitted,
    Isolation::RepeatableRead,
    Isolation::Serializable,
];

impl TrxStats {
    /// Records the start of a command.
    #[inline]
    pub fn command(&self, now_us: u64) {
        self.command_us.store(now_us, Ordering::Relaxed);
    }

    pub(crate) fn begin(&self, trx: TrxId, isolation: Isolation, access_mode: AccessMode) {
        self.began_us.store(self.command_us.load(Ordering::Relaxed), Ordering::Relaxed);
        self.isolation.store(isolation as u8, Ordering::Relaxed);
        self.reads_only.store(access_mode == AccessMode::ReadOnly, Ordering::Relaxed);
        self.rows_locked.store(0, Ordering::Relaxed);
        self.rows_changed.store(0, Ordering::Relaxed);
        self.trx.store(trx.0, Ordering::Release);
    }

    pub(crate) fn end(&self) {
        self.trx.store(0, Ordering::Release);
    }

    /// Records the end of a transaction that was ordered.
    pub(crate) fn committed(&self, seq: CommitSeq) {
        self.committed.store(seq.0, Ordering::Relaxed);
        self.end();
    }

    /// Returns the CommitSeq of the newest transaction that ended with one.
    pub fn last_commit(&self) -> CommitSeq {
        CommitSeq(self.committed.load(Ordering::Relaxed))
    }

    pub(crate) fn locked(&self, rows: usize) {
        self.rows_locked.store(rows as u64, Ordering::Relaxed);
    }

    pub(crate) fn changed_row(&self) {
        add_alone(&self.rows_changed, 1);
    }

    /// Returns the running transaction, if there is one.
    pub fn snapshot(&self) -> Option<TrxSnapshot> {
        let trx = self.trx.load(Ordering::Acquire);
        (trx != 0).then(|| TrxSnapshot {
            trx: TrxId(trx),
            began_us: self.began_us.load(Ordering::Relaxed),
            isolation: LEVELS[usize::from(self.isolation.load(Ordering::Relaxed)).min(LEVELS.len() - 1)],
            access_mode: match self.reads_only.load(Ordering::Relaxed) {
                true => AccessMode::ReadOnly,
                false => AccessMode::ReadWrite,
            },
            rows_locked: self.rows_locked.load(Ordering::Relaxed),
            rows_changed: self.rows_changed.load(Ordering::Relaxed),
        })
    }
}
