//! Converts grouped IN subqueries to tables of FROM.
//!
//! `x IN (SELECT y FROM t GROUP BY y HAVING ..)` is an inner join with the subquery as a derived table: a
//! grouping returns each key once, so no outer row has two matches. As a table it takes part in the choice of
//! the join order, whereas the condition would be evaluated on rows that are already joined.
//!
//! The conversion is valid if only TRUE matters (conditions of WHERE), if all grouping keys are compared, and
//! if the comparison and the grouping agree on equality: one type and one collation. A subquery that reads
//! outer columns is not converted.

use cohort_expr::{CompareHow, CompareOp, Expr, SubqueryTest, compare_as};
use cohort_plan::{Body, CommonTable, From, FromJoin, FromTable, Query, Select, Source, check_statement};

use crate::equal::hashable;
use crate::visit::Statement;

/// Maximum number of tables of a FROM to which a table is added.
const TABLES_MAX: usize = 60;

/// Converts all eligible subqueries, in all blocks of a statement.
pub fn unnest(query: &mut Query, subqueries: &mut [Query], common: &mut [CommonTable]) {
    if subqueries.is_empty() {
        return;
    }
    let ready: Vec<Option<Query>> = {
        let statement = Statement::new(subqueries, common);
        let is_ready = |id: usize| {
            let query = &subqueries[id];
            let is_free = statement.free(id).is_empty() && !statement.is_volatile(id);
            (is_free && yields_keys(query)).then(|| query.clone())
        };
        (0..subqueries.len()).map(is_ready).collect()
    };
    if ready.iter().all(Option::is_none) {
        return;
    }
    let mut ready = Ready(ready);
    ready.in_query(query);
    subqueries.iter_mut().for_each(|query| ready.in_query(query));
    for table in &mut *common {
        ready.in_query(&mut table.seed);
        table.step.iter_mut().for_each(|step| ready.in_query(&mut step.query));
    }
    check_statement(query, subqueries, common);
}

/// Returns true if the items are exactly the grouping keys, so that rows are distinct.
fn yields_keys(query: &Query) -> bool {
    let Body::Select(select) = &query.body else { return false };
    let Some(group) = &select.group else { return false };
    let is_key = |expr: &Expr| group.keys.contains(expr) && matches!(expr, Expr::Column(_));
    group.explicit
        && !group.rollup
        && select.windows.is_empty()
        && query.limit.count.is_none()
        && query.limit.offset.is_none()
        && query.locking.is_none()
        && select.items.iter().all(is_key)
        && group.keys.iter().all(|key| select.items.contains(key))
}

/// Subqueries that can become tables, each of them once.
struct Ready(Vec<Option<Query>>);

impl Ready {
    fn in_query(&mut self, query: &mut Query) {
        match &mut query.body {
            Body::Select(select) => {
                if query.locking.is_none() {
                    self.in_select(select);
                }
            }
            Body::Set(set) => {
                self.in_query(&mut set.first);
                set.rest.iter_mut().for_each(|operand| self.in_query(&mut operand.query));
            }
            Body::Values(_) => {}
            Body::Nested(inner) => self.in_query(inner),
        }
    }

    fn in_select(&mut self, select: &mut Select) {
        let Some(from) = select.from.take() else { return };
        let mut from = from;
        let mut added = Vec::new();
        let is_fit = !select.straight_join && from.tables().iter().all(|table| table.key.is_none());
        select.conditions.retain(|condition| {
            if !is_fit || from.tables().len() + added.len() >= TABLES_MAX {
                return true;
            }
            match self.table_of(condition) {
                Some(found) => {
                    added.push(found);
                    false
                }
                None => true,
            }
        });
        for (table, equalities) in added {
            let join = FromJoin {
                outer: false,
                keep_order: false,
                left: from,
                right: From::Table(Box::new(table)),
                on: Vec::new(),
            };
            from = From::Join(Box::new(join));
            select.conditions.extend(equalities);
        }
        self.in_from(&mut from);
        select.from = Some(from);
    }

    fn in_from(&mut self, from: &mut From) {
        match from {
            From::Table(table) => {
                if let Source::Derived(query) = &mut table.source {
                    self.in_query(query);
                }
            }
            From::Join(join) => {
                self.in_from(&mut join.left);
                self.in_from(&mut join.right);
            }
        }
    }

    /// Returns the table that replaces a condition, and its join conditions.
    fn table_of(&mut self, condition: &Expr) -> Option<(FromTable, Vec<Expr>)> {
        let Expr::Subquery(node) = condition else { return None };
        let SubqueryTest::Quantified { operand, op: CompareOp::Eq, all: false, how } = &node.test else {
            return None;
        };
        let query = self.0[node.id].as_ref()?;
        let one = std::slice::from_ref(operand);
        let operands = if let Expr::Row(parts) = operand { parts.as_slice() } else { one };
        let mut equalities = Vec::new();
        for (n, (left, ty)) in operands.iter().zip(&query.types).enumerate() {
            let how = match how {
                CompareHow::Row(hows) => hows.get(n)?,
                scalar => scalar,
            };
            let item = Expr::column(query.column(n), ty.clone(), "");
            if left.is_volatile() || left.calls_back() || left.columns().is_empty() {
                return None;
            }
            if hashable(&item, left, how)? != ty.collation {
                return None;
            }
            equalities.push(compare_as(CompareOp::Eq, left.clone(), item, how.clone()));
        }
        debug_assert_eq!(
            equalities.len(),
            query.types.len(),
            "a row without all its equalities has several matches"
        );
        let query = self.0[node.id].take()?;
        let table = FromTable {
            first: query.first_column,
            width: query.types.len(),
            name: "<subquery>".into(),
            source: Source::Derived(Box::new(Query { order: Vec::new(), ..query })),
            view: None,
            key: None,
        };
        Some((table, equalities))
    }
}
