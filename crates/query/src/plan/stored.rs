//! [`StoredWay`]: direct plans that work on stored rows.
//!
//! A plan that only reads some columns of its rows decodes no values: the bytes are copied from the engine's
//! entries to the client, sorted in stored form, or added up. This requires a snapshot read in which the
//! index spans guarantee all conditions. That is decided at execution; otherwise rows are processed one by
//! one.

use cohort_expr::{Aggregate, AggregateKind, Expr, Quantifier};
use cohort_optimize::ReadMode;
use cohort_types::{ColumnType, TypeKind, VectorType};

use crate::plan::body::{DirectPlan, GroupPlan, SortValue, StoredAggregate, StoredAggregateKind, StoredWay};

impl StoredWay {
    /// Returns `None` if the plan needs decoded values.
    pub(super) fn of(plan: &DirectPlan) -> Option<StoredWay> {
        if plan.read != ReadMode::Snapshot {
            return None;
        }
        match &plan.group {
            None => columns(plan),
            Some(group) => totals(plan, group),
        }
    }
}

fn column_type(plan: &DirectPlan, column: usize) -> Option<&ColumnType> {
    Some(&plan.table.as_ref()?.table.columns.get(column)?.ty)
}

fn columns(plan: &DirectPlan) -> Option<StoredWay> {
    // A TIMESTAMP is displayed and sorted in the session's time zone.
    let column = |expr: &Expr| match expr {
        Expr::Column(column) => {
            let ty = column_type(plan, column.ordinal)?;
            (ty.kind != TypeKind::Timestamp).then_some(column.ordinal)
        }
        _ => None,
    };
    if plan.having.is_some() {
        return None;
    }
    let items: Box<[usize]> = plan.items.iter().map(&column).collect::<Option<_>>()?;
    let key = |value: &SortValue| match value {
        SortValue::Item(n) => items.get(*n).copied(),
        SortValue::Expr(expr) => column(expr),
    };
    let keys: Box<[usize]> = plan.sort.iter().map(|item| key(&item.value)).collect::<Option<_>>()?;
    let is_sorted_by = |n: usize| {
        let mut sorted = plan.sort.iter().zip(&keys);
        let collation = plan.items[n].ty().collation;
        sorted.any(|(item, key)| *key == items[n] && item.key.collation == collation)
    };
    let decides_equality = |column: &usize| {
        let ty = column_type(plan, *column);
        ty.is_some_and(|ty| ty.kind.is_integer() || ty.stored_len().is_none())
    };
    let merges_equal = keys.iter().all(|key| items.contains(key))
        && (0..items.len()).all(is_sorted_by)
        && items.iter().all(decides_equality);
    (!plan.distinct || merges_equal).then_some(StoredWay::Columns { items, keys })
}

fn totals(plan: &DirectPlan, group: &GroupPlan) -> Option<StoredWay> {
    if !group.keys.is_empty() || group.explicit {
        return None;
    }
    let aggregates: Option<Box<[StoredAggregate]>> =
        group.aggregates.iter().map(|of| stored_aggregate(plan, of)).collect();
    let sorts = plan.sort.iter().filter_map(|item| match &item.value {
        SortValue::Item(_) => None,
        SortValue::Expr(expr) => Some(expr),
    });
    let mut exprs = plan.items.iter().chain(&plan.having).chain(sorts);
    let reads_first_row = exprs.any(|expr| expr.columns().into_iter().any(|column| column < plan.width));
    Some(StoredWay::Totals { aggregates: aggregates?, reads_first_row })
}

fn stored_aggregate(plan: &DirectPlan, aggregate: &Aggregate) -> Option<StoredAggregate> {
    let kind = aggregate.kind;
    let is_extreme = matches!(kind, AggregateKind::Min | AggregateKind::Max);
    if aggregate.options.quantifier == Quantifier::Distinct && !is_extreme {
        return None;
    }
    let column = match (kind, aggregate.args.as_slice()) {
        (AggregateKind::CountStar, _) => {
            return Some(StoredAggregate { of: StoredAggregateKind::Rows, column: 0 });
        }
        (_, [Expr::Column(column)]) => column.ordinal,
        _ => return None,
    };
    let ty = VectorType::of(column_type(plan, column)?)?;
    let is_number = matches!(ty, VectorType::Int | VectorType::UInt | VectorType::Decimal { .. });
    let of = match kind {
        AggregateKind::Count => StoredAggregateKind::Present,
        AggregateKind::Sum | AggregateKind::Avg if is_number => StoredAggregateKind::Total,
        AggregateKind::Min if !ty.is_text() => StoredAggregateKind::Least,
        AggregateKind::Max if !ty.is_text() => StoredAggregateKind::Greatest,
        _ => return None,
    };
    Some(StoredAggregate { of, column })
}
