//! Join groups: the tables of FROM that are joined together, and their preparation before the join order is
//! chosen.

use std::cell::RefCell;
use std::collections::HashMap;

use cohort_expr::{CompareOp, Expr};
use cohort_plan::{From, FromTable, Source, with_zero_dates};
use cohort_types::SqlResult;

use crate::disjunction::{factored, implied};
use crate::equal::Classes;
use crate::lower::Lowering;
use crate::physical::Choice;
use crate::physical::JoinKind;
use crate::visit::brings;

/// A set of inner-joined tables, and the outer joins attached to it.
#[derive(Default)]
pub(crate) struct JoinGroup<'q> {
    pub tables: Vec<&'q FromTable>,
    /// For each STRAIGHT_JOIN, its first table on the right: it must not precede the tables on the left.
    pub keep_order: Vec<usize>,
    pub outers: Vec<OuterSide<'q>>,
    pub conditions: Vec<Expr>,
    /// Accesses chosen so far, by table and by the set of preceding tables that its conditions read.
    pub choices: RefCell<HashMap<(usize, u128), Choice>>,
    /// By table: the fraction of its rows that pass the conditions on it alone.
    pub shares: RefCell<HashMap<usize, f64>>,
    /// Equivalence classes of columns.
    pub classes: Classes,
    /// By table: the tables it is computed from, as bits. A JSON_TABLE must come after them.
    pub made_of: Vec<u128>,
}

/// The right side of an outer join, or a table computed from the rows before it.
pub(crate) struct OuterSide<'q> {
    pub from: &'q From,
    pub on: Vec<Expr>,
    pub kind: JoinKind,
}

impl<'q> JoinGroup<'q> {
    pub fn add(&mut self, from: &'q From, is_lateral: &dyn Fn(&FromTable) -> bool) {
        match from {
            From::Table(table) if is_lateral(table) => {
                self.outers.push(OuterSide { from, on: Vec::new(), kind: JoinKind::Inner });
            }
            From::Table(table) => self.tables.push(table),
            From::Join(join) if join.outer => {
                self.add(&join.left, is_lateral);
                let (from, on) = (&join.right, join.on.clone());
                self.outers.push(OuterSide { from, on, kind: JoinKind::Left });
            }
            From::Join(join) => {
                self.add(&join.left, is_lateral);
                if join.keep_order {
                    self.keep_order.push(self.tables.len());
                }
                self.add(&join.right, is_lateral);
                self.conditions.extend(join.on.iter().cloned());
            }
        }
    }

    /// Factors out the common conjuncts of disjunctions, and adds the conditions they imply for single
    /// tables.
    pub fn open_disjunctions(&mut self) {
        let conditions = std::mem::take(&mut self.conditions);
        self.conditions = conditions.into_iter().flat_map(factored).collect();
        if self.tables.len() < 2 {
            return;
        }
        let mut found = Vec::new();
        for condition in &self.conditions {
            for table in &self.tables {
                let is_of = |column: usize| (table.first..table.first + table.width).contains(&column);
                let reads_others = condition.columns().iter().any(|column| !is_of(*column));
                found.extend(reads_others.then(|| implied(condition, &is_of)).flatten());
            }
        }
        self.conditions.extend(found);
    }

    /// Converts outer joins to inner joins if a condition rejects their NULL-padded rows.
    pub fn simplify(&mut self, is_lateral: &dyn Fn(&FromTable) -> bool) -> SqlResult<()> {
        let refused = |outer: &OuterSide<'_>, conditions: &[Expr]| {
            if outer.kind != JoinKind::Left {
                return false;
            }
            let tables = outer.from.tables();
            let is_inside =
                |column: usize| tables.iter().any(|t| (t.first..t.first + t.width).contains(&column));
            conditions.iter().any(|condition| refuses_null(condition, &is_inside))
        };
        while let Some(n) = self.outers.iter().position(|outer| refused(outer, &self.conditions)) {
            // Sides computed from its rows must come after it.
            let later = self.outers.split_off(n + 1);
            let outer = self.outers.pop().expect("it was found");
            let before = self.conditions.len();
            self.add(outer.from, is_lateral);
            self.outers.extend(later);
            self.conditions.extend(outer.on);
            let is_required = |column| self.tables.iter().any(|table| is_required_in(table, column));
            let now = self.conditions.drain(before..).collect::<Vec<_>>().into_iter();
            debug_assert!(outer.kind == JoinKind::Left, "an inner join is simplified again");
            let now = now.map(|condition| with_zero_dates(condition, &is_required));
            let now = now.collect::<SqlResult<Vec<_>>>()?;
            self.conditions.extend(now);
        }
        Ok(())
    }
}

/// Returns true if a column belongs to a base table and is NOT NULL there.
fn is_required_in(table: &FromTable, column: usize) -> bool {
    let Source::Base { table: base, .. } = &table.source else { return false };
    let described = column.checked_sub(table.first).and_then(|place| base.columns.get(place));
    described.is_some_and(|column| !column.nullable)
}

/// Returns true if a condition cannot be true when all columns of some tables are NULL.
fn refuses_null(condition: &Expr, is_inside: &dyn Fn(usize) -> bool) -> bool {
    let is_null = |expr: &Expr| matches!(expr, Expr::Column(c) if is_inside(c.ordinal));
    match condition {
        Expr::Compare(node) => {
            node.op != CompareOp::NullSafeEq && (is_null(&node.left) || is_null(&node.right))
        }
        Expr::IsNull(node) => node.negated && is_null(&node.operand),
        Expr::Between(node) => !node.negated && is_null(&node.operand),
        Expr::In(node) => is_null(&node.operand),
        Expr::Like(node) => is_null(&node.operand),
        Expr::And(parts) => parts.iter().any(|part| refuses_null(part, is_inside)),
        Expr::Or(parts) => parts.iter().all(|part| refuses_null(part, is_inside)),
        _ => false,
    }
}

impl Lowering<'_> {
    /// Moves tables that are computed from inner tables only into the set of inner tables.
    pub(crate) fn order_laterals(&self, group: &mut JoinGroup<'_>) {
        let mut n = 0;
        while n < group.outers.len() {
            let side = &group.outers[n];
            let is_padded = |column: usize| {
                let others = group.outers.iter().filter(|other| !std::ptr::eq(*other, side));
                others.flat_map(|other| other.from.tables()).any(|table| brings(table, column))
            };
            match side.from {
                From::Table(table) if side.kind == JoinKind::Inner && !self.is_lateral(table, &is_padded) => {
                    group.tables.push(table);
                    group.outers.remove(n);
                }
                _ => n += 1,
            }
        }
        let read_by = |table: &FromTable| {
            let reads = |other: &FromTable| self.is_lateral(table, &|column| brings(other, column));
            let tables = group.tables.iter().enumerate();
            tables.filter(|(_, other)| reads(other)).fold(0, |mask, (n, _)| mask | 1 << n)
        };
        group.made_of = group.tables.iter().map(|table| read_by(table)).collect();
        debug_assert!(
            group.made_of.iter().enumerate().all(|(n, made_of)| made_of & 1 << n == 0),
            "a JSON_TABLE is computed from its own row"
        );
        debug_assert!(
            group.keep_order.iter().all(|first| *first > 0 && *first < group.tables.len()),
            "STRAIGHT_JOIN orders a table that is not in the group"
        );
    }
}
