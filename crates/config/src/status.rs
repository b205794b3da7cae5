//! Counters of SHOW STATUS.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

macro_rules! counters {
    ($($id:ident = $name:literal;)*) => {
        /// A counter that this crate keeps; others come from a [`StatusSource`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        #[allow(missing_docs)]
        pub enum Counter { $($id,)* }

        const NAMES: &[&str] = &[$($name,)*];
        const ALL: &[Counter] = &[$(Counter::$id,)*];
    };
}

counters! {
    AbortedClients = "Aborted_clients";
    AbortedConnects = "Aborted_connects";
    AccessDeniedErrors = "Access_denied_errors";
    BytesReceived = "Bytes_received";
    BytesSent = "Bytes_sent";
    ComAdminCommands = "Com_admin_commands";
    ComAlterTable = "Com_alter_table";
    ComBegin = "Com_begin";
    ComChangeDb = "Com_change_db";
    ComCommit = "Com_commit";
    ComCreateDb = "Com_create_db";
    ComCreateIndex = "Com_create_index";
    ComCreateTable = "Com_create_table";
    ComDelete = "Com_delete";
    ComDeleteMulti = "Com_delete_multi";
    ComUpdateMulti = "Com_update_multi";
    ComDropDb = "Com_drop_db";
    ComDropIndex = "Com_drop_index";
    ComDropTable = "Com_drop_table";
    ComInsert = "Com_insert";
    ComKill = "Com_kill";
    ComReplace = "Com_replace";
    ComRollback = "Com_rollback";
    ComSelect = "Com_select";
    ComSetOption = "Com_set_option";
    ComStmtClose = "Com_stmt_close";
    ComStmtExecute = "Com_stmt_execute";
    ComStmtPrepare = "Com_stmt_prepare";
    ComStmtReset = "Com_stmt_reset";
    ComStmtSendLongData = "Com_stmt_send_long_data";
    ComTruncate = "Com_truncate";
    ComUpdate = "Com_update";
    ComXaCommit = "Com_xa_commit";
    ComXaEnd = "Com_xa_end";
    ComXaPrepare = "Com_xa_prepare";
    ComXaRecover = "Com_xa_recover";
    ComXaRollback = "Com_xa_rollback";
    ComXaStart = "Com_xa_start";
    ConnectionErrorsMaxConnections = "Connection_errors_max_connections";
    Connections = "Connections";
    MasterGtidWaitCount = "Master_gtid_wait_count";
    MasterGtidWaitTime = "Master_gtid_wait_time";
    MasterGtidWaitTimeouts = "Master_gtid_wait_timeouts";
    MaxStatementTimeExceeded = "Max_statement_time_exceeded";
    MaxUsedConnections = "Max_used_connections";
    PreparedStmtCount = "Prepared_stmt_count";
    Queries = "Queries";
    Questions = "Questions";
    SlowQueries = "Slow_queries";
    ThreadsConnected = "Threads_connected";
    ThreadsCreated = "Threads_created";
    ThreadsRunning = "Threads_running";
    Uptime = "Uptime";
}

/// A part of the server that has counters of its own: the commit pipeline, the engines, the locks.
pub trait StatusSource: Send + Sync {
    /// Adds name and value pairs; names as SHOW STATUS prints them.
    fn status(&self, out: &mut Vec<(String, String)>);
}

/// All counters of a server.
pub struct Status {
    counters: [AtomicU64; NAMES.len()],
    /// Uptime at the last FLUSH STATUS.
    flushed_at: AtomicU64,
    sources: RwLock<Vec<Box<dyn StatusSource>>>,
}

impl Default for Status {
    fn default() -> Status {
        Status {
            counters: [const { AtomicU64::new(0) }; NAMES.len()],
            flushed_at: AtomicU64::new(0),
            sources: RwLock::new(Vec::new()),
        }
    }
}

impl Status {
    /// Adds to a counter.
    pub fn add(&self, counter: Counter, n: u64) {
        self.counters[counter as usize].fetch_add(n, Ordering::Relaxed);
    }

    /// Adds one.
    pub fn count(&self, counter: Counter) {
        self.add(counter, 1);
    }

    fn uncount(&self, counter: Counter) {
        self.counters[counter as usize].fetch_sub(1, Ordering::Relaxed);
    }

    /// Adds one to a gauge for as long as the answer lives: what a session or a call owns goes with it,
    /// however it ends.
    pub fn hold(self: &Arc<Self>, gauge: Counter) -> HeldGauge {
        self.count(gauge);
        HeldGauge { status: Arc::clone(self), gauge }
    }

    /// Sets a gauge.
    pub fn put(&self, counter: Counter, value: u64) {
        self.counters[counter as usize].store(value, Ordering::Relaxed);
    }

    /// Raises a high-water mark.
    pub fn raise(&self, counter: Counter, value: u64) {
        self.counters[counter as usize].fetch_max(value, Ordering::Relaxed);
    }

    /// Reads a counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.counters[counter as usize].load(Ordering::Relaxed)
    }

    /// FLUSH STATUS: the time since it counts from here. Counters of the server go on.
    pub fn flush(&self) {
        self.flushed_at.store(self.get(Counter::Uptime), Ordering::Relaxed);
    }

    /// Adds a part of the server to SHOW STATUS.
    pub fn register(&self, source: Box<dyn StatusSource>) {
        self.sources.write().push(source);
    }

    /// What SHOW GLOBAL STATUS lists, by name.
    pub fn snapshot(&self) -> Vec<(String, String)> {
        let own = ALL.iter().map(|c| (NAMES[*c as usize].to_owned(), self.get(*c).to_string()));
        let mut all: Vec<(String, String)> = own.collect();
        for source in self.sources.read().iter() {
            source.status(&mut all);
        }
        let since = self.get(Counter::Uptime).saturating_sub(self.flushed_at.load(Ordering::Relaxed));
        all.push(("Uptime_since_flush_status".to_owned(), since.to_string()));
        all.sort();
        all
    }
}

/// One of a gauge. Dropping it takes it away.
pub struct HeldGauge {
    status: Arc<Status>,
    gauge: Counter,
}

impl Drop for HeldGauge {
    fn drop(&mut self) {
        self.status.uncount(self.gauge);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_and_foreign_counters_are_listed_together_by_name() {
        struct Commit;
        impl StatusSource for Commit {
            fn status(&self, out: &mut Vec<(String, String)>) {
                out.push(("Binlog_commits".into(), "5".into()));
            }
        }
        let status = Status::default();
        status.add(Counter::Queries, 3);
        status.register(Box::new(Commit));
        let all = status.snapshot();
        assert!(all.is_sorted());
        assert!(
            all.contains(&("Queries".into(), "3".into()))
                && all.contains(&("Binlog_commits".into(), "5".into()))
        );
    }
}
