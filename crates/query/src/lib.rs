//! Queries of a session: plans bound blocks, locks their tables, and runs the plans in the session's
//! transaction.
//!
//! | module | concept |
//! |---|---|
//! | `plan/` | plans shared by sessions: direct plans and operator trees |
//! | `select/` | execution of plans |
//! | `guards` | settings that reject statements |

pub mod guards;
mod plan;
mod select;

pub use plan::{DirectPlan, PlanBody, PlanShape, QueryPlan, plan_query, plan_query_within};
pub use select::{
    Collect, Flow, Freshness, RowCounts, RowSink, count_sort, lock_for_write, lock_names, lock_sequences,
    lock_tables, lock_views, rows, rows_within, run_query,
};
