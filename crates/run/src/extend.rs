//! Appends computed columns to rows: the assignments of an UPDATE, each of which sees those before it.

use cohort_expr::EvalContext;
use cohort_optimize::Extension;
use cohort_types::{ColumnType, NoWarnings, SqlResult, StoreContext, TypeKind, Value};

use crate::batch::{Batch, taken};
use crate::operator::{Input, Operator};
use crate::runtime::Run;

/// An operator that appends computed columns to the rows of its input.
pub(crate) struct Extend<'p> {
    input: Input<'p>,
    more: &'p [Extension],
    rows: Batch,
    /// Position of the next row in `rows`.
    at: usize,
    /// The row being extended.
    row: Vec<Value>,
    /// Number of input rows so far, reported in warnings.
    seen: u64,
}

impl<'p> Extend<'p> {
    pub fn new(input: Input<'p>, more: &'p [Extension]) -> Extend<'p> {
        Extend { input, more, rows: Batch::new(), at: 0, row: Vec::new(), seen: 0 }
    }
}

impl<'p> Operator<'p> for Extend<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.seen = 0;
        self.at = 0;
        self.rows.clear();
        self.input.open(run)
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        if self.at == self.rows.len() {
            self.at = 0;
            self.rows.clear();
            self.input.next(run, &mut self.rows, want)?;
        }
        let target = out.len().saturating_add(want);
        while self.at < self.rows.len() && out.has_room(target) {
            self.seen += 1;
            run.eval.set_row_number(self.seen);
            self.row.clear();
            self.row.extend(taken(self.rows.row_mut(self.at)));
            for extension in self.more {
                let value = match extension {
                    Extension::Value(expr) => expr.eval(&self.row, run.eval)?.into_owned(),
                    Extension::Held { place, table, column } => {
                        let described = &table.columns[*column];
                        let store = StoreContext {
                            sql_mode: run.eval.env.sql_mode,
                            strict: false,
                            database: &table.name.schema,
                            table: &table.name.table,
                            column: &described.name,
                            row: self.seen,
                            zone: &run.eval.env.time_zone,
                            now_micros: run.eval.env.now_micros,
                        };
                        let value = self.row[*place].clone();
                        held(value, &described.ty, described.nullable, &store, run.eval)
                    }
                };
                self.row.push(value);
            }
            out.push(self.row.drain(..));
            self.at += 1;
        }
        Ok(())
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.input.close(run);
    }
}

/// Returns the value that the column will hold. A value that cannot be stored is reported when it is stored;
/// at that time the statement has changed nothing.
fn held(
    value: Value,
    ty: &ColumnType,
    nullable: bool,
    store: &StoreContext<'_>,
    eval: &EvalContext<'_>,
) -> Value {
    let stored = match value {
        Value::Null => Value::Null,
        value => ty.store(value, store, &mut NoWarnings).unwrap_or(Value::Null),
    };
    match stored {
        Value::Null if nullable => Value::Null,
        Value::Null if ty.kind == TypeKind::Timestamp => Value::Timestamp(eval.env.now_micros),
        Value::Null => ty.implicit_default(),
        stored => stored,
    }
}
