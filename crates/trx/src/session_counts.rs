//! Counters of SHOW STATUS that each connection has of its own: what its statements asked of their tables,
//! row by row (`Handler_%`), and what their plans did (`Select_%`, `Sort_%`, `Created_tmp_%`).
//!
//! Their session alone writes them, without the processor's locked instructions. SHOW GLOBAL STATUS adds up
//! those of all connections and what ended ones have left.
//!
//! # Reads
//! What a read is called depends on how the row was found, as in MariaDB:
//!
//! | access | first row | further rows, and the look beyond the last one |
//! |---|---|---|
//! | a key, or the start of a range | `Read_key` | `Read_next`, `Read_prev` |
//! | a whole index | `Read_first`, `Read_last` | `Read_next`, `Read_prev` |
//! | the whole table | `Read_rnd_next` | `Read_rnd_next` |
//!
//! `Commit` counts the ends of statements and of transactions that used a table; MariaDB counts a write
//! twice, for its engine and for its binary log, which are one here.
//!
//! # Plans
//! They are those that EXPLAIN tells. Of a SELECT's tables the first one counts as `Select_scan` or
//! `Select_range`, a further one as `Select_full_join` or `Select_full_range_join`; one that is asked by keys
//! counts nowhere. A temporary table is what keeps groups, rows that came before, or the rows of a table that
//! the server computes; it is on disk once it has grown beyond `tmp_table_size`. `Sort_rows` are those that a
//! sort has kept in the end.

use std::sync::atomic::{AtomicU64, Ordering};

use cohort_base::add_alone;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Commit,
    Delete,
    ReadFirst,
    ReadKey,
    ReadLast,
    ReadNext,
    ReadPrev,
    ReadRndNext,
    Rollback,
    Savepoint,
    SavepointRollback,
    Update,
    Write,
    CreatedTmpDiskTables,
    CreatedTmpFiles,
    CreatedTmpTables,
    SelectFullJoin,
    SelectFullRangeJoin,
    SelectRange,
    SelectScan,
    SortMergePasses,
    SortPriorityQueueSorts,
    SortRange,
    SortRows,
    SortScan,
}

const NAMES: [&str; 25] = [
    "Handler_commit",
    "Handler_delete",
    "Handler_read_first",
    "Handler_read_key",
    "Handler_read_last",
    "Handler_read_next",
    "Handler_read_prev",
    "Handler_read_rnd_next",
    "Handler_rollback",
    "Handler_savepoint",
    "Handler_savepoint_rollback",
    "Handler_update",
    "Handler_write",
    "Created_tmp_disk_tables",
    "Created_tmp_files",
    "Created_tmp_tables",
    "Select_full_join",
    "Select_full_range_join",
    "Select_range",
    "Select_scan",
    "Sort_merge_passes",
    "Sort_priority_queue_sorts",
    "Sort_range",
    "Sort_rows",
    "Sort_scan",
];

/// Counters of one connection, or of several together.
#[derive(Debug, Default)]
pub struct SessionCounts([AtomicU64; NAMES.len()]);

impl SessionCounts {
    /// Adds one. Called by the session that they belong to, and by nobody else.
    #[inline]
    pub fn count(&self, what: Counted) {
        add_alone(&self.0[what as usize], 1);
    }

    /// Adds several.
    #[inline]
    pub fn count_many(&self, what: Counted, times: u64) {
        add_alone(&self.0[what as usize], times);
    }

    /// Adds what another one has.
    pub fn add(&self, other: &SessionCounts) {
        for (own, theirs) in self.0.iter().zip(&other.0) {
            own.fetch_add(theirs.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// FLUSH STATUS, by the session that they belong to.
    pub fn clear(&self) {
        self.0.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    /// All that was read.
    pub fn reads(&self) -> u64 {
        let reads = &self.0[Counted::ReadFirst as usize..=Counted::ReadRndNext as usize];
        reads.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Names and values.
    pub fn list(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES.into_iter().zip(self.0.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}
