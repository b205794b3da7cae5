//! GROUP BY .. WITH ROLLUP: one group for each prefix of the keys, which ends when the prefix changes.
//!
//! # States
//! A row either belongs to the innermost group or ends some groups. In the second case the row *waits* until
//! these *closing* groups have been returned, innermost first. After the last row, all groups close.

use cohort_expr::{AggregateState, SortKey, compare_rows};
use cohort_optimize::AggregateNode;
use cohort_types::{Interrupt, SqlResult, Value};

use crate::batch::Batch;
use crate::runtime::Run;
use crate::sort::Sorter;

/// Groups for all prefixes of the keys, over sorted rows.
pub(crate) struct Rollup<'p> {
    node: &'p AggregateNode,
    order: Vec<SortKey>,
    /// Keys of the row read last.
    keys: Vec<Value>,
    /// Values of the first row of the innermost group.
    first: Vec<Value>,
    /// States per prefix length and aggregate; empty before the first row.
    states: Vec<Vec<AggregateState>>,
    /// Groups to return: prefix lengths from the first number down to the second.
    closing: Option<(usize, usize)>,
    rows: Batch,
    at: usize,
    /// The row to process after the closing groups are returned.
    waiting: Option<Vec<Value>>,
    done: bool,
}

impl<'p> Rollup<'p> {
    pub fn new(node: &'p AggregateNode) -> Rollup<'p> {
        let ascending = |collation| SortKey { collation, descending: false };
        Rollup {
            node,
            order: node.keys.iter().map(|key| ascending(key.1)).collect(),
            keys: Vec::new(),
            first: Vec::new(),
            states: Vec::new(),
            closing: None,
            rows: Batch::new(),
            at: 0,
            waiting: None,
            done: false,
        }
    }

    pub fn clear(&mut self, run: Run<'_, '_>) {
        for state in self.states.drain(..).flatten() {
            run.eval.let_go(state.kept_bytes());
        }
        self.closing = None;
        self.rows.clear();
        self.at = 0;
        self.waiting = None;
        self.done = false;
    }

    pub fn read(
        &mut self,
        run: Run<'_, 'p>,
        sorter: &mut Sorter<'p>,
        out: &mut Batch,
        want: usize,
    ) -> SqlResult<()> {
        let target = out.len().saturating_add(want);
        while out.has_room(target) {
            if let Some((length, down_to)) = self.closing {
                self.yield_group(run, length, out)?;
                self.closing = (length > down_to).then(|| (length - 1, down_to));
                continue;
            }
            if let Some(keys) = self.waiting.take() {
                self.keys = keys;
                let row = self.rows.row(self.at - 1);
                self.first.clear();
                for expr in &self.node.first {
                    self.first.push(expr.eval_output(row, run.eval)?.into_owned());
                }
                self.add(run, self.at - 1)?;
                continue;
            }
            if self.at == self.rows.len() {
                self.rows.clear();
                self.at = 0;
                if !self.done {
                    sorter.read(run, &mut self.rows, run.state.batch_rows)?;
                }
                if self.rows.is_empty() {
                    if std::mem::replace(&mut self.done, true) || self.states.is_empty() {
                        return Ok(());
                    }
                    self.closing = Some((self.order.len(), 0));
                    continue;
                }
            }
            run.eval.step()?;
            self.at += 1;
            self.take(run)?;
        }
        Ok(())
    }

    /// Processes the next row: it belongs to the innermost group or ends some groups.
    fn take(&mut self, run: Run<'_, '_>) -> SqlResult<()> {
        let row = self.rows.row(self.at - 1);
        let mut keys = Vec::with_capacity(self.order.len());
        for (expr, _) in &self.node.keys {
            keys.push(expr.eval_output(row, run.eval)?.into_owned());
        }
        if self.states.is_empty() {
            let levels = 0..=self.order.len();
            self.states =
                levels.map(|_| self.node.aggregates.iter().map(|a| a.new_state()).collect()).collect();
            self.waiting = Some(keys);
            return Ok(());
        }
        let differs = |n: &usize| {
            let one = *n..n + 1;
            compare_rows(&self.keys[one.clone()], &keys[one.clone()], &self.order[one]).is_ne()
        };
        match (0..keys.len()).find(differs) {
            None => self.add(run, self.at - 1),
            Some(first) => {
                self.closing = Some((self.order.len(), first + 1));
                self.waiting = Some(keys);
                Ok(())
            }
        }
    }

    fn add(&mut self, run: Run<'_, '_>, row: usize) -> SqlResult<()> {
        let row = self.rows.row(row);
        for states in &mut self.states {
            for (aggregate, state) in self.node.aggregates.iter().zip(states) {
                aggregate.add(state, row, run.eval)?;
            }
        }
        Ok(())
    }

    /// Returns the group of a prefix and starts the next one.
    fn yield_group(&mut self, run: Run<'_, '_>, length: usize, out: &mut Batch) -> SqlResult<()> {
        out.open_row().extend_from_slice(&self.keys[..length]);
        out.open_row().extend(std::iter::repeat_n(Value::Null, self.keys.len() - length));
        out.open_row().extend_from_slice(&self.first);
        for (n, aggregate) in self.node.aggregates.iter().enumerate() {
            let state = std::mem::replace(&mut self.states[length][n], aggregate.new_state());
            run.eval.let_go(state.kept_bytes());
            let value = aggregate.finish(state, run.eval)?;
            out.open_row().push(value);
        }
        out.end_row();
        Ok(())
    }
}
