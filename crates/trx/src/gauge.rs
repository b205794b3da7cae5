//! [`TrxGauge`]: a session's transaction as other sessions see it. Its session writes, lists read.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use cohort_base::{CommitSeq, TrxId, add_alone};

use crate::settings::{AccessMode, Isolation};

/// Of one connection.
#[derive(Debug, Default)]
pub struct TrxGauge {
    /// 0 when no transaction runs; written last when one begins.
    trx: AtomicU64,
    /// `Clock::wall_us` when the command began that began the transaction.
    began_us: AtomicU64,
    command_us: AtomicU64,
    isolation: AtomicU8,
    reads_only: AtomicBool,
    rows_locked: AtomicU64,
    rows_changed: AtomicU64,
    /// The session's newest commit.
    committed: AtomicU64,
}

/// A running transaction.
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

impl TrxGauge {
    /// A command begins.
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

    /// The transaction has ended, and has its place.
    pub(crate) fn committed(&self, seq: CommitSeq) {
        self.committed.store(seq.0, Ordering::Relaxed);
        self.end();
    }

    /// The place of the newest transaction that has ended with one.
    pub fn last_commit(&self) -> CommitSeq {
        CommitSeq(self.committed.load(Ordering::Relaxed))
    }

    pub(crate) fn locked(&self, rows: usize) {
        self.rows_locked.store(rows as u64, Ordering::Relaxed);
    }

    pub(crate) fn changed_row(&self) {
        add_alone(&self.rows_changed, 1);
    }

    /// The transaction that runs, if one does.
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
