//! Planner statistics of tables: row counts, rows per key, rows in a span.
//!
//! # Samples
//! An index is sampled when a plan first needs it. The engine returns separator keys at about equal
//! distances, and a few entries are read at each. The share of neighbours that differ in their first key
//! parts gives the rows per key; the number of separators between two bounds gives the rows in a range. All
//! sessions use a sample until the table has grown or shrunk by a third.
//!
//! # Conditions
//! To estimate the share of rows that pass a condition, the condition is evaluated on some hundred rows, read
//! at the separator keys. So every condition has an estimate, and the estimate for several conditions
//! accounts for their correlation. A plan that is reused with other values keeps the choice made for the
//! first values.
//!
//! Samples read the newest entries, committed or not. They affect only the choice of a plan.

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_engine::{Batch, Engine, KeyRange, ReadAt, ScanRequest};
use cohort_expr::{EvalContext, Expr, SessionHooks};
use cohort_optimize::{Access, Columns, OptimizerTrace, Span, Spans, Statistics};
use cohort_plan::PlanContext;
use cohort_row::{KeySpan, resolve};
use cohort_types::{SqlResult, TypeKind, Value};

use crate::samples::{RowSample, Sample, holds_for, is_small};
use crate::session_state::SessionState;

/// Statistics for the planner of one statement.
pub struct PlanStatistics<'p> {
    session: &'p SessionState,
    ctx: &'p PlanContext<'p>,
    trace: Option<Arc<OptimizerTrace>>,
}

impl<'p> PlanStatistics<'p> {
    pub fn new(session: &'p SessionState, ctx: &'p PlanContext<'p>) -> PlanStatistics<'p> {
        PlanStatistics { session, ctx, trace: session.optimizer.running() }
    }

    fn sample(&self, table: &Arc<Table>, index: usize) -> Option<Arc<Sample>> {
        let entries = self.entries(table);
        index_sample(self.session, table, index, &|sample| holds_for(sample.entries, entries))
    }

    fn rows_of(&self, table: &Arc<Table>) -> Option<Arc<RowSample>> {
        if table.is_temporary() {
            return None;
        }
        let entries = self.entries(table);
        let id = table.rows().id;
        let samples = &self.session.db.index_samples;
        if let Some(sample) = samples.of_rows(id).filter(|sample| holds_for(sample.entries, entries)) {
            return Some(sample);
        }
        let sample = Arc::new(RowSample::take(&**engine_of(self.session, table)?, id, entries)?);
        samples.keep_of_rows(id, &sample);
        Some(sample)
    }

    /// Returns whether the value is known during planning.
    fn is_known(&self, expr: &Expr) -> bool {
        let mut known = expr.is_const_per_execution();
        expr.walk(&mut |node| {
            known &= match node {
                Expr::Param(param) => param.index < self.ctx.params.len(),
                Expr::Column(_) | Expr::Outer(_) | Expr::Subquery(_) | Expr::CallBack(_) => false,
                _ => true,
            };
            known
        });
        known
    }
}

impl Statistics for PlanStatistics<'_> {
    fn entries(&self, table: &Table) -> u64 {
        entries_of(self.session, table)
    }

    fn check_interrupt(&self) -> SqlResult<()> {
        self.session.check_interrupt()
    }

    fn trace(&self) -> Option<&OptimizerTrace> {
        self.trace.as_deref()
    }

    fn rows_per_key(&self, table: &Arc<Table>, index: usize, parts: usize) -> Option<f64> {
        let sample = self.sample(table, index)?;
        sample.rows_per_key.get(parts.checked_sub(1)?).copied()
    }

    fn rows_in(&self, table: &Arc<Table>, access: &Access) -> Option<f64> {
        let Spans::List(spans) = &access.spans else { return None };
        let is_known = |span: &Span| span.exprs().all(|expr| self.is_known(expr));
        // Single keys have an average number of rows, which is good enough for all values except NULL.
        let is_usual = |span: &Span| span.is_of_keys() && span.null_safe == 0;
        if spans.iter().all(is_usual) || !spans.iter().all(is_known) {
            return None;
        }
        let sample = self.sample(table, access.index)?;
        let open = self.session.db.open_table(table).ok()?;
        let eval = EvalContext::new(&self.session.settings.env, self.session, self.ctx.params);
        let resolved = resolve(access, &open, &[] as &[Value], &eval).ok()?;
        let entries = self.entries(table) as f64;
        let rows = |span: &KeySpan| match span {
            KeySpan::Point(_) => 1.0,
            KeySpan::Range(range) => sample.share(range) * entries,
        };
        Some(resolved.spans.iter().map(rows).sum())
    }

    fn share(&self, table: &Arc<Table>, first: usize, condition: &Expr) -> Option<f64> {
        let mut is_known = !condition.is_volatile();
        condition.walk(&mut |node| {
            is_known &= match node {
                Expr::Param(param) => param.index < self.ctx.params.len(),
                Expr::Outer(_) | Expr::Subquery(_) | Expr::CallBack(_) => false,
                _ => true,
            };
            is_known
        });
        if !is_known {
            return None;
        }
        let sample = self.rows_of(table).filter(|sample| !sample.rows.is_empty())?;
        let open = self.session.db.open_table(table).ok()?;
        let condition = condition.clone().map_columns(&mut |column| column - first);
        let columns = Columns::Some(condition.columns().into());
        // Warnings are dropped here; they are reported when the statement runs.
        let eval = EvalContext::new(&self.session.settings.env, self.session, self.ctx.params);
        let (mut row, mut passed) = (Vec::new(), 0);
        for (_, value) in sample.rows.iter() {
            open.decode(value, &columns, &mut row).ok()?;
            passed += u64::from(condition.passes(&row, &eval).ok()?);
        }
        // If no sampled row passes, assume less than one.
        Some((passed as f64).max(0.3) / sample.rows.len() as f64)
    }

    fn depends_on_values(&self) {
        self.ctx.reusable.set(false);
    }
}

fn engine_of<'s>(session: &'s SessionState, table: &Table) -> Option<&'s Arc<dyn Engine>> {
    let engines = &session.db.engines;
    engines.iter().find(|e| e.name().eq_ignore_ascii_case(&table.engine)).or(engines.first())
}

fn entries_of(session: &SessionState, table: &Table) -> u64 {
    if table.is_temporary() {
        return session.temporary.entries(table);
    }
    engine_of(session, table).map_or(1000, |engine| engine.stats(table.rows().id).entries)
}

/// Returns the cached sample of an index if `holds` accepts it, else takes a new one.
fn index_sample(
    session: &SessionState,
    table: &Arc<Table>,
    index: usize,
    holds: &dyn Fn(&Sample) -> bool,
) -> Option<Arc<Sample>> {
    // Temporary tables are small and change all the time, so they are not sampled.
    if table.is_temporary() {
        return None;
    }
    let id = table.indexes.get(index)?.id;
    let samples = &session.db.index_samples;
    if let Some(sample) = samples.of_index(id).filter(|sample| holds(sample)) {
        return Some(sample);
    }
    let (engine, open) = (engine_of(session, table)?, session.db.open_table(table).ok()?);
    let sample = Sample::take(&**engine, open.indexes.get(index)?, entries_of(session, table))?;
    let sample = Arc::new(sample);
    samples.keep_of_index(id, &sample);
    Some(sample)
}

/// Returns the cardinality that SHOW INDEX reports for the first parts of an index. InnoDB computes it from
/// half of the rows that share a key, in whole numbers.
pub fn cardinality(session: &SessionState, table: &Arc<Table>, index: usize, parts: usize) -> u64 {
    let entries = entries_of(session, table);
    let is_current = |sample: &Sample| match is_small(entries) {
        true => sample.entries == entries,
        false => holds_for(sample.entries, entries),
    };
    let sample = index_sample(session, table, index, &is_current);
    let rows_per_key = sample.and_then(|sample| sample.rows_per_key.get(parts - 1).copied());
    entries / ((rows_per_key.unwrap_or(1.0) as u64) / 2).max(1)
}

/// Returns whether an access that reads no other table finds a row, or `None` if that is not known. The
/// newest rows count, of all transactions.
pub fn has_row(
    session: &SessionState,
    params: &[Value],
    table: &Arc<Table>,
    access: &Access,
) -> Option<bool> {
    if table.is_temporary() {
        return None;
    }
    let engine = engine_of(session, table)?;
    let open = session.db.open_table(table).ok()?;
    let eval = EvalContext::new(&session.settings.env, session, params);
    if asks_for_what_is_too_long(table, access, &eval) {
        return Some(false);
    }
    let resolved = resolve(access, &open, &[] as &[Value], &eval).ok()?;
    let trx = engine.begin();
    let mut batch = Batch::default();
    for span in &resolved.spans {
        let range = match span {
            KeySpan::Point(key) => KeyRange { start: Some(key.clone()), end: cohort_types::prefix_end(key) },
            KeySpan::Range(range) => range.clone(),
        };
        let id = open.indexes.get(access.index)?.id;
        trx.scan(&ScanRequest::forward(ReadAt::Latest, id, &range, 1), &mut batch).ok()?;
    }
    Some(!batch.is_empty())
}

/// Returns whether the searched text is longer than the column allows.
fn asks_for_what_is_too_long(table: &Table, access: &Access, eval: &EvalContext<'_>) -> bool {
    let Spans::List(spans) = &access.spans else { return false };
    let parts = table.indexes[access.index].columns.iter();
    let is_too_long = |column: usize, value: &Expr| {
        let ty = &table.columns[column].ty;
        let is_short = matches!(ty.kind, TypeKind::Char | TypeKind::VarChar);
        match value.eval(&[], eval).as_deref() {
            Ok(Value::Str(text)) if is_short => {
                ty.collation.char_len(text.bytes.trim_ascii_end()) > ty.length as usize
            }
            _ => false,
        }
    };
    let [span] = spans.as_slice() else { return false };
    parts.zip(&span.eq).any(|(part, value)| is_too_long(part.column, value))
}
