//! Columns of stored rows one row after the other, without a [`Value`] for each.
//!
//! # Concepts
//! [`StoredColumns`] knows where some columns of a table lie in *plain* rows ([`RowLayout::is_plain`]): what
//! holds for all rows is computed once. Of other rows, which were written before a column was added or are
//! longer than 64 KiB, the columns are decoded to values.
//!
//! Texts are given as they lie in the row. Nobody asks whether they are UTF-8: pages have checksums, and
//! whoever prints, converts or compares such texts takes any bytes.

use std::cmp::Ordering;

use crate::row::{HEADER, RowError, RowLayout, Slot, VERSION};
use crate::scalar::{decode_exact, little_endian};
use crate::{Collation, Fronts, SqlError, SqlResult, Str, Value};

/// What a plain row holds in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'r> {
    Null,
    /// Of a signed integer column.
    Int(i64),
    /// Of an unsigned integer column.
    UInt(u64),
    /// Of a string column.
    Text(&'r [u8]),
    /// The bytes that stand for the value of any other column.
    Other(&'r [u8]),
}

/// Some columns of a table, as its rows hold them.
pub struct StoredColumns<'t> {
    layout: &'t RowLayout,
    places: Vec<Place>,
    /// What plain rows begin with, in the lower three bytes.
    head: u32,
    /// Where their texts begin.
    texts: usize,
    has_texts: bool,
    /// What the client is told of a row that does not decode.
    refuse: &'t dyn Fn(RowError) -> SqlError,
}

/// Where a column lies in plain rows.
struct Place {
    column: usize,
    /// Where the bit lies that says NULL.
    null_at: usize,
    null_bit: u8,
    form: Form,
}

#[derive(Clone, Copy)]
enum Form {
    /// Where the end of the text before lies, if there is one, and where its own.
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
    /// These columns of rows of the layout. `refuse` makes the error of a row that does not decode.
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

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether the row's columns lie where those of most rows do.
    #[inline]
    pub fn is_plain(&self, row: &[u8]) -> bool {
        let Some(head) = row.first_chunk().filter(|_| row.len() >= self.texts) else { return false };
        if u32::from_le_bytes(*head) & 0xff_ffff != self.head {
            return false;
        }
        // The end of the last text is the row's.
        let end = if self.has_texts { end_at(row, self.texts - 2) } else { Some(0) };
        end == Some(row.len() - self.texts)
    }

    /// The n-th of the columns of a plain row; None: the row does not decode.
    #[inline]
    pub fn field<'r>(&self, n: usize, row: &'r [u8]) -> Option<Field<'r>> {
        self.places[n].read(row, self.texts)
    }

    /// All of the columns of a plain row.
    #[inline]
    pub fn fields<'r>(&self, row: &'r [u8]) -> impl Iterator<Item = Option<Field<'r>>> {
        self.places.iter().map(|place| place.read(row, self.texts))
    }

    /// The n-th of the columns of any row.
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

    /// The value of a field of the n-th column.
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

    /// The error of a row that does not decode.
    #[cold]
    pub fn corrupt(&self) -> SqlError {
        (self.refuse)(RowError::Corrupt)
    }

    /// A number that is no larger than that of a row that the n-th column sorts behind this one.
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
            // A YEAR is not an integer in the row.
            Value::UInt(v) if self.is_integer(n) => Field::UInt(v).front(fronts),
            Value::Str(text) => Field::Text(&text.bytes).front(fronts),
            _ => 0,
        })
    }

    fn is_integer(&self, n: usize) -> bool {
        matches!(self.places[n].form, Form::Int32 { .. } | Form::Signed { .. } | Form::Unsigned { .. })
    }

    /// Compares the n-th column of two rows as ORDER BY does; NULL comes first.
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

    /// The value of a row that is plain or not; of a plain one what its field says, whatever its bytes are.
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

/// The end of a text.
#[inline]
fn end_at(row: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(*row.get(at..)?.first_chunk()?)))
}

impl Field<'_> {
    /// A number that is no larger than that of a field behind this one in the order of their column; NULL
    /// comes first.
    #[inline]
    fn front(self, fronts: Fronts) -> u64 {
        // Half of a number leaves room for NULL below all of them.
        let of_number = |bits: u64| (bits >> 1) + 1;
        match self {
            Field::Null | Field::Other(_) => 0,
            Field::Int(v) => of_number(v as u64 ^ 1 << 63),
            Field::UInt(v) => of_number(v),
            Field::Text(text) => fronts.front(text),
        }
    }
}
