//! One reading of the server's figures, by name: the numbers of SHOW GLOBAL STATUS, and some that no status
//! variable has. The history's series and the metrics are tables over these names.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::HistogramSnapshot;
use cohort_commit::{Coordinator, Step};
use cohort_config::VarId;
use cohort_exec::{Database, event_name};
use cohort_locks::LockTable;
use cohort_observe::{BINS, KindTimes, Reading, Schema, Statements, bin_of};
use cohort_vfs::SharedFs;

/// Kinds of statements that change data or commit, whose latency contains the flush.
const CHANGES: [&str; 9] = [
    "insert",
    "insert_select",
    "replace",
    "replace_select",
    "update",
    "update_multi",
    "delete",
    "delete_multi",
    "commit",
];

/// Counters of the history: series, and name of the figure.
const COUNTERS: [(&str, &str); 39] = [
    ("commits", "Cohort_commits"),
    ("binlog_commits", "Binlog_commits"),
    ("flush_groups", "flush_groups"),
    ("log_syncs", "Cohort_log_syncs"),
    ("log_bytes", "Cohort_log_bytes_written"),
    ("binlog_bytes", "binlog_bytes"),
    ("checkpoints", "Cohort_checkpoints"),
    ("questions", "Questions"),
    ("queries", "Queries"),
    ("errors", "statement_errors"),
    ("slow_queries", "Slow_queries"),
    ("select", "Com_select"),
    ("insert", "Com_insert"),
    ("update", "Com_update"),
    ("delete", "Com_delete"),
    ("connections", "Connections"),
    ("aborted_connects", "Aborted_connects"),
    ("aborted_clients", "Aborted_clients"),
    ("access_denied", "Access_denied_errors"),
    ("bytes_received", "Bytes_received"),
    ("bytes_sent", "Bytes_sent"),
    ("rows_read", "rows_read"),
    ("row_lock_waits", "Innodb_row_lock_waits"),
    ("deadlocks", "Innodb_deadlocks"),
    ("lock_timeouts", "lock_timeouts"),
    ("pool_requests", "Innodb_buffer_pool_read_requests"),
    ("pool_reads", "Innodb_buffer_pool_reads"),
    ("data_read", "Innodb_data_read"),
    ("data_written", "Innodb_data_written"),
    ("stage_prepare", "Cohort_prepare_us_trx_total"),
    ("stage_order_wait", "Cohort_order_wait_us_trx_total"),
    ("stage_order_work", "Cohort_order_work_us_trx_total"),
    ("stage_queue", "Cohort_queue_us_trx_total"),
    ("stage_write", "Cohort_write_us_trx_total"),
    ("stage_flush", "Cohort_flush_us_trx_total"),
    ("stage_replica_wait", "Cohort_replica_wait_us_trx_total"),
    ("stage_archive_wait", "Cohort_archive_wait_us_trx_total"),
    ("stage_publish", "Cohort_publish_us_trx_total"),
    ("stage_acknowledge", "Cohort_acknowledge_us_trx_total"),
];

/// Gauges of the history.
const GAUGES: [(&str, &str); 17] = [
    ("connected", "Threads_connected"),
    ("running", "Threads_running"),
    ("row_locks_waiting", "Innodb_row_lock_current_waits"),
    ("locked_rows", "locked_rows"),
    ("pool_pages", "Innodb_buffer_pool_pages_data"),
    ("pool_dirty", "Innodb_buffer_pool_pages_dirty"),
    ("history_length", "Innodb_history_list_length"),
    ("checkpoint_age", "checkpoint_age"),
    ("data_blocks", "Innodb_data_file_blocks"),
    ("data_free_blocks", "Innodb_data_file_free_blocks"),
    ("disk_free", "disk_free"),
    ("memory", "memory_used"),
    ("behind_s", "Cohort_replica_behind_seconds"),
    ("behind_transactions", "Cohort_replica_behind_transactions"),
    ("relay_log", "Cohort_replica_relay_log_bytes"),
    ("archive_lag_bytes", "Cohort_archive_lag_bytes"),
    ("archive_lag_s", "Cohort_archive_lag_seconds"),
];

/// Histograms of the history: [`Readings::take`] fills them in this order.
const HISTOGRAMS: [&str; 4] = ["statements", "changes", "flush", "row_lock_wait"];

/// Returns the series of the history.
pub(super) fn schema() -> Schema {
    let names = |all: &[(&'static str, &str)]| all.iter().map(|(series, _)| *series).collect();
    Schema { counters: names(&COUNTERS), gauges: names(&GAUGES), histograms: HISTOGRAMS.to_vec() }
}

/// The sources of all figures.
pub(super) struct Readings {
    db: Arc<Database>,
    fs: SharedFs,
    datadir: PathBuf,
    /// The kinds of statements that change data.
    is_change: Vec<bool>,
}

impl Readings {
    pub fn new(db: &Arc<Database>, fs: SharedFs, datadir: &Path) -> Readings {
        let kinds = cohort_exec::EventKind::COUNT;
        let is_change = |kind| CHANGES.contains(&event_name(kind).rsplit('/').next().unwrap_or_default());
        let is_change = (0..kinds).map(is_change).collect();
        Readings { db: Arc::clone(db), fs, datadir: datadir.to_owned(), is_change }
    }

    pub fn commit(&self) -> &Coordinator {
        &self.db.commit
    }

    pub fn locks(&self) -> &LockTable {
        &self.db.locks
    }

    pub fn statements(&self) -> &Statements {
        &self.db.statements
    }

    /// Returns the number of statements with figures of their own.
    pub fn digests(&self) -> usize {
        self.db.globals.uint(VarId::MetricsDigests) as usize
    }

    /// Returns the number of connected replicas.
    pub fn replicas(&self) -> usize {
        self.db.callbacks.read().as_ref().map_or(0, |callbacks| callbacks.replicas().len())
    }

    /// Returns the texts of SHOW GLOBAL STATUS that this crate and its sources provide.
    pub fn status(&self) -> Vec<(String, String)> {
        self.db.status.snapshot()
    }

    /// Returns all figures by name.
    pub fn figures(&self) -> HashMap<String, u64> {
        self.figures_with(&self.statements().kinds())
    }

    fn figures_with(&self, kinds: &[KindTimes]) -> HashMap<String, u64> {
        let db = &self.db;
        let texts = self.status().into_iter();
        let mut all: HashMap<String, u64> =
            texts.filter_map(|(name, text)| Some((name, text.parse().ok()?))).collect();
        let counts = db.processes.counts();
        all.extend(counts.list().map(|(name, value)| (name.to_owned(), value)));
        let mut put = |name: &str, value: u64| _ = all.insert(name.to_owned(), value);
        let metrics = db.commit.metrics();
        let get = |counter: &std::sync::atomic::AtomicU64| counter.load(std::sync::atomic::Ordering::Relaxed);
        put("flush_groups", get(&metrics.groups));
        put("binlog_bytes", get(&metrics.binlog_bytes));
        put("rows_read", counts.reads());
        let locks = db.locks.stats();
        put("lock_timeouts", locks.timeouts);
        put("locked_rows", locks.rows);
        put("memory_used", db.processes.memory().used());
        put("statistics_bytes", db.statements.bytes());
        put("statement_errors", kinds.iter().map(|times| times.errors).sum());
        if let Some(positions) = db.commit.engine_log_positions("InnoDB") {
            put("checkpoint_age", positions.appended.0.saturating_sub(positions.checkpoint.0));
        }
        put("disk_free", self.fs.free_bytes(&self.datadir).unwrap_or(0));
        all
    }

    /// Returns a reading for the history.
    pub fn take(&self) -> Reading {
        let kinds = self.statements().kinds();
        let figures = self.figures_with(&kinds);
        let of = |all: &[(&str, &str)]| {
            all.iter().map(|(_, name)| figures.get(*name).copied().unwrap_or(0)).collect()
        };
        let (mut statements, mut changes) = (vec![0; BINS], vec![0; BINS]);
        for (kind, times) in kinds.iter().enumerate() {
            let is_change = self.is_change.get(kind).copied().unwrap_or(false);
            for (last_us, count) in times.latencies.buckets() {
                statements[bin_of(last_us)] += count;
                changes[bin_of(last_us)] += if is_change { count } else { 0 };
            }
        }
        let flush = in_bins(&self.commit().metrics().step(Step::Flush).times);
        let row_locks = in_bins(&self.locks().row_wait_times());
        Reading {
            wall_us: self.db.clock.wall_us(),
            monotonic_ns: self.db.clock.monotonic_ns(),
            counters: of(&COUNTERS),
            gauges: of(&GAUGES),
            histograms: vec![statements, changes, flush, row_locks],
        }
    }
}

/// Converts a histogram of nanoseconds.
fn in_bins(histogram: &HistogramSnapshot) -> Vec<u64> {
    let mut bins = vec![0; BINS];
    histogram.buckets().for_each(|(last_ns, count)| bins[bin_of(last_ns / 1000)] += count);
    bins
}
