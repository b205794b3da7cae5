//! Pushes conditions down into derived tables that were not merged, so that they apply before grouping,
//! duplicate removal and set operations.
//!
//! A condition can be pushed if it reads one derived table alone and keeps its meaning: over a grouping it
//! may read only keys, and into a set operation it is pushed to every operand. Operations that combine equal
//! rows (GROUP BY, DISTINCT, UNION) return an arbitrary one of several texts that are equal in their
//! collation. A condition on texts can be pushed through them only if it compares in that collation.

use cohort_expr::{CompareHow, Expr, ExprType, TypeClass};
use cohort_plan::{
    Body, CommonTable, From, FromTable, Items, Query, Select, Source, check_statement, with_items,
};

/// Pushes conditions down in all blocks of a statement.
pub fn push_conditions(query: &mut Query, subqueries: &mut [Query], common: &mut [CommonTable]) {
    in_query(query);
    subqueries.iter_mut().for_each(in_query);
    for table in &mut *common {
        in_query(&mut table.seed);
        table.step.iter_mut().for_each(|step| in_query(&mut step.query));
    }
    check_statement(query, subqueries, common);
}

fn in_query(query: &mut Query) {
    match &mut query.body {
        Body::Select(select) => in_select(select),
        Body::Set(set) => {
            in_query(&mut set.first);
            set.rest.iter_mut().for_each(|operand| in_query(&mut operand.query));
        }
        Body::Values(_) => {}
        Body::Nested(inner) => in_query(inner),
    }
}

fn in_select(select: &mut Select) {
    let Some(from) = &mut select.from else { return };
    let mut tables = Vec::new();
    derived(from, false, &mut tables);
    select.conditions.retain(|condition| {
        let columns = condition.columns();
        if columns.is_empty() || condition.is_volatile() || condition.calls_back() {
            return true;
        }
        let reads_only = |table: &FromTable| {
            columns.iter().all(|column| (table.first..table.first + table.width).contains(column))
        };
        for (table, padded) in &mut tables {
            if *padded || !reads_only(table) {
                continue;
            }
            let Source::Derived(query) = &mut table.source else { continue };
            if accepts(query, condition) {
                push(query, condition.clone());
                return false;
            }
        }
        true
    });
    for (table, _) in tables {
        if let Source::Derived(query) = &mut table.source {
            in_query(query);
        }
    }
}

/// Collects the derived tables of FROM, and for each whether an outer join may pad it.
fn derived<'f>(from: &'f mut From, padded: bool, found: &mut Vec<(&'f mut FromTable, bool)>) {
    match from {
        From::Table(table) => {
            if matches!(table.source, Source::Derived(_)) {
                found.push((table, padded));
            }
        }
        From::Join(join) => {
            let outer = join.outer;
            derived(&mut join.left, padded, found);
            derived(&mut join.right, padded || outer, found);
        }
    }
}

/// Returns true if the condition, which reads only result columns of the query, can be evaluated inside it.
fn accepts(query: &Query, condition: &Expr) -> bool {
    if query.limit.count.is_some() || query.limit.offset.is_some() || query.count_all {
        return false;
    }
    let read = || condition.columns().into_iter().map(|column| column - query.first_column);
    match &query.body {
        Body::Select(select) => {
            let Select { group, windows, distinct, items, .. } = &**select;
            let is_plain = |n: usize| !items[n].is_volatile() && !items[n].calls_back();
            let is_key = |n: usize| match group {
                None => true,
                Some(group) => group.explicit && !group.rollup && group.keys.contains(&items[n]),
            };
            let makes_one = group.is_some() || *distinct;
            // A volatile item counts rows or has a side effect for each, so it must see all of them.
            let is_steady = !items.iter().any(Expr::is_volatile);
            is_steady
                && windows.is_empty()
                && read().all(|n| is_plain(n) && is_key(n))
                && (!makes_one || keeps_alike(query, condition))
        }
        Body::Set(set) => {
            let operands =
                || std::iter::once(&set.first).chain(set.rest.iter().map(|operand| &operand.query));
            operands().all(|operand| {
                let shape = |ty: &ExprType| ty.clone().with_nullable(true);
                let is_same = |n: usize| shape(&operand.types[n]) == shape(&query.types[n]);
                read().all(is_same) && accepts(operand, &renumbered(condition, query, operand))
            }) && keeps_alike(query, condition)
        }
        Body::Nested(inner) => accepts(inner, &renumbered(condition, query, inner)),
        Body::Values(_) => false,
    }
}

/// Returns true if the condition gives the same result for all equal values.
fn keeps_alike(query: &Query, condition: &Expr) -> bool {
    let ty = |column: usize| &query.types[column - query.first_column];
    let has_texts = condition.columns().into_iter().any(|c| ty(c).class() == TypeClass::String);
    let compares_alike = || match condition {
        Expr::Compare(node) => match (&node.left, &node.right) {
            (Expr::Column(column), other) | (other, Expr::Column(column)) => {
                let own = ty(column.ordinal).collation;
                let is_own =
                    matches!(&node.how, CompareHow::Scalar { collation, class: None } if *collation == own);
                is_own && other.columns().is_empty()
            }
            _ => false,
        },
        _ => false,
    };
    !has_texts || compares_alike()
}

/// Renumbers a condition on the result of `from` to the result of `to`.
fn renumbered(condition: &Expr, from: &Query, to: &Query) -> Expr {
    let (first, other) = (from.first_column, to.first_column);
    condition.clone().map_columns(&mut |column| column - first + other)
}

fn push(query: &mut Query, condition: Expr) {
    let first = query.first_column;
    debug_assert!(
        condition.columns().iter().all(|column| (first..first + query.types.len()).contains(column)),
        "a condition that also reads other tables is pushed down"
    );
    debug_assert!(query.limit.count.is_none(), "rows are left out before a LIMIT counts them");
    debug_assert!(!condition.is_volatile() && !condition.calls_back(), "a condition with effects is moved");
    let renumber = |to: usize| condition.clone().map_columns(&mut |column| column - first + to);
    match &mut query.body {
        Body::Select(select) => {
            let items: Items =
                select.items.iter().enumerate().map(|(n, item)| (first + n, item.clone())).collect();
            debug_assert!(select.windows.is_empty(), "rows are left out before a window function sees them");
            debug_assert!(
                select.group.as_ref().is_none_or(|group| group.explicit && !group.rollup),
                "rows are left out of a group that exists without them"
            );
            select.conditions.push(with_items(condition, &items));
        }
        Body::Set(set) => {
            let condition = renumber(set.first.first_column);
            push(&mut set.first, condition);
            for operand in &mut set.rest {
                let condition = renumber(operand.query.first_column);
                push(&mut operand.query, condition);
            }
        }
        Body::Nested(inner) => {
            let condition = renumber(inner.first_column);
            push(inner, condition);
        }
        Body::Values(_) => unreachable!("VALUES accepts no condition"),
    }
}
