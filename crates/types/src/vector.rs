//! Column vectors: the values of one column for many stored rows as numbers or byte strings, without a
//! [`Value`] for each.
//!
//! # Concepts
//! A [`Vector`] is a vector of the values of one column, or of one expression, for some rows. All elements
//! are numbers of 64 bits, or all are texts. [`VectorType`] defines the meaning of the numbers. A
//! [`VectorReader`] fills vectors from the bytes of *plain* rows ([`RowLayout::is_plain`]): rows that have
//! all columns of the table, so that each fixed-length column has the same offset in all of them.
//!
//! Columns of other types (doubles, ENUM, BIGINT UNSIGNED, decimals of more than 18 digits) cannot be
//! vectorized.

use std::ops::Range;

use crate::decimal::Decimal;
use crate::row::{HEADER, RowError, RowLayout, Slot};
use crate::scalar::little_endian;
use crate::temporal::{Date, DateTime, read_datetime};
use crate::{Collation, ColumnType, Str, TypeKind, Value};

/// Number of bits below the date in the number of a datetime: enough for the microseconds of a day.
const DAY_BITS: u32 = 37;

/// Maximum precision of a decimal whose mantissa always fits 64 bits.
const DECIMAL_DIGITS: u32 = 18;

/// Element type of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorType {
    /// Signed integers.
    Int,
    /// Unsigned integers below 2^63.
    UInt,
    /// Mantissas of decimals with this scale.
    Decimal { scale: u8 },
    /// Numbers that sort as the dates do ([`datetime_key`] of midnight).
    Date,
    /// Numbers that sort as the datetimes do ([`datetime_key`]). A date is its midnight.
    DateTime,
    /// Texts or binary strings.
    Text(Collation),
}

/// The index that stands for no element: [`Vector::extend_from`] appends NULL for it.
pub const NO_ELEMENT: u32 = u32::MAX;

/// A vector: the values of a column for some rows.
#[derive(Clone, Debug, Default)]
pub struct Vector {
    /// Elements of a vector of numbers; 0 where NULL.
    pub numbers: Vec<i64>,
    /// End of each text in `bytes`. `bytes` is empty if only lengths were read.
    ends: Vec<u32>,
    bytes: Vec<u8>,
    /// Marks the NULL elements; empty if no element is NULL.
    pub nulls: Vec<bool>,
}

impl Vector {
    /// Removes the elements and keeps the capacity.
    pub fn clear(&mut self) {
        self.numbers.clear();
        self.ends.clear();
        self.bytes.clear();
        self.nulls.clear();
    }

    /// Returns the n-th text.
    #[inline]
    pub fn text(&self, n: usize) -> &[u8] {
        let start = if n == 0 { 0 } else { self.ends[n - 1] as usize };
        &self.bytes[start..self.ends[n] as usize]
    }

    /// Returns the length of each text in bytes, 0 for NULL.
    pub fn text_lens(&self) -> impl Iterator<Item = usize> {
        let starts = std::iter::once(&0).chain(&self.ends);
        self.ends.iter().zip(starts).map(|(end, start)| (end - start) as usize)
    }

    /// Returns whether the n-th element is NULL.
    #[inline]
    pub fn is_null(&self, n: usize) -> bool {
        !self.nulls.is_empty() && self.nulls[n]
    }

    #[inline]
    pub(crate) fn push_number(&mut self, number: i64) {
        self.numbers.push(number);
        if !self.nulls.is_empty() {
            self.nulls.push(false);
        }
    }

    #[inline]
    fn push_text(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len() as u32);
        if !self.nulls.is_empty() {
            self.nulls.push(false);
        }
    }

    /// Appends the length of a text whose bytes are never read.
    #[inline]
    fn push_text_len(&mut self, length: usize) {
        self.ends.push(self.ends.last().copied().unwrap_or(0) + length as u32);
        if !self.nulls.is_empty() {
            self.nulls.push(false);
        }
    }

    pub(crate) fn push_null(&mut self, is_text: bool) {
        let before = if is_text { self.ends.len() } else { self.numbers.len() };
        self.nulls.resize(before, false);
        self.nulls.push(true);
        match is_text {
            true => self.ends.push(self.ends.last().copied().unwrap_or(0)),
            false => self.numbers.push(0),
        }
    }

    /// Appends the elements of another vector of the same type at the given indexes.
    pub fn extend_from(&mut self, other: &Vector, elements: &[u32], ty: VectorType) {
        let is_text = ty.is_text();
        let has_nulls = !self.nulls.is_empty() || !other.nulls.is_empty() || elements.contains(&NO_ELEMENT);
        match (is_text, has_nulls) {
            (false, false) => self.numbers.extend(elements.iter().map(|n| other.numbers[*n as usize])),
            _ => {
                for n in elements {
                    match *n as usize {
                        _ if *n == NO_ELEMENT => self.push_null(is_text),
                        n if other.is_null(n) => self.push_null(is_text),
                        n if is_text => self.push_text(other.text(n)),
                        n => self.push_number(other.numbers[n]),
                    }
                }
            }
        }
    }

    /// Appends all elements of another vector of the same type.
    pub fn append(&mut self, other: &Vector) {
        if !self.nulls.is_empty() || !other.nulls.is_empty() {
            let of_vector = |vector: &Vector| vector.numbers.len().max(vector.ends.len());
            self.nulls.resize(of_vector(self), false);
            self.nulls.extend_from_slice(&other.nulls);
            self.nulls.resize(of_vector(self) + of_vector(other), false);
        }
        let before = self.bytes.len() as u32;
        self.numbers.extend_from_slice(&other.numbers);
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| before + end));
    }

    /// Returns the bytes that the elements take.
    pub fn size_bytes(&self) -> usize {
        8 * self.numbers.len() + 4 * self.ends.len() + self.bytes.len() + self.nulls.len()
    }

    /// Appends a value of the vector's type. Returns false if the value is of another type.
    pub fn push_value(&mut self, value: &Value, ty: VectorType) -> bool {
        match (value, ty) {
            (Value::Null, VectorType::Text(_)) => self.push_null(true),
            (Value::Null, _) => self.push_null(false),
            (Value::Str(text), VectorType::Text(_)) => self.push_text(&text.bytes),
            _ => match ty.number_of(value) {
                Some(number) => self.push_number(number),
                None => return false,
            },
        }
        true
    }

    /// Returns the n-th element as a value.
    pub fn value(&self, n: usize, ty: VectorType) -> Value {
        match ty {
            _ if self.is_null(n) => Value::Null,
            VectorType::Text(collation) => Value::Str(Str { bytes: self.text(n).to_vec(), collation }),
            ty => ty.value_of(self.numbers[n]),
        }
    }
}

impl VectorType {
    /// Returns the vector type for a column type, or `None` if such a column cannot be vectorized.
    pub fn of(ty: &ColumnType) -> Option<VectorType> {
        Some(match ty.kind {
            _ if ty.stored_len().is_none() => VectorType::Text(ty.collation),
            kind if kind.is_integer() && !ty.unsigned => VectorType::Int,
            kind if kind.is_integer() && ty.kind != TypeKind::BigInt => VectorType::UInt,
            TypeKind::Decimal if ty.length <= DECIMAL_DIGITS && u32::from(ty.decimals) <= ty.length => {
                VectorType::Decimal { scale: ty.decimals }
            }
            TypeKind::Date => VectorType::Date,
            TypeKind::DateTime => VectorType::DateTime,
            _ => return None,
        })
    }

    /// Returns the number that stands for a value of this type, or `None` if the value has none.
    pub fn number_of(self, value: &Value) -> Option<i64> {
        match (self, value) {
            (VectorType::Int, Value::Int(v)) => Some(*v),
            (VectorType::UInt, Value::UInt(v)) => i64::try_from(*v).ok(),
            (VectorType::Decimal { scale }, Value::Decimal(v)) => v.mantissa_at(scale),
            (VectorType::Date, Value::Date(v)) => Some(datetime_key(&v.at_midnight())),
            (VectorType::DateTime, Value::DateTime(v)) => Some(datetime_key(v)),
            _ => None,
        }
    }

    /// Returns the value that a number stands for.
    pub fn value_of(self, number: i64) -> Value {
        match self {
            VectorType::Int => Value::Int(number),
            VectorType::UInt => Value::UInt(number as u64),
            VectorType::Decimal { scale } => Value::Decimal(Decimal::from_i128(number.into(), scale)),
            VectorType::Date => Value::Date(date_of(number)),
            VectorType::DateTime => {
                let micros = number & ((1 << DAY_BITS) - 1);
                Value::DateTime(DateTime::from_micros_of_day(date_of(number), micros))
            }
            VectorType::Text(_) => Value::Null,
        }
    }

    /// Returns whether the elements are texts.
    pub fn is_text(self) -> bool {
        matches!(self, VectorType::Text(_))
    }
}

/// Returns the number that stands for a datetime in a vector.
pub fn datetime_key(value: &DateTime) -> i64 {
    i64::from(value.date.to_packed()) << DAY_BITS | value.micros_of_day()
}

/// Returns the year of a date or datetime from its number in a vector.
#[inline]
pub fn year_of(number: i64) -> i64 {
    number >> (DAY_BITS + 9)
}

/// Returns whether the month and the day of a date or datetime are not zero.
#[inline]
pub fn is_whole_date(number: i64) -> bool {
    let packed = number >> DAY_BITS;
    packed >> 5 & 15 != 0 && packed & 31 != 0
}

fn date_of(number: i64) -> Date {
    let packed = (number >> DAY_BITS) as u32;
    Date::new((packed >> 9) as u16, (packed >> 5 & 15) as u8, (packed & 31) as u8)
}

/// A reader of one column from plain rows into a vector.
#[derive(Clone, Debug)]
pub struct VectorReader {
    column: usize,
    /// The column's ordinal in storage order.
    stored: usize,
    ty: VectorType,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Fixed {
        at: usize,
        len: usize,
        form: Form,
    },
    /// Offset of the ends, the column's index among them, and the offset of the texts.
    Text {
        ends: usize,
        index: usize,
        texts: usize,
    },
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Signed,
    Unsigned,
    Decimal { precision: u8, scale: u8 },
    Date,
    DateTime { decimals: u8 },
}

impl VectorReader {
    /// Returns the type of the vectors that it fills.
    pub fn ty(&self) -> VectorType {
        self.ty
    }

    /// Returns the column's ordinal.
    pub fn column(&self) -> usize {
        self.column
    }

    /// Appends the column's element of each row in `rows`, all of which must be plain.
    pub fn read<'r>(
        &self,
        rows: impl Iterator<Item = &'r [u8]>,
        vector: &mut Vector,
    ) -> Result<(), RowError> {
        match self.place {
            Place::Text { texts, .. } => {
                for row in rows {
                    let Some(range) = self.text_range(row) else {
                        vector.push_null(true);
                        continue;
                    };
                    let text = row.get(texts + range.start..texts + range.end).ok_or(RowError::Corrupt)?;
                    self.read_text(text, vector)?;
                }
            }
            // The common forms have specialized loops.
            Place::Fixed { at, len: 4, form: Form::Signed } => {
                self.read_fixed(rows, vector, |row| {
                    let bytes = row.get(at..at + 4)?.first_chunk()?;
                    Some(i32::from_le_bytes(*bytes).into())
                })?;
            }
            Place::Fixed { at, len: 3, form: Form::Date } => {
                self.read_fixed(rows, vector, |row| {
                    let [a, b, c] = *row.get(at..at + 3)?.first_chunk()?;
                    let packed = u32::from_le_bytes([a, b, c, 0]);
                    Date::from_packed(packed)?;
                    Some(i64::from(packed) << DAY_BITS)
                })?;
            }
            Place::Fixed { at, len, form: Form::Decimal { precision, scale } } => {
                self.read_fixed(rows, vector, |row| {
                    Decimal::read_packed_mantissa(precision, scale, row.get(at..at + len)?)
                })?;
            }
            Place::Fixed { at, len, form } => {
                self.read_fixed(rows, vector, |row| number_of(row.get(at..at + len)?, form))?;
            }
        }
        Ok(())
    }

    #[inline]
    fn read_fixed<'r>(
        &self,
        rows: impl Iterator<Item = &'r [u8]>,
        vector: &mut Vector,
        number: impl Fn(&[u8]) -> Option<i64>,
    ) -> Result<(), RowError> {
        let (byte, bit) = (HEADER + self.stored / 8, self.stored % 8);
        for row in rows {
            if row[byte] >> bit & 1 == 1 {
                vector.push_null(false);
            } else {
                vector.push_number(number(row).ok_or(RowError::Corrupt)?);
            }
        }
        Ok(())
    }

    /// Appends only the lengths of the column's texts. For other columns it is [`VectorReader::read`].
    pub fn read_lens<'r>(
        &self,
        rows: impl Iterator<Item = &'r [u8]>,
        vector: &mut Vector,
    ) -> Result<(), RowError> {
        if !self.ty.is_text() {
            return self.read(rows, vector);
        }
        for row in rows {
            match self.text_range(row) {
                Some(range) => {
                    vector.push_text_len(range.end.checked_sub(range.start).ok_or(RowError::Corrupt)?)
                }
                None => vector.push_null(true),
            }
        }
        Ok(())
    }

    /// Returns the range of the column's text within the row's texts, or `None` if it is NULL.
    #[inline]
    fn text_range(&self, row: &[u8]) -> Option<Range<usize>> {
        let Place::Text { ends, index, .. } = self.place else { return None };
        if row[HEADER + self.stored / 8] >> (self.stored % 8) & 1 == 1 {
            return None;
        }
        let end = |n: usize| usize::from(u16::from_le_bytes([row[ends + 2 * n], row[ends + 2 * n + 1]]));
        Some(if index == 0 { 0 } else { end(index - 1) }..end(index))
    }

    #[inline]
    fn read_text(&self, text: &[u8], vector: &mut Vector) -> Result<(), RowError> {
        let is_text = self.ty != VectorType::Text(Collation::BINARY);
        if is_text && !text.is_ascii() && !crate::is_text(text) {
            return Err(RowError::Corrupt);
        }
        vector.push_text(text);
        Ok(())
    }
}

#[inline]
fn number_of(bytes: &[u8], form: Form) -> Option<i64> {
    Some(match form {
        Form::Signed => {
            let shift = 64 - 8 * bytes.len();
            (little_endian(bytes) << shift) as i64 >> shift
        }
        Form::Unsigned => little_endian(bytes) as i64,
        Form::Decimal { precision, scale } => Decimal::read_packed_mantissa(precision, scale, bytes)?,
        Form::Date => {
            let packed = little_endian(bytes) as u32;
            Date::from_packed(packed)?;
            i64::from(packed) << DAY_BITS
        }
        Form::DateTime { decimals } => datetime_key(&read_datetime(bytes, decimals)?),
    })
}

impl RowLayout {
    /// Returns whether the bytes are a plain row: a row of all columns in the short form, as
    /// [`VectorReader`]s require.
    #[inline]
    pub fn is_plain(&self, row: &[u8]) -> bool {
        let (fixed, strings) = self.extent();
        let count = self.stored_len();
        let ends = HEADER + count.div_ceil(8) + fixed;
        let texts = ends + 2 * strings;
        if row.len() < texts || row[0] != crate::row::VERSION || row[1..3] != (count as u16).to_le_bytes() {
            return false;
        }
        match strings {
            0 => row.len() == texts,
            _ => usize::from(u16::from_le_bytes([row[texts - 2], row[texts - 1]])) == row.len() - texts,
        }
    }

    /// Returns the reader of a column from plain rows, or `None` if the column cannot be vectorized.
    pub fn vector(&self, column: usize) -> Option<VectorReader> {
        let (ty, stored, slot) = self.column(column)?;
        let (fixed, strings) = self.extent();
        let fixed_at = HEADER + self.stored_len().div_ceil(8);
        let (offset, len) = match slot {
            Slot::Variable { index } => {
                let ends = fixed_at + fixed;
                let place = Place::Text { ends, index, texts: ends + 2 * strings };
                return Some(VectorReader { column, stored, ty: VectorType::Text(ty.collation), place });
            }
            Slot::Fixed { offset, len } => (offset, len),
        };
        let vector = VectorType::of(ty)?;
        let form = match vector {
            VectorType::Int => Form::Signed,
            VectorType::UInt => Form::Unsigned,
            VectorType::Decimal { scale } => Form::Decimal { precision: ty.length as u8, scale },
            VectorType::Date => Form::Date,
            VectorType::DateTime => Form::DateTime { decimals: ty.decimals },
            VectorType::Text(_) => return None,
        };
        Some(VectorReader {
            column,
            stored,
            ty: vector,
            place: Place::Fixed { at: fixed_at + offset, len, form },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> RowLayout {
        let text = Collation::UTF8MB4_GENERAL_CI;
        let unsigned = |kind| ColumnType::int(kind, None, true);
        let types = [
            ColumnType::int(TypeKind::MediumInt, None, false),
            ColumnType::int(TypeKind::Int, None, false),
            unsigned(TypeKind::SmallInt),
            ColumnType::decimal(15, 2),
            ColumnType::temporal(TypeKind::Date, 0),
            ColumnType::temporal(TypeKind::DateTime, 3),
            ColumnType::string(TypeKind::VarChar, 20, text),
            ColumnType::string(TypeKind::Char, 5, text),
        ];
        RowLayout::new(types.into_iter().map(|ty| (ty, Value::Null)))
    }

    fn rows() -> Vec<Vec<Value>> {
        let decimal = |v| Value::Decimal(Decimal::from_i128(v, 2));
        let date = Date::new(1998, 9, 2);
        let datetime = DateTime { date, hour: 23, minute: 59, second: 58, micros: 123_000 };
        vec![
            vec![
                Value::Int(-5),
                Value::Int(i64::from(i32::MIN)),
                Value::UInt(65_535),
                decimal(-12_345),
                Value::Date(date),
                Value::DateTime(datetime),
                Value::text("größer"),
                Value::text(""),
            ],
            vec![Value::Null; 8],
            vec![
                Value::Int(7),
                Value::Int(8),
                Value::UInt(0),
                decimal(999_999_999_999_999),
                Value::Date(Date::ZERO),
                Value::DateTime(DateTime::default()),
                Value::text(""),
                Value::text("xy"),
            ],
        ]
    }

    #[test]
    fn vectors_hold_what_rows_decode_to() {
        let (layout, rows) = (layout(), rows());
        let stored: Vec<Vec<u8>> = rows
            .iter()
            .map(|row| {
                let mut bytes = Vec::new();
                layout.encode(row, &mut bytes).expect("fits");
                assert!(layout.is_plain(&bytes));
                bytes
            })
            .collect();
        for column in 0..layout.len() {
            let reader = layout.vector(column).expect("a lane");
            let mut vector = Vector::default();
            reader.read(stored.iter().map(Vec::as_slice), &mut vector).expect("good");
            let mut lens = Vector::default();
            reader.read_lens(stored.iter().map(Vec::as_slice), &mut lens).expect("good");
            assert!(lens.text_lens().eq(vector.text_lens()) && lens.nulls == vector.nulls);
            let mut again = Vector::default();
            for (n, row) in rows.iter().enumerate() {
                assert_eq!(vector.value(n, reader.ty()), row[column], "column {column} of row {n}");
                assert!(again.push_value(&row[column], reader.ty()));
                assert_eq!(again.value(n, reader.ty()), row[column]);
            }
        }
    }

    #[test]
    fn other_rows_are_not_plain() {
        let mut row = Vec::new();
        layout().encode(&rows()[0], &mut row).expect("fits");
        for end in 0..row.len() {
            assert!(!layout().is_plain(&row[..end]), "{end}");
        }
        row.push(0);
        assert!(!layout().is_plain(&row));
        let shorter = RowLayout::new([(ColumnType::int(TypeKind::Int, None, false), Value::Null)]);
        let mut old = Vec::new();
        shorter.encode(&[Value::Int(1)], &mut old).expect("fits");
        assert!(!layout().is_plain(&old));
    }

    #[test]
    fn moments_are_in_order() {
        let at = |day, micros| DateTime::from_micros_of_day(Date::new(2024, 2, day), micros);
        let times = [at(1, 0), at(1, 1), at(1, 86_399_999_999), at(2, 0), at(29, 5)];
        assert!(times.windows(2).all(|pair| datetime_key(&pair[0]) < datetime_key(&pair[1])));
    }
}
