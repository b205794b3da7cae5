//! Filter and projection.

use cohort_expr::Expr;
use cohort_types::{SqlResult, Value};

use crate::batch::Batch;
use crate::operator::{Input, Operator};
use crate::runtime::Run;

/// Rows that pass a condition.
pub(crate) struct Filter<'p> {
    input: Input<'p>,
    condition: &'p Expr,
}

impl<'p> Filter<'p> {
    pub fn new(input: Input<'p>, condition: &'p Expr) -> Filter<'p> {
        Filter { input, condition }
    }
}

impl<'p> Operator<'p> for Filter<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.input.open(run)
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        let before = out.len();
        // The rows go where they stay, and those that do not pass leave.
        while out.len() == before && self.input.next(run, out, want)? > 0 {
            out.retain_from(before, |row| self.condition.passes(row, run.eval))?;
        }
        Ok(())
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.input.close(run);
    }
}

/// A row of expressions for each row.
pub(crate) struct Project<'p> {
    input: Input<'p>,
    items: &'p [Expr],
    /// Per item: the column that it is, when no item behind it reads the same.
    moved: Vec<Option<usize>>,
    rows: Batch,
}

impl<'p> Project<'p> {
    pub fn new(input: Input<'p>, items: &'p [Expr]) -> Project<'p> {
        let mut read_later: Vec<usize> = Vec::new();
        let mut moved = vec![None; items.len()];
        for (n, item) in items.iter().enumerate().rev() {
            if let Expr::Column(column) = item {
                moved[n] = (!read_later.contains(&column.ordinal)).then_some(column.ordinal);
                read_later.push(column.ordinal);
            } else {
                read_later.extend(item.columns());
            }
        }
        Project { input, items, moved, rows: Batch::new() }
    }
}

impl<'p> Operator<'p> for Project<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.input.open(run)
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        self.rows.clear();
        self.input.next(run, &mut self.rows, want)?;
        for n in 0..self.rows.len() {
            let row = self.rows.row_mut(n);
            for (item, moved) in self.items.iter().zip(&self.moved) {
                let value = match moved {
                    // Numbers get the digits of their type, and timestamps the session's time zone.
                    Some(ordinal) if matches!(row[*ordinal], Value::Str(_) | Value::Int(_) | Value::Null) => {
                        std::mem::replace(&mut row[*ordinal], Value::Null)
                    }
                    _ => item.eval_output(row, run.eval)?.into_owned(),
                };
                out.open_row().push(value);
            }
            out.end_row();
        }
        Ok(())
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.input.close(run);
    }
}
