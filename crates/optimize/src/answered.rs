//! Conditions that the access itself answers, so that no row needs to be asked.
//!
//! Only what can be proved is taken out: one span, integer columns compared as integers. Whether the values
//! that come at execution are integers is known then (`resolve_exactly`); otherwise
//! the whole condition is asked as ever.

use std::ops::Bound;

use cohort_catalog::Table;
use cohort_expr::{CompareHow, CompareOp, Expr, TypeClass};
use cohort_plan::{FromTable, Source};

use crate::physical::{Access, Span, Spans};
use crate::sargable::{Condition, Sarg, conditions};

/// Of a query of one table, whose slots are its columns: the conjuncts that are left to ask when the spans of
/// `access` are exact; none if all are answered.
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

/// Whether the span by which a join looks rows up answers one of its equalities: of two integer columns.
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

/// Whether the column is an integer, and nothing makes integers compare as something else.
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

/// Whether the span holds the condition on this part of the index.
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
