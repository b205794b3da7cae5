//! [`ContextHost`]: runs the statements of a function or a trigger inside the calling statement.
//!
//! Its statements belong to the transaction and to the binary log events of the outermost statement
//! (`cohort_trx`, `inner.rs`). A statement of a program without handlers takes no mark: if it fails, the
//! calling statement fails too.

use std::cell::Cell;
use std::sync::Arc;

use cohort_base::CommitSeq;
use cohort_catalog::{AccountName, Routine};
use cohort_config::{Acts, Scope, SetNote, VarId, VarValue};
use cohort_dml::DmlOutcome;
use cohort_expr::{EvalContext, SessionHooks};
use cohort_plan::{Names, ParamSource, Parameter, check_alone};
use cohort_program::{
    BodyStatement, Bound, Finished, Group, Host, ProgramKind, QueryRows, ResultColumn, RowsFor, counts_lines,
};
use cohort_protocol::NullSink;
use cohort_query::{Freshness, guards, run_query};
use cohort_session::{
    Changed, Conditions, Database, Diagnostics, InnerSession, Process, ProgramContext, SessionState,
    StatementContext, access, set_error, traits_of,
};
use cohort_sql::ast::{
    self, Expr, ObjectName, Query, QueryBody, Select, SelectItem, SetItem, SetValue, Statement, Variable,
    VariableScope,
};
use cohort_table::definition_changed;
use cohort_trx::{AfterFailure, OuterSavepoints, PlanCounts, SessionTrx};
use cohort_types::{ErrorCode, Level, SqlError, SqlResult, Value, Warning, check_stack};

use super::cache::Compiled;
use super::call::check_arguments;
use super::procedures::{find_procedure, parameters_of};
use super::routines::OF_ROUTINES;
use super::session_host::{BodyPlan, HeldRows, columns_of, is_final, known_in_body, with_names};
use crate::cached_plan::{CachedPlan, Planned, make_inner_plan, make_plan};
use crate::dispatch::{Executed, PLAN_ATTEMPTS, execute};
use crate::frame::{Frame, kind_of_counters};
use crate::get_diagnostics;
use crate::named_tables::{await_definitions, is_of_definitions};
use crate::plan_locks::{check_needs, lock_and_check, with_tables_in_use};
use crate::shared_caches::SharedCaches;
use crate::statement::{check_plain, kill as kill_targets};
use crate::variable_values::{charset_by_number, check_time_zone, from_value};
use crate::variables::check_rules;
use crate::work::Work;

/// A running statement in which a function or a trigger runs.
pub(super) struct ContextHost<'h> {
    db: &'h Arc<Database>,
    session: InnerSession<'h>,
    trx: &'h mut SessionTrx,
    process: &'h Process,
    diagnostics: Diagnostics,
    after: AfterFailure,
    /// The kind of the function or trigger.
    kind: ProgramKind,
    /// The savepoints of the caller, `None` for a procedure, which shares them.
    outer_savepoints: Option<OuterSavepoints>,
}

impl Drop for ContextHost<'_> {
    fn drop(&mut self) {
        if let Some(outer) = &self.outer_savepoints {
            self.trx.end_savepoints(outer);
        }
    }
}

/// The caller of a program that runs inside a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    /// The statement itself, or one of another function or trigger.
    Statement,
    /// CALL in a function or trigger.
    Program,
}

/// State that a statement of a program has left in its session.
#[derive(Default)]
struct Left {
    assigned: Vec<(Variable, Value)>,
    planning_warnings: Vec<Warning>,
    next_insert_id: Option<u64>,
    rows_found: Option<u64>,
    out: Vec<(u32, Value)>,
}

impl<'h> ContextHost<'h> {
    /// Begins a program. Error 1449 if its definer does not exist.
    pub fn begin(
        ctx: &'h mut StatementContext<'_>,
        of: ProgramContext<'_>,
        (kind, caller): (ProgramKind, Caller),
    ) -> SqlResult<ContextHost<'h>> {
        check_stack()?;
        if !ctx.trx.is_inside() {
            // Rows that the program changes belong to the events of the calling statement.
            ctx.annotate();
        }
        let session = InnerSession::begin(ctx.session, of)?;
        let mut diagnostics = Diagnostics::default();
        diagnostics.set_limit(session.settings.env.max_error_count);
        let (db, process) = (ctx.db, ctx.process);
        let (trx, after) = (&mut *ctx.trx, AfterFailure::Fail);
        let outer_savepoints = (caller == Caller::Statement).then(|| trx.begin_savepoints());
        Ok(ContextHost { db, session, trx, process, diagnostics, after, kind, outer_savepoints })
    }

    /// Returns the session as the program sees it.
    pub fn state(&self) -> &SessionState {
        &self.session
    }

    /// Calls `run` with the bound program.
    pub fn run<T>(
        &mut self,
        bound: &Bound,
        run: impl FnOnce(&mut ContextHost<'h>) -> SqlResult<T>,
    ) -> SqlResult<T> {
        let has_handlers = bound.program.blocks.iter().any(|block| !block.handlers.is_empty());
        self.after = if has_handlers { AfterFailure::MayContinue } else { AfterFailure::Fail };
        run(self)
    }

    /// Ends the program. Returns the conditions for the calling statement.
    pub fn end(mut self) -> Vec<Warning> {
        let places = self.diagnostics.take_after_error();
        if !places.is_empty() {
            self.session.programs.borrow_mut().add_places(places);
        }
        if self.diagnostics.has_cleared() {
            self.session.programs.borrow_mut().note_cleared();
        }
        self.diagnostics.list().to_vec()
    }

    fn context<'c>(&'c mut self, params: &'c [Value]) -> StatementContext<'c> {
        StatementContext {
            db: self.db,
            session: &self.session,
            eval: EvalContext::new(&self.session.settings.env, &*self.session, params),
            trx: &mut *self.trx,
            process: self.process,
            text: b"",
            param_at: &[],
            params,
            source: ParamSource::Placeholders,
            more: false,
            uses_zone: Cell::new(false),
            uses_micros: Cell::new(false),
        }
    }

    /// Runs a statement inside the calling one, and keeps its conditions.
    fn inside<T>(
        &mut self,
        (params, source): (&[Value], ParamSource<'_>),
        work: impl FnOnce(&mut StatementContext<'_>) -> SqlResult<T>,
    ) -> SqlResult<(T, Vec<(Variable, Value)>)> {
        self.session.last.warnings = self.diagnostics.total();
        self.session.last.errors = self.diagnostics.errors();
        let (after, mut left) = (self.after, Left::default());
        let (outcome, warnings) = self.context(&[]).run_inside(after, (params, source), |ctx| {
            let outcome = ctx.check_interrupt().and_then(|()| work(ctx));
            let state = &ctx.session.statement;
            left = Left {
                assigned: state.assigned.take(),
                planning_warnings: state.planning_warnings.take(),
                next_insert_id: state.next_insert_id.take(),
                rows_found: state.rows_found.take(),
                out: state.out.take(),
            };
            outcome
        });
        self.session.statement.out.borrow_mut().extend(left.out);
        let env = &mut self.session.settings.env;
        if let Some(id) = left.next_insert_id {
            env.last_insert_id = id;
        }
        if let Some(found) = left.rows_found {
            env.found_rows = found;
        }
        if outcome.is_err() {
            env.row_count = -1;
            for place in self.session.programs.borrow_mut().take_places() {
                self.diagnostics.add_after_error(place);
            }
        }
        if self.session.programs.borrow_mut().take_cleared() {
            self.diagnostics.drop_old();
        }
        self.adopt_variables();
        left.planning_warnings.into_iter().for_each(|warning| self.diagnostics.push(warning));
        if warnings.total() > 0 {
            self.diagnostics.add_all(&warnings);
        }
        Ok((outcome?, left.assigned))
    }

    /// Takes over the variables of the session that programs called by this one have set.
    fn adopt_variables(&mut self) {
        let variables = self.session.programs.borrow().variables().to_vec();
        let is_new = |(id, value): &&(VarId, VarValue)| self.session.settings.vars.value(*id) != *value;
        let changed: Vec<_> = variables.iter().filter(is_new).cloned().collect();
        if changed.is_empty() {
            return;
        }
        for (id, value) in changed {
            self.session.settings.vars.put(id, &value);
        }
        self.session.refresh();
    }

    fn begin_conditions(&mut self, statement: &Statement) {
        match traits_of(statement).conditions {
            Conditions::Kept => self.diagnostics.keep(),
            Conditions::Old => self.diagnostics.begin(),
            Conditions::Cleared => self.diagnostics.clear(),
        }
    }

    /// Plans a statement, or takes the plan that was kept with it, and calls `run` until the plan is current.
    fn planned<T>(
        &mut self,
        of: &BodyStatement,
        params: &[Value],
        // The use of the rows that the program reads itself.
        rows_for: Option<RowsFor>,
        mut run: impl FnMut(&mut StatementContext<'_>, &Arc<CachedPlan>) -> SqlResult<Option<T>>,
    ) -> SqlResult<(T, Arc<CachedPlan>, Vec<(Variable, Value)>)> {
        let source = of.source();
        let ((done, plan), assigned) = self.inside((params, source), |ctx| {
            for _ in 0..PLAN_ATTEMPTS {
                let catalog = ctx.db.catalog();
                let key = ctx.session.settings.plan_key;
                let kept = of.kept::<BodyPlan>().filter(|kept| kept.is_current(ctx.db, key));
                let plan = match kept {
                    Some(kept) => Arc::clone(&kept.plan),
                    None => {
                        let session = ctx.session;
                        session.set_traced_text(ctx.text);
                        let made = match rows_for {
                            Some(rows_for) => {
                                make_inner_plan((&catalog, session), params, source, &of.statement, rows_for)
                            }
                            None => make_plan(&catalog, session, params, source, &of.statement),
                        };
                        let made = match made {
                            Ok(made) => Arc::new(made),
                            Err(error) if is_of_definitions(&error) => {
                                match await_definitions(ctx, &of.statement, &catalog, error.code)? {
                                    Freshness::Stale => continue,
                                    Freshness::Fresh => return Err(error),
                                }
                            }
                            Err(error) => return Err(error),
                        };
                        if made.reusable && ctx.session.temporary.is_empty() {
                            of.keep(Arc::new(BodyPlan::new(Arc::clone(&made), catalog.version, key)));
                        }
                        made
                    }
                };
                if let Some(done) = run(ctx, &plan)? {
                    return Ok((done, plan));
                }
            }
            Err(definition_changed())
        })?;
        // As in MariaDB, a subquery of an expression clears no conditions.
        let is_value = matches!(rows_for, Some(RowsFor::Value { .. }));
        if !is_value && plan.reads_tables() {
            self.diagnostics.drop_old();
        }
        self.diagnostics.put_first(&plan.warnings);
        Ok((done, plan, assigned))
    }

    fn run_statement(&mut self, of: &BodyStatement, params: &[Value]) -> SqlResult<Vec<(Variable, Value)>> {
        let (statement, source) = (&of.statement, of.source());
        self.begin_conditions(statement);
        match statement {
            _ if statement.plannable().is_some() => self.run_plannable(of, params),
            Statement::Set(items) => self.set(of, items, params).map(|()| Vec::new()),
            Statement::Do(exprs) => {
                let exprs: Vec<&Expr> = exprs.iter().collect();
                self.values(of, &exprs, params).map(|_| Vec::new())
            }
            Statement::CreateTable(create) if create.temporary => {
                self.define((params, source), |ctx| cohort_ddl::create_table(ctx, create))
            }
            Statement::DropTable(drop) if drop.temporary => {
                self.define((params, source), |ctx| cohort_ddl::drop_table(ctx, drop))
            }
            Statement::Savepoint(name) => self.trx.inner_savepoint(name).map(|()| Vec::new()),
            Statement::RollbackTo(name) => self.trx.inner_rollback_to(name).map(|()| Vec::new()),
            Statement::ReleaseSavepoint(name) => self.trx.release(name).map(|()| Vec::new()),
            Statement::Kill(kill) => {
                let number = match kill.number() {
                    Some(number) => {
                        check_plain(number, "KILL")?;
                        self.values(of, &[number], params)?.into_iter().next()
                    }
                    None => None,
                };
                self.session.settings.env.row_count = kill_targets(&self.session, kill, number)? as i64;
                Ok(Vec::new())
            }
            Statement::GetDiagnostics(get) => {
                let number = match get {
                    ast::GetDiagnostics::Condition { number, .. } => {
                        let diagnostics = std::mem::take(&mut self.diagnostics);
                        let values = self.values(of, &[number], params);
                        self.diagnostics = diagnostics;
                        values?.into_iter().next()
                    }
                    ast::GetDiagnostics::Statement(_) => None,
                };
                get_diagnostics::run(get, number, &mut self.diagnostics, &self.session)?;
                Ok(self.session.statement.assigned.take())
            }
            _ => Err(SqlError::not_supported("this statement in a function or trigger")),
        }
    }

    /// Runs a query or a row change.
    fn run_plannable(&mut self, of: &BodyStatement, params: &[Value]) -> SqlResult<Vec<(Variable, Value)>> {
        let statement = &of.statement;
        let traits = traits_of(statement);
        if traits.counts_as_write() && !access::is_about_temporary(&self.session, statement, traits) {
            guards::check_read_only(&self.session)?;
        }
        if access::refused_in_read_only_transaction(&self.session, statement, traits)
            && self.trx.may_only_read(false)
        {
            return Err(SqlError::read_only_transaction());
        }
        let (executed, _, assigned) = self.planned(of, params, None, |ctx, plan| {
            Ok(match execute(ctx, plan, &mut NullSink)? {
                Executed::Stale => None,
                executed => Some(executed),
            })
        })?;
        let counts_found = self.session.info.found_rows;
        let env = &mut self.session.settings.env;
        match executed {
            Executed::Rows(counts) => (env.found_rows, env.row_count) = (counts.found, -1),
            Executed::Into(rows) => (env.found_rows, env.row_count) = (rows, rows as i64),
            Executed::Changed(DmlOutcome { generated_id, affected, found, .. }) => {
                if let Some(id) = generated_id {
                    env.last_insert_id = id;
                }
                env.row_count = if counts_found { found } else { affected } as i64;
            }
            Executed::Stale => unreachable!("it was planned again"),
        }
        Ok(assigned)
    }

    /// Returns the rows of a query.
    fn rows(&mut self, of: &BodyStatement, params: &[Value], rows_for: RowsFor) -> SqlResult<HeldRows> {
        let (rows, ..) = self.planned(of, params, Some(rows_for), |ctx, plan| {
            let Planned::Query(query) = &plan.plan else {
                return Err(SqlError::not_supported("this statement as a query of a program"));
            };
            // Sessions share the plan.
            check_needs(ctx, plan)?;
            if lock_and_check(ctx, plan)? == Freshness::Stale {
                return Ok(None);
            }
            let mut rows = HeldRows::new(query.columns.len(), rows_for.rows_max(), ctx.process);
            ctx.eval.set_abort_on_warning(rows_for.is_strict());
            with_tables_in_use(ctx, plan, |ctx| run_query(query, ctx, u64::MAX, &mut rows).map(drop))?;
            Ok(Some(rows))
        })?;
        Ok(rows)
    }

    /// Returns the values of expressions of a statement that is not planned.
    fn values(&mut self, of: &BodyStatement, exprs: &[&Expr], params: &[Value]) -> SqlResult<Vec<Value>> {
        exprs.iter().try_for_each(|expr| check_alone(expr))?;
        let items = exprs.iter().map(|expr| SelectItem::Expr {
            expr: (*expr).clone(),
            alias: None,
            text: String::new(),
        });
        let query = Query::of(QueryBody::Select(Box::new(Select::of(items.collect()))));
        let statement = of.with(Statement::Query(Box::new(query)));
        let mut rows = self.rows(&statement, params, RowsFor::Value { is_strict: false })?;
        Ok(rows.next_row()?.unwrap_or_default())
    }

    /// Runs SET of user variables and of variables of the session. These have their values in the program at
    /// once, and in the session when the calling statement ends.
    fn set(&mut self, of: &BodyStatement, items: &[SetItem], params: &[Value]) -> SqlResult<()> {
        enum To<'i> {
            User(&'i str),
            Variable(Scope, VarId, &'i str),
        }
        let (mut exprs, mut steps) = (Vec::new(), Vec::new());
        for item in items {
            match item {
                SetItem::UserVariable { name, value } => {
                    exprs.push(value);
                    steps.push((To::User(name), None));
                }
                SetItem::Variable { scope, name, value } => {
                    let scope = match scope {
                        VariableScope::Global => Scope::Global,
                        _ => Scope::Session,
                    };
                    let to = To::Variable(scope, self.settable(name, scope)?, name);
                    match value {
                        SetValue::Expr(expr) => {
                            exprs.push(expr);
                            steps.push((to, None));
                        }
                        SetValue::Word(word) => steps.push((to, Some(Some(VarValue::text(word))))),
                        SetValue::Default => steps.push((to, Some(None))),
                    }
                }
                _ => return Err(SqlError::not_supported("SET of this variable in a function or trigger")),
            }
        }
        let mut values = self.values(of, &exprs, params)?.into_iter();
        for (to, fixed) in steps {
            match (to, fixed) {
                (To::User(name), _) => {
                    self.session.note_change(Changed::Other);
                    self.session.set_user_variable(name, values.next().unwrap_or(Value::Null))?;
                }
                (To::Variable(scope, id, name), fixed) => {
                    let value = match fixed {
                        Some(value) => value,
                        None => Some(from_value(&values.next().unwrap_or(Value::Null))),
                    };
                    self.set_variable(scope, (id, name), value)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the variable that a name means. Error 1227 if the account may not set it, 1235 if it acts on
    /// the running transaction or ends the audit log, whose last line belongs to a statement of the session,
    /// and 1192 for `read_only`, which would wait for the calling statement.
    fn settable(&self, name: &str, scope: Scope) -> SqlResult<VarId> {
        let id = cohort_config::settable(name, scope).map_err(set_error)?;
        let setting = id.setting();
        let admins = setting.admins(scope);
        if !admins.is_empty() {
            access::check_global(&self.session, admins)?;
        }
        if scope == Scope::Global {
            let callbacks = self.db.callbacks.read().clone();
            callbacks.map_or(Ok(()), |callbacks| callbacks.check_settable(id))?;
            let refused = || SqlError::not_supported("SET of this variable in a function or trigger");
            let is_of_audit = name.to_ascii_lowercase().starts_with("server_audit_");
            return match id {
                VarId::ReadOnly => Err(cohort_trx::active_locks()),
                _ if is_of_audit => Err(refused()),
                VarId::EventScheduler | VarId::GtidBinlogState | VarId::GtidSlavePos => Err(refused()),
                _ => Ok(id),
            };
        }
        match (id, setting.acts_in()) {
            (VarId::SqlLogBin, _) => Err(SqlError::sql_log_bin_in_function()),
            (VarId::BinlogFormat, _) => Err(SqlError::binlog_format_in_function()),
            (VarId::SkipReplication, _) => Err(SqlError::skip_replication_in_function()),
            (VarId::GtidDomainId | VarId::GtidSeqNo, _) => Err(SqlError::gtid_switch_in_function()),
            (_, Acts::Statement | Acts::Plan | Acts::Nowhere) => Ok(id),
            _ => Err(SqlError::not_supported("SET of this variable in a function or trigger")),
        }
    }

    fn set_variable(
        &mut self,
        scope: Scope,
        (id, name): (VarId, &str),
        value: Option<VarValue>,
    ) -> SqlResult<()> {
        let value = value.map(|value| charset_by_number(id, value));
        if let (VarId::TimeZone, Some(value)) = (id, &value) {
            check_time_zone(value)?;
        }
        if let Some(VarValue::Text(list)) = &value {
            check_rules(id, list)?;
        }
        let vars = &mut self.session.settings.vars;
        vars.check(name, scope, value.as_ref()).map_err(set_error)?;
        match value {
            None => vars.set_default(name, scope).map_err(set_error)?,
            Some(value) => {
                if let SetNote::Adjusted(text) = vars.set(name, scope, &value).map_err(set_error)? {
                    let error = SqlError::truncated_wrong_value(&text);
                    self.diagnostics.push(Warning { level: Level::Warning, error });
                }
            }
        }
        if scope == Scope::Global {
            if id.setting().acts_in() == Acts::Global {
                let callbacks = self.db.callbacks.read().clone();
                for error in callbacks.map_or(Ok(Vec::new()), |callbacks| callbacks.global_changed(id))? {
                    self.diagnostics.push(Warning { level: Level::Warning, error });
                }
            }
            return Ok(());
        }
        if !OF_ROUTINES.contains(&id) {
            let value = self.session.settings.vars.value(id);
            self.session.programs.borrow_mut().set_variable(id, value);
        }
        self.session.refresh();
        Ok(())
    }

    /// Runs a statement that defines temporary tables.
    fn define(
        &mut self,
        params: (&[Value], ParamSource<'_>),
        work: impl FnOnce(&mut StatementContext<'_>) -> SqlResult<cohort_ddl::DdlOutcome>,
    ) -> SqlResult<Vec<(Variable, Value)>> {
        let epoch = self.session.temporary.epoch();
        let outcome = self.inside(params, work);
        if self.session.temporary.epoch() != epoch {
            // Plans do not know the session's temporary tables.
            self.session.refresh();
        }
        let (outcome, assigned) = outcome?;
        self.session.settings.env.row_count = outcome.affected as i64;
        Ok(assigned)
    }
}

impl Host for ContextHost<'_> {
    fn session(&self) -> &SessionState {
        &self.session
    }

    fn with_names(&mut self, work: &mut dyn FnMut(&dyn Names) -> SqlResult<()>) -> SqlResult<()> {
        with_names(&self.session, work)
    }

    fn diagnostics(&mut self) -> &mut Diagnostics {
        &mut self.diagnostics
    }

    fn check_interrupt(&mut self) -> SqlResult<()> {
        self.trx.check_killed()?;
        self.session.check_interrupt()
    }

    /// As in MariaDB, a function or a trigger that times out at a lock fails with its whole statement. A
    /// refusal of this server also passes every handler: the program must not go on as if it had succeeded.
    fn may_handle(&self, error: &SqlError) -> bool {
        let is_refused = matches!(error.code, ErrorCode::LockWaitTimeout | ErrorCode::NotSupportedYet);
        let is_final = is_final(error) || is_refused;
        !is_final && self.trx.check_inner().is_ok() && self.session.kill.killed().is_none()
    }

    fn run(&mut self, of: &BodyStatement, params: &[Value]) -> SqlResult<Vec<(Variable, Value)>> {
        let frame = Frame::begin(self.db, self.process, self.db.clock.wall_us(), CommitSeq(0));
        let mut plans = PlanCounts::default();
        plans.update(self.process.counts());
        let outcome = self.run_statement(of, params);
        let work = Work {
            rows_affected: u64::try_from(self.session.settings.env.row_count).unwrap_or(0),
            error: outcome.as_ref().err().map_or(0, SqlError::number),
            ..Work::default()
        };
        let kind = kind_of_counters(traits_of(&of.statement).counters);
        frame.end_inside(self.db, self.process, known_in_body(&self.session, of), kind, &work, &mut plans);
        outcome
    }

    fn query(
        &mut self,
        query: &BodyStatement,
        params: &[Value],
        rows_for: RowsFor,
    ) -> SqlResult<Box<dyn QueryRows>> {
        self.diagnostics.begin();
        Ok(Box::new(self.rows(query, params, rows_for)?))
    }

    fn describe(&mut self, query: &BodyStatement) -> SqlResult<Vec<ResultColumn>> {
        let nulls = vec![Value::Null; query.types.len()];
        let catalog = self.db.catalog();
        let source = query.source();
        let of = (&catalog, &*self.session);
        let plan = make_inner_plan(of, &nulls, source, &query.statement, RowsFor::Cursor);
        self.session.statement.planning_warnings.borrow_mut().clear();
        Ok(plan?.result_columns())
    }

    fn columns_of(&mut self, table: &ObjectName, column: Option<&str>) -> SqlResult<Vec<ResultColumn>> {
        let (catalog, source) = (self.db.catalog(), ParamSource::Placeholders);
        columns_of(&self.session, table, column, |query| {
            let plan = make_plan(&catalog, &self.session, &[], source, query);
            self.session.statement.planning_warnings.borrow_mut().clear();
            Ok(plan?.result_columns())
        })
    }

    fn parameters(&mut self, procedure: &ObjectName) -> SqlResult<Vec<Parameter>> {
        parameters_of(&self.session, procedure)
    }

    fn call(
        &mut self,
        procedure: &ObjectName,
        args: Vec<Value>,
        is_variable: &[bool],
    ) -> SqlResult<Vec<Option<Value>>> {
        let routine = find_procedure(&self.session, procedure)?;
        let compiled = SharedCaches::of(self.db).routines.compiled(&routine, &self.session)?;
        check_arguments(&routine, &compiled.program, is_variable)?;
        compiled.program.check_called_by(self.kind)?;
        self.diagnostics.begin();
        let kind = self.kind;
        let mut ctx = self.context(&[]);
        let definer = (!routine.by_invoker).then_some(&routine.definer);
        let outcome = run_routine(&mut ctx, (&routine, &compiled), definer, Arguments::Values(args), kind);
        let warnings = ctx.eval.take_warnings();
        drop(ctx);
        if warnings.total() > 0 {
            self.diagnostics.add_all(&warnings);
        }
        self.adopt_variables();
        let (finished, env) = outcome?;
        (self.session.settings.env.last_insert_id, self.session.settings.env.row_count) =
            (env.last_insert_id, env.row_count);
        self.session.settings.env.found_rows = env.found_rows;
        Ok(finished.out)
    }
}

/// Values of LAST_INSERT_ID(), ROW_COUNT() and FOUND_ROWS() after a routine.
pub(super) struct Counts {
    last_insert_id: u64,
    row_count: i64,
    found_rows: u64,
}

/// The arguments of a routine.
pub(super) enum Arguments<'a> {
    Values(Vec<Value>),
    /// Those of an aggregate function for all rows of a group ([`cohort_expr::AggregateKind::Rows`]).
    OfRows(&'a [u8]),
}

/// Runs a routine inside the running statement, as its definer or as the session. Functions do not call
/// themselves: error 1424. Procedures do, as often as `max_sp_recursion_depth` says: error 1456.
pub(super) fn run_routine(
    ctx: &mut StatementContext<'_>,
    (routine, compiled): (&Arc<Routine>, &Compiled),
    definer: Option<&AccountName>,
    args: Arguments<'_>,
    kind: ProgramKind,
) -> SqlResult<(Finished, Counts)> {
    let running = ctx.session.programs.borrow().count(routine) as u64;
    match routine.kind {
        ast::RoutineKind::Function if running > 0 => return Err(SqlError::recursive_function()),
        ast::RoutineKind::Function => {}
        ast::RoutineKind::Procedure => {
            let limit = ctx.session.settings.vars.uint(VarId::MaxSpRecursionDepth);
            if running > limit {
                return Err(SqlError::recursion_limit(limit, &routine.name));
            }
        }
    }
    let of = ProgramContext { definer, settings: &routine.settings, schema: &routine.schema };
    let mode = ctx.session.settings.env.sql_mode;
    let is_switched = definer.is_some_and(|definer| *definer != ctx.session.info.account);
    let is_function = routine.kind == ast::RoutineKind::Function;
    let caller = if is_function { Caller::Statement } else { Caller::Program };
    let mut host = ContextHost::begin(ctx, of, (kind, caller))?;
    if is_switched {
        // The definer may have lost the privilege.
        access::may_execute(host.state(), routine)?;
    }
    let bound = compiled.bound(None, &mut host)?;
    let mut found = Vec::new();
    let env = &host.state().settings.env;
    let args = match args {
        Arguments::Values(args) => {
            bound.converted(args, (env, mode, u64::from(is_function)), &mut found).map(Arguments::Values)
        }
        rows => Ok(rows),
    };
    if !is_function {
        found.drain(..).for_each(|warning| host.diagnostics.push(warning));
    }
    let args = match args {
        Ok(args) => args,
        Err(error) => {
            drop(host);
            found.into_iter().for_each(|warning| ctx.eval.push_warning(warning));
            return Err(error);
        }
    };
    host.session.programs.borrow_mut().enter(Arc::clone(routine));
    let outcome = host.run(&bound, |host| match args {
        Arguments::Values(args) => cohort_program::run(&bound, args, host),
        Arguments::OfRows(rows) => cohort_program::run_aggregate(&bound, Group::new(rows, mode), host),
    });
    host.session.programs.borrow_mut().leave();
    let env = &host.session.settings.env;
    let (last_insert_id, row_count, found_rows) = (env.last_insert_id, env.row_count, env.found_rows);
    let conditions = host.end();
    found.into_iter().chain(conditions).for_each(|warning| ctx.eval.push_warning(warning));
    if is_function && outcome.is_ok() && bound.is_typed() && !counts_lines(ctx.session) {
        ctx.session.called.add(Arc::clone(routine) as _, bound);
    }
    Ok((outcome?, Counts { last_insert_id, row_count, found_rows }))
}
