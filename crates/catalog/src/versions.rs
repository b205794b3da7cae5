//! The states of the catalog between order and publish.
//!
//! A DDL statement changes the catalog at the order stage. Until its group is published a crash can undo the
//! change, so readers get the newest *published* state (I5). Only the participant sees the newest *ordered*
//! state, to which the next changes are applied.
//!
//! A DDL statement holds exclusive locks on the names that it changes until it is published. So a statement
//! that has locked a name, in any mode, finds all ordered changes of that name in the published state.
//!
//! # Lock order
//! The lock of the states is the innermost one. A reader gets the server's published position before it takes
//! the lock.

use std::collections::VecDeque;
use std::sync::Arc;

use cohort_base::CommitSeq;
use parking_lot::RwLock;

use crate::model::Catalog;

/// The published catalog, and later states that are only ordered.
#[derive(Debug)]
pub struct CatalogVersions {
    states: RwLock<States>,
}

#[derive(Debug)]
struct States {
    published: Arc<Catalog>,
    /// Oldest first. Empty unless a DDL statement is between order and publish.
    ordered: VecDeque<(CommitSeq, Arc<Catalog>)>,
}

impl CatalogVersions {
    /// Starts with a published catalog.
    pub fn new(catalog: Catalog) -> CatalogVersions {
        let states = States { published: Arc::new(catalog), ordered: VecDeque::new() };
        CatalogVersions { states: RwLock::new(states) }
    }

    /// Returns the newest state that no crash can undo. `published` returns the server's published position;
    /// it is called only while ordered states exist.
    pub fn published(&self, published: impl FnOnce() -> CommitSeq) -> Arc<Catalog> {
        self.read(published, Arc::clone)
    }

    /// Calls `look` with the newest published state, without cloning it. `look` must not access these states
    /// again.
    pub fn read<R>(&self, published: impl FnOnce() -> CommitSeq, look: impl FnOnce(&Arc<Catalog>) -> R) -> R {
        {
            let states = self.states.read();
            if states.ordered.is_empty() {
                return look(&states.published);
            }
        }
        let until = published();
        let mut states = self.states.write();
        while states.ordered.front().is_some_and(|(seq, _)| *seq <= until) {
            if let Some((_, catalog)) = states.ordered.pop_front() {
                states.published = catalog;
            }
        }
        look(&states.published)
    }

    /// Returns the newest state, published or not. Checkpoints write it, and the next change applies to it.
    pub(crate) fn ordered(&self) -> Arc<Catalog> {
        let states = self.states.read();
        Arc::clone(states.ordered.back().map_or(&states.published, |(_, catalog)| catalog))
    }

    /// Applies the change of a transaction at the order stage.
    pub(crate) fn order(&self, seq: CommitSeq, change: impl FnOnce(&mut Catalog)) {
        let mut newest = self.ordered();
        change(Arc::make_mut(&mut newest));
        self.states.write().ordered.push_back((seq, newest));
    }

    /// Applies a change during recovery, when everything replayed is durable and there are no readers.
    pub fn replay(&self, change: impl FnOnce(&mut Catalog)) {
        change(Arc::make_mut(&mut self.states.write().published));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordered_writes_are_read_once_published() {
        let versions = CatalogVersions::new(Catalog::default());
        for seq in [3, 5] {
            versions.order(CommitSeq(seq), |catalog| catalog.version += 1);
        }
        let read = |until| versions.published(|| CommitSeq(until)).version;
        assert_eq!((read(2), versions.ordered().version), (0, 2));
        assert_eq!((read(3), read(4), read(5)), (1, 1, 2));
        let unasked = versions.published(|| unreachable!("all is published"));
        assert_eq!(unasked.version, 2);
    }
}
