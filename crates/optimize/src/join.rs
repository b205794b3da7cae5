//! Join planning: converts FROM and its conditions to a tree of joins.
//!
//! All inner joins form one set of tables with one set of conditions, however they were written. The right
//! side of an outer join is planned separately and joined after all inner tables, so that the left tables in
//! its ON are available. An outer join whose NULL-padded rows are rejected by a later condition is converted
//! to an inner join.
//!
//! Join order: for few tables, all left-deep orders are tried, avoiding cross products where possible. For
//! more, a greedy search adds the cheapest next table. A table is joined by an index lookup, by a hash table
//! of its rows, or by a nested loop.

use std::sync::Arc;

use cohort_expr::{CompareOp, Expr};
use cohort_locks::WaitPolicy;
use cohort_plan::conjuncts::all_of;
use cohort_plan::{From, FromTable, Source};
use cohort_types::{Collation, Columns, SqlResult};

use crate::access::{Candidates, RowCosts, WantedOrder};
use crate::answered::is_answered_by_lookup;
use crate::equal::{Classes, hashable};
use crate::estimate::{
    BUILD_COST, LOOP_COST, PROBE_COST, UNKNOWN_ROWS, distinct_values, found_cost, lookup_cost, selectivity,
};
use crate::group::{JoinGroup, OuterSide};
use crate::lateral::JSON_ROWS;
use crate::lower::{Lowering, Part, SelectContext};
use crate::physical::Choice;
use crate::physical::{HashKey, Join, JoinKind, JoinMethod, Node, ReadMode, Scan, Spans, VirtualScan};
use crate::sargable::{Condition, conditions};
use crate::sound::check_estimate;
use crate::visit::brings;

/// Maximum number of inner tables for which all orders are tried.
const EXHAUSTIVE_TABLES: usize = 7;

/// A condition of a group, with the tables it reads as bits. The bits of outer sides follow those of the
/// tables.
pub(crate) struct Conjunct {
    pub(crate) expr: Expr,
    tables: u128,
    sargs: Vec<Condition>,
    calls_back: bool,
    /// The equivalence class of this equality. One equality per class connects a table to those placed.
    class: Option<usize>,
}

/// A partial join order with its estimated cost.
#[derive(Clone)]
struct Path {
    order: Vec<usize>,
    placed: u128,
    rows: f64,
    cost: f64,
}

/// A method of joining one table to those before.
pub(crate) struct Candidate {
    pub(crate) way: Way,
    /// Estimated number of rows that pass the conditions, per row of the tables before.
    pub(crate) fan_out: f64,
    pub(crate) cost: f64,
}

pub(crate) enum Way {
    /// An index lookup, or the scan of the first table.
    Access(Choice),
    Hash(Option<Choice>),
    Loop(Option<Choice>),
    /// It is computed from the row before it.
    Json,
}

impl<'o> Lowering<'o> {
    /// Joins the tables of FROM and applies all conditions that can be evaluated there.
    pub(crate) fn join(
        &mut self,
        from: &From,
        conditions: Vec<Expr>,
        context: SelectContext,
    ) -> SqlResult<Part> {
        let mut group = JoinGroup { conditions, ..JoinGroup::default() };
        let tables = from.tables();
        let is_here = |column: usize| tables.iter().any(|table| brings(table, column));
        let is_lateral = |table: &FromTable| self.is_lateral(table, &is_here);
        group.add(from, &is_lateral);
        group.simplify(&is_lateral)?;
        self.order_laterals(&mut group);
        group.open_disjunctions();
        group.classes = Classes::complete(&mut group.conditions, &group.tables)?;
        let conjuncts = self.conjuncts(&group);
        let traced = self.stats.trace().map(|trace| self.trace_begin(trace, &group, &conjuncts, context));
        let order = self.order(&group, &conjuncts, context);
        if let Some(trace) = self.stats.trace() {
            trace.texts("best_join_order", order.iter().map(|n| &*group.tables[*n].name));
        }
        drop(traced);
        debug_assert!(
            is_permutation(&order, group.tables.len()),
            "join order {order:?} is no order of all tables"
        );
        debug_assert_eq!(
            group.tables.len() + group.outers.iter().map(|outer| outer.from.tables().len()).sum::<usize>(),
            tables.len(),
            "a table of FROM is joined twice, or not at all"
        );
        let mut placed = 0;
        let mut used = vec![false; conjuncts.len()];
        let mut part: Option<Part> = None;
        for n in order {
            part = Some(self.attach(&group, n, part, placed, &conjuncts, &mut used, context)?);
            placed |= 1 << n;
        }
        let mut part = part.unwrap_or_else(Part::unit);
        for (n, outer) in group.outers.iter().enumerate() {
            part = match outer.from {
                From::Table(table) if outer.kind == JoinKind::Inner => {
                    self.json_join(JoinKind::Inner, part, table, Vec::new(), context)?
                }
                _ => self.attach_outer(outer, part, context)?,
            };
            placed |= 1 << (group.tables.len() + n);
            let ready = take(&conjuncts, &mut used, |c| c.tables & !placed == 0 && !c.calls_back);
            part = self.filter(part, ready)?;
        }
        debug_assert!(
            conjuncts.iter().zip(&used).all(|(c, used)| *used || c.calls_back || c.tables & !placed == 0),
            "a condition reads a table that is not joined"
        );
        // Subqueries are evaluated last, because they are the most expensive.
        let left = take(&conjuncts, &mut used, |_| true);
        debug_assert!(!used.contains(&false), "a condition is evaluated nowhere");
        let is_inner = |column: usize| group.tables.iter().any(|table| brings(table, column));
        let (part, left) = self.semi_joins(part, left, context, &is_inner)?;
        self.filter(part, left)
    }

    fn conjuncts(&self, group: &JoinGroup<'_>) -> Vec<Conjunct> {
        let sides: Vec<Vec<&FromTable>> = group
            .tables
            .iter()
            .map(|table| vec![*table])
            .chain(group.outers.iter().map(|outer| outer.from.tables()))
            .collect();
        let side_of = |column: usize| {
            let has = |t: &&FromTable| (t.first..t.first + t.width).contains(&column);
            sides.iter().position(|side| side.iter().any(has))
        };
        let conjunct = |(n, expr): (usize, &Expr)| {
            let columns = self.statement.columns(expr);
            let tables = columns.iter().filter_map(|c| side_of(*c)).fold(0, |mask, n| mask | 1 << n);
            let calls_back = expr.calls_back();
            // A subquery that reads these tables has no value before their rows.
            let is_stable = !calls_back || self.subqueries_are_constant(expr, &|c| side_of(c).is_some());
            let sargs = if is_stable { conditions(expr) } else { Vec::new() };
            let class = group.classes.of_condition[n];
            Conjunct { expr: expr.clone(), tables, sargs, calls_back, class }
        };
        group.conditions.iter().enumerate().map(conjunct).collect()
    }

    /// Returns the order of the inner tables.
    fn order(&self, group: &JoinGroup<'_>, conjuncts: &[Conjunct], context: SelectContext) -> Vec<usize> {
        let count = group.tables.len();
        if count <= 1 || context.keep_order {
            return (0..count).collect();
        }
        let _plans = self.stats.trace().map(|trace| trace.list("considered_execution_plans"));
        let start = Path { order: Vec::new(), placed: 0, rows: 1.0, cost: 0.0 };
        if count > EXHAUSTIVE_TABLES {
            let mut path = start;
            while path.order.len() < count {
                let next = self.extensions(group, conjuncts, &path, context);
                let cheapest = next.into_iter().min_by(|a, b| a.cost.total_cmp(&b.cost));
                path = cheapest.expect("a table is left");
            }
            return path.order;
        }
        let mut best: Vec<Option<Path>> = vec![None; 1 << count];
        best[0] = Some(start);
        for placed in 0..(1usize << count) {
            let Some(path) = best[placed].clone() else { continue };
            for next in self.extensions(group, conjuncts, &path, context) {
                let known = &mut best[next.placed as usize];
                let is_better = known.as_ref().is_none_or(|known| next.cost < known.cost);
                if is_better {
                    *known = Some(next);
                } else if let Some(trace) = self.stats.trace() {
                    let _pruned = trace.object("pruned_by_cost");
                    trace.texts("plan", next.order.iter().map(|n| &*group.tables[*n].name));
                    trace.number("current_cost", next.cost);
                    trace.number("best_cost", known.as_ref().map_or(0.0, |known| known.cost));
                }
            }
        }
        match best.pop().flatten() {
            Some(path) => path.order,
            None => (0..count).collect(),
        }
    }

    /// Returns the path extended by each possible next table: only connected ones, if there are any.
    fn extensions(
        &self,
        group: &JoinGroup<'_>,
        conjuncts: &[Conjunct],
        path: &Path,
        context: SelectContext,
    ) -> Vec<Path> {
        let is_left = |n: usize| path.placed & 1 << n == 0;
        let may_come = |n: usize| {
            let earlier = |first: &usize| n >= *first && (0..*first).any(is_left);
            let is_made = group.made_of[n] & !path.placed == 0;
            is_left(n) && is_made && !group.keep_order.iter().any(earlier)
        };
        let is_connected = |n: usize| {
            let together = path.placed | 1 << n;
            group.made_of[n] != 0
                || conjuncts.iter().any(|c| {
                    c.tables & 1 << n != 0 && c.tables & path.placed != 0 && c.tables & !together == 0
                })
        };
        let all: Vec<usize> = (0..group.tables.len()).filter(|n| may_come(*n)).collect();
        let connected: Vec<usize> = all.iter().copied().filter(|n| is_connected(*n)).collect();
        let next = if connected.is_empty() || path.placed == 0 { all } else { connected };
        let extended = |n: usize| {
            let plan = self.stats.trace().map(|trace| {
                let plan = trace.item();
                trace.texts("plan_prefix", path.order.iter().map(|n| &*group.tables[*n].name));
                trace.text("table", &group.tables[n].name);
                plan
            });
            let candidate = self.candidate(group, n, path.placed, path.rows, conjuncts, context);
            if let Some(trace) = self.stats.trace() {
                {
                    let _path = trace.object("best_access_path");
                    candidate.trace(trace, group.tables[n]);
                }
                trace.number("rows_for_plan", (path.rows * candidate.fan_out).max(0.01));
                trace.number("cost_for_plan", path.cost + candidate.cost);
            }
            drop(plan);
            let mut order = path.order.clone();
            order.push(n);
            Path {
                order,
                placed: path.placed | 1 << n,
                rows: (path.rows * candidate.fan_out).max(0.01),
                cost: path.cost + candidate.cost,
            }
        };
        next.into_iter().map(extended).collect()
    }

    /// Returns the best method of joining a table to those placed before, which produce `rows` rows.
    fn candidate(
        &self,
        group: &JoinGroup<'_>,
        n: usize,
        placed: u128,
        rows: f64,
        conjuncts: &[Conjunct],
        context: SelectContext,
    ) -> Candidate {
        let table = group.tables[n];
        let bit = 1 << n;
        let own = self.own_share(group, n, conjuncts);
        let joining = || {
            conjuncts.iter().filter(|c| {
                c.tables & bit != 0
                    && c.tables & placed != 0
                    && c.tables & !(placed | bit) == 0
                    && !c.calls_back
            })
        };
        let equal: Vec<&Conjunct> = joining()
            .filter(|c| self.hash_key(&c.expr, table, &|c| self.is_of(group, c, placed)).is_some())
            .collect();
        let base = match &table.source {
            Source::Base { .. } => Some(self.choose(group, n, 0, conjuncts, context)),
            _ => None,
        };
        let entries = self.rows_of(table);
        // Rows of the table alone.
        let alone = match &base {
            Some(choice) => choice.rows.min(entries).min((entries * own).max(1.0)),
            None => (entries * own).max(1.0),
        };
        let read = base.as_ref().map_or(entries, |choice| choice.cost);
        if placed == 0 {
            let way = match base {
                Some(choice) => Way::Access(choice),
                None => Way::Loop(None),
            };
            return Candidate { way, fan_out: alone, cost: read };
        }
        let mut share = 1.0;
        let mut classes = Vec::new();
        for conjunct in joining() {
            if conjunct.class.is_some_and(|class| classes.contains(&class)) {
                continue;
            }
            classes.extend(conjunct.class);
            share *= match equal.iter().any(|e| std::ptr::eq(*e, conjunct)) {
                true => 1.0 / self.distinct_of(&conjunct.expr, group),
                false => selectivity(&conjunct.expr),
            };
        }
        let fan_out = alone * share;
        if group.made_of[n] != 0 {
            let fan_out = (entries * own * share).max(0.1);
            return Candidate { way: Way::Json, fan_out, cost: rows * (lookup_cost(1.0, entries) + entries) };
        }
        let compared = self.stats.trace().map(|trace| trace.list("considered_access_paths"));
        let mut best = match equal.is_empty() {
            false => Candidate {
                cost: read + alone * BUILD_COST + rows * PROBE_COST + rows * fan_out * LOOP_COST,
                way: Way::Hash(base.clone()),
                fan_out,
            },
            true => Candidate {
                cost: read + alone * BUILD_COST + rows * alone * LOOP_COST,
                way: Way::Loop(base.clone()),
                fan_out,
            },
        };
        if base.is_some() {
            let choice = self.choose(group, n, placed, conjuncts, context);
            let reads_before = match &choice.access.spans {
                Spans::List(spans) => {
                    spans.iter().any(|span| reads_row(span, &|c| self.is_of(group, c, placed)))
                }
                Spans::Full | Spans::Words(_) => false,
            };
            if reads_before {
                let found = found_cost(&choice.access, rows * choice.rows, entries);
                let cost = lookup_cost(rows, entries) + found;
                if let (Some(trace), Source::Base { table: base, .. }) = (self.stats.trace(), &table.source) {
                    let _lookup = trace.item();
                    trace.access(base, &choice.access, choice.rows, cost);
                    trace.number("cost_without_index", best.cost);
                }
                if cost < best.cost || context.mode != ReadMode::Snapshot {
                    let is_one_row = choice.rows <= 1.0;
                    let fan_out =
                        if is_one_row { own.min(1.0) } else { (choice.rows * own).min(fan_out.max(0.1)) };
                    best = Candidate { way: Way::Access(choice), fan_out, cost };
                }
            }
        }
        drop(compared);
        best
    }

    /// Returns the fraction of a table's rows that pass the conditions on it alone.
    pub(crate) fn own_share(&self, group: &JoinGroup<'_>, n: usize, conjuncts: &[Conjunct]) -> f64 {
        if let Some(known) = group.shares.borrow().get(&n) {
            return *known;
        }
        let table = group.tables[n];
        // Columns of outer queries have no value at planning time.
        let reads_around = |c: &&Conjunct| c.expr.columns().iter().any(|column| !brings(table, *column));
        let (open, own): (Vec<&Conjunct>, Vec<&Conjunct>) =
            conjuncts.iter().filter(|c| c.tables == 1 << n && !c.calls_back).partition(reads_around);
        let guess = |of: &[&Conjunct]| of.iter().map(|c| selectivity(&c.expr)).product::<f64>();
        let known = match (&table.source, own.is_empty()) {
            (Source::Base { table: base, .. }, false) => {
                let all = cohort_expr::and(own.iter().map(|c| c.expr.clone()).collect());
                self.stats.share(base, table.first, &all)
            }
            _ => None,
        };
        let share = known.unwrap_or_else(|| guess(&own)) * guess(&open);
        debug_assert!((0.0..=1.0).contains(&share), "conditions leave {share} of a table's rows");
        group.shares.borrow_mut().insert(n, share);
        share
    }

    /// Returns true if a column belongs to one of the placed tables.
    fn is_of(&self, group: &JoinGroup<'_>, column: usize, placed: u128) -> bool {
        let has = |t: &FromTable| (t.first..t.first + t.width).contains(&column);
        group.tables.iter().enumerate().any(|(n, table)| placed & 1 << n != 0 && has(table))
    }

    pub(crate) fn rows_of(&self, table: &FromTable) -> f64 {
        match &table.source {
            Source::Base { table, .. } => (self.stats.entries(table) as f64).max(1.0),
            Source::Series { first, last, step } => {
                (first.abs_diff(*last) / step.unsigned_abs().max(1) + 1) as f64
            }
            Source::Json { .. } => JSON_ROWS,
            Source::Virtual(_) | Source::Derived(_) | Source::Common(_) => UNKNOWN_ROWS,
        }
    }

    /// Returns the larger number of distinct values on the two sides of an equality.
    fn distinct_of(&self, equality: &Expr, group: &JoinGroup<'_>) -> f64 {
        let mut most: f64 = 10.0;
        for column in equality.columns() {
            let has = |t: &&&FromTable| (t.first..t.first + t.width).contains(&column);
            let Some(table) = group.tables.iter().find(has) else { continue };
            let rows = self.rows_of(table);
            most = most.max(match &table.source {
                Source::Base { table: base, .. } => {
                    distinct_values(self.stats, base, column - table.first, rows)
                }
                _ => rows / 2.0,
            });
        }
        most
    }

    /// Chooses the access to a base table, given the rows of the placed tables.
    pub(crate) fn choose(
        &self,
        group: &JoinGroup<'_>,
        n: usize,
        placed: u128,
        conjuncts: &[Conjunct],
        context: SelectContext,
    ) -> Choice {
        let table = group.tables[n];
        let of_table = conjuncts.iter().filter(|c| c.tables & 1 << n != 0);
        let key = (n, placed & of_table.fold(0, |tables, c| tables | c.tables));
        if let Some(known) = group.choices.borrow().get(&key) {
            return known.clone();
        }
        let here = |column: usize| {
            group.tables.iter().any(|t| (t.first..t.first + t.width).contains(&column))
                || group
                    .outers
                    .iter()
                    .any(|o| o.from.tables().iter().any(|t| (t.first..t.first + t.width).contains(&column)))
        };
        let available = |c: &&Condition| {
            c.reads.iter().all(|column| !here(*column) || self.is_of(group, *column, placed))
        };
        let usable = conjuncts.iter().flat_map(|c| &c.sargs).filter(available).collect();
        let choice = self.choose_access(table, usable, context);
        group.choices.borrow_mut().insert(key, choice.clone());
        choice
    }

    pub(crate) fn choose_access(
        &self,
        table: &FromTable,
        usable: Vec<&Condition>,
        context: SelectContext,
    ) -> Choice {
        let Source::Base { table: base, allowed, forced } = &table.source else {
            unreachable!("only base tables have indexes")
        };
        let columns = self.read_columns(table, mode_of(table, context), []);
        Candidates {
            table: base,
            first_slot: table.first,
            stats: self.stats,
            entries_min: 0,
            allowed: allowed.clone(),
            forced: *forced,
            conditions: usable,
            wanted: WantedOrder::default(),
            columns,
            costs: match mode_of(table, context) {
                ReadMode::Snapshot => RowCosts::BY_BATCHES,
                _ => RowCosts::BY_ROWS,
            },
        }
        .choose()
    }

    /// Returns the columns read from a base table: those that the statement names anywhere, and those of a
    /// filter.
    fn read_columns<'e>(
        &self,
        table: &FromTable,
        mode: ReadMode,
        filter: impl IntoIterator<Item = &'e Expr>,
    ) -> Columns {
        if mode != ReadMode::Snapshot {
            return Columns::All;
        }
        let mut read: Vec<usize> = self.needed_of(table);
        read.extend(filter.into_iter().flat_map(|expr| expr.columns()));
        read.sort_unstable();
        read.dedup();
        if read.len() == table.width { Columns::All } else { Columns::Some(Arc::from(read)) }
    }

    /// Returns the ordinals of the table's columns that the statement names.
    pub(crate) fn needed_of(&self, table: &FromTable) -> Vec<usize> {
        self.needed.range(table.first..table.first + table.width).map(|column| column - table.first).collect()
    }

    /// Joins a table to those before.
    #[allow(clippy::too_many_arguments)] // one step of the loop above
    fn attach(
        &mut self,
        group: &JoinGroup<'_>,
        n: usize,
        before: Option<Part>,
        placed: u128,
        conjuncts: &[Conjunct],
        used: &mut [bool],
        context: SelectContext,
    ) -> SqlResult<Part> {
        let table = group.tables[n];
        let bit = 1 << n;
        let rows = before.as_ref().map_or(1.0, |part| part.rows);
        debug_assert!(placed & bit == 0, "a table is joined twice");
        debug_assert!(
            group.made_of[n] & !placed == 0,
            "a JSON_TABLE comes before the row it is computed from"
        );
        let candidate = self.candidate(group, n, placed, rows, conjuncts, context);
        check_estimate(candidate.fan_out, candidate.cost);
        let own = take(conjuncts, used, |c| c.tables == bit && !c.calls_back);
        let Some(before) = before else {
            let choice = match candidate.way {
                Way::Access(choice) | Way::Hash(Some(choice)) | Way::Loop(Some(choice)) => Some(choice),
                Way::Hash(None) | Way::Loop(None) | Way::Json => None,
            };
            let mut part = self.table(table, choice, own, context)?;
            part.rows = candidate.fan_out;
            return Ok(part);
        };
        let ready = take_connecting(conjuncts, used, placed | bit);
        let out_rows = (before.rows * candidate.fan_out).max(0.01);
        let mut joined = match candidate.way {
            Way::Access(choice) => {
                self.lookup_join(JoinKind::Inner, before, table, choice, own, ready, context)?
            }
            Way::Hash(choice) | Way::Loop(choice) => {
                let right = self.table(table, choice, own, context)?;
                self.kept_join(JoinKind::Inner, before, right, ready)?
            }
            Way::Json => {
                let on = own.into_iter().chain(ready).collect();
                self.json_join(JoinKind::Inner, before, table, on, context)?
            }
        };
        joined.rows = out_rows;
        Ok(joined)
    }

    /// Joins the right side of an outer join to all tables before.
    fn attach_outer(
        &mut self,
        outer: &OuterSide<'_>,
        before: Part,
        context: SelectContext,
    ) -> SqlResult<Part> {
        let tables = outer.from.tables();
        let is_inside = |column: &usize| tables.iter().any(|t| (t.first..t.first + t.width).contains(column));
        let is_own = |expr: &Expr| {
            let columns = self.statement.columns(expr);
            columns.iter().any(&is_inside)
                && !columns.iter().any(|c| before.layout.contains(c))
                && !expr.calls_back()
        };
        let (own, on): (Vec<Expr>, Vec<Expr>) = outer.on.iter().cloned().partition(is_own);
        let rows = before.rows;
        if let From::Table(table) = outer.from
            && self.is_lateral(table, &|column| before.layout.contains(&column))
        {
            return self.json_join(JoinKind::Left, before, table, outer.on.clone(), context);
        }
        self.refuse_lateral(outer.from, &before)?;
        if let From::Table(table) = outer.from
            && let Source::Base { .. } = &table.source
        {
            let sargs: Vec<Condition> = own
                .iter()
                .chain(&on)
                .filter(|expr| !expr.calls_back())
                .flat_map(conditions)
                .filter(|c| !c.reads.iter().any(&is_inside))
                .collect();
            let choice = self.choose_access(table, sargs.iter().collect(), context);
            let reads_before = match &choice.access.spans {
                Spans::List(spans) => spans.iter().any(|s| reads_row(s, &|c| before.layout.contains(&c))),
                Spans::Full | Spans::Words(_) => false,
            };
            let entries = self.rows_of(table);
            let found = found_cost(&choice.access, rows * choice.rows, entries);
            let by_index = lookup_cost(rows, entries) + found;
            let by_hash = entries * (1.0 + BUILD_COST) + rows * PROBE_COST;
            let can_hash =
                on.iter().any(|e| self.hash_key(e, table, &|c| before.layout.contains(&c)).is_some());
            let by_other =
                if can_hash { by_hash } else { entries * (1.0 + BUILD_COST) + rows * entries * LOOP_COST };
            if reads_before && (by_index < by_other || context.mode != ReadMode::Snapshot) {
                let fan_out = choice.rows.max(1.0);
                let mut part = self.lookup_join(JoinKind::Left, before, table, choice, own, on, context)?;
                part.rows = rows * fan_out;
                return Ok(part);
            }
        }
        let right = self.join(outer.from, own, SelectContext { keep_order: false, ..context })?;
        let mut part = self.kept_join(JoinKind::Left, before, right, on)?;
        part.rows = rows;
        Ok(part)
    }

    /// Reads one table and applies the conditions on it alone.
    fn table(
        &mut self,
        table: &FromTable,
        choice: Option<Choice>,
        own: Vec<Expr>,
        context: SelectContext,
    ) -> SqlResult<Part> {
        match &table.source {
            Source::Base { .. } => {
                let choice = match choice {
                    Some(choice) => choice,
                    None => self.choose_access(table, Vec::new(), context),
                };
                let rows = choice.rows;
                let (scan, layout) = self.scan(table, choice, own, &[], context)?;
                Ok(Part { node: Node::Scan(Box::new(scan)), layout, rows })
            }
            Source::Virtual(found) => {
                let columns = self.needed_of(table);
                let layout = columns.iter().map(|n| table.first + n).collect();
                let whole: Vec<usize> = (table.first..table.first + table.width).collect();
                let filter = all_of(own).map(|expr| self.place(expr, &whole)).transpose()?;
                let scan = VirtualScan {
                    schema: found.schema().into(),
                    table: found.name().into(),
                    name: table.name.clone(),
                    block: context.block,
                    filter,
                    columns,
                    part: self.reads.advance(),
                };
                Ok(Part { node: Node::Virtual(Box::new(scan)), layout, rows: UNKNOWN_ROWS })
            }
            Source::Derived(query) => {
                let mut part = self.narrow_query(query)?;
                part.layout = (table.first..table.first + table.width).collect();
                self.filter(part, own)
            }
            Source::Common(number) => {
                let part = self.common_table(*number, table)?;
                self.filter(part, own)
            }
            Source::Series { first, last, step } => {
                let node = Node::Series { first: *first, last: *last, step: *step };
                let part = Part { node, layout: vec![table.first], rows: self.rows_of(table) };
                self.filter(part, own)
            }
            Source::Json { .. } => {
                let part = self.json_join(JoinKind::Inner, Part::unit(), table, Vec::new(), context)?;
                self.filter(part, own)
            }
        }
    }

    /// Returns a scan and its output columns. Span expressions read a row of `left`.
    fn scan(
        &mut self,
        table: &FromTable,
        choice: Choice,
        own: Vec<Expr>,
        left: &[usize],
        context: SelectContext,
    ) -> SqlResult<(Scan, Vec<usize>)> {
        let Source::Base { table: base, .. } = &table.source else {
            unreachable!("only base tables are scanned")
        };
        let whole: Vec<usize> = (table.first..table.first + table.width).collect();
        let filter = all_of(own).map(|expr| self.place(expr, &whole)).transpose()?;
        let mode = mode_of(table, context);
        let read = self.read_columns(table, mode, &filter);
        let columns = self.needed_of(table);
        let mut layout: Vec<usize> = columns.iter().map(|n| table.first + n).collect();
        layout.extend(table.key);
        let mut access = choice.access;
        if let Spans::List(spans) = &mut access.spans {
            for span in spans {
                self.place_span(span, left)?;
            }
        }
        let scan = Scan {
            table: base.clone(),
            name: table.name.clone(),
            block: context.block,
            access,
            mode,
            filter,
            read,
            columns,
            with_key: table.key.is_some(),
            rows: choice.rows,
            part: self.reads.advance(),
        };
        Ok((scan, layout))
    }

    #[allow(clippy::too_many_arguments)] // the parts of a join
    pub(crate) fn lookup_join(
        &mut self,
        kind: JoinKind,
        before: Part,
        table: &FromTable,
        choice: Choice,
        own: Vec<Expr>,
        on: Vec<Expr>,
        context: SelectContext,
    ) -> SqlResult<Part> {
        let is_left = |expr: &Expr| !is_answered_by_lookup(&choice.access, table, expr);
        let on: Vec<Expr> = on.into_iter().filter(is_left).collect();
        let (scan, columns) = self.scan(table, choice, own, &before.layout, context)?;
        let mut layout = before.layout;
        layout.extend(columns);
        let on = all_of(on).map(|expr| self.place(expr, &layout)).transpose()?;
        let join = Join { kind, left: before.node, method: JoinMethod::Lookup(Box::new(scan)), on };
        Ok(Part { node: Node::Join(Box::new(join)), layout, rows: before.rows })
    }

    /// Returns a join that stores its right rows: in a hash table if there are equalities.
    pub(crate) fn kept_join(
        &mut self,
        kind: JoinKind,
        before: Part,
        right: Part,
        on: Vec<Expr>,
    ) -> SqlResult<Part> {
        let (mut keys, mut rest) = (Vec::new(), Vec::new());
        for expr in on {
            let is_left = |c: usize| before.layout.contains(&c);
            match self.hash_sides(&expr, &|c| right.layout.contains(&c), &is_left) {
                Some((left, of_right, collation)) => keys.push(HashKey {
                    left: self.place(left, &before.layout)?,
                    right: self.place(of_right, &right.layout)?,
                    collation,
                }),
                None => rest.push(expr),
            }
        }
        let right_width = right.layout.len();
        let mut gate = None;
        if keys.is_empty() {
            let is_of_left = |expr: &Expr| {
                let reads_right = expr.columns().iter().any(|column| right.layout.contains(column));
                !reads_right && !expr.calls_back() && !expr.is_volatile()
            };
            let (of_left, others) = rest.into_iter().partition(is_of_left);
            gate = all_of(of_left).map(|expr| self.place(expr, &before.layout)).transpose()?;
            rest = others;
        }
        let mut layout = before.layout;
        layout.extend(right.layout);
        let on = all_of(rest).map(|expr| self.place(expr, &layout)).transpose()?;
        debug_assert!(
            gate.is_none() || keys.is_empty(),
            "a hash join has no condition on its left rows alone"
        );
        let method = match keys.is_empty() {
            true => JoinMethod::Loop { right: right.node, right_width, gate },
            false => JoinMethod::Hash { right: right.node, keys, right_width },
        };
        let join = Join { kind, left: before.node, method, on };
        Ok(Part { node: Node::Join(Box::new(join)), layout, rows: before.rows })
    }

    pub(crate) fn hash_key(
        &self,
        expr: &Expr,
        table: &FromTable,
        is_left: &dyn Fn(usize) -> bool,
    ) -> Option<(Expr, Expr, Collation)> {
        self.hash_sides(expr, &|c| (table.first..table.first + table.width).contains(&c), is_left)
    }

    /// Returns the left and the right side of an equality, if a hash table can evaluate it.
    fn hash_sides(
        &self,
        expr: &Expr,
        is_right: &dyn Fn(usize) -> bool,
        is_left: &dyn Fn(usize) -> bool,
    ) -> Option<(Expr, Expr, Collation)> {
        let Expr::Compare(node) = expr else { return None };
        if node.op != CompareOp::Eq || expr.calls_back() || expr.is_volatile() {
            return None;
        }
        let reads = |e: &Expr, is: &dyn Fn(usize) -> bool| {
            let columns = e.columns();
            !columns.is_empty() && columns.iter().all(|c| is(*c))
        };
        let (left, right) = if reads(&node.left, is_left) && reads(&node.right, is_right) {
            (&node.left, &node.right)
        } else if reads(&node.right, is_left) && reads(&node.left, is_right) {
            (&node.right, &node.left)
        } else {
            return None;
        };
        let collation = hashable(right, left, &node.how)?;
        Some((left.clone(), right.clone(), collation))
    }
}

/// Returns true if `order` contains each number below `count` once.
fn is_permutation(order: &[usize], count: usize) -> bool {
    order.len() == count && (0..count).all(|n| order.contains(&n))
}

/// Returns the read mode of a table.
fn mode_of(table: &FromTable, context: SelectContext) -> ReadMode {
    match table.key {
        Some(_) => ReadMode::LockExclusive(WaitPolicy::Wait),
        None => context.mode,
    }
}

/// Takes the unused conditions that `may` accepts, and marks them as used.
fn take(conjuncts: &[Conjunct], used: &mut [bool], may: impl Fn(&Conjunct) -> bool) -> Vec<Expr> {
    let mut taken = Vec::new();
    for (conjunct, used) in conjuncts.iter().zip(used) {
        if !*used && may(conjunct) {
            *used = true;
            taken.push(conjunct.expr.clone());
        }
    }
    taken
}

/// Takes the conditions that connect the newly placed table: one equality per equivalence class.
fn take_connecting(conjuncts: &[Conjunct], used: &mut [bool], placed: u128) -> Vec<Expr> {
    let mut classes = Vec::new();
    let mut taken = Vec::new();
    for (conjunct, used) in conjuncts.iter().zip(used) {
        if *used || conjunct.calls_back || conjunct.tables & !placed != 0 {
            continue;
        }
        *used = true;
        match conjunct.class {
            Some(class) if classes.contains(&class) => {}
            class => {
                classes.extend(class);
                taken.push(conjunct.expr.clone());
            }
        }
    }
    taken
}

/// Returns true if the values of a span read a preceding row.
pub(crate) fn reads_row(span: &crate::physical::Span, is_before: &dyn Fn(usize) -> bool) -> bool {
    span.exprs().flat_map(|expr| expr.columns()).any(is_before)
}
