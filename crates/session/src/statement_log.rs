//! The slow query log and the general log.
//!
//! # Concepts
//! - The *general log* records each statement before it runs, and each connect and disconnect.
//! - The *slow log* records a statement after it ran, if it took longer than `long_query_time`, or if it
//!   scanned a whole table under `log_queries_not_using_indexes`.
//! - With `log_slow_verbosity`, statements are profiled ([`cohort_run::PlanProfile`]), and the entry of a
//!   slow statement includes its plan.
//! - `log_output` selects the destinations: files in MariaDB's format, which the server writes
//!   ([`LogFiles`]), and the tables `mysql.general_log` and `mysql.slow_log`, which keep the newest entries
//!   in memory.
//! - Passwords and keys are masked ([`without_secrets`](cohort_sql::without_secrets)).
//!
//! # On failure
//! If a log file cannot be written, the server reports it in the error log and stops writing the file until
//! FLUSH LOGS or a new file name. Statements continue.
//!
//! # Missing
//! The tables' entries are lost when the server stops. Protocol commands that neither run nor open a
//! statement (COM_STATISTICS, COM_REFRESH) are not logged.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use cohort_types::Value;
use parking_lot::Mutex;

/// Selects one of the two statement logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementLog {
    General,
    Slow,
}

/// The files of both statement logs and the error log. The server implements this.
pub trait LogFiles: Send + Sync {
    /// Appends complete lines.
    fn append(&self, log: StatementLog, lines: &[u8]);

    /// Reopens the log's file, which was moved away or renamed by a setting.
    fn reopen(&self, log: StatementLog);

    /// Reopens the error log's file, which was moved away.
    fn reopen_errors(&self) -> io::Result<()>;
}

/// The rows of both log tables.
#[derive(Default)]
pub struct LogRows {
    general: Mutex<Ring>,
    slow: Mutex<Ring>,
    /// The second of the general log's newest line.
    logged_second: AtomicU64,
}

/// Maximum bytes of rows kept per table.
const RING_BYTES_MAX: usize = 4 << 20;
/// The newest rows of one table.
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
    /// Adds a row whose text takes `bytes` bytes.
    pub fn push(&self, log: StatementLog, row: Vec<Value>, bytes: usize) {
        self.ring(log).lock().push(row, bytes);
    }

    /// Returns whether `second` differs from the second of the general log's previous line, and records it.
    pub(crate) fn is_new_second(&self, second: u64) -> bool {
        self.logged_second.swap(second, Ordering::Relaxed) != second
    }

    /// Returns the rows of a table, oldest first.
    pub fn rows(&self, log: StatementLog) -> Vec<Vec<Value>> {
        self.ring(log).lock().rows.iter().map(|(row, _)| row.clone()).collect()
    }

    /// Removes all rows of a table, for TRUNCATE.
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
