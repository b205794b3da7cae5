//! [`SetChainOperator`]: executes a chain of set operations from left to right in one pass.
//!
//! # Concepts
//! The result depends, for each key, only on the rows with that key. So each key has its own state, and every
//! input is read once. Steps that do not see a key still change it: INTERSECT removes it, DISTINCT reduces
//! its rows to one. These changes are applied lazily, when the key is seen again
//! ([`SetChainOperator::advance`]), and after the last step.
//!
//! Among equal rows, the first is returned, as in MariaDB's temporary table. Rows that a UNION ALL only
//! appends at the end of a chain do not pass through this operator. If a key does not fit into memory, its
//! rows are spilled with the number of the step, and processed after the others ([`crate::partition`]).

use cohort_optimize::{SetChain, SetOperator};
use cohort_types::{Interrupt, SqlResult, Value};

use crate::batch::{Batch, taken};
use crate::key_table::{KeyBatch, KeyTable};
use crate::operator::{Input, Operator};
use crate::partition::{Partition, PartitionReader, Partitions};
use crate::runtime::{Held, Run};
use crate::spill::SpillFile;
use crate::storage::{Event, Kept};

/// A chain of UNION, EXCEPT and INTERSECT.
pub(crate) struct SetChainOperator<'p> {
    chain: &'p SetChain,
    inputs: Vec<Input<'p>>,
    steps: Vec<Step>,
    table: KeyTable,
    /// Per key: its progress. Its first row is in `rows`.
    states: Vec<KeyState>,
    rows: Batch,
    keys: KeyBatch,
    held: Held,
    memory: usize,
    spilled: Option<Partitions>,
    pending: Vec<Partition>,
    level: u32,
    phase: Phase,
}

/// Effects of a step and of the steps before it on keys that they do not see.
#[derive(Clone, Copy)]
struct Step {
    op: SetOperator,
    all: bool,
    /// The last INTERSECT and the last DISTINCT before it.
    intersect: Option<u32>,
    distinct: Option<u32>,
}

#[derive(Clone, Copy)]
struct KeyState {
    /// Number of rows after the step; for INTERSECT, before it.
    count: u64,
    /// Number of rows that INTERSECT has seen.
    common: u64,
    /// The last step that saw the key.
    step: u32,
}

enum Phase {
    Unread,
    /// Returns the rows of this key, of which the given number was already returned.
    Yield(usize, u64),
    Done,
}

impl<'p> SetChainOperator<'p> {
    pub fn new(chain: &'p SetChain, inputs: Vec<Input<'p>>) -> SetChainOperator<'p> {
        SetChainOperator {
            chain,
            inputs,
            steps: steps(chain),
            table: KeyTable::default(),
            states: Vec::new(),
            rows: Batch::new(),
            keys: KeyBatch::default(),
            held: Held::default(),
            memory: 0,
            spilled: None,
            pending: Vec::new(),
            level: 0,
            phase: Phase::Unread,
        }
    }

    fn clear(&mut self, run: Run<'_, 'p>) {
        self.clear_table(run);
        self.spilled = None;
        self.pending.clear();
        self.level = 0;
        self.phase = Phase::Unread;
    }

    fn clear_table(&mut self, run: Run<'_, 'p>) {
        self.table.clear();
        self.states = Vec::new();
        self.rows = Batch::new();
        self.held.release(run);
    }

    /// Processes rows of an input, or spilled rows.
    fn take(&mut self, run: Run<'_, 'p>, batch: &mut Batch, step: u32) -> SqlResult<()> {
        self.keys.take_rows(batch, &self.chain.collations, &self.table, run.eval)?;
        for n in 0..batch.len() {
            self.take_row(run, n, batch.row_mut(n), step)?;
        }
        Ok(())
    }

    fn take_row(&mut self, run: Run<'_, 'p>, n: usize, row: &mut [Value], step: u32) -> SqlResult<()> {
        let Step { op, all, .. } = self.steps[step as usize];
        let (hashed, key) = self.keys.key(n);
        let width = self.chain.collations.len();
        let number = match (self.table.find(&hashed, key), &mut self.spilled) {
            (Some(number), _) => number,
            (None, Some(spilled)) => {
                let numbered = row[..width].iter().cloned().chain([Value::UInt(u64::from(step))]);
                return spilled.push(run, hashed.hash, &numbered.collect::<Vec<Value>>());
            }
            (None, None) if op != SetOperator::Union => return Ok(()),
            (None, None) => {
                let values: usize = row[..width].iter().map(Value::memory_bytes).sum();
                self.held.grow(run, KeyTable::bytes_for(key) + size_of::<KeyState>() + values)?;
                let number = self.table.insert(&hashed, key);
                self.states.push(KeyState { count: 0, common: 0, step });
                self.rows.push(taken(&mut row[..width]));
                if self.held.bytes() > self.memory {
                    if self.level == 0 {
                        run.storage().note(Event::TableOnDisk);
                    }
                    self.spilled = Some(Partitions::new(SpillFile::create(run)?, self.level));
                }
                number
            }
        };
        self.advance(number, step);
        let state = &mut self.states[number];
        match op {
            SetOperator::Union => state.count += 1,
            SetOperator::Except => state.count = if all { state.count.saturating_sub(1) } else { 0 },
            SetOperator::Intersect => state.common += 1,
        }
        Ok(())
    }

    /// Applies to a key the effects of the steps from its last one up to `now`.
    fn advance(&mut self, number: usize, now: u32) {
        let state = &mut self.states[number];
        if state.step == now {
            return;
        }
        if self.steps[state.step as usize].op == SetOperator::Intersect {
            state.count = state.count.min(std::mem::take(&mut state.common));
        }
        let Step { intersect, distinct, .. } = self.steps[now as usize];
        if intersect.is_some_and(|step| step > state.step) {
            state.count = 0;
        }
        if distinct.is_some_and(|step| step >= state.step) {
            state.count = state.count.min(1);
        }
        state.step = now;
    }

    fn read_inputs(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        let mut batch = Batch::new();
        let mut inputs = std::mem::take(&mut self.inputs);
        let mut outcome = Ok(());
        for (step, input) in inputs.iter_mut().enumerate() {
            outcome = self.read_input(run, input, &mut batch, step as u32);
            // Close it now, so that many inputs do not hold resources at the same time.
            input.close(run);
            if outcome.is_err() {
                break;
            }
        }
        self.inputs = inputs;
        outcome
    }

    fn read_input(
        &mut self,
        run: Run<'_, 'p>,
        input: &mut Input<'p>,
        batch: &mut Batch,
        step: u32,
    ) -> SqlResult<()> {
        input.open(run)?;
        while input.refill_all(run, batch)? {
            self.take(run, batch, step)?;
        }
        Ok(())
    }

    /// Continues with the spilled keys. Returns false if there are none.
    fn read_partition(&mut self, run: Run<'_, 'p>) -> SqlResult<bool> {
        if let Some(spilled) = self.spilled.take() {
            self.pending.extend(spilled.finish()?);
        }
        self.clear_table(run);
        let Some(partition) = self.pending.pop() else { return Ok(false) };
        self.level = partition.level;
        let mut reader = PartitionReader::new(partition);
        let (mut rows, mut alike) = (Batch::new(), Batch::new());
        while reader.refill(run, &mut rows, run.state.batch_rows)? {
            let mut step = None;
            for n in 0..rows.len() {
                let row = rows.row_mut(n);
                let own = match row.last() {
                    Some(Value::UInt(step)) => *step as u32,
                    _ => unreachable!("spilled rows end with their step"),
                };
                if let Some(before) = step.filter(|step| *step != own) {
                    self.take(run, &mut alike, before)?;
                    alike.clear();
                }
                step = Some(own);
                alike.push(taken(row));
            }
            if let Some(step) = step {
                self.take(run, &mut alike, step)?;
                alike.clear();
            }
        }
        Ok(true)
    }
}

/// Returns the steps of a chain, plus a final one.
fn steps(chain: &SetChain) -> Vec<Step> {
    let (mut intersect, mut distinct) = (None, None);
    let mut steps = Vec::with_capacity(chain.inputs.len() + 1);
    for (n, input) in chain.inputs.iter().enumerate() {
        steps.push(Step { op: input.op, all: input.all, intersect, distinct });
        if input.op == SetOperator::Intersect {
            intersect = Some(n as u32);
        }
        if !input.all {
            distinct = Some(n as u32);
        }
    }
    steps.push(Step { op: SetOperator::Union, all: true, intersect, distinct });
    steps
}

impl<'p> Operator<'p> for SetChainOperator<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.clear(run);
        self.memory = run.storage().operator_memory(Kept::Table);
        Ok(())
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        let full = out.len() + want;
        if matches!(self.phase, Phase::Unread) {
            self.read_inputs(run)?;
            self.phase = Phase::Yield(0, 0);
        }
        let end = self.chain.inputs.len() as u32;
        while let Phase::Yield(number, gone) = self.phase {
            if !out.has_room(full) {
                break;
            }
            if number == self.states.len() {
                self.phase = if self.read_partition(run)? { Phase::Yield(0, 0) } else { Phase::Done };
                continue;
            }
            run.eval.step()?;
            self.advance(number, end);
            if gone < self.states[number].count {
                out.push(self.rows.row(number).iter().cloned());
                self.phase = Phase::Yield(number, gone + 1);
            } else {
                self.phase = Phase::Yield(number + 1, 0);
            }
        }
        Ok(())
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.clear(run);
        self.inputs.iter_mut().for_each(|input| input.close(run));
    }
}
