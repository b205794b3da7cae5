//! Definitions of databases, tables, views, stored programs and accounts.

use cohort_ddl::{DdlOutcome, ScheduleValues, TimeValue};
use cohort_plan::not_supported;
use cohort_protocol::ResultSink;
use cohort_session::{Job, StatementContext};
use cohort_sql::ast::{DataType, DeclaredKind, Expr, Program, Schedule};
use cohort_types::{SqlResult, TypeKind, Value};

use crate::session::Session;

impl Session {
    /// Runs a statement that changes definitions.
    pub(crate) fn define(
        &mut self,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
        run: impl FnOnce(&mut StatementContext<'_>) -> SqlResult<DdlOutcome>,
    ) -> SqlResult<()> {
        let epoch = self.state.temporary.epoch();
        self.state.statement.rows_found.set(None);
        let outcome = self.with_context(job, run);
        if self.state.temporary.epoch() != epoch {
            // Existing plans do not know the session's temporary tables.
            self.state.refresh();
        }
        let outcome = outcome?;
        if outcome.dropped_schema.is_some()
            && outcome.dropped_schema.as_deref() == self.state.current_schema.as_deref()
        {
            self.leave_schema();
        }
        self.state.settings.env.row_count = outcome.affected as i64;
        if let Some(found) = self.state.statement.rows_found.take() {
            self.state.settings.env.found_rows = found;
        }
        self.send_ok(job.more, outcome.affected, 0, &outcome.info, sink);
        Ok(())
    }

    /// Runs a statement that defines a stored program.
    pub(crate) fn define_program(
        &mut self,
        program: &Program,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        match program {
            Program::CreateRoutine(create) => {
                self.define(job, sink, |ctx| cohort_ddl::create_routine(ctx, create))
            }
            Program::AlterRoutine { kind, name, characteristics } => {
                self.define(job, sink, |ctx| cohort_ddl::alter_routine(ctx, *kind, name, characteristics))
            }
            Program::DropRoutine { kind, if_exists, name } => {
                self.define(job, sink, |ctx| cohort_ddl::drop_routine(ctx, *kind, *if_exists, name))
            }
            Program::CreateTrigger(create) => {
                self.define(job, sink, |ctx| cohort_ddl::create_trigger(ctx, create))
            }
            Program::DropTrigger { if_exists, name } => {
                self.define(job, sink, |ctx| cohort_ddl::drop_trigger(ctx, *if_exists, name))
            }
            Program::CreateEvent(create) => {
                let schedule = self.schedule_values(&create.schedule, job)?;
                self.define(job, sink, |ctx| cohort_ddl::create_event(ctx, create, &schedule))
            }
            Program::AlterEvent(alter) => {
                let schedule = alter.schedule.as_ref();
                let schedule = schedule.map(|schedule| self.schedule_values(schedule, job)).transpose()?;
                self.define(job, sink, |ctx| cohort_ddl::alter_event(ctx, alter, schedule.as_ref()))
            }
            Program::DropEvent { if_exists, name } => {
                self.define(job, sink, |ctx| cohort_ddl::drop_event(ctx, *if_exists, name))
            }
            Program::Call { .. } | Program::Compound(_) | Program::Signal(_) | Program::Resignal(_) => {
                Err(not_supported(program.name()))
            }
        }
    }

    /// Evaluates the expressions of ON SCHEDULE.
    fn schedule_values(&mut self, schedule: &Schedule, job: &Job<'_>) -> SqlResult<ScheduleValues> {
        let mut time = |expr: &Expr| -> SqlResult<TimeValue> {
            let given = self.eval_alone(expr, job)?;
            let to = Box::new(DataType::of(DeclaredKind::Column(TypeKind::DateTime)));
            let cast = Expr::Cast { expr: Box::new(expr.clone()), to };
            let time = match self.eval_alone(&cast, job)? {
                Value::DateTime(time) => Some(time),
                _ => None,
            };
            Ok(TimeValue { given, time })
        };
        Ok(match schedule {
            Schedule::At(at) => ScheduleValues::At(time(at)?),
            Schedule::Every { interval, unit, starts, ends } => {
                let starts = starts.as_ref().map(&mut time).transpose()?;
                let ends = ends.as_ref().map(&mut time).transpose()?;
                ScheduleValues::Every { interval: self.eval_alone(interval, job)?, unit: *unit, starts, ends }
            }
        })
    }
}
