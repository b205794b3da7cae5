//! A join that goes through all rows on the right for each one on the left.

use cohort_optimize::{Join, JoinKind};
use cohort_types::{Interrupt, SqlResult};

use super::Left;
use crate::batch::Batch;
use crate::operator::{Input, Operator};
use crate::row_store::{RowStore, StoreReader};
use crate::runtime::Run;

/// A nested loop.
pub(crate) struct Loop<'p> {
    left: Left<'p>,
    right: Input<'p>,
    right_width: usize,
    /// The right rows may be others when the join is opened again.
    varies: bool,
    rows: RowStore,
    reader: StoreReader,
    is_read: bool,
    /// The right row whose turn it is.
    next: Option<u64>,
}

impl<'p> Loop<'p> {
    pub fn new(
        join: &'p Join,
        left: Input<'p>,
        right: Input<'p>,
        right_width: usize,
        varies: bool,
    ) -> Loop<'p> {
        Loop {
            left: Left::new(join, left),
            right,
            right_width,
            varies,
            rows: RowStore::default(),
            reader: StoreReader::default(),
            is_read: false,
            next: None,
        }
    }

    fn read_right(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.rows.clear(run);
        self.right.open(run)?;
        let mut batch = Batch::new();
        while self.right.refill_all(run, &mut batch)? {
            for n in 0..batch.len() {
                self.rows.push(run, batch.row_mut(n))?;
            }
            // One match is as good as many.
            if self.left.on.is_none() && matches!(self.left.kind, JoinKind::Semi | JoinKind::Anti) {
                break;
            }
        }
        self.is_read = true;
        Ok(())
    }
}

impl<'p> Operator<'p> for Loop<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.next = None;
        self.is_read &= !self.varies;
        self.left.open(run)
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        let target = out.len().saturating_add(want);
        while out.len() < target {
            run.eval.step()?;
            let at = match self.next {
                Some(at) => at,
                None => {
                    if !self.left.advance(run, target - out.len())? {
                        return Ok(());
                    }
                    if !self.is_read {
                        self.read_right(run)?;
                    }
                    0
                }
            };
            if at == self.rows.len() {
                self.left.end_matches(out, self.right_width);
                self.next = None;
                continue;
            }
            self.left.begin(out);
            out.open_row().extend_from_slice(self.rows.row(&mut self.reader, at)?);
            self.next = if self.left.decide(run, out)? { None } else { Some(at + 1) };
        }
        self.left.settle(out);
        Ok(())
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.rows.clear(run);
        self.is_read = false;
        self.right.close(run);
        self.left.input.close(run);
    }
}
