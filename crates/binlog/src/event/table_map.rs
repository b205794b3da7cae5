//! TABLE_MAP (19): a table that the row events of the statement refer to by number.
//!
//! ```text
//! table id u48 | flags u16 | db len8 string, 0 | table len8 string, 0 | columns lenenc | type u8 each |
//! metadata lenenc string | null bitmap, (columns + 7) / 8 bytes | [optional metadata]
//! ```
//!
//! Metadata takes 0, 1 or 2 bytes per column, depending on its type. Optional metadata (`binlog_row_metadata`
//! other than NO_LOG, MariaDB's default) is a sequence of `type u8 | length lenenc | value`. Type 1 is the
//! signedness of the numeric columns, most significant bit first; a set bit stands for UNSIGNED.

use cohort_base::{Reader, Write};

use super::DecodeError;

const WIDTH_MAX: u64 = 4096;

/// Types of optional metadata that are decoded here; others are skipped.
mod optional {
    pub const SIGNEDNESS: u8 = 1;
    pub const COLUMN_NAME: u8 = 4;
    pub const SIMPLE_PRIMARY_KEY: u8 = 8;
}

/// Flag: the table has triggers on the source.
pub const HAS_TRIGGERS: u16 = 1 << 14;

/// A table map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableMap {
    /// Number by which row events refer to the table.
    pub table_id: u64,
    /// [`HAS_TRIGGERS`]; and 1 in events that MariaDB writes, which has no meaning on the replica.
    pub flags: u16,
    /// Database.
    pub db: Vec<u8>,
    /// Table.
    pub table: Vec<u8>,
    /// One type byte per column.
    pub column_types: Vec<u8>,
    /// Type parameters of all columns.
    pub metadata: Vec<u8>,
    /// One bit per column, set if it may be NULL; least significant bit first.
    pub null_bits: Vec<u8>,
    /// Undecoded optional metadata; see [`TableMap::optional_metadata`].
    pub optional: Vec<u8>,
}

/// Decoded optional metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptionalMetadata {
    /// One entry per numeric column: true if it is unsigned.
    pub unsigned: Vec<bool>,
    /// Column names; only with `binlog_row_metadata=FULL`.
    pub column_names: Vec<Vec<u8>>,
    /// Ordinals of the primary key's columns; only with FULL.
    pub primary_key: Vec<u32>,
}

impl TableMap {
    /// Returns whether a column may be NULL.
    pub fn nullable(&self, column: usize) -> bool {
        self.null_bits.get(column / 8).is_some_and(|byte| byte >> (column % 8) & 1 != 0)
    }

    /// Decodes the optional metadata.
    pub fn optional_metadata(&self) -> Result<OptionalMetadata, DecodeError> {
        let mut found = OptionalMetadata::default();
        let mut r = Reader::new(&self.optional);
        while !r.is_empty() {
            let kind = r.u8()?;
            let value = r.lenenc_bytes()?;
            match kind {
                optional::SIGNEDNESS => {
                    found.unsigned =
                        value.iter().flat_map(|b| (0..8).map(move |i| b >> (7 - i) & 1 != 0)).collect();
                    found.unsigned.truncate(self.column_types.iter().filter(|&&t| is_numeric(t)).count());
                }
                optional::COLUMN_NAME => {
                    let mut names = Reader::new(value);
                    while !names.is_empty() {
                        found.column_names.push(names.lenenc_bytes()?.to_vec());
                    }
                }
                optional::SIMPLE_PRIMARY_KEY => {
                    let mut columns = Reader::new(value);
                    while !columns.is_empty() {
                        found.primary_key.push(columns.lenenc()? as u32);
                    }
                }
                _ => {}
            }
        }
        Ok(found)
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<TableMap, DecodeError> {
        let (table_id, flags) = (r.u48()?, r.u16()?);
        let mut name = || -> Result<Vec<u8>, DecodeError> {
            let name = r.len8_bytes()?.to_vec();
            match r.u8()? {
                0 => Ok(name),
                _ => Err(DecodeError::BadValue("a name in a table map does not end with a zero byte")),
            }
        };
        let (db, table) = (name()?, name()?);
        let columns = r.lenenc()?;
        if columns > WIDTH_MAX {
            return Err(DecodeError::BadValue("a table map of more than 4096 columns"));
        }
        let columns = columns as usize;
        Ok(TableMap {
            table_id,
            flags,
            db,
            table,
            column_types: r.bytes(columns)?.to_vec(),
            metadata: r.lenenc_bytes()?.to_vec(),
            null_bits: r.bytes(columns.div_ceil(8))?.to_vec(),
            optional: r.bytes(r.remaining())?.to_vec(),
        })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u48(self.table_id);
        out.put_u16(self.flags);
        for name in [&self.db, &self.table] {
            out.put_u8(name.len() as u8);
            out.extend_from_slice(name);
            out.put_u8(0);
        }
        out.put_lenenc(self.column_types.len() as u64);
        out.extend_from_slice(&self.column_types);
        out.put_lenenc_bytes(&self.metadata);
        out.extend_from_slice(&self.null_bits);
        out.extend_from_slice(&self.optional);
    }
}

/// Returns whether columns of this type have a bit in the signedness field: TINY, SHORT, LONG, FLOAT, DOUBLE,
/// LONGLONG, INT24, YEAR, NEWDECIMAL.
fn is_numeric(column_type: u8) -> bool {
    matches!(column_type, 1..=5 | 8 | 9 | 13 | 246)
}
