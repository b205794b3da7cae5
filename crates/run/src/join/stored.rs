//! Right rows of a join, stored and read once for each left row.

use cohort_expr::Expr;
use cohort_types::{Interrupt, SqlResult};

use super::left::Left;
use crate::batch::Batch;
use crate::row_store::{RowStore, StoreReader};
use crate::runtime::Run;

/// Stored right rows.
#[derive(Default)]
pub(super) struct StoredRight {
    rows: RowStore,
    reader: StoreReader,
    /// The next row; `None` between two left rows.
    next: Option<u64>,
}

impl StoredRight {
    /// Restarts for the first left row.
    pub fn begin(&mut self) {
        self.next = None;
    }

    /// Releases the rows.
    pub fn clear(&mut self, run: Run<'_, '_>) {
        self.rows.clear(run);
        self.next = None;
    }

    /// Appends at most `want` joined rows. `fill` stores the right rows of the current left row. A left row
    /// that fails `gate` has none.
    pub fn join<'p>(
        &mut self,
        left: &mut Left<'p>,
        gate: Option<&Expr>,
        right_width: usize,
        run: Run<'_, 'p>,
        (out, want): (&mut Batch, usize),
        mut fill: impl FnMut(&Left<'p>, &mut RowStore) -> SqlResult<()>,
    ) -> SqlResult<()> {
        let target = out.len().saturating_add(want);
        while out.has_room(target) {
            run.eval.step()?;
            let at = match self.next {
                Some(at) => at,
                None => {
                    if !left.advance(run, want)? {
                        return Ok(());
                    }
                    if let Some(gate) = gate
                        && !gate.passes(left.row(), run.eval)?
                    {
                        left.end_matches(out, right_width);
                        continue;
                    }
                    fill(left, &mut self.rows)?;
                    0
                }
            };
            if at == self.rows.len() {
                left.end_matches(out, right_width);
                self.next = None;
                continue;
            }
            left.begin(out);
            out.open_row().extend_from_slice(self.rows.row(&mut self.reader, at)?);
            self.next = if left.decide(run, out)? { None } else { Some(at + 1) };
        }
        left.return_lent(out);
        Ok(())
    }
}
