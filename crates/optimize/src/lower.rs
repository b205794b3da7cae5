//! Lowering: converts query blocks to operators.
//!
//! A part of the plan is a node with its *layout*: the column number at each position of its row. *Placing*
//! an expression above a part replaces columns of the layout by positions. All other columns belong to an
//! outer query and become slots of the frame. A subquery is lowered when the first expression that uses it is
//! placed.

use std::collections::HashMap;

use cohort_expr::{Aggregate, Expr, ExprType, SortKey, TypeClass};
use cohort_plan::conjuncts::all_of;
use cohort_plan::{
    Assigned, AssignedTo, Body, CommonTable, From, FromTable, Group, Limit, Operand, OrderBy, Query, Select,
    SetOperation, WindowCall, WindowUse, check_statement, is_of_changed_row,
};
use cohort_sql::ast;
use cohort_types::{SqlError, SqlResult, check_stack};

use crate::estimate::{Statistics, UNKNOWN_ROWS, selectivity};
use crate::physical::{
    AggregateNode, ChainInput, CommonPlan, Extension, LimitCount, LimitNode, Node, PartId, Parts, Plan,
    ReadMode, RecursiveStep, SetChain, Sort, Span, SubqueryPlan, WindowNode,
};
use crate::sound::{check_estimate, check_plan};
use crate::unordered::forget_order;
use crate::visit::{ColumnSet, Statement, each_expr};

/// Maximum nesting of set operators that return rows before they have read all input. The smallest thread
/// stack has room for that many.
const NESTED_MAX: usize = 8;

/// Plans a query with its statement's subqueries and common table expressions.
pub fn optimize(
    query: &Query,
    subqueries: &[Query],
    common: &[CommonTable],
    stats: &dyn Statistics,
) -> SqlResult<Plan> {
    check_statement(query, subqueries, common);
    let statement = Statement::new(subqueries, common);
    let mut needed = ColumnSet::new();
    let mut note = |expr: &Expr| needed.extend(expr.columns());
    each_expr(query, &mut note);
    subqueries.iter().for_each(|query| each_expr(query, &mut note));
    for table in common {
        each_expr(&table.seed, &mut note);
        table.step.iter().for_each(|step| each_expr(&step.query, &mut note));
    }
    let mut lowering = Lowering {
        statement,
        stats,
        needed,
        slots: HashMap::new(),
        subqueries: subqueries.iter().map(|_| None).collect(),
        common: Vec::new(),
        common_numbers: HashMap::new(),
        reads: PartId::default(),
    };
    let mut root = lowering.query(query)?.node;
    mark_outermost_limit(&mut root);
    let missing = || SqlError::not_supported("this subquery");
    // A subquery that no expression uses any more is never run.
    let unused = || SubqueryPlan {
        root: Node::Empty,
        width: 0,
        reads: Vec::new(),
        is_volatile: false,
        keeps_digits: false,
    };
    let subqueries = lowering.subqueries.into_iter().map(|plan| plan.unwrap_or_else(unused)).collect();
    let common =
        lowering.common.into_iter().map(|plan| plan.ok_or_else(missing)).collect::<SqlResult<_>>()?;
    let slots = lowering.slots;
    let frame = slots.len();
    let given = slots.into_iter().filter(|(column, _)| is_of_changed_row(*column)).collect();
    let (width, parts) = (query.types.len(), Parts::default());
    let mut plan = Plan { root, width, subqueries, common, frame, given, parts };
    plan.number(lowering.reads.0);
    check_plan(&plan);
    Ok(plan)
}

/// Marks the LIMIT of the statement itself, which reports the number of rows.
fn mark_outermost_limit(node: &mut Node) {
    match node {
        Node::Limit(limit) => limit.reports_found = true,
        Node::Project { input, .. } | Node::Extend { input, .. } => mark_outermost_limit(input),
        _ => {}
    }
}

/// A part of the plan under construction.
pub(crate) struct Part {
    pub node: Node,
    /// The column number at each position of its row.
    pub layout: Vec<usize>,
    /// Estimated number of rows.
    pub rows: f64,
}

impl Part {
    /// Returns a part with one row and no columns.
    pub(crate) fn unit() -> Part {
        Part { node: Node::Unit, layout: Vec::new(), rows: 1.0 }
    }
}

/// Properties common to all tables of a SELECT.
#[derive(Clone, Copy)]
pub(crate) struct SelectContext {
    pub block: u32,
    pub mode: ReadMode,
    /// STRAIGHT_JOIN.
    pub keep_order: bool,
}

pub(crate) struct Lowering<'o> {
    pub(crate) statement: Statement<'o>,
    pub(crate) stats: &'o dyn Statistics,
    /// Columns that any expression of the statement names.
    pub(crate) needed: ColumnSet,
    /// Frame slots by column.
    slots: HashMap<usize, usize>,
    subqueries: Vec<Option<SubqueryPlan>>,
    common: Vec<Option<CommonPlan>>,
    /// Positions in `common` of the stored common table expressions.
    common_numbers: HashMap<usize, usize>,
    /// Number of the reads of the next table.
    pub(crate) reads: PartId,
}

impl Lowering<'_> {
    /// Plans a query. Its row starts with the result columns, under the query's column numbers.
    pub(crate) fn query(&mut self, query: &Query) -> SqlResult<Part> {
        check_stack()?;
        self.stats.check_interrupt()?;
        let mut part = match &query.body {
            Body::Select(select) => return self.select(query, select),
            Body::Set(set) => self.set_operation(query, set)?,
            Body::Values(rows) => self.values(query, rows)?,
            Body::Nested(inner) => self.narrow_query(inner)?,
        };
        part.layout = (query.first_column..query.first_column + query.types.len()).collect();
        if !query.order.is_empty() {
            let mut keys = Vec::with_capacity(query.order.len());
            for order in &query.order {
                let OrderBy::Item(n) = order.by else {
                    return Err(SqlError::not_supported("ORDER BY an expression of a set operation"));
                };
                keys.push((Expr::column(n, query.types[n].clone(), ""), order.key));
            }
            part = self.sort(part, keys, query)?;
        }
        self.limit(part, query)
    }

    fn values(&mut self, query: &Query, rows: &[Vec<Expr>]) -> SqlResult<Part> {
        let count = rows.len() as f64;
        let (mut inputs, mut alike) = (Vec::new(), Vec::new());
        for row in rows {
            let from: Vec<_> = row.iter().map(Expr::ty).collect();
            let shown = |expr: &Expr| match query.keeps_digits || expr.ty().class() != TypeClass::Decimal {
                true => expr.clone(),
                false => expr.clone().rounded_to_type(),
            };
            let row: Vec<Expr> = row.iter().map(|e| self.place(shown(e), &[])).collect::<SqlResult<_>>()?;
            // Values to be stored are not converted here.
            if from == query.types || query.keeps_digits {
                alike.push(row);
                continue;
            }
            // A row of other types is converted to the result types. The order of rows is kept.
            if !alike.is_empty() {
                inputs.push(Node::Values(std::mem::take(&mut alike)));
            }
            let input = Box::new(Node::Values(vec![row]));
            inputs.push(Node::Convert { input, from, to: query.types.clone() });
        }
        let node = match inputs.is_empty() {
            true => Node::Values(alike),
            false => {
                inputs.extend((!alike.is_empty()).then_some(Node::Values(alike)));
                Node::Concat(inputs)
            }
        };
        Ok(Part { node, layout: Vec::new(), rows: count })
    }

    /// Plans a query whose row has only the result columns. Removes those added for ORDER BY.
    pub(crate) fn narrow_query(&mut self, query: &Query) -> SqlResult<Part> {
        let mut part = self.query(query)?;
        if part.layout.len() > query.types.len() {
            let item = |(n, ty): (usize, &cohort_expr::ExprType)| Expr::column(n, ty.clone(), "");
            let items = query.types.iter().enumerate().map(item).collect();
            let kept = if query.keeps_digits { vec![true; query.types.len()] } else { Vec::new() };
            part.node = Node::Project { input: Box::new(part.node), items, kept };
            part.layout.truncate(query.types.len());
        }
        debug_assert_eq!(
            part.layout.len(),
            query.types.len(),
            "a query returns other columns than it declares"
        );
        Ok(part)
    }

    /// Plans an operand of a set operation and converts it to the result types.
    fn operand(&mut self, operand: &Query, result: &Query) -> SqlResult<Node> {
        if operand.types == result.types {
            return Ok(self.narrow_query(operand)?.node);
        }
        // The conversion rounds, so the operand keeps its digits.
        let mut kept = operand.clone();
        kept.keep_digits();
        let node = self.narrow_query(&kept)?.node;
        Ok(Node::Convert { input: Box::new(node), from: operand.types.clone(), to: result.types.clone() })
    }

    fn set_operation(&mut self, query: &Query, set: &SetOperation) -> SqlResult<Part> {
        let is_union_all = |operand: &Operand| operand.op == ast::SetOperator::Union && operand.all;
        // A final sequence of UNION ALL only concatenates rows.
        let plain = set.rest.iter().rev().take_while(|operand| is_union_all(operand)).count();
        let (before, plain) = set.rest.split_at(set.rest.len() - plain);
        debug_assert!(before.last().is_none_or(|last| !is_union_all(last)), "UNION ALL removes duplicates");
        let runs: Vec<&[Operand]> = before.chunk_by(one_operator).collect();
        let levels = |run: &&[Operand]| if run[0].op == ast::SetOperator::Intersect { run.len() } else { 1 };
        let mut node = self.operand(&set.first, query)?;
        if runs.iter().map(levels).sum::<usize>() > NESTED_MAX {
            node = self.set_chain(query, node, before)?;
        } else {
            for run in runs {
                node = self.run_of_operations(query, node, run)?;
            }
        }
        let rows = UNKNOWN_ROWS * (plain.len() + 1) as f64;
        if !plain.is_empty() {
            let operands = plain.iter().map(|operand| self.operand(&operand.query, query));
            node = Node::Concat(std::iter::once(Ok(node)).chain(operands).collect::<SqlResult<_>>()?);
        }
        Ok(Part { node, layout: Vec::new(), rows })
    }

    /// Returns `left` combined with operands of one operator.
    fn run_of_operations(&mut self, query: &Query, left: Node, run: &[Operand]) -> SqlResult<Node> {
        let (collations, op) = (query.collations(), run[0].op);
        if op == ast::SetOperator::Union {
            let mut inputs = vec![left];
            // Duplicates are removed up to the last DISTINCT.
            let last_distinct = run.iter().rposition(|operand| !operand.all);
            for (n, operand) in run.iter().enumerate() {
                inputs.push(self.operand(&operand.query, query)?);
                if last_distinct == Some(n) {
                    let input = Box::new(Node::Concat(std::mem::take(&mut inputs)));
                    inputs.push(Node::Distinct { input, collations: collations.clone() });
                }
            }
            return Ok(if inputs.len() == 1 { inputs.remove(0) } else { Node::Concat(inputs) });
        }
        let (wants_common, all) = (op == ast::SetOperator::Intersect, run[0].all);
        let inputs = run.iter().map(|operand| self.operand(&operand.query, query));
        let inputs = inputs.collect::<SqlResult<Vec<Node>>>()?;
        let pair = |left: Node, right: Node| {
            let collations = collations.clone();
            let node = crate::physical::SetOperation { left, right, wants_common, all, collations };
            Node::SetOperation(Box::new(node))
        };
        Ok(match wants_common {
            true => inputs.into_iter().fold(left, pair),
            false => pair(left, Node::Concat(inputs)),
        })
    }

    /// Returns `left` combined with operands of several operators, as one chain.
    fn set_chain(&mut self, query: &Query, left: Node, operands: &[Operand]) -> SqlResult<Node> {
        let mut inputs = Vec::with_capacity(operands.len() + 1);
        inputs.push(ChainInput { op: ast::SetOperator::Union, all: true, node: left });
        for operand in operands {
            let node = self.operand(&operand.query, query)?;
            inputs.push(ChainInput { op: operand.op, all: operand.all, node });
        }
        Ok(Node::SetChain(Box::new(SetChain { inputs, collations: query.collations() })))
    }

    fn select(&mut self, query: &Query, select: &Select) -> SqlResult<Part> {
        let context = SelectContext {
            block: select.block,
            mode: read_mode(query.locking)?,
            keep_order: select.straight_join,
        };
        let (gates, conditions) = self.gates(select);
        let mut part = match &select.from {
            Some(from) => self.join(from, conditions, context)?,
            None => self.filter(Part::unit(), conditions)?,
        };
        if let Some(condition) = all_of(gates) {
            let condition = self.place(condition, &[])?;
            part.node = Node::OneTimeFilter { input: Box::new(part.node), condition };
        }
        let mut above = Above {
            items: select.items.clone(),
            order: query.order.iter().map(|order| (self.order_expr(select, &order.by), order.key)).collect(),
            having: select.having.clone(),
            windows: select.windows.clone(),
        };
        if let Some(group) = &select.group {
            let in_order = group.in_key_order && select.windows.is_empty();
            part = self.aggregate(part, group, &mut above, in_order)?;
        }
        if let Some(having) = above.having.take() {
            part = self.filter(part, cohort_plan::conjuncts::split(having))?;
        }
        for (n, window) in above.windows.iter().enumerate() {
            let alike =
                |other: &WindowUse| other.partition == window.partition && other.order == window.order;
            // One operator evaluates all functions over the same window. A window with volatile sort keys
            // equals no other window, not even itself.
            if !above.windows[..n].iter().any(alike) {
                let others = above.windows[n + 1..].iter().filter(|w| alike(w));
                let calls: Vec<&WindowUse> = std::iter::once(window).chain(others).collect();
                part = self.window(part, &calls)?;
            }
        }
        self.output(part, query, select, above)
    }

    /// Splits the conditions into those that read no table of the SELECT, and the others.
    fn gates(&self, select: &Select) -> (Vec<Expr>, Vec<Expr>) {
        let tables = select.from.as_ref().map(From::tables).unwrap_or_default();
        let is_here = |column: &usize| tables.iter().any(|t| (t.first..t.first + t.width).contains(column));
        let is_gate = |expr: &Expr| {
            !self.statement.is_volatile_expr(expr) && !self.statement.columns(expr).iter().any(is_here)
        };
        select.conditions.iter().cloned().partition(is_gate)
    }

    fn order_expr(&self, select: &Select, by: &OrderBy) -> SortedBy {
        match by {
            OrderBy::Item(n) => SortedBy::Item(*n),
            OrderBy::Expr(expr) => match select.items.iter().position(|item| item == expr) {
                Some(n) => SortedBy::Item(n),
                None => SortedBy::Expr(expr.clone()),
            },
        }
    }

    fn aggregate(&mut self, part: Part, group: &Group, above: &mut Above, in_order: bool) -> SqlResult<Part> {
        if group.rollup {
            above.each(&mut |expr| *expr = replace_keys(std::mem::replace(expr, Expr::null()), group));
        }
        let mut read = ColumnSet::new();
        above.each(&mut |expr| read.extend(self.statement.columns(expr)));
        let mut layout = Vec::new();
        for (n, key) in group.keys.iter().enumerate() {
            layout.push(match key {
                Expr::Column(column) if !group.rollup => column.ordinal,
                _ => group.first_key + n,
            });
        }
        let first_columns: Vec<usize> =
            part.layout.iter().copied().filter(|c| read.contains(c) && !layout.contains(c)).collect();
        layout.extend(&first_columns);
        layout.extend(group.aggregates.iter().map(|collected| collected.column));
        let mut keys = Vec::with_capacity(group.keys.len());
        for key in &group.keys {
            let collation = key.ty().collation;
            keys.push((self.place(key.clone(), &part.layout)?, collation));
        }
        let place_of = |column: &usize| part.layout.iter().position(|c| c == column).expect("filtered above");
        let first = first_columns.iter().map(|column| carried(place_of(column))).collect();
        let mut aggregates = Vec::with_capacity(group.aggregates.len());
        for collected in &group.aggregates {
            aggregates.push(self.place_aggregate(&collected.aggregate, &part.layout)?);
        }
        debug_assert_eq!(
            layout.len(),
            keys.len() + first_columns.len() + aggregates.len(),
            "a grouping returns other columns than its layout names"
        );
        let rows = if group.explicit { (part.rows / 3.0).max(1.0) } else { 1.0 };
        let mut node = AggregateNode {
            input: part.node,
            keys,
            is_grouped: group.explicit,
            first,
            aggregates,
            rollup: group.rollup,
            descending: if group.rollup { group.descending.clone() } else { Vec::new() },
            ordered: in_order,
        };
        forget_order(&mut node);
        Ok(Part { node: Node::Aggregate(Box::new(node)), layout, rows })
    }

    fn place_aggregate(&mut self, aggregate: &Aggregate, layout: &[usize]) -> SqlResult<Aggregate> {
        let mut placed = aggregate.clone();
        for arg in &mut placed.args {
            *arg = self.place(std::mem::replace(arg, Expr::null()), layout)?;
        }
        for key in &mut placed.options.order {
            key.expr = self.place(std::mem::replace(&mut key.expr, Expr::null()), layout)?;
        }
        Ok(placed)
    }

    fn window(&mut self, part: Part, uses: &[&WindowUse]) -> SqlResult<Part> {
        let mut layout = part.layout.clone();
        let (mut partition, mut order, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        for (expr, collation) in &uses[0].partition {
            partition.push((self.place(expr.clone(), &part.layout)?, *collation));
        }
        for (expr, key) in &uses[0].order {
            order.push((self.place(expr.clone(), &part.layout)?, *key));
        }
        for window in uses {
            layout.push(window.column);
            calls.push(self.place_call(&window.call, &part.layout)?);
        }
        debug_assert_eq!(layout.len(), part.layout.len() + calls.len(), "a window function has no column");
        let node = WindowNode { input: part.node, partition, order, calls };
        Ok(Part { node: Node::Window(Box::new(node)), layout, rows: part.rows })
    }

    fn place_call(&mut self, call: &WindowCall, layout: &[usize]) -> SqlResult<WindowCall> {
        let mut placed = call.clone();
        let mut outcome = Ok(());
        placed.each_mut(&mut |expr| match self.place(std::mem::replace(expr, Expr::null()), layout) {
            Ok(found) => *expr = found,
            Err(error) => outcome = Err(error),
        });
        outcome.map(|()| placed)
    }

    /// Adds projection, DISTINCT, ORDER BY and LIMIT.
    fn output(&mut self, part: Part, query: &Query, select: &Select, above: Above) -> SqlResult<Part> {
        let width = above.items.len();
        let numbers: Vec<usize> = (query.first_column..query.first_column + width).collect();
        let costs = |expr: &Expr| expr.calls_back() || expr.is_volatile();
        let sorts_by_costly = above.order.iter().any(|(by, _)| match by {
            SortedBy::Item(n) => costs(&above.items[*n]),
            SortedBy::Expr(_) => false,
        });
        // Expensive values are computed only for the remaining rows.
        let costs_some = !select.assigned.is_empty() || above.items.iter().any(costs);
        let is_late = !select.distinct && !sorts_by_costly && costs_some;
        if is_late && (!above.order.is_empty() || query.limit.count.is_some()) {
            let mut part = part;
            if !above.order.is_empty() {
                let mut keys = Vec::with_capacity(above.order.len());
                for (by, key) in &above.order {
                    let expr = match by {
                        SortedBy::Item(n) => above.items[*n].clone(),
                        SortedBy::Expr(expr) => expr.clone(),
                    };
                    keys.push((self.place(expr, &part.layout)?, *key));
                }
                part = self.sort(part, keys, query)?;
            }
            let part = self.limit(part, query)?;
            let part = self.assign(part, &select.assigned)?;
            return self.project(part, above.items, query.digits_kept(), numbers);
        }
        let part = self.assign(part, &select.assigned)?;
        let kept = query.digits_kept();
        let mut items = above.items;
        let mut keys = Vec::with_capacity(above.order.len());
        for (by, key) in above.order {
            let n = match by {
                // Rows are sorted by the displayed value.
                SortedBy::Item(n) if kept.get(n) == Some(&true) => {
                    items.push(items[n].clone());
                    items.len() - 1
                }
                SortedBy::Item(n) => n,
                SortedBy::Expr(expr) => {
                    items.push(expr);
                    items.len() - 1
                }
            };
            keys.push((Expr::column(n, items[n].ty(), ""), key));
        }
        let mut numbers = numbers;
        numbers.resize(items.len(), usize::MAX);
        let mut part = self.project(part, items, kept, numbers)?;
        if select.distinct {
            let input = Box::new(part.node);
            part.node = Node::Distinct { input, collations: query.collations() };
        }
        if !keys.is_empty() {
            part = self.sort(part, keys, query)?;
        }
        self.limit(part, query)
    }

    /// Appends the values that an UPDATE assigns. If later assignments see a value, it takes the column's
    /// position in the layout.
    fn assign(&mut self, part: Part, assigned: &[Assigned]) -> SqlResult<Part> {
        if assigned.is_empty() {
            return Ok(part);
        }
        let Part { node, mut layout, rows } = part;
        let mut more = Vec::with_capacity(2 * assigned.len());
        for Assigned { column, value, seen_as } in assigned {
            more.push(Extension::Value(self.place(value.clone(), &layout)?));
            layout.push(*column);
            if let Some(AssignedTo { number, table, column }) = seen_as {
                let (place, table) = (layout.len() - 1, table.clone());
                more.push(Extension::Held { place, table, column: *column });
                layout.iter_mut().filter(|known| *known == number).for_each(|known| *known = usize::MAX);
                layout.push(*number);
            }
        }
        Ok(Part { node: Node::Extend { input: Box::new(node), more }, layout, rows })
    }

    fn project(
        &mut self,
        part: Part,
        items: Vec<Expr>,
        mut kept: Vec<bool>,
        layout: Vec<usize>,
    ) -> SqlResult<Part> {
        let items = items.into_iter().map(|e| self.place(e, &part.layout)).collect::<SqlResult<Vec<_>>>()?;
        if !kept.is_empty() {
            kept.resize(items.len(), false);
        }
        debug_assert_eq!(
            items.len(),
            layout.len(),
            "a projection returns other columns than its layout names"
        );
        check_estimate(part.rows, 0.0);
        let node = Node::Project { input: Box::new(part.node), items, kept };
        Ok(Part { node, layout, rows: part.rows })
    }

    fn sort(&mut self, part: Part, keys: Vec<(Expr, SortKey)>, query: &Query) -> SqlResult<Part> {
        let is_bounded = query.limit.count.is_some() && !query.count_all && !query.limit.with_ties;
        let limit = match is_bounded {
            true => Some(self.limit_count(&query.limit)?),
            false => None,
        };
        let node = Node::Sort(Box::new(Sort { input: part.node, keys, limit }));
        Ok(Part { node, ..part })
    }

    fn limit(&mut self, part: Part, query: &Query) -> SqlResult<Part> {
        if query.limit.count.is_none() && !query.count_all {
            return Ok(part);
        }
        let limit = self.limit_count(&query.limit)?;
        let ties = match &part.node {
            _ if !query.limit.with_ties => None,
            Node::Sort(sort) => Some(sort.keys.clone()),
            // A constant order: all rows tie.
            _ => Some(Vec::new()),
        };
        let node =
            LimitNode { input: part.node, limit, ties, count_all: query.count_all, reports_found: false };
        Ok(Part { node: Node::Limit(Box::new(node)), ..part })
    }

    fn limit_count(&mut self, limit: &Limit) -> SqlResult<LimitCount> {
        let mut place = |expr: &Option<Expr>| expr.clone().map(|e| self.place(e, &[])).transpose();
        Ok(LimitCount { count: place(&limit.count)?, offset: place(&limit.offset)? })
    }

    /// Adds a filter of all conditions.
    pub(crate) fn filter(&mut self, part: Part, conditions: Vec<Expr>) -> SqlResult<Part> {
        let share: f64 = conditions.iter().map(selectivity).product();
        let Some(condition) = all_of(conditions) else { return Ok(part) };
        let condition = self.place(condition, &part.layout)?;
        let node = Node::Filter { input: Box::new(part.node), condition };
        Ok(Part { node, layout: part.layout, rows: (part.rows * share).max(0.01) })
    }

    /// Plans a common table expression as a table of FROM.
    pub(crate) fn common_table(&mut self, number: usize, table: &FromTable) -> SqlResult<Part> {
        let layout = (table.first..table.first + table.width).collect();
        let common = &self.statement.common[number];
        let known = self.common_numbers.get(&number).copied();
        if known.is_none() && common.step.is_none() && common.references <= 1 {
            let mut part = match common.seed.is_like_a_view() {
                true => {
                    let mut kept = common.seed.clone();
                    kept.keep_digits();
                    self.narrow_query(&kept)?
                }
                false => self.narrow_query(&common.seed)?,
            };
            part.layout = layout;
            return Ok(part);
        }
        let at = match known {
            Some(at) => at,
            None => self.keep_common(number, common)?,
        };
        Ok(Part { node: Node::Common { number: at }, layout, rows: UNKNOWN_ROWS })
    }

    fn keep_common(&mut self, number: usize, common: &CommonTable) -> SqlResult<usize> {
        let at = self.common.len();
        self.common.push(None);
        self.common_numbers.insert(number, at);
        let seed = self.operand(&common.seed, &common.seed)?;
        let step = match &common.step {
            Some(step) => {
                let all = common.seed.collations().into_iter().enumerate();
                let counts = |n: usize| step.cycle.is_empty() || step.cycle.contains(&n);
                Some(RecursiveStep {
                    node: self.operand(&step.query, &common.seed)?,
                    distinct: step.distinct,
                    distinct_by: all.filter(|(n, _)| counts(*n)).collect(),
                })
            }
            None => None,
        };
        debug_assert!(self.common[at].is_none(), "a common table expression is planned twice");
        self.common[at] = Some(CommonPlan { seed, step });
        Ok(at)
    }

    /// Returns the frame slot of an outer query's column.
    fn slot(&mut self, column: usize) -> usize {
        let next = self.slots.len();
        *self.slots.entry(column).or_insert(next)
    }

    /// Places an expression above a part with this layout.
    pub(crate) fn place(&mut self, expr: Expr, layout: &[usize]) -> SqlResult<Expr> {
        expr.transform(&mut |node| match node {
            Expr::Column(mut column) => Ok(match layout.iter().position(|c| *c == column.ordinal) {
                Some(place) => {
                    column.ordinal = place;
                    Expr::Column(column)
                }
                None => {
                    let slot = self.slot(column.ordinal);
                    let (ty, name) = (column.ty, column.name);
                    Expr::Outer(Box::new(cohort_expr::Outer { slot, ty, name }))
                }
            }),
            Expr::Subquery(mut node) => {
                let read: Vec<usize> = self.statement.free(node.id).iter().copied().collect();
                node.outer.clear();
                for column in read {
                    if let Some(place) = layout.iter().position(|c| *c == column) {
                        node.outer.push((self.slot(column), carried(place)));
                    }
                }
                self.lower_subquery(node.id)?;
                node.is_volatile = self.statement.is_volatile(node.id);
                Ok(Expr::Subquery(node))
            }
            other => Ok(other),
        })
    }

    pub(crate) fn place_span(&mut self, span: &mut Span, layout: &[usize]) -> SqlResult<()> {
        span.exprs_mut().try_for_each(|expr| {
            *expr = self.place(std::mem::replace(expr, Expr::null()), layout)?;
            Ok(())
        })
    }

    fn lower_subquery(&mut self, id: usize) -> SqlResult<()> {
        if self.subqueries[id].is_some() {
            return Ok(());
        }
        let query = &self.statement.subqueries[id];
        let root = self.narrow_query(query)?.node;
        let read: Vec<usize> = self.statement.free(id).iter().copied().collect();
        let reads = read.into_iter().map(|column| self.slot(column)).collect();
        let is_volatile = self.statement.is_volatile(id);
        let (width, keeps_digits) = (query.types.len(), query.keeps_digits);
        self.subqueries[id] = Some(SubqueryPlan { root, width, reads, is_volatile, keeps_digits });
        Ok(())
    }

    /// Returns true if an expression calls back subqueries only, which read no column accepted by `is_here`.
    pub(crate) fn subqueries_are_constant(&self, expr: &Expr, is_here: &dyn Fn(usize) -> bool) -> bool {
        let mut constant = true;
        expr.walk(&mut |node| {
            constant &= !matches!(node, Expr::CallBack(_));
            if let Expr::Subquery(subquery) = node {
                constant &= !self.statement.free(subquery.id).iter().any(|c| is_here(*c));
                constant &= !self.statement.is_volatile(subquery.id);
            }
            constant
        });
        constant
    }
}

/// Expressions computed above the joined or grouped rows.
struct Above {
    items: Vec<Expr>,
    order: Vec<(SortedBy, SortKey)>,
    having: Option<Expr>,
    windows: Vec<WindowUse>,
}

/// A sort key: an item or another expression.
enum SortedBy {
    Item(usize),
    Expr(Expr),
}

impl Above {
    fn each(&mut self, see: &mut dyn FnMut(&mut Expr)) {
        self.items.iter_mut().chain(&mut self.having).for_each(&mut *see);
        for (by, _) in &mut self.order {
            if let SortedBy::Expr(expr) = by {
                see(expr);
            }
        }
        for window in &mut self.windows {
            window.each_mut(see);
        }
    }
}

/// Returns an expression that passes on the value at a position, whatever its type.
fn carried(place: usize) -> Expr {
    Expr::column(place, ExprType::null(), "")
}

/// Returns true if two adjacent operands can be handled by one operator.
fn one_operator(a: &Operand, b: &Operand) -> bool {
    a.op == b.op && (a.op == ast::SetOperator::Union || a.all == b.all)
}

/// Replaces the source expressions of a rollup's keys by the keys.
fn replace_keys(expr: Expr, group: &Group) -> Expr {
    if let Some(n) = group.keys.iter().position(|key| *key == expr) {
        return Expr::column(group.first_key + n, expr.ty().with_nullable(true), "");
    }
    expr.map_children(&mut |child| replace_keys(child, group))
}

/// Converts a locking clause to a read mode.
pub fn read_mode(locking: Option<ast::Locking>) -> SqlResult<ReadMode> {
    use cohort_locks::WaitPolicy;
    let Some(locking) = locking else { return Ok(ReadMode::Snapshot) };
    let wait = match locking.wait {
        ast::LockWait::Default => WaitPolicy::Wait,
        ast::LockWait::NoWait | ast::LockWait::Seconds(0) => WaitPolicy::NoWait,
        ast::LockWait::SkipLocked => WaitPolicy::SkipLocked,
        ast::LockWait::Seconds(seconds) => WaitPolicy::WaitFor(seconds.min(u32::MAX.into()) as u32),
    };
    Ok(match locking.strength {
        ast::LockStrength::Share => ReadMode::LockShare(wait),
        ast::LockStrength::Update => ReadMode::LockExclusive(wait),
    })
}
