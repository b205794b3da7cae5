//! Conditions that the access itself answers, so that no row needs to be asked.
//!
//! Only what can be proved is taken out: one span, integer columns compared as integers. Whether the values
//! that come at execution are integers is known then (`resolve_exactly`); otherwise
//! the whole condition is asked as ever.

use std::ops::Bound;

use cohort_catalog::Table;
use cohort_expr::{CompareHow, Expr, TypeClass};

use crate::physical::{Access, Span, Spans};
use crate::sargable::{Sarg, conditions};

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
        Sarg::In(_) => false,
    }
}
