//! Access path choice, join order, and plans that sessions share.
//!
//! | module | concept |
//! |---|---|
//! | `query` | [`QueryPlan`]: what planning yields |
//! | `select` | queries of the AST to plans: select items, GROUP BY, HAVING, ORDER BY |
//! | `from` | FROM to a scope and a list of joined tables |
//! | `with` | common table expressions |
//! | `join` | join order, which table is streamed and which is kept |
//! | `access` | which index, which part of it |
//! | `sargable` | conditions that an index can answer |
//! | `target` | [`TargetPlan`]: the rows that UPDATE and DELETE change |
//! | `meta` | result metadata |

mod access;
mod answered;
mod conjuncts;
mod from;
mod join;
pub(crate) mod meta;
mod query;
mod sargable;
mod select;
mod target;
mod with;

use cohort_sql::ast;
use cohort_types::SqlResult;

use crate::bind::PlanContext;

pub use query::{
    GroupPlan, HashKey, LimitPlan, Method, PlanBody, QueryPlan, SelectPlan, SetPlan, SortItem, SortValue,
    Source, Step,
};
pub(crate) use select::to_common_class;
pub use target::{TargetPlan, plan_target};

/// Binds and plans a query.
pub fn plan_query(ctx: &PlanContext<'_>, query: &ast::Query) -> SqlResult<QueryPlan> {
    select::plan_query(ctx, &Default::default(), query)
}
