//! Names of the AST -> columns by number, types and functions.
//!
//! Every column of a statement has a number of its own: table n of a [`Scope`] has the numbers from
//! `tables[n].first_slot` on, one per column in the order of the table; results of queries and aggregates
//! have theirs.
//!
//! Literals and parameters: a literal with an ordinal is a parameter of the cached plan where the plan does
//! not depend on its value ([`Binder::condition`], [`Binder::value`]); everywhere else it is a constant and
//! its value is *pinned*: the plan serves only statements with the same value in that place.

mod aggregate;
pub mod convert;
mod expr;
mod full_text;
mod scope;
mod subquery;
mod window;

pub use expr::{
    AliasOrder, Aliases, Binder, Clause, item_position, not_supported, one_column, param_position,
    refuse_negative, with_zero_dates,
};
pub use scope::{
    MergedColumn, ParamSource, PlanContext, Reading, Relation, Scope, ScopeColumn, ScopeTable, ambiguous,
    is_of_changed_row, same_name, unknown_column,
};
pub use window::Windows;
