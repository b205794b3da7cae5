//! From bound queries to plans that operators run.
//!
//! | module | concept |
//! |---|---|
//! | `physical` | [`Plan`]: operators with their inputs |

mod physical;

pub use physical::{
    Access, AggregateNode, Columns, CommonPlan, Frame, FrameBound, FrameUnit, HashKey, Join, JoinKind,
    JoinMethod, LimitCount, LimitNode, Node, Plan, ReadMode, RecursiveStep, Scan, SetOperation, Sort, Span,
    Spans, SubqueryPlan, VirtualScan, WindowCall, WindowFunction, WindowNode,
};
