//! ANALYZE of a statement: runs it, discards its rows, and returns its plan with the measurements of each
//! operator.

use std::sync::Arc;
use std::time::Instant;

use cohort_protocol::{OkInfo, ResultHead, ResultSink, StatusFlags};
use cohort_run::{PlanProfile, nanos_since};
use cohort_session::Job;
use cohort_sql::ast::{ExplainFormat, Statement};
use cohort_table::definition_changed;
use cohort_types::{SqlError, SqlResult, Value};

use crate::cached_plan::{CachedPlan, make_plan};
use crate::dispatch::{Executed, PLAN_ATTEMPTS, execute};
use crate::explain::explain;
use crate::explain_json::explain_json;
use crate::session::Session;
use crate::statement::KnownNow;

/// A sink that discards rows.
struct Discarded<'d>(&'d mut dyn ResultSink);

impl ResultSink for Discarded<'_> {
    fn start(&mut self, _: &[cohort_protocol::ColumnMeta], _: ResultHead) {}
    fn row(&mut self, _: &[Value]) {}
    fn finish(&mut self, _: StatusFlags, _: u16) {}
    fn ok(&mut self, _: &OkInfo<'_>) {}
    fn error(&mut self, _: &SqlError) {}

    fn is_dead(&self) -> bool {
        self.0.is_dead()
    }
}

impl Session {
    /// Runs a statement and returns its plan with the measurements.
    pub(crate) fn analyze(
        &mut self,
        format: ExplainFormat,
        statement: &Statement,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let outcome = self.run_measured(statement, job, &mut Discarded(sink));
        self.state.statement.measure(None);
        let (plan, profile) = outcome?;
        let (columns, rows) = match format {
            ExplainFormat::AnalyzeJson => explain_json(&plan.plan, Some(&profile)),
            _ => {
                let known = KnownNow { session: &self.state, params: job.params };
                explain(&plan.plan, false, Some(&profile), &known)
            }
        };
        self.send_rows(job.more, &columns, &rows, sink);
        Ok(())
    }

    fn run_measured(
        &mut self,
        statement: &Statement,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<(Arc<CachedPlan>, Arc<PlanProfile>)> {
        for _ in 0..PLAN_ATTEMPTS {
            let catalog = self.state.db.catalog();
            let around = self.state.statement.times_plans.replace(true);
            let outcome = self.in_statement(job, sink, |ctx, sink| {
                ctx.session.set_traced_text(ctx.text);
                let start = Instant::now();
                let plan = Arc::new(make_plan(&catalog, ctx.session, job.params, job.source, statement)?);
                plan.check_viewer(ctx.session)?;
                ctx.session.statement.planning_ns.set(nanos_since(Some(start)));
                Ok((execute(ctx, &plan, sink)?, plan))
            });
            self.state.statement.times_plans.set(around);
            match (outcome?, self.state.statement.profile()) {
                ((Executed::Stale, _), _) | (_, None) => {}
                ((executed, plan), Some(profile)) => {
                    if let Executed::Changed(outcome) = executed
                        && let Some(id) = outcome.generated_id
                    {
                        self.state.settings.env.last_insert_id = id;
                    }
                    return Ok((plan, profile));
                }
            }
        }
        Err(definition_changed())
    }
}
