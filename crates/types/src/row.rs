//! The row format of the engines.
//!
//! ```text
//! offset
//! 0      version: 1; bit 0x80: the ends are 4 bytes long, not 2
//! 1      n: number of columns, u16
//! 3      null bitmap, ceil(n / 8) bytes: bit i % 8 of byte i / 8 is set when column i is NULL
//! ..     fixed part: the fixed-length columns one after the other (`scalar`); zeros where NULL
//! ..     ends: for each string column, the offset of its end in the variable part
//! ..     variable part: strings in UTF-8 for any character set (binary: bytes), CHAR without trailing spaces
//! ```
//!
//! All numbers are little-endian. Columns are in *storage order*, the order in which they were added to the
//! table. A new column is always appended, at whatever position the table shows it. A row written before ADD
//! COLUMN is therefore a row with fewer columns: its parts are prefixes of today's, and each missing column
//! has the value that was its default when it was added. A dropped column keeps its slot; later rows store
//! NULL there.
//!
//! Callers number columns in the order in which the table shows them. For most tables this is the storage
//! order; for the others, [`StoredPlace`]s map the storage order to the columns.

use std::sync::Arc;

use crate::scalar;
use crate::{ColumnType, Str, TypeKind, Value};

pub(crate) const VERSION: u8 = 1;
const WIDE: u8 = 0x80;
pub(crate) const HEADER: usize = 3;

/// The bytes are not a row of this layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowError {
    /// The row is truncated, its lengths contradict each other, or a field is out of range. An operator must
    /// investigate.
    Corrupt,
    /// Written by a newer server.
    Version(u8),
    /// The value is not of its column's class: it did not pass through [`ColumnType::store`].
    WrongClass {
        /// The column's ordinal.
        column: usize,
    },
    /// The row is longer than 4 GiB.
    TooLong,
}

impl std::fmt::Display for RowError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RowError::Corrupt => write!(f, "the row does not decode"),
            RowError::Version(v) => write!(f, "the row is of version {v}, written by a newer server"),
            RowError::WrongClass { column } => write!(f, "the value of column {column} is not of its type"),
            RowError::TooLong => write!(f, "the row is longer than 4 GiB"),
        }
    }
}

impl std::error::Error for RowError {}

/// The columns that the caller reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Columns {
    /// All columns.
    All,
    /// These ordinals. The other columns are NULL in the rows returned.
    Some(Arc<[usize]>),
}

/// Contents of a slot of the storage order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredPlace {
    /// A column of the table, by its ordinal.
    Column(usize),
    /// A dropped fixed-length column, with its length in bytes.
    DroppedFixed(usize),
    /// A dropped string column.
    DroppedText,
}

impl StoredPlace {
    /// Returns the slot that a column of this type leaves when it is dropped.
    pub fn dropped(ty: &ColumnType) -> StoredPlace {
        scalar::len(ty).map_or(StoredPlace::DroppedText, StoredPlace::DroppedFixed)
    }
}

/// Position of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    /// In the fixed part.
    Fixed { offset: usize, len: usize },
    /// Ordinal among the string columns.
    Variable { index: usize },
}

#[derive(Clone, Debug)]
struct Column {
    ty: ColumnType,
    /// Value in rows that lack the column.
    missing: Value,
    slot: Slot,
    /// Ordinal in storage order.
    stored: usize,
    /// Byte and bit in the null bitmap.
    null_at: usize,
    null_bit: u8,
}

/// Layout of a table's columns in a row.
#[derive(Clone, Debug)]
pub struct RowLayout {
    columns: Vec<Column>,
    /// For a row with the first n stored columns: bytes of the fixed part and number of string columns. Index
    /// 0 is a row without columns.
    extents: Vec<(usize, usize)>,
    /// Number of values that `encode` writes in the given order: the number of columns, or `usize::MAX`
    /// (which no row has) if columns were moved.
    straight: usize,
    moved: Option<Box<Moved>>,
}

/// Layout of a table with moved or dropped columns.
#[derive(Clone, Debug)]
struct Moved {
    /// Layout of all stored columns, in storage order.
    stored: RowLayout,
    /// For each stored column, the table's column, or `None` if it was dropped.
    columns: Vec<Option<usize>>,
}

/// The parts of an encoded row.
#[derive(Clone, Copy)]
struct Parts<'a> {
    /// Number of columns in the row.
    count: usize,
    nulls: &'a [u8],
    fixed: &'a [u8],
    ends: &'a [u8],
    end_len: usize,
    variable: &'a [u8],
}

impl Parts<'_> {
    fn is_null(&self, column: &Column) -> bool {
        self.nulls[column.null_at] & column.null_bit != 0
    }

    fn end(&self, index: usize) -> usize {
        let at = index * self.end_len;
        if self.end_len == 2 {
            return usize::from(u16::from_le_bytes([self.ends[at], self.ends[at + 1]]));
        }
        scalar::little_endian(&self.ends[at..at + 4]) as usize
    }
}

impl RowLayout {
    /// Returns the layout of columns in storage order, each with its value in rows written before it was
    /// added.
    pub fn new(columns: impl IntoIterator<Item = (ColumnType, Value)>) -> RowLayout {
        let mut layout = RowLayout { columns: Vec::new(), extents: vec![(0, 0)], straight: 0, moved: None };
        columns.into_iter().for_each(|(ty, missing)| layout.push(scalar::len(&ty), ty, missing));
        layout
    }

    /// Returns the layout of a table of which some columns were moved or dropped. `places` lists the stored
    /// columns in storage order. Each column has one place.
    pub fn with_places(
        columns: impl IntoIterator<Item = (ColumnType, Value)>,
        places: &[StoredPlace],
    ) -> RowLayout {
        let mut shown: Vec<Option<(ColumnType, Value)>> = columns.into_iter().map(Some).collect();
        let mut stored = RowLayout::new([]);
        let mut order = vec![0; shown.len()];
        let mut columns = Vec::with_capacity(places.len());
        for (n, place) in places.iter().enumerate() {
            // NULL is encoded and decoded without using the type.
            let nothing = || ColumnType::string(TypeKind::VarBinary, 0, crate::Collation::BINARY);
            columns.push(match *place {
                StoredPlace::Column(column) => {
                    let (ty, missing) = shown[column].take().expect("a column has one place");
                    stored.push(scalar::len(&ty), ty, missing);
                    order[column] = n;
                    Some(column)
                }
                StoredPlace::DroppedFixed(len) => {
                    stored.push(Some(len), nothing(), Value::Null);
                    None
                }
                StoredPlace::DroppedText => {
                    stored.push(None, nothing(), Value::Null);
                    None
                }
            });
        }
        assert!(shown.iter().all(Option::is_none), "every column has a place");
        RowLayout {
            columns: order.iter().map(|&n| stored.columns[n].clone()).collect(),
            extents: stored.extents.clone(),
            straight: usize::MAX,
            moved: Some(Box::new(Moved { stored, columns })),
        }
    }

    /// Appends a column in storage order: `len` is the length of a fixed-length column, `None` for a string.
    fn push(&mut self, len: Option<usize>, ty: ColumnType, missing: Value) {
        let (mut offset, mut index) = self.extent();
        let slot = match len {
            Some(len) => {
                offset += len;
                Slot::Fixed { offset: offset - len, len }
            }
            None => {
                index += 1;
                Slot::Variable { index: index - 1 }
            }
        };
        let stored = self.straight;
        let (null_at, null_bit) = (stored / 8, 1 << (stored % 8));
        self.columns.push(Column { ty, missing, slot, stored, null_at, null_bit });
        self.extents.push((offset, index));
        self.straight += 1;
    }

    /// Returns the number of columns.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Returns whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Appends an encoded row. `values` has one value per column, as returned by `store`.
    pub fn encode(&self, values: &[Value], out: &mut Vec<u8>) -> Result<(), RowError> {
        if values.len() != self.straight {
            return self.encode_moved(values, out);
        }
        let count = values.len();
        let strings =
            self.columns.iter().zip(values).filter(|(c, _)| matches!(c.slot, Slot::Variable { .. }));
        let variable: usize = strings.map(|(c, v)| stored_bytes(&c.ty, v).len()).sum();
        let wide = variable > usize::from(u16::MAX);
        if variable > u32::MAX as usize {
            return Err(RowError::TooLong);
        }
        let (fixed, string_count) = self.extents[count];
        let end_len = if wide { 4 } else { 2 };
        let nulls = count.div_ceil(8);
        let start = out.len();
        out.reserve(HEADER + nulls + fixed + string_count * end_len + variable);
        out.push(if wide { VERSION | WIDE } else { VERSION });
        out.extend_from_slice(&(count as u16).to_le_bytes());
        out.resize(start + HEADER + nulls, 0);
        for (n, (column, value)) in self.columns.iter().zip(values).enumerate() {
            let Slot::Fixed { len, .. } = column.slot else { continue };
            if value.is_null() {
                out.resize(out.len() + len, 0);
            } else {
                scalar::encode(&column.ty, value, out).map_err(|_| RowError::WrongClass { column: n })?;
            }
        }
        let mut end = 0;
        for (n, (column, value)) in self.columns.iter().zip(values).enumerate() {
            if value.is_null() {
                out[start + HEADER + column.null_at] |= column.null_bit;
            }
            if let Slot::Variable { .. } = column.slot {
                if !matches!(value, Value::Str(_) | Value::Null) {
                    return Err(RowError::WrongClass { column: n });
                }
                end += stored_bytes(&column.ty, value).len();
                out.extend_from_slice(&(end as u32).to_le_bytes()[..end_len]);
            }
        }
        for (column, value) in self.columns.iter().zip(values) {
            if let Slot::Variable { .. } = column.slot {
                out.extend_from_slice(stored_bytes(&column.ty, value));
            }
        }
        Ok(())
    }

    /// [`RowLayout::encode`] for values that are not in storage order.
    #[cold]
    fn encode_moved(&self, values: &[Value], out: &mut Vec<u8>) -> Result<(), RowError> {
        let count = self.columns.len();
        let Some(moved) = self.moved.as_ref().filter(|_| values.len() == count) else {
            return Err(RowError::WrongClass { column: values.len().min(count) });
        };
        let value = |column: &Option<usize>| column.map_or(&Value::Null, |column| &values[column]);
        let stored: Vec<Value> = moved.columns.iter().map(value).cloned().collect();
        moved.stored.encode(&stored, out).map_err(|error| match error {
            RowError::WrongClass { column } => {
                RowError::WrongClass { column: moved.columns[column].expect("NULL is of any class") }
            }
            error => error,
        })
    }

    /// Decodes all columns and appends them to `out`.
    pub fn decode(&self, row: &[u8], out: &mut Vec<Value>) -> Result<(), RowError> {
        let parts = self.parts(row)?;
        out.reserve(self.columns.len());
        (0..self.columns.len()).try_for_each(|n| {
            out.push(self.value(&parts, n)?);
            Ok(())
        })
    }

    /// Decodes the given columns into their positions in `out`. The others are unchanged.
    pub fn decode_some(&self, row: &[u8], columns: &[usize], out: &mut [Value]) -> Result<(), RowError> {
        let parts = self.parts(row)?;
        columns.iter().try_for_each(|&n| {
            out[n] = self.value(&parts, n)?;
            Ok(())
        })
    }

    /// Decodes one column.
    pub fn decode_one(&self, row: &[u8], column: usize) -> Result<Value, RowError> {
        self.value(&self.parts(row)?, column)
    }

    /// Decodes the given columns and appends them to `out` in the given order.
    pub fn decode_in_order(
        &self,
        row: &[u8],
        columns: &[usize],
        out: &mut Vec<Value>,
    ) -> Result<(), RowError> {
        let parts = self.parts(row)?;
        columns.iter().try_for_each(|&n| {
            out.push(self.value(&parts, n)?);
            Ok(())
        })
    }

    /// Returns the bytes of the fixed part and the number of string columns of a newly written row.
    pub(crate) fn extent(&self) -> (usize, usize) {
        self.extents[self.stored_len()]
    }

    /// Returns the number of columns in a newly written row, dropped ones included.
    pub(crate) fn stored_len(&self) -> usize {
        self.extents.len() - 1
    }

    /// Returns a column's type, its ordinal in storage order and its position.
    pub(crate) fn column(&self, n: usize) -> Option<(&ColumnType, usize, Slot)> {
        self.columns.get(n).map(|column| (&column.ty, column.stored, column.slot))
    }

    fn parts<'a>(&self, row: &'a [u8]) -> Result<Parts<'a>, RowError> {
        let (&[version, low, high], rest) = row.split_first_chunk::<HEADER>().ok_or(RowError::Corrupt)?;
        if version & !WIDE != VERSION {
            return Err(RowError::Version(version & !WIDE));
        }
        let count = usize::from(u16::from_le_bytes([low, high]));
        let &(fixed, strings) = self.extents.get(count).ok_or(RowError::Corrupt)?;
        let end_len = if version & WIDE != 0 { 4 } else { 2 };
        let (nulls, rest) = rest.split_at_checked(count.div_ceil(8)).ok_or(RowError::Corrupt)?;
        let (fixed, rest) = rest.split_at_checked(fixed).ok_or(RowError::Corrupt)?;
        let (ends, variable) = rest.split_at_checked(strings * end_len).ok_or(RowError::Corrupt)?;
        let parts = Parts { count, nulls, fixed, ends, end_len, variable };
        let last = if strings == 0 { 0 } else { parts.end(strings - 1) };
        if last == variable.len() { Ok(parts) } else { Err(RowError::Corrupt) }
    }

    fn value(&self, parts: &Parts<'_>, n: usize) -> Result<Value, RowError> {
        let column = self.columns.get(n).ok_or(RowError::Corrupt)?;
        if column.stored >= parts.count {
            return Ok(column.missing.clone());
        }
        if parts.is_null(column) {
            return Ok(Value::Null);
        }
        match column.slot {
            Slot::Fixed { offset, len } => {
                scalar::decode_exact(&column.ty, &parts.fixed[offset..offset + len]).ok_or(RowError::Corrupt)
            }
            Slot::Variable { index } => {
                let start = if index == 0 { 0 } else { parts.end(index - 1) };
                let bytes = parts.variable.get(start..parts.end(index)).ok_or(RowError::Corrupt)?;
                let collation = column.ty.collation;
                // Code that prints SQL text relies on valid UTF-8. Text from a corrupt page must not reach
                // it.
                if collation != crate::Collation::BINARY && !crate::is_text(bytes) {
                    return Err(RowError::Corrupt);
                }
                Ok(Value::Str(Str { bytes: bytes.to_vec(), collation }))
            }
        }
    }
}

/// Returns the stored bytes of a string value: empty for NULL (and for a wrong class, which the caller
/// rejects).
fn stored_bytes<'a>(ty: &ColumnType, value: &'a Value) -> &'a [u8] {
    let Value::Str(s) = value else { return &[] };
    if ty.kind == TypeKind::Char {
        let spaces = s.bytes.iter().rev().take_while(|&&b| b == b' ').count();
        return &s.bytes[..s.bytes.len() - spaces];
    }
    &s.bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Collation;

    fn layout() -> RowLayout {
        let text = Collation::UTF8MB4_GENERAL_CI;
        RowLayout::new([
            (ColumnType::int(TypeKind::Int, None, false), Value::Null),
            (ColumnType::string(TypeKind::VarChar, 20, text), Value::text("old")),
            (ColumnType::int(TypeKind::SmallInt, None, true), Value::UInt(7)),
            (ColumnType::string(TypeKind::Char, 5, text), Value::Null),
        ])
    }

    #[test]
    fn golden_bytes() {
        let mut row = Vec::new();
        let values = [Value::Int(-2), Value::text("abc"), Value::Null, Value::text("xy  ")];
        layout().encode(&values, &mut row).expect("fits");
        #[rustfmt::skip]
        assert_eq!(row, [
            1, 4, 0,                    // version, columns
            0b0100,                     // the third is NULL
            0xfe, 0xff, 0xff, 0xff,     // -2
            0, 0,                       // NULL
            3, 0, 5, 0,                 // ends
            b'a', b'b', b'c', b'x', b'y',
        ]);
        let mut back = Vec::new();
        layout().decode(&row, &mut back).expect("good");
        assert_eq!(back, [Value::Int(-2), Value::text("abc"), Value::Null, Value::text("xy")]);
        back.fill(Value::Null);
        layout().decode_some(&row, &[3, 0], &mut back).expect("good");
        assert_eq!(back, [Value::Int(-2), Value::Null, Value::Null, Value::text("xy")]);
    }

    #[test]
    fn old_rows_have_the_values_of_added_columns() {
        let old = RowLayout::new([(ColumnType::int(TypeKind::Int, None, false), Value::Null)]);
        let mut row = Vec::new();
        old.encode(&[Value::Int(5)], &mut row).expect("fits");
        let mut values = Vec::new();
        layout().decode(&row, &mut values).expect("good");
        assert_eq!(values, [Value::Int(5), Value::text("old"), Value::UInt(7), Value::Null]);
    }

    #[test]
    fn columns_are_stored_elsewhere_than_shown() {
        let text = Collation::UTF8MB4_GENERAL_CI;
        let int = ColumnType::int(TypeKind::Int, None, false);
        let old = RowLayout::new([
            (int.clone(), Value::Null),
            (ColumnType::string(TypeKind::VarChar, 20, text), Value::Null),
            (ColumnType::int(TypeKind::SmallInt, None, true), Value::Null),
        ]);
        let mut before = Vec::new();
        old.encode(&[Value::Int(5), Value::text("gone"), Value::UInt(9)], &mut before).expect("fits");
        // DROP of the second and the third column, ADD c FIRST, ADD d: the table shows c, a, d.
        let now = RowLayout::with_places(
            [
                (ColumnType::string(TypeKind::VarChar, 20, text), Value::text("new")),
                (int.clone(), Value::Null),
                (int, Value::Int(7)),
            ],
            &[
                StoredPlace::Column(1),
                StoredPlace::DroppedText,
                StoredPlace::DroppedFixed(2),
                StoredPlace::Column(0),
                StoredPlace::Column(2),
            ],
        );
        assert_eq!(now.len(), 3);
        let mut values = Vec::new();
        now.decode(&before, &mut values).expect("good");
        assert_eq!(values, [Value::text("new"), Value::Int(5), Value::Int(7)]);
        assert!(!now.is_plain(&before));
        let values = [Value::text("xy"), Value::Null, Value::Int(-2)];
        let mut row = Vec::new();
        now.encode(&values, &mut row).expect("fits");
        #[rustfmt::skip]
        assert_eq!(row, [
            1, 5, 0,                    // version, stored columns
            0b00111, // a and the dropped columns are NULL
            0, 0, 0, 0,                 // a
            0, 0,                       // dropped
            0xfe, 0xff, 0xff, 0xff,     // d
            0, 0, 2, 0,                 // ends: dropped, c
            b'x', b'y',
        ]);
        assert!(now.is_plain(&row));
        let mut back = Vec::new();
        now.decode(&row, &mut back).expect("good");
        assert_eq!(back, values);
        back.clear();
        now.decode_in_order(&row, &[2, 0], &mut back).expect("good");
        assert_eq!(back, [Value::Int(-2), Value::text("xy")]);
        let wrong = [Value::Null, Value::text("no"), Value::Null];
        assert_eq!(now.encode(&wrong, &mut Vec::new()), Err(RowError::WrongClass { column: 1 }));
        assert_eq!(now.encode(&wrong[..2], &mut Vec::new()), Err(RowError::WrongClass { column: 2 }));
    }

    #[test]
    fn long_rows_have_wide_ends() {
        let long = "x".repeat(70_000);
        let layout = RowLayout::new([(
            ColumnType::string(TypeKind::LongText, 0, Collation::UTF8MB4_BIN),
            Value::Null,
        )]);
        let value = Value::Str(Str { bytes: long.into_bytes(), collation: Collation::UTF8MB4_BIN });
        let mut row = Vec::new();
        layout.encode(std::slice::from_ref(&value), &mut row).expect("fits");
        assert_eq!(row[0], 0x81);
        assert_eq!(layout.decode_one(&row, 0), Ok(value));
    }

    #[test]
    fn bad_bytes_are_refused() {
        let mut row = Vec::new();
        let values = [Value::Int(-2), Value::text("abc"), Value::UInt(9), Value::text("xy")];
        layout().encode(&values, &mut row).expect("fits");
        for end in 0..row.len() {
            assert!(layout().decode(&row[..end], &mut Vec::new()).is_err(), "{end}");
        }
        row[0] = 2;
        assert_eq!(layout().decode_one(&row, 0), Err(RowError::Version(2)));
        let wrong = [Value::text("no"), Value::Null, Value::Null, Value::Null];
        assert_eq!(layout().encode(&wrong, &mut Vec::new()), Err(RowError::WrongClass { column: 0 }));
        let wrong = [Value::Int(1 << 40), Value::Null, Value::Null, Value::Null];
        assert_eq!(layout().encode(&wrong, &mut Vec::new()), Err(RowError::WrongClass { column: 0 }));
    }
}
