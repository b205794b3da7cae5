//! Assignments match the results recorded from a MariaDB server (golden/store.tsv).

use cohort_types::{
    Charset, Collation, ColumnType, DateTime, Decimal, FixedOffset, Level, SqlMode, StoreContext, Time,
    TimeZone, TypeKind as K, Value, Warning,
};

/// Date of the recording, 2026-11-21.
const NOW: i64 = 1_795_219_200_000_000;

/// Parses a column definition of the recording.
fn type_of(text: &str) -> ColumnType {
    let (definition, collation) = match text.split_once(" collate ") {
        Some((definition, name)) => (definition, Collation::by_name(name).expect("known")),
        None => match text.split_once(" character set ") {
            Some((definition, name)) => {
                (definition, Charset::by_name(name).expect("known").default_collation())
            }
            None => (text, Collation::UTF8MB4_GENERAL_CI),
        },
    };
    let unsigned = definition.ends_with(" unsigned");
    let definition = definition.trim_end_matches(" unsigned");
    let (name, arguments) = definition.split_once('(').unwrap_or((definition, ""));
    let arguments: Vec<&str> = arguments.trim_end_matches(')').split(',').filter(|a| !a.is_empty()).collect();
    let number = |n: usize| arguments.get(n).map_or(0, |a| a.parse::<u8>().expect("a number"));
    let labels = || arguments.iter().map(|a| a.trim_matches('\'').to_string()).collect();
    let real = |kind| ColumnType::real(kind, (!arguments.is_empty()).then(|| (number(0), number(1))));
    let string = |kind| ColumnType::string(kind, number(0).into(), collation);
    let ty = match name {
        "tinyint" => ColumnType::int(K::TinyInt, None, false),
        "smallint" => ColumnType::int(K::SmallInt, None, false),
        "mediumint" => ColumnType::int(K::MediumInt, None, false),
        "int" => ColumnType::int(K::Int, None, false),
        "bigint" => ColumnType::int(K::BigInt, None, false),
        "decimal" => ColumnType::decimal(number(0), number(1)),
        "float" => real(K::Float),
        "double" => real(K::Double),
        "bit" => ColumnType::bit(number(0)),
        "char" => string(K::Char),
        "varchar" => string(K::VarChar),
        "binary" => string(K::Binary),
        "varbinary" => string(K::VarBinary),
        "tinytext" => string(K::TinyText),
        "blob" => string(K::Blob),
        "date" => ColumnType::temporal(K::Date, 0),
        "time" => ColumnType::temporal(K::Time, number(0)),
        "datetime" => ColumnType::temporal(K::DateTime, number(0)),
        "timestamp" => ColumnType::temporal(K::Timestamp, number(0)),
        "year" => ColumnType::temporal(K::Year, 0),
        "enum" => ColumnType::members(K::Enum, labels(), collation),
        "set" => ColumnType::members(K::Set, labels(), collation),
        other => panic!("{other}"),
    };
    if unsigned { ty.unsigned() } else { ty }
}

/// Returns the value of a recorded literal.
fn value_of(kind: &str, input: &str) -> Value {
    let datetime = || DateTime::parse(input.as_bytes(), SqlMode::NONE).value.expect("a datetime");
    match kind {
        "s" => Value::text(input),
        "i" => {
            input.parse().map(Value::Int).unwrap_or_else(|_| Value::UInt(input.parse().expect("an integer")))
        }
        "d" => Value::Decimal(Decimal::parse(input.as_bytes()).0),
        "f" => Value::Double(input.parse().expect("a double")),
        "D" => Value::Date(datetime().date),
        "M" => Value::DateTime(datetime()),
        "T" => Value::Time(Time::parse(input.as_bytes(), SqlMode::NONE).value.expect("a time")),
        "x" => {
            let byte = |n| u8::from_str_radix(&input[n..n + 2], 16).expect("hexadecimal");
            Value::binary((0..input.len()).step_by(2).map(byte).collect::<Vec<u8>>())
        }
        other => panic!("{other}"),
    }
}

/// Formats a stored value as the recording does.
fn printed(ty: &ColumnType, value: &Value) -> String {
    let mut out = Vec::new();
    match value {
        Value::Bit { bits, .. } => return format!("{bits:X}"),
        Value::Str(s) if ty.collation == Collation::BINARY => {
            return s.bytes.iter().map(|b| format!("{b:02X}")).collect();
        }
        Value::Timestamp(v) => FixedOffset::UTC.to_local(*v).write_text(ty.decimals, &mut out),
        value => ty.write_text(value, &mut out),
    }
    // The recording client escaped these characters.
    String::from_utf8(out).expect("UTF-8").replace('\0', "\\0").replace('\t', "\\t")
}

/// Returns whether this server deliberately differs from the recorded one.
fn is_exception(definition: &str, kind: &str, input: &str) -> bool {
    let is_bytes = kind == "x" && input.bytes().any(|b| b >= b'8');
    match definition {
        // Its temporal values know how many fraction digits they print; here they are already texts.
        "tinytext" | "blob" | "bit(64)" => kind == "T" || kind == "M",
        // It stores these bytes unchanged and later shows question marks.
        "varchar(5) character set ascii" => is_bytes,
        // It omits one of two warnings.
        "timestamp" | "timestamp(2)" => input.len() == 40,
        _ => false,
    }
}

fn condition(level: &str, error: &cohort_types::SqlError) -> String {
    format!("{level}:{}:{}", error.code.number(), error.message.replace('\\', "\\\\"))
}

#[test]
fn assignments_end_as_on_the_recorded_server() {
    let mut wrong = Vec::new();
    let mut total = 0;
    for line in include_str!("golden/store.tsv").lines().filter(|l| !l.starts_with('#')) {
        let [mode, definition, kind, input, stored, conditions] = line.split('\t').collect::<Vec<_>>()[..]
        else {
            panic!("six columns: {line}");
        };
        if is_exception(definition, kind, input) {
            continue;
        }
        let ty = type_of(definition);
        let ctx = StoreContext {
            sql_mode: if mode == "S" { SqlMode::STRICT_ALL_TABLES } else { SqlMode::NONE },
            strict: mode == "S",
            database: "d",
            table: "t",
            column: "c",
            row: 1,
            zone: &FixedOffset::UTC,
            now_micros: NOW,
        };
        let mut warnings: Vec<Warning> = Vec::new();
        let (got, mut got_conditions) = match ty.store(value_of(kind, input), &ctx, &mut warnings) {
            Ok(value) => (printed(&ty, &value), Vec::new()),
            Err(error) => ("ERROR".to_string(), vec![condition("Error", &error)]),
        };
        let level = |w: &Warning| if w.level == Level::Note { "Note" } else { "Warning" };
        got_conditions.splice(0..0, warnings.iter().map(|w| condition(level(w), &w.error)));
        let mut wanted: Vec<&str> = conditions.split('|').filter(|c| !c.is_empty()).collect();
        // The server repeats some conditions, and reports further ones after an error.
        wanted.dedup();
        if stored == "ERROR" {
            wanted.truncate(1);
        }
        total += 1;
        if got != stored || got_conditions != wanted {
            wrong.push(format!(
                "{mode}\t{definition}\t{kind}\t{input}\t{stored}\t{conditions}\tgot\t{got}\t{}",
                got_conditions.join("|")
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {total} differ:\n{}", wrong.len(), wrong.join("\n"));
}
