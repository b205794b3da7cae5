//! Comparison of values by MariaDB's pairing rules, sort keys and grouping keys.

use std::cmp::Ordering;

use cohort_types::{Collation, SqlResult, Value};

use crate::context::EvalContext;
use crate::expr_type::TypeClass;

/// How two expressions compare, decided when the tree is built. Values of one class compare as such; of two,
/// by the pairing rules; unless a class is forced on both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CompareHow {
    /// Two scalars.
    Scalar {
        /// Order of strings.
        collation: Collation,
        /// Compare as this class whatever the values are.
        class: Option<TypeClass>,
    },
    /// Two rows, element by element.
    Row(Vec<CompareHow>),
}

impl CompareHow {
    /// By the classes of the values, strings by `collation`.
    pub fn scalar(collation: Collation) -> CompareHow {
        CompareHow::Scalar { collation, class: None }
    }
}

/// One key of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    pub collation: Collation,
    pub descending: bool,
}

/// A constant IN list as a set.
#[derive(Debug)]
pub(crate) struct InSet {}

/// Compares two scalars; `None` when one is NULL.
pub fn compare(a: &Value, b: &Value, how: &CompareHow, ctx: &EvalContext<'_>) -> SqlResult<Option<Ordering>> {
    let _ = (a, b, how, ctx);
    todo!()
}

/// Compares two sort keys of the same types, NULL first; element n of both goes with `keys[n]`.
pub fn compare_rows(a: &[Value], b: &[Value], keys: &[SortKey]) -> Ordering {
    let _ = (a, b, keys);
    todo!()
}

/// Appends bytes that are equal for two values of one type exactly when GROUP BY and DISTINCT take them for the
/// same; for hash tables of grouping, DISTINCT and hash joins.
pub fn append_group_key(value: &Value, collation: Collation, out: &mut Vec<u8>) {
    let _ = (value, collation, out);
    todo!()
}
