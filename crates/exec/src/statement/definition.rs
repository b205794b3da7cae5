//! Definitions of databases, tables, views, stored programs and accounts.

use cohort_config::{Scope, SetError, VarId};
use cohort_ddl::{DdlOutcome, ScheduleValues, TimeValue};
use cohort_program::{ProgramKind, compile};
use cohort_protocol::ResultSink;
use cohort_session::{Job, SessionState, StatementContext, set_error};
use cohort_sql::ast::{
    AlterEvent, Code, CreateTrigger, DataType, DeclaredKind, Expr, Program, Schedule, SetItem, Statement,
    VariableScope,
};
use cohort_types::{Level, SqlError, SqlResult, TypeKind, Value, Warning};

use crate::session::Session;

/// Compiles the body of a definition: the errors of CREATE. Returns the number of queries in it whose INTO
/// follows the tables.
fn check_program(session: &SessionState, program: &Program, text: &[u8]) -> SqlResult<usize> {
    let none = Vec::new();
    let full_name;
    let (kind, name, parameters, returns, body) = match program {
        Program::CreateRoutine(create) => {
            let kind = ProgramKind::of_routine(create.kind, create.aggregate);
            let returns = create.returns.as_ref().map(|(of, _)| of);
            let schema = create.name.db.as_deref().or(session.current_schema.as_deref());
            full_name = schema.map(|schema| format!("{schema}.{}", create.name.name));
            let name = full_name.as_ref().unwrap_or(&create.name.name);
            (kind, name, &create.parameters, returns, &create.body)
        }
        Program::CreateTrigger(create) => {
            let kind = ProgramKind::Trigger(create.timing, create.event);
            (kind, &create.name.name, &none, None, &create.body)
        }
        Program::CreateEvent(create) => (ProgramKind::Event, &create.name.name, &none, None, &create.body),
        Program::AlterEvent(AlterEvent { name, body: Some(body), .. }) => {
            (ProgramKind::Event, &name.name, &none, None, body)
        }
        _ => return Ok(0),
    };
    let text = String::from_utf8_lossy(text.get(body.range.clone()).unwrap_or_default());
    let compiled = compile(kind, name, parameters, returns, body, &text)?;
    for statement in &compiled.statements {
        if let Statement::Set(items) = &statement.of {
            items.iter().try_for_each(|item| check_set(kind, item))?;
        }
    }
    if let Program::CreateTrigger(CreateTrigger { table, .. }) = program
        && let Some(schema) = table.db.as_deref().or(session.current_schema.as_deref())
        && let Some(table) = session.db.catalog().table(schema, &table.name)
    {
        let is_column = |name: &str| table.columns.iter().any(|it| it.name.eq_ignore_ascii_case(name));
        compiled.check_columns(is_column)?;
    }
    let is_late = |code: &&Code<Statement>| match &code.of {
        Statement::Query(query) => query.into_is_late,
        Statement::QueryIntoFile(query) => query.is_late,
        _ => false,
    };
    Ok(compiled.statements.iter().filter(is_late).count())
}

/// Error 1193 for SET of a variable that does not exist, 1445 for autocommit in a function or trigger.
fn check_set(kind: ProgramKind, item: &SetItem) -> SqlResult<()> {
    let SetItem::Variable { scope, name, .. } = item else { return Ok(()) };
    let scope = if *scope == VariableScope::Global { Scope::Global } else { Scope::Session };
    match cohort_config::settable(name, scope) {
        Err(unknown @ SetError::Unknown(_)) => Err(set_error(unknown)),
        Ok(id) if kind.runs_inside() && id.canonical() == VarId::Autocommit => {
            Err(SqlError::autocommit_in_function())
        }
        _ => Ok(()),
    }
}

impl Session {
    /// Runs a statement that changes definitions.
    pub(crate) fn define(
        &mut self,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
        run: impl FnOnce(&mut StatementContext<'_>) -> SqlResult<DdlOutcome>,
    ) -> SqlResult<()> {
        self.state.statement.rows_found.set(None);
        let outcome = self.with_context(job, run);
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

    /// Runs a statement that defines a stored program, runs one, or belongs to their language.
    pub(crate) fn program_statement(
        &mut self,
        program: &Program,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        for _ in 0..check_program(&self.state, program, job.text)? {
            let error = SqlError::into_before_from_deprecated();
            self.diagnostics.push(Warning { level: Level::Warning, error });
        }
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
            Program::Call { name, arguments } => self.call_statement(name, arguments, job, sink),
            Program::Check { kind, name } => self.check_program(*kind, name, job, sink),
            Program::Compound(body) => self.compound(body, job, sink),
            Program::Signal(_) | Program::Resignal(_) => self.signal(program, job, sink),
        }
    }

    /// Evaluates the expressions of ON SCHEDULE.
    fn schedule_values(&mut self, schedule: &Schedule, job: &Job<'_>) -> SqlResult<ScheduleValues> {
        const CLAUSE: &str = "CREATE/ALTER EVENT";
        let mut time = |expr: &Expr| -> SqlResult<TimeValue> {
            let given = self.eval_plain(expr, CLAUSE, job)?;
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
                ScheduleValues::Every {
                    interval: self.eval_plain(interval, CLAUSE, job)?,
                    unit: *unit,
                    starts,
                    ends,
                }
            }
        })
    }
}
