//! [`SourceTemporaryTables`]: temporary tables of a source's connections, which statements of its binary log
//! create and use.
//!
//! A statement names its connection by number. Each number has its own set of tables, which outlives
//! transactions and appliers. The tables are dropped by a DROP, which the source logs when the connection
//! ends, or all at once when the source has restarted.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohort_base::ServerId;
use parking_lot::Mutex;

use crate::temporary::TemporaryTables;

/// A connection: its server and its number there.
pub type SourceThread = (ServerId, u32);

/// The non-empty sets. Appliers of one source share them; the statements of one connection are never applied
/// concurrently.
#[derive(Default)]
pub struct SourceTemporaryTables {
    sets: Mutex<BTreeMap<SourceThread, Arc<TemporaryTables>>>,
}

impl SourceTemporaryTables {
    /// Returns the total number of tables.
    pub fn count(&self) -> usize {
        self.sets.lock().values().map(|set| set.count()).sum()
    }

    /// Returns true if there are no tables.
    pub fn is_empty(&self) -> bool {
        self.sets.lock().is_empty()
    }

    /// Drops all tables.
    pub fn clear(&self) {
        self.sets.lock().clear();
    }

    /// Returns the set of a connection, creating it if there is none.
    pub fn of(
        &self,
        thread: SourceThread,
        make: impl FnOnce() -> Arc<TemporaryTables>,
    ) -> Arc<TemporaryTables> {
        let known = self.sets.lock().get(&thread).cloned();
        known.unwrap_or_else(make)
    }

    /// Keeps a connection's set as long as it contains a table.
    pub fn keep(&self, thread: SourceThread, set: &Arc<TemporaryTables>) {
        let mut sets = self.sets.lock();
        if set.is_empty() {
            sets.remove(&thread);
        } else {
            sets.entry(thread).or_insert_with(|| Arc::clone(set));
        }
    }
}
