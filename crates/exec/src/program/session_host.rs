//! [`SessionHost`]: runs the statements of a body in the session.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cohort_base::{CommitSeq, Reservation};
use cohort_config::VarId;
use cohort_expr::{EvalContext, SessionHooks};
use cohort_plan::{Names, ParamSource, Parameter};
use cohort_program::{BodyStatement, Host, QueryRows, ResultColumn, RowsFor};
use cohort_protocol::ResultSink;
use cohort_query::{Flow, Freshness, RowSink, run_query};
use cohort_session::{Database, Diagnostics, Job, Process, SessionNames, SessionState, access};
use cohort_sql::StatementDigest;
use cohort_sql::ast::{ObjectName, Statement, Variable};
use cohort_sql::print::quoted_name;
use cohort_table::definition_changed;
use cohort_types::{ErrorCode, SqlError, SqlResult, Value, row_memory_bytes};

use super::body_sink::BodySink;
use super::procedures::parameters_of;
use super::routines::columns_of_table;
use crate::account_tables;
use crate::cached_plan::{CachedPlan, Planned, make_inner_plan};
use crate::dispatch::PLAN_ATTEMPTS;
use crate::known_statement::KnownStatement;
use crate::plan_locks::{check_needs, lock_and_check, tables_used, with_tables_in_use};
use crate::session::Session;

/// A session in which a program runs.
pub(crate) struct SessionHost<'h> {
    pub session: &'h mut Session,
    pub sink: &'h mut dyn ResultSink,
}

/// The plan of a statement, with the conditions for its reuse.
pub(super) struct BodyPlan {
    pub plan: Arc<CachedPlan>,
    /// The latest version of the catalog in which the plan was current.
    version: AtomicU64,
    /// Hash of the session's settings.
    settings: u64,
}

impl BodyPlan {
    pub fn new(plan: Arc<CachedPlan>, version: u64, settings: u64) -> BodyPlan {
        BodyPlan { plan, version: AtomicU64::new(version), settings }
    }

    /// Returns whether the plan was made with these settings, and what it names is the same in the catalog. A
    /// body that creates a table does not plan its other statements again.
    pub fn is_current(&self, db: &Database, settings: u64) -> bool {
        if self.settings != settings {
            return false;
        }
        if self.version.load(Ordering::Relaxed) == db.catalog_version() {
            return true;
        }
        let catalog = db.catalog();
        let is_current = self.plan.is_current(&catalog);
        if is_current {
            self.version.store(catalog.version, Ordering::Relaxed);
        }
        is_current
    }
}

/// Calls `work` with the names of a session. The warnings of planning are dropped.
pub(super) fn with_names(
    session: &SessionState,
    work: &mut dyn FnMut(&dyn Names) -> SqlResult<()>,
) -> SqlResult<()> {
    let catalog = session.db.catalog();
    let outcome = work(&SessionNames::new(&catalog, session));
    session.statement.planning_warnings.borrow_mut().clear();
    outcome
}

/// Returns whether no handler may handle the error.
pub(super) fn is_final(error: &SqlError) -> bool {
    use ErrorCode as E;
    matches!(
        error.code,
        E::QueryInterrupted
            | E::ConnectionKilled
            | E::StatementTimeout
            | E::OutOfMemory
            | E::OutOfResources
            | E::StackOverrunNeedMore
    )
}

/// Returns the columns of a table or view that a type refers to: all, or the one that it names. The session
/// needs SELECT on them. `describe` plans a query.
pub(super) fn columns_of(
    session: &SessionState,
    table: &ObjectName,
    column: Option<&str>,
    describe: impl FnOnce(&Statement) -> SqlResult<Vec<ResultColumn>>,
) -> SqlResult<Vec<ResultColumn>> {
    let schema = table.db.as_deref().or(session.current_schema.as_deref());
    let schema = schema.ok_or_else(SqlError::no_database_selected)?;
    if let Some(own) = session.temporary.find(schema, &table.name) {
        return Ok(columns_of_table(&own));
    }
    if let Some(found) = session.db.catalog().table(schema, &table.name) {
        let names = found.columns.iter().map(|known| &*known.name);
        let used = names.filter(|name| column.is_none_or(|column| column.eq_ignore_ascii_case(name)));
        access::check_all_of(session, &found.name, used)?;
        return Ok(columns_of_table(found));
    }
    // A view, or no table at all.
    let columns = column.map_or("*".to_owned(), |column| quoted_name(column).to_string());
    let text = format!("SELECT {columns} FROM {}.{}", quoted_name(schema), quoted_name(&table.name));
    describe(&cohort_sql::parse_own(&text)?.statement).map_err(|error| match (error.code, column) {
        (ErrorCode::BadField, Some(column)) => SqlError::unknown_column(column, &table.name),
        _ => error,
    })
}

impl Host for SessionHost<'_> {
    fn session(&self) -> &SessionState {
        &self.session.state
    }

    fn with_names(&mut self, work: &mut dyn FnMut(&dyn Names) -> SqlResult<()>) -> SqlResult<()> {
        with_names(&self.session.state, work)
    }

    fn diagnostics(&mut self) -> &mut Diagnostics {
        &mut self.session.diagnostics
    }

    fn check_interrupt(&mut self) -> SqlResult<()> {
        self.session.look_at_clock();
        self.session.set_time();
        self.session.state.check_interrupt()
    }

    fn may_handle(&self, error: &SqlError) -> bool {
        !is_final(error) && self.session.state.kill.killed().is_none()
    }

    fn run(&mut self, statement: &BodyStatement, params: &[Value]) -> SqlResult<Vec<(Variable, Value)>> {
        let status = self.session.status_for(true);
        let is_open = self.session.programs.is_result_open;
        let mut sink = BodySink { client: &mut *self.sink, affected: 0, is_open, status };
        // A CALL of an event is one statement.
        let has_limit = self.session.programs.is_event && self.session.programs.depth == 1;
        if has_limit {
            self.session.begin_deadline();
        }
        let outcome = self.session.run_in_body(statement, params, &mut sink);
        if has_limit {
            self.session.end_deadline();
        }
        let programs = &mut self.session.programs;
        (programs.affected, programs.is_result_open) = (programs.affected + sink.affected, sink.is_open);
        let assigned = self.session.state.statement.assigned.take();
        outcome.map(|()| assigned)
    }

    fn query(
        &mut self,
        query: &BodyStatement,
        params: &[Value],
        rows_for: RowsFor,
    ) -> SqlResult<Box<dyn QueryRows>> {
        let rows = self.session.rows_in_body(query, params, rows_for)?;
        Ok(Box::new(rows))
    }

    fn describe(&mut self, query: &BodyStatement) -> SqlResult<Vec<ResultColumn>> {
        let nulls = vec![Value::Null; query.types.len()];
        self.session.result_columns(&query.statement, &nulls, query.source())
    }

    fn columns_of(&mut self, table: &ObjectName, column: Option<&str>) -> SqlResult<Vec<ResultColumn>> {
        let source = ParamSource::Placeholders;
        let session = &*self.session;
        columns_of(&session.state, table, column, |query| session.result_columns(query, &[], source))
    }

    fn parameters(&mut self, procedure: &ObjectName) -> SqlResult<Vec<Parameter>> {
        parameters_of(&self.session.state, procedure)
    }

    fn call(
        &mut self,
        procedure: &ObjectName,
        args: Vec<Value>,
        is_variable: &[bool],
    ) -> SqlResult<Vec<Option<Value>>> {
        let routine = self.session.procedure(procedure)?;
        self.session.call(&routine, args, is_variable, &mut *self.sink)
    }
}

impl Session {
    /// Runs a statement of a body as a statement of the session.
    fn run_in_body(
        &mut self,
        of: &BodyStatement,
        params: &[Value],
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        self.look_at_clock();
        self.begin_command();
        self.state.check_interrupt()?;
        self.log_inner("Query", &of.text, (&of.param_at, params));
        self.process.show_inner(&of.text);
        let ordered = self.trx.last_ordered();
        let source = of.source();
        let job = Job { text: &of.text, param_at: &of.param_at, params, source, more: true };
        let outer = self.begin_nested();
        let outcome = self.run_or_plan(of, &job, sink);
        let statement = known_in_body(&self.state, of);
        self.end_nested(outer, statement, outcome.as_ref().err().map(SqlError::number));
        if outcome.is_err() {
            self.state.settings.env.row_count = -1;
        }
        if self.trx.last_ordered() != ordered {
            // What is committed must not wait for the rest of the program.
            self.state.db.commit.lead_later();
        }
        outcome
    }

    fn run_or_plan(&mut self, of: &BodyStatement, job: &Job<'_>, sink: &mut dyn ResultSink) -> SqlResult<()> {
        let statement = &of.statement;
        if statement.plannable().is_none() || account_tables::changed_by(&self.state, statement).is_some() {
            return self.run_statement(statement, job, None, sink);
        }
        let settings = self.state.settings.plan_key;
        if let Some(kept) = of.kept::<BodyPlan>()
            && kept.is_current(&self.state.db, settings)
        {
            self.diagnostics.begin();
            if self.run_cached(&kept.plan, job, sink)? {
                return Ok(());
            }
        }
        if let Some((plan, version)) = self.run_and_keep(statement, job, sink)? {
            self.keep(of, plan, version, settings);
        }
        Ok(())
    }

    /// Keeps a plan with its statement. Sessions share the statement, so plans that may refer to this
    /// session's temporary tables are not kept.
    fn keep(&self, of: &BodyStatement, plan: Arc<CachedPlan>, version: u64, settings: u64) {
        if plan.reusable && self.state.temporary.is_empty() {
            of.keep(Arc::new(BodyPlan::new(plan, version, settings)));
        }
    }

    /// Runs a query whose rows the program reads.
    fn rows_in_body(
        &mut self,
        of: &BodyStatement,
        params: &[Value],
        rows_for: RowsFor,
    ) -> SqlResult<HeldRows> {
        self.look_at_clock();
        self.begin_command();
        self.diagnostics.begin();
        self.state.check_interrupt()?;
        let source = of.source();
        let job = Job { text: &of.text, param_at: &of.param_at, params, source, more: true };
        for _ in 0..PLAN_ATTEMPTS {
            let catalog = self.state.db.catalog();
            let settings = self.state.settings.plan_key;
            let kept = of.kept::<BodyPlan>().filter(|kept| kept.is_current(&self.state.db, settings));
            let is_new = kept.is_none();
            let found = self.with_context(&job, |ctx| {
                let plan = match kept {
                    Some(kept) => Arc::clone(&kept.plan),
                    None => {
                        let of = &of.statement;
                        Arc::new(make_inner_plan((&catalog, ctx.session), params, source, of, rows_for)?)
                    }
                };
                check_needs(ctx, &plan)?;
                let Planned::Query(query) = &plan.plan else {
                    return Err(SqlError::not_supported("this statement as a query of a program"));
                };
                if ctx.session.transactions.is_on() {
                    ctx.session.transactions.add(tables_used(&plan.plan), ctx.trx.autocommit());
                }
                if lock_and_check(ctx, &plan)? == Freshness::Stale {
                    return Ok(None);
                }
                let mut rows = HeldRows::new(query.columns.len(), rows_for.rows_max(), ctx.process);
                ctx.eval.set_abort_on_warning(rows_for.is_strict());
                with_tables_in_use(ctx, &plan, |ctx| run_query(query, ctx, u64::MAX, &mut rows).map(drop))?;
                Ok(Some((rows, plan)))
            })?;
            let Some((rows, plan)) = found else { continue };
            // As in MariaDB, a subquery of an expression clears no conditions.
            if rows_for == RowsFor::Cursor && plan.reads_tables() {
                self.diagnostics.drop_old();
            }
            if is_new {
                self.keep(of, plan, catalog.version, settings);
            }
            return Ok(rows);
        }
        Err(definition_changed())
    }

    /// Returns the names and types of a query's columns.
    fn result_columns(
        &self,
        query: &Statement,
        params: &[Value],
        source: ParamSource<'_>,
    ) -> SqlResult<Vec<ResultColumn>> {
        Ok(self.describe(query, params, source)?.result_columns())
    }
}

/// Returns a statement of a program, for the statistics.
pub(super) fn known_in_body(session: &SessionState, of: &BodyStatement) -> Arc<KnownStatement> {
    of.known(|| {
        let bytes_max = session.db.globals.uint(VarId::MaxDigestLength) as usize;
        let digest = StatementDigest::of(&of.text, session.settings.parse.mode, bytes_max);
        KnownStatement::new(session.current_schema.clone(), &digest, true)
    })
}

/// The rows of a cursor, one after the other.
pub(super) struct HeldRows {
    values: Vec<Value>,
    /// Number of columns of the query.
    columns: usize,
    /// Number of values of a row. A value of an expression may have more than its columns.
    width: usize,
    rows: u64,
    /// Number of rows that were read.
    read: u64,
    memory: Reservation,
    /// Memory of rows that is not reserved yet.
    unreserved: u64,
    /// Maximum number of rows.
    rows_max: Option<u64>,
}

/// Memory of rows that is reserved at once.
const RESERVED_AT_ONCE: u64 = 64 << 10;

impl HeldRows {
    /// Makes a sink for rows. Their memory is charged to the session until they are dropped.
    pub fn new(columns: usize, rows_max: Option<u64>, process: &Process) -> HeldRows {
        let memory = Reservation::new(Arc::clone(process.memory()));
        let (values, width, rows, read, unreserved) = (Vec::new(), 0, 0, 0, 0);
        HeldRows { values, columns, width, rows, read, memory, unreserved, rows_max }
    }

    /// Returns the values of the next row, if there is one.
    fn next(&self) -> Option<Range<usize>> {
        let start = self.read as usize * self.width;
        (self.read < self.rows).then(|| start..start + self.width)
    }
}

impl RowSink for HeldRows {
    fn row(&mut self, _: &EvalContext<'_>, _: CommitSeq, values: &mut Vec<Value>) -> SqlResult<Flow> {
        self.unreserved += row_memory_bytes(values) as u64;
        if self.unreserved >= RESERVED_AT_ONCE {
            self.memory.grow(std::mem::take(&mut self.unreserved))?;
        }
        self.width = values.len();
        self.values.append(values);
        self.rows += 1;
        let enough = self.rows_max.is_some_and(|max| self.rows >= max);
        Ok(if enough { Flow::Stop } else { Flow::Continue })
    }
}

impl QueryRows for HeldRows {
    fn row(&self) -> Option<&[Value]> {
        self.next().map(|range| &self.values[range])
    }

    fn advance(&mut self) {
        self.read += 1;
    }

    fn next_row(&mut self) -> SqlResult<Option<Vec<Value>>> {
        let Some(range) = self.next() else { return Ok(None) };
        self.advance();
        let row = self.values[range].iter_mut().map(|value| std::mem::replace(value, Value::Null));
        Ok(Some(row.collect()))
    }

    fn columns(&self) -> usize {
        self.columns
    }
}
