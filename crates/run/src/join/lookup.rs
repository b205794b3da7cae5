//! A join that asks a table for each row on the left.

use cohort_optimize::{Join, Scan};
use cohort_types::{Interrupt, SqlResult, Value};

use super::Left;
use crate::batch::Batch;
use crate::operator::{Input, Operator};
use crate::runtime::Run;
use crate::scan::Cursor;

/// A join by an index.
pub(crate) struct Lookup<'p> {
    left: Left<'p>,
    cursor: Cursor<'p>,
    /// The cursor stands among the matches of the current row.
    seeking: bool,
    /// A key has one row at most.
    is_unique: bool,
    found: Vec<Value>,
}

impl<'p> Lookup<'p> {
    pub fn new(join: &'p Join, left: Input<'p>, scan: &'p Scan) -> Lookup<'p> {
        Lookup {
            left: Left::new(join, left),
            cursor: Cursor::new(scan),
            seeking: false,
            is_unique: scan.is_of_unique_key(),
            found: Vec::new(),
        }
    }
}

impl<'p> Operator<'p> for Lookup<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.seeking = false;
        self.left.open(run)
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        let target = out.len().saturating_add(want);
        while out.len() < target {
            run.eval.step()?;
            if !self.seeking {
                if !self.left.advance(run, target - out.len())? {
                    return Ok(());
                }
                self.cursor.seek(run, self.left.row(), None)?;
                self.seeking = true;
            }
            self.found.clear();
            if !self.cursor.read_into(run, &mut self.found)? {
                self.left.end_matches(out, self.cursor.width());
                self.seeking = false;
                continue;
            }
            self.left.begin(out);
            out.open_row().append(&mut self.found);
            let is_decided = self.left.decide(run, out)?;
            self.seeking = !(is_decided || self.is_unique && self.left.matched);
        }
        self.left.settle(out);
        Ok(())
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.cursor.close(run);
        self.left.input.close(run);
    }
}
