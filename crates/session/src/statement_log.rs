//! The slow query log and the general log.
//!
//! # Concepts
//! - The *general log* tells each statement before it runs, and who connects and leaves.
//! - The *slow log* tells a statement after it ran, when it took longer than `long_query_time` or read a
//!   whole table under `log_queries_not_using_indexes`.
//! - With `log_slow_verbosity` statements are measured ([`cohort_run::Measures`]), and the entry of a slow
//!   one tells its plan.
//! - `log_output` says where they go: files, in MariaDB's form, which the server around writes
//!   ([`LogFiles`]); and the tables `mysql.general_log` and `mysql.slow_log`, which hold the newest entries
//!   in memory.
//! - Passwords and keys are hidden ([`without_secrets`](cohort_sql::without_secrets)).
//!
//! # On failure
//! A file that cannot be written is told in the error log and left alone until FLUSH LOGS or a new file name;
//! statements go on.
//!
//! # Missing
//! Entries of the tables end with the server. Commands of the protocol that run no statement and open none
//! (COM_STATISTICS, COM_REFRESH) are not told.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use cohort_types::Value;
use parking_lot::Mutex;

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementLog {
    General,
    Slow,
}

/// The files of both logs, and that of errors; the server around the database has them.
pub trait LogFiles: Send + Sync {
    /// Appends whole lines.
    fn append(&self, log: StatementLog, lines: &[u8]);

    /// The file was moved away, or has another name now.
    fn reopen(&self, log: StatementLog);

    /// The error log was moved away.
    fn reopen_errors(&self) -> io::Result<()>;
}

/// The tables of both logs.
#[derive(Default)]
pub struct LogRows {
    general: Mutex<Ring>,
    slow: Mutex<Ring>,
    /// The second that the general log's last line told.
    told_second: AtomicU64,
}

/// Of each table.
const RING_BYTES_MAX: usize = 4 << 20;
/// The newest rows.
#[derive(Default)]
struct Ring {
    rows: VecDeque<(Vec<Value>, usize)>,
    bytes: usize,
}

impl Ring {
    fn push(&mut self, row: Vec<Value>, bytes: usize) {
        let bytes = bytes + row.len() * size_of::<Value>();
        self.bytes += bytes;
        self.rows.push_back((row, bytes));
        while self.bytes > RING_BYTES_MAX && self.rows.len() > 1 {
            let (_, gone) = self.rows.pop_front().expect("more than one");
            self.bytes -= gone;
        }
    }
}

impl LogRows {
    /// Adds a row of so many bytes of text.
    pub fn push(&self, log: StatementLog, row: Vec<Value>, bytes: usize) {
        self.ring(log).lock().push(row, bytes);
    }

    /// Whether the general log's last line told another second; this one is told now.
    pub(crate) fn is_new_second(&self, second: u64) -> bool {
        self.told_second.swap(second, Ordering::Relaxed) != second
    }

    /// The rows of a table, oldest first.
    pub fn rows(&self, log: StatementLog) -> Vec<Vec<Value>> {
        self.ring(log).lock().rows.iter().map(|(row, _)| row.clone()).collect()
    }

    /// TRUNCATE of a table.
    pub fn clear(&self, log: StatementLog) {
        *self.ring(log).lock() = Ring::default();
    }

    fn ring(&self, log: StatementLog) -> &Mutex<Ring> {
        match log {
            StatementLog::General => &self.general,
            StatementLog::Slow => &self.slow,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_rows_are_kept() {
        let rows = LogRows::default();
        for n in 0..20 {
            rows.push(StatementLog::General, vec![Value::Int(n)], 1 << 20);
        }
        let kept = rows.rows(StatementLog::General);
        assert_eq!(kept.len(), 3);
        assert_eq!(kept[2], [Value::Int(19)]);
        rows.clear(StatementLog::General);
        assert!(rows.rows(StatementLog::General).is_empty());
    }
}
