//! PERCENTILE_CONT, PERCENTILE_DISC and MEDIAN of the order key over a partition, ignoring NULLs.

use std::ops::Range;

use cohort_expr::{Expr, SortKey};
use cohort_types::{Interrupt, NoWarnings, SqlError, SqlResult, Value};

use crate::row_store::{RowStore, StoreReader};
use crate::runtime::Run;

/// A percentile of a partition.
pub(super) struct Percentile<'p> {
    fraction: &'p Expr,
    /// Interpolates between two values, instead of choosing one.
    is_continuous: bool,
    key: Option<&'p (Expr, SortKey)>,
    reader: StoreReader,
    known: Option<Value>,
}

impl<'p> Percentile<'p> {
    pub fn new(fraction: &'p Expr, is_continuous: bool, key: Option<&'p (Expr, SortKey)>) -> Percentile<'p> {
        Percentile { fraction, is_continuous, key, reader: StoreReader::default(), known: None }
    }

    /// Starts a new partition.
    pub fn start(&mut self) {
        self.known = None;
    }

    pub fn value(&mut self, run: Run<'_, '_>, rows: &RowStore) -> SqlResult<Value> {
        if self.known.is_none() {
            self.known = Some(self.find(run, rows)?);
        }
        Ok(self.known.clone().unwrap_or(Value::Null))
    }

    fn find(&mut self, run: Run<'_, '_>, rows: &RowStore) -> SqlResult<Value> {
        let fraction = self.fraction.eval(rows.row(&mut self.reader, 0)?, run.eval)?;
        let fraction = fraction.to_f64(&mut NoWarnings).unwrap_or(f64::NAN);
        if !(0.0..=1.0).contains(&fraction) {
            let name = if self.is_continuous { "percentile_cont" } else { "percentile_disc" };
            return Err(SqlError::percentile_out_of_range(name));
        }
        let present = self.present(run, rows)?;
        let count = present.end - present.start;
        if count == 0 {
            return Ok(Value::Null);
        }
        if !self.is_continuous {
            let enough = (fraction * count as f64).ceil().max(1.0) as u64;
            // The product is not exact, so the first row that reaches the fraction may be the one before.
            let reaches = |rows: u64| rows as f64 / count as f64 >= fraction;
            let at = if enough > 1 && reaches(enough - 1) { enough - 1 } else { enough };
            let at = if reaches(at) { at } else { at + 1 }.min(count);
            return self.key_at(run, rows, present.start + at - 1);
        }
        let place = fraction * (count - 1) as f64;
        let (below, above) = (place.floor(), place.ceil());
        let low = self.number_at(run, rows, present.start + below as u64)?;
        if below == above {
            return Ok(Value::Double(low));
        }
        let high = self.number_at(run, rows, present.start + above as u64)?;
        Ok(Value::Double((above - place) * low + (place - below) * high))
    }

    fn key_at(&mut self, run: Run<'_, '_>, rows: &RowStore, row: u64) -> SqlResult<Value> {
        let Some((key, _)) = self.key else { return Ok(Value::Null) };
        let row = rows.row(&mut self.reader, row)?;
        Ok(key.eval_output(row, run.eval)?.into_owned())
    }

    fn number_at(&mut self, run: Run<'_, '_>, rows: &RowStore, row: u64) -> SqlResult<f64> {
        Ok(self.key_at(run, rows, row)?.to_f64(&mut NoWarnings).unwrap_or(0.0))
    }

    /// Returns the rows whose key is not NULL. NULLs come first, or last in descending order.
    fn present(&mut self, run: Run<'_, '_>, rows: &RowStore) -> SqlResult<Range<u64>> {
        let mut present = 0..0;
        for n in 0..rows.len() {
            run.eval.step()?;
            if !self.key_at(run, rows, n)?.is_null() {
                if present.is_empty() {
                    present.start = n;
                }
                present.end = n + 1;
            }
        }
        Ok(present)
    }
}
