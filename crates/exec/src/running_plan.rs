//! Plans of running statements: SHOW EXPLAIN and SHOW ANALYZE.
//!
//! A statement shows its plan while it runs, also while it waits for a lock ([`cohort_observe::Published`]).
//! A reader takes a reference to the plan and leaves, so the statement never waits for the explanation. A
//! statement of a stored program shows its own plan, instead of that of the statement that runs the program.
//! If the program has the privileges of its definer, other accounts need PROCESS to see it.

use std::any::Any;
use std::sync::Arc;

use cohort_catalog::AccountName;
use cohort_protocol::{ColumnMeta, ResultSink};
use cohort_run::PlanProfile;
use cohort_session::{Job, Process, ProcessSnapshot, RunningPlan, SharedPlan, access};
use cohort_sql::ast::{self, ExplainFormat};
use cohort_types::{Privilege, SqlError, SqlResult, Value, Warning};

use crate::cached_plan::CachedPlan;
use crate::explain::explain;
use crate::explain_json::{explain_json, explain_json_in_progress};
use crate::explain_tree::explain_tree;
use crate::session::Session;
use crate::slow_plan::NothingKnown;

/// Attempts to see a text and a plan of one statement.
const ATTEMPTS: usize = 3;

/// A plan that runs, and the measurements of its parts.
pub(crate) struct MeasuredPlan {
    pub plan: Arc<CachedPlan>,
    pub profile: Arc<PlanProfile>,
    /// The account whose privileges the statement has, if it is not that of its session.
    pub definer: Option<AccountName>,
}

impl RunningPlan for MeasuredPlan {
    fn keep(&self) -> Box<dyn Any> {
        let (plan, profile) = (Arc::clone(&self.plan), Arc::clone(&self.profile));
        Box::new(MeasuredPlan { plan, profile, definer: self.definer.clone() })
    }
}

/// Its parts are not measured.
impl SharedPlan for CachedPlan {
    fn keep(plan: &Arc<CachedPlan>) -> Box<dyn Any> {
        let profile = Arc::new(PlanProfile::counting(plan.parts));
        Box::new(MeasuredPlan { plan: Arc::clone(plan), profile, definer: None })
    }
}

/// Returns the statement that a connection runs, and its plan.
fn running(process: &Process) -> Option<(ProcessSnapshot, Box<MeasuredPlan>)> {
    for _ in 0..ATTEMPTS {
        let before = process.snapshot(&|_| None);
        let plan = process.plan().read(|plan| plan.keep())?;
        let after = process.snapshot(&|_| None);
        if (before.query_id, &before.info) == (after.query_id, &after.info) {
            return Some((after, plan.downcast().ok()?));
        }
    }
    None
}

impl Session {
    /// SHOW EXPLAIN, SHOW ANALYZE.
    pub(crate) fn explain_of_connection(
        &mut self,
        format: ExplainFormat,
        number: &ast::Expr,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        if number.has_subquery() || number.has_part(|part| matches!(part, ast::Expr::Function { .. })) {
            return Err(SqlError::constants_only());
        }
        let process = self.process_of(number, job)?;
        let is_own = self.state.is_own(&process.identity());
        if !is_own {
            access::check_global(&self.state, Privilege::Process)?;
        }
        let (statement, running) = running(&process).ok_or_else(SqlError::not_explainable)?;
        let is_of_session = running.definer.as_ref().is_none_or(|of| *of == self.state.info.account);
        if is_own && !is_of_session {
            access::check_global(&self.state, Privilege::Process)?;
        } else if is_own {
            // The account may have lost its privileges. PROCESS suffices to see the plans of others.
            running.plan.check_viewer(&self.state)?;
        }
        let (columns, rows) = explained(format, &running, || {
            self.state.db.clock.wall_us().saturating_sub(statement.since_us) / 1000
        });
        self.diagnostics.push(Warning::note(SqlError::note_of(statement.info.unwrap_or_default())));
        self.send_rows(job.more, &columns, &rows, sink);
        Ok(())
    }
}

fn explained(
    format: ExplainFormat,
    running: &MeasuredPlan,
    took_ms: impl FnOnce() -> u64,
) -> (Vec<ColumnMeta>, Vec<Vec<Value>>) {
    let (plan, profile) = (&running.plan.plan, &*running.profile);
    let (mut columns, rows) = match format {
        ExplainFormat::Json => explain_json(plan, None),
        ExplainFormat::Tree => explain_tree(plan),
        ExplainFormat::AnalyzeJson => explain_json_in_progress(plan, profile, took_ms()),
        ExplainFormat::Analyze => explain(plan, false, Some(profile), &NothingKnown),
        ExplainFormat::Traditional | ExplainFormat::Partitions => explain(plan, false, None, &NothingKnown),
        ExplainFormat::Extended => explain(plan, true, None, &NothingKnown),
    };
    match format {
        ExplainFormat::Json => columns[0].name = "SHOW EXPLAIN".into(),
        ExplainFormat::AnalyzeJson => columns[0].name = "SHOW ANALYZE".into(),
        _ => {}
    }
    (columns, rows)
}
