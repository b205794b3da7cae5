//! The optional metadata of table map events (`binlog_row_metadata`).
//!
//! ```text
//! fields, each: type u8 | length lenenc | value
//! MINIMAL   1 signedness: a bit per numeric column, most significant first, set for unsigned
//!           2 or 3 character sets of the string columns
//! FULL      those, then
//!           4 names: len8 strings
//!          10 or 11 character sets of the ENUM and SET columns
//!           5 members of SETs, 6 members of ENUMs: per column their number, then strings
//!           8 columns of the primary key, or 9 with the characters of each that it uses (0: all)
//! ```
//! Character sets are collation numbers: either a default and pairs (position among these columns, number)
//! for the exceptions (2, 10), or one per column (3, 11), whichever is shorter.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohort_base::Write;
use cohort_binlog::event::{HAS_TRIGGERS, TableMap};
use cohort_catalog::{Column, Table};
use cohort_types::{BinlogColumn, TypeKind};

/// `binlog_row_metadata`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapMetadata {
    NoLog,
    Minimal,
    Full,
}

impl MapMetadata {
    /// Converts the variable's number.
    pub fn of(number: u64) -> MapMetadata {
        match number {
            0 => MapMetadata::NoLog,
            1 => MapMetadata::Minimal,
            _ => MapMetadata::Full,
        }
    }
}

/// Flag: the table map has exact BIT lengths.
const EXACT_BIT_LENGTHS: u16 = 1;

/// Returns the table map event of a table version.
pub fn table_map(table: &Table, map_id: u64, metadata: MapMetadata) -> Arc<TableMap> {
    let mut map = TableMap {
        optional: optional_metadata(table, metadata),
        table_id: map_id,
        flags: EXACT_BIT_LENGTHS | if table.triggers.is_empty() { 0 } else { HAS_TRIGGERS },
        db: table.name.schema.as_bytes().to_vec(),
        table: table.name.table.as_bytes().to_vec(),
        null_bits: vec![0; table.columns.len().div_ceil(8)],
        ..TableMap::default()
    };
    for (n, column) in table.columns.iter().enumerate() {
        let described = BinlogColumn::of(&column.ty);
        map.column_types.push(described.code);
        described.write_metadata(&mut map.metadata);
        map.null_bits[n / 8] |= u8::from(column.nullable) << (n % 8);
    }
    Arc::new(map)
}

/// Field codes of a column group: default with exceptions, and one per column.
type CharsetFields = (u8, u8);
const STRINGS: CharsetFields = (2, 3);
const ENUMS_AND_SETS: CharsetFields = (10, 11);

/// Returns the bytes that follow the null bitmap of a table map.
pub fn optional_metadata(table: &Table, level: MapMetadata) -> Vec<u8> {
    let mut out = Vec::new();
    if level == MapMetadata::NoLog {
        return out;
    }
    signedness(table, &mut out);
    charsets(table, is_string, STRINGS, &mut out);
    if level == MapMetadata::Minimal {
        return out;
    }
    let mut names = Vec::new();
    table.columns.iter().for_each(|column| names.put_lenenc_bytes(column.name.as_bytes()));
    field(4, &names, &mut out);
    charsets(table, is_listed, ENUMS_AND_SETS, &mut out);
    members(table, TypeKind::Set, 5, &mut out);
    members(table, TypeKind::Enum, 6, &mut out);
    primary_key(table, &mut out);
    out
}

fn field(code: u8, value: &[u8], out: &mut Vec<u8>) {
    if !value.is_empty() {
        out.put_u8(code);
        out.put_lenenc_bytes(value);
    }
}

fn signedness(table: &Table, out: &mut Vec<u8>) {
    let mut bits = Vec::new();
    let numeric = table.columns.iter().filter(|column| BinlogColumn::of(&column.ty).is_numeric());
    for (n, column) in numeric.enumerate() {
        if n % 8 == 0 {
            bits.push(0);
        }
        let is_unsigned = column.ty.unsigned || column.ty.kind == TypeKind::Year;
        bits[n / 8] |= u8::from(is_unsigned) << (7 - n % 8);
    }
    field(1, &bits, out);
}

fn is_listed(column: &Column) -> bool {
    matches!(column.ty.kind, TypeKind::Enum | TypeKind::Set)
}

fn is_string(column: &Column) -> bool {
    use TypeKind::{Binary, Char, VarBinary, VarChar};
    let kind = column.ty.kind;
    matches!(kind, Char | Binary | VarChar | VarBinary) || kind.is_blob()
}

fn charsets(table: &Table, includes: fn(&Column) -> bool, fields: CharsetFields, out: &mut Vec<u8>) {
    let numbers: Vec<u16> = table.columns.iter().filter(|c| includes(c)).map(|c| c.ty.collation.0).collect();
    let mut counts = BTreeMap::new();
    numbers.iter().for_each(|number| *counts.entry(*number).or_insert(0) += 1);
    // Among equally frequent ones, the smallest.
    let Some((&usual, &count)) = counts.iter().rev().max_by_key(|(_, count)| **count) else { return };
    let others = numbers.len() - count;
    let mut value = Vec::new();
    if numbers.len() < 1 + 2 * others {
        numbers.iter().for_each(|number| value.put_lenenc((*number).into()));
        return field(fields.1, &value, out);
    }
    value.put_lenenc(usual.into());
    for (n, number) in numbers.iter().enumerate().filter(|(_, number)| **number != usual) {
        value.put_lenenc(n as u64);
        value.put_lenenc((*number).into());
    }
    field(fields.0, &value, out);
}

fn members(table: &Table, kind: TypeKind, code: u8, out: &mut Vec<u8>) {
    let mut value = Vec::new();
    for column in table.columns.iter().filter(|column| column.ty.kind == kind) {
        value.put_lenenc(column.ty.members.len() as u64);
        for member in column.ty.members.iter() {
            let mut bytes = Vec::new();
            column.ty.collation.charset().encode(member.as_bytes(), &mut bytes);
            value.put_lenenc_bytes(&bytes);
        }
    }
    field(code, &value, out);
}

fn primary_key(table: &Table, out: &mut Vec<u8>) {
    let Some(key) = table.identifying_key() else { return };
    let has_prefix = key.columns.iter().any(|part| part.prefix.is_some());
    let mut value = Vec::new();
    for part in &key.columns {
        value.put_lenenc(part.column as u64);
        if has_prefix {
            value.put_lenenc(part.prefix.unwrap_or(0).into());
        }
    }
    field(if has_prefix { 9 } else { 8 }, &value, out);
}
