//! SHOW CREATE TABLE and SHOW CREATE DATABASE: the statements that would make what is there.

use cohort_catalog::{Column, DefaultValue, Index, IndexKind, OnUpdate, Schema, Table};
use cohort_session::sequence::Definition;
use cohort_sql::print::{quoted_name, quoted_text};
use cohort_table::constraint_text;
use cohort_types::{Collation, TypeKind, Value};

/// `current_timestamp(3)`.
pub fn now_text(digits: u8) -> String {
    if digits == 0 { "current_timestamp()".to_owned() } else { format!("current_timestamp({digits})") }
}

/// DEFAULT as SQL text; None when there is none.
pub fn default_text(column: &Column) -> Option<String> {
    Some(match &column.default {
        DefaultValue::None => return None,
        DefaultValue::CurrentTimestamp => now_text(column.ty.decimals),
        DefaultValue::Expression(text) => text.clone(),
        DefaultValue::Value(Value::Null) => "NULL".to_owned(),
        DefaultValue::Value(value) => literal(column, value),
    })
}

/// The default as DESCRIBE shows it: without quotes, but for texts and blobs, whose defaults MariaDB keeps as
/// expressions.
pub fn bare_default(column: &Column) -> Option<String> {
    match &column.default {
        DefaultValue::Value(Value::Null) => None,
        DefaultValue::Value(value) if column.ty.kind != TypeKind::Bit && !is_long(column.ty.kind) => {
            Some(plain(column, value))
        }
        _ => default_text(column),
    }
}

fn is_long(kind: TypeKind) -> bool {
    use TypeKind as K;
    matches!(
        kind,
        K::TinyText
            | K::Text
            | K::MediumText
            | K::LongText
            | K::Json
            | K::TinyBlob
            | K::Blob
            | K::MediumBlob
            | K::LongBlob
    )
}

fn plain(column: &Column, value: &Value) -> String {
    let mut text = Vec::new();
    column.ty.write_text(value, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn literal(column: &Column, value: &Value) -> String {
    if let Value::Bit { bits, .. } = value {
        return format!("b'{bits:b}'");
    }
    let text = plain(column, value);
    let is_number = matches!(
        value,
        Value::Int(_) | Value::UInt(_) | Value::Decimal(_) | Value::Float(_) | Value::Double(_)
    );
    if is_number { text } else { quoted_text(&text) }
}

/// Options in the order in which MariaDB prints them.
pub fn ordered_options(table: &Table) -> impl Iterator<Item = &(String, String)> {
    const ORDER: [&str; 11] = [
        "MIN_ROWS",
        "MAX_ROWS",
        "AVG_ROW_LENGTH",
        "PACK_KEYS",
        "STATS_PERSISTENT",
        "STATS_AUTO_RECALC",
        "STATS_SAMPLE_PAGES",
        "CHECKSUM",
        "DELAY_KEY_WRITE",
        "ROW_FORMAT",
        "KEY_BLOCK_SIZE",
    ];
    ORDER.iter().flat_map(|name| table.options.iter().filter(move |(known, _)| known == name))
}

/// Options of the engine, which keep the spelling that they were given.
pub fn engine_options(table: &Table) -> impl Iterator<Item = &(String, String)> {
    let is_of_engine = |name: &str| {
        ["PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL"].iter().any(|known| known.eq_ignore_ascii_case(name))
    };
    table.options.iter().filter(move |(name, _)| is_of_engine(name))
}

/// CREATE TABLE; `next` is the AUTO_INCREMENT counter.
pub fn table(table: &Table, next: Option<u64>) -> String {
    let verb = if table.is_temporary() { "CREATE TEMPORARY" } else { "CREATE" };
    table_text((verb, None), table, next, (true, true))
}

/// CREATE SEQUENCE.
pub fn sequence(table: &Table, definition: &Definition) -> String {
    let Definition { min, max, start, increment, cache, cycle, .. } = definition;
    let cache = if *cache == 0 { "nocache".to_owned() } else { format!("cache {cache}") };
    let cycle = if *cycle { "cycle" } else { "nocycle" };
    let mut text = format!(
        "CREATE SEQUENCE {} start with {start} minvalue {min} maxvalue {max} increment by {increment} {cache} {cycle} ENGINE={}",
        quoted_name(&table.name.table),
        table.engine,
    );
    if !table.comment.is_empty() {
        text += &format!(" COMMENT={}", quoted_text(&table.comment));
    }
    text
}

/// CREATE TABLE, or the `verb` written, of a table in a schema, with its engine and its character set if that
/// is wanted.
pub(crate) fn create_text(verb: &str, schema: Option<&str>, table: &Table, with: (bool, bool)) -> String {
    let next = Some(table.auto_increment_start);
    table_text((verb, schema), table, next, with)
}

fn table_text(
    (verb, schema): (&str, Option<&str>),
    table: &Table,
    next: Option<u64>,
    (with_engine, with_charset): (bool, bool),
) -> String {
    let schema = schema.map_or_else(String::new, |schema| format!("{}.", quoted_name(schema)));
    let mut lines: Vec<String> = table.columns.iter().map(|c| column(table, c)).collect();
    lines.extend(table.indexes.iter().filter(|i| i.kind != IndexKind::HiddenRowId).map(|i| key(table, i)));
    lines.extend(table.foreign_keys.iter().map(|key| constraint_text(table, key)));
    lines.extend(
        table
            .checks
            .iter()
            .map(|check| format!("CONSTRAINT {} CHECK ({})", quoted_name(&check.name), check.text)),
    );
    let mut text =
        format!("{verb} TABLE {schema}{} (\n  {}\n)", quoted_name(&table.name.table), lines.join(",\n  "));
    if with_engine {
        text += &format!(" ENGINE={}", table.engine);
    }
    if let Some(next) = next.filter(|n| *n > 1) {
        text += &format!(" AUTO_INCREMENT={next}");
    }
    if table.is_sequence() {
        text += " SEQUENCE=1";
    } else if with_charset {
        text += &match table.collation {
            Collation::BINARY => " DEFAULT CHARSET=binary".to_owned(),
            other => format!(" DEFAULT CHARSET={} COLLATE={}", other.charset().name(), other.name()),
        };
    }
    for (name, value) in ordered_options(table) {
        text += &format!(" {name}={value}");
    }
    if !table.comment.is_empty() {
        text += &format!(" COMMENT={}", quoted_text(&table.comment));
    }
    for (name, value) in engine_options(table) {
        text += &format!(" {}={}", quoted_name(name), quoted_text(value));
    }
    text
}

fn column(table: &Table, column: &Column) -> String {
    let ty = &column.ty;
    let mut text = format!("{} {}", quoted_name(&column.name), ty.sql_text());
    text += &ty.charset_clause(table.collation);
    if let Some(generated) = &column.generated {
        let kind = if generated.stored { "STORED" } else { "VIRTUAL" };
        text += &format!(" GENERATED ALWAYS AS ({}) {kind}", generated.text);
    } else if !column.nullable {
        text += " NOT NULL";
    } else if ty.kind == TypeKind::Timestamp {
        text += " NULL";
    }
    if column.invisible {
        text += " INVISIBLE";
    }
    if let Some(default) =
        default_text(column).filter(|_| !column.auto_increment && column.generated.is_none())
    {
        text += &format!(" DEFAULT {default}");
    }
    if column.on_update == OnUpdate::CurrentTimestamp {
        text += &format!(" ON UPDATE {}", now_text(ty.decimals));
    }
    if column.auto_increment {
        text += " AUTO_INCREMENT";
    }
    if !column.comment.is_empty() {
        text += &format!(" COMMENT {}", quoted_text(&column.comment));
    }
    let valid = format!("json_valid({})", quoted_name(&column.name));
    text += &match &column.check {
        // Of a table that an earlier version made.
        Some(check) if ty.kind == TypeKind::Json => format!(" CHECK ({valid} and ({check}))"),
        Some(check) => format!(" CHECK ({check})"),
        None if ty.kind == TypeKind::Json => format!(" CHECK ({valid})"),
        None => String::new(),
    };
    text
}

fn key(table: &Table, index: &Index) -> String {
    let parts: Vec<String> = index
        .columns
        .iter()
        .map(|part| {
            let name = quoted_name(&table.columns[part.column].name);
            let prefix = part.prefix.map_or_else(String::new, |n| format!("({n})"));
            format!("{name}{prefix}{}", if part.descending { " DESC" } else { "" })
        })
        .collect();
    let head = match index.kind {
        IndexKind::Primary => "PRIMARY KEY".to_owned(),
        IndexKind::Unique => format!("UNIQUE KEY {}", quoted_name(&index.name)),
        IndexKind::FullText => format!("FULLTEXT KEY {}", quoted_name(&index.name)),
        _ => format!("KEY {}", quoted_name(&index.name)),
    };
    let comment = match index.comment.as_str() {
        "" => String::new(),
        comment => format!(" COMMENT {}", quoted_text(comment)),
    };
    let ignored = if index.ignored { " IGNORED" } else { "" };
    format!("{head} ({}){comment}{ignored}", parts.join(","))
}

/// CREATE DATABASE.
pub fn database(schema: &Schema, if_not_exists: &str) -> String {
    let (charset, collation) = (schema.collation.charset().name(), schema.collation.name());
    let mut text = format!(
        "CREATE DATABASE {if_not_exists}{} /*!40100 DEFAULT CHARACTER SET {charset} COLLATE {collation} */",
        quoted_name(&schema.name)
    );
    if !schema.comment.is_empty() {
        text += &format!(" COMMENT {}", quoted_text(&schema.comment));
    }
    text
}
