//! information_schema.COHORT_COMMIT_STAGES: the duration of each step of a commit.
//!
//! `TRX_SUM_US` counts the time of a group once per member, so its shares are shares of a transaction's time
//! from COMMIT to OK. `COUNT`, `SUM_US` and the percentiles are per group for steps that are done once per
//! group.

use cohort_commit::StepSnapshot;
use cohort_session::{StatementContext, WantedNames};
use cohort_types::{SqlResult, Value};

use super::cells::{integer, text};
use super::schema_table::SchemaTable;

pub fn rows(
    out: &SchemaTable,
    _: &WantedNames,
    ctx: &mut StatementContext<'_>,
) -> SqlResult<Vec<Vec<Value>>> {
    let us = |ns: u64| integer(ns / 1000);
    let row = |step: StepSnapshot| {
        let percentile = |p: f64| us(step.times.percentile(p));
        out.row([
            ("STAGE", text(step.step.name())),
            ("COUNT", integer(step.times.count())),
            ("SUM_US", us(step.times.sum())),
            ("TRX_SUM_US", us(step.trx_ns)),
            ("P50_US", percentile(0.5)),
            ("P95_US", percentile(0.95)),
            ("P99_US", percentile(0.99)),
            ("P999_US", percentile(0.999)),
            ("MAX_US", us(step.times.max())),
        ])
    };
    Ok(ctx.db.commit.metrics().steps().map(row).collect())
}
