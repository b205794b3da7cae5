//! Queries of a session: planned from bound blocks, locked, run over the session's transaction.
//!
//! | module | concept |
//! |---|---|
//! | `plan/` | plans that sessions share: direct ones and trees of operators |
//! | `select/` | runs them |
//! | `guards` | settings that refuse statements |

pub mod guards;
mod plan;
mod select;

pub use plan::{DirectPlan, PlanBody, PlanShape, QueryPlan, plan_query, plan_query_within};
pub use select::{
    Collect, Flow, Freshness, RowCounts, RowSink, count_sort, lock_for_write, lock_names, lock_sequences,
    lock_tables, lock_views, rows, rows_within, run_query,
};
