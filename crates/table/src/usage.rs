//! Numbers of rows that statements read and change, by table and index. Counted while `userstat` is on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cohort_catalog::{ROWS, Table};
use parking_lot::Mutex;

/// Kinds of changes of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowChange {
    Insert,
    Update,
    Delete,
}

/// Counters of a table. All versions of the table share them.
#[derive(Debug, Default)]
pub struct TableUsage {
    /// Rows read in any way.
    read: AtomicU64,
    /// Rows read by a scan of the whole table.
    scanned: AtomicU64,
    changed: [AtomicU64; 3],
    /// Changes, each times the indexes of the table, and at least once.
    index_changes: AtomicU64,
    /// Rows read by index.
    indexes: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
}

/// Values of the counters of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableUse {
    pub read: u64,
    pub scanned: u64,
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
    pub index_changes: u64,
    /// Rows read by index, with the index's name.
    pub indexes: Vec<(String, u64)>,
}

impl TableUse {
    /// Returns the rows inserted, updated and deleted.
    pub fn changed(&self) -> u64 {
        self.inserted + self.updated + self.deleted
    }
}

impl TableUsage {
    /// Returns the values.
    pub fn values(&self) -> TableUse {
        let [inserted, updated, deleted] = [0, 1, 2].map(|n| self.changed[n].load(Ordering::Relaxed));
        let rows = |(name, rows): (&String, &Arc<AtomicU64>)| (name.clone(), rows.load(Ordering::Relaxed));
        TableUse {
            read: self.read.load(Ordering::Relaxed),
            scanned: self.scanned.load(Ordering::Relaxed),
            inserted,
            updated,
            deleted,
            index_changes: self.index_changes.load(Ordering::Relaxed),
            indexes: self.indexes.lock().iter().map(rows).collect(),
        }
    }

    /// Sets the rows read by index to 0.
    pub fn reset_indexes(&self) {
        self.indexes.lock().values().for_each(|rows| rows.store(0, Ordering::Relaxed));
    }

    /// Sets the counters of the table to 0, without those of its indexes.
    pub fn reset_table(&self) {
        let of_table = self.changed.iter().chain([&self.read, &self.scanned, &self.index_changes]);
        of_table.for_each(|count| count.store(0, Ordering::Relaxed));
    }
}

/// The counters of an open version of a table.
#[derive(Debug)]
pub(crate) struct OpenUsage {
    table: Arc<TableUsage>,
    /// In the order of the table's indexes.
    indexes: Vec<Arc<AtomicU64>>,
    /// Number of indexes with a name.
    named: u64,
}

impl OpenUsage {
    /// Returns the counters of a version of the table. A table without a primary key is stored by an index
    /// that has no name and no counter.
    pub fn new(usage: Arc<TableUsage>, table: &Table) -> OpenUsage {
        let indexes = {
            let mut known = usage.indexes.lock();
            known.retain(|name, _| table.indexes.iter().any(|index| index.name == *name));
            let of = |(n, index): (usize, &cohort_catalog::Index)| match n == ROWS && index.name.is_empty() {
                true => Arc::default(),
                false => Arc::clone(known.entry(index.name.clone()).or_default()),
            };
            table.indexes.iter().enumerate().map(of).collect()
        };
        let named = table.indexes.iter().filter(|index| !index.name.is_empty()).count() as u64;
        OpenUsage { table: usage, indexes, named }
    }

    /// Returns the counters of all versions.
    pub fn table(&self) -> Arc<TableUsage> {
        Arc::clone(&self.table)
    }

    /// Counts rows read by an index, or by a scan of the whole table.
    pub fn count_read(&self, index: Option<usize>, rows: u64) {
        self.table.read.fetch_add(rows, Ordering::Relaxed);
        let count = index.and_then(|index| self.indexes.get(index));
        count.map_or(&self.table.scanned, |count| &**count).fetch_add(rows, Ordering::Relaxed);
    }

    /// Counts a changed row.
    pub fn count_change(&self, change: RowChange) {
        self.table.changed[change as usize].fetch_add(1, Ordering::Relaxed);
        self.table.index_changes.fetch_add(self.named.max(1), Ordering::Relaxed);
    }
}
