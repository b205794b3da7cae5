//! Rows by columns, for operators that compute with many at once.

use cohort_types::{Lane, LaneType, Value};

/// The columns of some rows.
#[derive(Debug, Default)]
pub struct Lanes {
    pub types: Vec<LaneType>,
    /// One per column of the row.
    pub lanes: Vec<Lane>,
    pub rows: usize,
}

impl Lanes {
    /// No rows of columns of these types.
    pub fn new(types: Vec<LaneType>) -> Lanes {
        let lanes = types.iter().map(|_| Lane::default()).collect();
        Lanes { types, lanes, rows: 0 }
    }

    /// Forgets the rows, keeps the room.
    pub fn clear(&mut self) {
        self.lanes.iter_mut().for_each(Lane::clear);
        self.rows = 0;
    }

    /// Appends a row; false if a value is not of its column's type.
    pub fn push_row(&mut self, row: &[Value]) -> bool {
        self.rows += 1;
        let mut columns = self.lanes.iter_mut().zip(&self.types).zip(row);
        columns.all(|((lane, ty), value)| lane.push_value(value, *ty))
    }

    /// The n-th row.
    pub fn row(&self, n: usize) -> impl Iterator<Item = Value> {
        self.lanes.iter().zip(&self.types).map(move |(lane, ty)| lane.value(n, *ty))
    }
}
