//! `Handler_%` of SHOW STATUS: what statements asked of their tables, row by row.
//!
//! Each connection has counters of its own, which its session alone writes, without the processor's locked
//! instructions. SHOW GLOBAL STATUS adds up those of all connections and what ended ones have left. What a
//! read is called depends on how the row was found, as in MariaDB:
//!
//! | access | first row | further rows, and the look beyond the last one |
//! |---|---|---|
//! | a key, or the start of a range | `Read_key` | `Read_next`, `Read_prev` |
//! | a whole index | `Read_first`, `Read_last` | `Read_next`, `Read_prev` |
//! | the whole table | `Read_rnd_next` | `Read_rnd_next` |
//!
//! `Commit` counts the ends of statements and of transactions that used a table; MariaDB counts a write
//! twice, for its engine and for its binary log, which are one here.

use std::sync::atomic::{AtomicU64, Ordering};

use cohort_base::add_alone;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
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
}

const NAMES: [&str; 13] = [
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
];

/// Counters of one connection, or of several together.
#[derive(Debug, Default)]
pub struct HandlerCounts([AtomicU64; NAMES.len()]);

impl HandlerCounts {
    /// Adds one. Called by the session that they belong to, and by nobody else.
    #[inline]
    pub fn count(&self, what: Handler) {
        add_alone(&self.0[what as usize], 1);
    }

    /// Adds several.
    #[inline]
    pub fn count_many(&self, what: Handler, times: u64) {
        add_alone(&self.0[what as usize], times);
    }

    /// Adds what another one has.
    pub fn add(&self, other: &HandlerCounts) {
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
        let reads = &self.0[Handler::ReadFirst as usize..=Handler::ReadRndNext as usize];
        reads.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Names and values.
    pub fn list(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES.into_iter().zip(self.0.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}
