//! How a table's rows are found: the planner's choice ([`Access`]), and the same with its keys computed
//! ([`KeySpans`]), which cursors follow.
//!
//! A span may hold more rows than the condition it was made from (a key that does not convert to the column's
//! type widens it), never fewer: whoever reads must check the whole condition on every row.

use std::ops::Bound;

use cohort_engine::KeyRange;
use cohort_expr::Expr;

/// The planner's choice for one table.
#[derive(Clone, Debug)]
pub struct Access {
    /// Which index of [`cohort_catalog::Table::indexes`]; 0 is the clustered one.
    pub index: usize,
    pub spans: Spans,
    /// Rows come in descending order of the index.
    pub reverse: bool,
}

/// The part of the index that is read.
#[derive(Clone, Debug)]
pub enum Spans {
    /// All of it.
    Full,
    /// One after the other. They may overlap once their keys are computed; no row comes twice.
    List(Vec<Span>),
}

/// Keys that begin with `eq` and whose next part lies between the bounds. The expressions read parameters,
/// and in a join columns of the tables before.
#[derive(Clone, Debug)]
pub struct Span {
    /// Values of the first key parts; NULL matches nothing.
    pub eq: Vec<Expr>,
    /// Bounds of the key part behind them. NULL matches nothing.
    pub lower: Bound<Expr>,
    pub upper: Bound<Expr>,
}

/// An access with its keys computed.
#[derive(Clone, Debug, Default)]
pub struct KeySpans {
    pub index: usize,
    pub reverse: bool,
    /// Disjoint, in the order in which they are to be read.
    pub spans: Vec<KeySpan>,
}

/// A part of an index, as the engine orders keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySpan {
    /// All columns of the clustered or a unique index: at most one row. The encoded key columns, none of them
    /// NULL.
    Point(Vec<u8>),
    Range(KeyRange),
}
