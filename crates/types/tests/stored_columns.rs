//! Columns read from stored rows equal the decoded values and sort as they do.

use cohort_types::{
    Collation, ColumnType, Date, Decimal, ErrorCode, Field, Fronts, RowError, RowLayout, SqlError,
    StoredColumns, Str, TypeKind, Value,
};

fn types() -> Vec<ColumnType> {
    let text = |kind, collation| ColumnType::string(kind, 20, collation);
    vec![
        ColumnType::int(TypeKind::TinyInt, None, false),
        ColumnType::int(TypeKind::Int, None, false),
        ColumnType::int(TypeKind::BigInt, None, true),
        ColumnType::temporal(TypeKind::Date, 0),
        ColumnType::decimal(10, 2),
        text(TypeKind::Char, Collation::UTF8MB4_GENERAL_CI),
        text(TypeKind::VarBinary, Collation::BINARY),
        text(TypeKind::LongText, Collation::UTF8MB4_BIN),
    ]
}

fn layout(columns: usize) -> RowLayout {
    RowLayout::new(types().into_iter().take(columns).map(|ty| (ty, Value::Null)))
}

/// Returns the rows. The last one is too long to be plain.
fn rows() -> Vec<Vec<Value>> {
    let text = |text: &str, collation| Value::Str(Str { bytes: text.into(), collation });
    let row = |n: i64, word: &str, long: &str| {
        vec![
            Value::Int(n % 100),
            Value::Int(-n),
            Value::UInt(u64::MAX - n as u64),
            Value::Date(Date::new(2024, 2, (n % 28 + 1) as u8)),
            Value::Decimal(Decimal::from_i128(i128::from(n) - 5, 2)),
            text(word, Collation::UTF8MB4_GENERAL_CI),
            text(word, Collation::BINARY),
            text(long, Collation::UTF8MB4_BIN),
        ]
    };
    vec![
        row(1, "abcdefghij", "x"),
        row(2, "ABCDEFGHIJ", ""),
        row(3, "abcdefgh", "größer"),
        vec![Value::Null; 8],
        row(4, "", "y"),
        row(77, "zz", &"long".repeat(20_000)),
    ]
}

fn stored(rows: &[Vec<Value>]) -> Vec<Vec<u8>> {
    let encode = |row: &Vec<Value>| {
        let mut bytes = Vec::new();
        layout(row.len()).encode(row, &mut bytes).expect("fits");
        bytes
    };
    rows.iter().map(encode).collect()
}

fn refuse(error: RowError) -> SqlError {
    SqlError::new(ErrorCode::UnknownError, error.to_string())
}

#[test]
fn fields_are_what_rows_decode_to() {
    let layout = layout(8);
    let columns = StoredColumns::new(&layout, 0..8, &refuse);
    for (values, row) in rows().iter().zip(stored(&rows())) {
        let mut all = Vec::new();
        columns.values(&row, &mut all).expect("good");
        assert_eq!(&all, values);
        if columns.is_plain(&row) {
            let fields: Option<Vec<Field<'_>>> = columns.fields(&row).collect();
            for (n, field) in fields.expect("good").into_iter().enumerate() {
                assert_eq!(columns.field(n, &row), Some(field));
                assert_eq!(columns.value_of(n, field).expect("good"), values[n]);
            }
        }
    }
    let older = stored(&[rows()[0][..5].to_vec()]);
    assert!(!columns.is_plain(&older[0]));
    assert_eq!(columns.value(5, &older[0]).expect("good"), Value::Null);
    assert_eq!(columns.value(4, &older[0]).expect("good"), rows()[0][4]);
}

#[test]
fn fronts_and_comparisons_are_in_the_order_of_values() {
    let (layout, rows) = (layout(8), rows());
    let columns = StoredColumns::new(&layout, 0..8, &refuse);
    let bytes = stored(&rows);
    for (n, ty) in types().iter().enumerate() {
        for (a, x) in bytes.iter().zip(&rows) {
            for (b, y) in bytes.iter().zip(&rows) {
                let order = x[n].order(&y[n]);
                assert_eq!(columns.compare(n, a, b, ty.collation).expect("good"), order, "column {n}");
                let front = |row: &[u8]| columns.front(n, row, Fronts::of(ty.collation)).expect("good");
                let fronts = front(a).cmp(&front(b));
                assert!(fronts.is_eq() || fronts == order, "column {n}: {:?} {:?}", x[n], y[n]);
            }
        }
    }
}

#[test]
fn rows_that_are_cut_are_refused() {
    let layout = layout(8);
    let columns = StoredColumns::new(&layout, 0..8, &refuse);
    let row = &stored(&rows())[2];
    for end in 0..row.len() {
        assert!(!columns.is_plain(&row[..end]), "{end}");
        assert!(columns.values(&row[..end], &mut Vec::new()).is_err(), "{end}");
    }
    // Decreasing ends of texts.
    let mut row = row.clone();
    let ends = row.len() - "abcdefgh".len() * 2 - "größer".len() - 6;
    row[ends..ends + 2].copy_from_slice(&300_u16.to_le_bytes());
    assert!(columns.is_plain(&row));
    assert_eq!((columns.field(5, &row), columns.field(6, &row)), (None, None));
    assert!(columns.front(6, &row, Fronts::of(Collation::BINARY)).is_err());
}
