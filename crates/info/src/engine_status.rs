//! The text of SHOW ENGINE .. STATUS: the commit path, the locks and the engines.

use std::fmt::Write;

use cohort_base::HistogramSnapshot;
use cohort_commit::StepSnapshot;
use cohort_session::StatementContext;

use super::status::{Of, server_status};
use super::transactions::transactions_text;

/// Nanoseconds in a microsecond.
const US: f64 = 1000.0;

pub(super) fn text(ctx: &StatementContext<'_>) -> String {
    let mut out = String::new();
    commit_path(ctx, &mut out);
    steps(&ctx.db.commit.metrics().steps().collect::<Vec<_>>(), &mut out);
    locks(ctx, &mut out);
    if let Some((at_us, text)) = &*ctx.db.last_deadlock.lock() {
        heading("LATEST DETECTED DEADLOCK", &mut out);
        let zone = &ctx.session.settings.env.time_zone;
        let at = cohort_types::TimeZone::to_local(zone, *at_us as i64);
        writeln!(out, "{}", cohort_types::Value::DateTime(at).to_text()).expect("a string");
        out.push_str(text);
    }
    heading("TRANSACTIONS", &mut out);
    transactions_text(ctx.db, &mut out);
    heading("ENGINES", &mut out);
    for engine in &ctx.db.engines {
        writeln!(out, "{}", engine.name()).expect("a string");
        out.push_str(&engine.report());
        for (name, value) in engine.status() {
            writeln!(out, "{name} {value}").expect("a string");
        }
    }
    out
}

fn heading(title: &str, out: &mut String) {
    let gap = if out.is_empty() { "" } else { "\n" };
    writeln!(out, "{gap}{title}\n{}", "-".repeat(title.len())).expect("a string");
}

fn commit_path(ctx: &StatementContext<'_>, out: &mut String) {
    let all = server_status(ctx, Of::Server);
    let value = |name: &str| all.get(name).map_or("0", String::as_str);
    let sizes = ctx.db.commit.metrics().group_size.snapshot();
    heading("COMMIT PATH", out);
    let per_group = sizes.sum() as f64 / sizes.count().max(1) as f64;
    writeln!(out, "{} transactions in {} flush groups", value("Cohort_commits"), sizes.count())
        .expect("a string");
    writeln!(
        out,
        "group size {per_group:.2} on average, p50 {}, p99 {}, largest {}",
        sizes.percentile(0.5),
        sizes.percentile(0.99),
        sizes.max()
    )
    .expect("a string");
    writeln!(out, "{} log syncs, {} slow flushes", value("Cohort_log_syncs"), value("Cohort_slow_flushes"))
        .expect("a string");
    writeln!(
        out,
        "{} checkpoints, {} failed",
        value("Cohort_checkpoints"),
        value("Cohort_checkpoint_failures")
    )
    .expect("a string");
    writeln!(out, "binlog {} at {}", value("Binlog_snapshot_file"), value("Binlog_snapshot_position"))
        .expect("a string");
}

/// Appends a line for each step, with its share of all transactions' time from COMMIT to OK.
fn steps(steps: &[StepSnapshot], out: &mut String) {
    heading("TIME FROM COMMIT TO OK (microseconds)", out);
    let total: u64 = steps.iter().map(|step| step.trx_ns).sum();
    writeln!(
        out,
        "{:<13} {:>12} {:>6} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "step", "count", "share", "mean", "p50", "p95", "p99", "p99.9", "max"
    )
    .expect("a string");
    for step in steps {
        let share = 100.0 * step.trx_ns as f64 / total.max(1) as f64;
        write!(out, "{:<13} {:>12} {share:>5.1}%", step.step.name(), step.times.count()).expect("a string");
        figures(&step.times, out);
    }
}

fn figures(times: &HistogramSnapshot, out: &mut String) {
    let percentiles = [0.5, 0.95, 0.99, 0.999].map(|p| times.percentile(p));
    for ns in [times.mean()].into_iter().chain(percentiles).chain([times.max()]) {
        write!(out, " {:>10.1}", ns as f64 / US).expect("a string");
    }
    out.push('\n');
}

fn locks(ctx: &StatementContext<'_>, out: &mut String) {
    let locks = ctx.db.locks.stats();
    let waits = ctx.db.locks.row_wait_times();
    heading("LOCKS", out);
    writeln!(
        out,
        "{} row lock waits, {} now, {} ms in all, {} deadlocks, {} timeouts, {} rows locked",
        locks.row_waits,
        locks.row_waits_current,
        waits.sum() / 1_000_000,
        locks.deadlocks,
        locks.timeouts,
        locks.rows
    )
    .expect("a string");
    let us = |p: f64| waits.percentile(p) as f64 / US;
    writeln!(
        out,
        "a wait: p50 {:.1} us, p99 {:.1} us, longest {:.1} us",
        us(0.5),
        us(0.99),
        waits.max() as f64 / US
    )
    .expect("a string");
}
