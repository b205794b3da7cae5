//! How a table's rows are found: the planner's choice ([`cohort_optimize::Access`]) with its keys computed
//! ([`KeySpans`]), which cursors follow.
//!
//! A span may hold more rows than the condition it was made from (a key that does not convert to the column's
//! type widens it), never fewer: a reader must check the whole condition on every row.

use cohort_engine::KeyRange;

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
