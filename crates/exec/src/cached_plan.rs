//! A statement's plan and the conditions for its reuse.
//!
//! A cached plan may serve another statement if digest, catalog version and session settings are equal, the
//! literals that the plan depends on (*pins*) have equal values, and the other literals have the same kinds.

use std::sync::{Arc, OnceLock};

use crate::known_statement::KnownStatement;
use cohort_catalog::{Catalog, Table, View};
use cohort_config::Counter;
use cohort_dml::{DeletePlan, InsertPlan, JoinedChange, Returning, UpdatePlan};
use cohort_expr::ExprType;
use cohort_optimize::ReadMode;
use cohort_plan::{Binder, ParamSource, PlanContext, calls_back};
use cohort_program::{ResultColumn, RowsFor};
use cohort_protocol::ColumnMeta;
use cohort_query::{PlanBody, QueryPlan, plan_query, plan_query_within};
use cohort_session::access::{self, RoutineNeed, TableNeed};
use cohort_session::{Reached, RootTable, Roots, SessionNames, SessionState};
use cohort_sql::Plannable;
use cohort_sql::ast::{self, Statement, TriggerEvent};
use cohort_table::is_current;
use cohort_types::{Level, Privilege, SqlError, SqlResult, Value, Warning};

/// Estimated bytes of plan per byte of a view's text.
const VIEW_BYTES_OF_A_BYTE: usize = 24;
/// Minimum bytes of a plan; [`COLUMN_BYTES`] is added for each result column.
const PLAN_BYTES: usize = 3 << 10;
const COLUMN_BYTES: usize = 400;
/// Estimated number of rows from which on the reads of one table are counted.
const COUNTED_ROWS_MIN: u64 = 100;

/// A query or data change, bound and planned.
pub(crate) enum Planned {
    Query(QueryPlan),
    Insert(InsertPlan),
    Update(UpdatePlan),
    Delete(DeletePlan),
    /// UPDATE or DELETE over joins, or with subqueries.
    Joined(Box<JoinedChange>),
}

/// A plan with the conditions for its reuse.
pub struct CachedPlan {
    pub(crate) plan: Planned,
    /// Ordinals and values of literals that are part of the plan.
    pins: Vec<(u32, Value)>,
    /// The kinds of all parameters.
    kinds: Vec<ParamKind>,
    /// Raised during planning; each execution reports them again.
    pub(crate) warnings: Vec<Warning>,
    /// Privileges that each execution needs.
    pub(crate) needs: Vec<TableNeed>,
    /// Views that the plan reads.
    pub(crate) views: Vec<Arc<View>>,
    /// Tables that the statement names. The plan may not read all of them.
    named: Vec<Arc<Table>>,
    /// Sequences that the plan's expressions name, each with true if the plan takes numbers from it.
    pub(crate) sequences: Vec<(Arc<Table>, bool)>,
    /// Stored functions that the plan calls.
    pub(crate) routines: Vec<RoutineNeed>,
    /// The names that the functions and triggers of the plan may use.
    pub(crate) reached: Option<Box<Reached>>,
    pub(crate) reusable: bool,
    /// The rows that its parts read are counted whenever it runs.
    pub(crate) is_counted: bool,
    /// Number of parts whose work can be measured.
    pub(crate) parts: u32,
    /// The statement, for statistics; set when the plan is cached by its text.
    pub(crate) statement: OnceLock<Arc<KnownStatement>>,
}

/// Properties of a parameter's value that the plan depends on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ParamKind {
    variant: std::mem::Discriminant<Value>,
    of: KindDetail,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum KindDetail {
    None,
    Text {
        collation: u16,
        ascii: bool,
    },
    /// Digits before and after the decimal point.
    Decimal {
        int_digits: u8,
        scale: u8,
    },
    /// True if the value has fractional seconds.
    Time {
        fraction: bool,
    },
}

impl ParamKind {
    fn of(value: &Value) -> ParamKind {
        let of = match value {
            Value::Str(s) => KindDetail::Text { collation: s.collation.0, ascii: s.bytes.is_ascii() },
            Value::Decimal(d) => KindDetail::Decimal { int_digits: d.int_digits(), scale: d.scale() },
            Value::Time(t) => KindDetail::Time { fraction: t.microsecond() != 0 },
            Value::DateTime(d) => KindDetail::Time { fraction: d.micros != 0 },
            _ => KindDetail::None,
        };
        ParamKind { variant: std::mem::discriminant(value), of }
    }

    /// Returns true if the value fits a plan that was made for a value of this kind.
    fn takes(self, value: &Value) -> bool {
        let other = ParamKind::of(value);
        match (self.of, other.of) {
            (
                KindDetail::Decimal { int_digits, scale },
                KindDetail::Decimal { int_digits: digits, scale: other_scale },
            ) => scale == other_scale && digits <= int_digits,
            _ => self == other,
        }
    }
}

impl CachedPlan {
    /// Returns true if the plan can run with these parameters.
    pub(crate) fn fits(&self, params: &[Value]) -> bool {
        params.len() == self.kinds.len()
            && params.iter().zip(&self.kinds).all(|(value, kind)| kind.takes(value))
            && self.pins.iter().all(|(n, value)| params.get(*n as usize) == Some(value))
    }

    /// Checks that the session may see the plans of its views. Error 1345 without SHOW VIEW on each view and
    /// SELECT on the tables it reads.
    pub(crate) fn check_viewer(&self, session: &SessionState) -> SqlResult<()> {
        self.views.iter().try_for_each(|view| access::check_view_shown(session, view))
    }

    /// Checks that the account may see the trace of the plan: as in MariaDB, it needs SELECT on all tables,
    /// may see the views, and may not act with the privileges of a definer.
    fn check_tracer(&self, session: &SessionState) -> SqlResult<()> {
        if session.identity.acts_as_definer {
            return Err(SqlError::view_not_explainable());
        }
        self.check_viewer(session)?;
        let may = |table: &Arc<Table>| {
            let name = &table.name;
            access::check_table(session, Privilege::Select, &name.schema, &name.table)
        };
        self.named.iter().filter(|table| !table.is_temporary()).try_for_each(may)
    }

    /// Returns true if the plan changes nothing outside of the session: a SELECT that locks no rows, has no
    /// INTO and takes no numbers from a sequence.
    pub(crate) fn only_reads(&self) -> bool {
        let Planned::Query(query) = &self.plan else { return false };
        let takes_numbers = self.sequences.iter().any(|(_, is_written)| *is_written);
        query.into.is_empty() && query.locks() == ReadMode::Snapshot && !takes_numbers && !query.calls_back
    }

    /// Returns whether the rows that its parts read are counted whenever it runs, for SHOW ANALYZE. A plan
    /// that reads few rows of one table counts nothing.
    fn counts_parts(&self) -> bool {
        let query = match &self.plan {
            Planned::Query(query) => Some(query),
            Planned::Insert(insert) => insert.query(),
            Planned::Update(update) => return update.target().rows > COUNTED_ROWS_MIN as f64,
            Planned::Delete(delete) => return delete.target().rows > COUNTED_ROWS_MIN as f64,
            Planned::Joined(_) => return true,
        };
        match query.map(|query| &query.body) {
            Some(PlanBody::Direct(direct)) => {
                direct.table.as_ref().is_some_and(|table| table.rows_estimate > COUNTED_ROWS_MIN)
            }
            Some(PlanBody::Tree(_)) => true,
            None => false,
        }
    }

    /// Returns whether every name of the statement has the same meaning in this version of the catalog. A
    /// name that was found can only mean something else once its object is gone.
    pub(crate) fn is_current(&self, catalog: &Catalog) -> bool {
        let sequences = self.sequences.iter().map(|(table, _)| table);
        self.named.iter().chain(sequences).all(|table| is_current(catalog, table))
            && self.views.iter().all(|view| {
                let now = catalog.view(&view.name.schema, &view.name.table);
                now.is_some_and(|now| Arc::ptr_eq(now, view))
            })
            && self.routines.iter().all(|need| {
                let routine = &need.routine;
                let now = catalog.routine(routine.kind, &routine.schema, &routine.name);
                now.is_some_and(|now| Arc::ptr_eq(now, routine))
            })
    }

    pub(crate) fn reads_tables(&self) -> bool {
        match &self.plan {
            Planned::Query(query) => query.reads_tables(),
            _ => true,
        }
    }

    /// Returns the approximate memory of the plan. `syntax` is the memory of the text's syntax tree. Data
    /// shared with the catalog does not count.
    pub(crate) fn memory_bytes(&self, syntax: usize) -> u64 {
        let columns = self.columns().iter().map(|column| {
            let names = [&column.schema, &column.table, &column.org_table, &column.name, &column.org_name];
            COLUMN_BYTES + names.iter().map(|name| name.len()).sum::<usize>()
        });
        let pins = self.pins.iter().map(|(_, value)| value.memory_bytes());
        let views = self.views.iter().map(|view| view.text.len()).sum::<usize>() * VIEW_BYTES_OF_A_BYTE;
        let parts = columns.chain(pins).chain(self.needs.iter().map(TableNeed::memory_bytes));
        let statement = self.statement.get().map_or(0, |statement| statement.memory_bytes());
        let reached = self.reached.as_ref().map_or(0, |reached| reached.memory_bytes());
        (PLAN_BYTES + syntax + views + statement + reached + parts.sum::<usize>()) as u64
    }

    /// Returns the names and types of a query's columns.
    pub(crate) fn result_columns(&self) -> Vec<ResultColumn> {
        let Planned::Query(plan) = &self.plan else { return Vec::new() };
        let columns = plan.columns.iter().zip(&plan.types);
        let of = |(meta, ty): (&ColumnMeta, &ExprType)| ResultColumn {
            name: meta.name.clone(),
            ty: ty.to_column_type(),
        };
        columns.map(of).collect()
    }

    /// Returns the tables that the plan names, and whether it changes their rows.
    pub(crate) fn tables(&self) -> Vec<(&Arc<Table>, bool)> {
        fn read<'p>(
            queries: impl IntoIterator<Item = &'p QueryPlan>,
            into: &mut Vec<(&'p Arc<Table>, bool)>,
        ) {
            for query in queries {
                into.extend(query.tables().into_iter().map(|(table, _)| (table, false)));
            }
        }
        let mut found = Vec::new();
        match &self.plan {
            Planned::Query(plan) => read([plan], &mut found),
            Planned::Insert(plan) => {
                found.push((plan.table(), true));
                read(plan.query().into_iter().chain(plan.asked()), &mut found);
            }
            Planned::Update(plan) => found.push((plan.table(), true)),
            Planned::Delete(plan) => {
                found.push((plan.table(), true));
                read(plan.returning.as_ref().and_then(Returning::asked), &mut found);
            }
            Planned::Joined(plan) => {
                found.extend(plan.written().map(|(table, _)| (table, true)));
                read([plan.source()], &mut found);
                read(plan.returning().and_then(Returning::asked), &mut found);
            }
        }
        found
    }

    /// Returns the programs that the plan runs, and its tables.
    fn roots(&self) -> Roots {
        use TriggerEvent::{Delete, Insert, Update};
        let events = match &self.plan {
            Planned::Query(_) => Vec::new(),
            Planned::Insert(plan) => match (plan.replaces(), plan.updates()) {
                (true, _) => vec![Insert, Delete],
                (false, true) => vec![Insert, Update],
                (false, false) => vec![Insert],
            },
            Planned::Update(_) => vec![Update],
            Planned::Delete(_) => vec![Delete],
            Planned::Joined(plan) => vec![if plan.is_update() { Update } else { Delete }],
        };
        let root = |(table, is_written): (&Arc<Table>, bool)| RootTable {
            table: Arc::clone(table),
            is_written,
            events: if is_written { events.clone() } else { Vec::new() },
        };
        Roots {
            functions: self.routines.iter().map(|need| Arc::clone(&need.routine)).collect(),
            tables: self.tables().into_iter().map(root).collect(),
        }
    }

    /// Returns whether functions or triggers may run while the plan runs.
    pub(crate) fn runs_programs(&self) -> bool {
        !self.routines.is_empty()
            || match &self.plan {
                Planned::Query(_) => false,
                Planned::Insert(plan) => plan.has_hooks(),
                Planned::Update(plan) => plan.has_hooks(),
                Planned::Delete(plan) => plan.has_hooks(),
                Planned::Joined(plan) => plan.has_hooks(),
            }
    }

    /// Returns the columns of the result, empty for data changes without RETURNING.
    pub(crate) fn columns(&self) -> &[ColumnMeta] {
        let returning = match &self.plan {
            Planned::Query(query) if query.into.is_empty() => return &query.columns,
            Planned::Query(_) | Planned::Update(_) => None,
            Planned::Insert(insert) => insert.returning.as_ref(),
            Planned::Delete(delete) => delete.returning.as_ref(),
            Planned::Joined(change) => change.returning(),
        };
        returning.map_or(&[], |returning| &returning.columns)
    }
}

/// Returns the counter of a planned statement.
pub(crate) fn counter_of_plan(plan: &Planned) -> Counter {
    match plan {
        Planned::Query(_) => Counter::ComSelect,
        Planned::Insert(insert) => match (insert.replaces(), insert.selects()) {
            (false, false) => Counter::ComInsert,
            (false, true) => Counter::ComInsertSelect,
            (true, false) => Counter::ComReplace,
            (true, true) => Counter::ComReplaceSelect,
        },
        Planned::Update(_) => Counter::ComUpdate,
        Planned::Delete(_) => Counter::ComDelete,
        Planned::Joined(change) if change.is_update() => Counter::ComUpdateMulti,
        Planned::Joined(_) => Counter::ComDeleteMulti,
    }
}

/// Plans a query or data change.
pub(crate) fn make_plan(
    catalog: &Arc<Catalog>,
    session: &SessionState,
    params: &[Value],
    source: ParamSource<'_>,
    statement: &Statement,
) -> SqlResult<CachedPlan> {
    let mut names = SessionNames::new(catalog, session);
    if takes_out(statement) {
        names = names.with_out(source);
    }
    plan_with(&names, (catalog, session), params, source, statement)
}

/// Returns whether functions of a statement may assign their OUT and INOUT arguments: as in MariaDB, not in
/// SELECT, INSERT, and UPDATE and DELETE of one table (error 4187).
fn takes_out(statement: &Statement) -> bool {
    match statement.plannable() {
        Some(Plannable::Query(_)) | None => false,
        Some(Plannable::Insert(insert)) => insert.replace,
        Some(Plannable::Update(update)) => !matches!(update.tables, ast::TableRef::Table(_)),
        Some(Plannable::Delete(delete)) => {
            !delete.targets.is_empty() || !matches!(delete.from, ast::TableRef::Table(_))
        }
    }
}

/// Plans a query that runs inside another statement and sends no rows to the client.
pub(crate) fn make_inner_plan(
    (catalog, session): (&Arc<Catalog>, &SessionState),
    params: &[Value],
    source: ParamSource<'_>,
    query: &Statement,
    rows_for: RowsFor,
) -> SqlResult<CachedPlan> {
    let mut names = SessionNames::new(catalog, session);
    if rows_for != RowsFor::Cursor {
        names = names.with_out(source);
    }
    planned(&names, (catalog, session), params, source, query, false)
}

/// Plans a query or data change with names that the caller has resolved.
pub(crate) fn plan_with(
    names: &SessionNames<'_>,
    of: (&Arc<Catalog>, &SessionState),
    params: &[Value],
    source: ParamSource<'_>,
    statement: &Statement,
) -> SqlResult<CachedPlan> {
    planned(names, of, params, source, statement, true)
}

fn planned(
    names: &SessionNames<'_>,
    of: (&Arc<Catalog>, &SessionState),
    params: &[Value],
    source: ParamSource<'_>,
    statement: &Statement,
    is_shown: bool,
) -> SqlResult<CachedPlan> {
    let (_, session) = of;
    if !session.optimizer.begin(&session.settings.vars) {
        return plan_whole(names, of, params, source, statement, is_shown);
    }
    let mut made = plan_whole(names, of, params, source, statement, is_shown);
    let may_see = made.as_ref().is_ok_and(|plan| plan.check_tracer(session).is_ok());
    session.optimizer.end(may_see);
    if let Ok(plan) = &mut made {
        plan.reusable = false;
    }
    made
}

fn plan_whole(
    names: &SessionNames<'_>,
    (catalog, session): (&Arc<Catalog>, &SessionState),
    params: &[Value],
    source: ParamSource<'_>,
    statement: &Statement,
    is_shown: bool,
) -> SqlResult<CachedPlan> {
    let source_is_text = matches!(source, ParamSource::Literals);
    let ctx = PlanContext::new(names, params, source);
    let mut within =
        |query: &ast::Query, row: Option<&Binder<'_>>| plan_query_within(&ctx, session, row, query);
    let Some(statement) = statement.plannable() else {
        return Err(SqlError::not_supported("this statement here"));
    };
    if let Plannable::Query(query) = statement
        && query.into_is_late
        && source_is_text
    {
        let error = SqlError::into_before_from_deprecated();
        session.statement.planning_warnings.borrow_mut().push(Warning { level: Level::Warning, error });
    }
    let plan = match statement {
        Plannable::Query(query) if is_shown => Planned::Query(plan_query(&ctx, session, query)?),
        Plannable::Query(query) => Planned::Query(plan_query_within(&ctx, session, None, query)?),
        Plannable::Insert(insert) => Planned::Insert(InsertPlan::plan(&ctx, session, insert, &mut within)?),
        Plannable::Update(update)
            if update.is_simple(calls_back) && !names_view(catalog, session, &update.tables) =>
        {
            Planned::Update(UpdatePlan::plan(&ctx, session, update)?)
        }
        Plannable::Update(update) => Planned::Joined(Box::new(JoinedChange::update(&ctx, session, update)?)),
        Plannable::Delete(delete)
            if delete.is_simple(calls_back) && !names_view(catalog, session, &delete.from) =>
        {
            Planned::Delete(DeletePlan::plan(&ctx, session, delete, &mut within)?)
        }
        Plannable::Delete(delete) => {
            Planned::Joined(Box::new(JoinedChange::delete(&ctx, session, delete, &mut within)?))
        }
    };
    let pin = |n: u32| ctx.params.get(n as usize).map(|value| (n, value.clone()));
    let pins = match ctx.source {
        ParamSource::Literals => ctx.pins.borrow().iter().copied().filter_map(pin).collect(),
        ParamSource::Placeholders | ParamSource::Variables(_) => Vec::new(),
    };
    let kinds = ctx.params.iter().map(ParamKind::of).collect();
    let warnings = session.statement.planning_warnings.take();
    let (needs, views, reusable) = (names.take_needs(), names.take_views(), ctx.reusable.get());
    let (sequences, routines, named) = (names.take_sequences(), names.take_routines(), names.take_tables());
    let mut made = CachedPlan {
        plan,
        pins,
        kinds,
        warnings,
        needs,
        views,
        named,
        sequences,
        routines,
        reached: None,
        reusable,
        is_counted: false,
        parts: ctx.parts(),
        statement: OnceLock::new(),
    };
    made.is_counted = made.counts_parts();
    if made.runs_programs() {
        made.reached = Reached::by(catalog, session, made.roots()).map(Box::new);
    }
    Ok(made)
}

/// Returns true if the target is a view: views are changed by the plan for joins.
fn names_view(catalog: &Catalog, session: &SessionState, table: &ast::TableRef) -> bool {
    let ast::TableRef::Table(factor) = table else { return false };
    let name = &factor.name.name;
    let schema = factor.name.db.as_deref().or(session.current_schema.as_deref());
    schema.is_some_and(|schema| {
        catalog.view(schema, name).is_some() && session.temporary.find(schema, name).is_none()
    })
}
