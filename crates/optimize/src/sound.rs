//! Invariants of plans. Builds with debug assertions check each plan before it is used; a violation is a
//! defect of the optimizer, never of the statement.
//!
//! # Invariants
//! - An expression reads positions of its input row only; what is evaluated once reads no row.
//! - Slots of the frame, subqueries and common table expressions exist.
//! - The inputs of a set operation have the width of its result.
//! - A scan's filter contains no subquery, its spans fit the index, and what it reads exists.
//! - Estimates are finite and not negative.

use std::ops::Bound;

use cohort_expr::Expr;
use cohort_types::{Columns, check_stack};

use crate::physical::{
    Access, AggregateNode, Extension, Join, JoinKind, JoinMethod, LimitCount, Node, Plan, ReadMode, Scan,
    Span, Spans, WindowNode,
};

/// Checks the invariants of a plan. Does nothing without debug assertions.
pub(crate) fn check_plan(plan: &Plan) {
    if !cfg!(debug_assertions) {
        return;
    }
    let check = Check { plan };
    if let Some(width) = check.node(&plan.root) {
        debug_assert!(width >= plan.width, "a plan returns {width} columns of {}", plan.width);
    }
    for subquery in &plan.subqueries {
        if let Some(width) = check.node(&subquery.root) {
            debug_assert_eq!(
                width, subquery.width,
                "a subquery returns columns that its expression does not know"
            );
        }
        debug_assert!(
            subquery.reads.iter().all(|slot| *slot < plan.frame),
            "a subquery reads no slot of the frame"
        );
    }
    for common in &plan.common {
        let seed = check.node(&common.seed);
        let Some(step) = &common.step else { continue };
        if let (Some(seed), Some(width)) = (seed, check.node(&step.node)) {
            debug_assert_eq!(width, seed, "a recursive part returns other columns than its seed");
            debug_assert!(
                step.distinct_by.iter().all(|(n, _)| *n < seed),
                "a row is identified by no column of it"
            );
        }
        debug_assert!(!step.distinct || !step.distinct_by.is_empty(), "no two rows of a recursion differ");
    }
    let slots: Vec<usize> = plan.given.iter().map(|(_, slot)| *slot).collect();
    debug_assert!(slots.iter().all(|slot| *slot < plan.frame), "a changed row is put outside of the frame");
    debug_assert!(
        (1..slots.len()).all(|n| !slots[..n].contains(&slots[n])),
        "two columns of a changed row share a slot"
    );
}

/// Checks an estimate: NaN would make every comparison of costs false, and the choice arbitrary.
pub(crate) fn check_estimate(rows: f64, cost: f64) {
    debug_assert!(rows.is_finite() && rows >= 0.0, "an estimate of {rows} rows");
    debug_assert!(!cost.is_nan() && cost >= 0.0, "a cost of {cost}");
}

struct Check<'p> {
    plan: &'p Plan,
}

impl Check<'_> {
    /// Checks a node and those below. Returns its width, or `None` if it returns no rows of any width.
    fn node(&self, node: &Node) -> Option<usize> {
        // What is nested too deeply is rejected elsewhere.
        check_stack().ok()?;
        match node {
            Node::Unit => Some(0),
            Node::Empty => None,
            Node::Values(rows) => {
                let width = rows.first().map_or(0, Vec::len);
                for row in rows {
                    debug_assert_eq!(row.len(), width, "rows of VALUES have several widths");
                    row.iter().for_each(|expr| self.expr(expr, 0));
                }
                (!rows.is_empty()).then_some(width)
            }
            Node::Scan(scan) => Some(self.scan(scan, 0)),
            Node::Virtual(scan) => {
                debug_assert!(
                    scan.columns.is_sorted_by(|a, b| a < b),
                    "a column of a virtual table is read twice"
                );
                if let Some(filter) = &scan.filter {
                    debug_assert!(
                        !filter.calls_back(),
                        "the session is called while a virtual table is computed"
                    );
                }
                Some(scan.columns.len())
            }
            Node::Common { number } => {
                debug_assert!(
                    *number < self.plan.common.len(),
                    "a common table expression that is not planned"
                );
                width_of(&self.plan.common[*number].seed)
            }
            Node::Filter { input, condition } => {
                let width = self.node(input)?;
                self.expr(condition, width);
                Some(width)
            }
            Node::OneTimeFilter { input, condition } => {
                self.expr(condition, 0);
                debug_assert!(
                    !condition.is_volatile(),
                    "a volatile condition is evaluated once for all rows"
                );
                self.node(input)
            }
            Node::Convert { input, from, to } => {
                debug_assert_eq!(from.len(), to.len(), "a conversion changes the number of columns");
                let width = self.node(input)?;
                debug_assert_eq!(width, from.len(), "a conversion leaves out columns of its input");
                Some(to.len())
            }
            Node::Project { input, items, kept } => {
                let width = self.node(input);
                debug_assert!(
                    kept.is_empty() || kept.len() == items.len(),
                    "digits of some items are undecided"
                );
                debug_assert!(
                    kept.is_empty() || kept.contains(&true),
                    "a projection keeps no digits, at a cost"
                );
                items.iter().for_each(|item| self.expr(item, width.unwrap_or(usize::MAX)));
                Some(items.len())
            }
            Node::Extend { input, more } => Some(self.extend(self.node(input)?, more)),
            Node::Join(join) => self.join(join),
            Node::Aggregate(node) => Some(self.aggregate(node)),
            Node::Window(node) => self.window(node),
            Node::Sort(sort) => {
                let width = self.node(&sort.input)?;
                debug_assert!(!sort.keys.is_empty(), "a sort without keys costs and does nothing");
                sort.keys.iter().for_each(|(key, _)| self.expr(key, width));
                sort.limit.iter().for_each(|limit| self.limit(limit));
                debug_assert!(
                    sort.limit.as_ref().is_none_or(|limit| limit.count.is_some()),
                    "a sort is bounded by an offset alone"
                );
                Some(width)
            }
            Node::Limit(node) => {
                let width = self.node(&node.input)?;
                self.limit(&node.limit);
                node.ties.iter().flatten().for_each(|(key, _)| self.expr(key, width));
                debug_assert!(
                    node.count_all || node.limit.count.is_some(),
                    "a LIMIT that neither limits nor counts"
                );
                Some(width)
            }
            Node::Distinct { input, collations } => {
                let width = self.node(input)?;
                debug_assert!(collations.len() <= width, "duplicates are found by columns that do not exist");
                Some(width)
            }
            Node::Concat(inputs) => {
                debug_assert!(!inputs.is_empty(), "a concatenation of nothing has no width");
                self.alike(inputs.iter())
            }
            Node::SetOperation(node) => {
                let width = self.alike([&node.left, &node.right].into_iter())?;
                debug_assert_eq!(
                    node.collations.len(),
                    width,
                    "a set operation compares some of its columns"
                );
                Some(width)
            }
            Node::SetChain(chain) => {
                debug_assert!(
                    chain.inputs.first().is_some_and(|first| first.all),
                    "the first operand of a chain is combined with nothing"
                );
                let width = self.alike(chain.inputs.iter().map(|input| &input.node))?;
                debug_assert_eq!(
                    chain.collations.len(),
                    width,
                    "a set operation compares some of its columns"
                );
                Some(width)
            }
            Node::Series { first, last, step } => {
                debug_assert!(*step != 0 && (*step > 0) == (first <= last), "a series that does not end");
                Some(1)
            }
        }
    }

    /// Checks inputs that must have one width, and returns it.
    fn alike<'n>(&self, inputs: impl Iterator<Item = &'n Node>) -> Option<usize> {
        let widths: Vec<usize> = inputs.filter_map(|input| self.node(input)).collect();
        debug_assert!(
            widths.windows(2).all(|pair| pair[0] == pair[1]),
            "operands of several widths: {widths:?}"
        );
        widths.first().copied()
    }

    fn extend(&self, width: usize, more: &[Extension]) -> usize {
        for (n, extension) in more.iter().enumerate() {
            match extension {
                Extension::Value(expr) => self.expr(expr, width + n),
                Extension::Held { place, table, column } => {
                    debug_assert!(*place < width + n, "a value is converted before it is computed");
                    debug_assert!(*column < table.columns.len(), "a value is stored in no column");
                }
            }
        }
        width + more.len()
    }

    fn join(&self, join: &Join) -> Option<usize> {
        let left = self.node(&join.left)?;
        let right = match &join.method {
            JoinMethod::Lookup(scan) => self.scan(scan, left),
            JoinMethod::Hash { right, keys, right_width } => {
                debug_assert!(!keys.is_empty(), "a hash table without keys has one long chain");
                if let Some(width) = self.node(right) {
                    debug_assert_eq!(width, *right_width, "a hash join pads with another number of NULLs");
                }
                for key in keys {
                    self.expr(&key.left, left);
                    self.expr(&key.right, *right_width);
                    debug_assert!(!key.right.is_volatile(), "a key of a hash table changes while it is used");
                }
                *right_width
            }
            JoinMethod::Loop { right, right_width, gate } => {
                if let Some(width) = self.node(right) {
                    debug_assert_eq!(width, *right_width, "a nested loop pads with another number of NULLs");
                }
                gate.iter().for_each(|gate| self.expr(gate, left));
                *right_width
            }
            JoinMethod::Json(scan) => {
                self.expr(&scan.document, left);
                scan.table.width
            }
        };
        join.on.iter().for_each(|on| self.expr(on, left + right));
        Some(match join.kind {
            JoinKind::Inner | JoinKind::Left => left + right,
            JoinKind::Semi | JoinKind::Anti => left,
        })
    }

    fn aggregate(&self, node: &AggregateNode) -> usize {
        let width = self.node(&node.input).unwrap_or(usize::MAX);
        node.keys.iter().for_each(|(key, _)| self.expr(key, width));
        node.first.iter().for_each(|expr| self.expr(expr, width));
        for aggregate in &node.aggregates {
            aggregate.args.iter().for_each(|arg| self.expr(arg, width));
            aggregate.options.order.iter().for_each(|key| self.expr(&key.expr, width));
        }
        debug_assert!(
            node.is_grouped || node.keys.is_empty(),
            "an aggregation without GROUP BY returns a row for no rows, which has no keys"
        );
        debug_assert!(
            node.descending.is_empty() || (node.rollup && node.descending.len() == node.keys.len()),
            "directions of some keys are undecided"
        );
        debug_assert!(!node.rollup || !node.keys.is_empty(), "a rollup without keys has no summary rows");
        node.keys.len() + node.first.len() + node.aggregates.len()
    }

    fn window(&self, node: &WindowNode) -> Option<usize> {
        let width = self.node(&node.input)?;
        debug_assert!(!node.calls.is_empty(), "rows are sorted for no window function");
        node.partition.iter().for_each(|(expr, _)| self.expr(expr, width));
        node.order.iter().for_each(|(expr, _)| self.expr(expr, width));
        node.calls.iter().for_each(|call| call.each(&mut |expr| self.expr(expr, width)));
        Some(width + node.calls.len())
    }

    fn limit(&self, limit: &LimitCount) {
        [&limit.count, &limit.offset].into_iter().flatten().for_each(|expr| self.expr(expr, 0));
    }

    /// Checks a scan whose spans read a row of `left` columns, and returns its width.
    fn scan(&self, scan: &Scan, left: usize) -> usize {
        let columns = scan.table.columns.len();
        check_estimate(scan.rows, 0.0);
        debug_assert!(scan.columns.is_sorted_by(|a, b| a < b), "a column of {} is returned twice", scan.name);
        debug_assert!(scan.columns.iter().all(|n| *n < columns), "{} has no such column", scan.name);
        if let Columns::Some(read) = &scan.read {
            debug_assert!(read.is_sorted_by(|a, b| a < b), "columns to read are searched in order");
            debug_assert!(
                scan.columns.iter().all(|n| read.contains(n)),
                "{} returns a column that is not read: it would be NULL",
                scan.name
            );
            debug_assert!(scan.mode == ReadMode::Snapshot, "a row is locked and changed whole");
        }
        if let Some(filter) = &scan.filter {
            self.expr(filter, columns);
            debug_assert!(!filter.calls_back(), "the session is called while its scan holds the engine");
            let is_read = |n: &usize| match &scan.read {
                Columns::All => true,
                Columns::Some(read) => read.contains(n),
            };
            debug_assert!(
                filter.columns().iter().all(is_read),
                "a filter of {} sees NULL for a column",
                scan.name
            );
        }
        debug_assert!(
            !scan.with_key || matches!(scan.mode, ReadMode::LockExclusive(_)),
            "a row to change is not locked"
        );
        self.access(scan, &scan.access, left);
        scan.columns.len() + usize::from(scan.with_key)
    }

    fn access(&self, scan: &Scan, access: &Access, left: usize) {
        debug_assert!(access.index < scan.table.indexes.len(), "{} has no such index", scan.name);
        let index = &scan.table.indexes[access.index];
        let has_words = index.kind.has_words();
        match &access.spans {
            Spans::Full => debug_assert!(!has_words, "a FULLTEXT index has no rows to scan"),
            Spans::List(spans) => {
                debug_assert!(!has_words, "a FULLTEXT index has no range of values");
                debug_assert!(!access.reverse || access.is_for_order, "rows come backwards for no order");
                spans.iter().for_each(|span| self.span(span, index.columns.len(), left));
            }
            Spans::Words(search) => {
                debug_assert!(has_words, "words are searched in an index of values");
                debug_assert!(!access.is_for_order, "rows found by words come in no order of an index");
                self.expr(search, usize::MAX);
            }
        }
    }

    fn span(&self, span: &Span, parts: usize, left: usize) {
        debug_assert!(span.eq.len() <= parts, "a span of more parts than the index has");
        debug_assert!(span.is_of_keys() || span.eq.len() < parts, "a range of the part after the last one");
        debug_assert!(
            span.null_safe.checked_shr(span.eq.len() as u32).unwrap_or(0) == 0,
            "NULL is equal in a part without a value"
        );
        debug_assert!(
            span.like.is_none() || matches!((&span.lower, &span.upper), (Bound::Unbounded, Bound::Unbounded)),
            "a pattern and bounds: one of them would be ignored"
        );
        span.exprs().for_each(|expr| self.expr(expr, left));
    }

    /// Checks an expression over a row of `width` columns.
    fn expr(&self, expr: &Expr, width: usize) {
        expr.walk(&mut |node| {
            match node {
                Expr::Column(column) => debug_assert!(
                    column.ordinal < width,
                    "position {} of a row of {width} columns ({})",
                    column.ordinal,
                    column.name
                ),
                Expr::Outer(outer) => {
                    debug_assert!(outer.slot < self.plan.frame, "{} has no slot in the frame", outer.name);
                }
                Expr::Subquery(subquery) => {
                    debug_assert!(subquery.id < self.plan.subqueries.len(), "a subquery that is not planned");
                    for (slot, value) in &subquery.outer {
                        debug_assert!(
                            *slot < self.plan.frame,
                            "a value for a subquery has no slot in the frame"
                        );
                        self.expr(value, width);
                    }
                    let given = &self.plan.subqueries[subquery.id];
                    debug_assert!(
                        !matches!(given.root, Node::Empty) || given.width > 0,
                        "an expression asks a subquery that was left out of the plan"
                    );
                }
                _ => {}
            }
            true
        });
    }
}

/// Returns the width of a node's rows, or `None` if it returns no rows of any width.
fn width_of(node: &Node) -> Option<usize> {
    Some(match node {
        Node::Empty => return None,
        Node::Project { items, .. } => items.len(),
        Node::Convert { to, .. } => to.len(),
        Node::Filter { input, .. } | Node::OneTimeFilter { input, .. } | Node::Distinct { input, .. } => {
            return width_of(input);
        }
        Node::Sort(sort) => return width_of(&sort.input),
        Node::Limit(limit) => return width_of(&limit.input),
        Node::Concat(inputs) => return inputs.iter().find_map(width_of),
        Node::SetOperation(node) => return width_of(&node.left),
        Node::SetChain(chain) => return chain.inputs.iter().find_map(|input| width_of(&input.node)),
        Node::Values(rows) => rows.first()?.len(),
        // The queries of common table expressions end with a projection or with VALUES.
        _ => return None,
    })
}
