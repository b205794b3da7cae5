//! [`Sequences`]: the numbers that are reserved.

use std::collections::HashMap;

use cohort_base::{CommitSeq, IndexId};
use parking_lot::Mutex;

use super::definition::{Next, Numbers};

/// What of sequences all sessions share, by clustered key space.
///
/// A lock of it is held for a moment only; nobody waits under it.
#[derive(Default)]
pub struct Sequences(Mutex<HashMap<IndexId, Shared>>);

#[derive(Clone, Copy)]
pub(super) struct Shared {
    pub(super) numbers: Numbers,
    /// The transaction that has reserved them.
    pub(super) reserved_by: CommitSeq,
}

impl Sequences {
    /// The row was written by somebody else, or is gone: it is read again.
    pub fn forget(&self, space: IndexId) {
        self.0.lock().remove(&space);
    }

    /// A number that was reserved, and by whom.
    pub(super) fn take_reserved(&self, space: IndexId) -> Option<(i64, CommitSeq)> {
        let mut all = self.0.lock();
        let shared = all.get_mut(&space)?;
        let mut numbers = shared.numbers;
        let Next::Reserved(number) = numbers.take() else { return None };
        shared.numbers = numbers;
        Some((number, shared.reserved_by))
    }

    /// Shows the numbers, or these if none are known, to `use_them`.
    pub(super) fn with<R>(
        &self,
        space: IndexId,
        read: Option<Shared>,
        use_them: impl FnOnce(&mut Shared) -> R,
    ) -> Option<R> {
        let mut all = self.0.lock();
        let shared = match read {
            Some(read) => all.entry(space).or_insert(read),
            None => all.get_mut(&space)?,
        };
        Some(use_them(shared))
    }

    /// The numbers as they are now.
    pub(crate) fn numbers(&self, space: IndexId) -> Option<Numbers> {
        self.0.lock().get(&space).map(|shared| shared.numbers)
    }

    /// Numbers that were reserved, unless those of a later reservation are there by now: then these are lost.
    pub(super) fn add(&self, space: IndexId, shared: Shared) {
        let mut all = self.0.lock();
        let known = all.entry(space).or_insert(shared);
        if known.reserved_by < shared.reserved_by {
            *known = shared;
        }
    }
}
