//! Common table expressions (CTE): rows shared by several readers, and recursion.
//!
//! # States
//! - *unknown*: `is_known` is false;
//! - *recursing*: `recent` is the range of rows that the last round added; readers get these rows;
//! - *known*: readers get all rows.
//!
//! The first reader that finds the table unknown fills it.
//!
//! # Recursion
//! All rows are in one store, in the order in which they were found; those of the last round are at its end.
//! The recursive step runs until a round adds no row, or until `max_recursive_iterations` rounds have run,
//! which gives warning 1931.
//!
//! # Missing
//! The keys that a recursive UNION uses to detect duplicates stay in memory.

use std::ops::Range;

use cohort_expr::{VariableScope, append_group_key};
use cohort_optimize::RecursiveStep;
use cohort_types::{ErrorCode, SqlResult, Value};
use hashbrown::HashSet;

use crate::batch::Batch;
use crate::operator::{Input, Operator};
use crate::row_store::{RowStore, StoreReader};
use crate::runtime::{Held, Run};

/// Memory of a key in a set, in addition to its bytes.
pub(crate) const KEY_BYTES: usize = 40;

/// State of a common table expression.
#[derive(Default)]
pub(crate) struct CommonState<'p> {
    rows: RowStore,
    is_known: bool,
    recent: Option<Range<u64>>,
    seed: Option<Input<'p>>,
    step: Option<Input<'p>>,
}

impl<'p> CommonState<'p> {
    pub fn close(&mut self, run: Run<'_, 'p>) {
        self.seed.iter_mut().chain(&mut self.step).for_each(|input| input.close(run));
        self.rows.clear(run);
        self.is_known = false;
    }
}

/// Fills the table if it is unknown.
fn fill(run: Run<'_, '_>, number: usize) -> SqlResult<()> {
    let plan = &run.state.plan.common[number];
    let state = &run.state.common[number];
    {
        let mut state = state.borrow_mut();
        if state.recent.is_some() || state.is_known {
            return Ok(());
        }
        // An earlier fill that failed may have left rows.
        state.rows.clear(run);
    }
    let mut seen = plan.step.as_ref().filter(|step| step.distinct).map(Seen::new);
    let taken = state.borrow_mut().seed.take();
    let mut seed = taken.map_or_else(|| run.build(&plan.seed), Ok)?;
    seed.open(run)?;
    pull(run, number, &mut seed, &mut seen)?;
    state.borrow_mut().seed = Some(seed);
    if let Some(step) = &plan.step {
        let taken = state.borrow_mut().step.take();
        let mut input = taken.map_or_else(|| run.build(&step.node), Ok)?;
        let outcome = recurse(run, number, &mut input, &mut seen);
        state.borrow_mut().recent = None;
        outcome?;
        state.borrow_mut().step = Some(input);
    }
    if let Some(mut seen) = seen {
        seen.held.release(run);
    }
    state.borrow_mut().is_known = true;
    Ok(())
}

/// Runs the recursive step until it adds no row.
fn recurse<'p>(
    run: Run<'_, 'p>,
    number: usize,
    step: &mut Input<'p>,
    seen: &mut Option<Seen<'p>>,
) -> SqlResult<()> {
    let name = "max_recursive_iterations";
    let limit = match run.eval.hooks.system_variable(VariableScope::Default, name)? {
        Value::UInt(limit) => limit,
        Value::Int(limit) => u64::try_from(limit).unwrap_or(0),
        _ => u64::MAX,
    };
    let state = &run.state.common[number];
    let mut recent = 0..state.borrow().rows.len();
    let mut rounds = 0;
    while !recent.is_empty() {
        if rounds == limit {
            let text = format!(
                "Query execution was interrupted. The query exceeded {name} = {limit}. The query result may be \
                 incomplete"
            );
            return run.eval.warn(ErrorCode::QueryResultIncomplete, text);
        }
        state.borrow_mut().recent = Some(recent.clone());
        step.open(run)?;
        pull(run, number, step, seen)?;
        recent = recent.end..state.borrow().rows.len();
        rounds += 1;
    }
    Ok(())
}

/// Appends the new rows of an input.
fn pull<'p>(
    run: Run<'_, 'p>,
    number: usize,
    input: &mut Input<'p>,
    seen: &mut Option<Seen<'p>>,
) -> SqlResult<()> {
    let mut batch = Batch::new();
    while input.refill_all(run, &mut batch)? {
        for n in 0..batch.len() {
            let row = batch.row_mut(n);
            if let Some(seen) = seen
                && !seen.insert(run, row)?
            {
                continue;
            }
            run.state.common[number].borrow_mut().rows.push(run, row)?;
        }
    }
    Ok(())
}

/// Keys of the rows that a recursive UNION has returned.
struct Seen<'p> {
    step: &'p RecursiveStep,
    keys: HashSet<Vec<u8>, ahash::RandomState>,
    key: Vec<u8>,
    held: Held,
}

impl<'p> Seen<'p> {
    fn new(step: &'p RecursiveStep) -> Seen<'p> {
        Seen { step, keys: HashSet::default(), key: Vec::new(), held: Held::default() }
    }

    /// Records the row's key. Returns true if the row is new.
    fn insert(&mut self, run: Run<'_, '_>, row: &[Value]) -> SqlResult<bool> {
        self.key.clear();
        for (column, collation) in &self.step.distinct_by {
            append_group_key(&row[*column], *collation, &mut self.key, run.eval)?;
        }
        if self.keys.contains(self.key.as_slice()) {
            return Ok(false);
        }
        self.held.grow(run, self.key.len() + KEY_BYTES)?;
        self.keys.insert(self.key.clone());
        Ok(true)
    }
}

/// A reader of a common table expression.
pub(crate) struct CommonReader {
    number: usize,
    reader: StoreReader,
    /// The row to stop at; `None` before the first row.
    end: Option<u64>,
}

impl CommonReader {
    pub fn new(number: usize) -> CommonReader {
        CommonReader { number, reader: StoreReader::default(), end: None }
    }
}

impl<'p> Operator<'p> for CommonReader {
    fn open(&mut self, _: Run<'_, 'p>) -> SqlResult<()> {
        self.end = None;
        Ok(())
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        let state = &run.state.common[self.number];
        let end = match self.end {
            Some(end) => end,
            None => {
                fill(run, self.number)?;
                let state = state.borrow();
                let rows = state.recent.clone().unwrap_or(0..state.rows.len());
                self.reader = StoreReader::at(rows.start);
                *self.end.insert(rows.end)
            }
        };
        state.borrow().rows.read(&mut self.reader, end, out, want)?;
        Ok(())
    }

    fn close(&mut self, _: Run<'_, 'p>) {
        self.end = None;
    }
}
