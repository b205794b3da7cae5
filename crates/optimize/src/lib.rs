//! The optimizer: converts bound queries to executable plans.
//!
//! | module | concept |
//! |---|---|
//! | `physical` | [`Plan`]: a tree of operators |
//! | `lower` | converts query blocks to operators |
//! | `merge` | merges derived tables into the outer query |
//! | `push` | pushes conditions down into derived tables |
//! | `unnest` | converts grouped IN subqueries to tables of FROM |
//! | `semi` | converts subqueries in conditions to semi-joins and anti-joins |
//! | `join` | join order and join methods |
//! | `join_trace` | steps of the trace about joins |
//! | `access` | index choice for a table |
//! | `sargable` | conditions that an index can evaluate |
//! | `answered` | residual conditions after an index access |
//! | `disjunction` | common parts of OR alternatives |
//! | `estimate` | cost model and cardinality estimates |
//! | `sound` | invariants of plans |
//! | `trace` | the decisions as text, for OPTIMIZER_TRACE |
//! | `json_text` | strings and numbers of JSON in plans and traces |
//! | `visit` | walks over query blocks |

mod access;
mod answered;
mod disjunction;
mod equal;
mod estimate;
mod group;
mod join;
mod join_trace;
pub mod json_text;
mod lateral;
mod lower;
mod merge;
mod physical;
mod push;
mod sargable;
mod semi;
mod sound;
mod trace;
mod unnest;
mod unordered;
mod visit;

pub use access::{Candidates, LOCKED_ENTRIES_MIN, RowCosts, WantedOrder};
pub use answered::unanswered;
pub use cohort_plan::{Frame, FrameBound, FrameUnit, WindowCall, WindowFunction};
pub use cohort_sql::ast::SetOperator;
pub use cohort_types::Columns;
pub use estimate::Statistics;
pub use lower::{optimize, read_mode};
pub use merge::merge;
pub use physical::{
    Access, AggregateNode, ChainInput, Choice, CommonPlan, Extension, HashKey, Join, JoinKind, JoinMethod,
    JsonScan, LikeStart, LimitCount, LimitNode, Node, PartId, Parts, Plan, ReadMode, RecursiveStep, Scan,
    SetChain, SetOperation, Sort, Span, Spans, SubqueryPlan, VirtualScan, WindowNode,
};
pub use push::push_conditions;
pub use sargable::{Condition, Sarg, conditions};
pub use trace::{OptimizerTrace, TraceScope};
pub use unnest::unnest;
