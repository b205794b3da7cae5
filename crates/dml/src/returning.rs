//! INSERT, REPLACE and DELETE .. RETURNING: a result set of the rows that were written or removed.
//!
//! The rows are kept until the statement is done, so that one which fails yields an error alone.

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_expr::{EvalContext, Expr};
use cohort_protocol::ColumnMeta;
use cohort_sql::ast;
use cohort_types::{Privilege, SqlResult, Value};

use cohort_plan::meta::column_meta;
use cohort_plan::{Binder, Clause, PlanContext, Scope};

/// What is returned of each row.
pub struct Returning {
    items: Vec<Expr>,
    pub columns: Vec<ColumnMeta>,
}

impl Returning {
    /// Binds the items; None without a clause. They see the columns of the table.
    pub(crate) fn plan(
        ctx: &PlanContext<'_>,
        table: &Arc<Table>,
        alias: Option<&str>,
        items: &[ast::SelectItem],
    ) -> SqlResult<Option<Returning>> {
        if items.is_empty() {
            return Ok(None);
        }
        let scope = Scope::of_table(table.clone(), alias);
        let binder = Binder::new(ctx, &scope, Clause::Returning);
        let mut bound: Vec<(String, Expr)> = Vec::new();
        for item in items {
            let slots = match item {
                ast::SelectItem::Wildcard => scope.star.clone(),
                ast::SelectItem::TableWildcard(name) => {
                    scope.table_star_slots(name, ctx.names.current_schema())?
                }
                ast::SelectItem::Expr { expr, alias, text } => {
                    let name = match (alias, expr) {
                        (Some(alias), _) => alias.clone(),
                        (None, ast::Expr::Column(column)) => column.name.clone(),
                        (None, _) => text.clone(),
                    };
                    bound.push((name, binder.expression(expr)?));
                    continue;
                }
            };
            for slot in slots {
                ctx.use_unnamed(&scope, slot, Privilege::Select)?;
                bound.push((scope.slot(slot).name.to_string(), scope.column_expr(slot)));
            }
        }
        let columns = bound.iter().map(|(name, expr)| column_meta(name, expr, &scope)).collect();
        Ok(Some(Returning { items: bound.into_iter().map(|(_, expr)| expr).collect(), columns }))
    }

    /// What is returned of a row.
    pub(crate) fn row(&self, row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Vec<Value>> {
        self.items.iter().map(|item| Ok(item.eval(row, ctx)?.into_owned())).collect()
    }
}
