//! Filter and projection.

use cohort_expr::{Expr, ExprType, to_class_of, to_common_class, to_joined};
use cohort_types::{SqlResult, Value, VectorType};

use crate::batch::Batch;
use crate::operator::{Input, Operator};
use crate::runtime::{Held, Run};
use crate::vectors::Vectors;

/// The filter operator.
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
        // Rows are appended to the output first; those that fail are removed again.
        while out.len() == before && self.input.next(run, out, want)? > 0 {
            out.retain_from(before, |row| self.condition.passes(row, run.eval))?;
        }
        Ok(())
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.input.close(run);
    }
}

/// The gate operator: returns its input, or nothing if a condition that reads none of its rows fails.
pub(crate) struct OneTimeFilter<'p> {
    input: Input<'p>,
    condition: &'p Expr,
    is_open: bool,
}

impl<'p> OneTimeFilter<'p> {
    pub fn new(input: Input<'p>, condition: &'p Expr) -> OneTimeFilter<'p> {
        OneTimeFilter { input, condition, is_open: false }
    }
}

impl<'p> Operator<'p> for OneTimeFilter<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.is_open = self.condition.passes(&[], run.eval)?;
        if self.is_open { self.input.open(run) } else { Ok(()) }
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        if self.is_open { self.input.next(run, out, want).map(|_| ()) } else { Ok(()) }
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.input.close(run);
    }
}

/// An operator that converts each column to another type.
pub(crate) struct Convert<'p> {
    input: Input<'p>,
    from: &'p [ExprType],
    to: &'p [ExprType],
}

impl<'p> Convert<'p> {
    pub fn new(input: Input<'p>, from: &'p [ExprType], to: &'p [ExprType]) -> Convert<'p> {
        Convert { input, from, to }
    }
}

impl<'p> Operator<'p> for Convert<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.input.open(run)
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        let before = out.len();
        self.input.next(run, out, want)?;
        for n in before..out.len() {
            for (value, (from, to)) in out.row_mut(n).iter_mut().zip(self.from.iter().zip(self.to)) {
                *value = to_joined(std::mem::replace(value, Value::Null), from, to, run.eval)?;
            }
        }
        Ok(())
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.input.close(run);
    }
}

/// Size from which on a text is charged to the statement while a row holds it.
const LARGE_BYTES: usize = 64 << 10;

/// The projection operator: computes a row of expressions for each input row.
pub(crate) struct Project<'p> {
    input: Input<'p>,
    items: &'p [Expr],
    /// Per item: the column to move, if the item is a plain column that no later item reads.
    moved: Vec<Option<usize>>,
    /// Items that keep all digits; empty if none does.
    kept: &'p [bool],
    rows: Batch,
    /// Position of the next row in `rows`.
    at: usize,
    /// Memory of the large values returned last.
    held: Held,
    /// Input rows that were read as vectors.
    vectors: Vectors,
    /// Number of input rows so far, reported in warnings.
    seen: u64,
}

impl<'p> Project<'p> {
    pub fn new(input: Input<'p>, items: &'p [Expr], kept: &'p [bool]) -> Project<'p> {
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
        Project {
            input,
            items,
            moved,
            kept,
            rows: Batch::new(),
            at: 0,
            held: Held::default(),
            vectors: Vectors::default(),
            seen: 0,
        }
    }
}

impl<'p> Operator<'p> for Project<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.seen = 0;
        self.at = 0;
        self.rows.clear();
        self.input.open(run)
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        self.held.release(run);
        if self.at == self.rows.len() {
            self.at = 0;
            self.rows.clear();
            self.input.next(run, &mut self.rows, want)?;
        }
        let target = out.len().saturating_add(want);
        while self.at < self.rows.len() && out.has_room(target) {
            self.seen += 1;
            run.eval.set_row_number(self.seen);
            let row = self.rows.row_mut(self.at);
            self.at += 1;
            for (n, (item, moved)) in self.items.iter().zip(&self.moved).enumerate() {
                let value = match moved {
                    // Numbers must get the digits of their type, and timestamps the session's time zone.
                    Some(ordinal) if matches!(row[*ordinal], Value::Str(_) | Value::Int(_) | Value::Null) => {
                        std::mem::replace(&mut row[*ordinal], Value::Null)
                    }
                    _ if self.kept.get(n) == Some(&true) => {
                        to_class_of(item.eval(row, run.eval)?.into_owned(), &item.ty())
                    }
                    _ if matches!(item, Expr::Column(_)) => item.eval_output(row, run.eval)?.into_owned(),
                    _ => to_common_class(item.eval_output(row, run.eval)?.into_owned(), &item.ty()),
                };
                if let Value::Str(text) = &value
                    && text.bytes.len() >= LARGE_BYTES
                {
                    self.held.grow(run, text.bytes.len())?;
                }
                out.open_row().push(value);
            }
            out.end_row();
        }
        Ok(())
    }

    fn vector_types(&mut self, run: Run<'_, 'p>) -> SqlResult<Option<Vec<VectorType>>> {
        let column = |item: &Expr| match item {
            Expr::Column(column) => Some(column.ordinal),
            _ => None,
        };
        let Some(columns) = self.items.iter().map(column).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let Some(types) = self.input.vector_types(run)? else { return Ok(None) };
        let yielded = columns.iter().map(|column| types[*column]).collect();
        self.vectors = Vectors::new(types);
        Ok(Some(yielded))
    }

    fn next_vectors(&mut self, run: Run<'_, 'p>, out: &mut Vectors) -> SqlResult<bool> {
        self.vectors.wanted.fill(false);
        for (item, is_wanted) in self.items.iter().zip(&out.wanted) {
            item.columns().iter().for_each(|column| self.vectors.wanted[*column] |= is_wanted);
        }
        let goes_on = self.input.next_vectors(run, &mut self.vectors)?;
        out.clear();
        out.rows = self.vectors.rows;
        for ((vector, item), moved) in out.vectors.iter_mut().zip(self.items).zip(&self.moved) {
            match (moved, item) {
                (Some(ordinal), _) => std::mem::swap(vector, &mut self.vectors.vectors[*ordinal]),
                (None, Expr::Column(column)) => vector.append(&self.vectors.vectors[column.ordinal]),
                (None, _) => {}
            }
        }
        Ok(goes_on)
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.held.release(run);
        self.input.close(run);
    }
}
