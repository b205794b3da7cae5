//! The operator interface. `assemble` builds operators from a plan.
//!
//! # Concepts
//! - **Operator** ([`Operator`]): returns the rows of a plan node. Operators form a tree, and rows are
//!   pulled: an operator calls its inputs when its own caller requests rows.
//! - **Input** ([`Input`]): an operator as its caller sees it. All calls go through `Input`, which checks the
//!   stack, counts steps, and limits how many rows are requested at once.
//! - **Row mode and vector mode**: an operator returns rows in a [`Batch`], or columns in [`Vectors`].
//!
//! # Life cycle
//! ```text
//! open -> next*, skip*                      row mode; the end is a call that returns no rows
//!      -> vector_types -> next_vectors*     vector mode, if it returned types; the end is `false`
//!      -> vector_types -> next*, skip*      row mode, if it returned `None`
//! open again, in any state                  restarts; outer values may have changed
//! close, in any state                       releases cursors and memory; `open` restarts
//! ```
//! The caller chooses the mode: it calls `vector_types` right after `open`, or never. In vector mode it calls
//! only `next_vectors` until the next `open`. `open` need not read anything: most operators begin their work
//! with the first call after it.
//!
//! # How many rows a call requests
//! - `next` appends at most `want` rows. It may append fewer before the end, for example if the rows contain
//!   much text ([`Batch::has_room`]).
//! - [`Input::refill`] requests rows of which the caller may not need all, and [`Input::refill_all`] rows
//!   that are all needed. Both are limited to `State::batch_rows`: 1024 rows, or 1 if an expression of the
//!   plan is volatile or has side effects.
//! - **Row-locking inputs** (`locks`): reading locks the rows, so a row that may not be needed must not be
//!   read. `refill` therefore reads one row at a time from them. `refill_all` reads whole batches. They are
//!   never read in vector mode, and neither is an input of a plan whose batches have one row.
//! - `skip` lets a caller (LIMIT with an offset) pass rows without reading them, if the operator can.
//!   Otherwise the caller reads them and drops them.
//!
//! # Stack and interruption
//! [`Run::build`], [`Input::open`] and [`Input::next`] recurse along the plan, so each checks the stack
//! (error 1436). `next` and `next_vectors` count one step for the call and one for each row. After a certain
//! number of steps the evaluation context checks whether the statement was killed or has run out of time.
//! Operators count further steps in loops that return no rows.
//!
//! # On failure
//! An error passes up through all operators. `out` may then contain rows, which are not part of the result.
//! After an error an operator may only be closed, opened again, or dropped. An operator whose `open` failed
//! is usually dropped without `close`: its cursors are released with the storage, and its memory is given
//! back at the end of the statement.

use cohort_types::{Interrupt, SqlResult, VectorType};

use crate::batch::Batch;
use crate::profile::{NodeCounters, NodeProfile, PlanProfile};
use crate::runtime::Run;
use crate::vectors::Vectors;

/// An operator: returns rows in batches.
pub(crate) trait Operator<'p>: Send {
    /// Starts or restarts. Outer values may have changed.
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()>;

    /// Appends rows: at most `want`, and no more than [`Batch::has_room`] allows. Appends none at the end.
    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()>;

    /// Skips at most `rows` of the next rows and returns the number skipped; 0 at the end. Returns `None`,
    /// with no effect, if the rows must be read instead.
    fn skip(&mut self, run: Run<'_, 'p>, rows: u64) -> SqlResult<Option<u64>> {
        let _ = (run, rows);
        Ok(None)
    }

    /// Switches to vectorized output and returns the column types, or returns `None` if unsupported. Call it
    /// right after `open`; afterwards call only [`Operator::next_vectors`].
    fn vector_types(&mut self, run: Run<'_, 'p>) -> SqlResult<Option<Vec<VectorType>>> {
        let _ = run;
        Ok(None)
    }

    /// Replaces the vectors with those of the next rows. Returns false at the end.
    fn next_vectors(&mut self, run: Run<'_, 'p>, vectors: &mut Vectors) -> SqlResult<bool> {
        let _ = (run, vectors);
        Ok(false)
    }

    /// Releases cursors and memory. [`Operator::open`] restarts.
    fn close(&mut self, run: Run<'_, 'p>);
}

/// An operator as the input of another operator.
pub(crate) struct Input<'p> {
    pub operator: Box<dyn Operator<'p> + 'p>,
    /// Reading locks the rows, so rows that may not be needed are never requested.
    pub locks: bool,
    /// Where its work is measured, if it is.
    pub measured: Option<(&'p PlanProfile, &'p NodeCounters)>,
}

impl<'p> Input<'p> {
    pub fn new(operator: impl Operator<'p> + 'p, locks: bool) -> Input<'p> {
        Input { operator: Box::new(operator), locks, measured: None }
    }

    /// Calls the operator. The second result of `call` is the number of rows returned.
    #[inline]
    fn call<T>(
        &mut self,
        loops: u64,
        call: impl FnOnce(&mut (dyn Operator<'p> + 'p)) -> SqlResult<(T, usize)>,
    ) -> SqlResult<T> {
        let Some((profile, counters)) = self.measured else { return Ok(call(&mut *self.operator)?.0) };
        let (start, spills) = (profile.clock(), profile.spills());
        let answer = call(&mut *self.operator);
        let rows = answer.as_ref().map_or(0, |(_, rows)| *rows as u64);
        match start {
            None => counters.count(loops, 0, rows),
            Some(start) => {
                let (spills, spent) = (profile.spills() - spills, start.spent());
                let (nanos, engine) = (spent.nanos, spent.engine);
                counters.add(NodeProfile { loops, read: 0, rows, nanos, spills, engine });
            }
        }
        answer.map(|(answer, _)| answer)
    }

    pub fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        run.eval.check_stack()?;
        self.call(1, |operator| Ok((operator.open(run)?, 0)))
    }

    /// Appends at most `want` rows and returns their number; 0 at the end.
    pub fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<usize> {
        run.eval.check_stack()?;
        let before = out.len();
        out.mark();
        let rows = self.call(0, |operator| {
            operator.next(run, out, want)?;
            let rows = out.len() - before;
            Ok((rows, rows))
        })?;
        debug_assert!(rows <= want, "no more rows than asked for");
        run.eval.steps(1 + rows as u32)?;
        Ok(rows)
    }

    /// Replaces the batch with the next rows, all of which may be needed. Returns false at the end.
    pub fn refill(&mut self, run: Run<'_, 'p>, batch: &mut Batch, want: usize) -> SqlResult<bool> {
        batch.clear();
        let at_once = if self.locks { 1 } else { run.state.batch_rows };
        Ok(self.next(run, batch, want.min(at_once))? > 0)
    }

    /// Replaces the batch with the next rows, all of which are needed. Returns false at the end.
    pub fn refill_all(&mut self, run: Run<'_, 'p>, batch: &mut Batch) -> SqlResult<bool> {
        batch.clear();
        Ok(self.next(run, batch, run.state.batch_rows)? > 0)
    }

    /// Skips rows, if the operator can do that without reading them.
    pub fn skip(&mut self, run: Run<'_, 'p>, rows: u64) -> SqlResult<Option<u64>> {
        self.call(0, |operator| {
            let skipped = operator.skip(run, rows)?;
            Ok((skipped, skipped.unwrap_or(0) as usize))
        })
    }

    /// Switches to vectorized output and returns the types. Returns `None` if the rows must be read as
    /// batches.
    pub fn vector_types(&mut self, run: Run<'_, 'p>) -> SqlResult<Option<Vec<VectorType>>> {
        match self.locks || run.state.batch_rows == 1 {
            true => Ok(None),
            false => self.call(0, |operator| Ok((operator.vector_types(run)?, 0))),
        }
    }

    /// Replaces the vectors with those of the next rows. Returns false at the end.
    pub fn next_vectors(&mut self, run: Run<'_, 'p>, vectors: &mut Vectors) -> SqlResult<bool> {
        let goes_on = self.call(0, |operator| {
            let goes_on = operator.next_vectors(run, vectors)?;
            Ok((goes_on, if goes_on { vectors.rows } else { 0 }))
        })?;
        run.eval.steps(1 + vectors.rows as u32)?;
        Ok(goes_on)
    }

    pub fn close(&mut self, run: Run<'_, 'p>) {
        self.operator.close(run);
    }
}
