//! Table h, with a column of every type and one row, as SQL and as values.

use cohort_expr::{Expr, ExprType};
use cohort_types::{Collation, ColumnType, Date, DateTime, Decimal, SqlMode, Str, Time, TypeKind, Value};

/// Creates the table in MariaDB.
pub const SQL: &str = "
CREATE TABLE h (vi INT, vu BIGINT UNSIGNED, big BIGINT, dc DECIMAL(6,2), vf DOUBLE, f2 DOUBLE(7,2), fl FLOAT,
  vs VARCHAR(20), c CHAR(5), bs VARCHAR(10) COLLATE utf8mb4_bin, vb VARBINARY(10), l VARCHAR(10) CHARACTER SET latin1,
  ve ENUM('z','a','m'), st SET('x','y','w'), j JSON, y YEAR, da DATE, dn DATE NOT NULL, ti TIME(2), dt DATETIME(3),
  ts TIMESTAMP(1) NOT NULL, b BIT(10), zi INT(6) ZEROFILL, n INT);
INSERT INTO h VALUES (42, 18446744073709551615, 20200131, -12.50, 0.5, 12.35, 1.1,
  'Abc', 'ab', 'aB', 'AB', 'é1',
  'a', 'x,w', '{\"a\": [1, 2], \"b\": \"x\"}', 2069, '2020-01-31', '0000-00-00', '-12:34:56.78', '2020-02-29 10:11:12.345',
  '2023-11-14 22:13:20.5', b'1000001', 12, NULL);
";

/// Returns the columns in order with their types and the row's values.
fn columns() -> Vec<(&'static str, ColumnType, Value)> {
    let text = Collation::UTF8MB4_GENERAL_CI;
    let members = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let latin1 = Collation::by_name("latin1_swedish_ci").expect("known");
    let string = |text: &str, collation| Value::Str(Str { bytes: text.into(), collation });
    let datetime = |text: &str| DateTime::parse(text.as_bytes(), SqlMode::NONE).value.expect("a datetime");
    let int = |kind| ColumnType::int(kind, None, false);
    let zerofill =
        ColumnType { zerofill: true, unsigned: true, ..ColumnType::int(TypeKind::Int, Some(6), true) };
    vec![
        ("vi", int(TypeKind::Int), Value::Int(42)),
        ("vu", ColumnType::int(TypeKind::BigInt, None, true), Value::UInt(u64::MAX)),
        ("big", int(TypeKind::BigInt), Value::Int(20_200_131)),
        ("dc", ColumnType::decimal(6, 2), Value::Decimal(Decimal::from_i128(-1250, 2))),
        ("vf", ColumnType::real(TypeKind::Double, None), Value::Double(0.5)),
        ("f2", ColumnType::real(TypeKind::Double, Some((7, 2))), Value::Double(12.35)),
        ("fl", ColumnType::real(TypeKind::Float, None), Value::Float(1.1)),
        ("vs", ColumnType::string(TypeKind::VarChar, 20, text), string("Abc", text)),
        ("c", ColumnType::string(TypeKind::Char, 5, text), string("ab", text)),
        (
            "bs",
            ColumnType::string(TypeKind::VarChar, 10, Collation::UTF8MB4_BIN),
            string("aB", Collation::UTF8MB4_BIN),
        ),
        ("vb", ColumnType::string(TypeKind::VarBinary, 10, Collation::BINARY), Value::binary("AB")),
        ("l", ColumnType::string(TypeKind::VarChar, 10, latin1), string("é1", latin1)),
        (
            "ve",
            ColumnType::members(TypeKind::Enum, members(&["z", "a", "m"]), text),
            Value::Enum { index: 2, label: Str { bytes: "a".into(), collation: text } },
        ),
        (
            "st",
            ColumnType::members(TypeKind::Set, members(&["x", "y", "w"]), text),
            Value::Set { bits: 5, label: Str { bytes: "x,w".into(), collation: text } },
        ),
        (
            "j",
            ColumnType::string(TypeKind::Json, 0, Collation::UTF8MB4_BIN),
            string("{\"a\": [1, 2], \"b\": \"x\"}", Collation::UTF8MB4_BIN),
        ),
        ("y", ColumnType::temporal(TypeKind::Year, 0), Value::UInt(2069)),
        ("da", ColumnType::temporal(TypeKind::Date, 0), Value::Date(Date::new(2020, 1, 31))),
        ("dn", ColumnType::temporal(TypeKind::Date, 0), Value::Date(Date::ZERO)),
        ("ti", ColumnType::temporal(TypeKind::Time, 2), Value::Time(Time { micros: -45_296_780_000 })),
        (
            "dt",
            ColumnType::temporal(TypeKind::DateTime, 3),
            Value::DateTime(datetime("2020-02-29 10:11:12.345")),
        ),
        ("ts", ColumnType::temporal(TypeKind::Timestamp, 1), Value::Timestamp(1_700_000_000_500_000)),
        ("b", ColumnType::bit(10), Value::Bit { bits: 65, width: 10 }),
        ("zi", zerofill, Value::UInt(12)),
        ("n", int(TypeKind::Int), Value::Null),
    ]
}

/// Returns the names of the columns.
pub fn names() -> Vec<&'static str> {
    columns().into_iter().map(|(name, _, _)| name).collect()
}

/// Returns the row.
pub fn row() -> Vec<Value> {
    columns().into_iter().map(|(_, _, value)| value).collect()
}

/// Returns a column by name.
pub fn column(wanted: &str) -> Option<Expr> {
    let all = columns();
    let (ordinal, (name, ty, _)) = all.iter().enumerate().find(|(_, (name, _, _))| *name == wanted)?;
    let nullable = !matches!(*name, "dn" | "ts");
    Some(Expr::column(ordinal, ExprType::of_column(ty, nullable), format!("`test`.`h`.`{name}`")))
}
