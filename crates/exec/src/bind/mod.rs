//! Names of the AST -> row slots, types and functions.
//!
//! A row is a vector of values. While a statement is bound, table n of its [`Scope`] has the slots from
//! `tables[n].first_slot` on, one per column in the order of the table; the SELECT planner then renumbers to
//! the columns that are needed.
//!
//! Literals and parameters: a literal with an ordinal is a parameter of the cached plan where the plan does
//! not depend on its value ([`Binder::condition`], [`Binder::value`]); everywhere else it is a constant and
//! its value is *pinned*: the plan serves only statements with the same value in that place.

pub(crate) mod convert;
mod expr;
mod scope;
mod subquery;

pub use expr::{
    AGGREGATE_SLOT, AliasOrder, Aliases, Binder, Clause, item_position, not_supported, one_column,
};
pub use scope::{
    ParamSource, PlanContext, Relation, Scope, ScopeColumn, ScopeTable, SubqueryRunner, same_name,
    unknown_column,
};
