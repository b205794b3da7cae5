//! [`Batch`]: rows passed between operators, as one flat vector of values without an allocation per row.

use cohort_types::{SqlResult, Value};

/// Bytes of text after which a batch accepts no further row.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// A batch of rows of equal width. The first row determines the width.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    values: Vec<Value>,
    width: usize,
    rows: usize,
    /// Bytes of text in the rows added since the last [`Batch::mark`].
    text_bytes: usize,
}

impl Batch {
    /// Creates an empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Removes the rows and keeps the capacity.
    pub fn clear(&mut self) {
        self.values.clear();
        self.rows = 0;
        self.text_bytes = 0;
    }

    /// Starts a new call's rows. The first of them always fits.
    #[inline]
    pub(crate) fn mark(&mut self) {
        self.text_bytes = 0;
    }

    /// Returns true if the rows since the mark are so large that the next row belongs to another call.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.text_bytes >= TEXT_BYTES_MAX
    }

    /// Returns true if another row fits, given a maximum of `rows` rows.
    #[inline]
    pub fn has_room(&self, rows: usize) -> bool {
        self.rows < rows && !self.is_full()
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the n-th row.
    #[inline]
    pub fn row(&self, n: usize) -> &[Value] {
        &self.values[n * self.width..(n + 1) * self.width]
    }

    /// Returns the n-th row, from which values may be moved out.
    #[inline]
    pub fn row_mut(&mut self, n: usize) -> &mut [Value] {
        &mut self.values[n * self.width..(n + 1) * self.width]
    }

    /// Iterates over the rows.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[Value]> {
        (0..self.rows).map(|n| self.row(n))
    }

    /// Appends a row.
    pub fn push(&mut self, row: impl IntoIterator<Item = Value>) {
        self.values.extend(row);
        self.end_row();
    }

    /// Returns the vector to append the next row's values to. [`Batch::end_row`] completes the row.
    #[inline]
    pub fn open_row(&mut self) -> &mut Vec<Value> {
        &mut self.values
    }

    /// Completes the row from the values appended after the last one.
    #[inline]
    pub fn end_row(&mut self) {
        if self.rows == 0 {
            self.width = self.values.len();
        }
        self.text_bytes += text_bytes(&self.values[self.rows * self.width..]);
        self.rows += 1;
        debug_assert_eq!(self.values.len(), self.rows * self.width, "rows of one width");
    }

    /// Returns the values of the incomplete row.
    #[inline]
    pub(crate) fn unfinished(&self) -> &[Value] {
        &self.values[self.rows * self.width..]
    }

    /// Returns the values of the incomplete row, which may be moved out.
    #[inline]
    pub(crate) fn unfinished_mut(&mut self) -> &mut [Value] {
        &mut self.values[self.rows * self.width..]
    }

    /// Returns the number of values per row.
    #[inline]
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Appends the first values of an earlier row to the incomplete row.
    #[inline]
    pub(crate) fn copy_to_unfinished(&mut self, row: usize, values: usize) {
        let start = row * self.width;
        self.values.extend_from_within(start..start + values);
    }

    /// Drops all but the first `keep` values of the incomplete row.
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

    /// Sorts the rows by an integer column. Rows with another type in it come first.
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

    /// Keeps the rows before `from`, and those after it that pass.
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

/// Returns the bytes of text in the values.
#[inline]
fn text_bytes(values: &[Value]) -> usize {
    values.iter().map(|value| if let Value::Str(text) = value { text.bytes.len() } else { 0 }).sum()
}

/// Moves the values out of a row.
pub(crate) fn taken(row: &mut [Value]) -> impl Iterator<Item = Value> + '_ {
    row.iter_mut().map(|value| std::mem::replace(value, Value::Null))
}
