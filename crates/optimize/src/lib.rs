//! From bound queries to plans that operators run.
//!
//! | module | concept |
//! |---|---|
//! | `physical` | [`Plan`]: operators with their inputs |
//! | `lower` | query blocks to operators |
//! | `merge` | derived tables that become a part of the query around |
//! | `push` | conditions that go down into derived tables |
//! | `unnest` | grouped subqueries of IN as tables of FROM |
//! | `semi` | subqueries of conditions as semi- and anti-joins |
//! | `join` | join order, and how each table is found |
//! | `access` | which index of a table, which part of it |
//! | `sargable` | conditions that an index can answer |
//! | `answered` | conditions that an index has answered |
//! | `disjunction` | what alternatives have in common |
//! | `estimate` | what the choices cost; how many rows come |
//! | `visit` | walks over blocks |

mod access;
mod answered;
mod disjunction;
mod equal;
mod estimate;
mod group;
mod join;
mod lateral;
mod lower;
mod merge;
mod physical;
mod push;
mod sargable;
mod semi;
mod unnest;
mod unordered;
mod visit;

pub use access::{Candidates, Choice, LOCKED_ENTRIES_MIN, RowCosts, WantedOrder};
pub use answered::unanswered;
pub use cohort_plan::{Frame, FrameBound, FrameUnit, WindowCall, WindowFunction};
pub use cohort_sql::ast::SetOperator;
pub use cohort_types::Columns;
pub use estimate::Statistics;
pub use lower::{optimize, read_mode};
pub use merge::merge;
pub use physical::{
    Access, AggregateNode, ChainInput, CommonPlan, Extension, HashKey, Join, JoinKind, JoinMethod, JsonScan,
    LikeStart, LimitCount, LimitNode, Node, Plan, ReadMode, RecursiveStep, Scan, SetChain, SetOperation,
    Sort, Span, Spans, SubqueryPlan, VirtualScan, WindowNode,
};
pub use push::push_conditions;
pub use sargable::{Condition, Sarg, conditions};
pub use unnest::unnest;
