//! Nested-loop join: reads all right rows for each left row.

use cohort_expr::Expr;
use cohort_optimize::{Join, JoinKind};
use cohort_types::SqlResult;

use super::StoredRight;
use super::left::Left;
use crate::batch::Batch;
use crate::operator::{Input, Operator};
use crate::row_store::RowStore;
use crate::runtime::Run;

/// The nested-loop join operator.
pub(crate) struct Loop<'p> {
    left: Left<'p>,
    right: Input<'p>,
    right_width: usize,
    /// A condition on the left row alone. If it fails, there is no match.
    gate: Option<&'p Expr>,
    /// The right rows may change when the join is opened again.
    varies: bool,
    rows: StoredRight,
    is_read: bool,
}

impl<'p> Loop<'p> {
    pub fn new(
        join: &'p Join,
        left: Input<'p>,
        right: Input<'p>,
        (right_width, gate): (usize, Option<&'p Expr>),
        varies: bool,
    ) -> Loop<'p> {
        Loop {
            left: Left::new(join, left),
            right,
            right_width,
            gate,
            varies,
            rows: StoredRight::default(),
            is_read: false,
        }
    }
}

/// Stores all rows of the input, or only the first if one match is as good as many.
fn read_all<'p>(
    right: &mut Input<'p>,
    is_one_enough: bool,
    rows: &mut RowStore,
    run: Run<'_, 'p>,
) -> SqlResult<()> {
    rows.clear(run);
    right.open(run)?;
    let mut batch = Batch::new();
    while right.refill_all(run, &mut batch)? {
        for n in 0..batch.len() {
            rows.push(run, batch.row_mut(n))?;
        }
        if is_one_enough {
            break;
        }
    }
    Ok(())
}

impl<'p> Operator<'p> for Loop<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.rows.begin();
        self.is_read &= !self.varies;
        self.left.open(run)
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        let (right, is_read) = (&mut self.right, &mut self.is_read);
        self.rows.join(&mut self.left, self.gate, self.right_width, run, (out, want), |left, rows| {
            if !*is_read {
                let is_one_enough = left.on.is_none() && matches!(left.kind, JoinKind::Semi | JoinKind::Anti);
                read_all(right, is_one_enough, rows, run)?;
                *is_read = true;
            }
            Ok(())
        })
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.rows.clear(run);
        self.is_read = false;
        self.right.close(run);
        self.left.input.close(run);
    }
}
