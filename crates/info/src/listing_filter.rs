//! Filters of SHOW: LIKE and WHERE on the rows of a listing.

use super::information_schema;
use cohort_expr::ExprType;
use cohort_plan::{Binder, Clause, PlanContext, Relation, Scope, ScopeColumn, ScopeTable};
use cohort_session::{SessionNames, StatementContext};
use cohort_sql::ast::{Expr, Show, ShowFilter};
use cohort_types::{Collation, SqlResult, Value};
use std::sync::Arc;

use super::listing::{Column, Listing};

impl Listing {
    /// Keeps the rows that a LIKE accepts by the name in column `like`, or that a WHERE accepts. Names are
    /// case-sensitive, except `information_schema`.
    pub(super) fn filter_names(
        &mut self,
        ctx: &StatementContext<'_>,
        filter: Option<&ShowFilter>,
        like: usize,
    ) -> SqlResult<()> {
        let Some(ShowFilter::Like(pattern)) = filter else { return self.filter(ctx, filter, like) };
        self.rows.retain(|row| {
            let name = row[like].as_bytes().unwrap_or_default();
            let collation = match name {
                b"information_schema" => Collation::UTF8MB3_GENERAL_CI,
                _ => Collation::UTF8MB3_BIN,
            };
            collation.like(name, pattern.as_bytes(), Some('\\'))
        });
        Ok(())
    }

    /// Keeps the rows that a LIKE accepts by column `like`, or that a WHERE accepts.
    pub(super) fn filter(
        &mut self,
        ctx: &StatementContext<'_>,
        filter: Option<&ShowFilter>,
        like: usize,
    ) -> SqlResult<()> {
        match filter {
            None => Ok(()),
            Some(ShowFilter::Like(pattern)) => {
                let accepts = |row: &Vec<Value>| {
                    let text = row[like].as_bytes().unwrap_or_default();
                    Collation::UTF8MB3_GENERAL_CI.like(text, pattern.as_bytes(), Some('\\'))
                };
                self.rows.retain(accepts);
                Ok(())
            }
            Some(ShowFilter::Where(expr)) => self.keep_where(ctx, expr),
        }
    }

    fn keep_where(&mut self, ctx: &StatementContext<'_>, expr: &Expr) -> SqlResult<()> {
        let column = |c: &Column| ScopeColumn {
            name: c.name.as_str().into(),
            ty: ExprType::of_column(&c.ty, c.nullable),
            full_name: format!("`{}`", c.name).into(),
            hidden: false,
            invisible: false,
        };
        let table = ScopeTable {
            // Only the columns below matter; any virtual table can stand for their origin.
            relation: Relation::Virtual(information_schema::table("SCHEMATA").clone()),
            schema: Some(Arc::from("information_schema")),
            name: Arc::from("SHOW"),
            columns: self.columns.iter().map(column).collect(),
            first_slot: 0,
            view: None,
            merged: None,
        };
        let mut scope = Scope::default();
        scope.push(table);
        let catalog = ctx.db.catalog();
        let names = SessionNames::new(&catalog, ctx.session);
        let (params, source) = ctx.bound_params();
        let plan = PlanContext::new(&names, params, source);
        let filter = Binder::new(&plan, &scope, Clause::Where).expression(expr)?;
        let mut kept = Vec::with_capacity(self.rows.len());
        for row in std::mem::take(&mut self.rows) {
            if filter.passes(&row, &ctx.eval)? {
                kept.push(row);
            }
        }
        self.rows = kept;
        Ok(())
    }
}

/// Splits a SHOW into one without WHERE and its condition. Returns `None` if it has no WHERE.
pub fn without_where(show: &Show) -> Option<(Show, Expr)> {
    let mut bare = show.clone();
    let filter = match &mut bare {
        Show::Databases { filter }
        | Show::Tables { filter, .. }
        | Show::TableStatus { filter, .. }
        | Show::OpenTables { filter, .. }
        | Show::Columns { filter, .. }
        | Show::Index { filter, .. }
        | Show::Variables { filter, .. }
        | Show::Status { filter, .. }
        | Show::CharacterSet { filter }
        | Show::Collation { filter }
        | Show::Plugins { filter }
        | Show::Triggers { filter, .. }
        | Show::Events { filter, .. }
        | Show::ProcedureStatus { filter }
        | Show::FunctionStatus { filter }
        | Show::PackageStatus { filter }
        | Show::Usage { filter, .. } => filter,
        _ => return None,
    };
    match filter.take() {
        Some(ShowFilter::Where(condition)) => Some((bare, condition)),
        _ => None,
    }
}
