//! Reserved sequence numbers ([`Sequences`]).

use std::collections::HashMap;

use cohort_base::{CommitSeq, IndexId};
use parking_lot::Mutex;

use super::definition::{Next, Numbers};

/// The state of sequences that all sessions share, by clustered index.
///
/// The lock is held only briefly; no thread waits while it holds it.
#[derive(Default)]
pub struct Sequences(Mutex<HashMap<IndexId, Shared>>);

#[derive(Clone, Copy)]
pub(super) struct Shared {
    pub(super) numbers: Numbers,
    /// The transaction that reserved the numbers.
    pub(super) reserved_by: CommitSeq,
}

impl Sequences {
    /// Forgets a sequence whose row was dropped or written by another path, so that the row is read again.
    pub fn forget(&self, space: IndexId) {
        self.0.lock().remove(&space);
    }

    /// Takes a reserved number. Returns it with the transaction that reserved it.
    pub(super) fn take_reserved(&self, space: IndexId) -> Option<(i64, CommitSeq)> {
        let mut all = self.0.lock();
        let shared = all.get_mut(&space)?;
        let mut numbers = shared.numbers;
        let Next::Reserved(number) = numbers.take() else { return None };
        shared.numbers = numbers;
        Some((number, shared.reserved_by))
    }

    /// Calls `use_them` with the sequence's numbers. If none are known, `read` is stored and used.
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

    /// Returns a copy of the current numbers.
    pub(crate) fn numbers(&self, space: IndexId) -> Option<Numbers> {
        self.0.lock().get(&space).map(|shared| shared.numbers)
    }

    /// Adds newly reserved numbers. If a later reservation has already been added, these numbers are lost.
    pub(super) fn add(&self, space: IndexId, shared: Shared) {
        let mut all = self.0.lock();
        let known = all.entry(space).or_insert(shared);
        if known.reserved_by < shared.reserved_by {
            *known = shared;
        }
    }
}
