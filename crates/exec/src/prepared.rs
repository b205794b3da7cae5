//! Prepared statements of the binary protocol (by number) and of SQL (by name).
//!
//! A statement keeps its parsed form, which sessions share (`prepared_texts.rs`). Its first execution makes
//! the plan for the kinds of the bound values. A change of these kinds, of the catalog or of the session's
//! settings makes another plan necessary.

use std::borrow::Cow;
use std::sync::Arc;

use cohort_base::{BudgetOf, OverBudget, Reservation};
use cohort_config::{Counter, HeldGauge, VarId};
use cohort_expr::SessionHooks;
use cohort_plan::{ParamSource, calls_back};
use cohort_protocol::{ColumnMeta, Parameter, ResultSink, TypeCode};
use cohort_session::{
    AtPrepare, Changed, Command, EventKind, Exception, Job, StatementKind, kind_of, traits_of,
};
use cohort_sql::ast::{self, PrepareSource, Statement};
use cohort_types::{Collation, SqlError, SqlResult, Value};

use crate::account_tables;
use crate::bulk::Bulk;
use crate::dispatch::parse_charged;
use crate::explain::explain_columns;
use crate::known_statement::KnownStatement;
use crate::prepared_statements::{Handle, Prepared};
use crate::prepared_texts::{Parsed, PreparedText};
use crate::program::running::OutParameters;
use crate::session::Session;
use crate::statement::{ERROR_COUNT, WARNING_COUNT, calling_back, count_column};
use crate::unfilled::{self, Unfilled};

/// Reply to COM_STMT_PREPARE.
#[derive(Clone, Debug)]
pub struct PrepareInfo {
    /// Neither 0 nor `u32::MAX`.
    pub id: u32,
    pub params: Vec<ColumnMeta>,
    /// Empty for statements without rows.
    pub columns: Vec<ColumnMeta>,
    pub warnings: u16,
}

impl Session {
    /// Runs COM_STMT_PREPARE.
    pub fn prepare(&mut self, sql: &[u8]) -> SqlResult<PrepareInfo> {
        let decoded = match self.state.decoded(sql)? {
            Cow::Borrowed(_) => None,
            Cow::Owned(decoded) => Some(decoded),
        };
        let sql = decoded.as_deref().unwrap_or(sql);
        self.begin_process(Command::Prepare, sql);
        self.begin_frame();
        self.set_kind(EventKind::of(Counter::ComStmtPrepare));
        if self.state.db.globals.flag(VarId::GeneralLog) {
            self.log_general("Prepare", sql);
        }
        self.begin_command();
        self.diagnostics.begin();
        // Column metadata may describe variables, which may derive from rows that are not durable yet (I5).
        self.trx.mark_observed();
        let outcome = self.prepare_text(sql, false);
        if let Err(error) = &outcome {
            self.diagnostics.set_error(error);
            self.work.error = error.number();
        }
        self.end_frame(sql);
        self.end_process();
        let (prepared, columns) = match outcome {
            Ok(made) => made,
            Err(error) => {
                if self.state.audit_begins() {
                    self.state.audit_ended(sql, error.number());
                }
                return Err(error);
            }
        };
        let mut param = ColumnMeta::expression("?", TypeCode::Null, 0, Collation::BINARY);
        param.flags = cohort_protocol::ColumnFlags::BINARY;
        let params = vec![param; prepared.of.parsed.params as usize];
        let id = self.prepared.add(prepared);
        Ok(PrepareInfo { id, params, columns, warnings: self.diagnostics.count_for_client() })
    }

    /// Prepares a statement. `is_nested`: it will run inside of EXECUTE.
    fn prepare_text(&mut self, sql: &[u8], is_nested: bool) -> SqlResult<(Prepared, Vec<ColumnMeta>)> {
        // Text after the statement is neither part of it nor shown in errors.
        let is_behind = |byte: &u8| byte.is_ascii_whitespace() || *byte == b';';
        let sql = &sql[..sql.iter().rposition(|byte| !is_behind(byte)).map_or(0, |last| last + 1)];
        let Some((range, next)) = self.next_statement(sql) else {
            return Err(SqlError::empty_query());
        };
        let rest = &sql[next.min(sql.len())..];
        if cohort_sql::has_statement(rest, self.state.settings.parse.mode) {
            return Err(cohort_session::syntax_error(&String::from_utf8_lossy(rest)));
        }
        let counted = self.count_prepared()?;
        let of = self.shared_text(&sql[range])?;
        let traits = traits_of(&of.parsed.statement);
        self.diagnostics.set_row(traits.row_of_rest(&of.parsed.statement));
        if let Some(account_limits) = &self.state.identity.account_limits {
            account_limits.check_preparable(traits)?;
        }
        let text = &*of.text;
        let columns = match account_tables::changed_by(&self.state, &of.parsed.statement) {
            Some(_) => Vec::new(),
            None => self.described_columns(&of.parsed, text)?,
        };
        if columns.len() > usize::from(u16::MAX) {
            return Err(SqlError::too_many_columns());
        }
        let columns_sent = columns.len();
        let schema = self.state.current_schema.clone();
        let statement = KnownStatement::new(schema.clone(), &of.parsed.digest, is_nested);
        let _counted = Some(counted);
        let prepared = Prepared {
            of,
            variant: None,
            columns_sent,
            plan: None,
            schema,
            statement,
            is_running: false,
            _counted,
        };
        Ok((prepared, columns))
    }

    /// Checks a statement as far as MariaDB does at PREPARE, and returns the columns of its result.
    fn described_columns(&mut self, parsed: &Parsed, text: &[u8]) -> SqlResult<Vec<ColumnMeta>> {
        let statement = &parsed.statement;
        let planned = |of: &Statement| {
            let nulls = vec![Value::Null; parsed.params as usize];
            self.describe(of, &nulls, ParamSource::Placeholders)
        };
        match (traits_of(statement).prepare, statement) {
            (AtPrepare::Planned, _) => {
                let plan = planned(statement)?;
                if plan.reads_tables() {
                    self.diagnostics.drop_old();
                }
                // The columns of RETURNING are sent with the rows.
                let has_columns = matches!(statement, Statement::Query(_));
                Ok(if has_columns { plan.columns().to_vec() } else { Vec::new() })
            }
            (AtPrepare::Checked, _) => {
                cohort_session::access::check_statement(&self.state, statement)?;
                Ok(Vec::new())
            }
            (AtPrepare::Explained, Statement::Explain { format, statement }) => {
                if statement.plannable().is_some() {
                    planned(statement)?;
                }
                Ok(explain_columns(*format))
            }
            (AtPrepare::Listed, Statement::Show(show)) => self.describe_show(statement, show, text),
            (AtPrepare::Warnings, _) => Ok(vec![count_column(WARNING_COUNT)]),
            (AtPrepare::Errors, _) => Ok(vec![count_column(ERROR_COUNT)]),
            (AtPrepare::Explained | AtPrepare::Listed, _) => unreachable!("of EXPLAIN and SHOW alone"),
            (AtPrepare::Refused | AtPrepare::Nested | AtPrepare::Nothing, _) => {
                self.diagnostics.drop_old();
                Ok(Vec::new())
            }
        }
    }

    /// Returns the parsed text, shared with other sessions if one of them has prepared it. Error 1290 if the
    /// session's statements exceed `max_session_mem_used`, 1041 if there is no memory for it.
    fn shared_text(&self, text: &[u8]) -> SqlResult<Arc<PreparedText>> {
        let (texts, options) = (&self.caches.prepared_texts, self.state.settings.parse);
        let of = match texts.get(text, &options) {
            Some(found) => found,
            None => {
                let mut syntax = Reservation::new(Arc::clone(self.process.memory()));
                let parsed = parse_charged(text, &options, &mut syntax)?;
                // The binary protocol transmits the count in two bytes.
                if parsed.params > u32::from(u16::MAX) {
                    return Err(SqlError::too_many_parameters());
                }
                if !cohort_session::may_be_prepared(&parsed.statement) {
                    return Err(SqlError::not_in_prepared_protocol());
                }
                cohort_plan::charset::check_names(&parsed.statement)?;
                let cohort_sql::Parsed { statement, params, param_at, rows_examined, memory_bytes, .. } =
                    parsed;
                let param_at = param_at.into();
                texts.add(
                    text,
                    options,
                    Parsed {
                        statement,
                        params,
                        param_at,
                        rows_examined,
                        memory_bytes,
                        digest: self.digest_of(text),
                    },
                )?
            }
        };
        let limit_bytes = self.state.settings.vars.uint(VarId::MaxSessionMemUsed);
        match self.prepared.bytes.saturating_add(of.bytes()) > limit_bytes {
            true => Err(OverBudget { of: BudgetOf::Session, limit_bytes }.into()),
            false => Ok(of),
        }
    }

    /// Returns the columns of a SHOW. Returns none if the SHOW fails, as it does without privileges: its
    /// execution reports the error. SHOW CREATE TABLE reports error 1142 immediately.
    fn describe_show(
        &mut self,
        statement: &Statement,
        show: &ast::Show,
        text: &[u8],
    ) -> SqlResult<Vec<ColumnMeta>> {
        if let Err(error) = cohort_session::access::check_statement(&self.state, statement) {
            return match show {
                ast::Show::CreateTable(_) => Err(error),
                _ => Ok(Vec::new()),
            };
        }
        let job = Job { text, param_at: &[], params: &[], source: ParamSource::Placeholders, more: false };
        let bare = calling_back(show).map(|(bare, _)| bare);
        let show = bare.as_ref().unwrap_or(show);
        let listing = self.with_context(&job, |ctx| cohort_info::run(ctx, show));
        Ok(listing.map_or_else(|_| Vec::new(), |listing| listing.meta()))
    }

    /// Counts a statement against max_prepared_stmt_count. Error 1461 if the limit is reached.
    fn count_prepared(&self) -> SqlResult<HeldGauge> {
        let db = &self.state.db;
        let limit = db.globals.uint(VarId::MaxPreparedStmtCount);
        if db.status.get(Counter::PreparedStmtCount) >= limit {
            return Err(SqlError::too_many_statements(limit));
        }
        Ok(db.status.hold(Counter::PreparedStmtCount))
    }

    /// Runs COM_STMT_EXECUTE.
    pub fn execute(&mut self, id: u32, params: &[Value], sink: &mut dyn ResultSink) {
        let kind = EventKind::of(Counter::ComStmtExecute);
        let Some(prepared) = self.prepared.by_id.get(&id) else {
            let error = SqlError::unknown_statement(&id.to_string(), "EXECUTE");
            return self.count_failed(kind, |session| session.fail(&error, sink));
        };
        let (of, statement) = (Arc::clone(&prepared.of), Arc::clone(&prepared.statement));
        let (text, param_at) = (&*of.text, &*of.parsed.param_at);
        self.state.statement.columns_sent.set(Some(prepared.columns_sent));
        self.begin_process(Command::Execute, text);
        let watch = self.watch_execute(text, (param_at, params));
        self.set_kind(kind);
        self.identify(statement);
        self.begin_command();
        let outcome = keep_rows_of(&of.parsed.statement, sink)
            .and_then(|()| self.run_prepared(&Handle::Id(id), params, false, sink));
        if let Err(error) = outcome {
            self.fail(&error, sink);
        }
        self.profiled(watch, text);
        self.watched(watch, text, (param_at, params), sink);
        if let (Some(columns), Some(prepared)) =
            (self.state.statement.columns_sent.take(), self.prepared.by_id.get_mut(&id))
        {
            prepared.columns_sent = columns;
        }
        self.end_process();
    }

    /// Returns the text of a statement and its atomicity in bulk execution. Error 1295 if it does not support
    /// it.
    pub(crate) fn bulk_of(&self, id: u32) -> SqlResult<(Arc<[u8]>, Arc<KnownStatement>, Bulk)> {
        let unknown = || SqlError::unknown_statement(&id.to_string(), "mysqld_stmt_bulk_execute");
        let prepared = self.prepared.by_id.get(&id).ok_or_else(unknown)?;
        let bulk = Bulk::of(&prepared.of.parsed.statement)?;
        Ok((prepared.of.text.clone(), Arc::clone(&prepared.statement), bulk))
    }

    /// Runs a statement that [`Session::bulk_of`] has accepted.
    pub(crate) fn run_prepared_by_id(
        &mut self,
        id: u32,
        params: &[Value],
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        self.run_prepared(&Handle::Id(id), params, false, sink)
    }

    /// Prepares a variant with DEFAULT in place of some parameters, under a separate number.
    pub(crate) fn prepare_variant(&mut self, id: u32, unfilled: &Unfilled) -> SqlResult<u32> {
        let variant = self.prepared.get(&Handle::Id(id)).variant(unfilled)?;
        Ok(self.prepared.add(variant))
    }

    /// Starts COM_STMT_FETCH: the process list shows it, and KILL QUERY can end it.
    pub fn begin_fetch(&mut self, id: u32) {
        let text = self.prepared.by_id.get(&id).map(|prepared| prepared.of.text.clone());
        self.begin_process(Command::Fetch, text.as_deref().unwrap_or_default());
        self.begin_frame();
        self.set_kind(EventKind::of(Counter::ComStmtFetch));
    }

    /// Ends COM_STMT_FETCH, successful or not.
    pub fn end_fetch(&mut self) {
        self.end_frame(b"");
        self.end_process();
    }

    /// Error 1317 if the running command was killed.
    pub fn check_interrupt(&self) -> SqlResult<()> {
        self.state.check_interrupt()
    }

    /// Runs COM_STMT_CLOSE.
    pub fn close_statement(&mut self, id: u32) {
        self.log_inner("Close stmt", b"", (&[], &[]));
        self.forget_statement(id);
    }

    /// Removes a statement without logging it.
    pub(crate) fn forget_statement(&mut self, id: u32) {
        self.prepared.remove(&Handle::Id(id));
    }

    /// Runs PREPARE name FROM ...
    pub(crate) fn prepare_named(
        &mut self,
        name: &str,
        source: &PrepareSource,
        job: &Job<'_>,
    ) -> SqlResult<()> {
        let handle = Handle::Name(name.to_lowercase());
        self.prepared.check_idle(&name.to_lowercase())?;
        self.prepared.remove(&handle);
        let text = match source {
            PrepareSource::Text(text) => text.clone(),
            PrepareSource::UserVariable(variable) => text_of(self.state.user_variable(variable)),
            PrepareSource::Expr(expr) if calls_back(expr) => {
                return Err(SqlError::no_subqueries_in("PREPARE..FROM"));
            }
            PrepareSource::Expr(expr) => text_of(Some(self.eval_alone(expr, job)?)),
        };
        let (prepared, _) = self.prepare_text(&text, true)?;
        self.log_inner("Prepare", &text, (&[], &[]));
        self.prepared.insert(handle, prepared);
        self.state.note_change(Changed::Other);
        Ok(())
    }

    /// Runs EXECUTE name USING ...
    pub(crate) fn execute_named(
        &mut self,
        name: &str,
        using: &[ast::Using],
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let (params, unfilled) = self.using(using, "EXECUTE..USING", job)?;
        let Some(prepared) = self.prepared.by_name.get(&name.to_lowercase()) else {
            return Err(unknown_handler(name, "EXECUTE"));
        };
        self.prepared.check_idle(&name.to_lowercase())?;
        let of = Arc::clone(&prepared.of);
        self.executed_text = Some(Arc::clone(&of.text));
        self.log_inner("Execute", &of.text, (&of.parsed.param_at, &params));
        let prepared = self.prepared.get(&Handle::Name(name.to_lowercase()));
        let variant = unfilled.map(|unfilled| prepared.variant(&unfilled)).transpose()?;
        self.with_out_parameters(using, |session| match variant {
            None => session.run_prepared(&Handle::Name(name.to_lowercase()), &params, job.more, sink),
            Some(variant) => session.run_once(variant, &params, job.more, sink),
        })
    }

    /// Runs a statement of EXECUTE. The variables of USING receive the OUT parameters of a CALL.
    fn with_out_parameters(
        &mut self,
        using: &[ast::Using],
        run: impl FnOnce(&mut Session) -> SqlResult<()>,
    ) -> SqlResult<()> {
        let outer = std::mem::replace(&mut self.programs.out, OutParameters::Kept(Vec::new()));
        let outcome = run(self);
        let OutParameters::Kept(out) = std::mem::replace(&mut self.programs.out, outer) else {
            return outcome;
        };
        for (n, value) in out {
            if let Some(ast::Using::Expr(ast::Expr::UserVariable(name))) = using.get(n as usize) {
                self.state.set_user_variable(name, value)?;
            }
        }
        outcome
    }

    /// Returns the values of USING, and the positions without a value.
    fn using(
        &mut self,
        using: &[ast::Using],
        clause: &str,
        job: &Job<'_>,
    ) -> SqlResult<(Vec<Value>, Option<Unfilled>)> {
        let mut params = Vec::with_capacity(using.len());
        for item in using {
            params.push(match item {
                ast::Using::Expr(expr) if calls_back(expr) => {
                    return Err(SqlError::no_subqueries_in(clause));
                }
                ast::Using::Expr(expr) => Parameter::Value(self.eval_alone(expr, job)?),
                ast::Using::Default => Parameter::Default,
                ast::Using::Ignore => Parameter::Ignore,
            });
        }
        Ok(unfilled::split(params))
    }

    /// Runs a statement under a temporary name.
    fn run_once(
        &mut self,
        prepared: Prepared,
        params: &[Value],
        more: bool,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        // No identifier can be equal to this name. The statement may call a procedure with another one.
        let handle = Handle::Name(format!("\0immediate {}", self.programs.depth()));
        self.prepared.insert(handle.clone(), prepared);
        let outcome = self.run_prepared(&handle, params, more, sink);
        self.prepared.remove(&handle);
        outcome
    }

    /// Runs EXECUTE IMMEDIATE.
    pub(crate) fn execute_immediate(
        &mut self,
        source: &ast::Expr,
        using: &[ast::Using],
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        const WORDS: &str = "EXECUTE IMMEDIATE";
        if calls_back(source) {
            return Err(SqlError::no_subqueries_in(WORDS));
        }
        let text = text_of(Some(self.eval_alone(source, job)?));
        let (params, unfilled) = self.using(using, WORDS, job)?;
        let (mut prepared, _) = self.prepare_text(&text, true)?;
        if let Some(unfilled) = unfilled {
            prepared = prepared.variant(&unfilled)?;
        }
        self.log_inner("Execute", &text, (&prepared.of.parsed.param_at, &params));
        let outcome =
            self.with_out_parameters(using, |session| session.run_once(prepared, &params, job.more, sink));
        if self.state.db.audit.is_on() {
            self.state.audit_ended(&text, outcome.as_ref().map_or_else(|error| error.number(), |()| 0));
        }
        outcome
    }

    /// Runs DEALLOCATE PREPARE.
    pub(crate) fn deallocate(&mut self, name: &str) -> SqlResult<()> {
        self.prepared.check_idle(&name.to_lowercase())?;
        let removed = self.prepared.remove(&Handle::Name(name.to_lowercase()));
        removed.ok_or_else(|| unknown_handler(name, "DEALLOCATE PREPARE"))?;
        self.state.note_change(Changed::Other);
        Ok(())
    }

    fn run_prepared(
        &mut self,
        handle: &Handle,
        params: &[Value],
        more: bool,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let outer = matches!(handle, Handle::Name(_)).then(|| self.begin_nested());
        self.prepared.get_mut(handle).is_running = true;
        let outcome = self.run_prepared_there(handle, params, more, sink);
        self.prepared.get_mut(handle).is_running = false;
        self.state.statement.examined.begin(None);
        if let Some(outer) = outer {
            let statement = Arc::clone(&self.prepared.get(handle).statement);
            self.end_nested(outer, statement, outcome.as_ref().err().map(SqlError::number));
        }
        outcome
    }

    /// Runs a statement in the database that was current when it was prepared.
    fn run_prepared_there(
        &mut self,
        handle: &Handle,
        params: &[Value],
        more: bool,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let schema = &self.prepared.get(handle).schema;
        if *schema == self.state.current_schema {
            return self.run_prepared_here(handle, params, more, sink);
        }
        let schema = schema.clone();
        let own = self.state.current_schema.clone();
        self.enter(schema);
        let outcome = self.run_prepared_here(handle, params, more, sink);
        self.enter(own);
        outcome
    }

    /// Changes the current database without notifying the client. If the database no longer exists, there is
    /// none.
    pub(crate) fn enter(&mut self, schema: Option<Arc<str>>) {
        let db = &self.state.db;
        let is_there = |name: &Arc<str>| {
            db.virtual_tables.has_schema(name) || db.catalog().schemas.contains_key(&**name)
        };
        let schema = schema.filter(is_there);
        self.state.set_schema(schema);
        self.state.refresh();
    }

    fn run_prepared_here(
        &mut self,
        handle: &Handle,
        params: &[Value],
        more: bool,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let filled: Vec<Value>;
        let params = match self.state.settings.parse.mode.empty_string_is_null {
            false => params,
            true => {
                filled = params.iter().map(null_for_empty).collect();
                &filled
            }
        };
        let prepared = self.prepared.get(handle);
        let (of, kept, variant) = (Arc::clone(&prepared.of), prepared.plan.clone(), prepared.variant.clone());
        let Parsed { statement, params: wanted, param_at, .. } = &of.parsed;
        let statement = variant.as_deref().unwrap_or(statement);
        if params.len() != *wanted as usize {
            return Err(SqlError::wrong_arguments("EXECUTE"));
        }
        self.limit_examined(of.parsed.rows_examined.as_ref(), params);
        let job = Job { text: &of.text, param_at, params, source: ParamSource::Placeholders, more };
        let changes_accounts = account_tables::changed_by(&self.state, statement).is_some();
        if changes_accounts || statement.plannable().is_none() {
            return self.run_statement(statement, &job, None, sink);
        }
        self.state.check_account_limits(traits_of(statement))?;
        let (version, session) = (self.state.db.catalog_version(), self.state.settings.plan_key);
        // Plans that depend on this session's temporary tables, and plans of variants, are not shared.
        let is_shared = self.state.temporary.is_empty() && variant.is_none();
        let own = kept.filter(|kept| kept.is_of(version, session, params));
        let is_own = own.is_some();
        let usable = own.or_else(|| of.plan(version, session, params).filter(|_| is_shared));
        if let Some(kept) = usable {
            self.diagnostics.begin();
            if self.run_cached(kept.plan(), &job, sink)? {
                if !is_own {
                    self.prepared.get_mut(handle).plan = Some(kept);
                }
                return Ok(());
            }
        }
        let made = self.run_and_keep(statement, &job, sink)?;
        let kept = made.and_then(|(plan, version)| of.charge(plan, version, session));
        if let (Some(kept), true) = (&kept, is_shared) {
            of.share(kept);
        }
        self.prepared.get_mut(handle).plan = kept;
        Ok(())
    }
}

/// Stores the rows of a query for a cursor, if the client requested one. Error 1323 if the query has INTO.
fn keep_rows_of(statement: &Statement, sink: &mut dyn ResultSink) -> SqlResult<()> {
    let kind = kind_of(statement);
    if !kind.traits().has(Exception::Cursor) {
        return Ok(());
    }
    match sink.keep_rows() && kind != StatementKind::Select {
        true => Err(SqlError::cursor_with_into()),
        false => Ok(()),
    }
}

/// Converts a parameter under EMPTY_STRING_IS_NULL.
fn null_for_empty(value: &Value) -> Value {
    match value {
        Value::Str(text) if text.bytes.is_empty() => Value::Null,
        other => other.clone(),
    }
}

fn unknown_handler(name: &str, command: &str) -> SqlError {
    SqlError::unknown_statement(name, command)
}

fn text_of(value: Option<Value>) -> Vec<u8> {
    match value {
        None | Some(Value::Null) => b"NULL".to_vec(),
        Some(value) => match value.as_bytes() {
            Some(bytes) => bytes.to_vec(),
            None => value.to_text().into_bytes(),
        },
    }
}
