//! [`SourceTemporaryTables`]: temporary tables of a source's connections, which statements of its log make
//! and use.
//!
//! A statement names its connection by number; the tables of each number are a set of their own, and outlive
//! the transactions and the appliers. They go with a DROP, which the source logs when the connection ends,
//! or all at once when the source has started anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohort_base::ServerId;
use parking_lot::Mutex;

use crate::temporary::TemporaryTables;

/// A connection: its server and its number there.
pub type SourceThread = (ServerId, u32);

/// The sets that hold a table. Appliers of one source share it; one connection's statements are never applied
/// at the same time.
#[derive(Default)]
pub struct SourceTemporaryTables {
    sets: Mutex<BTreeMap<SourceThread, Arc<TemporaryTables>>>,
}

impl SourceTemporaryTables {
    /// How many tables there are.
    pub fn count(&self) -> usize {
        self.sets.lock().values().map(|set| set.count()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sets.lock().is_empty()
    }

    /// Drops all of them.
    pub fn clear(&self) {
        self.sets.lock().clear();
    }

    /// The set of a connection; made now if there is none.
    pub fn of(
        &self,
        thread: SourceThread,
        make: impl FnOnce() -> Arc<TemporaryTables>,
    ) -> Arc<TemporaryTables> {
        let known = self.sets.lock().get(&thread).cloned();
        known.unwrap_or_else(make)
    }

    /// Keeps a connection's set as long as it holds a table.
    pub fn keep(&self, thread: SourceThread, set: &Arc<TemporaryTables>) {
        let mut sets = self.sets.lock();
        if set.is_empty() {
            sets.remove(&thread);
        } else {
            sets.entry(thread).or_insert_with(|| Arc::clone(set));
        }
    }
}
