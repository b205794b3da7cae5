//! SHOW CREATE TABLE and SHOW CREATE DATABASE: statements that recreate the object.

use std::borrow::Cow;

use cohort_catalog::{Column, DefaultValue, Index, OnUpdate, Schema, Table};
use cohort_session::StatementContext;
use cohort_session::sequence::Definition;
use cohort_sql::print::{Style, expr_in, quoted_name, quoted_text};
use cohort_table::constraint_text_in;
use cohort_types::{Collation, DateTime, SqlMode, TimeZone, TypeKind, Value};

/// The style of SHOW CREATE, set by `sql_mode` and `sql_quote_show_create`.
#[derive(Clone, Copy, Debug)]
pub struct ShowStyle {
    pub style: Style,
    mode: SqlMode,
}

impl ShowStyle {
    /// The style for the binlog and dumps.
    const FULL: ShowStyle = ShowStyle {
        style: Style { collation: Collation::UTF8MB4_GENERAL_CI, quote: '`', bare: false },
        mode: SqlMode::NONE,
    };

    /// Returns the session's style.
    pub fn of(ctx: &StatementContext<'_>) -> ShowStyle {
        let mode = ctx.session.settings.env.sql_mode;
        let quote = if mode.has(SqlMode::ANSI_QUOTES) { '"' } else { '`' };
        let bare = !ctx.session.settings.vars.flag(cohort_config::VarId::SqlQuoteShowCreate);
        ShowStyle { style: Style { quote, bare, ..Style::default() }, mode }
    }

    /// Returns whether the text is meant for another database product, so that MariaDB's own options are left
    /// out.
    pub fn is_foreign(&self) -> bool {
        use SqlMode as M;
        [M::ORACLE, M::MSSQL, M::DB2, M::MAXDB, M::ANSI, M::POSTGRESQL]
            .iter()
            .any(|mode| self.mode.has(*mode))
    }

    fn has_table_options(&self) -> bool {
        !self.mode.has(SqlMode::NO_TABLE_OPTIONS) && !self.is_foreign()
    }

    /// Formats a DEFAULT, with the parentheses that it needs.
    fn expression_default(&self, text: &str) -> String {
        match text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
            // Both parentheses must belong together: otherwise the inner text does not parse.
            Some(inner) if super::rules::parsed(inner).is_ok() => format!("({})", self.expression(inner)),
            _ => self.expression(text),
        }
    }

    /// Formats a stored expression.
    fn expression(&self, text: &str) -> String {
        if self.style == Style::default() {
            return text.to_owned();
        }
        // Text that does not parse is shown as stored.
        super::rules::parsed(text).map_or_else(|_| text.to_owned(), |expr| expr_in(&expr, self.style))
    }
}

/// Formats `current_timestamp(3)`.
pub fn now_text(digits: u8) -> String {
    if digits == 0 { "current_timestamp()".to_owned() } else { format!("current_timestamp({digits})") }
}

/// Converts the default of a TIMESTAMP column to the session's time zone.
pub fn in_zone<'c>(column: &'c Column, zone: &dyn TimeZone) -> Cow<'c, Column> {
    match &column.default {
        DefaultValue::Value(Value::Timestamp(micros)) => {
            let local = if *micros == 0 { DateTime::default() } else { zone.to_local(*micros) };
            Cow::Owned(Column { default: DefaultValue::Value(Value::DateTime(local)), ..column.clone() })
        }
        _ => Cow::Borrowed(column),
    }
}

/// Applies [`in_zone`] to all columns.
fn all_in_zone<'t>(table: &'t Table, zone: &dyn TimeZone) -> Cow<'t, Table> {
    let is_shifted = |column: &Column| matches!(column.default, DefaultValue::Value(Value::Timestamp(_)));
    if !table.columns.iter().any(is_shifted) {
        return Cow::Borrowed(table);
    }
    let columns = table.columns.iter().map(|column| in_zone(column, zone).into_owned()).collect();
    Cow::Owned(Table { columns, ..table.clone() })
}

/// Returns the DEFAULT as SQL text, or `None` if there is none.
pub fn default_text(column: &Column) -> Option<String> {
    Some(match &column.default {
        DefaultValue::None => return None,
        DefaultValue::CurrentTimestamp => now_text(column.ty.decimals),
        DefaultValue::Expression(text) => text.clone(),
        DefaultValue::Value(Value::Null) => "NULL".to_owned(),
        DefaultValue::Value(value) => literal(column, value),
    })
}

/// Returns the default as DESCRIBE shows it: without quotes, except for TEXT and BLOB, whose defaults MariaDB
/// stores as expressions.
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
    shown(column, value).unwrap_or_else(|text| text)
}

/// Returns the value's text. Bytes that are not valid text are returned as a hexadecimal constant in `Err`.
fn shown(column: &Column, value: &Value) -> Result<String, String> {
    let mut text = Vec::new();
    column.ty.write_text(value, &mut text);
    String::from_utf8(text).map_err(|error| {
        let digits: String = error.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("X'{digits}'")
    })
}

fn literal(column: &Column, value: &Value) -> String {
    if let Value::Bit { bits, .. } = value {
        return format!("b'{bits:b}'");
    }
    let text = match shown(column, value) {
        Ok(text) => text,
        Err(constant) => return constant,
    };
    let is_number = matches!(
        value,
        Value::Int(_) | Value::UInt(_) | Value::Decimal(_) | Value::Float(_) | Value::Double(_)
    );
    if is_number { text } else { quoted_text(&text) }
}

/// Returns the options in the order in which MariaDB prints them.
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

/// Returns the engine's options, in their original spelling.
pub fn engine_options(table: &Table) -> impl Iterator<Item = &(String, String)> {
    let is_of_engine = |name: &str| {
        ["PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL"].iter().any(|known| known.eq_ignore_ascii_case(name))
    };
    table.options.iter().filter(move |(name, _)| is_of_engine(name))
}

/// Formats CREATE TABLE. `next` is the AUTO_INCREMENT counter.
pub fn table(table: &Table, next: Option<u64>, (show, zone): (ShowStyle, &dyn TimeZone)) -> String {
    let table = &*all_in_zone(table, zone);
    let verb = if table.is_temporary() { "CREATE TEMPORARY" } else { "CREATE" };
    table_text((verb, None), table, next, (true, true), show)
}

/// Formats CREATE SEQUENCE.
pub fn sequence(table: &Table, definition: &Definition, show: ShowStyle) -> String {
    let Definition { min, max, start, increment, cache, cycle, .. } = definition;
    let cache = if *cache == 0 { "nocache".to_owned() } else { format!("cache {cache}") };
    let cycle = if *cycle { "cycle" } else { "nocycle" };
    let mut text = format!(
        "CREATE SEQUENCE {} start with {start} minvalue {min} maxvalue {max} increment by {increment} {cache} {cycle}",
        show.style.name(&table.name.table),
    );
    if !show.has_table_options() {
        return text;
    }
    text += &format!(" ENGINE={}", table.engine);
    if !table.comment.is_empty() {
        text += &format!(" COMMENT={}", quoted_text(&table.comment));
    }
    text
}

/// Formats CREATE TABLE, or the given `verb`, of a table in a schema, optionally with its engine and
/// character set.
pub(crate) fn create_text(
    verb: &str,
    schema: Option<&str>,
    (table, zone): (&Table, &dyn TimeZone),
    with: (bool, bool),
) -> String {
    let table = &*all_in_zone(table, zone);
    let next = Some(table.auto_increment_start);
    table_text((verb, schema), table, next, with, ShowStyle::FULL)
}

fn table_text(
    (verb, schema): (&str, Option<&str>),
    table: &Table,
    next: Option<u64>,
    (with_engine, with_charset): (bool, bool),
    show: ShowStyle,
) -> String {
    let style = show.style;
    let schema = schema.map_or_else(String::new, |schema| format!("{}.", style.name(schema)));
    let mut lines: Vec<String> = table.columns.iter().map(|c| column(table, c, show)).collect();
    let keys = table.indexes.iter().filter(|i| i.kind.is_declared());
    lines.extend(keys.map(|i| key(table, i, show)));
    lines.extend(table.foreign_keys.iter().map(|key| constraint_text_in(table, key, style)));
    let check = |check: &cohort_catalog::Check| {
        format!("CONSTRAINT {} CHECK ({})", style.name(&check.name), show.expression(&check.text))
    };
    lines.extend(table.checks.iter().map(check));
    let mut text =
        format!("{verb} TABLE {schema}{} (\n  {}\n)", style.name(&table.name.table), lines.join(",\n  "));
    if !show.has_table_options() {
        return text;
    }
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

fn column(table: &Table, column: &Column, show: ShowStyle) -> String {
    let ty = &column.ty;
    let with_options = !show.mode.has(SqlMode::NO_FIELD_OPTIONS);
    let mut text = format!("{} {}", show.style.name(&column.name), ty.sql_text());
    text += &ty.charset_clause(table.collation);
    if let Some(generated) = &column.generated {
        let kind = if generated.stored { "STORED" } else { "VIRTUAL" };
        text += &format!(" GENERATED ALWAYS AS ({}) {kind}", show.expression(&generated.text));
    } else if !column.nullable {
        text += " NOT NULL";
    } else if ty.kind == TypeKind::Timestamp {
        text += " NULL";
    }
    if column.invisible {
        text += " INVISIBLE";
    }
    let default = match &column.default {
        DefaultValue::Expression(text) => Some(show.expression_default(text)),
        _ => default_text(column),
    };
    if let Some(default) = default.filter(|_| !column.auto_increment && column.generated.is_none()) {
        text += &format!(" DEFAULT {default}");
    }
    if column.on_update == OnUpdate::CurrentTimestamp && with_options {
        text += &format!(" ON UPDATE {}", now_text(ty.decimals));
    }
    if column.auto_increment && with_options {
        text += " AUTO_INCREMENT";
    }
    if !column.comment.is_empty() {
        text += &format!(" COMMENT {}", quoted_text(&column.comment));
    }
    let valid = format!("json_valid({})", show.style.name(&column.name));
    text += &match &column.check.as_ref().map(|check| show.expression(check)) {
        // This combination occurs in tables created by an earlier version.
        Some(check) if ty.kind == TypeKind::Json => format!(" CHECK ({valid} and ({check}))"),
        Some(check) => format!(" CHECK ({check})"),
        None if ty.kind == TypeKind::Json => format!(" CHECK ({valid})"),
        None => String::new(),
    };
    text
}

fn key(table: &Table, index: &Index, show: ShowStyle) -> String {
    let style = show.style;
    let parts: Vec<String> = index
        .columns
        .iter()
        .map(|part| {
            let name = style.name(&table.columns[part.column].name);
            let prefix = part.prefix.map_or_else(String::new, |n| format!("({n})"));
            format!("{name}{prefix}{}", if part.descending { " DESC" } else { "" })
        })
        .collect();
    let method = index.kind.method();
    let words = method.declaration.unwrap_or_default();
    let head = match index.kind.is_primary() {
        true => words.to_owned(),
        false => format!("{words} {}", style.name(&index.name)),
    };
    let comment = match index.comment.as_str() {
        "" => String::new(),
        _ if show.mode.has(SqlMode::NO_KEY_OPTIONS) => String::new(),
        comment => format!(" COMMENT {}", quoted_text(comment)),
    };
    let using = method.using.or(index.using).filter(|_| !show.mode.has(SqlMode::NO_KEY_OPTIONS));
    let using = using.map_or_else(String::new, |method| format!(" USING {}", method.name()));
    let ignored = if index.ignored { " IGNORED" } else { "" };
    format!("{head} ({}){using}{comment}{ignored}", parts.join(","))
}

/// Formats CREATE DATABASE.
pub fn database(schema: &Schema, if_not_exists: &str, show: ShowStyle) -> String {
    let (charset, collation) = (schema.collation.charset().name(), schema.collation.name());
    let mut text = format!(
        "CREATE DATABASE {if_not_exists}{} /*!40100 DEFAULT CHARACTER SET {charset} COLLATE {collation} */",
        show.style.name(&schema.name)
    );
    if !schema.comment.is_empty() {
        text += &format!(" COMMENT {}", quoted_text(&schema.comment));
    }
    text
}
