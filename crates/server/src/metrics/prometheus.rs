//! Metrics of the server in Prometheus' text format, version 0.0.4.
//!
//! Format: <https://prometheus.io/docs/instrumenting/exposition_formats/>. As its naming rules require, times
//! are in seconds and sizes in bytes. Histogram buckets end at powers of two, where the server's finer
//! buckets can be summed exactly. The upper bound `le` is inclusive, so it is one less than the power.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cohort_base::HistogramSnapshot;
use cohort_commit::Coordinator;
use cohort_config::{Counter, Status, VERSION};
use cohort_locks::LockTable;

/// Powers of two for times in nanoseconds: 1 us to 17 s.
const TIME_MAGNITUDES: std::ops::RangeInclusive<u32> = 10..=34;
/// Powers of two for numbers of transactions: up to 4095.
const SIZE_MAGNITUDES: std::ops::RangeInclusive<u32> = 1..=12;
const NANOSECOND: f64 = 1e-9;

/// Components whose metrics are exported.
pub struct Sources {
    pub status: Arc<Status>,
    pub commit: Arc<Coordinator>,
    pub locks: Arc<LockTable>,
}

/// Returns the whole document.
pub(super) fn text(sources: &Sources) -> String {
    let mut out = Text(String::with_capacity(32 << 10));
    out.family("cohort_build_info", "gauge", "1; the label is the server's version.");
    out.sample("cohort_build_info", &format!("{{version=\"{VERSION}\"}}"), 1);
    commit_counters(sources, &mut out);
    commit_times(sources, &mut out);
    connections(&sources.status, &mut out);
    locks(&sources.locks, &mut out);
    status(&sources.status, &mut out);
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

    fn single(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.family(name, kind, help);
        self.sample(name, "", value);
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

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn commit_counters(sources: &Sources, out: &mut Text) {
    let metrics = sources.commit.metrics();
    let log = sources.commit.log_stats();
    let counters: [(&str, &str, u64); 9] = [
        ("cohort_commits_total", "Transactions published.", get(&metrics.commits)),
        (
            "cohort_binlog_commits_total",
            "Of those, with events in the binary log.",
            get(&metrics.binlog_commits),
        ),
        ("cohort_flush_groups_total", "Groups of transactions that shared a flush.", get(&metrics.groups)),
        ("cohort_log_syncs_total", "Syncs of the log.", log.syncs),
        ("cohort_log_written_bytes_total", "Bytes written to the log.", log.written_bytes),
        ("cohort_binlog_written_bytes_total", "Bytes written to the binary log.", get(&metrics.binlog_bytes)),
        (
            "cohort_slow_flushes_total",
            "Flushes of at least slow_flush_warning_ms.",
            get(&metrics.slow_flushes),
        ),
        ("cohort_checkpoints_total", "Checkpoints completed.", get(&metrics.checkpoints)),
        ("cohort_checkpoint_failures_total", "Checkpoints that failed.", get(&metrics.checkpoint_failures)),
    ];
    for (name, help, value) in counters {
        out.single(name, "counter", help, value);
    }
}

fn commit_times(sources: &Sources, out: &mut Text) {
    let steps: Vec<_> = sources.commit.metrics().steps().collect();
    let name = "cohort_commit_stage_seconds";
    out.family(
        name,
        "histogram",
        "Time of a commit's stages; write, flush, replica_wait, publish and acknowledge once for each group.",
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
    let sizes = sources.commit.metrics().group_size.snapshot();
    out.family("cohort_group_size", "histogram", "Transactions in a flush group.");
    out.histogram("cohort_group_size", "", &sizes, SIZE_MAGNITUDES, 1.0);
}

fn connections(status: &Status, out: &mut Text) {
    let gauges = [
        ("cohort_connections_open", "Clients that are connected.", Counter::ThreadsConnected),
        ("cohort_connections_running", "Connections that run a statement.", Counter::ThreadsRunning),
        ("cohort_uptime_seconds", "Time since the start.", Counter::Uptime),
    ];
    for (name, help, counter) in gauges {
        out.single(name, "gauge", help, status.get(counter));
    }
    let counters = [
        ("cohort_connections_total", "Attempts to connect.", Counter::Connections),
        ("cohort_queries_total", "Statements run.", Counter::Queries),
    ];
    for (name, help, counter) in counters {
        out.single(name, "counter", help, status.get(counter));
    }
}

fn locks(locks: &LockTable, out: &mut Text) {
    let found = locks.stats();
    out.single("cohort_row_locks_waiting", "gauge", "Row locks waited for now.", found.row_waits_current);
    out.single("cohort_row_lock_waits_total", "counter", "Row locks that had to wait.", found.row_waits);
    out.single("cohort_deadlocks_total", "counter", "Deadlocks found.", found.deadlocks);
    out.single("cohort_lock_timeouts_total", "counter", "Lock waits that timed out.", found.timeouts);
    out.single("cohort_locked_rows", "gauge", "Rows that are locked or remembered.", found.rows);
    let name = "cohort_row_lock_wait_seconds";
    out.family(name, "histogram", "Time waited for a row lock.");
    out.histogram(name, "", &locks.row_wait_times(), TIME_MAGNITUDES, NANOSECOND);
}

/// Appends all numeric variables of SHOW GLOBAL STATUS.
fn status(status: &Status, out: &mut Text) {
    let name = "cohort_global_status";
    out.family(name, "untyped", "Lines of SHOW GLOBAL STATUS that are numbers.");
    for (variable, value) in status.snapshot() {
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
