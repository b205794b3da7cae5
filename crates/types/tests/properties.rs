//! Properties of all types and values: round trips through rows, keys and row images, and the order of keys.

use cohort_base::Reader;
use cohort_types::{
    BinlogColumn, Collation, ColumnType, Date, DateTime, Decimal, FixedOffset, KeyPart, RowLayout, SqlMode,
    StoreContext, Str, Time, TypeKind as K, Value, write_value,
};
use proptest::prelude::*;

const COLLATIONS: [u16; 11] = [8, 11, 33, 45, 46, 47, 63, 65, 83, 192, 224];

/// Types of every kind.
fn types() -> impl Strategy<Value = ColumnType> {
    let labels = |n: usize| (0..n).map(|i| format!("m{i}")).collect::<Vec<_>>();
    let text = Collation::UTF8MB4_GENERAL_CI;
    let ints = vec![K::TinyInt, K::SmallInt, K::MediumInt, K::Int, K::BigInt];
    prop_oneof![
        (prop::sample::select(ints), any::<bool>()).prop_map(|(k, u)| ColumnType::int(k, None, u)),
        (1u8..=65, 0u8..=38).prop_map(|(p, s)| ColumnType::decimal(p, s.min(p))),
        prop::sample::select(vec![K::Float, K::Double]).prop_map(|k| ColumnType::real(k, None)),
        (1u8..=64).prop_map(ColumnType::bit),
        (prop::sample::select(vec![K::Time, K::DateTime, K::Timestamp]), 0u8..=6)
            .prop_map(|(k, d)| ColumnType::temporal(k, d)),
        prop::sample::select(vec![K::Date, K::Year]).prop_map(|k| ColumnType::temporal(k, 0)),
        prop::sample::select(vec![1usize, 3, 255, 256, 300]).prop_map(move |n| ColumnType::members(
            K::Enum,
            labels(n),
            text
        )),
        prop::sample::select(vec![1usize, 8, 9, 24, 25, 33, 64]).prop_map(move |n| ColumnType::members(
            K::Set,
            labels(n),
            text
        )),
        (
            prop::sample::select(vec![
                K::Char,
                K::VarChar,
                K::Text,
                K::LongText,
                K::VarBinary,
                K::Binary,
                K::Blob
            ]),
            1u32..=80,
            prop::sample::select(&COLLATIONS[..])
        )
            .prop_map(|(k, n, c)| ColumnType::string(k, n, Collation(c))),
    ]
}

/// All values that can be assigned, including NULL.
fn inputs() -> impl Strategy<Value = Value> {
    prop_oneof![
        1 => Just(Value::Null),
        3 => any::<i64>().prop_map(Value::Int),
        3 => (-300i64..300).prop_map(Value::Int),
        2 => any::<u64>().prop_map(Value::UInt),
        2 => any::<f64>().prop_filter_map("finite", |v| v.is_finite().then_some(Value::Double(v))),
        3 => (any::<i128>(), 0u8..=38).prop_map(|(m, s)| Value::Decimal(Decimal::from_i128(m, s))),
        4 => "[ -~]{0,12}".prop_map(Value::text),
        4 => "[a-cA-C éÉßЖ😀\t ]{0,8}".prop_map(Value::text),
        2 => prop::collection::vec(any::<u8>(), 0..12).prop_map(Value::binary),
        2 => (0u16..=9999, 1u8..=12, 1u8..=28).prop_map(|(y, m, d)| Value::Date(Date::new(y, m, d))),
        2 => (-3_020_399_999_999i64..=3_020_399_999_999).prop_map(|micros| Value::Time(Time { micros })),
        2 => (1i64..=2_147_483_647_999_999).prop_map(Value::Timestamp),
        2 => (0u16..=9999, 1u8..=12, 1u8..=28, 0i64..86_400_000_000)
            .prop_map(|(y, m, d, t)| Value::DateTime(DateTime::from_micros_of_day(Date::new(y, m, d), t))),
    ]
}

/// Returns the value that the column stores. Bad values are adjusted.
fn stored(ty: &ColumnType, value: Value) -> Value {
    let ctx = StoreContext {
        sql_mode: SqlMode::NONE,
        strict: false,
        database: "d",
        table: "t",
        column: "c",
        row: 1,
        zone: &FixedOffset::UTC,
        now_micros: 0,
    };
    let mut warnings = Vec::new();
    let stored = ty.store(value, &ctx, &mut warnings).expect("no strict mode");
    let mut again = Vec::new();
    assert_eq!(ty.store(stored.clone(), &ctx, &mut again), Ok(stored.clone()), "{}", ty.sql_text());
    // Storing the empty ENUM value again is allowed to warn.
    let is_error_value = matches!(stored, Value::Enum { index: 0, .. });
    assert!(again.is_empty() || is_error_value, "{} {stored:?} {again:?}", ty.sql_text());
    stored
}

fn columns() -> impl Strategy<Value = Vec<(ColumnType, Value)>> {
    prop::collection::vec((types(), inputs()), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn rows_give_back_what_was_stored(columns in columns()) {
        let values: Vec<Value> = columns.iter().map(|(ty, v)| stored(ty, v.clone())).collect();
        let layout = RowLayout::new(columns.iter().map(|(ty, _)| (ty.clone(), Value::Null)));
        let mut row = Vec::new();
        layout.encode(&values, &mut row).expect("stored values");
        let mut back = Vec::new();
        layout.decode(&row, &mut back).expect("a good row");
        prop_assert_eq!(&back, &values);
        for (n, value) in values.iter().enumerate() {
            prop_assert_eq!(layout.decode_one(&row, n), Ok(value.clone()));
        }
        for end in 0..row.len() {
            prop_assert!(layout.decode(&row[..end], &mut Vec::new()).is_err());
        }
    }

    #[test]
    fn flipped_bytes_never_panic(columns in columns(), at in any::<prop::sample::Index>(), flip in 1u8..) {
        let values: Vec<Value> = columns.iter().map(|(ty, v)| stored(ty, v.clone())).collect();
        let layout = RowLayout::new(columns.iter().map(|(ty, _)| (ty.clone(), Value::Null)));
        let mut row = Vec::new();
        layout.encode(&values, &mut row).expect("stored values");
        let at = at.index(row.len());
        row[at] ^= flip;
        let _ = layout.decode(&row, &mut Vec::new());
    }

    #[test]
    fn keys_order_as_values_do(ty in types(), a in inputs(), b in inputs(), nullable in any::<bool>()) {
        let nullable = nullable || a.is_null() || b.is_null();
        let part = KeyPart { ty: ty.clone(), prefix: None, nullable };
        let (a, b) = (stored(&ty, a), stored(&ty, b));
        let key = |v: &Value| {
            let mut key = Vec::new();
            part.encode(v, &mut key).expect("stored values");
            key
        };
        let (x, y) = (key(&a), key(&b));
        prop_assert_eq!(x.cmp(&y), a.order(&b), "{} {:?} {:?}", ty.sql_text(), a, b);
        prop_assert!(x == y || !y.starts_with(&x), "no key is a prefix of another");
        for (key, value) in [(&x, &a), (&y, &b)] {
            let mut rest = &key[..];
            part.skip(&mut rest).expect("a key");
            prop_assert!(rest.is_empty());
            let mut rest = &key[..];
            if part.is_reversible() {
                prop_assert_eq!(part.decode(&mut rest), Ok(value.clone()));
            }
            for end in 0..key.len() {
                prop_assert!(part.skip(&mut &key[..end]).is_err());
                let _ = part.decode(&mut &key[..end]);
            }
        }
    }

    #[test]
    fn row_images_give_back_what_was_stored(ty in types(), v in inputs()) {
        let value = stored(&ty, v);
        if !value.is_null() {
            let mut image = Vec::new();
            write_value(&ty, &value, &mut image).expect("a stored value");
            let wire = BinlogColumn::of(&ty);
            let mut from = Reader::new(&image);
            prop_assert_eq!(wire.read(&ty, &mut from), Ok(value));
            prop_assert!(from.is_empty());
        }
    }

    #[test]
    fn foreign_bytes_never_panic(ty in types(), bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let layout = RowLayout::new([(ty.clone(), Value::Null)]);
        let _ = layout.decode(&bytes, &mut Vec::new());
        let part = KeyPart { ty: ty.clone(), prefix: None, nullable: true };
        let _ = part.decode(&mut &bytes[..]);
        let _ = part.skip(&mut &bytes[..]);
        let _ = BinlogColumn::of(&ty).read(&ty, &mut Reader::new(&bytes));
        if let Ok(columns) = BinlogColumn::parse_all(&bytes[..bytes.len() / 2], &bytes[bytes.len() / 2..]) {
            for column in columns {
                let _ = column.read(&ty, &mut Reader::new(&bytes));
            }
        }
    }

    #[test]
    fn sort_keys_order_as_compare_does(a in "[ !a-dA-Dé€Ж😀\t\u{0}]{0,6}", b in "[ !a-dA-Dé€Ж😀\t\u{0}]{0,6}") {
        for collation in Collation::all() {
            let key = |text: &str| {
                let mut key = Vec::new();
                collation.sort_key(text.as_bytes(), &mut key);
                key
            };
            let order = collation.compare(a.as_bytes(), b.as_bytes());
            prop_assert_eq!(key(&a).cmp(&key(&b)), order, "{} {:?} {:?}", collation.name(), a, b);
            prop_assert_eq!(collation.compare(b.as_bytes(), a.as_bytes()), order.reverse());
        }
    }

    #[test]
    fn the_front_of_a_sort_key_is_its_first_bytes(text in "[a-dX-Z~é€ \\-]{0,12}", plain in "[a-dX-Z!-]{0,12}") {
        for (collation, text) in Collation::all().flat_map(|c| [(c, &text), (c, &plain)]) {
            let mut key = Vec::new();
            collation.sort_key(text.as_bytes(), &mut key);
            key.resize(key.len().max(8), 0);
            let front = collation.sort_key_front(text.as_bytes());
            prop_assert_eq!(&front.to_be_bytes()[..], &key[..8], "{} {:?}", collation.name(), text);
        }
    }

    #[test]
    fn like_finds_parts(before in "[a-c%_é]{0,5}", part in "[a-cé]{0,3}", after in "[a-c]{0,5}") {
        let text = [before.as_str(), &part, &after].concat();
        let (pattern, longer) = (["%", &part, "%"].concat(), [text.as_str(), "_"].concat());
        let collation = Collation::UTF8MB4_BIN;
        prop_assert!(collation.like(text.as_bytes(), pattern.as_bytes(), Some('\\')));
        let found = collation.like(text.as_bytes(), longer.as_bytes(), None);
        prop_assert!(!found || before.contains('%'));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn decimals_compute_as_integers_do(a in any::<i64>(), b in any::<i64>(), s in 0u8..=18, t in 0u8..=18) {
        let (x, y) = (Decimal::from_i128(a.into(), s), Decimal::from_i128(b.into(), t));
        let scale = s.max(t);
        let (wide_a, wide_b) =
            (i128::from(a) * 10i128.pow((scale - s).into()), i128::from(b) * 10i128.pow((scale - t).into()));
        prop_assert_eq!(x.add(&y), Ok(Decimal::from_i128(wide_a + wide_b, scale)));
        prop_assert_eq!(x.mul(&y), Ok(Decimal::from_i128(i128::from(a) * i128::from(b), s + t)));
        prop_assert_eq!(x.cmp(&y), wide_a.cmp(&wide_b));
        if b != 0 {
            prop_assert_eq!(x.rem(&y), Some(Decimal::from_i128(wide_a % wide_b, scale)));
            prop_assert_eq!(x.div_int(&y), Some(Ok(Decimal::from_i128(wide_a / wide_b, 0))));
        }
    }

    #[test]
    fn decimals_print_and_pack_without_loss(digits in "[0-9]{0,27}", fraction in "[0-9]{0,38}", negative in any::<bool>()) {
        let text = format!("{}{digits}.{fraction}0", if negative { "-" } else { "" });
        let (number, _) = Decimal::parse(text.as_bytes());
        let printed = number.to_string();
        prop_assert_eq!(Decimal::parse(printed.as_bytes()).0.to_string(), printed.clone());
        let mut packed = Vec::new();
        number.write_packed(65, 38, &mut packed);
        let back = Decimal::read_packed(65, 38, &packed).expect("packed");
        prop_assert_eq!(back, number, "{}", printed);
        prop_assert_eq!(back.to_f64(), printed.parse::<f64>().expect("a number"));
    }

    #[test]
    fn division_undoes_multiplication(a in any::<i128>(), b in any::<i64>(), s in 0u8..=20, t in 0u8..=18) {
        let (x, y) = (Decimal::from_i128(a, s), Decimal::from_i128(b.into(), t));
        if b != 0 {
            let (quotient, rest) = (x.div_int(&y).expect("not by 0"), x.rem(&y).expect("not by 0"));
            if let Ok(product) = quotient.and_then(|q| q.mul(&y)) {
                prop_assert_eq!(product.add(&rest), Ok(x));
            }
        }
    }

    #[test]
    fn temporals_read_what_they_print(y in 1u16..=9999, m in 1u8..=12, d in 1u8..=28, t in 0i64..86_400_000_000) {
        let value = DateTime::from_micros_of_day(Date::new(y, m, d), t);
        let mut text = Vec::new();
        value.write_text(6, &mut text);
        prop_assert_eq!(DateTime::parse(&text, SqlMode::NONE).value, Some(value));
        text.clear();
        let time = Time { micros: t * 20 - 800_000_000_000 };
        time.write_text(6, &mut text);
        prop_assert_eq!(Time::parse(&text, SqlMode::NONE).value, Some(time.with_decimals(6, SqlMode::NONE)));
    }

    #[test]
    fn odd_text_never_panics(text in "[0-9:. Tt/eE+\\-x]{0,20}", any_text in ".{0,12}", mode in 0u64..1 << 35) {
        for text in [text.as_bytes(), any_text.as_bytes()] {
            let mode = SqlMode(mode);
            let _ = (DateTime::parse(text, mode), Date::parse(text, mode), Time::parse(text, mode));
            let number = Decimal::parse(text).0;
            let _ = (DateTime::from_decimal(&number, mode), Time::from_decimal(&number, mode));
            for value in [Value::text(String::from_utf8_lossy(text)), Value::binary(text)] {
                let sink = &mut cohort_types::NoWarnings;
                let _ = (value.to_f64(sink), value.to_int(sink), value.to_decimal(sink), value.to_bool(sink));
            }
            let _ = cohort_types::is_valid_json(text);
        }
    }
}

#[test]
fn text_of_other_character_sets_goes_into_images_in_their_bytes() {
    let ty = ColumnType::string(K::VarChar, 10, Collation::LATIN1_SWEDISH_CI);
    let value = Value::Str(Str { bytes: "é€".into(), collation: ty.collation });
    let mut image = Vec::new();
    write_value(&ty, &value, &mut image).expect("text");
    assert_eq!(image, [2, 0xe9, 0x80]);
}
