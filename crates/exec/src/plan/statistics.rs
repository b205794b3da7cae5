//! What the planner knows of tables: how many rows, how many of them share a key, how many lie in a span.
//!
//! # Samples
//! An index is sampled when a plan first asks: the engine names keys that stand about as far apart, and from
//! each a few entries are read. How often neighbours differ in their first key parts says how many rows share
//! a key; how many of the keys named lie between two bounds says how many rows do. A sample serves all
//! sessions until the table has grown or shrunk by a third.
//!
//! Samples are of what is newest, committed or not: nothing but the choice of a plan comes of them.

use std::collections::HashMap;
use std::sync::Arc;

use cohort_base::IndexId;
use cohort_catalog::Table;
use cohort_engine::{Batch, Direction, Engine, KeyRange, ReadAt};
use cohort_expr::{EvalContext, Expr};
use cohort_optimize::{Access, Span, Spans, Statistics};
use cohort_plan::PlanContext;
use cohort_types::Value;
use parking_lot::Mutex;

use crate::session_state::SessionState;
use crate::table::{KeySpan, OpenIndex, ResolveAccess};

/// Keys that the engine is asked for.
const KEYS: usize = 128;
/// Places in the index where neighbours are compared, and entries read at each.
const PLACES: usize = 32;
const ENTRIES_OF_A_PLACE: usize = 32;
/// Samples that are kept; then all are forgotten.
const SAMPLES_MAX: usize = 10_000;

/// The samples of all indexes.
#[derive(Default)]
pub(crate) struct IndexSamples {
    all: Mutex<HashMap<IndexId, Arc<Sample>>>,
}

/// What was seen of an index.
struct Sample {
    /// Entries it had then.
    entries: u64,
    /// Keys that divide it into parts of about one size, in order.
    keys: Vec<Vec<u8>>,
    /// Rows with the same first key parts, for one part and for more.
    rows_per_key: Vec<f64>,
}

impl Sample {
    /// Whether it still holds for so many entries.
    fn holds_for(&self, entries: u64) -> bool {
        let (low, high) = (self.entries.min(entries), self.entries.max(entries));
        high - low <= 100.max(high / 3)
    }

    fn take(engine: &dyn Engine, index: &OpenIndex, entries: u64) -> Option<Sample> {
        let keys = engine.sample(index.id, KEYS).ok().filter(|keys| !keys.is_empty())?;
        let mut counts = vec![Neighbours::default(); index.parts.len()];
        let trx = engine.begin();
        let step = keys.len().div_ceil(PLACES).max(1);
        let mut batch = Batch::default();
        for start in keys.iter().step_by(step) {
            batch.clear();
            let range = KeyRange { start: Some(start.clone()), end: None };
            let at = (ReadAt::Latest, index.id, &range);
            trx.scan(at.0, at.1, at.2, Direction::Forward, ENTRIES_OF_A_PLACE, &mut batch).ok()?;
            for n in 1..batch.len() {
                let shared = shared_parts(index, batch.get(n - 1).0, batch.get(n).0);
                for (part, count) in counts.iter_mut().enumerate() {
                    count.pairs += 1;
                    count.different += u64::from(part >= shared);
                }
            }
        }
        let rows_per_key = counts.iter().map(|count| count.rows_per_key(entries)).collect();
        Some(Sample { entries, keys, rows_per_key })
    }

    /// The share of the index that lies in a range.
    fn share(&self, range: &KeyRange) -> f64 {
        let is_in = |key: &&Vec<u8>| {
            range.start.as_ref().is_none_or(|start| *key >= start)
                && range.end.as_ref().is_none_or(|end| *key < end)
        };
        let found = self.keys.iter().filter(is_in).count() as f64;
        // Between two of the keys: some part of their distance.
        found.max(0.3) / self.keys.len() as f64
    }
}

/// Neighbours that were compared.
#[derive(Clone, Default)]
struct Neighbours {
    pairs: u64,
    different: u64,
}

impl Neighbours {
    fn rows_per_key(&self, entries: u64) -> f64 {
        let runs = self.different.max(1) as f64;
        // An entry more than pairs when all is one run.
        let rows = (self.pairs + u64::from(self.different == 0)).max(1) as f64 / runs;
        rows.min(entries.max(1) as f64)
    }
}

/// How many of the first key parts two keys share.
fn shared_parts(index: &OpenIndex, a: &[u8], b: &[u8]) -> usize {
    let (mut left, mut right) = (a, b);
    for (n, (_, part)) in index.parts.iter().enumerate() {
        let (at, other) = (left, right);
        if part.skip(&mut left).is_err() || part.skip(&mut right).is_err() {
            return n;
        }
        if at[..at.len() - left.len()] != other[..other.len() - right.len()] {
            return n;
        }
    }
    index.parts.len()
}

/// What the planner of one statement knows.
pub(crate) struct PlanStatistics<'p> {
    session: &'p SessionState,
    ctx: &'p PlanContext<'p>,
}

impl<'p> PlanStatistics<'p> {
    pub(crate) fn new(session: &'p SessionState, ctx: &'p PlanContext<'p>) -> PlanStatistics<'p> {
        PlanStatistics { session, ctx }
    }

    fn engine(&self, table: &Table) -> Option<&'p Arc<dyn Engine>> {
        let engines = &self.session.db.engines;
        engines.iter().find(|e| e.name().eq_ignore_ascii_case(&table.engine)).or(engines.first())
    }

    fn sample(&self, table: &Arc<Table>, index: usize) -> Option<Arc<Sample>> {
        // A session's own tables are small, and change all the time.
        if table.is_temporary() {
            return None;
        }
        let engine = self.engine(table)?;
        let entries = self.entries(table);
        let id = table.indexes.get(index)?.id;
        let samples = &self.session.db.index_samples;
        let known = samples.all.lock().get(&id).cloned();
        if let Some(sample) = known.filter(|sample| sample.holds_for(entries)) {
            return Some(sample);
        }
        let open = self.session.db.tables.open(&self.session.db, table).ok()?;
        let sample = Arc::new(Sample::take(&**engine, open.indexes.get(index)?, entries)?);
        let mut all = samples.all.lock();
        if all.len() >= SAMPLES_MAX {
            all.clear();
        }
        all.insert(id, sample.clone());
        Some(sample)
    }

    /// Whether the value is known now.
    fn is_known(&self, expr: &Expr) -> bool {
        let mut known = expr.is_const_per_execution();
        expr.walk(&mut |node| {
            known &= match node {
                Expr::Param(param) => param.index < self.ctx.params.len(),
                Expr::Column(_) | Expr::Outer(_) | Expr::Subquery(_) => false,
                _ => true,
            };
            known
        });
        known
    }
}

impl Statistics for PlanStatistics<'_> {
    fn entries(&self, table: &Table) -> u64 {
        if table.is_temporary() {
            return self.session.temporary.entries(table);
        }
        self.engine(table).map_or(1000, |engine| engine.stats(table.clustered().id).entries)
    }

    fn rows_per_key(&self, table: &Arc<Table>, index: usize, parts: usize) -> Option<f64> {
        let sample = self.sample(table, index)?;
        sample.rows_per_key.get(parts.checked_sub(1)?).copied()
    }

    fn rows_in(&self, table: &Arc<Table>, access: &Access) -> Option<f64> {
        let Spans::List(spans) = &access.spans else { return None };
        let exprs = |span: &Span| {
            use std::ops::Bound::{Excluded, Included, Unbounded};
            [&span.lower, &span.upper].into_iter().all(|bound| match bound {
                Included(expr) | Excluded(expr) => self.is_known(expr),
                Unbounded => true,
            }) && span.eq.iter().all(|expr| self.is_known(expr))
        };
        let is_point = |span: &Span| {
            matches!((&span.lower, &span.upper), (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded))
        };
        // Rows of single keys are known on average, and that serves all values.
        if spans.iter().all(is_point) || !spans.iter().all(exprs) {
            return None;
        }
        let sample = self.sample(table, access.index)?;
        let open = self.session.db.tables.open(&self.session.db, table).ok()?;
        let eval = EvalContext::new(&self.session.env, self.session, self.ctx.params);
        let resolved = access.resolve(&open, &[] as &[Value], &eval).ok()?;
        let entries = self.entries(table) as f64;
        let rows = |span: &KeySpan| match span {
            KeySpan::Point(_) => 1.0,
            KeySpan::Range(range) => sample.share(range) * entries,
        };
        Some(resolved.spans.iter().map(rows).sum())
    }

    fn depends_on_values(&self) {
        self.ctx.reusable.set(false);
    }
}

/// Whether a table has a row where an access that reads no other table looks; None: that cannot be told. The
/// newest row counts, whoever wrote it.
pub(crate) fn has_row(
    session: &SessionState,
    params: &[Value],
    table: &Arc<Table>,
    access: &Access,
) -> Option<bool> {
    if table.is_temporary() {
        return None;
    }
    let engines = &session.db.engines;
    let engine = engines.iter().find(|e| e.name().eq_ignore_ascii_case(&table.engine)).or(engines.first())?;
    let open = session.db.tables.open(&session.db, table).ok()?;
    let eval = EvalContext::new(&session.env, session, params);
    let resolved = access.resolve(&open, &[] as &[Value], &eval).ok()?;
    let trx = engine.begin();
    let mut batch = Batch::default();
    for span in &resolved.spans {
        let range = match span {
            KeySpan::Point(key) => KeyRange { start: Some(key.clone()), end: cohort_types::prefix_end(key) },
            KeySpan::Range(range) => range.clone(),
        };
        let id = open.indexes.get(access.index)?.id;
        trx.scan(ReadAt::Latest, id, &range, Direction::Forward, 1, &mut batch).ok()?;
    }
    Some(!batch.is_empty())
}
