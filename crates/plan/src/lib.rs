//! Names of a statement bound to what they mean: query blocks.
//!
//! | module | concept |
//! |---|---|
//! | `names` | [`Names`]: what binding asks of session, catalog and privileges |
//! | `bind/` | [`Binder`]: expressions of the AST to bound trees; [`Scope`]: what names may mean |
//! | `block` | [`Query`], [`Select`]: a query as blocks |
//! | `change` | UPDATE and DELETE over joins |
//! | `query` | set operations, VALUES, what stands around a SELECT |
//! | `table_names` | [`TableNames`]: the session's settings for the expressions of a table |
//! | `select` | one SELECT |
//! | `full_group` | what ONLY_FULL_GROUP_BY refuses |
//! | `from` | FROM and its joins |
//! | `with` | common tables |
//! | `view` | the queries of views |
//! | `view_names` | what the query of a view names |
//! | `updatable` | which of them can be merged, and written through |
//! | `written` | changes of rows through views |
//! | `meaning` | [`Meanings`]: full names, for the text of a view |
//! | `window` | window functions, bound |
//! | `walk` | the expressions of a block |
//! | `meta` | result metadata |
//! | `charset`, `declared_type` | collations and types that are declared |
//! | `conjuncts` | conditions that must all hold |

mod bind;
mod block;
mod change;
pub mod charset;
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
    ScopeTable, ambiguous, convert, is_of_changed_row, not_supported, one_column, same_name, unknown_column,
    with_zero_dates,
};
pub use block::{
    Assigned, AssignedTo, Body, Collected, CommonTable, From, FromJoin, FromTable, Group, Limit, Operand,
    Order, OrderBy, Query, Select, SetOperation, Source, Step,
};
pub use change::{
    ChangeAssignment, ChangeClauses, ChangeTarget, JoinedChange, bind_assignment, bind_joined_delete,
    bind_joined_update, bind_new_value,
};
pub use declared_type::column_type;
pub use from::{allowed_indexes, scope_of_rows};
pub use meaning::Meanings;
pub use names::{Names, VirtualColumn, VirtualDefinition};
pub use query::{bind_plain_limit, bind_query};
pub use table_names::TableNames;
pub use updatable::{Items, can_merge, is_mergeable, origin, with_items};
pub use view::{bind_view, invalid_view, view_query};
pub use view_names::{Looks, named_tables};
pub use walk::{each_expr, each_expr_mut};
pub use window::{Frame, FrameBound, FrameUnit, WindowCall, WindowFunction, WindowUse};
pub use with::CommonTables;
pub use written::{InsertView, RowCheck, bind_insert_view};
