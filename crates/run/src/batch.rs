//! Rows on their way between operators: their values one after the other, without an allocation per row.

use cohort_types::{SqlResult, Value};

/// Bytes of text behind which a batch has no room for another row.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Some rows of one width. The first row decides about the width.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    values: Vec<Value>,
    width: usize,
    rows: usize,
    /// Bytes of text in the rows that came since the batch was marked.
    text_bytes: usize,
}

impl Batch {
    /// No rows.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Lets go of the rows and keeps the room.
    pub fn clear(&mut self) {
        self.values.clear();
        self.rows = 0;
        self.text_bytes = 0;
    }

    /// The next rows are those of a call: the first of them has room.
    #[inline]
    pub(crate) fn mark(&mut self) {
        self.text_bytes = 0;
    }

    /// Whether the rows since the mark take so much that the next one belongs to another call.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.text_bytes >= TEXT_BYTES_MAX
    }

    /// Whether another row may come when there are to be at most `rows`.
    #[inline]
    pub fn has_room(&self, rows: usize) -> bool {
        self.rows < rows && !self.is_full()
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The n-th row.
    #[inline]
    pub fn row(&self, n: usize) -> &[Value] {
        &self.values[n * self.width..(n + 1) * self.width]
    }

    /// The n-th row, whose values may be taken.
    #[inline]
    pub fn row_mut(&mut self, n: usize) -> &mut [Value] {
        &mut self.values[n * self.width..(n + 1) * self.width]
    }

    /// The rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[Value]> {
        (0..self.rows).map(|n| self.row(n))
    }

    /// Appends a row.
    pub fn push(&mut self, row: impl IntoIterator<Item = Value>) {
        self.values.extend(row);
        self.end_row();
    }

    /// Where the values of the next row go; [`Batch::end_row`] makes them one.
    #[inline]
    pub fn open_row(&mut self) -> &mut Vec<Value> {
        &mut self.values
    }

    /// The values behind the last row become one.
    #[inline]
    pub fn end_row(&mut self) {
        if self.rows == 0 {
            self.width = self.values.len();
        }
        self.text_bytes += text_bytes(&self.values[self.rows * self.width..]);
        self.rows += 1;
        debug_assert_eq!(self.values.len(), self.rows * self.width, "rows of one width");
    }

    /// The values of the row that has not ended.
    #[inline]
    pub(crate) fn unfinished(&self) -> &[Value] {
        &self.values[self.rows * self.width..]
    }

    /// The same, whose values may be taken.
    #[inline]
    pub(crate) fn unfinished_mut(&mut self) -> &mut [Value] {
        &mut self.values[self.rows * self.width..]
    }

    /// Values of a row.
    #[inline]
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Appends the first values of a row to the one that has not ended.
    #[inline]
    pub(crate) fn copy_to_unfinished(&mut self, row: usize, values: usize) {
        let start = row * self.width;
        self.values.extend_from_within(start..start + values);
    }

    /// Drops the row that has not ended, but for its first values.
    #[inline]
    pub(crate) fn cut_unfinished(&mut self, keep: usize) {
        let complete = if self.rows == 0 { 0 } else { self.rows * self.width };
        self.values.truncate(complete + keep);
    }

    /// Keeps the first rows only.
    pub(crate) fn truncate(&mut self, rows: usize) {
        if rows < self.rows {
            self.values.truncate(rows * self.width);
            self.rows = rows;
        }
    }

    /// Puts the rows in the order of an integer column; rows with something else there come first.
    pub(crate) fn sort_by_number(&mut self, column: usize) {
        let number = |row: &[Value]| match row[column] {
            Value::Int(v) => v,
            Value::UInt(v) => i64::try_from(v).unwrap_or(i64::MAX),
            _ => i64::MIN,
        };
        let mut order: Vec<(i64, u32)> = (0..self.rows).map(|n| (number(self.row(n)), n as u32)).collect();
        if order.is_sorted() {
            return;
        }
        order.sort_unstable();
        let mut sorted = Vec::with_capacity(self.values.len());
        for (_, n) in order {
            sorted.extend(taken(self.row_mut(n as usize)));
        }
        self.values = sorted;
    }

    /// Keeps the rows before `from`, and of those behind what passes.
    pub(crate) fn retain_from(
        &mut self,
        from: usize,
        mut passes: impl FnMut(&[Value]) -> SqlResult<bool>,
    ) -> SqlResult<()> {
        let mut kept = from;
        for n in from..self.rows {
            if passes(self.row(n))? {
                if kept < n {
                    let (front, back) = self.values.split_at_mut(n * self.width);
                    let target = &mut front[kept * self.width..(kept + 1) * self.width];
                    target.swap_with_slice(&mut back[..self.width]);
                }
                kept += 1;
            }
        }
        self.truncate(kept);
        Ok(())
    }
}

/// Bytes of text in some values.
#[inline]
fn text_bytes(values: &[Value]) -> usize {
    values.iter().map(|value| if let Value::Str(text) = value { text.bytes.len() } else { 0 }).sum()
}

/// Takes the values out of a row.
pub(crate) fn taken(row: &mut [Value]) -> impl Iterator<Item = Value> + '_ {
    row.iter_mut().map(|value| std::mem::replace(value, Value::Null))
}
