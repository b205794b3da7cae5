//! INSERT, REPLACE and DELETE .. RETURNING: a result set of the rows that were written or deleted.
//!
//! The rows are buffered until the statement ends, so that a statement that fails returns only an error.
//!
//! The subqueries of the items form one SELECT, which is run within the scope of each row ([`crate::asked`]).

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_expr::Expr;
use cohort_protocol::ColumnMeta;
use cohort_query::{QueryPlan, rows_within};
use cohort_session::StatementContext;
use cohort_sql::ast;
use cohort_types::{Privilege, SqlError, SqlResult, Value};

use cohort_plan::meta::column_meta;
use cohort_plan::{Binder, Clause, PlanContext, Scope};

use crate::asked::{ASKED, PlanQuery, named_subqueries, table_of};

/// A RETURNING clause.
pub struct Returning {
    items: Vec<Expr>,
    /// The subqueries of the items. Their results are appended to the row.
    asked: Option<QueryPlan>,
    pub columns: Vec<ColumnMeta>,
}

/// Results of RETURNING's subqueries, if they do not depend on the row.
#[derive(Default)]
pub(crate) struct FixedAnswers(Option<Vec<Value>>);

/// The statement that RETURNING belongs to.
pub(crate) struct Returned<'r> {
    pub table: &'r Arc<Table>,
    /// The names that the items may use: the table's columns, possibly under the names of a view.
    pub scope: Scope,
    /// The statement's name, such as `INSERT`.
    pub statement: &'static str,
    pub items: &'r [ast::SelectItem],
}

/// Returns the names that RETURNING may use for a view that shows these columns of its table.
pub(crate) fn scope_of_view(scope: &Scope, shown: &[usize]) -> Scope {
    let mut scope = scope.clone();
    scope.star = shown.to_vec();
    let columns = scope.tables[0].columns.iter_mut();
    columns.enumerate().for_each(|(n, column)| column.invisible |= !shown.contains(&n));
    scope
}

impl Returning {
    /// Binds the items. Returns `None` without a clause. Error 1093 if a subquery reads the target table.
    pub(crate) fn plan(
        ctx: &PlanContext<'_>,
        of: Returned<'_>,
        query: &mut PlanQuery<'_>,
    ) -> SqlResult<Option<Returning>> {
        if of.items.is_empty() {
            return Ok(None);
        }
        let mut items = of.items.to_vec();
        let mut subqueries = Vec::new();
        for item in &mut items {
            if let ast::SelectItem::Expr { expr, .. } = item {
                named_subqueries(expr, &mut subqueries);
            }
        }
        let shown = of.scope;
        let mut scope = shown.clone();
        let asked = match subqueries.is_empty() {
            true => None,
            false => {
                let select = ast::QueryBody::Select(Box::new(ast::Select::of(subqueries)));
                let binder = Binder::new(ctx, &shown, Clause::Returning);
                let plan = query(&ast::Query::of(select), Some(&binder))?;
                let reads_it = plan.tables().iter().any(|(read, _)| read.id == of.table.id);
                if reads_it && of.statement != "DELETE" {
                    return Err(SqlError::target_is_source(&of.table.name.table, of.statement));
                }
                scope.push(table_of(ASKED, &plan.types, of.table.columns.len()));
                Some(plan)
            }
        };
        let binder = Binder::new(ctx, &scope, Clause::Returning);
        let mut bound: Vec<(String, Expr)> = Vec::new();
        for (item, written) in items.iter().zip(of.items) {
            let slots = match item {
                ast::SelectItem::Wildcard => shown.star.clone(),
                ast::SelectItem::TableWildcard(name) => {
                    shown.table_star_slots(name, ctx.names.current_schema())?
                }
                ast::SelectItem::Expr { expr, alias, text } => {
                    let name = match (alias, written) {
                        (Some(alias), _) => alias.clone(),
                        (None, ast::SelectItem::Expr { expr: ast::Expr::Column(column), .. }) => {
                            column.name.clone()
                        }
                        (None, _) => text.clone(),
                    };
                    bound.push((name, binder.expression(expr)?));
                    continue;
                }
            };
            for slot in slots {
                ctx.use_unnamed(&shown, slot, Privilege::Select)?;
                bound.push((shown.slot(slot).name.to_string(), shown.column_expr(slot)));
            }
        }
        let columns = bound.iter().map(|(name, expr)| column_meta(name, expr, &shown)).collect();
        Ok(Some(Returning { items: bound.into_iter().map(|(_, expr)| expr).collect(), asked, columns }))
    }

    /// Returns the subqueries, whose tables the statement must lock.
    pub fn asked(&self) -> Option<&QueryPlan> {
        self.asked.as_ref()
    }

    /// Computes the items for a row. `fixed` caches results of subqueries that do not depend on the row.
    pub(crate) fn row(
        &self,
        row: &[Value],
        fixed: &mut FixedAnswers,
        ctx: &mut StatementContext<'_>,
    ) -> SqlResult<Vec<Value>> {
        let Some(asked) = &self.asked else { return self.items_of(row, ctx) };
        let known = fixed.0.take();
        let answers = match known {
            Some(answers) => answers,
            None => rows_within(asked, row, ctx)?.into_iter().next().unwrap_or_default(),
        };
        let items = self.items_of(&[row, &answers].concat(), ctx);
        fixed.0 = asked.is_fixed().then_some(answers);
        items
    }

    fn items_of(&self, row: &[Value], ctx: &StatementContext<'_>) -> SqlResult<Vec<Value>> {
        self.items.iter().map(|item| Ok(item.eval_output(row, &ctx.eval)?.into_owned())).collect()
    }
}
