//! Current lock waits and the last deadlock, for reports to users.

use std::time::{Duration, Instant};

use cohort_base::{IndexId, TrxId};

use crate::mode::{MetadataKey, RowMode};

/// The lock that an owner waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitedFor {
    /// A row: an index, a key in it and the hash of that.
    Row {
        index: IndexId,
        hash: u64,
        key: Box<[u8]>,
        mode: RowMode,
    },
    Name(MetadataKey),
    Range {
        index: IndexId,
        wish: RangeWish,
    },
}

/// The request of an owner that waits for a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeWish {
    /// Insert a key into a range that others have locked.
    Put,
    /// Lock a range beyond another owner's uncommitted key.
    Pass,
}

/// An owner that waits, and the owners that block it.
#[derive(Clone, Debug)]
pub struct LockWait {
    pub trx: TrxId,
    pub waited: Duration,
    pub lock: WaitedFor,
    /// Blocking owners, with their mode if the lock is a row. Holders of a metadata lock that are still
    /// anonymous (`names.rs`) are missing.
    pub blockers: Vec<(TrxId, Option<RowMode>)>,
}

/// A cycle that was broken.
#[derive(Clone, Debug)]
pub struct Deadlock {
    pub at: Instant,
    /// Each member waits for the next one, the last one for the first.
    pub members: Vec<DeadlockMember>,
    pub victim: TrxId,
}

/// A transaction in a deadlock.
#[derive(Clone, Debug)]
pub struct DeadlockMember {
    pub trx: TrxId,
    /// `None` if the wait ended at that moment.
    pub lock: Option<WaitedFor>,
}
