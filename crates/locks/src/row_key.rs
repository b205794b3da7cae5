//! Identities of rows in the lock table.

use cohort_base::IndexId;

/// Identity of a row in the lock table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowKey {
    /// Hash of the key without its last byte.
    pub group: u64,
    pub index: IndexId,
    /// The last byte of the key.
    pub last: u8,
}

impl RowKey {
    /// Returns the hash of the whole key.
    pub fn hash(self) -> u64 {
        self.group ^ u64::from(self.last).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// Identifies the keys that differ only in their last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupKey {
    pub hash: u64,
    index: IndexId,
}

impl GroupKey {
    pub fn of(key: RowKey) -> GroupKey {
        GroupKey { hash: key.group, index: key.index }
    }

    pub fn row(self, last: u8) -> RowKey {
        RowKey { group: self.hash, index: self.index, last }
    }
}
