//! INSERT and REPLACE, bound to a version of a table ([`InsertPlan`]).

use std::sync::Arc;

use cohort_catalog::{OnUpdate, Table};
use cohort_expr::ExprType;
use cohort_plan::{
    Binder, Clause, PlanContext, Reading, Scope, ScopeTable, ambiguous, bind_assignment, bind_insert_view,
    bind_new_value, calls_back, scope_of_rows,
};
use cohort_query::QueryPlan;
use cohort_session::SessionState;
use cohort_sql::ast;
use cohort_table::computed_columns;
use cohort_types::{ErrorCode, Privilege, Privileges, SqlError, SqlResult};

use crate::asked::{Cell, PlanQuery, RowAssignment, table_of};
use crate::assign::Default;
use crate::returning::{Returned, Returning, scope_of_view};
use crate::row_change::RowSteps;

/// The action for a row whose key exists.
pub(crate) enum OnDuplicate {
    /// Error 1062, or a warning with IGNORE.
    Refuse,
    /// REPLACE.
    Replace,
    /// ON DUPLICATE KEY UPDATE. The expressions see the columns of the existing row, then those of the new
    /// row, then the columns they read from the SELECT's tables.
    Update(Vec<RowAssignment>),
}

/// The source of the rows.
pub(crate) enum Rows {
    Values(Vec<Vec<Cell>>),
    Query(Box<QueryPlan>),
}

/// INSERT or REPLACE.
pub struct InsertPlan {
    pub(crate) table: Arc<Table>,
    /// The column of each value of a row.
    pub(crate) columns: Vec<usize>,
    /// The DEFAULT of each column of the table.
    pub(crate) defaults: Vec<Default>,
    /// Columns that the statement does not name.
    pub(crate) unnamed: Vec<usize>,
    pub(crate) rows: Rows,
    /// Whether the statement has VALUES of one row, which fails where rows of others are adjusted or skipped.
    pub(crate) is_single_row: bool,
    pub(crate) on_duplicate: OnDuplicate,
    pub(crate) ignore: bool,
    pub returning: Option<Returning>,
    pub(crate) steps: RowSteps,
}

impl InsertPlan {
    /// Returns whether hooks run for the changed rows.
    pub fn has_hooks(&self) -> bool {
        self.steps.has_hooks()
    }

    /// Binds the statement. `query` plans the SELECT of INSERT .. SELECT, and subqueries.
    pub fn plan(
        ctx: &PlanContext<'_>,
        session: &SessionState,
        insert: &ast::Insert,
        query: &mut PlanQuery<'_>,
    ) -> SqlResult<InsertPlan> {
        if !insert.partitions.is_empty() {
            return Err(SqlError::no_partitions());
        }
        let through = bind_insert_view(ctx, &insert.table, &insert.columns, wanted(insert))?;
        let (table, mut scope, shown, checks) = match through {
            Some(view) => (view.table, view.scope, Some(view.columns), view.checks),
            None => {
                let table = ctx.base_table(&insert.table, wanted(insert))?;
                (table.clone(), Scope::of_table(table, None), None, Vec::new())
            }
        };
        let mut update_scope = scope.clone();
        let returned_scope = match &shown {
            Some(shown) => scope_of_view(&scope, shown),
            None => scope.clone(),
        };
        scope.reading = Reading::NewRow;
        let binder = Binder::new(ctx, &scope, Clause::Values);
        // The number of values is checked before the column names.
        if let (ast::InsertSource::Values(rows), false) = (&insert.source, insert.columns.is_empty())
            && rows.first().is_some_and(|row| !row.is_empty() && row.len() != insert.columns.len())
        {
            return Err(wrong_count(1));
        }
        let mut columns = match shown {
            Some(shown) if insert.columns.is_empty() => shown,
            _ => columns(&binder, &table, &insert.columns)?,
        };
        use_inserted(ctx, &scope, insert, &columns)?;
        let defaults = (0..table.columns.len())
            .map(|column| Default::of(&binder, &table, column))
            .collect::<SqlResult<Vec<_>>>()?;
        refuse_ambiguous(ctx, insert, &scope)?;
        let sourced = Sourced::of(insert, &scope);
        let mut on_duplicate = &insert.on_duplicate;
        let rows = match &insert.source {
            ast::InsertSource::Values(rows) if rows.iter().flatten().any(calls_back) => {
                let (source, named) = values_query(rows, &columns)?;
                columns = named;
                Rows::Query(Box::new(query(&source, None)?))
            }
            ast::InsertSource::Values(rows) => Rows::Values(bind_rows(&binder, rows, &columns, insert)?),
            ast::InsertSource::Query(source) => {
                // If the SELECT does not know the name either, the error names the ON DUPLICATE KEY UPDATE
                // clause.
                let extended = sourced.as_ref().map(|sourced| (sourced, query(&sourced.query, None)));
                let plan = match extended {
                    Some((sourced, Ok(plan))) => {
                        on_duplicate = &sourced.assignments;
                        let width = 2 * scope.width();
                        update_scope.push(sourced.table(&plan.types, width));
                        plan
                    }
                    Some((_, Err(error))) if error.code != ErrorCode::BadField => return Err(error),
                    Some((_, Err(_))) | None => query(source, None)?,
                };
                let extra = update_scope.tables.get(1).map_or(0, |table| table.columns.len());
                if plan.types.len() != columns.len() + extra {
                    return Err(wrong_count(1));
                }
                Rows::Query(Box::new(plan))
            }
        };
        // An empty row `()` gives every column its default.
        let named_any = !matches!(&rows, Rows::Values(rows) if rows.iter().all(Vec::is_empty));
        let mut unnamed: Vec<usize> =
            (0..table.columns.len()).filter(|c| !named_any || !columns.contains(c)).collect();
        let on_duplicate = match (insert.replace, insert.on_duplicate.is_empty()) {
            (true, _) => OnDuplicate::Replace,
            (false, true) => OnDuplicate::Refuse,
            (false, false) => OnDuplicate::Update(bind_update(
                ctx,
                &update_scope,
                scope.width(),
                (insert, on_duplicate),
                query,
            )?),
        };
        let updated: Vec<usize> = assignments_of(&on_duplicate).iter().map(|a| a.column).collect();
        let mut steps = RowSteps::of(ctx, session, &table, checks, &updated)?;
        // MariaDB reports those of INSERT .. SELECT before the hooks run.
        if matches!(insert.source, ast::InsertSource::Values(_)) {
            steps.leave_to_hooks(&table, &mut unnamed);
        }
        let statement = if insert.replace { "REPLACE" } else { "INSERT" };
        let returned = Returned { table: &table, scope: returned_scope, statement, items: &insert.returning };
        let returning = Returning::plan(ctx, returned, query)?;
        Ok(InsertPlan {
            table,
            columns,
            defaults,
            unnamed,
            rows,
            is_single_row: matches!(&insert.source, ast::InsertSource::Values(rows) if rows.len() == 1),
            on_duplicate,
            ignore: insert.ignore,
            returning,
            steps,
        })
    }

    /// Plans writing the rows of a query into columns of a newly defined table.
    pub fn filling(
        ctx: &PlanContext<'_>,
        table: Arc<Table>,
        columns: Vec<usize>,
        query: QueryPlan,
        on_duplicate: ast::OnDuplicate,
    ) -> SqlResult<InsertPlan> {
        let steps = RowSteps::of_new_table(ctx, &table)?;
        InsertPlan::of_rows(ctx, (table, steps), columns, Rows::Query(Box::new(query)), on_duplicate)
    }

    fn of_rows(
        ctx: &PlanContext<'_>,
        (table, mut steps): (Arc<Table>, RowSteps),
        columns: Vec<usize>,
        rows: Rows,
        on_duplicate: ast::OnDuplicate,
    ) -> SqlResult<InsertPlan> {
        let scope = Scope::of_table(table.clone(), None);
        let binder = Binder::new(ctx, &scope, Clause::Values);
        let all = 0..table.columns.len();
        let defaults = all.clone().map(|column| Default::of(&binder, &table, column));
        let defaults = defaults.collect::<SqlResult<Vec<_>>>()?;
        let mut unnamed: Vec<usize> = all.filter(|column| !columns.contains(column)).collect();
        steps.leave_to_hooks(&table, &mut unnamed);
        Ok(InsertPlan {
            defaults,
            unnamed,
            columns,
            rows,
            is_single_row: false,
            on_duplicate: match on_duplicate {
                ast::OnDuplicate::Replace => OnDuplicate::Replace,
                ast::OnDuplicate::Error | ast::OnDuplicate::Ignore => OnDuplicate::Refuse,
            },
            ignore: on_duplicate == ast::OnDuplicate::Ignore,
            returning: None,
            steps,
            table,
        })
    }

    /// Plans writing rows that the caller builds, each with values for these columns.
    pub(crate) fn loading(
        ctx: &PlanContext<'_>,
        session: &SessionState,
        table: Arc<Table>,
        columns: Vec<usize>,
        on_duplicate: ast::OnDuplicate,
    ) -> SqlResult<InsertPlan> {
        let steps = RowSteps::of(ctx, session, &table, Vec::new(), &[])?;
        InsertPlan::of_rows(ctx, (table, steps), columns, Rows::Values(Vec::new()), on_duplicate)
    }

    /// Returns the columns whose values come from the statement, or from the time and place of its execution.
    pub(crate) fn written(&self) -> impl Iterator<Item = usize> {
        let updated = assignments_of(&self.on_duplicate);
        let is_update = matches!(self.on_duplicate, OnDuplicate::Update(_));
        let touched =
            move |c: &usize| is_update && self.table.columns[*c].on_update == OnUpdate::CurrentTimestamp;
        let touched = (0..self.table.columns.len()).filter(touched);
        let named = self.columns.iter().copied();
        named
            .chain(updated.iter().map(|assignment| assignment.column))
            .chain(computed_columns(&self.table))
            .chain(touched)
    }

    /// Returns whether this is a REPLACE.
    pub fn replaces(&self) -> bool {
        matches!(self.on_duplicate, OnDuplicate::Replace)
    }

    /// Returns whether the rows come from a SELECT.
    pub fn selects(&self) -> bool {
        matches!(self.rows, Rows::Query(_))
    }

    /// Returns whether there is an ON DUPLICATE KEY UPDATE clause.
    pub fn updates(&self) -> bool {
        matches!(self.on_duplicate, OnDuplicate::Update(_))
    }

    /// Returns the table that is written. The statement must take its metadata lock.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Returns the subqueries of ON DUPLICATE KEY UPDATE and RETURNING. The statement must lock their tables,
    /// too.
    pub fn asked(&self) -> impl Iterator<Item = &QueryPlan> {
        let assignments = assignments_of(&self.on_duplicate);
        let returned = self.returning.as_ref().and_then(Returning::asked);
        assignments.iter().filter_map(RowAssignment::query).chain(returned)
    }

    /// Returns the SELECT. The statement must lock its tables, too.
    pub fn query(&self) -> Option<&QueryPlan> {
        match &self.rows {
            Rows::Query(plan) => Some(plan),
            Rows::Values(_) => None,
        }
    }
}

/// Returns the assignments of ON DUPLICATE KEY UPDATE.
fn assignments_of(on_duplicate: &OnDuplicate) -> &[RowAssignment] {
    match on_duplicate {
        OnDuplicate::Update(assignments) => assignments,
        OnDuplicate::Refuse | OnDuplicate::Replace => &[],
    }
}

/// Returns the required privileges on the table as a whole.
fn wanted(insert: &ast::Insert) -> Privileges {
    let wanted = Privileges::from(Privilege::Insert);
    match (insert.replace, insert.on_duplicate.is_empty()) {
        (true, _) => wanted.with(Privilege::Delete),
        (false, true) => wanted,
        (false, false) => wanted.with(Privilege::Update),
    }
}

/// Returns error 1143 for columns that the statement names, 1142 for those that it fills without naming them.
fn use_inserted(
    ctx: &PlanContext<'_>,
    scope: &Scope,
    insert: &ast::Insert,
    columns: &[usize],
) -> SqlResult<()> {
    let is_all_defaults =
        matches!(&insert.source, ast::InsertSource::Values(rows) if rows.iter().all(Vec::is_empty));
    match insert.columns.is_empty() {
        true if is_all_defaults => Ok(()),
        true => columns.iter().try_for_each(|column| ctx.use_unnamed(scope, *column, Privilege::Insert)),
        false => columns.iter().try_for_each(|column| ctx.use_column(scope, *column, Privilege::Insert)),
    }
}

fn columns(binder: &Binder<'_>, table: &Table, names: &[String]) -> SqlResult<Vec<usize>> {
    if names.is_empty() {
        return Ok((0..table.columns.len()).filter(|&c| !table.columns[c].invisible).collect());
    }
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let name = ast::ColumnRef { db: None, table: None, name: name.clone() };
        let column = binder.ctx.column(binder.scope, &name, Clause::InsertInto, Privilege::Insert)?;
        if columns.contains(&column) {
            return Err(SqlError::column_specified_twice(&name.name));
        }
        columns.push(column);
    }
    Ok(columns)
}

fn bind_rows(
    binder: &Binder<'_>,
    rows: &[Vec<ast::Expr>],
    columns: &[usize],
    insert: &ast::Insert,
) -> SqlResult<Vec<Vec<Cell>>> {
    let all_empty_allowed = insert.columns.is_empty();
    let mut bound = Vec::with_capacity(rows.len());
    for (n, row) in rows.iter().enumerate() {
        let fits = row.len() == columns.len() || (row.is_empty() && all_empty_allowed);
        // Empty and non-empty rows cannot be mixed.
        let alike = row.is_empty() == rows[0].is_empty();
        if !fits || !alike {
            return Err(wrong_count(n + 1));
        }
        let cells = row.iter().zip(columns);
        let cells = cells.map(|(value, column)| bind_new_value(binder, *column, value).map(Cell::from));
        let cells = cells.collect::<SqlResult<Vec<_>>>();
        bound.push(cells.map_err(|error| error.at_row(n as u64 + 1))?);
    }
    Ok(bound)
}

/// Creates a binder for ON DUPLICATE KEY UPDATE.
fn update_binder<'b>(ctx: &'b PlanContext<'b>, scope: &'b Scope, width: usize) -> Binder<'b> {
    Binder { values_offset: Some(width), ..Binder::new(ctx, scope, Clause::Update) }
}

/// Returns error 1052 for a column in ON DUPLICATE KEY UPDATE that exists in both the target table and the
/// SELECT's tables.
fn refuse_ambiguous(ctx: &PlanContext<'_>, insert: &ast::Insert, own: &Scope) -> SqlResult<()> {
    let ast::InsertSource::Query(query) = &insert.source else { return Ok(()) };
    if insert.on_duplicate.is_empty() {
        return Ok(());
    }
    // Errors in its FROM clause are reported when the SELECT is planned.
    let Ok(tables) = scope_of_rows(ctx, query) else { return Ok(()) };
    let is_found =
        |scope: &Scope, name: &ast::ColumnRef| !matches!(scope.find(name, Clause::Update), Ok(None));
    for assignment in &insert.on_duplicate {
        let twice = std::cell::RefCell::new(None);
        assignment.value.has_part(|part| match part {
            ast::Expr::Column(name) if is_found(own, name) && is_found(&tables, name) => {
                twice.replace(Some(name.clone()));
                true
            }
            _ => false,
        });
        if let Some(name) = twice.into_inner() {
            return Err(ambiguous(&name, Clause::Update));
        }
    }
    Ok(())
}

fn bind_update(
    ctx: &PlanContext<'_>,
    scope: &Scope,
    width: usize,
    (insert, assignments): (&ast::Insert, &[ast::Assignment]),
    query: &mut PlanQuery<'_>,
) -> SqlResult<Vec<RowAssignment>> {
    let bind = |scope: &Scope, assignment: &ast::Assignment| {
        let (column, value) = bind_assignment(&update_binder(ctx, scope, width), assignment)?;
        // As in MariaDB, an assigned column counts as read.
        ctx.use_column(scope, column, Privilege::Select)?;
        Ok((column, value.into()))
    };
    let binder = update_binder(ctx, scope, width);
    // The new row follows the existing row.
    let first = scope.tables.get(1).map_or(2 * width, |_| scope.width());
    let selects = matches!(insert.source, ast::InsertSource::Query(_));
    let mut query = |asked: &ast::Query, row: Option<&Binder<'_>>| {
        query(asked, row).map_err(|error| match error.code {
            ErrorCode::BadField if selects => SqlError::not_supported(
                "subqueries of ON DUPLICATE KEY UPDATE that read tables of the SELECT",
            ),
            _ => error,
        })
    };
    let bound = |assignment| RowAssignment::of(&binder, assignment, first, &mut query, &bind);
    assignments.iter().map(bound).collect()
}

/// The name of the virtual table of the SELECT's columns. No statement can contain it.
const SOURCE: &str = "\0source";

/// An INSERT ... SELECT whose ON DUPLICATE KEY UPDATE reads columns of the SELECT's tables: the SELECT with
/// these columns appended, and the assignments with names for them.
struct Sourced {
    query: ast::Query,
    assignments: Vec<ast::Assignment>,
    count: usize,
}

impl Sourced {
    /// Returns `None` if the clause reads no such columns, or if a row of the SELECT is not a row of its
    /// tables.
    fn of(insert: &ast::Insert, scope: &Scope) -> Option<Sourced> {
        let ast::InsertSource::Query(query) = &insert.source else { return None };
        let ast::QueryBody::Select(select) = &query.body else { return None };
        let is_plain = |item: &ast::SelectItem| match item {
            ast::SelectItem::Expr { expr, .. } => {
                let is_computed =
                    |part: &ast::Expr| matches!(part, ast::Expr::Aggregate(_) | ast::Expr::Window(_));
                !calls_back(expr) && !expr.has_part(is_computed)
            }
            ast::SelectItem::Wildcard | ast::SelectItem::TableWildcard(_) => true,
        };
        let is_grouped = !select.group_by.is_empty() || select.having.is_some() || select.options.distinct;
        if insert.on_duplicate.is_empty() || is_grouped || !select.items.iter().all(is_plain) {
            return None;
        }
        let mut assignments = insert.on_duplicate.clone();
        let mut read: Vec<ast::ColumnRef> = Vec::new();
        for assignment in &mut assignments {
            assignment.value.each_column(&mut |name| {
                if scope.column(name, Clause::Update).is_ok() {
                    return;
                }
                let n = read.iter().position(|known| known == name).unwrap_or(read.len());
                if n == read.len() {
                    read.push(name.clone());
                }
                *name = ast::ColumnRef { db: None, table: Some(SOURCE.to_owned()), name: n.to_string() };
            });
        }
        let count = read.len();
        let mut query = (**query).clone();
        if let ast::QueryBody::Select(select) = &mut query.body {
            select.items.extend(read.into_iter().map(|name| ast::SelectItem::Expr {
                text: name.name.clone(),
                expr: ast::Expr::Column(name),
                alias: None,
            }));
        }
        (count > 0).then_some(Sourced { query, assignments, count })
    }

    /// Returns a virtual table of the columns that the SELECT provides for the assignments: the last ones of
    /// `types`.
    fn table(&self, types: &[ExprType], first_slot: usize) -> ScopeTable {
        let first = types.len().saturating_sub(self.count);
        table_of(SOURCE, &types[first..], first_slot)
    }
}

/// Converts VALUES rows with subqueries to a query, and returns the columns that it fills. A column whose
/// value is DEFAULT in all rows is treated as not named by the statement.
fn values_query(rows: &[Vec<ast::Expr>], columns: &[usize]) -> SqlResult<(ast::Query, Vec<usize>)> {
    if let Some(n) = rows.iter().position(|row| row.len() != columns.len()) {
        return Err(wrong_count(n + 1));
    }
    let is_default = |row: &Vec<ast::Expr>, n: usize| matches!(row[n], ast::Expr::Default(None));
    let kept: Vec<usize> =
        (0..columns.len()).filter(|n| !rows.iter().all(|row| is_default(row, *n))).collect();
    let rows = rows.iter().map(|row| kept.iter().map(|n| row[*n].clone()).collect()).collect();
    let query = ast::Query::of(ast::QueryBody::Values(rows));
    Ok((query, kept.into_iter().map(|n| columns[n]).collect()))
}

/// Returns error 1136.
fn wrong_count(row: usize) -> SqlError {
    SqlError::value_count(row as u64).at_row(row as u64)
}
