//! Values as row events carry them.

use cohort_base::Reader;

use crate::{ColumnType, Value};

/// What a table map event says of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinlogColumn {
    /// The binlog type code.
    pub code: u8,
    /// Zero to two bytes, first byte lowest.
    pub metadata: u16,
    /// From the optional metadata; only numeric columns have it.
    pub unsigned: bool,
}

/// A value that cannot be encoded or decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// The bytes are no such value.
    Corrupt,
    /// A value that is not of its column's class, or a wire type that cannot become the column's type.
    WrongClass,
    /// A type code this server does not know.
    UnknownType(u8),
}

impl BinlogColumn {
    /// How a column of this type is described.
    pub fn of(ty: &ColumnType) -> BinlogColumn {
        todo!()
    }
    /// Appends the metadata bytes (0 to 2).
    pub fn write_metadata(&self, out: &mut Vec<u8>) {
        todo!()
    }
    /// The columns of a table map: its type codes and metadata block; all signed until told otherwise.
    pub fn parse_all(codes: &[u8], metadata: &[u8]) -> Result<Vec<BinlogColumn>, ImageError> {
        todo!()
    }
    /// Whether the optional metadata has a signedness bit for it.
    pub fn is_numeric(&self) -> bool {
        todo!()
    }
    /// Takes a value off a row image, as a value of `ty`.
    pub fn read(&self, ty: &ColumnType, from: &mut Reader<'_>) -> Result<Value, ImageError> {
        todo!()
    }
    /// Passes over a value.
    pub fn skip(&self, from: &mut Reader<'_>) -> Result<(), ImageError> {
        todo!()
    }
}

/// Appends a stored value, not NULL, as a row image holds it.
pub fn write_value(ty: &ColumnType, value: &Value, out: &mut Vec<u8>) -> Result<(), ImageError> {
    todo!()
}
