//! Operators without table access: constants, series, and concatenation of inputs.

use cohort_expr::Expr;
use cohort_types::{SqlResult, Value};

use crate::batch::Batch;
use crate::operator::{Input, Operator};
use crate::runtime::Run;

/// An operator that returns one row without columns.
#[derive(Default)]
pub(crate) struct Unit {
    done: bool,
}

impl<'p> Operator<'p> for Unit {
    fn open(&mut self, _: Run<'_, 'p>) -> SqlResult<()> {
        self.done = false;
        Ok(())
    }

    fn next(&mut self, _: Run<'_, 'p>, out: &mut Batch, _: usize) -> SqlResult<()> {
        if !std::mem::replace(&mut self.done, true) {
            out.push([]);
        }
        Ok(())
    }

    fn close(&mut self, _: Run<'_, 'p>) {}
}

/// An operator that returns no row.
pub(crate) struct Empty;

impl<'p> Operator<'p> for Empty {
    fn open(&mut self, _: Run<'_, 'p>) -> SqlResult<()> {
        Ok(())
    }

    fn next(&mut self, _: Run<'_, 'p>, _: &mut Batch, _: usize) -> SqlResult<()> {
        Ok(())
    }

    fn close(&mut self, _: Run<'_, 'p>) {}
}

/// An operator that returns rows of expressions.
pub(crate) struct Constants<'p> {
    rows: &'p [Vec<Expr>],
    next: usize,
}

impl<'p> Constants<'p> {
    pub fn new(rows: &'p [Vec<Expr>]) -> Constants<'p> {
        Constants { rows, next: 0 }
    }
}

impl<'p> Operator<'p> for Constants<'p> {
    fn open(&mut self, _: Run<'_, 'p>) -> SqlResult<()> {
        self.next = 0;
        Ok(())
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        let end = self.rows.len().min(self.next.saturating_add(want));
        for row in &self.rows[self.next..end] {
            if out.is_full() {
                break;
            }
            for expr in row {
                let value = expr.eval(&[], run.eval)?.into_owned();
                out.open_row().push(value);
            }
            out.end_row();
            self.next += 1;
        }
        Ok(())
    }

    fn close(&mut self, _: Run<'_, 'p>) {}
}

/// An operator that returns the integers of a range.
pub(crate) struct Series {
    first: u64,
    last: u64,
    step: i64,
    next: Option<u64>,
}

impl Series {
    pub fn new(first: u64, last: u64, step: i64) -> Series {
        Series { first, last, step, next: None }
    }
}

impl<'p> Operator<'p> for Series {
    fn open(&mut self, _: Run<'_, 'p>) -> SqlResult<()> {
        let empty = if self.step >= 0 { self.first > self.last } else { self.first < self.last };
        self.next = (!empty).then_some(self.first);
        Ok(())
    }

    fn next(&mut self, _: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        for _ in 0..want {
            let Some(number) = self.next else { break };
            out.push([Value::UInt(number)]);
            let within =
                |n: &u64| if self.step > 0 { *n <= self.last } else { *n >= self.last && self.step < 0 };
            self.next = number.checked_add_signed(self.step).filter(within);
        }
        Ok(())
    }

    fn close(&mut self, _: Run<'_, 'p>) {}
}

/// An operator that concatenates the rows of its inputs.
pub(crate) struct Concat<'p> {
    inputs: Vec<Input<'p>>,
    /// The current input.
    at: usize,
    is_open: bool,
}

impl<'p> Concat<'p> {
    pub fn new(inputs: Vec<Input<'p>>) -> Concat<'p> {
        Concat { inputs, at: 0, is_open: false }
    }
}

impl<'p> Operator<'p> for Concat<'p> {
    fn open(&mut self, _: Run<'_, 'p>) -> SqlResult<()> {
        self.at = 0;
        self.is_open = false;
        Ok(())
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        while let Some(input) = self.inputs.get_mut(self.at) {
            if !std::mem::replace(&mut self.is_open, true) {
                input.open(run)?;
            }
            if input.next(run, out, want)? > 0 {
                return Ok(());
            }
            self.at += 1;
            self.is_open = false;
        }
        Ok(())
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.inputs.iter_mut().for_each(|input| input.close(run));
    }
}
