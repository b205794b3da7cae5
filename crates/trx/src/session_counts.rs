//! Counters of SHOW STATUS per connection: row operations of its statements (`Handler_%`), and operations of
//! their plans (`Select_%`, `Sort_%`, `Created_tmp_%`).
//!
//! Only the session writes them, without the processor's locked instructions. SHOW GLOBAL STATUS adds the
//! counters of all connections and the totals of ended ones.
//!
//! # Reads
//! As in MariaDB, the counter of a read depends on how the row was found:
//!
//! | access | first row | further rows, and the read after the last one |
//! |---|---|---|
//! | a key, or the start of a range | `Read_key` | `Read_next`, `Read_prev` |
//! | a whole index | `Read_first`, `Read_last` | `Read_next`, `Read_prev` |
//! | the whole table | `Read_rnd_next` | `Read_rnd_next` |
//!
//! `Commit` counts the ends of statements and transactions that used a table. MariaDB counts a write twice,
//! once for its engine and once for its binary log; here they are one.
//!
//! # Plans
//! The counters match the plans that EXPLAIN shows. The first table of a SELECT counts as `Select_scan` or
//! `Select_range`, later ones as `Select_full_join` or `Select_full_range_join`; a table that is read by keys
//! is not counted. A temporary table holds groups, rows seen so far, or the rows of a table that the
//! server computes; it counts as on disk once it exceeds `tmp_table_size`. `Sort_rows` are the rows that a
//! sort has kept at its end.

use std::sync::atomic::{AtomicU64, Ordering};

use cohort_base::add_alone;

/// A counter.
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
    DeleteScan,
    UpdateScan,
    EmptyQueries,
    ExecutedTriggers,
    RowsSent,
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

/// Counters of plans that statistics of statements contain.
pub const PLAN_COUNTS: [Counted; 10] = [
    Counted::CreatedTmpDiskTables,
    Counted::CreatedTmpTables,
    Counted::SelectFullJoin,
    Counted::SelectFullRangeJoin,
    Counted::SelectRange,
    Counted::SelectScan,
    Counted::SortMergePasses,
    Counted::SortRange,
    Counted::SortRows,
    Counted::SortScan,
];

impl Counted {
    /// Returns whether the counter is one of [`PLAN_COUNTS`].
    #[inline]
    fn is_of_plans(self) -> bool {
        let is_plan = self as usize >= Counted::CreatedTmpDiskTables as usize;
        is_plan && !matches!(self, Counted::CreatedTmpFiles | Counted::SortPriorityQueueSorts)
    }
}

const NAMES: [&str; 30] = [
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
    "Delete_scan",
    "Update_scan",
    "Empty_queries",
    "Executed_triggers",
    "Rows_sent",
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

/// Counters of one connection, or sums over several.
#[derive(Debug, Default)]
pub struct SessionCounts {
    counts: [AtomicU64; NAMES.len()],
    /// Number of changes of [`PLAN_COUNTS`]. Most statements change none of them, and need not compare them.
    plan_changes: AtomicU64,
    /// Reads that found no row: those after the last row, and those of keys that do not exist.
    empty_reads: AtomicU64,
}

/// Values of [`PLAN_COUNTS`] at some time.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanCounts {
    changes: u64,
    values: [u64; PLAN_COUNTS.len()],
}

impl PlanCounts {
    /// Reads the counters, if they have changed. Returns the values of before in that case.
    #[inline]
    pub fn update(&mut self, counts: &SessionCounts) -> Option<PlanCounts> {
        let changes = counts.plan_changes.load(Ordering::Relaxed);
        (changes != self.changes).then(|| {
            let values = PLAN_COUNTS.map(|what| counts.counts[what as usize].load(Ordering::Relaxed));
            std::mem::replace(self, PlanCounts { changes, values })
        })
    }

    /// Returns the counters that are larger than `before`, with the differences. FLUSH STATUS may have reset
    /// counters.
    pub fn since(&self, before: &PlanCounts) -> impl Iterator<Item = (Counted, u64)> {
        let differences =
            self.values.iter().zip(before.values).map(|(now, before)| now.saturating_sub(before));
        PLAN_COUNTS.into_iter().zip(differences).filter(|(_, n)| *n > 0)
    }
}

impl SessionCounts {
    /// Adds one. Called only by the owning session.
    #[inline]
    pub fn count(&self, what: Counted) {
        self.count_many(what, 1);
    }

    /// Adds several. Called only by the owning session.
    #[inline]
    pub fn count_many(&self, what: Counted, times: u64) {
        add_alone(&self.counts[what as usize], times);
        if what.is_of_plans() {
            add_alone(&self.plan_changes, 1);
        }
    }

    /// Counts a read that found no row, in addition to its own counter. Called only by the owning session.
    #[inline]
    pub fn count_empty(&self) {
        add_alone(&self.empty_reads, 1);
    }

    /// Adds the counters of another.
    pub fn add(&self, other: &SessionCounts) {
        self.empty_reads.fetch_add(other.empty_reads.load(Ordering::Relaxed), Ordering::Relaxed);
        for (own, theirs) in self.counts.iter().zip(&other.counts) {
            own.fetch_add(theirs.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Resets the counters for FLUSH STATUS. Called by the owning session.
    pub fn clear(&self) {
        self.counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        add_alone(&self.plan_changes, 1);
        self.empty_reads.store(0, Ordering::Relaxed);
    }

    /// Returns the number of rows read.
    pub fn reads(&self) -> u64 {
        let reads = &self.counts[Counted::ReadFirst as usize..=Counted::ReadRndNext as usize];
        let reads: u64 = reads.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        reads.saturating_sub(self.empty_reads.load(Ordering::Relaxed))
    }

    /// Returns names and values.
    pub fn list(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES.into_iter().zip(self.counts.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}
