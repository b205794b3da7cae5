//! Values with subqueries that are computed for a row outside of a query: in ON DUPLICATE KEY UPDATE,
//! RETURNING, and SET of LOAD DATA.
//!
//! The subqueries of a value become the items of one SELECT without FROM, which is bound within the row's
//! scope. It is run for each row, with access to the row's columns, and its results are appended to the row
//! before the value is computed.

use cohort_catalog::Table;
use cohort_expr::{Expr, ExprType};
use cohort_plan::{Binder, Relation, Scope, ScopeColumn, ScopeTable, is_call_back};
use cohort_query::{QueryPlan, rows_within};
use cohort_session::StatementContext;
use cohort_sql::ast;
use cohort_types::{SqlResult, Value};

/// A function that plans a query, optionally within the scope of a row.
pub type PlanQuery<'q> = dyn FnMut(&ast::Query, Option<&Binder<'_>>) -> SqlResult<QueryPlan> + 'q;

/// A value assigned to a column.
pub(crate) struct RowAssignment {
    pub(crate) column: usize,
    pub(crate) cell: Cell,
    /// The subqueries of the value, and its calls of functions that run statements.
    asked: Option<QueryPlan>,
}

/// Results of subqueries that do not depend on the row, per assignment.
#[derive(Default)]
pub(crate) struct Answers(Vec<Option<Vec<Value>>>);

impl RowAssignment {
    /// Binds an assignment to a column of a row in the scope of `binder`. `bind` binds the assignment after
    /// its subqueries have been replaced by names. The first name refers to the slot `first`.
    pub(crate) fn of(
        binder: &Binder<'_>,
        assignment: &ast::Assignment,
        first: usize,
        query: &mut PlanQuery<'_>,
        bind: &dyn Fn(&Scope, &ast::Assignment) -> SqlResult<(usize, Cell)>,
    ) -> SqlResult<RowAssignment> {
        let mut assignment = assignment.clone();
        let mut items = Vec::new();
        named_subqueries(&mut assignment.value, &mut items);
        if items.is_empty() {
            let (column, cell) = bind(binder.scope, &assignment)?;
            return Ok(RowAssignment { column, cell, asked: None });
        }
        let select = ast::Select::of(items);
        let plan = query(&ast::Query::of(ast::QueryBody::Select(Box::new(select))), Some(binder))?;
        let mut scope = binder.scope.clone();
        scope.push(table_of(ASKED, &plan.types, first));
        let (column, cell) = bind(&scope, &assignment)?;
        Ok(RowAssignment { column, cell, asked: Some(plan) })
    }

    /// Returns the plan of the subqueries, whose tables the statement must lock.
    pub(crate) fn query(&self) -> Option<&QueryPlan> {
        self.asked.as_ref()
    }

    /// Returns whether the subqueries read a table.
    pub(crate) fn reads(&self, table: &Table) -> bool {
        self.query().is_some_and(|query| query.tables().iter().any(|(read, _)| read.id == table.id))
    }

    /// Appends the results of the subqueries to the row. `n` is the number of the assignment within the
    /// statement.
    pub(crate) fn ask(
        &self,
        ctx: &mut StatementContext<'_>,
        n: usize,
        answers: &mut Answers,
        row: &mut Vec<Value>,
    ) -> SqlResult<()> {
        let Some(asked) = &self.asked else { return Ok(()) };
        if !asked.is_fixed() {
            row.extend(rows_within(asked, row, ctx)?.into_iter().next().unwrap_or_default());
            return Ok(());
        }
        if answers.0.len() <= n {
            answers.0.resize(n + 1, None);
        }
        if answers.0[n].is_none() {
            answers.0[n] = rows_within(asked, &[], ctx)?.into_iter().next();
        }
        row.extend(answers.0[n].iter().flatten().cloned());
        Ok(())
    }
}

/// The name of the virtual table of subquery results. No statement can contain it.
pub(crate) const ASKED: &str = "\0asked";

/// Replaces the parts of a value that call back by names, and appends them to the items of a SELECT.
pub(crate) fn named_subqueries(value: &mut ast::Expr, items: &mut Vec<ast::SelectItem>) {
    value.each_part(&mut |part| {
        if is_call_back(part) {
            let text = items.len().to_string();
            let name = ast::ColumnRef { db: None, table: Some(ASKED.to_owned()), name: text.clone() };
            let expr = std::mem::replace(part, ast::Expr::Column(name));
            items.push(ast::SelectItem::Expr { text, expr, alias: None });
        }
    });
}

/// Creates a virtual table whose columns are named by numbers.
pub(crate) fn table_of(name: &str, types: &[ExprType], first_slot: usize) -> ScopeTable {
    let column = |(n, ty): (usize, &ExprType)| ScopeColumn {
        name: n.to_string().into(),
        ty: ty.clone(),
        full_name: n.to_string().into(),
        hidden: false,
        invisible: true,
    };
    ScopeTable {
        relation: Relation::Derived,
        schema: None,
        name: name.into(),
        columns: types.iter().enumerate().map(column).collect(),
        first_slot,
        view: None,
        merged: None,
    }
}

/// A value of a row.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Expr(Expr),
    /// DEFAULT.
    Default,
}

impl From<Option<Expr>> for Cell {
    fn from(value: Option<Expr>) -> Cell {
        value.map_or(Cell::Default, Cell::Expr)
    }
}
