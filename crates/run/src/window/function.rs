//! Window functions, evaluated for the current row.

use cohort_expr::Expr;
use cohort_optimize::{WindowCall, WindowFunction, WindowNode};
use cohort_types::{NoWarnings, SqlError, SqlResult, Value};

use super::frame::{Bounds, Place};
use super::percentile::Percentile;
use super::sliding::Sliding;
use crate::row_store::{RowStore, StoreReader};
use crate::runtime::Run;

/// A call with its state for the partition.
pub(super) struct Call<'p> {
    function: Function<'p>,
    bounds: Bounds,
    /// Reader of the current row.
    own: StoreReader,
    /// Reader of the row that provides the value.
    other: StoreReader,
}

enum Function<'p> {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    /// The number of buckets is constant within a partition.
    Ntile {
        buckets: &'p Expr,
        known: Option<i64>,
    },
    Lag {
        value: &'p Expr,
        offset: Option<&'p Expr>,
        is_lead: bool,
    },
    First(&'p Expr),
    Last(&'p Expr),
    Nth {
        value: &'p Expr,
        n: &'p Expr,
    },
    Aggregate(Box<Sliding<'p>>),
    Percentile(Percentile<'p>),
}

impl<'p> Call<'p> {
    pub fn new(call: &'p WindowCall, node: &'p WindowNode, run: Run<'_, 'p>) -> SqlResult<Call<'p>> {
        let function = match &call.function {
            WindowFunction::RowNumber => Function::RowNumber,
            WindowFunction::Rank => Function::Rank,
            WindowFunction::DenseRank => Function::DenseRank,
            WindowFunction::PercentRank => Function::PercentRank,
            WindowFunction::CumeDist => Function::CumeDist,
            WindowFunction::Ntile(buckets) => Function::Ntile { buckets, known: None },
            WindowFunction::Lag { value, offset, is_lead } => {
                Function::Lag { value, offset: offset.as_ref(), is_lead: *is_lead }
            }
            WindowFunction::FirstValue(value) => Function::First(value),
            WindowFunction::LastValue(value) => Function::Last(value),
            WindowFunction::NthValue { value, n } => Function::Nth { value, n },
            WindowFunction::Aggregate(aggregate) => Function::Aggregate(Box::new(Sliding::new(aggregate))),
            WindowFunction::PercentileCont { fraction } => {
                Function::Percentile(Percentile::new(fraction, true, node.order.first()))
            }
            WindowFunction::PercentileDisc { fraction } => {
                Function::Percentile(Percentile::new(fraction, false, node.order.first()))
            }
        };
        let bounds = Bounds::new(&call.frame, node, run)?;
        Ok(Call { function, bounds, own: StoreReader::default(), other: StoreReader::default() })
    }

    /// Starts a new partition.
    pub fn start(&mut self, run: Run<'_, 'p>) {
        self.bounds.start();
        (self.own, self.other) = Default::default();
        match &mut self.function {
            Function::Aggregate(sliding) => sliding.start(run),
            Function::Percentile(percentile) => percentile.start(),
            Function::Ntile { known, .. } => *known = None,
            _ => {}
        }
    }

    /// Returns the value for a row. Rows must be passed in order.
    pub fn value(&mut self, run: Run<'_, 'p>, rows: &RowStore, place: &Place) -> SqlResult<Value> {
        let count = |n: u64| Ok(Value::Int(n as i64));
        match &mut self.function {
            Function::RowNumber => count(place.row + 1),
            Function::Rank => count(place.peers.start + 1),
            Function::DenseRank => count(place.groups_before + 1),
            Function::PercentRank => {
                let others = place.rows.saturating_sub(1).max(1);
                Ok(Value::Double(place.peers.start as f64 / others as f64))
            }
            Function::CumeDist => Ok(Value::Double(place.peers.end as f64 / place.rows as f64)),
            Function::Ntile { buckets, known } => {
                let buckets = integer(&*buckets.eval(rows.row(&mut self.own, place.row)?, run.eval)?);
                let is_other = known.is_some_and(|known| buckets != Some(known));
                *known = buckets;
                ntile(buckets.filter(|_| !is_other), place)
            }
            Function::Lag { value, offset, is_lead } => {
                let offset = match offset {
                    Some(offset) => {
                        integer(&*offset.eval(rows.row(&mut self.own, place.row)?, run.eval)?).unwrap_or(0)
                    }
                    None => 1,
                };
                let forward = if *is_lead { i128::from(offset) } else { -i128::from(offset) };
                let row = i128::from(place.row) + forward;
                value_at(run, rows, &mut self.other, value, u64::try_from(row).ok(), place.rows)
            }
            Function::First(value) => {
                let frame = self.bounds.rows(run, rows, place)?;
                let row = (!frame.is_empty()).then_some(frame.start);
                value_at(run, rows, &mut self.other, value, row, place.rows)
            }
            Function::Last(value) => {
                let frame = self.bounds.rows(run, rows, place)?;
                let row = (!frame.is_empty()).then(|| frame.end - 1);
                value_at(run, rows, &mut self.other, value, row, place.rows)
            }
            Function::Nth { value, n } => {
                let frame = self.bounds.rows(run, rows, place)?;
                let n = integer(&*n.eval(rows.row(&mut self.own, place.row)?, run.eval)?);
                // NULL means the first row.
                let before = n.unwrap_or(1).checked_sub(1).and_then(|n| u64::try_from(n).ok());
                let row = before.map(|n| frame.start.saturating_add(n)).filter(|row| frame.contains(row));
                value_at(run, rows, &mut self.other, value, row, place.rows)
            }
            Function::Aggregate(sliding) => {
                let frame = self.bounds.rows(run, rows, place)?;
                sliding.value(run, rows, frame)
            }
            Function::Percentile(percentile) => percentile.value(run, rows),
        }
    }
}

/// Returns a value of a row of the partition, or NULL if the row does not exist.
fn value_at(
    run: Run<'_, '_>,
    rows: &RowStore,
    reader: &mut StoreReader,
    value: &Expr,
    row: Option<u64>,
    count: u64,
) -> SqlResult<Value> {
    let Some(row) = row.filter(|row| *row < count) else { return Ok(Value::Null) };
    Ok(value.eval_output(rows.row(reader, row)?, run.eval)?.into_owned())
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Null => None,
        Value::Int(v) => Some(*v),
        Value::UInt(v) => Some(i64::try_from(*v).unwrap_or(i64::MAX)),
        other => other.to_decimal(&mut NoWarnings).map(|v| v.to_i64().0),
    }
}

/// Returns the bucket of a row. If the rows do not divide evenly, the first buckets have one row more.
fn ntile(buckets: Option<i64>, place: &Place) -> SqlResult<Value> {
    let Some(buckets) = buckets.and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0) else {
        return Err(SqlError::ntile_argument());
    };
    let (least, larger) = (place.rows / buckets, place.rows % buckets);
    let in_larger = larger * (least + 1);
    let bucket = if place.row < in_larger {
        place.row / (least + 1)
    } else {
        larger + (place.row - in_larger) / least.max(1)
    };
    Ok(Value::Int(bucket as i64 + 1))
}
