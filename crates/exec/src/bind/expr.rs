//! Expressions of the AST to bound trees.

use cohort_expr::Expr;
use cohort_sql::ast;
use cohort_types::SqlResult;

use crate::bind::{PlanContext, Scope};

/// The part of a statement, as error texts name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    FieldList,
    Where,
    On,
    GroupBy,
    Having,
    OrderBy,
}

impl Clause {
    /// `where clause`.
    pub fn text(self) -> &'static str {
        match self {
            Clause::FieldList => "SELECT",
            Clause::Where => "WHERE",
            Clause::On => "ON",
            Clause::GroupBy => "GROUP BY",
            Clause::Having => "HAVING",
            Clause::OrderBy => "ORDER BY",
        }
    }
}

/// Binds expressions over one scope.
pub struct Binder<'b> {
    pub ctx: &'b PlanContext<'b>,
    pub scope: &'b Scope,
    pub clause: Clause,
}

impl<'b> Binder<'b> {
    /// A binder for one clause.
    pub fn new(ctx: &'b PlanContext<'b>, scope: &'b Scope, clause: Clause) -> Binder<'b> {
        Binder { ctx, scope, clause }
    }

    /// A condition: literals compared with something become parameters.
    pub fn condition(&self, expr: &ast::Expr) -> SqlResult<Expr> {
        let _ = expr;
        todo!()
    }

    /// A value to be stored: a literal becomes a parameter.
    pub fn value(&self, expr: &ast::Expr) -> SqlResult<Expr> {
        let _ = expr;
        todo!()
    }

    /// Any other expression: literals are pinned.
    pub fn expression(&self, expr: &ast::Expr) -> SqlResult<Expr> {
        let _ = expr;
        todo!()
    }
}
