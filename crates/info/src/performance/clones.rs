//! MySQL's `performance_schema.clone_status` and `clone_progress`: the clone that runs or ran last.

use cohort_session::{CloneReport, CloneStage, StageReport, StatementContext};
use cohort_types::Value;

use crate::cells::{number, text};

/// Returns a time; NULL for 0.
fn time(us: u64) -> Value {
    if us == 0 { Value::Null } else { Value::Timestamp(us as i64) }
}

/// Returns the row of `clone_status`.
pub(super) fn status(ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let row = |report: CloneReport| {
        let state = match (report.end_us, report.error.0) {
            (0, _) => "In Progress",
            (_, 0) => "Completed",
            _ => "Failed",
        };
        vec![
            number(1),
            number(report.connection),
            text(state),
            time(report.begin_us),
            time(report.end_us),
            text(report.source),
            text(report.destination),
            number(u64::from(report.error.0)),
            text(report.error.1),
            text(report.binlog.0),
            number(report.binlog.1),
            text(report.gtids),
        ]
    };
    ctx.db.clones.last().into_iter().map(row).collect()
}

/// Returns the rows of `clone_progress`, one for each stage.
pub(super) fn progress(ctx: &StatementContext<'_>) -> Vec<Vec<Value>> {
    let Some(report) = ctx.db.clones.last() else { return Vec::new() };
    let now_us = ctx.db.clock.wall_us();
    let row = |(stage, of): (&CloneStage, &StageReport)| {
        let has_failed = report.end_us != 0 && report.error.0 != 0;
        let state = match (of.begin_us, of.end_us) {
            (0, _) => "Not Started",
            (_, 0) => "In Progress",
            (_, end) if has_failed && end == report.end_us => "Failed",
            _ => "Completed",
        };
        let end_us = if of.end_us == 0 { now_us } else { of.end_us };
        let us = end_us.saturating_sub(of.begin_us).max(1);
        let speed = (u128::from(of.received) * 1_000_000 / u128::from(us)) as u64;
        let received = || number(of.received);
        vec![
            number(1),
            text(stage.name()),
            text(state),
            time(of.begin_us),
            time(of.end_us),
            number(u64::from(of.begin_us != 0)),
            number(of.expected),
            received(),
            received(),
            number(speed),
            number(speed),
        ]
    };
    CloneStage::ALL.iter().zip(&report.stages).map(row).collect()
}
