//! The catalog between order and publish.
//!
//! A DDL statement changes the catalog at the order stage. Until its group is published a crash can undo it,
//! so nobody reads it before (I5): readers get the newest *published* state. The statements that follow in
//! the log are built upon the newest *ordered* one, which only the participant sees.
//!
//! A DDL statement holds the names that it changes exclusively until it is published. So a
//! statement that has locked a name, in whatever mode, finds in the published state all that was ordered
//! about it.
//!
//! # Lock order
//! The states' lock is the innermost one. A reader learns how far the server has published before it takes
//! the lock.

use std::collections::VecDeque;
use std::sync::Arc;

use cohort_base::CommitSeq;
use parking_lot::RwLock;

use crate::model::Catalog;

/// The published catalog and what was ordered behind it.
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
    /// A catalog that is published.
    pub fn new(catalog: Catalog) -> CatalogVersions {
        let states = States { published: Arc::new(catalog), ordered: VecDeque::new() };
        CatalogVersions { states: RwLock::new(states) }
    }

    /// The newest state that no crash takes back. `published` says how far the server has published; it is
    /// asked only while something is ordered that may not be.
    pub fn published(&self, published: impl FnOnce() -> CommitSeq) -> Arc<Catalog> {
        self.read(published, Arc::clone)
    }

    /// The same for a look that keeps nothing, and asks for no other catalog.
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

    /// The newest state, published or not: what a checkpoint writes and what the next change is made to.
    pub(crate) fn ordered(&self) -> Arc<Catalog> {
        let states = self.states.read();
        Arc::clone(states.ordered.back().map_or(&states.published, |(_, catalog)| catalog))
    }

    /// A transaction changes the catalog at the order stage.
    pub(crate) fn order(&self, seq: CommitSeq, change: impl FnOnce(&mut Catalog)) {
        let mut newest = self.ordered();
        change(Arc::make_mut(&mut newest));
        self.states.write().ordered.push_back((seq, newest));
    }

    /// Recovery repeats what is hardened: there are no readers, and nothing to wait for.
    pub fn replay(&self, change: impl FnOnce(&mut Catalog)) {
        change(Arc::make_mut(&mut self.states.write().published));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ordered_is_read_when_it_is_published() {
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
