//! The tables' rows, combined: nested loops over cursors and kept rows, in the order of the plan's steps.

use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use cohort_catalog::Table;
use cohort_expr::{Expr, append_group_key};
use cohort_types::{Collation, SqlResult, Value, row_memory_bytes};
use hashbrown::HashMap;

use crate::plan::{HashKey, Method, QueryPlan, SelectPlan, Source, Step};
use crate::select::output::KEY_BYTES;
use crate::select::{Flow, rows as collect};
use crate::statement::{StatementContext, row_done};
use crate::table::{Access, Columns, CursorOptions, ReadMode, TableCursor, every_row};
use crate::trx::WaitPolicy;
use crate::virtual_table::WantedNames;

/// Takes the rows of a join.
pub(super) trait JoinSink {
    /// A row of all tables. It is used again: only a join of one table may have values taken out.
    fn joined(&mut self, ctx: &mut StatementContext<'_>, row: &mut Vec<Value>) -> SqlResult<Flow>;
}

/// What a step keeps between visits.
#[derive(Default)]
#[allow(clippy::large_enum_variant)] // one per table of a statement
enum StepState {
    #[default]
    New,
    Cursor {
        cursor: TableCursor,
        scratch: Vec<Value>,
    },
    Kept(Kept),
}

/// All rows of a table.
struct Kept {
    rows: Rc<Vec<Vec<Value>>>,
    /// Places in `rows` by key; None without keys.
    by_key: Option<HashMap<Vec<u8>, Vec<u32>, ahash::RandomState>>,
    key: Vec<u8>,
}

/// Where the rows of a join go, and what they are made in.
struct Target<'t> {
    row: &'t mut Vec<Value>,
    sink: &'t mut dyn JoinSink,
}

struct Join<'p> {
    steps: &'p [Step],
    states: Vec<StepState>,
    mode: ReadMode,
}

/// Runs a join; a SELECT without FROM has one row without columns.
pub(super) fn run(
    select: &SelectPlan,
    ctx: &mut StatementContext<'_>,
    rows_expected: Option<u64>,
    sink: &mut dyn JoinSink,
) -> SqlResult<()> {
    let mode = match select.read {
        ReadMode::Snapshot if !select.steps.is_empty() && ctx.trx.plain_reads_lock() => {
            ReadMode::LockShare(WaitPolicy::Wait)
        }
        mode => mode,
    };
    if let [step] = select.steps.as_slice()
        && let Some((table, access, columns)) = scan_of(step)
    {
        let open = ctx.trx.open_table(table)?;
        let (spans, is_exact) = access.resolve_exactly(&open, &[], &ctx.eval)?;
        let (filter, columns) = match &step.exact {
            Some(exact) if is_exact && mode == ReadMode::Snapshot => (&exact.filter, &exact.columns),
            _ => (&step.filter, columns),
        };
        let options = CursorOptions { mode, columns: columns.clone(), rows_expected };
        let cursor = TableCursor::open(ctx.trx, table, spans, options)?;
        return run_one_table(filter, step.columns, cursor, ctx, sink);
    }
    let states = select.steps.iter().map(|_| StepState::New).collect();
    let mut join = Join { steps: &select.steps, states, mode };
    let mut row = vec![Value::Null; select.width];
    join.visit(0, ctx, &mut Target { row: &mut row, sink })?;
    Ok(())
}

fn scan_of(step: &Step) -> Option<(&Arc<Table>, &Access, &Columns)> {
    match (&step.source, &step.method) {
        (Source::Base { table, columns }, Method::Scan(access)) if !step.outer => {
            Some((table, access, columns))
        }
        _ => None,
    }
}

/// The usual case without any copying: the cursor's row is the row.
fn run_one_table(
    filter: &Option<Expr>,
    width: usize,
    mut cursor: TableCursor,
    ctx: &mut StatementContext<'_>,
    sink: &mut dyn JoinSink,
) -> SqlResult<()> {
    let mut row = Vec::with_capacity(width);
    let mut seen = 0;
    loop {
        let found = match filter {
            Some(filter) => {
                let eval = &ctx.eval;
                let mut passes = |row: &[Value]| {
                    seen += 1;
                    eval.set_row_number(seen);
                    row_done(eval)?;
                    filter.passes(row, eval)
                };
                cursor.next(ctx.trx, &mut passes, &mut row)?
            }
            None => {
                seen += 1;
                ctx.eval.set_row_number(seen);
                cursor.next(ctx.trx, &mut every_row, &mut row)?
            }
        };
        if !found || sink.joined(ctx, &mut row)? == Flow::Stop {
            return Ok(());
        }
        ctx.check_interrupt()?;
    }
}

impl Join<'_> {
    fn visit(
        &mut self,
        n: usize,
        ctx: &mut StatementContext<'_>,
        target: &mut Target<'_>,
    ) -> SqlResult<Flow> {
        let Some(step) = self.steps.get(n) else { return target.sink.joined(ctx, target.row) };
        ctx.eval.check_stack()?;
        let mut state = std::mem::take(&mut self.states[n]);
        let mut matched = false;
        let flow = match &step.method {
            Method::Scan(access) => self.visit_scan(n, access, &mut state, ctx, target, &mut matched)?,
            Method::Buffer { keys, .. } => self.visit_kept(n, keys, &mut state, ctx, target, &mut matched)?,
        };
        self.states[n] = state;
        if flow == Flow::Stop {
            return Ok(Flow::Stop);
        }
        let step = &self.steps[n];
        if step.outer && !matched {
            target.row[step.first_slot..step.first_slot + step.columns].fill(Value::Null);
            if passes(&step.filter, target.row, ctx)? {
                return self.visit(n + 1, ctx, target);
            }
        }
        Ok(Flow::Continue)
    }

    fn visit_scan(
        &mut self,
        n: usize,
        access: &Access,
        state: &mut StepState,
        ctx: &mut StatementContext<'_>,
        target: &mut Target<'_>,
        matched: &mut bool,
    ) -> SqlResult<Flow> {
        let Source::Base { table, columns } = &self.steps[n].source else {
            unreachable!("only base tables are scanned")
        };
        let first_slot = self.steps[n].first_slot;
        let open = ctx.trx.open_table(table)?;
        let spans = access.resolve(&open, target.row, &ctx.eval)?;
        match &mut *state {
            StepState::Cursor { cursor, .. } => cursor.reopen(spans),
            other => {
                let options =
                    CursorOptions { mode: self.mode, columns: columns.clone(), rows_expected: None };
                let cursor = TableCursor::open(ctx.trx, table, spans, options)?;
                *other = StepState::Cursor { cursor, scratch: Vec::new() };
            }
        }
        let StepState::Cursor { cursor, scratch } = state else { unreachable!("made above") };
        while cursor.next(ctx.trx, &mut every_row, scratch)? {
            ctx.check_interrupt()?;
            for (slot, value) in target.row[first_slot..].iter_mut().zip(scratch.drain(..)) {
                *slot = value;
            }
            if self.combine(n, ctx, target, matched)?.is_break() {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }

    fn visit_kept(
        &mut self,
        n: usize,
        keys: &[HashKey],
        state: &mut StepState,
        ctx: &mut StatementContext<'_>,
        target: &mut Target<'_>,
        matched: &mut bool,
    ) -> SqlResult<Flow> {
        let step = &self.steps[n];
        let slots = step.first_slot..step.first_slot + step.columns;
        if matches!(state, StepState::New) {
            *state = StepState::Kept(Kept::read(step, keys, self.mode, target.row.len(), ctx)?);
        }
        let StepState::Kept(Kept { rows, by_key, key }) = state else { unreachable!("made above") };
        let found: Option<&[u32]> = match by_key {
            None => None,
            Some(by_key) => {
                let outer = keys.iter().map(|k| (&k.outer, k.collation));
                let known = group_key(outer, target.row, ctx, key)?;
                Some(by_key.get(key.as_slice()).filter(|_| known).map_or(&[][..], Vec::as_slice))
            }
        };
        for i in 0..found.map_or(rows.len(), <[u32]>::len) {
            ctx.check_interrupt()?;
            let from = &rows[found.map_or(i, |found| found[i] as usize)];
            target.row[slots.clone()].clone_from_slice(from);
            if self.combine(n, ctx, target, matched)?.is_break() {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }

    /// Decides about one combination and goes on with the next table.
    fn combine(
        &mut self,
        n: usize,
        ctx: &mut StatementContext<'_>,
        target: &mut Target<'_>,
        matched: &mut bool,
    ) -> SqlResult<ControlFlow<()>> {
        let step = &self.steps[n];
        if !passes(&step.on, target.row, ctx)? {
            return Ok(ControlFlow::Continue(()));
        }
        *matched = true;
        if passes(&step.filter, target.row, ctx)? && self.visit(n + 1, ctx, target)? == Flow::Stop {
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn passes(condition: &Option<Expr>, row: &[Value], ctx: &StatementContext<'_>) -> SqlResult<bool> {
    condition.as_ref().map_or(Ok(true), |c| c.passes(row, &ctx.eval))
}

impl Kept {
    fn read(
        step: &Step,
        keys: &[HashKey],
        mode: ReadMode,
        width: usize,
        ctx: &mut StatementContext<'_>,
    ) -> SqlResult<Kept> {
        let rows = match (&step.source, &step.method) {
            (Source::Derived(plan), _) => collect_shared(plan, ctx)?,
            (Source::Virtual(table), _) => {
                let conditions = [&step.filter, &step.on];
                let wanted = WantedNames::asked(table.names_at(), step.first_slot, conditions, &ctx.eval)?;
                let rows = table.rows(&wanted, ctx)?;
                ctx.eval.keep(rows.iter().map(|row| row_memory_bytes(row)).sum())?;
                Rc::new(rows)
            }
            (Source::Base { table, columns }, Method::Buffer { access: Some(access), .. }) => {
                Rc::new(read_all(table, columns, access, mode, ctx)?)
            }
            (Source::Base { .. }, _) => unreachable!("a kept base table has an access"),
        };
        let mut kept = Kept { rows, by_key: None, key: Vec::new() };
        if !keys.is_empty() {
            kept.index(step, keys, width, ctx)?;
        }
        Ok(kept)
    }

    fn index(
        &mut self,
        step: &Step,
        keys: &[HashKey],
        width: usize,
        ctx: &StatementContext<'_>,
    ) -> SqlResult<()> {
        let mut by_key: HashMap<Vec<u8>, Vec<u32>, ahash::RandomState> = HashMap::default();
        let mut wide = vec![Value::Null; width];
        for (n, row) in self.rows.iter().enumerate() {
            wide[step.first_slot..step.first_slot + step.columns].clone_from_slice(row);
            let inner = keys.iter().map(|k| (&k.inner, k.collation));
            if group_key(inner, &wide, ctx, &mut self.key)? {
                ctx.eval.keep(self.key.len() + KEY_BYTES)?;
                by_key.entry(self.key.clone()).or_default().push(n as u32);
            }
        }
        self.by_key = Some(by_key);
        Ok(())
    }
}

/// The rows of a derived table. Those of a common table that is named more than once are found once.
fn collect_shared(plan: &Arc<QueryPlan>, ctx: &mut StatementContext<'_>) -> SqlResult<Rc<Vec<Vec<Value>>>> {
    let is_shared = Arc::strong_count(plan) > 1;
    if let Some(known) = ctx.common_rows.iter().find(|known| Arc::ptr_eq(&known.0, plan)) {
        return Ok(Rc::clone(&known.1));
    }
    let rows = Rc::new(collect(plan, ctx)?);
    if is_shared {
        ctx.common_rows.push((Arc::clone(plan), Rc::clone(&rows)));
    }
    Ok(rows)
}

fn read_all(
    table: &Arc<Table>,
    columns: &Columns,
    access: &Access,
    mode: ReadMode,
    ctx: &mut StatementContext<'_>,
) -> SqlResult<Vec<Vec<Value>>> {
    let open = ctx.trx.open_table(table)?;
    let spans = access.resolve(&open, &[], &ctx.eval)?;
    let options = CursorOptions { mode, columns: columns.clone(), rows_expected: None };
    let mut cursor = TableCursor::open(ctx.trx, table, spans, options)?;
    let (mut rows, mut row) = (Vec::new(), Vec::new());
    while cursor.next(ctx.trx, &mut every_row, &mut row)? {
        ctx.check_interrupt()?;
        ctx.eval.keep(row_memory_bytes(&row))?;
        rows.push(std::mem::take(&mut row));
    }
    Ok(rows)
}

/// The bytes of a hash key; false when a part is NULL, which equals nothing.
fn group_key<'e>(
    parts: impl Iterator<Item = (&'e Expr, Collation)>,
    row: &[Value],
    ctx: &StatementContext<'_>,
    key: &mut Vec<u8>,
) -> SqlResult<bool> {
    key.clear();
    for (expr, collation) in parts {
        let value = expr.eval(row, &ctx.eval)?;
        if value.is_null() {
            return Ok(false);
        }
        append_group_key(&value, collation, key);
    }
    Ok(true)
}
