//! A join that makes the rows on the right of the one on the left: JSON_TABLE.

use cohort_optimize::{Join, JsonScan};
use cohort_types::{Interrupt, SqlResult, Value};

use super::Left;
use crate::batch::Batch;
use crate::operator::{Input, Operator};
use crate::row_store::{RowStore, StoreReader};
use crate::runtime::Run;

/// JSON_TABLE over the rows on the left.
pub(crate) struct JsonRows<'p> {
    left: Left<'p>,
    scan: &'p JsonScan,
    /// Those of the current row's document.
    rows: RowStore,
    reader: StoreReader,
    /// The right row whose turn it is.
    next: Option<u64>,
    /// Rows of all documents before.
    before: u64,
}

impl<'p> JsonRows<'p> {
    pub fn new(join: &'p Join, left: Input<'p>, scan: &'p JsonScan) -> JsonRows<'p> {
        JsonRows {
            left: Left::new(join, left),
            scan,
            rows: RowStore::default(),
            reader: StoreReader::default(),
            next: None,
            before: 0,
        }
    }

    fn read_document(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.before += self.rows.len();
        self.rows.clear(run);
        let Some(text) = self.scan.document.eval_text(self.left.row(), run.eval)? else { return Ok(()) };
        let (rows, mut copy) = (&mut self.rows, Vec::new());
        self.scan.table.each_row(&text, self.before, run.eval, &mut |row: &[Value]| {
            copy.clear();
            copy.extend_from_slice(row);
            rows.push(run, &mut copy)
        })
    }
}

impl<'p> Operator<'p> for JsonRows<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.rows.clear(run);
        self.next = None;
        self.before = 0;
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
                    self.read_document(run)?;
                    0
                }
            };
            if at == self.rows.len() {
                self.left.end_matches(out, self.scan.table.width);
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
        self.left.input.close(run);
    }
}
