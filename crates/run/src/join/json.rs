//! JSON_TABLE join: computes the right rows from the current left row.

use cohort_optimize::{Join, JsonScan};
use cohort_types::{SqlResult, Value};

use super::StoredRight;
use super::left::Left;
use crate::batch::Batch;
use crate::operator::{Input, Operator};
use crate::runtime::Run;

/// The JSON_TABLE join operator.
pub(crate) struct JsonRows<'p> {
    left: Left<'p>,
    scan: &'p JsonScan,
    /// Right rows of the current document.
    right: StoredRight,
    /// Number of rows of all earlier documents.
    before: u64,
}

impl<'p> JsonRows<'p> {
    pub fn new(join: &'p Join, left: Input<'p>, scan: &'p JsonScan) -> JsonRows<'p> {
        JsonRows { left: Left::new(join, left), scan, right: StoredRight::default(), before: 0 }
    }
}

impl<'p> Operator<'p> for JsonRows<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.right.clear(run);
        self.before = 0;
        self.left.open(run)
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        let (scan, before) = (self.scan, &mut self.before);
        self.right.join(&mut self.left, None, scan.table.width, run, (out, want), |left, rows| {
            *before += rows.len();
            rows.clear(run);
            let Some(text) = scan.document.eval_text(left.row(), run.eval)? else { return Ok(()) };
            let mut copy = Vec::new();
            scan.table.each_row(&text, *before, run.eval, &mut |row: &[Value]| {
                copy.clear();
                copy.extend_from_slice(row);
                rows.push(run, &mut copy)
            })
        })
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.right.clear(run);
        self.left.input.close(run);
    }
}
