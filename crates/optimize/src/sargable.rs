//! Sargable conditions: conditions that an index can evaluate.
//!
//! A conjunct of WHERE or ON is *sargable* for a column if the comparison is equivalent to a search in an
//! index on the column: it compares in the column's own class and collation. Values are converted to the
//! column's type at execution. A value that cannot be converted exactly widens the span, so the planner need
//! not know it.

use std::ops::Bound;

use cohort_base::IndexId;
use cohort_expr::{CompareHow, CompareOp, Expr, ExprType, In, Like, TypeClass};
use cohort_types::{TypeKind, Value};

use crate::physical::LikeStart;

/// A restriction of one column.
#[derive(Clone, Debug)]
pub enum Sarg {
    Eq(Expr),
    /// Equality under which NULL equals NULL.
    NullSafe(Expr),
    In(Vec<Expr>),
    /// Alternative ranges.
    Ranges(Vec<(Bound<Expr>, Bound<Expr>)>),
    /// LIKE with a pattern that, as far as known, does not begin with a wildcard.
    Like(LikeStart),
    /// A MATCH on a FULLTEXT index.
    Words(IndexId, Box<Expr>),
}

/// A sargable conjunct.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Slot of the column.
    pub slot: usize,
    pub sarg: Sarg,
    /// Slots that the values read.
    pub reads: Vec<usize>,
}

/// Returns the sargable interpretations of a conjunct: `a = b` has one for each side.
pub fn conditions(conjunct: &Expr) -> Vec<Condition> {
    let mut found = Vec::new();
    match conjunct {
        Expr::Compare(c) => {
            add_compare(&c.left, c.op, &c.right, &c.how, &mut found);
            add_compare(&c.right, c.op.swapped(), &c.left, &c.how, &mut found);
        }
        Expr::Between(b) if !b.negated => {
            let is_enum = b.operand.ty().kind == TypeKind::Enum;
            if let Some(slot) = column_for(&b.operand, &[&b.low, &b.high], &b.how).filter(|_| !is_enum) {
                let range = (Bound::Included(b.low.clone()), Bound::Included(b.high.clone()));
                push(&mut found, slot, Sarg::Ranges(vec![range]), &[&b.low, &b.high]);
            }
        }
        Expr::In(i) if !i.negated => {
            let list: Vec<&Expr> = i.list.iter().collect();
            if let Some(slot) = column_for(&i.operand, &list, &i.how) {
                push(&mut found, slot, Sarg::In(i.list.clone()), &list);
            }
            add_rows(i, &mut found);
        }
        Expr::IsNull(n) if !n.negated => {
            if let Expr::Column(column) = &n.operand
                && column.ty.nullable
            {
                push(&mut found, column.ordinal, Sarg::NullSafe(Expr::null()), &[]);
            }
        }
        Expr::Like(like) => add_like(like, &mut found),
        Expr::Or(alternatives) => add_alternatives(alternatives, &mut found),
        other => {
            if let Some((slot, index)) = other.match_source() {
                let sarg = Sarg::Words(index, Box::new(other.clone()));
                found.push(Condition { slot, sarg, reads: Vec::new() });
            }
        }
    }
    found
}

fn add_compare(column: &Expr, op: CompareOp, value: &Expr, how: &CompareHow, found: &mut Vec<Condition>) {
    let Some(slot) = column_for(column, &[value], how) else { return };
    let value = &compared(column, value);
    let (below, above) = (Bound::Unbounded, Bound::Unbounded);
    // The index has the numbers of the labels, which sort differently.
    if column.ty().kind == TypeKind::Enum && op != CompareOp::Eq {
        return;
    }
    let sarg = match op {
        CompareOp::Eq => Sarg::Eq(value.clone()),
        CompareOp::Lt => Sarg::Ranges(vec![(below, Bound::Excluded(value.clone()))]),
        CompareOp::Le => Sarg::Ranges(vec![(below, Bound::Included(value.clone()))]),
        CompareOp::Gt => Sarg::Ranges(vec![(Bound::Excluded(value.clone()), above)]),
        CompareOp::Ge => Sarg::Ranges(vec![(Bound::Included(value.clone()), above)]),
        CompareOp::NullSafeEq => Sarg::NullSafe(value.clone()),
        CompareOp::Ne => return,
    };
    push(found, slot, sarg, &[value]);
}

/// Returns the operand as compared with an exact number: a quotient is rounded to the digits of its type.
fn compared(column: &Expr, value: &Expr) -> Expr {
    let ty = value.ty();
    let is_exact = matches!(column.ty().class(), TypeClass::Int | TypeClass::Decimal);
    let is_computed = !matches!(value, Expr::Const(_) | Expr::Param(_) | Expr::Column(_));
    match is_exact && is_computed && ty.class() == TypeClass::Decimal {
        true => value.clone().rounded_to_type(),
        false => value.clone(),
    }
}

/// Adds the conditions of a row IN list.
///
/// `(a, b) IN ((1, 2), (3, 4))` implies `a IN (1, 3)` and `b IN (2, 4)`.
fn add_rows(rows: &In, found: &mut Vec<Condition>) {
    let (Expr::Row(operands), CompareHow::Row(hows)) = (&rows.operand, &rows.how) else { return };
    for (n, (operand, how)) in operands.iter().zip(hows).enumerate() {
        let values: Option<Vec<&Expr>> = rows.list.iter().map(|row| value_of(row, n)).collect();
        let Some(values) = values else { return };
        if let Some(slot) = column_for(operand, &values, how) {
            push(found, slot, Sarg::In(values.iter().copied().cloned().collect()), &values);
        }
    }
}

fn value_of(row: &Expr, n: usize) -> Option<&Expr> {
    if let Expr::Row(values) = row { values.get(n) } else { None }
}

/// Adds the condition of a LIKE, unless its pattern is known to begin with a wildcard: such a pattern does
/// not restrict the start of texts.
fn add_like(like: &Like, found: &mut Vec<Condition>) {
    let Expr::Column(column) = &like.operand else { return };
    let is_text = column.ty.class() == TypeClass::String
        && !matches!(column.ty.kind, TypeKind::Enum | TypeKind::Set)
        && column.ty.collation == like.collation;
    let begins_open = |value: &Value| match value {
        Value::Str(text) => matches!(text.bytes.first(), None | Some(b'%' | b'_')),
        _ => true,
    };
    let pattern = &like.pattern;
    let is_open = matches!(pattern, Expr::Const(node) if begins_open(&node.value));
    let is_known = is_stable(pattern) && pattern.ty().class() == TypeClass::String;
    if like.negated || like.escape_by.is_some() || !is_text || is_open || !is_known {
        return;
    }
    let start = LikeStart { pattern: pattern.clone(), escape: like.escape };
    push(found, column.ordinal, Sarg::Like(start), &[pattern]);
}

/// Handles `a BETWEEN .. OR a = ..` and `a > .. OR a = .. AND b > ..`: alternatives that each bound one
/// column. Other conditions of an alternative are left to the filter.
fn add_alternatives(alternatives: &[Expr], found: &mut Vec<Condition>) {
    let Some((first, others)) = alternatives.split_first() else { return };
    let first = of_alternative(first);
    let mut tried: Vec<usize> = Vec::new();
    for slot in first.iter().map(|condition| condition.slot) {
        if tried.contains(&slot) {
            continue;
        }
        tried.push(slot);
        let Some(mut all) = bounds(&first, slot) else { continue };
        let is_everywhere = others.iter().all(|alternative| {
            let more = bounds(&of_alternative(alternative), slot);
            more.is_some_and(|more| {
                all.0.extend(more.0);
                all.1.extend(more.1);
                true
            })
        });
        if is_everywhere {
            let sarg = as_points(&all.0).map_or_else(|| Sarg::Ranges(all.0), Sarg::In);
            found.push(Condition { slot, sarg, reads: all.1 });
        }
    }
}

/// Converts `a = .. OR a = ..` to `a IN (..)`, for which row estimates are better than for ranges.
fn as_points(ranges: &[Range]) -> Option<Vec<Expr>> {
    let point = |range: &Range| match range {
        (Bound::Included(low), Bound::Included(high)) if low == high => Some(low.clone()),
        _ => None,
    };
    if ranges.len() > SPANS_MAX {
        return None;
    }
    ranges.iter().map(point).collect()
}

/// Returns the conditions of an alternative: itself, or the conjuncts of its AND. Nested alternatives are
/// skipped to bound the work.
fn of_alternative(alternative: &Expr) -> Vec<Condition> {
    match alternative {
        Expr::And(items) => {
            items.iter().filter(|item| !matches!(item, Expr::Or(_))).flat_map(conditions).collect()
        }
        other => conditions(other),
    }
}

type Range = (Bound<Expr>, Bound<Expr>);

/// Returns the ranges that the conditions imply for a column, and the slots their values read.
fn bounds(conditions: &[Condition], slot: usize) -> Option<(Vec<Range>, Vec<usize>)> {
    let of_slot = || conditions.iter().filter(|condition| condition.slot == slot);
    let same = |e: &Expr| (Bound::Included(e.clone()), Bound::Included(e.clone()));
    let whole = of_slot().find_map(|condition| match &condition.sarg {
        Sarg::Eq(e) => Some((vec![same(e)], condition)),
        Sarg::In(list) => Some((list.iter().map(same).collect(), condition)),
        Sarg::Ranges(ranges) if ranges.len() > 1 => Some((ranges.clone(), condition)),
        Sarg::Ranges(_) | Sarg::NullSafe(_) | Sarg::Like(_) | Sarg::Words(..) => None,
    });
    if let Some((ranges, condition)) = whole {
        return Some((ranges, condition.reads.clone()));
    }
    let (mut low, mut high, mut reads) = (Bound::Unbounded, Bound::Unbounded, Vec::new());
    for condition in of_slot() {
        let Sarg::Ranges(ranges) = &condition.sarg else { continue };
        for (lower, upper) in ranges {
            if matches!(low, Bound::Unbounded) {
                low = lower.clone();
            }
            if matches!(high, Bound::Unbounded) {
                high = upper.clone();
            }
        }
        reads.extend(&condition.reads);
    }
    let is_bounded = !matches!((&low, &high), (Bound::Unbounded, Bound::Unbounded));
    is_bounded.then(|| (vec![(low, high)], reads))
}

fn push(found: &mut Vec<Condition>, slot: usize, sarg: Sarg, values: &[&Expr]) {
    let reads: Vec<usize> = values.iter().flat_map(|v| v.columns()).collect();
    debug_assert!(
        !matches!(&sarg, Sarg::Ranges(ranges) if ranges.iter().any(|(low, high)| {
            matches!((low, high), (Bound::Unbounded, Bound::Unbounded))
        })),
        "a range without bounds restricts nothing"
    );
    if !reads.contains(&slot) {
        found.push(Condition { slot, sarg, reads });
    }
}

/// Returns the slot of `operand` if it is a column whose index order agrees with comparisons to all the
/// values.
fn column_for(operand: &Expr, values: &[&Expr], how: &CompareHow) -> Option<usize> {
    let Expr::Column(column) = operand else { return None };
    let CompareHow::Scalar { collation, class } = how else { return None };
    let own = column.ty.class();
    if own == TypeClass::String && *collation != column.ty.collation {
        return None;
    }
    let fits = |v: &&Expr| {
        is_stable(v) && value_fits(&column.ty, &v.ty()) && class.is_none_or(|c| class_fits(own, c))
    };
    values.iter().all(fits).then_some(column.ordinal)
}

/// Returns true if a value is constant during a scan: a column of another table, or a constant of the
/// execution.
fn is_stable(value: &Expr) -> bool {
    matches!(value, Expr::Column(_)) || value.is_const_per_execution()
}

fn class_fits(column: TypeClass, forced: TypeClass) -> bool {
    use TypeClass::*;
    match column {
        Int => matches!(forced, Int | Decimal | Real),
        Decimal => matches!(forced, Int | Decimal),
        Date | DateTime => matches!(forced, Date | DateTime),
        other => other == forced,
    }
}

fn value_fits(column: &ExprType, value: &ExprType) -> bool {
    use TypeClass::*;
    if value.null_literal {
        return true;
    }
    if matches!(value.kind, TypeKind::Enum | TypeKind::Set | TypeKind::Bit | TypeKind::Year) {
        return false;
    }
    let class = value.class();
    match column.kind {
        // These types compare by rules of their own: by number, label or year.
        TypeKind::Bit | TypeKind::Year | TypeKind::Set | TypeKind::Float => false,
        TypeKind::Enum => class == String,
        TypeKind::Double => matches!(class, Int | Decimal | Real),
        _ => match column.class() {
            Int => matches!(class, Int | Decimal | Real | String),
            Decimal => matches!(class, Int | Decimal),
            String => class == String,
            Date | DateTime => matches!(class, Date | DateTime | String),
            Time => matches!(class, Time | String),
            Fixed => class == Fixed,
            Real => false,
        },
    }
}

/// Maximum number of spans. Longer IN lists are not multiplied with the preceding parts.
pub(crate) const SPANS_MAX: usize = 16_384;
