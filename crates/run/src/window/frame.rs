//! Computes the bounds of a row's frame.
//!
//! A ROWS frame counts rows. A RANGE frame ends where the order key passes a limit: the row's own key plus or
//! minus a distance, computed as an expression of the statement. For a NULL key, such a bound lies at the
//! edge of its peers, because NULL plus a distance is NULL.

use std::cmp::Ordering;
use std::ops::Range;

use cohort_expr::{BinaryOp, Expr, SortKey, build_binary, compare_rows};
use cohort_optimize::{Frame, FrameBound, FrameUnit, WindowNode};
use cohort_types::{Class, Interrupt, SqlResult, Value};

use crate::row_store::{RowStore, StoreReader};
use crate::runtime::Run;

/// A row of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub row: u64,
    /// Rows with equal order keys.
    pub peers: Range<u64>,
    /// Number of peer groups before.
    pub groups_before: u64,
    /// Number of rows in the partition.
    pub rows: u64,
}

/// Both bounds of a frame.
pub(super) struct Bounds {
    start: Bound,
    end: Bound,
    unit: FrameUnit,
}

/// One bound.
enum Bound {
    First,
    Last,
    Current,
    /// Number of rows before the current one, or after it if negative.
    Rows(i128),
    Value(Box<ByValue>),
}

/// A bound of a RANGE frame.
struct ByValue {
    /// The value that keys are compared with: own key plus or minus the distance.
    limit: Expr,
    key: Expr,
    order: SortKey,
    own: StoreReader,
    ahead: StoreReader,
    /// Rows before this one are before the limit.
    at: u64,
}

impl Bounds {
    pub fn new(frame: &Frame, node: &WindowNode, run: Run<'_, '_>) -> SqlResult<Bounds> {
        let bound = |bound: &FrameBound| Bound::new(bound, frame.unit, node, run);
        Ok(Bounds { start: bound(&frame.start)?, end: bound(&frame.end)?, unit: frame.unit })
    }

    /// Starts a new partition.
    pub fn start(&mut self) {
        for bound in [&mut self.start, &mut self.end] {
            if let Bound::Value(value) = bound {
                value.at = 0;
            }
        }
    }

    /// Returns the rows of the frame; empty if it ends before it begins.
    pub fn rows(&mut self, run: Run<'_, '_>, rows: &RowStore, place: &Place) -> SqlResult<Range<u64>> {
        let by_row = self.unit == FrameUnit::Rows;
        let start = match &mut self.start {
            Bound::First => 0,
            Bound::Last => place.rows,
            Bound::Current if by_row => place.row,
            Bound::Current => place.peers.start,
            Bound::Rows(before) => clamp(i128::from(place.row) - *before, place.rows),
            Bound::Value(value) => value.find(run, rows, place, Ordering::is_lt)?,
        };
        let end = match &mut self.end {
            Bound::First => 0,
            Bound::Last => place.rows,
            Bound::Current if by_row => place.row + 1,
            Bound::Current => place.peers.end,
            Bound::Rows(before) => clamp(i128::from(place.row) - *before + 1, place.rows),
            Bound::Value(value) => value.find(run, rows, place, Ordering::is_le)?,
        };
        Ok(start..end.max(start))
    }
}

fn clamp(row: i128, rows: u64) -> u64 {
    u64::try_from(row.max(0)).unwrap_or(u64::MAX).min(rows)
}

impl Bound {
    fn new(bound: &FrameBound, unit: FrameUnit, node: &WindowNode, run: Run<'_, '_>) -> SqlResult<Bound> {
        let (distance, is_before) = match bound {
            FrameBound::UnboundedPreceding => return Ok(Bound::First),
            FrameBound::UnboundedFollowing => return Ok(Bound::Last),
            FrameBound::CurrentRow => return Ok(Bound::Current),
            FrameBound::Preceding(distance) => (distance, true),
            FrameBound::Following(distance) => (distance, false),
        };
        let Some((key, order)) = node.order.first().filter(|_| unit == FrameUnit::Range) else {
            let rows = match distance.eval(&[], run.eval)?.as_ref() {
                Value::Int(v) => i128::from(*v),
                Value::UInt(v) => i128::from(*v),
                _ => 0,
            };
            return Ok(Bound::Rows(if is_before { rows } else { -rows }));
        };
        let op = if is_before == order.descending { BinaryOp::Add } else { BinaryOp::Sub };
        let limit = build_binary(op, key.clone(), distance.clone(), run.eval.env)?;
        let (own, ahead) = (StoreReader::default(), StoreReader::default());
        Ok(Bound::Value(Box::new(ByValue { limit, key: key.clone(), order: *order, own, ahead, at: 0 })))
    }
}

impl ByValue {
    /// Returns the first row whose key is not before the limit of the current row.
    fn find(
        &mut self,
        run: Run<'_, '_>,
        rows: &RowStore,
        place: &Place,
        is_before: fn(Ordering) -> bool,
    ) -> SqlResult<u64> {
        let row = rows.row(&mut self.own, place.row)?;
        let mut limit = self.limit.eval(row, run.eval)?.into_owned();
        // Compare an integer key with an integer.
        if let (Value::Decimal(v), Class::Int) = (&limit, self.key.eval(row, run.eval)?.class()) {
            limit = v.round(0).map_or(limit.clone(), Value::Decimal);
        }
        while self.at < place.rows {
            run.eval.step()?;
            let row = rows.row(&mut self.ahead, self.at)?;
            let key = self.key.eval(row, run.eval)?;
            let order = compare_rows(
                std::slice::from_ref(key.as_ref()),
                std::slice::from_ref(&limit),
                std::slice::from_ref(&self.order),
            );
            if !is_before(order) {
                break;
            }
            self.at += 1;
        }
        Ok(self.at)
    }
}
