//! The binder: resolves the names of a statement and produces query blocks.
//!
//! | module | concept |
//! |---|---|
//! | `names` | [`Names`]: the interface of session, catalog and privileges |
//! | `bind/` | [`Binder`]: binds expressions of the AST; [`Scope`]: the tables that names may refer to |
//! | `block` | [`Query`], [`Select`]: a query as blocks |
//! | `call_back` | parts of statements that call back into the session |
//! | `change` | UPDATE and DELETE over joins |
//! | `query` | set operations, VALUES, the clauses around a SELECT |
//! | `table_names` | [`TableNames`]: session settings for the expressions of a table |
//! | `select` | one SELECT |
//! | `full_group` | checks of ONLY_FULL_GROUP_BY |
//! | `from` | FROM and its joins |
//! | `with`, `common_tables` | common table expressions: binding; the names that FROM may use |
//! | `view` | the queries of views |
//! | `view_names` | the names used in the query of a view |
//! | `updatable` | mergeable and updatable queries |
//! | `written` | changes of rows through views |
//! | `meaning` | [`Meanings`]: full names, for the stored text of a view |
//! | `window` | bound window functions |
//! | `walk` | walks over the expressions of a block |
//! | `meta` | result metadata |
//! | `charset`, `declared_type` | declared collations and types |
//! | `conjuncts` | lists of conjuncts |
//! | `sound` | post-conditions of binding and of rewrites |

mod bind;
mod block;
mod call_back;
mod change;
pub mod charset;
mod common_tables;
pub mod conjuncts;
mod declared_type;
mod from;
mod full_group;
mod json_table;
mod meaning;
pub mod meta;
mod names;
mod query;
mod select;
mod sound;
mod table_names;
mod updatable;
mod view;
mod view_names;
mod walk;
mod window;
mod with;
mod written;

pub use bind::{
    AliasOrder, Aliases, Binder, Clause, ParamSource, PlanContext, Reading, Relation, Scope, ScopeColumn,
    ScopeTable, Variables, ambiguous, convert, one_column, same_name, unknown_column, with_zero_dates,
};
pub use block::{
    Assigned, AssignedTo, Body, Collected, CommonTable, From, FromJoin, FromTable, Group, Limit, Operand,
    Order, OrderBy, Query, Select, SetOperation, Source, Step, is_of_changed_row,
};
pub use call_back::{calls_back, check_alone, is_call_back};
pub use change::{
    ChangeAssignment, ChangeClauses, ChangeTarget, JoinedChange, bind_assignment, bind_joined_delete,
    bind_joined_update, bind_new_value,
};
pub use common_tables::CommonTables;
pub use declared_type::column_type;
pub use from::{allowed_indexes, scope_of_rows};
pub use meaning::Meanings;
pub use names::{CalledFunction, Names, Parameter, VirtualColumn, VirtualDefinition};
pub use query::{bind_plain_limit, bind_query};
pub use sound::check_statement;
pub use table_names::TableNames;
pub use updatable::{Items, can_merge, is_mergeable, origin, with_items};
pub use view::{bind_view, hidden_by_view, invalid_view, view_query};
pub use view_names::{UsedNames, named_tables};
pub use walk::{each_expr, each_expr_mut};
pub use window::{Frame, FrameBound, FrameUnit, WindowCall, WindowFunction, WindowUse};
pub use written::{InsertView, RowCheck, bind_insert_view};
