//! Converts subqueries in conditions to semi-joins and anti-joins.
//!
//! # Concepts
//! `EXISTS (SELECT .. FROM t WHERE t.a = o.a)` accepts an outer row that has a match. It becomes a
//! *semi-join* of the rows joined so far with the subquery's FROM, on those of its conditions that read outer
//! columns. `x IN (SELECT y ..)` adds the condition `x = y`. `NOT EXISTS` becomes an *anti-join*. Matches are
//! found by an index or a hash table, as in an outer join, instead of running the subquery for each outer
//! row.
//!
//! # Requirements
//! - The condition belongs to WHERE or an inner ON, so only TRUE matters. Then IN means "some row is equal",
//!   and NULL needs no special care.
//! - NOT IN accepts a row only if no comparison is unknown. It becomes an anti-join only if neither side can
//!   be NULL.
//! - The subquery is one SELECT that returns the rows of its FROM: no groups, windows or LIMIT. Its ON
//!   conditions and JSON_TABLEs read no outer columns, because they are evaluated before the rows of both
//!   sides are combined.
//! - It contains nothing volatile and locks no rows.
//!
//! Other subqueries are evaluated row by row ([`cohort_expr::Expr::Subquery`]).

use cohort_expr::{CompareHow, CompareOp, Expr, Subquery, SubqueryTest, compare_as};
use cohort_plan::{Body, From, Select, Source};
use cohort_types::SqlResult;

use crate::estimate::{BUILD_COST, LOOP_COST, PROBE_COST, found_cost, lookup_cost};
use crate::lower::{Lowering, Part, SelectContext};
use crate::physical::{JoinKind, ReadMode, Spans};
use crate::sargable::{Condition, conditions};
use crate::visit::brings;

/// Estimated fraction of rows that such a join keeps.
const SHARE: f64 = 0.5;

/// A condition that can be evaluated as a join.
struct SemiSide<'s> {
    kind: JoinKind,
    select: &'s Select,
    from: &'s From,
    /// Conditions of a match.
    conditions: Vec<Expr>,
}

impl<'o> Lowering<'o> {
    /// Joins the subqueries of conditions, and returns the remaining conditions. `is_inner` accepts columns
    /// of tables that no outer join pads.
    pub(crate) fn semi_joins(
        &mut self,
        part: Part,
        asked: Vec<Expr>,
        context: SelectContext,
        is_inner: &dyn Fn(usize) -> bool,
    ) -> SqlResult<(Part, Vec<Expr>)> {
        let (mut sides, mut constant, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for condition in asked {
            match self.semi_side(&condition, &part.layout, context, is_inner) {
                Some(side) => sides.push(side),
                None if self.subqueries_are_constant(&condition, &|_| true) => constant.push(condition),
                None => rest.push(condition),
            }
        }
        if sides.is_empty() {
            constant.extend(rest);
            return Ok((part, constant));
        }
        // Conditions computed once are evaluated before those that need a lookup per row.
        let mut part = self.filter(part, constant)?;
        for side in sides {
            part = self.attach_semi(side, part, context)?;
        }
        Ok((part, rest))
    }

    fn semi_side(
        &self,
        condition: &Expr,
        layout: &[usize],
        context: SelectContext,
        is_inner: &dyn Fn(usize) -> bool,
    ) -> Option<SemiSide<'o>> {
        let (subquery, negated) = match condition {
            Expr::Subquery(node) => (node, false),
            Expr::Not(operand) => match &**operand {
                Expr::Subquery(node) => (node, true),
                _ => return None,
            },
            _ => return None,
        };
        let query = &self.statement.subqueries[subquery.id];
        let Body::Select(select) = &query.body else { return None };
        let from = select.from.as_ref()?;
        let is_plain = select.group.is_none()
            && select.having.is_none()
            && select.windows.is_empty()
            && query.limit.count.is_none()
            && query.limit.offset.is_none()
            && query.locking.is_none()
            && context.mode == ReadMode::Snapshot;
        if !is_plain || self.statement.is_volatile(subquery.id) {
            return None;
        }
        let reads_around = |expr: &Expr| self.statement.columns(expr).iter().any(|c| layout.contains(c));
        if has_on(from, &reads_around) || self.has_lateral(from, &|c| layout.contains(&c)) {
            return None;
        }
        let mut conditions = select.conditions.clone();
        let kind = match (&subquery.test, negated) {
            (SubqueryTest::Exists, false) => JoinKind::Semi,
            (SubqueryTest::Exists, true) => JoinKind::Anti,
            (SubqueryTest::Quantified { .. }, _) => {
                let is_anti = self.add_membership(subquery, negated, select, is_inner, &mut conditions)?;
                if is_anti { JoinKind::Anti } else { JoinKind::Semi }
            }
            (SubqueryTest::Column(_), _) => return None,
        };
        // It reads no outer column, so one evaluation serves all rows.
        if !conditions.iter().any(reads_around) {
            return None;
        }
        Some(SemiSide { kind, select, from, conditions })
    }

    /// Adds the equalities of IN or NOT IN. Returns true for NOT IN.
    fn add_membership(
        &self,
        subquery: &Subquery,
        negated: bool,
        select: &Select,
        is_inner: &dyn Fn(usize) -> bool,
        conditions: &mut Vec<Expr>,
    ) -> Option<bool> {
        let SubqueryTest::Quantified { operand, op, all, how } = &subquery.test else { return None };
        let is_anti = match (op, all, negated) {
            (CompareOp::Eq, false, false) => false,
            (CompareOp::Ne, true, false) | (CompareOp::Eq, false, true) => true,
            _ => return None,
        };
        let one = std::slice::from_ref(operand);
        let operands = if let Expr::Row(parts) = operand { parts.as_slice() } else { one };
        for (n, (left, item)) in operands.iter().zip(&select.items).enumerate() {
            let how = match how {
                CompareHow::Row(hows) => hows.get(n)?,
                scalar => scalar,
            };
            if left.is_volatile() || left.calls_back() || item.calls_back() || item.columns().is_empty() {
                return None;
            }
            let may_be_null = left.ty().nullable
                || item.ty().nullable
                || !left.columns().iter().all(|column| is_inner(*column))
                || select.from.as_ref().is_none_or(has_outer);
            if is_anti && may_be_null {
                return None;
            }
            conditions.push(compare_as(CompareOp::Eq, left.clone(), item.clone(), how.clone()));
        }
        Some(is_anti)
    }

    fn attach_semi(&mut self, side: SemiSide<'o>, before: Part, context: SelectContext) -> SqlResult<Part> {
        let SemiSide { kind, select, from, conditions: all } = side;
        let context = SelectContext { keep_order: select.straight_join, ..context };
        let (layout, rows) = (before.layout.clone(), before.rows);
        let reads_around = |expr: &Expr| self.statement.columns(expr).iter().any(|c| layout.contains(c));
        let (on, own): (Vec<Expr>, Vec<Expr>) = all.into_iter().partition(reads_around);
        let traced = self.stats.trace().map(|trace| {
            let step = trace.object("transformation");
            trace.number("select_id", context.block.into());
            trace.text("from", "subquery of a condition");
            trace.text("to", if kind == JoinKind::Anti { "anti-join" } else { "semijoin" });
            trace.texts("tables", from.tables().iter().map(|table| &*table.name));
            trace.texts("condition", on.iter().map(Expr::to_string));
            step
        });
        let lookup = self.semi_lookup(from, &own, &on, &before, context);
        if let Some(trace) = self.stats.trace() {
            trace.text(
                "strategy",
                if lookup.is_some() { "lookup of the first match" } else { "join of all matches" },
            );
        }
        drop(traced);
        let mut part = match lookup {
            Some(choice) => {
                let From::Table(table) = from else { unreachable!("only a table is looked up") };
                let (asked, own): (Vec<Expr>, Vec<Expr>) = own.into_iter().partition(Expr::calls_back);
                let on = on.into_iter().chain(asked).collect();
                self.lookup_join(kind, before, table, choice, own, on, context)?
            }
            None => {
                let right = self.join(from, own, context)?;
                self.kept_join(kind, before, right, on)?
            }
        };
        part.layout = layout;
        part.rows = (rows * SHARE).max(0.01);
        Ok(part)
    }

    /// Returns the access for looking up a match, if it is cheaper than a hash table.
    fn semi_lookup(
        &self,
        from: &From,
        own: &[Expr],
        on: &[Expr],
        before: &Part,
        context: SelectContext,
    ) -> Option<crate::physical::Choice> {
        let From::Table(table) = from else { return None };
        let Source::Base { .. } = &table.source else { return None };
        let is_before = |column: usize| before.layout.contains(&column);
        let is_inside = |column: &usize| brings(table, *column);
        let sargs: Vec<Condition> = own
            .iter()
            .chain(on)
            .filter(|expr| !expr.calls_back())
            .flat_map(conditions)
            .filter(|condition| !condition.reads.iter().any(is_inside))
            .collect();
        let choice = self.choose_access(table, sargs.iter().collect(), context);
        let Spans::List(spans) = &choice.access.spans else { return None };
        if !spans.iter().any(|span| crate::join::reads_row(span, &is_before)) {
            return None;
        }
        let alone: Vec<Condition> =
            own.iter().filter(|expr| !expr.calls_back()).flat_map(conditions).collect();
        let alone = self.choose_access(table, alone.iter().collect(), context);
        // Only the first match is read, unless there are further conditions on it.
        let entries = self.rows_of(table);
        let found = found_cost(&choice.access, before.rows * choice.rows.min(2.0), entries);
        let by_index = lookup_cost(before.rows, entries) + found;
        let can_hash = on.iter().any(|expr| self.hash_key(expr, table, &is_before).is_some());
        let by_other = match can_hash {
            true => alone.cost + alone.rows * BUILD_COST + before.rows * PROBE_COST,
            false => alone.cost + before.rows * alone.rows * LOOP_COST,
        };
        if let Some(trace) = self.stats.trace() {
            trace.number("cost_of_lookups", by_index);
            trace.number(if can_hash { "cost_of_hash_join" } else { "cost_of_nested_loop" }, by_other);
        }
        (by_index < by_other).then_some(choice)
    }
}

/// Returns true if some ON condition satisfies `is_one`.
fn has_on(from: &From, is_one: &dyn Fn(&Expr) -> bool) -> bool {
    match from {
        From::Table(_) => false,
        From::Join(join) => {
            join.on.iter().any(is_one) || has_on(&join.left, is_one) || has_on(&join.right, is_one)
        }
    }
}

/// Returns true if there is an outer join.
fn has_outer(from: &From) -> bool {
    match from {
        From::Table(_) => false,
        From::Join(join) => join.outer || has_outer(&join.left) || has_outer(&join.right),
    }
}
