//! Merges derived tables and views into the outer query.
//!
//! If a derived table is a plain SELECT, its FROM replaces it, its conditions move to the outer WHERE, and
//! its items replace the references to its columns. Column numbers are unique in the statement, so one map
//! from numbers to items serves every block, including subqueries.
//!
//! On the inner side of an outer join, the conditions move to its ON. There the columns are NULL in padded
//! rows. That can be reproduced only if all items are plain columns; otherwise the table is not merged. An
//! item that refers to a column of a table merged earlier is replaced by what that column stands for.
//!
//! FOR UPDATE on the outer query does not lock rows of a derived table (it does lock those of a view), so
//! such a derived table is not merged.

use cohort_expr::Expr;
use cohort_plan::{
    Body, CommonTable, From, FromJoin, Items, OrderBy, Query, Select, Source, can_merge, check_statement,
    with_items,
};

use crate::visit::each_expr_mut;

/// Maximum number of tables of one SELECT, as checked by the binder.
const TABLES_MAX: usize = 61;

/// Merges all mergeable tables in all blocks of a statement.
pub fn merge(query: &mut Query, subqueries: &mut [Query], common: &mut [CommonTable]) {
    let mut items = Items::new();
    let mut all: Vec<&mut Query> = vec![query];
    all.extend(&mut *subqueries);
    for table in &mut *common {
        all.push(&mut table.seed);
        all.extend(table.step.as_mut().map(|step| &mut step.query));
    }
    all.iter_mut().for_each(|query| merge_query(query, &mut items));
    if items.is_empty() {
        return;
    }
    for query in &mut all {
        each_expr_mut(query, &mut |expr| {
            *expr = with_items(std::mem::replace(expr, Expr::null()), &items);
            debug_assert!(
                !expr.columns().iter().any(|column| items.contains_key(column)),
                "an expression names a column of a merged table"
            );
        });
    }
    check_statement(query, subqueries, common);
}

fn merge_query(query: &mut Query, items: &mut Items) {
    let alone = query.order.is_empty();
    match &mut query.body {
        Body::Select(select) => {
            let order = merge_select(select, query.locking.is_some(), items);
            let keeps_rows = select.group.is_none() && !select.distinct && select.windows.is_empty();
            // A view's ORDER BY applies only if the query reads nothing else and has no order of its own.
            if let Some(order) = order.filter(|_| alone && keeps_rows) {
                query.order = order;
            }
        }
        Body::Set(set) => {
            merge_query(&mut set.first, items);
            set.rest.iter_mut().for_each(|operand| merge_query(&mut operand.query, items));
        }
        Body::Values(_) => {}
        Body::Nested(inner) => merge_query(inner, items),
    }
}

/// Merges into a FROM. Returns the order of the view, if FROM was a single view.
fn merge_select(select: &mut Select, locks: bool, items: &mut Items) -> Option<Vec<cohort_plan::Order>> {
    let from = select.from.take()?;
    let mut merging = Merging { items, locks, tables: from.tables().len(), order: None };
    let is_view = matches!(&from, From::Table(table) if table.view.is_some());
    let mut conditions = Vec::new();
    select.from = Some(merging.from(from, false, &mut conditions));
    let count = select.from.as_ref().map_or(0, |from| from.tables().len());
    debug_assert_eq!(count, merging.tables, "tables of a SELECT are counted wrong");
    let order = merging.order.filter(|_| is_view);
    select.conditions.splice(..0, conditions);
    order
}

struct Merging<'m> {
    items: &'m mut Items,
    /// The SELECT locks the rows it reads.
    locks: bool,
    /// Number of tables of the SELECT so far.
    tables: usize,
    /// The order of the query merged last.
    order: Option<Vec<cohort_plan::Order>>,
}

impl Merging<'_> {
    fn from(&mut self, from: From, padded: bool, conditions: &mut Vec<Expr>) -> From {
        match from {
            From::Join(join) => {
                let FromJoin { outer, keep_order, left, right, mut on } = *join;
                let left = self.from(left, padded, conditions);
                let right = match outer {
                    true => self.from(right, true, &mut on),
                    false => self.from(right, padded, conditions),
                };
                From::Join(Box::new(FromJoin { outer, keep_order, left, right, on }))
            }
            From::Table(mut table) => {
                let Source::Derived(query) = &mut table.source else { return From::Table(table) };
                merge_query(query, self.items);
                if let Body::Select(select) = &mut query.body
                    && !self.items.is_empty()
                {
                    for item in &mut select.items {
                        *item = with_items(std::mem::replace(item, Expr::null()), self.items);
                    }
                }
                let count = query
                    .select()
                    .and_then(|select| select.from.as_ref())
                    .map_or(0, |from| from.tables().len());
                let stays_unlocked = self.locks && table.view.is_none();
                if stays_unlocked || !can_merge(query, padded) || self.tables - 1 + count > TABLES_MAX {
                    return From::Table(table);
                }
                self.tables = self.tables - 1 + count;
                let first = query.first_column;
                debug_assert!(
                    table.key.is_none(),
                    "a table with keys of its rows is merged: the keys are lost"
                );
                debug_assert!(
                    query.into.is_empty() && query.limit.count.is_none(),
                    "a merged query loses its INTO or LIMIT"
                );
                let order = std::mem::take(&mut query.order);
                let Body::Select(select) = std::mem::replace(&mut query.body, Body::Values(Vec::new()))
                else {
                    unreachable!("what can be merged is a SELECT")
                };
                let by_expr = |order: &cohort_plan::Order| match &order.by {
                    OrderBy::Item(n) => {
                        cohort_plan::Order { by: OrderBy::Expr(select.items[*n].clone()), ..order.clone() }
                    }
                    OrderBy::Expr(_) => order.clone(),
                };
                self.order =
                    Some(order.iter().map(by_expr).collect()).filter(|order: &Vec<_>| !order.is_empty());
                debug_assert!(
                    !select.items.iter().any(Expr::is_volatile),
                    "a volatile item of a merged query is evaluated at each of its uses"
                );
                debug_assert!(
                    (0..select.items.len()).all(|n| !self.items.contains_key(&(first + n))),
                    "two merged tables bring one column number"
                );
                self.items.extend(select.items.into_iter().enumerate().map(|(n, item)| (first + n, item)));
                conditions.extend(select.conditions);
                // Its own derived tables were merged earlier.
                select.from.expect("what can be merged reads tables")
            }
        }
    }
}
