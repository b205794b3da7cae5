//! Row images match the bytes recorded from a MariaDB server (golden/binlog_rows.txt).

use cohort_base::Reader;
use cohort_types::{
    BinlogColumn, Collation, ColumnType, Date, DateTime, Decimal, ImageError, SqlMode, Str, Time,
    TypeKind as K, Value, write_value,
};

const TEXT: Collation = Collation::UTF8MB4_GENERAL_CI;
const LATIN1: Collation = Collation::LATIN1_SWEDISH_CI;

fn decimal(text: &str, scale: i32) -> Value {
    Value::Decimal(Decimal::parse(text.as_bytes()).0.round(scale).expect("fits"))
}

fn datetime(text: &str) -> Value {
    Value::DateTime(DateTime::parse(text.as_bytes(), SqlMode::NONE).value.expect("a datetime"))
}

fn time(text: &str) -> Value {
    Value::Time(Time::parse(text.as_bytes(), SqlMode::NONE).value.expect("a time"))
}

fn string(collation: Collation, text: &str) -> Value {
    Value::Str(Str { bytes: text.into(), collation })
}

fn padded(text: &str) -> Value {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(10, 0);
    Value::binary(bytes)
}

/// The columns of the recorded table, with the values of its two rows.
fn columns() -> Vec<(ColumnType, Value, Value)> {
    let int = |kind, unsigned| ColumnType::int(kind, None, unsigned);
    let text = |kind, length| ColumnType::string(kind, length, TEXT);
    let latin1 = |kind, length| ColumnType::string(kind, length, LATIN1);
    let of = ColumnType::temporal;
    let labels = |list: &str| list.split(',').map(str::to_string).collect::<Vec<_>>();
    let enumeration = ColumnType::members(K::Enum, labels("a,it's"), LATIN1);
    let wide_set = ColumnType::members(K::Set, labels("a,bb,c,d,e,f,g,h,i"), TEXT);
    let small_set = ColumnType::members(K::Set, labels("x"), TEXT);
    let sets =
        [wide_set.set_value(0x101), wide_set.set_value(0), small_set.set_value(1), small_set.set_value(0)];
    let [wide, wide_empty, small, small_empty] = sets.map(|s| s.expect("members"));
    let enums = [2, 1].map(|n| enumeration.enum_value(n).expect("a member"));
    let [second, first] = enums;
    let date = |y, m, d| Value::Date(Date::new(y, m, d));
    let s = |t: &str| string(TEXT, t);
    vec![
        (int(K::TinyInt, false), Value::Int(-5), Value::Int(127)),
        (int(K::SmallInt, true), Value::UInt(65_535), Value::UInt(0)),
        (int(K::MediumInt, false), Value::Int(-8_388_608), Value::Int(8_388_607)),
        (int(K::Int, true), Value::UInt(u32::MAX.into()), Value::UInt(0)),
        (int(K::BigInt, false), Value::Int(i64::MIN), Value::Int(i64::MAX)),
        (int(K::BigInt, true), Value::UInt(u64::MAX), Value::UInt(0)),
        (ColumnType::decimal(10, 2), decimal("-12345678.91", 2), decimal("12345678.91", 2)),
        (
            ColumnType::decimal(65, 38),
            decimal("123456789012345678901234567.12345678901234567890123456789012345678", 38),
            decimal("-0.00000000000000000000000000000000000001", 38),
        ),
        (ColumnType::decimal(5, 0).unsigned(), decimal("99999", 0), decimal("0", 0)),
        (ColumnType::real(K::Float, None), Value::Float(1.5), Value::Float(-1.5e30)),
        (ColumnType::real(K::Double, None), Value::Double(-2.25), Value::Double(1e300)),
        (
            ColumnType::bit(12),
            Value::Bit { bits: 0b1010_1010_1010, width: 12 },
            Value::Bit { bits: 0, width: 12 },
        ),
        (ColumnType::bit(64), Value::Bit { bits: u64::MAX, width: 64 }, Value::Bit { bits: 1, width: 64 }),
        (text(K::Char, 10), s("ab"), s("")),
        (text(K::VarChar, 10), s("é€"), s("")),
        (text(K::Binary, 10), padded("x"), padded("")),
        (text(K::VarBinary, 10), Value::binary(*b"y\0z"), Value::binary(*b"")),
        (text(K::Char, 255), s("ñ"), s("")),
        (latin1(K::VarChar, 300), string(LATIN1, "ÿ€"), string(LATIN1, "")),
        (text(K::VarChar, 64), s("x64"), s("")),
        (text(K::VarChar, 63), s("x63"), s("")),
        (latin1(K::Char, 5), string(LATIN1, "ç"), string(LATIN1, "")),
        (text(K::TinyText, 0), s("tiny"), s("")),
        (text(K::Text, 0), s("text"), s("")),
        (text(K::MediumText, 0), s("medium"), s("")),
        (text(K::LongText, 0), s("long"), s("")),
        (text(K::TinyBlob, 0), Value::binary(*b"tb"), Value::binary(*b"")),
        (text(K::Blob, 0), Value::binary(*b"bl"), Value::binary(*b"")),
        (
            text(K::Json, 0),
            string(Collation::UTF8MB4_BIN, "{\"a\": 1}"),
            string(Collation::UTF8MB4_BIN, "[]"),
        ),
        (of(K::Date, 0), date(2026, 1, 2), date(0, 0, 0)),
        (of(K::Time, 0), time("-838:59:59"), time("0")),
        (of(K::Time, 1), time("-00:00:01.5"), time("838:59:59.9")),
        (of(K::Time, 4), time("10:11:12.1234"), time("-00:00:00.0001")),
        (of(K::Time, 6), time("-10:11:12.123456"), time("00:00:00.000001")),
        (of(K::DateTime, 0), datetime("2026-01-02 03:04:05"), datetime("0000-00-00")),
        (of(K::DateTime, 2), datetime("2026-01-02 03:04:05.67"), datetime("0000-00-00 00:00:00.5")),
        (of(K::DateTime, 6), datetime("9999-12-31 23:59:59.999999"), datetime("1000-01-01 00:00:00.000001")),
        (of(K::Timestamp, 0), Value::Timestamp(1_767_323_045_000_000), Value::Timestamp(1_000_000)),
        (of(K::Timestamp, 3), Value::Timestamp(1_767_323_045_678_000), Value::Timestamp(946_684_800_001_000)),
        (of(K::Timestamp, 6), Value::Timestamp(2_147_483_647_999_999), Value::Timestamp(1_000_001)),
        (of(K::Year, 0), Value::UInt(2026), Value::UInt(0)),
        (enumeration, second, first),
        (wide_set, wide, wide_empty),
        (small_set, small, small_empty),
    ]
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().map(|c| c.to_digit(16).expect("hexadecimal")).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn recorded(field: &str) -> Vec<Vec<u8>> {
    let lines = include_str!("golden/binlog_rows.txt").lines();
    lines.filter_map(|l| l.strip_prefix(field)?.strip_prefix(' ')).map(hex).collect()
}

#[test]
fn table_map_fields_are_the_recorded_ones() {
    let columns: Vec<BinlogColumn> = columns().iter().map(|(ty, ..)| BinlogColumn::of(ty)).collect();
    let codes: Vec<u8> = columns.iter().map(|c| c.code).collect();
    assert_eq!(codes, recorded("types")[0]);
    let mut metadata = Vec::new();
    columns.iter().for_each(|c| c.write_metadata(&mut metadata));
    assert_eq!(metadata, recorded("metadata")[0]);
    // Optional metadata field 1: a bit for each numeric column, set if it is unsigned, highest bit first.
    let signs: Vec<bool> = columns.iter().filter(|c| c.is_numeric()).map(|c| c.unsigned).collect();
    let bytes: Vec<u8> = signs
        .chunks(8)
        .map(|c| c.iter().enumerate().fold(0, |v, (n, &bit)| v | u8::from(bit) << (7 - n)))
        .collect();
    let optional = &recorded("optional")[0];
    assert_eq!(optional[..2 + bytes.len()], [&[1, bytes.len() as u8][..], &bytes].concat());
    let mut parsed = BinlogColumn::parse_all(&codes, &metadata).expect("good");
    parsed.iter_mut().zip(&columns).for_each(|(p, c)| p.unsigned = c.unsigned);
    assert_eq!(parsed, columns);
}

#[test]
fn row_images_are_the_recorded_ones() {
    let rows = &recorded("rows")[0];
    let mut from = Reader::new(rows);
    for n in 0..2 {
        let nulls = from.bytes(columns().len().div_ceil(8)).expect("a null bitmap");
        assert!(nulls[..nulls.len() - 1].iter().all(|&b| b == 0), "no column is NULL");
        let mut skipping = from.clone();
        for (column, (ty, first, second)) in columns().into_iter().enumerate() {
            let value = if n == 0 { first } else { second };
            let before = from.rest();
            let wire = BinlogColumn::of(&ty);
            assert_eq!(
                wire.read(&ty, &mut from),
                Ok(value.clone()),
                "row {n} column {column} {}",
                ty.sql_text()
            );
            let mut written = Vec::new();
            write_value(&ty, &value, &mut written).expect("of the class");
            assert_eq!(written, before[..before.len() - from.remaining()], "row {n} column {column}");
            wire.skip(&mut skipping).expect("good");
            assert_eq!(skipping.remaining(), from.remaining());
        }
    }
    assert!(from.is_empty());
}

#[test]
fn bad_images_are_refused() {
    for (ty, value, _) in columns() {
        let mut bytes = Vec::new();
        write_value(&ty, &value, &mut bytes).expect("of the class");
        for end in 0..bytes.len() {
            assert!(BinlogColumn::of(&ty).read(&ty, &mut Reader::new(&bytes[..end])).is_err());
        }
    }
    assert_eq!(BinlogColumn::parse_all(&[99], &[]), Err(ImageError::UnknownType(99)));
    assert_eq!(BinlogColumn::parse_all(&[15], &[1]), Err(ImageError::Corrupt));
    assert_eq!(BinlogColumn::parse_all(&[3], &[1]), Err(ImageError::Corrupt));
    let int = ColumnType::int(K::Int, None, false);
    assert_eq!(write_value(&int, &Value::text("1"), &mut Vec::new()), Err(ImageError::WrongClass));
}
