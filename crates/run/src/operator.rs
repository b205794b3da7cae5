//! The operator interface.

use cohort_types::{Interrupt, SqlResult, VectorType};

use crate::batch::Batch;
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
}

impl<'p> Input<'p> {
    pub fn new(operator: impl Operator<'p> + 'p, locks: bool) -> Input<'p> {
        Input { operator: Box::new(operator), locks }
    }

    pub fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        run.eval.check_stack()?;
        self.operator.open(run)
    }

    /// Appends at most `want` rows and returns their number; 0 at the end.
    pub fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<usize> {
        run.eval.check_stack()?;
        let before = out.len();
        out.mark();
        self.operator.next(run, out, want)?;
        let rows = out.len() - before;
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
        self.operator.skip(run, rows)
    }

    /// Switches to vectorized output and returns the types. Returns `None` if the rows must be read as
    /// batches.
    pub fn vector_types(&mut self, run: Run<'_, 'p>) -> SqlResult<Option<Vec<VectorType>>> {
        match self.locks || run.state.batch_rows == 1 {
            true => Ok(None),
            false => self.operator.vector_types(run),
        }
    }

    /// Replaces the vectors with those of the next rows. Returns false at the end.
    pub fn next_vectors(&mut self, run: Run<'_, 'p>, vectors: &mut Vectors) -> SqlResult<bool> {
        let goes_on = self.operator.next_vectors(run, vectors)?;
        run.eval.steps(1 + vectors.rows as u32)?;
        Ok(goes_on)
    }

    pub fn close(&mut self, run: Run<'_, 'p>) {
        self.operator.close(run);
    }
}
