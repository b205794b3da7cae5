//! Post-conditions of binding, and of each rewrite of a bound statement. Builds with debug assertions check
//! them; a violation is a defect of the binder or of the rewrite, never of the statement.
//!
//! # Invariants
//! - A column that an expression reads is brought by a table of its block, computed by a clause evaluated
//!   before it (aggregates, windows, assignments), brought by an outer block, or part of a changed row.
//! - A column number is brought once per block.
//! - The items, types and metadata of a query, and the rows of its operands, have one width.

use std::cell::RefCell;

use cohort_expr::{Expr, SubqueryTest};
use cohort_types::check_stack;

use crate::block::{
    Body, CommonTable, From, FromTable, Group, OrderBy, Query, Select, Source, is_of_changed_row,
};
use crate::window::{Frame, FrameBound, FrameUnit, WindowFunction, WindowUse};

/// Checks the invariants of a statement. Does nothing without debug assertions.
pub fn check_statement(query: &Query, subqueries: &[Query], common: &[CommonTable]) {
    if !cfg!(debug_assertions) {
        return;
    }
    let check = Check { subqueries, common, seen: RefCell::new(vec![false; subqueries.len()]) };
    let nothing = Visible::default();
    check.query(query, &nothing);
    for table in common {
        check.query(&table.seed, &nothing);
        let width = table.seed.types.len();
        let Some(step) = &table.step else { continue };
        check.query(&step.query, &nothing);
        debug_assert_eq!(
            step.query.types.len(),
            width,
            "a recursive part returns other columns than its seed"
        );
        debug_assert!(step.cycle.iter().all(|n| *n < width), "CYCLE names a column that does not exist");
        debug_assert!(
            step.distinct || step.cycle.is_empty(),
            "CYCLE needs UNION: duplicates end the recursion"
        );
    }
}

/// The columns that an expression may read.
#[derive(Default)]
struct Visible<'v> {
    outer: Option<&'v Visible<'v>>,
    /// First number and count.
    ranges: Vec<(usize, usize)>,
}

impl<'v> Visible<'v> {
    fn within(outer: &'v Visible<'v>) -> Visible<'v> {
        Visible { outer: Some(outer), ranges: Vec::new() }
    }

    fn adds_own(&self, column: usize) -> bool {
        self.ranges.iter().any(|(first, count)| (*first..first + count).contains(&column))
    }

    fn has(&self, column: usize) -> bool {
        self.adds_own(column) || self.outer.is_some_and(|outer| outer.has(column))
    }

    /// Adds columns of a block.
    fn bring(&mut self, first: usize, count: usize) {
        let twice = (first..first + count).find(|column| self.adds_own(*column));
        debug_assert_eq!(twice, None, "two parts of a block bring one column number");
        self.ranges.push((first, count));
    }
}

struct Check<'s> {
    subqueries: &'s [Query],
    common: &'s [CommonTable],
    /// Subqueries that were checked. One that several expressions contain is checked once.
    seen: RefCell<Vec<bool>>,
}

impl Check<'_> {
    fn query(&self, query: &Query, outer: &Visible<'_>) {
        // What is nested too deeply is rejected elsewhere.
        if check_stack().is_err() {
            return;
        }
        let width = query.types.len();
        debug_assert!(
            query.columns.is_empty() || query.columns.len() == width,
            "a query describes {} columns and returns {width}",
            query.columns.len()
        );
        debug_assert!(
            // One variable may be a row.
            query.into.len() <= 1 || query.into.len() == width,
            "INTO has another number of variables than the query has columns"
        );
        debug_assert!(
            !query.limit.with_ties || query.limit.count.is_some(),
            "WITH TIES belongs to a LIMIT with a number of rows"
        );
        debug_assert!(
            query.limit.offset.is_none() || query.limit.count.is_some(),
            "an OFFSET without a number of rows would be ignored"
        );
        let nothing = Visible::default();
        for limit in [&query.limit.count, &query.limit.offset].into_iter().flatten() {
            self.expr(limit, &nothing);
        }
        for order in &query.order {
            match &order.by {
                OrderBy::Item(n) => {
                    debug_assert!(*n < width, "ORDER BY refers to column {n} of {width}");
                }
                OrderBy::Expr(_) => debug_assert!(
                    matches!(query.body, Body::Select(_)),
                    "only a SELECT can be sorted by what it does not return"
                ),
            }
        }
        match &query.body {
            Body::Select(select) => self.select(query, select, outer),
            Body::Set(set) => {
                debug_assert!(!set.rest.is_empty(), "a set operation without an operator");
                let operands = set.rest.iter().map(|operand| &operand.query);
                for operand in std::iter::once(&set.first).chain(operands) {
                    debug_assert_eq!(
                        operand.types.len(),
                        width,
                        "an operand of a set operation has another width"
                    );
                    debug_assert!(operand.into.is_empty(), "INTO belongs to the whole statement");
                    self.query(operand, outer);
                }
            }
            Body::Values(rows) => {
                for row in rows {
                    debug_assert_eq!(row.len(), width, "a row of VALUES has another width");
                    row.iter().for_each(|expr| self.expr(expr, outer));
                }
            }
            Body::Nested(inner) => {
                debug_assert_eq!(inner.types.len(), width, "a query in parentheses has another width");
                debug_assert!(inner.into.is_empty(), "INTO belongs to the whole statement");
                self.query(inner, outer);
            }
        }
    }

    fn select(&self, query: &Query, select: &Select, outer: &Visible<'_>) {
        debug_assert_eq!(
            select.items.len(),
            query.types.len(),
            "items and types of a SELECT differ in number"
        );
        let mut here = Visible::within(outer);
        if let Some(from) = &select.from {
            from.tables().into_iter().for_each(|table| self.bring_table(table, &mut here));
            self.from(from, &here, outer);
        }
        select.conditions.iter().for_each(|condition| self.expr(condition, &here));
        let mut above = Visible::within(&here);
        if let Some(group) = &select.group {
            self.group(group, &here, &mut above);
        }
        if let Some(having) = &select.having {
            self.expr(having, &above);
        }
        let mut windowed = Visible::within(&above);
        for window in &select.windows {
            self.window(window, &above);
            debug_assert!(!above.has(window.column), "a window function has the number of a column below it");
            windowed.bring(window.column, 1);
        }
        debug_assert!(
            select.assigned.is_empty() || select.group.is_none(),
            "rows of a grouping cannot be assigned to"
        );
        for assigned in &select.assigned {
            self.expr(&assigned.value, &windowed);
            if let Some(to) = &assigned.seen_as {
                debug_assert!(
                    to.column < to.table.columns.len(),
                    "an assignment to a column that does not exist"
                );
                debug_assert!(here.has(to.number), "an assignment to a column of no table in FROM");
            }
            windowed.bring(assigned.column, 1);
        }
        select.items.iter().for_each(|item| self.expr(item, &windowed));
        for order in &query.order {
            if let OrderBy::Expr(expr) = &order.by {
                self.expr(expr, &windowed);
            }
        }
    }

    fn group(&self, group: &Group, here: &Visible<'_>, above: &mut Visible<'_>) {
        debug_assert!(
            group.explicit || group.keys.is_empty(),
            "an aggregation without GROUP BY has a single group, so it has no keys"
        );
        debug_assert!(!group.rollup || group.explicit, "ROLLUP without GROUP BY");
        debug_assert!(
            group.explicit || !group.aggregates.is_empty(),
            "a grouping without GROUP BY and without aggregates would return a row for no rows"
        );
        debug_assert_eq!(
            group.descending.len(),
            group.keys.len(),
            "directions and keys of GROUP BY differ in number"
        );
        // Keys, and arguments of aggregates, are evaluated before the aggregates have values.
        group.keys.iter().for_each(|key| self.expr(key, here));
        above.bring(group.first_key, group.keys.len());
        for collected in &group.aggregates {
            collected.aggregate.args.iter().for_each(|arg| self.expr(arg, here));
            collected.aggregate.options.order.iter().for_each(|key| self.expr(&key.expr, here));
            debug_assert!(
                !here.adds_own(collected.column),
                "an aggregate has the number of a table's column"
            );
            above.bring(collected.column, 1);
        }
    }

    fn window(&self, window: &WindowUse, above: &Visible<'_>) {
        window.each(&mut |expr| self.expr(expr, above));
        let Frame { start, end, unit } = &window.call.frame;
        debug_assert!(
            !matches!(start, FrameBound::UnboundedFollowing)
                && !matches!(end, FrameBound::UnboundedPreceding),
            "a window frame that contains no row of any partition"
        );
        let is_distance =
            |bound: &FrameBound| matches!(bound, FrameBound::Preceding(_) | FrameBound::Following(_));
        debug_assert!(
            *unit == FrameUnit::Rows || !(is_distance(start) || is_distance(end)) || window.order.len() == 1,
            "a distance in values needs a single sort key"
        );
        let needs_order = matches!(
            window.call.function,
            WindowFunction::Rank
                | WindowFunction::DenseRank
                | WindowFunction::PercentRank
                | WindowFunction::CumeDist
                | WindowFunction::Lag { .. }
        );
        debug_assert!(!needs_order || !window.order.is_empty(), "a rank without an order");
    }

    /// Checks a table of FROM and adds its columns.
    fn bring_table(&self, table: &FromTable, here: &mut Visible<'_>) {
        here.bring(table.first, table.width);
        if let Some(key) = table.key {
            debug_assert!(
                matches!(table.source, Source::Base { .. }),
                "only rows of a base table have keys to change them by"
            );
            here.bring(key, 1);
        }
        debug_assert!(
            table.view.is_none() || matches!(table.source, Source::Derived(_)),
            "a view is read as a query"
        );
        let width = match &table.source {
            Source::Base { table: base, allowed, .. } => {
                debug_assert!(allowed.is_sorted_by(|a, b| a < b), "an index is allowed twice");
                let is_usable = |n: &usize| base.indexes.get(*n).is_some_and(|index| !index.kind.has_words());
                debug_assert!(allowed.iter().all(is_usable), "an allowed index has no ordered entries");
                base.columns.len()
            }
            Source::Virtual(found) => found.columns().len(),
            Source::Derived(query) => {
                debug_assert_eq!(
                    query.first_column, table.first,
                    "a derived table has other numbers than its query"
                );
                query.types.len()
            }
            Source::Common(number) => {
                debug_assert!(*number < self.common.len(), "a common table expression without a number");
                self.common[*number].seed.types.len()
            }
            Source::Series { first, last, step } => {
                debug_assert!(*step != 0 && (*step > 0) == (first <= last), "a series that does not end");
                1
            }
            Source::Json { table, .. } => table.width,
        };
        debug_assert_eq!(table.width, width, "table {} has another width than its source", table.name);
    }

    /// Checks the expressions of FROM. ON reads the tables of its own join only.
    fn from(&self, from: &From, here: &Visible<'_>, outer: &Visible<'_>) {
        match from {
            From::Table(table) => match &table.source {
                // A derived table reads no column of the queries around it.
                Source::Derived(query) => self.query(query, &Visible::default()),
                Source::Json { document, .. } => self.expr(document, here),
                Source::Base { .. } | Source::Virtual(_) | Source::Common(_) | Source::Series { .. } => {}
            },
            From::Join(join) => {
                debug_assert!(!(join.outer && join.keep_order), "an outer join has one order anyway");
                let mut own = Visible::within(outer);
                let tables = join.left.tables().into_iter().chain(join.right.tables());
                tables.for_each(|table| own.bring(table.first, table.width));
                join.on.iter().for_each(|condition| self.expr(condition, &own));
                self.from(&join.left, here, outer);
                self.from(&join.right, here, outer);
            }
        }
    }

    fn expr(&self, expr: &Expr, visible: &Visible<'_>) {
        let mut asked = Vec::new();
        expr.walk(&mut |node| {
            match node {
                Expr::Column(column) => debug_assert!(
                    is_of_changed_row(column.ordinal) || visible.has(column.ordinal),
                    "no table of its block brings column {} ({})",
                    column.ordinal,
                    column.name
                ),
                Expr::Outer(_) => {
                    debug_assert!(false, "a slot of the frame in a query that is not planned yet")
                }
                Expr::Subquery(subquery) => {
                    debug_assert!(subquery.id < self.subqueries.len(), "a subquery that was not stored");
                    debug_assert!(subquery.outer.is_empty(), "a subquery was planned before its query");
                    let width = self.subqueries[subquery.id].types.len();
                    match &subquery.test {
                        SubqueryTest::Column(n) => {
                            debug_assert!(*n < width, "column {n} of a subquery with {width} columns");
                        }
                        SubqueryTest::Exists => {}
                        SubqueryTest::Quantified { operand, .. } => {
                            let compared = if let Expr::Row(parts) = operand { parts.len() } else { 1 };
                            debug_assert_eq!(
                                compared, width,
                                "a subquery is compared with a row of another width"
                            );
                        }
                    }
                    asked.push(subquery.id);
                }
                _ => {}
            }
            true
        });
        for id in asked {
            if !std::mem::replace(&mut self.seen.borrow_mut()[id], true) {
                self.query(&self.subqueries[id], visible);
            }
        }
    }
}
