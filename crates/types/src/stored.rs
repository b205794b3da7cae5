//! Access to columns of encoded rows, one row at a time, without a [`Value`] for each.
//!
//! # Concepts
//! [`StoredColumns`] knows the positions of some of a table's columns in *plain* rows
//! ([`RowLayout::is_plain`]). All that is common to these rows is computed once. Rows written before a column
//! was added, or longer than 64 KiB, are not plain: their columns are decoded to values.
//!
//! Texts are returned as the row stores them, without a check that they are valid UTF-8: pages have
//! checksums, and the code that prints, converts or compares these texts accepts any bytes.

use std::cmp::Ordering;

use crate::row::{HEADER, RowError, RowLayout, Slot, VERSION};
use crate::scalar::{decode_exact, little_endian};
use crate::{Collation, Fronts, SqlError, SqlResult, Str, Value};

/// Contents of a column in a plain row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'r> {
    Null,
    /// A value of a signed integer column.
    Int(i64),
    /// A value of an unsigned integer column.
    UInt(u64),
    /// A value of a string column.
    Text(&'r [u8]),
    /// The encoded value of a column of any other type.
    Other(&'r [u8]),
}

/// A selection of a table's columns, to be read from its rows.
pub struct StoredColumns<'t> {
    layout: &'t RowLayout,
    places: Vec<Place>,
    /// First three bytes of every plain row, in the lower three bytes.
    head: u32,
    /// Offset of the variable part.
    texts: usize,
    has_texts: bool,
    /// Makes the client's error for a row that does not decode.
    refuse: &'t dyn Fn(RowError) -> SqlError,
}

/// Position of a column in plain rows.
struct Place {
    column: usize,
    /// Byte offset of the column's NULL bit.
    null_at: usize,
    null_bit: u8,
    form: Form,
}

#[derive(Clone, Copy)]
enum Form {
    /// Offset of the end of the previous text, if there is one, and of the end of this one.
    Text {
        start_at: Option<usize>,
        end_at: usize,
    },
    Int32 {
        at: usize,
    },
    Signed {
        at: usize,
        len: usize,
    },
    Unsigned {
        at: usize,
        len: usize,
    },
    Other {
        at: usize,
        len: usize,
    },
}

impl<'t> StoredColumns<'t> {
    /// Selects columns of rows of the layout. `refuse` makes the error for a row that does not decode.
    pub fn new(
        layout: &'t RowLayout,
        columns: impl IntoIterator<Item = usize>,
        refuse: &'t dyn Fn(RowError) -> SqlError,
    ) -> StoredColumns<'t> {
        let (fixed, strings) = layout.extent();
        let count = layout.stored_len();
        let fixed_at = HEADER + count.div_ceil(8);
        let ends_at = fixed_at + fixed;
        let place = |column: usize| {
            let (ty, stored, slot) = layout.column(column).expect("a column of the table");
            let form = match slot {
                Slot::Variable { index } => Form::Text {
                    start_at: index.checked_sub(1).map(|before| ends_at + 2 * before),
                    end_at: ends_at + 2 * index,
                },
                Slot::Fixed { offset, len } => {
                    let at = fixed_at + offset;
                    match ty.kind.is_integer() {
                        true if ty.unsigned => Form::Unsigned { at, len },
                        true if len == 4 => Form::Int32 { at },
                        true => Form::Signed { at, len },
                        false => Form::Other { at, len },
                    }
                }
            };
            Place { column, null_at: HEADER + stored / 8, null_bit: 1 << (stored % 8), form }
        };
        let [low, high] = (count as u16).to_le_bytes();
        StoredColumns {
            layout,
            places: columns.into_iter().map(place).collect(),
            head: u32::from_le_bytes([VERSION, low, high, 0]),
            texts: ends_at + 2 * strings,
            has_texts: strings > 0,
            refuse,
        }
    }

    /// Returns the number of columns.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns whether the row is plain: all its columns are at the positions computed in advance.
    #[inline]
    pub fn is_plain(&self, row: &[u8]) -> bool {
        let Some(head) = row.first_chunk().filter(|_| row.len() >= self.texts) else { return false };
        if u32::from_le_bytes(*head) & 0xff_ffff != self.head {
            return false;
        }
        // The last text ends at the end of the row.
        let end = if self.has_texts { end_at(row, self.texts - 2) } else { Some(0) };
        end == Some(row.len() - self.texts)
    }

    /// Returns the n-th column of a plain row, or `None` if the row does not decode.
    #[inline]
    pub fn field<'r>(&self, n: usize, row: &'r [u8]) -> Option<Field<'r>> {
        self.places[n].read(row, self.texts)
    }

    /// Returns all selected columns of a plain row.
    #[inline]
    pub fn fields<'r>(&self, row: &'r [u8]) -> impl Iterator<Item = Option<Field<'r>>> {
        self.places.iter().map(|place| place.read(row, self.texts))
    }

    /// Returns the n-th column of any row.
    pub fn value(&self, n: usize, row: &[u8]) -> SqlResult<Value> {
        self.layout.decode_one(row, self.places[n].column).map_err(self.refuse)
    }

    /// Replaces `values` by the columns of any row.
    pub fn values(&self, row: &[u8], values: &mut Vec<Value>) -> SqlResult<()> {
        values.clear();
        (0..self.len()).try_for_each(|n| {
            values.push(self.value(n, row)?);
            Ok(())
        })
    }

    /// Returns the value of a field of the n-th column.
    pub fn value_of(&self, n: usize, field: Field<'_>) -> SqlResult<Value> {
        let column = self.places[n].column;
        let (ty, ..) = self.layout.column(column).expect("a column of the table");
        Ok(match field {
            Field::Null => Value::Null,
            Field::Int(v) => Value::Int(v),
            Field::UInt(v) => Value::UInt(v),
            Field::Text(text) => Value::Str(Str { bytes: text.to_vec(), collation: ty.collation }),
            Field::Other(bytes) => decode_exact(ty, bytes).ok_or_else(|| self.corrupt())?,
        })
    }

    /// Returns the error for a row that does not decode.
    #[cold]
    pub fn corrupt(&self) -> SqlError {
        (self.refuse)(RowError::Corrupt)
    }

    /// Returns a number that is less than or equal to the number of any row that sorts after this one by the
    /// n-th column.
    #[inline]
    pub fn front(&self, n: usize, row: &[u8], fronts: Fronts) -> SqlResult<u64> {
        match self.is_plain(row) {
            true => Ok(self.field(n, row).ok_or_else(|| self.corrupt())?.front(fronts)),
            false => self.front_of_value(n, row, fronts),
        }
    }

    #[cold]
    fn front_of_value(&self, n: usize, row: &[u8], fronts: Fronts) -> SqlResult<u64> {
        Ok(match self.value(n, row)? {
            Value::Int(v) => Field::Int(v).front(fronts),
            // A YEAR is not stored as an integer.
            Value::UInt(v) if self.is_integer(n) => Field::UInt(v).front(fronts),
            Value::Str(text) => Field::Text(&text.bytes).front(fronts),
            _ => 0,
        })
    }

    fn is_integer(&self, n: usize) -> bool {
        matches!(self.places[n].form, Form::Int32 { .. } | Form::Signed { .. } | Form::Unsigned { .. })
    }

    /// Compares the n-th column of two rows as ORDER BY does, NULL first.
    pub fn compare(&self, n: usize, a: &[u8], b: &[u8], collation: Collation) -> SqlResult<Ordering> {
        if self.is_plain(a) && self.is_plain(b) {
            let (x, y) = (self.field(n, a), self.field(n, b));
            match (x.ok_or_else(|| self.corrupt())?, y.ok_or_else(|| self.corrupt())?) {
                (Field::Text(x), Field::Text(y)) => return Ok(collation.compare(x, y)),
                (Field::Int(x), Field::Int(y)) => return Ok(x.cmp(&y)),
                (Field::UInt(x), Field::UInt(y)) => return Ok(x.cmp(&y)),
                _ => {}
            }
        }
        Ok(match (self.plainest(n, a)?, self.plainest(n, b)?) {
            (Value::Str(x), Value::Str(y)) => collation.compare(&x.bytes, &y.bytes),
            (x, y) => x.order(&y),
        })
    }

    /// Returns the n-th column of any row. A plain row's text is not checked for UTF-8.
    fn plainest(&self, n: usize, row: &[u8]) -> SqlResult<Value> {
        match self.is_plain(row) {
            true => self.value_of(n, self.field(n, row).ok_or_else(|| self.corrupt())?),
            false => self.value(n, row),
        }
    }
}

impl Place {
    #[inline]
    fn read<'r>(&self, row: &'r [u8], texts: usize) -> Option<Field<'r>> {
        if row.get(self.null_at)? & self.null_bit != 0 {
            return Some(Field::Null);
        }
        Some(match self.form {
            Form::Text { start_at, end_at: at } => {
                let start = match start_at {
                    Some(at) => end_at(row, at)?,
                    None => 0,
                };
                Field::Text(row.get(texts + start..texts + end_at(row, at)?)?)
            }
            Form::Int32 { at } => Field::Int(i32::from_le_bytes(*row.get(at..)?.first_chunk()?).into()),
            Form::Signed { at, len } => {
                let shift = 64 - 8 * len;
                Field::Int((little_endian(row.get(at..at + len)?) << shift) as i64 >> shift)
            }
            Form::Unsigned { at, len } => Field::UInt(little_endian(row.get(at..at + len)?)),
            Form::Other { at, len } => Field::Other(row.get(at..at + len)?),
        })
    }
}

/// Reads the end of a text, stored at `at`.
#[inline]
fn end_at(row: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(*row.get(at..)?.first_chunk()?)))
}

impl Field<'_> {
    /// Returns a number that is less than or equal to the number of any field that sorts after this one in
    /// the column. NULL sorts first.
    #[inline]
    fn front(self, fronts: Fronts) -> u64 {
        // Halving the number leaves a value for NULL below all numbers.
        let of_number = |bits: u64| (bits >> 1) + 1;
        match self {
            Field::Null | Field::Other(_) => 0,
            Field::Int(v) => of_number(v as u64 ^ 1 << 63),
            Field::UInt(v) => of_number(v),
            Field::Text(text) => fronts.front(text),
        }
    }
}
