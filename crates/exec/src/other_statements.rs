//! Statements that are neither queries nor data changes: transactions, USE, DO, KILL, EXPLAIN, SHOW of
//! conditions.

use std::sync::Arc;

use cohort_base::ConnectionId;
use cohort_catalog::{Table, TableName};
use cohort_config::VarId;
use cohort_expr::{EvalContext, Expr};
use cohort_locks::KillLevel;
use cohort_optimize::Access;
use cohort_protocol::{ColumnFlags, ColumnMeta, ResultSink, TypeCode};
use cohort_sql::ast::{self, LoadData, Statement};
use cohort_sql::print::quoted_name;
use cohort_types::{Collation, ErrorCode, Level, Privilege, Privileges, SqlError, SqlResult, Value, Warning};

use crate::cached_plan::{CachedPlan, plan_with};
use crate::session::Session;
use cohort_dml::run_binlog_statement;
use cohort_plan::{Binder, Clause, ParamSource, PlanContext, Scope, not_supported};
use cohort_session::access::{self, Viewer};
use cohort_session::{Exception, Job, Process, SessionNames, SessionState, TableUse, traits_of};
use cohort_trx::{AccessMode, AliasLock, BeginOptions, LockedTables, TableLock};

/// Columns of SHOW COUNT(*) WARNINGS and SHOW COUNT(*) ERRORS.
pub(crate) const WARNING_COUNT: &str = "@@session.warning_count";
pub(crate) const ERROR_COUNT: &str = "@@session.error_count";

impl Session {
    /// Runs LOAD DATA.
    pub(crate) fn load_data(
        &mut self,
        load: &LoadData,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let outcome =
            self.in_statement(job, sink, |ctx, sink| cohort_dml::load_data(ctx, load, job, sink))?;
        if let Some(id) = outcome.generated_id {
            self.state.env.last_insert_id = id;
        }
        self.state.env.row_count = outcome.affected as i64;
        self.work.rows_affected = outcome.affected;
        self.send_ok(job.more, outcome.affected, outcome.insert_id, &outcome.info, sink);
        Ok(())
    }

    /// Runs a statement without a plan.
    pub(crate) fn run_other(
        &mut self,
        statement: &Statement,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        access::check_statement(&self.state, statement)?;
        let traits = traits_of(statement);
        if traits.has(Exception::NotUnderLocks) && self.trx.has_locked_tables() {
            return Err(cohort_trx::active_locks());
        }
        if !traits.has(Exception::BareOk) {
            // The reply may show variables or warnings, which may derive from rows that are not durable yet
            // (I5).
            self.trx.mark_observed();
        }
        match statement {
            Statement::Begin(begin) => {
                self.begin(begin)?;
            }
            Statement::Xa(xa) => return self.xa(xa, job, sink),
            Statement::Commit(completion) => {
                self.complete(*completion, End::Commit)?;
            }
            Statement::Rollback(completion) => self.complete(*completion, End::Rollback)?,
            Statement::Savepoint(name) => {
                self.check_branch(true)?;
                let state = &self.state;
                self.trx.savepoint(name, || {
                    cohort_ddl::query_event(state, &format!("SAVEPOINT {}", quoted_name(name)))
                })?;
            }
            Statement::RollbackTo(name) => {
                self.check_branch(true)?;
                self.trx.rollback_to(name)?;
            }
            Statement::ReleaseSavepoint(name) => {
                self.check_branch(true)?;
                self.trx.release(name)?;
            }
            Statement::Set(items) => {
                let outcome = self.set_items(items, job);
                // The next result may belong to the same command.
                sink.results(self.state.results_collation());
                outcome?;
            }
            Statement::SetStatement { items, statement } => {
                return self.set_statement(items, statement, job, sink);
            }
            Statement::WithLockWait { seconds, statement } => {
                return self.with_lock_wait(*seconds, statement, job, sink);
            }
            Statement::Use(schema) => self.use_schema(schema)?,
            Statement::QueryIntoFile(query) => return self.query_into_file(query, job, sink),
            Statement::LoadData(load) => return self.load_data(load, job, sink),
            Statement::Handler(handler) => return self.handler(handler, job, sink),
            Statement::Do(exprs) => self.do_exprs(exprs, job)?,
            Statement::Kill(kill) => {
                let killed = self.kill(kill, job)?;
                self.state.env.row_count = killed as i64;
                self.send_ok(job.more, killed, 0, "", sink);
                return Ok(());
            }
            Statement::GetDiagnostics(get) => {
                self.get_diagnostics(get, job)?;
                self.send_ok(job.more, 0, 0, "", sink);
                return Ok(());
            }
            Statement::Prepare { name, source } => {
                self.prepare_named(name, source, job)?;
                self.send_ok(job.more, 0, 0, "Statement prepared", sink);
                return Ok(());
            }
            Statement::Execute { name, using } => return self.execute_named(name, using, job, sink),
            Statement::ExecuteImmediate { source, using } => {
                return self.execute_immediate(source, using, job, sink);
            }
            Statement::Deallocate(name) => self.deallocate(name)?,
            Statement::Explain { format, statement } => return self.explain(*format, statement, job, sink),
            Statement::Show(show) => return self.show(show, job, sink),
            Statement::Binlog(text) => {
                let text = self.eval_alone(text, job)?;
                let bytes = text.as_bytes().unwrap_or_default().to_vec();
                self.with_context(job, |ctx| run_binlog_statement(ctx, &bytes))?;
            }
            Statement::LockTables(tables) => self.lock_tables(tables)?,
            Statement::UnlockTables => {
                if self.trx.has_locked_tables() {
                    self.trx.commit_implicitly()?;
                }
                self.trx.unlock_all()?;
            }
            other => return self.run_elsewhere(other, job, sink),
        }
        self.state.env.row_count = 0;
        self.send_ok(job.more, 0, 0, "", sink);
        Ok(())
    }

    /// Runs statements that other crates implement.
    fn run_elsewhere(
        &mut self,
        statement: &Statement,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        if self.run_replication(statement, job)? {
            self.state.env.row_count = 0;
            self.send_ok(job.more, 0, 0, "", sink);
            return Ok(());
        }
        if let Statement::Describe { table, column } = statement {
            let filter = column.clone().map(ast::ShowFilter::Like);
            let show = ast::Show::Columns { full: false, table: table.clone(), filter };
            return self.show_elsewhere(&show, job, sink);
        }
        let epoch = self.state.temporary.epoch();
        let administrated =
            self.with_context(job, |ctx| cohort_info::administrate(ctx, statement).transpose());
        if self.state.temporary.epoch() != epoch {
            // OPTIMIZE has re-created a temporary table.
            self.state.refresh();
        }
        match administrated? {
            None => {}
            Some(None) => {
                self.state.env.row_count = 0;
                self.send_ok(job.more, 0, 0, "", sink);
                return Ok(());
            }
            Some(Some(listing)) => return self.send_listing(&listing, job, sink),
        }
        let epoch = self.state.temporary.epoch();
        self.state.rows_found.set(None);
        let outcome = self.with_context(job, |ctx| cohort_ddl::run(ctx, statement).transpose());
        if self.state.temporary.epoch() != epoch {
            // Existing plans do not know the session's temporary tables.
            self.state.refresh();
        }
        let outcome = outcome?;
        let Some(outcome) = outcome else { return Err(not_supported("this statement")) };
        if outcome.dropped_schema.is_some()
            && outcome.dropped_schema.as_deref() == self.state.current_schema.as_deref()
        {
            self.leave_schema();
        }
        self.state.env.row_count = outcome.affected as i64;
        if let Some(found) = self.state.rows_found.take() {
            self.state.env.found_rows = found;
        }
        self.send_ok(job.more, outcome.affected, 0, &outcome.info, sink);
        Ok(())
    }

    /// Runs LOCK TABLES, which commits an open transaction first.
    fn lock_tables(&mut self, tables: &[ast::LockTable]) -> SqlResult<()> {
        let mut wanted = LockedTables::new();
        for ast::LockTable { table, alias, mode } in tables {
            let current = self.state.current_schema.as_deref();
            let schema = table.db.as_deref().or(current).ok_or_else(SqlError::no_database_selected)?;
            let is_own = self.state.temporary.find(schema, &table.name).is_some();
            if is_own || self.state.db.virtual_tables.has_schema(schema) {
                continue;
            }
            let lock = match mode {
                ast::TableLockMode::Write => TableLock::Write,
                ast::TableLockMode::Read | ast::TableLockMode::ReadLocal => TableLock::Read,
            };
            if lock == TableLock::Write {
                cohort_query::guards::check_read_only(&self.state)?;
            }
            let aliases = wanted.entry((schema.to_owned(), table.name.clone())).or_default();
            let alias = alias.as_ref().unwrap_or(&table.name);
            if aliases.insert(alias.clone(), AliasLock { lock, is_of_view: false }).is_some() {
                let text = format!("Not unique table/alias: '{alias}'");
                return Err(SqlError::new(ErrorCode::NonUniqTable, text));
            }
        }
        self.add_tables_of_views(&mut wanted)?;
        self.trx.lock_tables(wanted)?;
        // The tables are looked up under their locks, so no other session can drop them any more.
        let catalog = self.state.db.catalog();
        let missing = self.trx.locked_tables().find(|(schema, table)| {
            catalog.table(schema, table).is_none()
                && catalog.view(schema, table).is_none()
                && self.state.db.virtual_tables.find(schema, table).is_none()
        });
        let error = missing.map(|(schema, table)| SqlError::no_such_table(schema, table));
        match error {
            None => {
                self.tell_locked();
                Ok(())
            }
            Some(error) => {
                self.trx.unlock_tables()?;
                Err(error)
            }
        }
    }

    fn tell_locked(&self) {
        let Some(tables) = self.state.audit_tables() else { return };
        let catalog = self.state.db.catalog();
        for ((schema, name), lock) in self.trx.locked_tables_with_locks() {
            let of = if lock == TableLock::Write { TableUse::Write } else { TableUse::Read };
            catalog.table(schema, name).into_iter().for_each(|table| tables.report_use(of, table));
        }
    }

    /// Adds the tables that a view reads to the tables to lock. Error 1356 if the view's definer, or its
    /// invoker, may not lock them.
    fn add_tables_of_views(&self, wanted: &mut LockedTables) -> SqlResult<()> {
        let catalog = self.state.db.catalog();
        let mut open: Vec<(TableName, Viewer)> = wanted
            .keys()
            .map(|(schema, table)| {
                (TableName { schema: schema.clone(), table: table.clone() }, Viewer::Session)
            })
            .collect();
        let mut seen = Vec::new();
        while let Some((name, outer)) = open.pop() {
            let Some(view) = catalog.view(&name.schema, &name.table) else { continue };
            let viewer = if view.by_invoker { outer } else { Viewer::of(Some(view.definer.clone())) };
            if seen.contains(&(name.clone(), viewer.clone())) {
                continue;
            }
            seen.push((name.clone(), viewer.clone()));
            let aliases =
                wanted.get(&(name.schema, name.table)).map(|all| all.values().map(|it| it.lock).max());
            let lock = aliases.flatten().unwrap_or(TableLock::Read);
            for (schema, table, alias) in cohort_plan::named_tables(view)? {
                // Common table expressions have no schema.
                if schema.is_empty() || self.state.db.virtual_tables.has_schema(&schema) {
                    continue;
                }
                let may_lock = viewer.access(&self.state).on_schema(&schema).has(Privilege::LockTables);
                let may_read = viewer.check_table(&self.state, Privilege::Select.into(), &schema, &table);
                if !may_lock || may_read.is_err() {
                    return Err(cohort_plan::invalid_view(view));
                }
                let locked = wanted.entry((schema.clone(), table.clone())).or_default();
                let held = locked.entry(alias).or_insert(AliasLock { lock, is_of_view: true });
                *held = AliasLock { lock: lock.max(held.lock), is_of_view: true };
                open.push((TableName { schema, table }, viewer.clone()));
            }
        }
        Ok(())
    }

    fn begin(&mut self, begin: &ast::Begin) -> SqlResult<()> {
        self.trx.unlock_tables()?;
        let access_mode = begin.access.map(access_mode);
        let tracked = &self.state.transactions;
        if tracked.is_on() && self.trx.in_transaction() {
            tracked.end(false);
        }
        self.trx.begin(BeginOptions { access_mode, consistent_snapshot: begin.consistent_snapshot })?;
        if self.state.transactions.is_on() {
            self.state.transactions.begin(access_mode, begin.consistent_snapshot);
        }
        Ok(())
    }

    fn complete(&mut self, completion: ast::Completion, end: End) -> SqlResult<()> {
        self.check_branch(false)?;
        let chain = completion.chain.unwrap_or_else(|| self.state.vars.uint(VarId::CompletionType) == 1);
        let release = completion.release.unwrap_or_else(|| self.state.vars.uint(VarId::CompletionType) == 2);
        let (isolation, access_mode) = self.trx.characteristics();
        match end {
            End::Commit => drop(self.trx.commit()?),
            End::Rollback => self.trx.rollback(),
        }
        // COMMIT and ROLLBACK end the effect of SET TRANSACTION, used or not.
        self.trx.forget_next_characteristics();
        if chain {
            self.trx.settings.next_isolation = isolation;
            self.trx.begin(BeginOptions { access_mode, consistent_snapshot: false })?;
            if self.state.transactions.is_on() {
                self.state.transactions.chain();
            }
        }
        if release {
            self.process.kill(KillLevel::Connection);
        }
        Ok(())
    }

    fn do_exprs(&mut self, exprs: &[ast::Expr], job: &Job<'_>) -> SqlResult<()> {
        for expr in exprs {
            self.eval_alone(expr, job)?;
        }
        Ok(())
    }

    /// Returns the value of an expression without tables.
    pub(crate) fn eval_alone(&mut self, expr: &ast::Expr, job: &Job<'_>) -> SqlResult<Value> {
        let item = ast::SelectItem::Expr { expr: expr.clone(), alias: None, text: String::new() };
        let query = ast::Query::of(ast::QueryBody::Select(Box::new(ast::Select::of(vec![item]))));
        let row = self.query_one_row(&query, job)?;
        Ok(row.into_iter().next().unwrap_or(Value::Null))
    }

    fn kill(&mut self, kill: &ast::Kill, job: &Job<'_>) -> SqlResult<u64> {
        let mut query = None;
        let (targets, level) = match &kill.target {
            ast::KillTarget::Connection(id) => (vec![self.process_of(id, job)?], KillLevel::Connection),
            ast::KillTarget::Query(id) => (vec![self.process_of(id, job)?], KillLevel::Query),
            ast::KillTarget::ConnectionsOf(account) => (self.processes_of(account), KillLevel::Connection),
            ast::KillTarget::QueriesOf(account) => (self.processes_of(account), KillLevel::Query),
            ast::KillTarget::QueryId(id) => {
                let (process, id) = self.process_of_query(id, job)?;
                query = Some(id);
                (vec![process], KillLevel::Query)
            }
        };
        let admins = Privileges::of(&[Privilege::Super, Privilege::ConnectionAdmin]);
        let is_admin = self.state.access().everywhere().meets(admins);
        let foreign = |process: &&Arc<Process>| !is_admin && !self.state.is_own(&process.identity());
        if let Some(foreign) = targets.iter().find(foreign) {
            return Err(SqlError::not_owner_of_thread(foreign.id().0));
        }
        for process in &targets {
            match query {
                Some(query) if !process.kill_query(query) => continue,
                Some(_) => {}
                None => process.kill(level),
            }
            self.stop_waiting(process);
        }
        match (targets.iter().any(|process| process.id() == self.state.info.id), level) {
            (true, KillLevel::Connection) => Err(SqlError::connection_killed()),
            (true, _) => Err(SqlError::new(ErrorCode::QueryInterrupted, "Query execution was interrupted")),
            (false, _) => match kill.target {
                ast::KillTarget::ConnectionsOf(_) | ast::KillTarget::QueriesOf(_) => Ok(targets.len() as u64),
                _ => Ok(0),
            },
        }
    }

    /// Ends the target's waits for an acknowledgement of a replica.
    fn stop_waiting(&self, process: &Process) {
        let held = process.held_until();
        let acknowledged_early = process.hold().acknowledged_early();
        // An earlier KILL may have acknowledged the client already.
        if held > self.state.db.commit.acknowledged().max(acknowledged_early)
            && let Some(facts) = &*self.state.db.facts.read()
        {
            let will_tell = || process.hold().acknowledge_early(held);
            let own = Some(process.gauge().last_commit()).filter(|own| *own > acknowledged_early);
            facts.stop_waiting_for_replicas(held, own, process.id(), &will_tell);
        }
    }

    /// Returns the connections of a user, limited to a host if the account names one.
    fn processes_of(&self, account: &ast::Account) -> Vec<Arc<Process>> {
        let (user, host) = cohort_ddl::resolve_account(&self.state, account);
        let all = self.state.db.processes.all().into_iter();
        all.filter(|process| {
            let identity = process.identity();
            let from = identity.host.rsplit_once(':').map_or(&*identity.host, |(from, _port)| from);
            identity.user == user && (host == "%" || host == from)
        })
        .collect()
    }

    /// Returns the connection with a number. Error 1094 if there is none.
    fn process_of(&mut self, number: &ast::Expr, job: &Job<'_>) -> SqlResult<Arc<Process>> {
        let value = self.eval_alone(number, job)?;
        let id = value.to_int(&mut cohort_types::NoWarnings).and_then(|n| u64::try_from(n.wide()).ok());
        id.and_then(|id| self.state.db.processes.get(ConnectionId(id))).ok_or_else(|| {
            SqlError::new(ErrorCode::NoSuchThread, format!("Unknown thread id: {}", value.to_text()))
        })
    }

    /// Returns the connection that runs the query with a number, and the number. Error 1957 if there is none.
    fn process_of_query(&mut self, number: &ast::Expr, job: &Job<'_>) -> SqlResult<(Arc<Process>, u64)> {
        let value = self.eval_alone(number, job)?;
        let id = value.to_int(&mut cohort_types::NoWarnings).and_then(|n| u64::try_from(n.wide()).ok());
        let found = id.filter(|id| *id != 0).and_then(|id| Some((self.state.db.processes.of_query(id)?, id)));
        found.ok_or_else(|| SqlError::unknown_query(&value.to_text()))
    }

    /// SHOW EXPLAIN: plans another connection's statement again, in that connection's database but with this
    /// session's settings. Running statements therefore need not keep their plans.
    fn explain_of_connection(
        &mut self,
        format: ast::ExplainFormat,
        number: &ast::Expr,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        if number.has_subquery() || number.has_part(|part| matches!(part, ast::Expr::Function { .. })) {
            let text = "You may only use constant expressions in this statement".to_owned();
            return Err(SqlError::new(ErrorCode::SetConstantsOnly, text));
        }
        let process = self.process_of(number, job)?;
        let is_own = self.state.is_own(&process.identity());
        if !is_own {
            access::check_global(&self.state, Privilege::Process)?;
        }
        let none = || {
            let text = "Target is not executing an operation with a query plan".to_owned();
            SqlError::new(ErrorCode::TargetNotExplainable, text)
        };
        let running = process.snapshot(&|_| false);
        let text = running.info.ok_or_else(none)?;
        let parsed = cohort_sql::parse(text.as_bytes(), &self.state.parse).map_err(|_| none())?;
        if parsed.statement.plannable().is_none() {
            return Err(none());
        }
        let own = std::mem::replace(&mut self.state.current_schema, running.identity.schema.map(Into::into));
        // The target had the privileges to run the statement; PROCESS suffices to see its plan.
        let explained = match is_own {
            true => self.explained(format, &parsed.statement, &[]),
            false => self.explained_of_server(format, &parsed.statement),
        };
        self.state.current_schema = own;
        let (mut columns, rows) = explained?;
        if format == ast::ExplainFormat::Json {
            columns[0].name = "SHOW EXPLAIN".into();
        }
        let note = SqlError::new(ErrorCode::Yes, text);
        self.diagnostics.push(Warning::note(note));
        self.send_rows(job.more, &columns, &rows, sink);
        Ok(())
    }

    fn explain(
        &mut self,
        format: ast::ExplainFormat,
        statement: &Statement,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        if format.runs() {
            return self.analyze(format, statement, job, sink);
        }
        let (columns, rows) = self.explained(format, statement, job.params)?;
        if let Statement::Query(query) = statement
            && format == ast::ExplainFormat::Extended
        {
            self.with_context(job, |ctx| {
                let text = cohort_ddl::query_text(ctx, query)?;
                ctx.eval.note(ErrorCode::Yes, text);
                Ok(())
            })?;
        }
        self.send_rows(job.more, &columns, &rows, sink);
        Ok(())
    }

    fn explained(
        &self,
        format: ast::ExplainFormat,
        statement: &Statement,
        params: &[Value],
    ) -> SqlResult<(Vec<ColumnMeta>, Vec<Vec<Value>>)> {
        let plan = self.describe(statement, params, ParamSource::Placeholders)?;
        plan.check_told(&self.state)?;
        crate::dispatch::report_tables(&self.state, &plan);
        Ok(self.explanation(format, &plan, params))
    }

    /// Variant that plans with the server's privileges.
    fn explained_of_server(
        &self,
        format: ast::ExplainFormat,
        statement: &Statement,
    ) -> SqlResult<(Vec<ColumnMeta>, Vec<Vec<Value>>)> {
        let (catalog, session) = (self.state.db.catalog(), &self.state);
        let names = SessionNames::of_server(&catalog, session);
        let planned = plan_with(&names, (&catalog, session), &[], ParamSource::Placeholders, statement);
        session.planning_warnings.borrow_mut().clear();
        Ok(self.explanation(format, &planned?, &[]))
    }

    fn explanation(
        &self,
        format: ast::ExplainFormat,
        plan: &CachedPlan,
        params: &[Value],
    ) -> (Vec<ColumnMeta>, Vec<Vec<Value>>) {
        use ast::ExplainFormat as F;
        let known = KnownNow { session: &self.state, params };
        match format {
            F::Json => crate::explain_json::explain_json(&plan.plan, None),
            _ => crate::explain::explain(&plan.plan, format == F::Extended, None, &known),
        }
    }

    fn show(&mut self, show: &ast::Show, job: &Job<'_>, sink: &mut dyn ResultSink) -> SqlResult<()> {
        match show {
            ast::Show::Warnings { limit } => self.show_conditions(Conditions::All, limit.as_ref(), job, sink),
            ast::Show::Errors { limit } => {
                self.show_conditions(Conditions::Errors, limit.as_ref(), job, sink)
            }
            ast::Show::CountWarnings => {
                let total = self.diagnostics.total();
                self.show_count(WARNING_COUNT, total, job, sink);
                Ok(())
            }
            ast::Show::CountErrors => {
                let errors = self.diagnostics.errors();
                self.show_count(ERROR_COUNT, errors, job, sink);
                Ok(())
            }
            ast::Show::Explain { format, connection } => {
                self.explain_of_connection(*format, connection, job, sink)
            }
            other => self.show_elsewhere(other, job, sink),
        }
    }

    /// Runs a SHOW statement of another crate.
    fn show_elsewhere(
        &mut self,
        show: &ast::Show,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let listing = self.with_context(job, |ctx| cohort_info::run(ctx, show))?;
        self.send_listing(&listing, job, sink)
    }

    pub(crate) fn send_listing(
        &mut self,
        listing: &cohort_info::Listing,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let columns = listing.meta();
        self.send_rows(job.more, &columns, &listing.rows, sink);
        Ok(())
    }

    fn show_count(&mut self, name: &str, count: u64, job: &Job<'_>, sink: &mut dyn ResultSink) {
        self.send_rows(job.more, &[count_column(name)], &[vec![Value::UInt(count)]], sink);
    }

    fn show_conditions(
        &mut self,
        which: Conditions,
        limit: Option<&ast::Limit>,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let (offset, count) = self.constant_limit(limit)?;
        let shown =
            self.diagnostics.list().iter().filter(|w| which == Conditions::All || w.level == Level::Error);
        let rows: Vec<Vec<Value>> = shown
            .skip(offset)
            .take(count)
            .map(|w| {
                let code = Value::UInt(w.error.code.number().into());
                vec![Value::text(w.level.name()), code, Value::text(w.error.message.clone())]
            })
            .collect();
        let code = ColumnMeta {
            flags: ColumnFlags::UNSIGNED.with(ColumnFlags::BINARY),
            ..ColumnMeta::expression("Code", TypeCode::Long, 4, Collation::BINARY)
        };
        let columns = [ColumnMeta::text("Level", 7), code, ColumnMeta::text("Message", 512)];
        let not_null =
            |column: ColumnMeta| ColumnMeta { flags: column.flags.with(ColumnFlags::NOT_NULL), ..column };
        let columns = columns.map(not_null);
        // The conditions listed are not conditions of SHOW itself, which has none.
        let found_rows = self.state.env.found_rows;
        self.send_rows_and(0, job.more, &columns, &rows, sink);
        self.state.env.found_rows = found_rows;
        Ok(())
    }

    /// Returns offset and count of a SHOW's LIMIT.
    pub(crate) fn constant_limit(&self, limit: Option<&ast::Limit>) -> SqlResult<(usize, usize)> {
        let number = |expr: &ast::Expr| match expr {
            ast::Expr::Literal(literal) => match literal.value {
                Value::Int(n) => Ok(usize::try_from(n).unwrap_or(0)),
                Value::UInt(n) => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
                _ => Err(not_supported("this LIMIT")),
            },
            _ => Err(not_supported("this LIMIT")),
        };
        let Some(limit) = limit else { return Ok((0, usize::MAX)) };
        Ok((limit.offset.as_ref().map(number).transpose()?.unwrap_or(0), number(&limit.count)?))
    }

    /// Returns the columns of a base table as SELECT * describes them.
    pub(crate) fn describe_table(&self, name: &ast::ObjectName) -> SqlResult<Vec<ColumnMeta>> {
        let catalog = self.state.db.catalog();
        let names = SessionNames::new(&catalog, &self.state);
        let ctx = PlanContext::new(&names, &[], ParamSource::Placeholders);
        // The privilege check has already run.
        let scope = Scope::of_table(ctx.base_table(name, Privileges::NONE)?, None);
        let binder = Binder::new(&ctx, &scope, Clause::Select);
        let meta = |slot: usize| {
            let expr: Expr = binder.scope.column_expr(slot);
            cohort_plan::meta::column_meta(&scope.slot(slot).name, &expr, &scope)
        };
        Ok((0..scope.width()).map(meta).collect())
    }
}

/// Evaluates the facts that EXPLAIN shows.
pub(crate) struct KnownNow<'k> {
    pub(crate) session: &'k SessionState,
    pub(crate) params: &'k [Value],
}

impl crate::explain::Known for KnownNow<'_> {
    fn lacks(&self, table: &Arc<Table>, access: &Access) -> bool {
        cohort_session::has_row(self.session, self.params, table, access) == Some(false)
    }

    fn is_never(&self, condition: &Expr) -> bool {
        let eval = EvalContext::new(&self.session.env, self.session, self.params);
        let value = match condition.is_const_per_execution() && !condition.is_volatile() {
            true => condition.eval(&[], &eval).ok(),
            false => None,
        };
        value.is_some_and(|value| value.to_bool(&mut cohort_types::NoWarnings) != Some(true))
    }
}

/// The ending of a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Commit,
    Rollback,
}

/// Condition levels to list: SHOW WARNINGS or SHOW ERRORS.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conditions {
    All,
    Errors,
}

/// Converts READ ONLY or READ WRITE.
pub(crate) fn access_mode(mode: ast::AccessMode) -> AccessMode {
    match mode {
        ast::AccessMode::ReadOnly => AccessMode::ReadOnly,
        ast::AccessMode::ReadWrite => AccessMode::ReadWrite,
    }
}

/// Returns the column of SHOW COUNT(*) WARNINGS and SHOW COUNT(*) ERRORS.
pub(crate) fn count_column(name: &str) -> ColumnMeta {
    ColumnMeta { flags: ColumnFlags::UNSIGNED.with(ColumnFlags::BINARY), ..ColumnMeta::integer(name, 21) }
}
