//! Join order and the way each table is read.
//!
//! Inner tables are ordered greedily: next comes the table whose visit is cheapest given the tables before.
//! Inner sides of outer joins come after them in the order written. (Their ON conditions read tables to their
//! left only, and a WHERE condition on them is decided after them, so moving inner tables forward changes
//! nothing.)

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_expr::{CompareHow, CompareOp, Expr};
use cohort_types::SqlResult;

use crate::bind::{PlanContext, Relation, Scope, ScopeTable};
use crate::plan::access::{Candidates, Choice, WantedOrder};
use crate::plan::answered::unanswered;
use crate::plan::from::{FromTable, all_of};
use crate::plan::query::{ExactStep, HashKey, Method, QueryPlan, Source, Step};
use crate::plan::sargable::{Condition, conditions};
use crate::table::Columns;

/// What the join planner starts from.
pub(super) struct JoinInput<'j> {
    pub ctx: &'j PlanContext<'j>,
    pub scope: &'j Scope,
    pub tables: Vec<FromTable>,
    pub derived: Vec<Option<Arc<QueryPlan>>>,
    /// WHERE and ON of inner joins.
    pub conditions: Vec<Expr>,
    pub wanted: WantedOrder,
    /// Slots that the rest of the statement reads.
    pub needed: Vec<bool>,
    /// STRAIGHT_JOIN.
    pub keep_order: bool,
    /// Locking reads see all columns, and rows are not read twice.
    pub locking: bool,
}

/// The join, planned.
pub(super) struct Joined {
    pub steps: Vec<Step>,
    pub constant_filter: Option<Expr>,
    /// Rows come in the wanted order.
    pub ordered: bool,
}

/// A condition with what it reads.
struct Conjunct {
    expr: Expr,
    tables: u64,
    sargs: Vec<Condition>,
    done: bool,
}

/// Plans a join.
pub(super) fn plan_join(mut input: JoinInput<'_>) -> SqlResult<Joined> {
    let mut conjuncts: Vec<Conjunct> =
        std::mem::take(&mut input.conditions).into_iter().map(|e| Conjunct::new(e, input.scope)).collect();
    let mut constant = Vec::new();
    for conjunct in conjuncts.iter_mut().filter(|c| c.tables == 0) {
        conjunct.done = true;
        constant.push(conjunct.expr.clone());
    }
    let needed_behind = input.needed.clone();
    note_needed(&mut input, &conjuncts);
    let mut planner =
        JoinPlanner { input, needed_behind, conjuncts, placed: 0, steps: Vec::new(), ordered: false };
    while let Some((n, choice)) = planner.next_table() {
        planner.place(n, choice);
    }
    Ok(Joined { steps: planner.steps, constant_filter: all_of(constant), ordered: planner.ordered })
}

fn note_needed(input: &mut JoinInput<'_>, conjuncts: &[Conjunct]) {
    let outer = input.tables.iter().filter_map(|t| t.outer_on.as_ref()).flatten();
    for expr in conjuncts.iter().map(|c| &c.expr).chain(outer) {
        for slot in expr.columns() {
            input.needed[slot] = true;
        }
    }
}

impl Conjunct {
    fn new(expr: Expr, scope: &Scope) -> Conjunct {
        let tables = expr.columns().into_iter().fold(0, |mask, slot| mask | 1 << scope.table_of(slot));
        Conjunct { sargs: conditions(&expr), expr, tables, done: false }
    }
}

struct JoinPlanner<'j> {
    input: JoinInput<'j>,
    /// Slots that the statement reads behind the join.
    needed_behind: Vec<bool>,
    conjuncts: Vec<Conjunct>,
    /// Tables placed, by number.
    placed: u64,
    steps: Vec<Step>,
    ordered: bool,
}

impl JoinPlanner<'_> {
    /// The place in `input.tables` of the table to join next, with its access when it is a base table.
    fn next_table(&self) -> Option<(usize, Option<Choice>)> {
        let left = |t: &FromTable| self.placed & 1 << t.number == 0;
        let mut best: Option<(usize, Option<Choice>, f64)> = None;
        let (mut earlier_inner, mut earlier_any) = (false, false);
        for (n, table) in self.input.tables.iter().enumerate().filter(|(_, t)| left(t)) {
            let fixed = table.outer_on.is_some();
            let blocked =
                if fixed { self.inner_left() || earlier_any } else { earlier_inner && table.keep_order };
            earlier_any |= fixed;
            earlier_inner |= !fixed;
            if blocked || (self.input.keep_order && best.is_some()) {
                continue;
            }
            let choice = self.choose(table);
            let cost = choice.as_ref().map_or(1000.0, |c| c.cost);
            if best.as_ref().is_none_or(|(_, _, least)| cost < *least) {
                best = Some((n, choice, cost));
            }
        }
        best.map(|(n, choice, _)| (n, choice))
    }

    fn inner_left(&self) -> bool {
        self.input.tables.iter().any(|t| t.outer_on.is_none() && self.placed & 1 << t.number == 0)
    }

    fn scope_table(&self, table: &FromTable) -> &ScopeTable {
        &self.input.scope.tables[table.number]
    }

    fn choose(&self, table: &FromTable) -> Option<Choice> {
        let scope_table = self.scope_table(table);
        let Relation::Base(base) = &scope_table.relation else { return None };
        let on: Vec<Condition> = table.outer_on.iter().flatten().flat_map(conditions).collect();
        let inner = self.conjuncts.iter().flat_map(|c| &c.sargs);
        let usable: Vec<&Condition> = match table.outer_on {
            Some(_) => on.iter().collect(),
            None => inner.collect(),
        };
        Some(self.choose_with(table, base, usable))
    }

    fn choose_with(&self, table: &FromTable, base: &Table, usable: Vec<&Condition>) -> Choice {
        let scope = self.input.scope;
        let available =
            |c: &&Condition| c.reads.iter().all(|slot| self.placed & 1 << scope.table_of(*slot) != 0);
        let candidates = Candidates {
            table: base,
            first_slot: self.scope_table(table).first_slot,
            entries: &|| entries_of(self.input.ctx, base),
            allowed: table.allowed.clone(),
            forced: table.forced,
            conditions: usable.into_iter().filter(available).collect(),
            wanted: self.wanted(scope),
            columns: self.columns(self.scope_table(table)),
        };
        candidates.choose()
    }

    /// What is read of a table.
    fn columns(&self, table: &ScopeTable) -> Columns {
        let needed = &self.input.needed[table.first_slot..table.first_slot + table.columns.len()];
        columns_of(needed, self.input.locking)
    }

    /// The order counts for a single table only; its columns as ordinals.
    fn wanted(&self, scope: &Scope) -> WantedOrder {
        if scope.tables.len() == 1 { self.input.wanted.clone() } else { WantedOrder::default() }
    }

    fn place(&mut self, n: usize, choice: Option<Choice>) {
        let number = self.input.tables[n].number;
        self.placed |= 1 << number;
        let on = self.input.tables[n].outer_on.take();
        let outer = on.is_some();
        let filter: Vec<Expr> = self.take_decidable();
        let lookups = on.as_deref().unwrap_or(&filter).to_vec();
        let table = &self.input.scope.tables[number];
        let needed = &self.input.needed[table.first_slot..table.first_slot + table.columns.len()];
        let rows_estimate = choice.as_ref().map_or(1000, |c| c.rows as u64);
        let (source, method) = match &table.relation {
            Relation::Base(base) => {
                let choice = choice.expect("base tables have a choice");
                self.ordered |= choice.ordered && self.input.scope.tables.len() == 1;
                let columns = columns_of(needed, self.input.locking);
                (Source::Base { table: base.clone(), columns }, self.base_method(table, choice, &lookups))
            }
            Relation::Virtual(found) => (Source::Virtual(found.clone()), self.buffer(None, table, &lookups)),
            Relation::Derived(d) => {
                let plan = self.input.derived[*d].take().expect("each derived table is placed once");
                (Source::Derived(plan), self.buffer(None, table, &lookups))
            }
        };
        let (name, first_slot, columns) = (table.name.clone(), table.first_slot, table.columns.len());
        let exact = self.exact_step(&source, &method, &filter);
        self.steps.push(Step {
            source,
            name,
            first_slot,
            columns,
            method,
            outer,
            on: on.and_then(all_of),
            filter: all_of(filter),
            exact,
            rows_estimate,
        });
    }

    /// For a query of one table, which need not ask a row what its span says.
    fn exact_step(&self, source: &Source, method: &Method, filter: &[Expr]) -> Option<ExactStep> {
        let (Source::Base { table, .. }, Method::Scan(access)) = (source, method) else { return None };
        if self.input.scope.tables.len() != 1 || self.input.locking {
            return None;
        }
        let left = unanswered(access, table, filter);
        if left.len() == filter.len() {
            return None;
        }
        let mut needed = self.needed_behind.clone();
        for slot in left.iter().flat_map(|expr| expr.columns()) {
            needed[slot] = true;
        }
        let filter = all_of(left.into_iter().cloned().collect());
        Some(ExactStep { filter, columns: columns_of(&needed, false) })
    }

    /// Conditions all of whose tables are placed now.
    fn take_decidable(&mut self) -> Vec<Expr> {
        let placed = self.placed;
        let ready = self.conjuncts.iter_mut().filter(|c| !c.done && c.tables & !placed == 0);
        ready
            .map(|c| {
                c.done = true;
                c.expr.clone()
            })
            .collect()
    }

    /// The first table is streamed; a later one that no index finds is read once and kept.
    fn base_method(&self, table: &ScopeTable, choice: Choice, lookups: &[Expr]) -> Method {
        let by_key = matches!(choice.access.spans, crate::table::Spans::List(_));
        if self.steps.is_empty() || by_key || self.input.locking {
            return Method::Scan(choice.access);
        }
        self.buffer(Some(choice.access), table, lookups)
    }

    fn buffer(&self, access: Option<crate::table::Access>, table: &ScopeTable, lookups: &[Expr]) -> Method {
        let slots = table.first_slot..table.first_slot + table.columns.len();
        let own = |e: &Expr| !e.columns().is_empty() && e.columns().iter().all(|s| slots.contains(s));
        let others = |e: &Expr| {
            let columns = e.columns();
            !columns.is_empty() && !columns.iter().any(|s| slots.contains(s))
        };
        let mut keys = Vec::new();
        for lookup in lookups {
            let Expr::Compare(c) = lookup else { continue };
            if c.op != CompareOp::Eq {
                continue;
            }
            let (inner, outer) = match (own(&c.left), own(&c.right)) {
                (true, _) if others(&c.right) => (&c.left, &c.right),
                (_, true) if others(&c.left) => (&c.right, &c.left),
                _ => continue,
            };
            if let Some(collation) = hashable(inner, outer, &c.how) {
                keys.push(HashKey { inner: inner.clone(), outer: outer.clone(), collation });
            }
        }
        Method::Buffer { access, keys }
    }
}

/// The collation by which two expressions may be compared as bytes of their group keys: they must be of one
/// type.
fn hashable(inner: &Expr, outer: &Expr, how: &CompareHow) -> Option<cohort_types::Collation> {
    use cohort_expr::TypeClass;
    use cohort_types::TypeKind;
    let CompareHow::Scalar { collation, class } = how else { return None };
    let (a, b) = (inner.ty(), outer.ty());
    let plain = |k: TypeKind| !matches!(k, TypeKind::Enum | TypeKind::Set | TypeKind::Bit | TypeKind::Year);
    let same =
        a.class() == b.class() && plain(a.kind) && plain(b.kind) && class.is_none_or(|c| c == a.class());
    // Signed and unsigned, or two scales, may have different bytes for one number.
    let same_form = match a.class() {
        TypeClass::Int => a.unsigned == b.unsigned,
        TypeClass::Decimal => a.decimals == b.decimals,
        TypeClass::Real => a.kind == b.kind,
        _ => true,
    };
    (same && same_form).then_some(*collation)
}

fn columns_of(needed: &[bool], locking: bool) -> Columns {
    if locking || needed.iter().all(|n| *n) {
        return Columns::All;
    }
    let some: Vec<usize> = (0..needed.len()).filter(|n| needed[*n]).collect();
    Columns::Some(Arc::from(some))
}

/// Rows of a table, estimated.
pub(super) fn entries_of(ctx: &PlanContext<'_>, table: &Table) -> u64 {
    let engines = &ctx.session.db.engines;
    let engine = engines.iter().find(|e| e.name().eq_ignore_ascii_case(&table.engine)).or(engines.first());
    engine.map_or(1000, |e| e.stats(table.clustered().id).entries)
}
