//! Encoding of catalog entries, used in commit records and in the catalog file. Integers are little-endian,
//! `string` is a `lenenc` length and UTF-8, a list is a `lenenc` count and its entries.
//!
//! ```text
//! schema    string name | u16 collation | string comment
//! table     u64 id | string schema | string name | string engine | u16 collation | string comment
//!           | u64 auto_increment_start | u64 created_at, its highest bit: there are checks,
//!           the next one: there are foreign keys, the third: there is a storage order,
//!           the fourth: there are triggers
//!           | list of columns | list of indexes | list of (string, string) options
//!           | if there are checks: list of (string name, string text)
//!           | if there are foreign keys: list of them
//!           | if there is a storage order: list of u32 column; with the highest bit set, a dropped column:
//!           the other bits are its size in bytes, or all ones if it holds strings
//!           | if there are triggers: list of them (see `program`)
//! foreign   string name | list of u32 column | string schema, string table | list of string column
//!           | u8 on delete | u8 on update (0 RESTRICT, 1 NO ACTION, 2 CASCADE, 3 SET NULL)
//! column    string name | type | u8 flags (1 nullable, 2 auto increment, 4 invisible, 8 ON UPDATE,
//!           16 generated, 32 stored, 64 check) | default | string comment | value in old rows
//!           | if generated: string text | if check: string text
//! type      u8 kind | u32 length | u8 decimals | u8 flags (1 unsigned, 2 zerofill) | u16 collation
//!           | list of strings
//! default   u8: 0 none | 1 value | 2 CURRENT_TIMESTAMP | 3 string expression
//! index     u32 id | string name | u8 kind, plus flags (16 USING HASH, 32 USING BTREE, 64 generated,
//!           128 ignored) | string comment | list of (u32 column, u32 prefix + 1 or 0)
//! account   see `account`
//! value     u8 tag, then the fields in the order of `Value`
//! ```
//!
//! The numbers of kinds and tags are on disk, so existing ones must never change.

use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Reader, TableId, Truncated, Write};
use cohort_types::{
    Collation, ColumnType, Date, DateTime, Decimal, FixedKind, StoredPlace, Str, Time, TypeKind, Value,
};

use crate::foreign::{put_foreign_key, read_foreign_key};
use crate::index_method::{IndexKind, KeyMethod};
use crate::model::{
    Check, Column, DefaultValue, Generated, Index, IndexColumn, OnUpdate, Schema, Table, TableName,
};
use crate::program::{put_trigger, read_trigger};

/// Type kinds, indexed by their number on disk.
const KINDS: [TypeKind; 32] = [
    TypeKind::TinyInt,
    TypeKind::SmallInt,
    TypeKind::MediumInt,
    TypeKind::Int,
    TypeKind::BigInt,
    TypeKind::Decimal,
    TypeKind::Float,
    TypeKind::Double,
    TypeKind::Bit,
    TypeKind::Char,
    TypeKind::VarChar,
    TypeKind::Binary,
    TypeKind::VarBinary,
    TypeKind::TinyText,
    TypeKind::Text,
    TypeKind::MediumText,
    TypeKind::LongText,
    TypeKind::TinyBlob,
    TypeKind::Blob,
    TypeKind::MediumBlob,
    TypeKind::LongBlob,
    TypeKind::Json,
    TypeKind::Date,
    TypeKind::Time,
    TypeKind::DateTime,
    TypeKind::Timestamp,
    TypeKind::Year,
    TypeKind::Enum,
    TypeKind::Set,
    TypeKind::Uuid,
    TypeKind::Inet6,
    TypeKind::Inet4,
];

/// Flag bits in the creation time.
const HAS_CHECKS: u64 = 1 << 63;
const HAS_FOREIGN_KEYS: u64 = 1 << 62;
const HAS_STORAGE: u64 = 1 << 61;
const HAS_TRIGGERS: u64 = 1 << 60;
/// Marks a dropped column in the storage order; the other bits are its size.
const DROPPED: u32 = 1 << 31;
const DROPPED_TEXT: u32 = u32::MAX;
/// Flag bits in the index kind.
const INDEX_IGNORED: u8 = 0x80;
const INDEX_GENERATED: u8 = 0x40;
const INDEX_USING_BTREE: u8 = 0x20;
const INDEX_USING_HASH: u8 = 0x10;
const INDEX_FLAGS: u8 = INDEX_IGNORED | INDEX_GENERATED | INDEX_USING_BTREE | INDEX_USING_HASH;
/// Flag bit in the column ordinal of an index.
const PART_DESCENDING: u32 = 1 << 31;

fn number_of<T: PartialEq>(known: &[T], item: &T) -> u8 {
    known.iter().position(|k| k == item).expect("every kind has a number") as u8
}

fn flag(bit: u8, is_set: bool) -> u8 {
    if is_set { bit } else { 0 }
}

pub fn put_string(out: &mut Vec<u8>, text: &str) {
    out.put_lenenc_bytes(text.as_bytes());
}

pub fn read_string(r: &mut Reader<'_>) -> Result<String, Truncated> {
    String::from_utf8(r.lenenc_bytes()?.to_vec()).map_err(|_| Truncated)
}

pub(crate) fn put_list<'a, T: 'a>(
    out: &mut Vec<u8>,
    items: impl ExactSizeIterator<Item = T>,
    put: impl Fn(&mut Vec<u8>, T),
) {
    out.put_lenenc(items.len() as u64);
    for item in items {
        put(out, item);
    }
}

pub(crate) fn read_list<T>(
    r: &mut Reader<'_>,
    read: impl Fn(&mut Reader<'_>) -> Result<T, Truncated>,
) -> Result<Vec<T>, Truncated> {
    let count = r.lenenc()?;
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(read(r)?);
    }
    Ok(items)
}

pub fn put_schema(out: &mut Vec<u8>, schema: &Schema) {
    put_string(out, &schema.name);
    out.put_u16(schema.collation.0);
    put_string(out, &schema.comment);
}

/// Reads a schema without its contents, which are separate entries.
pub fn read_schema(r: &mut Reader<'_>) -> Result<Schema, Truncated> {
    let (name, collation, comment) = (read_string(r)?, Collation(r.u16()?), read_string(r)?);
    Ok(Schema::new(&name, collation, &comment))
}

pub fn put_table(out: &mut Vec<u8>, table: &Table) {
    out.put_u64(table.id.0);
    put_string(out, &table.name.schema);
    put_string(out, &table.name.table);
    put_string(out, &table.engine);
    out.put_u16(table.collation.0);
    put_string(out, &table.comment);
    out.put_u64(table.auto_increment_start);
    let checked = if table.checks.is_empty() { 0 } else { HAS_CHECKS };
    let referring = if table.foreign_keys.is_empty() { 0 } else { HAS_FOREIGN_KEYS };
    let stored = if table.storage.is_empty() { 0 } else { HAS_STORAGE };
    let triggered = if table.triggers.is_empty() { 0 } else { HAS_TRIGGERS };
    out.put_u64(table.created_at | checked | referring | stored | triggered);
    put_list(out, table.columns.iter(), put_column);
    put_list(out, table.indexes.iter(), put_index);
    put_list(out, table.options.iter(), |out, (name, value)| {
        put_string(out, name);
        put_string(out, value);
    });
    if !table.checks.is_empty() {
        put_list(out, table.checks.iter(), |out, check| {
            put_string(out, &check.name);
            put_string(out, &check.text);
        });
    }
    if !table.foreign_keys.is_empty() {
        put_list(out, table.foreign_keys.iter(), put_foreign_key);
    }
    if !table.storage.is_empty() {
        put_list(out, table.storage.iter(), |out, place| {
            out.put_u32(match *place {
                StoredPlace::Column(column) => column as u32,
                StoredPlace::DroppedFixed(len) => DROPPED | len as u32,
                StoredPlace::DroppedText => DROPPED_TEXT,
            });
        });
    }
    if !table.triggers.is_empty() {
        put_list(out, table.triggers.iter(), |out, trigger| put_trigger(out, trigger));
    }
}

pub fn read_table(r: &mut Reader<'_>) -> Result<Table, Truncated> {
    let mut table = Table {
        id: TableId(r.u64()?),
        name: TableName { schema: read_string(r)?, table: read_string(r)? },
        engine: read_string(r)?,
        collation: Collation(r.u16()?),
        comment: read_string(r)?,
        auto_increment_start: r.u64()?,
        created_at: r.u64()?,
        columns: read_list(r, read_column)?,
        indexes: read_list(r, read_index)?,
        options: read_list(r, |r| Ok((read_string(r)?, read_string(r)?)))?,
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        storage: Vec::new(),
        triggers: Vec::new(),
    };
    let has = table.created_at;
    table.created_at &= !(HAS_CHECKS | HAS_FOREIGN_KEYS | HAS_STORAGE | HAS_TRIGGERS);
    if has & HAS_CHECKS != 0 {
        table.checks = read_list(r, |r| Ok(Check { name: read_string(r)?, text: read_string(r)? }))?;
    }
    if has & HAS_FOREIGN_KEYS != 0 {
        table.foreign_keys = read_list(r, read_foreign_key)?;
    }
    if has & HAS_STORAGE != 0 {
        table.storage = read_list(r, |r| {
            Ok(match r.u32()? {
                DROPPED_TEXT => StoredPlace::DroppedText,
                place if place & DROPPED != 0 => StoredPlace::DroppedFixed((place & !DROPPED) as usize),
                column => StoredPlace::Column(column as usize),
            })
        })?;
        if !holds_each_column(&table) {
            return Err(Truncated);
        }
    }
    if has & HAS_TRIGGERS != 0 {
        table.triggers = read_list(r, |r| Ok(Arc::new(read_trigger(r)?)))?;
    }
    Ok(table)
}

/// Returns whether the storage order contains each column exactly once.
fn holds_each_column(table: &Table) -> bool {
    let mut columns: Vec<usize> = Vec::new();
    for place in &table.storage {
        match place {
            StoredPlace::Column(column) => columns.push(*column),
            StoredPlace::DroppedFixed(_) | StoredPlace::DroppedText => {}
        }
    }
    columns.sort_unstable();
    columns.into_iter().eq(0..table.columns.len())
}

fn put_column(out: &mut Vec<u8>, column: &Column) {
    put_string(out, &column.name);
    put_type(out, &column.ty);
    let updates = column.on_update == OnUpdate::CurrentTimestamp;
    out.put_u8(
        flag(1, column.nullable)
            | flag(2, column.auto_increment)
            | flag(4, column.invisible)
            | flag(8, updates)
            | flag(16, column.generated.is_some())
            | flag(32, column.generated.as_ref().is_some_and(|generated| generated.stored))
            | flag(64, column.check.is_some()),
    );
    match &column.default {
        DefaultValue::None => out.put_u8(0),
        DefaultValue::Value(value) => {
            out.put_u8(1);
            put_value(out, value);
        }
        DefaultValue::CurrentTimestamp => out.put_u8(2),
        DefaultValue::Expression(text) => {
            out.put_u8(3);
            put_string(out, text);
        }
    }
    put_string(out, &column.comment);
    put_value(out, &column.value_in_old_rows);
    if let Some(generated) = &column.generated {
        put_string(out, &generated.text);
    }
    if let Some(check) = &column.check {
        put_string(out, check);
    }
}

fn read_column(r: &mut Reader<'_>) -> Result<Column, Truncated> {
    let (name, ty, flags) = (read_string(r)?, read_type(r)?, r.u8()?);
    let default = match r.u8()? {
        0 => DefaultValue::None,
        1 => DefaultValue::Value(read_value(r)?),
        2 => DefaultValue::CurrentTimestamp,
        3 => DefaultValue::Expression(read_string(r)?),
        _ => return Err(Truncated),
    };
    Ok(Column {
        name,
        ty,
        nullable: flags & 1 != 0,
        default,
        on_update: if flags & 8 != 0 { OnUpdate::CurrentTimestamp } else { OnUpdate::Keep },
        auto_increment: flags & 2 != 0,
        invisible: flags & 4 != 0,
        comment: read_string(r)?,
        value_in_old_rows: read_value(r)?,
        generated: match flags & 16 {
            0 => None,
            _ => Some(Generated { text: read_string(r)?, stored: flags & 32 != 0 }),
        },
        check: if flags & 64 != 0 { Some(read_string(r)?) } else { None },
    })
}

fn put_type(out: &mut Vec<u8>, ty: &ColumnType) {
    out.put_u8(number_of(&KINDS, &ty.kind));
    out.put_u32(ty.length);
    out.put_u8(ty.decimals);
    out.put_u8(flag(1, ty.unsigned) | flag(2, ty.zerofill));
    out.put_u16(ty.collation.0);
    put_list(out, ty.members.iter(), |out, member| put_string(out, member));
}

fn read_type(r: &mut Reader<'_>) -> Result<ColumnType, Truncated> {
    let kind = *KINDS.get(usize::from(r.u8()?)).ok_or(Truncated)?;
    let (length, decimals, flags) = (r.u32()?, r.u8()?, r.u8()?);
    let collation = Collation(r.u16()?);
    let members: Arc<[String]> = read_list(r, read_string)?.into();
    Ok(ColumnType {
        kind,
        length,
        decimals,
        unsigned: flags & 1 != 0,
        zerofill: flags & 2 != 0,
        collation,
        members,
    })
}

fn put_index(out: &mut Vec<u8>, index: &Index) {
    out.put_u32(index.id.0);
    put_string(out, &index.name);
    out.put_u8(
        index.kind.number()
            | flag(INDEX_IGNORED, index.ignored)
            | flag(INDEX_GENERATED, index.generated)
            | flag(INDEX_USING_BTREE, index.using == Some(KeyMethod::BTree))
            | flag(INDEX_USING_HASH, index.using == Some(KeyMethod::Hash)),
    );
    put_string(out, &index.comment);
    put_list(out, index.columns.iter(), |out, part| {
        out.put_u32(part.column as u32 | if part.descending { PART_DESCENDING } else { 0 });
        out.put_u32(part.prefix.map_or(0, |n| n + 1));
    });
}

fn read_index(r: &mut Reader<'_>) -> Result<Index, Truncated> {
    let (id, name, kind) = (IndexId(r.u32()?), read_string(r)?, r.u8()?);
    Ok(Index {
        id,
        name,
        kind: IndexKind::numbered(kind & !INDEX_FLAGS).ok_or(Truncated)?,
        ignored: kind & INDEX_IGNORED != 0,
        generated: kind & INDEX_GENERATED != 0,
        using: match kind & (INDEX_USING_BTREE | INDEX_USING_HASH) {
            0 => None,
            INDEX_USING_BTREE => Some(KeyMethod::BTree),
            _ => Some(KeyMethod::Hash),
        },
        comment: read_string(r)?,
        columns: read_list(r, |r| {
            let column = r.u32()?;
            Ok(IndexColumn {
                column: (column & !PART_DESCENDING) as usize,
                prefix: r.u32()?.checked_sub(1),
                descending: column & PART_DESCENDING != 0,
            })
        })?,
        since: CommitSeq(0),
    })
}

fn put_str(out: &mut Vec<u8>, text: &Str) {
    out.put_u16(text.collation.0);
    out.put_lenenc_bytes(&text.bytes);
}

fn read_str(r: &mut Reader<'_>) -> Result<Str, Truncated> {
    Ok(Str { collation: Collation(r.u16()?), bytes: r.lenenc_bytes()?.to_vec() })
}

fn put_date(out: &mut Vec<u8>, date: Date) {
    out.put_u16(date.year);
    out.put_u8(date.month);
    out.put_u8(date.day);
}

fn read_date(r: &mut Reader<'_>) -> Result<Date, Truncated> {
    Ok(Date { year: r.u16()?, month: r.u8()?, day: r.u8()? })
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.put_u8(0),
        Value::Int(v) => {
            out.put_u8(1);
            out.put_u64(*v as u64);
        }
        Value::UInt(v) => {
            out.put_u8(2);
            out.put_u64(*v);
        }
        Value::Float(v) => {
            out.put_u8(3);
            out.put_u32(v.to_bits());
        }
        Value::Double(v) => {
            out.put_u8(4);
            out.put_u64(v.to_bits());
        }
        Value::Decimal(v) => {
            out.put_u8(5);
            let mut text = Vec::new();
            v.write_text(&mut text);
            out.put_lenenc_bytes(&text);
        }
        Value::Str(v) => {
            out.put_u8(6);
            put_str(out, v);
        }
        Value::Date(v) => {
            out.put_u8(7);
            put_date(out, *v);
        }
        Value::Time(v) => {
            out.put_u8(8);
            out.put_u64(v.micros as u64);
        }
        Value::DateTime(v) => {
            out.put_u8(9);
            put_date(out, v.date);
            out.extend_from_slice(&[v.hour, v.minute, v.second]);
            out.put_u32(v.micros);
        }
        Value::Timestamp(v) => {
            out.put_u8(10);
            out.put_u64(*v as u64);
        }
        Value::Fixed(fixed) => {
            out.put_u8(14);
            out.put_u8(number_of(&KINDS, &fixed.kind().type_kind()));
            out.extend_from_slice(fixed.bytes());
        }
        Value::Bit { bits, width } => {
            out.put_u8(11);
            out.put_u64(*bits);
            out.put_u8(*width);
        }
        Value::Enum { index, label } => {
            out.put_u8(12);
            out.put_u16(*index);
            put_str(out, label);
        }
        Value::Set { bits, label } => {
            out.put_u8(13);
            out.put_u64(*bits);
            put_str(out, label);
        }
    }
}

fn read_value(r: &mut Reader<'_>) -> Result<Value, Truncated> {
    Ok(match r.u8()? {
        0 => Value::Null,
        1 => Value::Int(r.u64()? as i64),
        2 => Value::UInt(r.u64()?),
        3 => Value::Float(f32::from_bits(r.u32()?)),
        4 => Value::Double(f64::from_bits(r.u64()?)),
        5 => Value::Decimal(Decimal::parse(r.lenenc_bytes()?).0),
        6 => Value::Str(read_str(r)?),
        7 => Value::Date(read_date(r)?),
        8 => Value::Time(Time { micros: r.u64()? as i64 }),
        9 => Value::DateTime(DateTime {
            date: read_date(r)?,
            hour: r.u8()?,
            minute: r.u8()?,
            second: r.u8()?,
            micros: r.u32()?,
        }),
        10 => Value::Timestamp(r.u64()? as i64),
        11 => Value::Bit { bits: r.u64()?, width: r.u8()? },
        12 => Value::Enum { index: r.u16()?, label: read_str(r)? },
        13 => Value::Set { bits: r.u64()?, label: read_str(r)? },
        14 => {
            let kind = KINDS.get(usize::from(r.u8()?)).copied().and_then(FixedKind::of).ok_or(Truncated)?;
            Value::Fixed(kind.of_bytes(r.bytes(kind.byte_len())?).ok_or(Truncated)?)
        }
        _ => return Err(Truncated),
    })
}
