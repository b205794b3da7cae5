//! Binding: resolves the names of the AST to numbered columns, types and functions.
//!
//! Every column of a statement has its own number. The columns of table n of a [`Scope`] are numbered from
//! `tables[n].first_slot` on, in table order. Query results and aggregates have their own numbers.
//!
//! Literals and parameters: a literal with an ordinal becomes a parameter of the cached plan if the plan does
//! not depend on its value ([`Binder::condition`], [`Binder::value`]). Everywhere else it is a constant and
//! its value is *pinned*: the plan is reused only by statements with the same value in that place.

mod aggregate;
mod clause;
mod context;
pub mod convert;
mod expr;
mod full_text;
mod named_windows;
mod scope;
mod subquery;
mod window;

pub use clause::{AliasOrder, Aliases, Clause};
pub use context::{ParamSource, PlanContext, Variables};
pub use expr::{Binder, item_position, one_column, param_position, refuse_negative, with_zero_dates};
pub use named_windows::Windows;
pub use scope::{
    MergedColumn, Reading, Relation, Scope, ScopeColumn, ScopeTable, ambiguous, same_name, unknown_column,
};
