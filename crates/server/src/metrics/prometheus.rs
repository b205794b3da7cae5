//! Metrics of the server in Prometheus' text format, version 0.0.4.
//!
//! Format: <https://prometheus.io/docs/instrumenting/exposition_formats/>. As its naming rules require, times
//! are in seconds and sizes in bytes, and the names of counters, and only theirs, end with `_total`.
//! Histogram buckets end at powers of two, where the server's finer buckets can be summed exactly. The upper
//! bound `le` is inclusive, so it is one less than the power.
//!
//! [`FIGURES`] is the table of metrics that are one number each: a figure of [`super::readings`], or a status
//! variable. Labels have words of fixed lists only: steps of a commit, kinds of statements. With
//! `metrics_digests`, a bounded number of series has digests as labels. No label contains a text, a user or a
//! host.

use std::collections::HashMap;
use std::fmt::Write;

use cohort_base::HistogramSnapshot;
use cohort_commit::Coordinator;
use cohort_config::VERSION;
use cohort_exec::event_name;
use cohort_locks::LockTable;
use cohort_observe::{KindTimes, Measure, Measured, Statements};

use super::readings::Readings;

/// Powers of two for times in nanoseconds: 1 us to 17 s.
const TIME_MAGNITUDES: std::ops::RangeInclusive<u32> = 10..=34;
/// Powers of two for times of statements in microseconds: 16 us to 17 s, every other one.
const STATEMENT_MAGNITUDES: [u32; 11] = [4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24];
/// Powers of two for numbers of transactions: up to 4095.
const SIZE_MAGNITUDES: std::ops::RangeInclusive<u32> = 1..=12;
const NANOSECOND: f64 = 1e-9;

/// Kind of a metric.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
}

/// Unit of a figure, which is converted to the base unit of the metric.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Things, or bytes.
    One,
    Seconds,
    Milliseconds,
    Microseconds,
}

/// A metric that is one number.
struct Figure {
    metric: &'static str,
    kind: Kind,
    /// Status variable, or name of a figure.
    name: &'static str,
    unit: Unit,
    help: &'static str,
}

const fn counter(metric: &'static str, name: &'static str, help: &'static str) -> Figure {
    Figure { metric, kind: Kind::Counter, name, unit: Unit::One, help }
}

const fn gauge(metric: &'static str, name: &'static str, help: &'static str) -> Figure {
    Figure { metric, kind: Kind::Gauge, name, unit: Unit::One, help }
}

const fn in_unit(unit: Unit, figure: Figure) -> Figure {
    Figure { unit, ..figure }
}

/// The metrics that are one number, in the order of the document.
const FIGURES: &[Figure] = &[
    // Commit path.
    counter("cohort_commits_total", "Cohort_commits", "Transactions published."),
    counter("cohort_binlog_commits_total", "Binlog_commits", "Of those, with events in the binary log."),
    counter("cohort_flush_groups_total", "flush_groups", "Groups of transactions that shared a flush."),
    counter("cohort_log_syncs_total", "Cohort_log_syncs", "Syncs of the log."),
    counter("cohort_log_written_bytes_total", "Cohort_log_bytes_written", "Bytes written to the log."),
    counter("cohort_binlog_written_bytes_total", "binlog_bytes", "Bytes written to the binary log."),
    gauge(
        "cohort_binlog_backlog_bytes",
        "Cohort_binlog_backlog_bytes",
        "Bytes of binary log that are durable and not in their file yet.",
    ),
    counter("cohort_slow_flushes_total", "Cohort_slow_flushes", "Flushes of at least slow_flush_warning_ms."),
    counter("cohort_checkpoints_total", "Cohort_checkpoints", "Checkpoints completed."),
    counter("cohort_checkpoint_failures_total", "Cohort_checkpoint_failures", "Checkpoints that failed."),
    gauge("cohort_checkpoint_age_bytes", "checkpoint_age", "Bytes of log since the last checkpoint."),
    // Connections and statements.
    gauge("cohort_connections_open", "Threads_connected", "Clients that are connected."),
    gauge("cohort_connections_running", "Threads_running", "Connections that run a statement."),
    gauge(
        "cohort_connections_used_max",
        "Max_used_connections",
        "Most clients that were connected at a time.",
    ),
    gauge("cohort_uptime_seconds", "Uptime", "Time since the start."),
    counter("cohort_connections_total", "Connections", "Attempts to connect."),
    counter("cohort_aborted_connects_total", "Aborted_connects", "Attempts to connect that failed."),
    counter("cohort_aborted_clients_total", "Aborted_clients", "Connections that ended without a farewell."),
    counter("cohort_access_denied_total", "Access_denied_errors", "Rejected logins."),
    counter(
        "cohort_max_connections_errors_total",
        "Connection_errors_max_connections",
        "Logins that max_connections has rejected.",
    ),
    counter("cohort_received_bytes_total", "Bytes_received", "Bytes received from clients."),
    counter("cohort_sent_bytes_total", "Bytes_sent", "Bytes sent to clients."),
    counter("cohort_queries_total", "Queries", "Statements run, those of programs included."),
    counter("cohort_questions_total", "Questions", "Statements that clients have sent."),
    counter("cohort_statement_errors_total", "statement_errors", "Statements that failed."),
    counter("cohort_slow_queries_total", "Slow_queries", "Statements of at least long_query_time."),
    counter(
        "cohort_statement_timeouts_total",
        "Max_statement_time_exceeded",
        "Statements that max_statement_time has ended.",
    ),
    counter("cohort_rows_read_total", "rows_read", "Rows that statements have read."),
    counter("cohort_tmp_tables_total", "Created_tmp_tables", "Temporary tables of statements."),
    counter("cohort_tmp_disk_tables_total", "Created_tmp_disk_tables", "Of those, on the disk."),
    counter("cohort_full_joins_total", "Select_full_join", "Joins without an index."),
    counter("cohort_full_scans_total", "Select_scan", "Joins whose first table was read whole."),
    counter(
        "cohort_sort_merge_passes_total",
        "Sort_merge_passes",
        "Merges of sorts that did not fit into memory.",
    ),
    gauge("cohort_prepared_statements", "Prepared_stmt_count", "Prepared statements of all connections."),
    gauge("cohort_sessions_memory_bytes", "memory_used", "Memory of all sessions."),
    gauge("cohort_statistics_memory_bytes", "statistics_bytes", "Memory of the statistics of statements."),
    // Locks.
    gauge("cohort_row_locks_waiting", "Innodb_row_lock_current_waits", "Row locks waited for now."),
    counter("cohort_row_lock_waits_total", "Innodb_row_lock_waits", "Row locks that had to wait."),
    counter("cohort_deadlocks_total", "Innodb_deadlocks", "Deadlocks found."),
    counter("cohort_lock_timeouts_total", "lock_timeouts", "Lock waits that timed out."),
    gauge("cohort_locked_rows", "locked_rows", "Rows that are locked or remembered."),
    // Storage.
    counter(
        "cohort_buffer_pool_requests_total",
        "Innodb_buffer_pool_read_requests",
        "Pages requested from the buffer pool.",
    ),
    counter("cohort_buffer_pool_reads_total", "Innodb_buffer_pool_reads", "Of those, read from the disk."),
    gauge("cohort_buffer_pool_pages", "Innodb_buffer_pool_pages_data", "Pages in the buffer pool."),
    gauge(
        "cohort_buffer_pool_dirty_pages",
        "Innodb_buffer_pool_pages_dirty",
        "Of those, changed since the last checkpoint.",
    ),
    counter("cohort_buffer_pool_evictions_total", "Innodb_buffer_pool_pages_evicted", "Pages evicted."),
    counter("cohort_data_read_bytes_total", "Innodb_data_read", "Bytes read from data files."),
    counter("cohort_data_written_bytes_total", "Innodb_data_written", "Bytes written to data files."),
    gauge("cohort_history_length", "Innodb_history_list_length", "Transactions whose old versions are kept."),
    gauge("cohort_data_file_blocks", "Innodb_data_file_blocks", "Blocks of the data file."),
    gauge("cohort_data_file_free_blocks", "Innodb_data_file_free_blocks", "Of those, free."),
    gauge("cohort_disk_free_bytes", "disk_free", "Free space of the volume of the data directory."),
    // Replication.
    gauge("cohort_replica_sources", "Cohort_replica_sources", "Connections to sources."),
    in_unit(
        Unit::Seconds,
        gauge(
            "cohort_replica_behind_seconds",
            "Cohort_replica_behind_seconds",
            "Time that the slowest connection lags its source.",
        ),
    ),
    gauge(
        "cohort_replica_behind_transactions",
        "Cohort_replica_behind_transactions",
        "Transactions received and not applied.",
    ),
    counter(
        "cohort_replica_applied_transactions_total",
        "Cohort_replica_applied_transactions",
        "Transactions applied.",
    ),
    counter(
        "cohort_replica_received_bytes_total",
        "Cohort_replica_received_bytes",
        "Bytes received from sources.",
    ),
    gauge(
        "cohort_replica_relay_log_bytes",
        "Cohort_replica_relay_log_bytes",
        "Bytes of relay log on the disk.",
    ),
    gauge(
        "cohort_replica_queued_transactions",
        "Cohort_replica_queued_transactions",
        "Transactions that wait for a worker.",
    ),
    gauge(
        "cohort_semi_sync_replicas",
        "Rpl_semi_sync_master_clients",
        "Connected semi-synchronous replicas.",
    ),
    counter(
        "cohort_semi_sync_unacknowledged_total",
        "Rpl_semi_sync_master_no_tx",
        "Commits that no replica had acknowledged in time.",
    ),
    in_unit(
        Unit::Microseconds,
        counter(
            "cohort_semi_sync_wait_seconds_total",
            "Rpl_semi_sync_master_tx_wait_time",
            "Time waited for replicas.",
        ),
    ),
    // Backups and the archive.
    counter("cohort_backups_total", "Cohort_backups", "Backups completed."),
    counter("cohort_backup_failures_total", "Cohort_backup_failures", "Backups that failed."),
    gauge(
        "cohort_backup_newest_timestamp_seconds",
        "Cohort_backup_newest_unixtime",
        "Time of the state of the newest backup of the data directory; 0 without one.",
    ),
    gauge(
        "cohort_backup_proven_timestamp_seconds",
        "Cohort_backup_proven_unixtime",
        "Time of the state of the newest backup that was restored and checked; 0 without one.",
    ),
    gauge("cohort_archive_running", "Cohort_archive_running", "1 while the log is archived."),
    gauge(
        "cohort_archive_lag_bytes",
        "Cohort_archive_lag_bytes",
        "Bytes of log that the repository does not have.",
    ),
    gauge("cohort_archive_lag_seconds", "Cohort_archive_lag_seconds", "Time that the oldest of them waits."),
    counter(
        "cohort_archive_failures_total",
        "Cohort_archive_failures",
        "Times that the archive stood still.",
    ),
    gauge("cohort_archive_gaps", "Cohort_archive_gaps", "Gaps in the archive."),
    gauge("cohort_archive_sync_on", "Cohort_archive_sync_on", "1 while commits wait for the archive."),
    gauge("cohort_archive_sync_waiting", "Cohort_archive_sync_waiting", "Commits that wait for the archive."),
    counter(
        "cohort_archive_sync_timeouts_total",
        "Cohort_archive_sync_timeouts",
        "Times that commits went on without the archive.",
    ),
    counter(
        "cohort_archive_sync_unacknowledged_total",
        "Cohort_archive_sync_unacknowledged",
        "Commits that the archive did not have in time.",
    ),
    in_unit(
        Unit::Milliseconds,
        counter(
            "cohort_row_lock_wait_time_seconds_total",
            "Innodb_row_lock_time",
            "Time waited for row locks.",
        ),
    ),
];

/// Returns the whole document.
pub(super) fn text(readings: &Readings) -> String {
    let mut out = Text(String::with_capacity(64 << 10));
    out.family("cohort_build_info", "gauge", "1; the label is the server's version.");
    out.sample("cohort_build_info", &format!("{{version=\"{VERSION}\"}}"), 1);
    let figures = readings.figures();
    FIGURES.iter().for_each(|figure| out.figure(figure, &figures));
    commit_times(readings.commit(), &mut out);
    statement_times(readings.statements(), &mut out);
    if let most @ 1.. = readings.digests() {
        digest_sums(readings.statements().brief(), most, &mut out);
    }
    row_lock_times(readings.locks(), &mut out);
    status(readings.status(), &mut out);
    out.0
}

struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("a string");
    }

    /// Appends a sample. `labels` includes its braces, or is empty.
    fn sample(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        writeln!(self.0, "{name}{labels} {value}").expect("a string");
    }

    fn figure(&mut self, figure: &Figure, figures: &HashMap<String, u64>) {
        let Figure { metric, kind, name, unit, help } = figure;
        self.family(metric, if *kind == Kind::Counter { "counter" } else { "gauge" }, help);
        let value = figures.get(*name).copied().unwrap_or(0);
        match unit {
            Unit::One | Unit::Seconds => self.sample(metric, "", value),
            Unit::Milliseconds => self.sample(metric, "", value as f64 / 1e3),
            Unit::Microseconds => self.sample(metric, "", value as f64 / 1e6),
        }
    }

    /// Appends the latencies of a kind of statements.
    fn statements(&mut self, name: &str, kind: &str, times: &KindTimes, count: u64) {
        for magnitude in STATEMENT_MAGNITUDES {
            let last_us = (1u64 << magnitude) - 1;
            let below: u64 =
                times.latencies.buckets().filter(|(last, _)| *last <= last_us).map(|(_, count)| count).sum();
            let end = last_us as f64 / 1e6;
            self.sample(&format!("{name}_bucket"), &format!("{{kind=\"{kind}\",le=\"{end}\"}}"), below);
        }
        self.sample(&format!("{name}_bucket"), &format!("{{kind=\"{kind}\",le=\"+Inf\"}}"), count);
        let labels = format!("{{kind=\"{kind}\"}}");
        self.sample(&format!("{name}_sum"), &labels, shown(times.sum_ns as f64, NANOSECOND));
        self.sample(&format!("{name}_count"), &labels, count);
    }

    /// Appends a histogram. `label` has no braces and may be empty. `unit` converts the histogram's values.
    fn histogram(
        &mut self,
        name: &str,
        label: &str,
        of: &HistogramSnapshot,
        magnitudes: std::ops::RangeInclusive<u32>,
        unit: f64,
    ) {
        let (comma, braces) = match label {
            "" => ("", String::new()),
            label => (",", format!("{{{label}}}")),
        };
        for magnitude in magnitudes {
            let end = shown(((1u64 << magnitude) - 1) as f64, unit);
            let labels = format!("{{{label}{comma}le=\"{end}\"}}");
            self.sample(&format!("{name}_bucket"), &labels, of.below(magnitude));
        }
        self.sample(&format!("{name}_bucket"), &format!("{{{label}{comma}le=\"+Inf\"}}"), of.count());
        self.sample(&format!("{name}_sum"), &braces, shown(of.sum() as f64, unit));
        self.sample(&format!("{name}_count"), &braces, of.count());
    }
}

/// Formats a value in its unit. Nanoseconds become seconds with nine digits, so that they are exact.
fn shown(value: f64, unit: f64) -> String {
    if unit == NANOSECOND { format!("{:.9}", value * unit) } else { format!("{}", value * unit) }
}

fn commit_times(commit: &Coordinator, out: &mut Text) {
    let steps: Vec<_> = commit.metrics().steps().collect();
    let name = "cohort_commit_stage_seconds";
    out.family(
        name,
        "histogram",
        "Time of a commit's stages; write, flush, replica_wait, archive_wait, publish and acknowledge once for each group.",
    );
    for step in &steps {
        let label = format!("stage=\"{}\"", step.step.name());
        out.histogram(name, &label, &step.times, TIME_MAGNITUDES, NANOSECOND);
    }
    let name = "cohort_commit_stage_transaction_seconds_total";
    out.family(name, "counter", "The same, a group's time counted for each of its transactions.");
    for step in &steps {
        let label = format!("{{stage=\"{}\"}}", step.step.name());
        out.sample(name, &label, shown(step.trx_ns as f64, NANOSECOND));
    }
    let sizes = commit.metrics().group_size.snapshot();
    out.family("cohort_group_size", "histogram", "Transactions in a flush group.");
    out.histogram("cohort_group_size", "", &sizes, SIZE_MAGNITUDES, 1.0);
}

/// Appends the latencies of statements by kind. Kinds that have not run are left out.
fn statement_times(statements: &Statements, out: &mut Text) {
    let name = "cohort_statement_seconds";
    out.family(
        name,
        "histogram",
        "Time of statements until the reply may leave, so with the flush, by kind.",
    );
    for (kind, times) in statements.kinds().iter().enumerate() {
        let count = times.latencies.count();
        if count > 0 {
            let kind = event_name(kind);
            out.statements(name, kind.strip_prefix("statement/").unwrap_or(&kind), times, count);
        }
    }
}

/// Metrics of single statements: name, number, unit, help.
const OF_DIGESTS: [(&str, Measure, f64, &str); 6] = [
    ("cohort_digest_calls_total", Measure::Calls, 1.0, "Calls of a statement."),
    ("cohort_digest_errors_total", Measure::Errors, 1.0, "Of those, calls that failed."),
    (
        "cohort_digest_seconds_total",
        Measure::Latency,
        NANOSECOND,
        "Time of a statement until the reply may leave.",
    ),
    (
        "cohort_digest_lock_wait_seconds_total",
        Measure::LockWait,
        NANOSECOND,
        "Time that a statement waited for locks.",
    ),
    ("cohort_digest_rows_examined_total", Measure::RowsExamined, 1.0, "Rows that a statement has read."),
    ("cohort_digest_rows_sent_total", Measure::RowsSent, 1.0, "Rows that a statement has returned."),
];

/// Appends the sums of the `most` statements with most time.
fn digest_sums(all: Vec<(u128, Measured)>, most: usize, out: &mut Text) {
    // A statement has a row for each schema.
    let mut sums: HashMap<u128, [u64; OF_DIGESTS.len()]> = HashMap::new();
    for (digest, measured) in all {
        let sum = sums.entry(digest).or_default();
        for (sum, (_, measure, ..)) in sum.iter_mut().zip(OF_DIGESTS) {
            *sum = sum.wrapping_add(measured.get(measure));
        }
    }
    const SECONDS: usize = 2;
    let mut sums: Vec<(u128, [u64; OF_DIGESTS.len()])> = sums.into_iter().collect();
    sums.sort_by_key(|(digest, sums)| (std::cmp::Reverse(sums[SECONDS]), *digest));
    sums.truncate(most);
    for (place, (name, _, unit, help)) in OF_DIGESTS.iter().enumerate() {
        out.family(name, "counter", help);
        for (digest, sums) in &sums {
            let labels = format!("{{digest=\"{digest:032x}\"}}");
            out.sample(name, &labels, shown(sums[place] as f64, *unit));
        }
    }
}

fn row_lock_times(locks: &LockTable, out: &mut Text) {
    let name = "cohort_row_lock_wait_seconds";
    out.family(name, "histogram", "Time waited for a row lock.");
    out.histogram(name, "", &locks.row_wait_times(), TIME_MAGNITUDES, NANOSECOND);
}

/// Appends all numeric variables of SHOW GLOBAL STATUS.
fn status(all: Vec<(String, String)>, out: &mut Text) {
    let name = "cohort_global_status";
    out.family(
        name,
        "untyped",
        "Deprecated, removed in the next version: lines of SHOW GLOBAL STATUS that are numbers.",
    );
    for (variable, value) in all {
        let is_plain = variable.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
        if is_plain && value.parse::<f64>().is_ok_and(f64::is_finite) {
            out.sample(name, &format!("{{variable=\"{variable}\"}}"), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohort_base::Histogram;

    /// The rules of Prometheus for names.
    #[test]
    fn metrics_are_named_by_the_conventions() {
        let mut seen = std::collections::HashSet::new();
        for Figure { metric, kind, name, unit, help } in FIGURES {
            assert!(seen.insert(metric) && help.ends_with('.'), "{metric}");
            assert_eq!(metric.ends_with("_total"), *kind == Kind::Counter, "{metric}");
            assert!(metric.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{metric}");
            let is_time = *unit != Unit::One || ["Uptime"].contains(name);
            assert!(!is_time || metric.contains("_seconds"), "{metric}");
            let is_bad = |word: &str| ["ms", "us", "milliseconds", "kb"].contains(&word);
            assert!(!metric.split('_').any(is_bad), "{metric}");
        }
    }

    #[test]
    fn a_histogram_is_cumulative_and_ends_with_all() {
        let histogram = Histogram::default();
        [500, 1023, 1024, 5_000_000_000].iter().for_each(|ns| histogram.record(*ns));
        let mut out = Text(String::new());
        out.histogram("t", "a=\"b\"", &histogram.snapshot(), 10..=11, NANOSECOND);
        let expected = "t_bucket{a=\"b\",le=\"0.000001023\"} 2\nt_bucket{a=\"b\",le=\"0.000002047\"} 3\n\
                        t_bucket{a=\"b\",le=\"+Inf\"} 4\nt_sum{a=\"b\"} 5.000002547\nt_count{a=\"b\"} 4\n";
        assert_eq!(out.0, expected);
    }

    #[test]
    fn statements_with_most_time_have_figures_of_their_own() {
        let measured = |calls: u64, ns: u64| {
            let mut measured = Measured::default();
            measured.add(Measure::Calls, calls);
            measured.add(Measure::Latency, ns);
            measured
        };
        let all = vec![
            (1, measured(2, 1_500)),
            (2, measured(9, 2_000)),
            (1, measured(1, 700)),
            (3, measured(1, 1)),
        ];
        let mut out = Text(String::new());
        digest_sums(all, 2, &mut out);
        let label = |digest: u128| format!("{{digest=\"{digest:032x}\"}}");
        let seconds: Vec<&str> =
            out.0.lines().filter(|line| line.starts_with("cohort_digest_seconds_total{")).collect();
        assert_eq!(
            seconds,
            [
                format!("cohort_digest_seconds_total{} 0.000002200", label(1)),
                format!("cohort_digest_seconds_total{} 0.000002000", label(2)),
            ]
        );
        assert!(out.0.contains(&format!("cohort_digest_calls_total{} 3\n", label(1))), "{}", out.0);
    }

    #[test]
    fn sizes_are_whole_numbers_without_labels() {
        let histogram = Histogram::default();
        [1, 2, 64].iter().for_each(|n| histogram.record(*n));
        let mut out = Text(String::new());
        out.histogram("t", "", &histogram.snapshot(), 1..=2, 1.0);
        assert_eq!(
            out.0,
            "t_bucket{le=\"1\"} 1\nt_bucket{le=\"3\"} 2\nt_bucket{le=\"+Inf\"} 3\nt_sum 67\nt_count 3\n"
        );
    }
}
