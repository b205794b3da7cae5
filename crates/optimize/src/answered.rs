//! Residual conditions: removes conjuncts that the index spans already guarantee.
//!
//! A conjunct is removed only if that can be proved: a single span, and integer columns compared as integers.
//! At execution it is known whether the values are integers, too (`resolve_exactly`); if not, the whole
//! condition is evaluated.

use std::ops::Bound;

use cohort_catalog::Table;
use cohort_expr::{CompareHow, CompareOp, Expr, TypeClass};
use cohort_plan::{FromTable, Source};

use crate::physical::{Access, Span, Spans};
use crate::sargable::{Condition, Sarg, conditions};

/// Returns the conjuncts that must still be evaluated if the spans of `access` are exact. Single-table
/// queries only: column slots equal column ordinals.
pub fn unanswered<'c>(access: &Access, table: &Table, conjuncts: &'c [Expr]) -> Vec<&'c Expr> {
    let Spans::List(spans) = &access.spans else { return conjuncts.iter().collect() };
    let [span] = spans.as_slice() else { return conjuncts.iter().collect() };
    let index = &table.indexes[access.index];
    let part_of = |slot: usize| {
        let part = index.columns.iter().position(|part| part.column == slot)?;
        index.columns[part].prefix.is_none().then_some(part)
    };
    let answers = |conjunct: &Expr| {
        compares_integers(conjunct)
            && conditions(conjunct)
                .iter()
                .any(|c| part_of(c.slot).is_some_and(|part| is_in(span, part, &c.sarg)))
    };
    conjuncts.iter().filter(|c| !answers(c)).collect()
}

/// Returns true if the lookup span of a join guarantees this equality. Both sides must be integer columns.
pub(crate) fn is_answered_by_lookup(access: &Access, table: &FromTable, conjunct: &Expr) -> bool {
    let Source::Base { table: base, .. } = &table.source else { return false };
    let Spans::List(spans) = &access.spans else { return false };
    let [span] = spans.as_slice() else { return false };
    let Expr::Compare(node) = conjunct else { return false };
    let is_integer = |e: &Expr| matches!(e, Expr::Column(c) if c.ty.kind.is_integer());
    let as_they_are = matches!(node.how, CompareHow::Scalar { class: None | Some(TypeClass::Int), .. });
    let index = &base.indexes[access.index];
    let answers = |condition: Condition| {
        let Some(column) = condition.slot.checked_sub(table.first) else { return false };
        let part = index.columns.iter().position(|part| part.column == column && part.prefix.is_none());
        matches!(&condition.sarg, Sarg::Eq(value) if part.is_some_and(|part| span.eq.get(part) == Some(value)))
    };
    as_they_are
        && is_integer(&node.left)
        && is_integer(&node.right)
        && node.op == CompareOp::Eq
        && conditions(conjunct).into_iter().any(answers)
}

/// Returns true if the column is an integer and the comparison is one of integers.
fn compares_integers(conjunct: &Expr) -> bool {
    let (column, other, how) = match conjunct {
        Expr::Compare(c) => (&c.left, &c.right, &c.how),
        Expr::Between(b) => (&b.operand, &b.operand, &b.how),
        _ => return false,
    };
    let as_they_are = matches!(how, CompareHow::Scalar { class: None | Some(TypeClass::Int), .. });
    let is_integer = |e: &Expr| matches!(e, Expr::Column(c) if c.ty.class() == TypeClass::Int);
    as_they_are && (is_integer(column) || is_integer(other))
}

/// Returns true if the span implies the condition on this index part.
fn is_in(span: &Span, part: usize, sarg: &Sarg) -> bool {
    match sarg {
        Sarg::Eq(value) => span.eq.get(part) == Some(value),
        Sarg::Ranges(ranges) => {
            let [(lower, upper)] = ranges.as_slice() else { return false };
            let holds =
                |asked: &Bound<Expr>, has: &Bound<Expr>| matches!(asked, Bound::Unbounded) || asked == has;
            part == span.eq.len() && holds(lower, &span.lower) && holds(upper, &span.upper)
        }
        Sarg::In(_) | Sarg::NullSafe(_) | Sarg::Like(_) | Sarg::Words(..) => false,
    }
}
