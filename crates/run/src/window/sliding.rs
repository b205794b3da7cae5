//! Aggregates over sliding frames.
//!
//! # Concepts
//! Aggregates can add rows but not remove them. So the rows of the frame are split in two. The most recent
//! rows are accumulated in one state, the *back*. For the rows before, the *front*, there is one state per
//! row, which covers that row and all later rows of the front. Removing the first row drops its state. When
//! the front is empty, the back is converted to a new front. Every row is added at most twice, however long
//! the frames are.
//!
//! While frames start at the start of the partition, there is no front.

use std::ops::Range;

use cohort_expr::{Aggregate, AggregateState, to_common_class};
use cohort_types::{Interrupt, SqlResult, Value};

use crate::row_store::{RowStore, StoreReader};
use crate::runtime::{Held, Run};

/// The aggregate of the current frame.
pub(super) struct Sliding<'p> {
    aggregate: &'p Aggregate,
    /// States of the front; the one of its first row is last.
    front: Vec<AggregateState>,
    back: AggregateState,
    /// Rows in the back.
    back_rows: Range<u64>,
    reader: StoreReader,
    held: Held,
    /// The last frame and its value.
    known: Option<(Range<u64>, Value)>,
}

impl<'p> Sliding<'p> {
    pub fn new(aggregate: &'p Aggregate) -> Sliding<'p> {
        Sliding {
            aggregate,
            front: Vec::new(),
            back: aggregate.new_state(),
            back_rows: 0..0,
            reader: StoreReader::default(),
            held: Held::default(),
            known: None,
        }
    }

    /// Starts a new partition.
    pub fn start(&mut self, run: Run<'_, '_>) {
        self.restart(run, 0);
        self.known = None;
    }

    fn restart(&mut self, run: Run<'_, '_>, row: u64) {
        self.let_go(run);
        self.back_rows = row..row;
    }

    /// Discards all accumulated states.
    fn let_go(&mut self, run: Run<'_, '_>) {
        let back = std::mem::replace(&mut self.back, self.aggregate.new_state());
        for state in std::mem::take(&mut self.front).into_iter().chain([back]) {
            run.eval.let_go(state.kept_bytes());
        }
        self.held.release(run);
    }

    /// Returns the value for a frame. Neither of its bounds may be before those of the last frame.
    pub fn value(&mut self, run: Run<'_, '_>, rows: &RowStore, frame: Range<u64>) -> SqlResult<Value> {
        if let Some((known, value)) = &self.known
            && *known == frame
        {
            return Ok(value.clone());
        }
        let value = if frame.is_empty() {
            self.aggregate.finish(self.aggregate.new_state(), run.eval)?
        } else {
            self.slide(run, rows, frame.clone())?
        };
        let value = to_common_class(value, &self.aggregate.ty);
        self.known = Some((frame, value.clone()));
        Ok(value)
    }

    fn slide(&mut self, run: Run<'_, '_>, rows: &RowStore, frame: Range<u64>) -> SqlResult<Value> {
        let first = self.back_rows.start - self.front.len() as u64;
        if frame.start >= self.back_rows.end {
            self.restart(run, frame.start);
        } else {
            for row in first..frame.start {
                if row >= self.back_rows.start {
                    break;
                }
                if let Some(state) = self.front.pop() {
                    run.eval.let_go(state.kept_bytes());
                }
            }
        }
        for row in self.back_rows.end..frame.end {
            run.eval.step()?;
            self.aggregate.add(&mut self.back, rows.row(&mut self.reader, row)?, run.eval)?;
        }
        self.back_rows.end = self.back_rows.end.max(frame.end);
        if frame.start > self.back_rows.start {
            self.turn(run, rows, frame.start)?;
        }
        // The copy is charged while it exists.
        let mut state = self.back.clone();
        run.eval.keep(state.kept_bytes())?;
        if let Some(front) = self.front.last() {
            self.aggregate.merge(&mut state, front, run.eval)?;
        }
        run.eval.let_go(state.kept_bytes());
        self.aggregate.finish(state, run.eval)
    }

    /// Converts the rows of the back, from `first` on, to a front.
    fn turn(&mut self, run: Run<'_, '_>, rows: &RowStore, first: u64) -> SqlResult<()> {
        let end = self.back_rows.end;
        self.let_go(run);
        self.held.grow(run, (end - first) as usize * size_of::<AggregateState>())?;
        self.front = Vec::with_capacity((end - first) as usize);
        for row in first..end {
            run.eval.step()?;
            let mut state = self.aggregate.new_state();
            self.aggregate.add(&mut state, rows.row(&mut self.reader, row)?, run.eval)?;
            self.front.push(state);
        }
        for n in (1..self.front.len()).rev() {
            run.eval.step()?;
            let (before, rest) = self.front.split_at_mut(n);
            self.aggregate.merge(&mut before[n - 1], &rest[0], run.eval)?;
        }
        self.front.reverse();
        self.back_rows = end..end;
        Ok(())
    }
}
