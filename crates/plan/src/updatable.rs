//! Decides which queries can be merged into the outer query, and through which rows can be changed.

use std::collections::HashMap;

use cohort_catalog::Table;
use cohort_expr::Expr;

use crate::block::{Body, From, FromTable, Query, Select, Source};

/// Returns true if a query in FROM may be merged into the outer query: a plain SELECT, whose items may be
/// evaluated any number of times.
pub fn is_mergeable(query: &Query) -> bool {
    let Body::Select(select) = &query.body else { return false };
    let Select { from, conditions, group, having, windows, items, distinct, straight_join, .. } = &**select;
    let is_plain = group.is_none() && having.is_none() && windows.is_empty() && !distinct && !straight_join;
    let is_unlimited = query.limit.count.is_none() && query.limit.offset.is_none();
    let is_quiet = query.locking.is_none() && query.into.is_empty() && !query.count_all;
    from.is_some()
        && is_plain
        && is_unlimited
        && is_quiet
        && !query.apart
        && !items.iter().chain(conditions).any(Expr::is_volatile)
        && !items.iter().any(|item| matches!(item, Expr::Row(_)))
}

/// Returns true if a query may be merged where it stands. `padded`: on the inner side of an outer join. An
/// item with a subquery must not be evaluated more often than written.
pub fn can_merge(query: &Query, padded: bool) -> bool {
    let Body::Select(select) = &query.body else { return false };
    let is_column = |item: &Expr| matches!(item, Expr::Column(_));
    is_mergeable(query)
        && !select.items.iter().any(Expr::calls_back)
        && (!padded || select.items.iter().all(is_column))
}

impl Query {
    /// Returns true if rows of a base table can be changed through it.
    pub fn is_updatable(&self) -> bool {
        is_mergeable(self) && self.select().and_then(|select| select.from.as_ref()).is_some_and(is_updatable)
    }
}

fn is_updatable(from: &From) -> bool {
    from.tables().iter().any(|table| match &table.source {
        Source::Base { .. } => true,
        Source::Derived(query) => table.view.is_some() && query.is_updatable(),
        Source::Virtual(_) | Source::Common(_) | Source::Series { .. } | Source::Json { .. } => false,
    })
}

/// Returns the base table column that column n of a query is, if it is a plain column.
pub fn origin(query: &Query, n: usize) -> Option<(&std::sync::Arc<Table>, usize)> {
    place(query, n).map(|(_, table, column)| (table, column))
}

/// Returns the base table column like [`origin`], and the number of the table's first column, which
/// identifies the table in FROM.
pub(crate) fn place(query: &Query, n: usize) -> Option<(usize, &std::sync::Arc<Table>, usize)> {
    let select = query.select()?;
    let Expr::Column(column) = &select.items[n] else { return None };
    let is_its = |table: &&FromTable| (table.first..table.first + table.width).contains(&column.ordinal);
    let table = select.from.as_ref()?.tables().into_iter().find(is_its)?;
    let at = column.ordinal - table.first;
    match &table.source {
        Source::Base { table: base, .. } => Some((table.first, base, at)),
        Source::Derived(inner) => place(inner, at),
        Source::Virtual(_) | Source::Common(_) | Source::Series { .. } | Source::Json { .. } => None,
    }
}

/// Expressions that replace columns, by column number.
pub type Items = HashMap<usize, Expr>;

/// Replaces columns by items. If an item is a column, only its number is replaced, because the outer column
/// may be NULL-padded.
pub fn with_items(expr: Expr, items: &Items) -> Expr {
    match expr {
        Expr::Column(mut column) => match items.get(&column.ordinal) {
            None => Expr::Column(column),
            Some(Expr::Column(inner)) => {
                column.ordinal = inner.ordinal;
                with_items(Expr::Column(column), items)
            }
            Some(item) => with_items(item.clone(), items),
        },
        other => other.map_children(&mut |child| with_items(child, items)),
    }
}
