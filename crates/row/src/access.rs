//! [`KeySpans`]: the key ranges that cursors read. They are a planned access ([`cohort_optimize::Access`])
//! with its keys computed.
//!
//! A span may hold more rows than the condition it was made from, because a key that cannot be converted to
//! the column's type widens the span. It never holds fewer. A reader must check the whole condition on every
//! row.

use cohort_engine::KeyRange;

/// An access with its keys computed.
#[derive(Clone, Debug, Default)]
pub struct KeySpans {
    pub index: usize,
    pub reverse: bool,
    /// Disjoint, in reading order.
    pub spans: Vec<KeySpan>,
}

/// A part of an index, in the engine's key order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySpan {
    /// All columns of the clustered or a unique index, encoded and none of them NULL: at most one row.
    Point(Vec<u8>),
    Range(KeyRange),
}
