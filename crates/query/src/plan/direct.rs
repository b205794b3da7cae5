//! Builds direct plans: single-table fast paths for query blocks of one base table, or of none.

use std::sync::Arc;

use cohort_expr::{Expr, SortKey};
use cohort_optimize::{
    Candidates, Columns, Condition, LOCKED_ENTRIES_MIN, LimitCount, ReadMode, RowCosts, Statistics,
    WantedOrder, conditions, unanswered,
};
use cohort_plan::conjuncts::all_of;
use cohort_plan::{Body, Collected, From, FromTable, OrderBy, Query, Select, Source};
use cohort_types::{SqlResult, TypeKind, Value};

use crate::plan::body::{DirectPlan, DirectTable, ExactStep, GroupPlan, SortItem, SortValue, StoredWay};

/// Returns the direct plan of a query, if it has one. The statement must have no subqueries and no common
/// table expressions.
pub(super) fn direct(query: &Query, stats: &dyn Statistics) -> SqlResult<Option<DirectPlan>> {
    let Body::Select(select) = &query.body else { return Ok(None) };
    let table = match &select.from {
        None => None,
        Some(From::Table(table)) if matches!(table.source, Source::Base { .. }) => Some(&**table),
        Some(_) => return Ok(None),
    };
    if !select.windows.is_empty()
        || query.limit.with_ties
        || select.group.as_ref().is_some_and(|group| group.rollup)
    {
        return Ok(None);
    }
    let read = cohort_optimize::read_mode(query.locking)?;
    let plan = Direct { query, select, table, stats, read }.plan();
    Ok((!suits_operators(&plan)).then_some(plan))
}

/// Maximum estimated number of rows for which a fixed pipeline is faster.
const ROWS_MAX: u64 = 2000;

/// Returns true if operators are faster: they read many rows in batches, filter and group vectorized, and
/// spill.
fn suits_operators(plan: &DirectPlan) -> bool {
    let Some(table) = &plan.table else { return false };
    let is_streamed = plan.group.is_none() && plan.sort.is_empty() && !plan.distinct;
    let is_picked = is_streamed && (table.filter.is_none() || plan.limit.count.is_some());
    table.rows_estimate > ROWS_MAX && plan.read == ReadMode::Snapshot && !is_picked
}

struct Direct<'d> {
    query: &'d Query,
    select: &'d Select,
    table: Option<&'d FromTable>,
    stats: &'d dyn Statistics,
    read: ReadMode,
}

impl Direct<'_> {
    fn plan(&self) -> DirectPlan {
        let width = self.table.map_or(0, |table| table.width);
        let items: Vec<Expr> = self.select.items.iter().map(|item| self.place(item)).collect();
        let mut sort: Vec<SortItem> = self.query.order.iter().map(|order| self.sort_item(order)).collect();
        let having = self.select.having.as_ref().map(|having| self.place(having));
        let group = self.select.group.as_ref().map(|group| GroupPlan {
            sort_by_key: group.in_key_order,
            keys: group.keys.iter().map(|key| (self.place(key), key.ty().collation)).collect(),
            aggregates: group.aggregates.iter().map(|collected| self.aggregate(collected)).collect(),
            explicit: group.explicit,
        });
        let (constant, conditions): (Vec<Expr>, Vec<Expr>) =
            self.select.conditions.iter().map(|e| self.place(e)).partition(|e| e.columns().is_empty());
        let limit =
            LimitCount { count: self.query.limit.count.clone(), offset: self.query.limit.offset.clone() };
        let mut needed = vec![false; width];
        note_columns(&mut needed, &items, &having, &sort, &group);
        let table = self.table.map(|table| {
            let wanted = match group {
                Some(_) => WantedOrder::default(),
                None => wanted_order(&items, &sort, &limit, self.select.distinct),
            };
            let (table, is_ordered) = self.direct_table(table, conditions, wanted, needed);
            if is_ordered {
                sort.clear();
            }
            table
        });
        let kept = self.query.digits_kept();
        for item in &mut sort {
            if let SortValue::Item(n) = item.value
                && kept.get(n) == Some(&true)
            {
                // Rows are sorted by the displayed value.
                item.value = SortValue::Expr(items[n].clone());
            }
        }
        let items_move = group.is_none() && all_movable(&items);
        let mut plan = DirectPlan {
            table,
            width,
            constant_filter: all_of(constant),
            group,
            having,
            items,
            kept,
            items_move,
            distinct: self.select.distinct,
            sort,
            limit,
            read: self.read,
            count_all: self.query.count_all,
            block: self.select.block,
            stored: None,
        };
        plan.stored = StoredWay::of(&plan);
        plan
    }

    /// Converts column numbers in an expression to slots.
    fn place(&self, expr: &Expr) -> Expr {
        let (first, width) = self.table.map_or((0, 0), |table| (table.first, table.width));
        let aggregates = self.select.group.as_ref().map_or(&[][..], |group| &group.aggregates);
        expr.clone().map_columns(&mut |column| match aggregates
            .iter()
            .position(|collected| collected.column == column)
        {
            Some(n) => width + n,
            None => column - first,
        })
    }

    fn aggregate(&self, collected: &Collected) -> cohort_expr::Aggregate {
        let mut aggregate = collected.aggregate.clone();
        aggregate.args.iter_mut().for_each(|arg| *arg = self.place(arg));
        aggregate.options.order.iter_mut().for_each(|key| key.expr = self.place(&key.expr));
        aggregate
    }

    fn sort_item(&self, order: &cohort_plan::Order) -> SortItem {
        let value = match &order.by {
            OrderBy::Item(n) => SortValue::Item(*n),
            OrderBy::Expr(expr) => SortValue::Expr(self.place(expr)),
        };
        let SortKey { collation, descending } = order.key;
        SortItem { value, key: SortKey { collation, descending } }
    }

    fn direct_table(
        &self,
        table: &FromTable,
        conjuncts: Vec<Expr>,
        wanted: WantedOrder,
        mut needed: Vec<bool>,
    ) -> (DirectTable, bool) {
        let Source::Base { table: base, allowed, forced } = &table.source else {
            unreachable!("a direct plan has a base table")
        };
        let locking = self.read != ReadMode::Snapshot;
        let needed_behind = needed.clone();
        for slot in conjuncts.iter().flat_map(|expr| expr.columns()) {
            needed[slot] = true;
        }
        let sargs: Vec<Condition> = conjuncts.iter().flat_map(conditions).collect();
        let columns = columns_of(&needed, locking);
        let traced = self.stats.trace().map(|trace| trace.begin_table(self.select.block, &table.name));
        let choice = Candidates {
            table: base,
            first_slot: 0,
            stats: self.stats,
            entries_min: if locking { LOCKED_ENTRIES_MIN } else { 0 },
            allowed: allowed.clone(),
            forced: *forced,
            conditions: sargs.iter().filter(|c| c.reads.is_empty()).collect(),
            wanted,
            columns: columns.clone(),
            costs: RowCosts::BY_ROWS,
        }
        .choose();
        drop(traced);
        let left = match locking {
            true => conjuncts.iter().collect(),
            false => unanswered(&choice.access, base, &conjuncts),
        };
        let exact = (left.len() < conjuncts.len()).then(|| {
            let mut needed = needed_behind;
            for slot in left.iter().flat_map(|expr| expr.columns()) {
                needed[slot] = true;
            }
            let filter = all_of(left.into_iter().cloned().collect());
            ExactStep { filter, columns: columns_of(&needed, false) }
        });
        let planned = DirectTable {
            table: base.clone(),
            name: table.name.clone(),
            access: choice.access,
            columns,
            filter: all_of(conjuncts),
            exact,
            rows_estimate: choice.rows as u64,
        };
        (planned, choice.ordered)
    }
}

fn all_movable(items: &[Expr]) -> bool {
    let mut seen = Vec::new();
    items.iter().all(|item| match item {
        Expr::Column(c) if c.ty.kind != TypeKind::Timestamp && !seen.contains(&c.ordinal) => {
            seen.push(c.ordinal);
            true
        }
        _ => false,
    })
}

fn note_columns(
    needed: &mut [bool],
    items: &[Expr],
    having: &Option<Expr>,
    sort: &[SortItem],
    group: &Option<GroupPlan>,
) {
    let mut note = |e: &Expr| {
        for slot in e.columns() {
            if let Some(needed) = needed.get_mut(slot) {
                *needed = true;
            }
        }
    };
    items.iter().chain(having).for_each(&mut note);
    for item in sort {
        if let SortValue::Expr(expr) = &item.value {
            note(expr);
        }
    }
    if let Some(group) = group {
        group.keys.iter().for_each(|(e, _)| note(e));
        for aggregate in &group.aggregates {
            aggregate.args.iter().for_each(&mut note);
            aggregate.options.order.iter().for_each(|key| note(&key.expr));
        }
    }
}

/// Returns the row order that would make the sort unnecessary, if the sort keys are columns in one direction.
fn wanted_order(items: &[Expr], sort: &[SortItem], limit: &LimitCount, distinct: bool) -> WantedOrder {
    let mut wanted = WantedOrder::default();
    let constant = |e: &Option<Expr>| match e {
        Some(Expr::Const(c)) => match c.value {
            Value::Int(n) => u64::try_from(n).ok(),
            Value::UInt(n) => Some(n),
            _ => None,
        },
        _ => None,
    };
    // A limit that is known only at execution is usually a small page.
    let assumed = limit.count.as_ref().map(|_| 100);
    if !distinct {
        wanted.limit = constant(&limit.count).or(assumed);
    }
    for item in sort {
        let expr = match &item.value {
            SortValue::Item(n) => &items[*n],
            SortValue::Expr(expr) => expr,
        };
        let Expr::Column(column) = expr else { return WantedOrder { columns: Vec::new(), ..wanted } };
        if wanted.columns.is_empty() {
            wanted.descending = item.key.descending;
        } else if wanted.descending != item.key.descending {
            return WantedOrder { columns: Vec::new(), ..wanted };
        }
        wanted.columns.push(column.ordinal);
    }
    wanted
}

fn columns_of(needed: &[bool], locking: bool) -> Columns {
    if locking || needed.iter().all(|n| *n) {
        return Columns::All;
    }
    let some: Vec<usize> = (0..needed.len()).filter(|n| needed[*n]).collect();
    Columns::Some(Arc::from(some))
}
