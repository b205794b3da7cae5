//! Result metadata of expressions, compared with MariaDB 10.11. `tests/golden/record_types.sh` records it.

mod support;

use cohort_expr::{ExprType, TypeClass};
use cohort_types::TypeKind;
use support::{bind, bind_aggregate, session_env};

/// Formats metadata like the golden file.
fn described(ty: &ExprType) -> String {
    let name = match ty.kind {
        _ if ty.null_literal => "NULL",
        TypeKind::Int | TypeKind::Year => "LONG",
        TypeKind::BigInt => "LONGLONG",
        TypeKind::Decimal => "NEWDECIMAL",
        TypeKind::Double => "DOUBLE",
        TypeKind::Float => "FLOAT",
        TypeKind::Date => "DATE",
        TypeKind::Time => "TIME",
        TypeKind::DateTime => "DATETIME",
        TypeKind::Char => "STRING",
        TypeKind::MediumText | TypeKind::MediumBlob => "BLOB",
        TypeKind::LongText => "LONG_BLOB",
        _ => "VAR_STRING",
    };
    let bytes = if ty.class() == TypeClass::String && !ty.null_literal {
        u64::from(ty.length) * if ty.collation.0 == 63 { 1 } else { 4 }
    } else {
        u64::from(ty.length)
    };
    let mut line = format!("{name} {bytes} {}", ty.decimals);
    if !ty.nullable {
        line.push_str(" NOT_NULL");
    }
    if ty.unsigned {
        line.push_str(" UNSIGNED");
    }
    line
}

/// Compares metadata, ignoring harmless differences: clients allocate buffers by the larger size.
fn same(got: &str, wanted: &str) -> bool {
    let (got, wanted): (Vec<&str>, Vec<&str>) = (got.split(' ').collect(), wanted.split(' ').collect());
    got[0] == wanted[0]
        && got[1] == wanted[1]
        && got[2] == wanted[2]
        && got.contains(&"UNSIGNED") == wanted.contains(&"UNSIGNED")
        // NOT NULL may be missing if MariaDB knows more, but not vice versa.
        && (!got.contains(&"NOT_NULL") || wanted.contains(&"NOT_NULL"))
}

#[test]
fn result_metadata() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/types.txt");
    let text = std::fs::read_to_string(path).expect("the golden file is there");
    let env = session_env();
    let mut wrong = Vec::new();
    for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let (expression, wanted) = line.split_once('\t').expect("expression TAB metadata");
        let ty = match bind_aggregate(expression, &env).expect("binds") {
            Some(aggregate) => aggregate.ty,
            None => bind(expression, &env).expect("binds").ty(),
        };
        let got = described(&ty);
        if !same(&got, wanted) {
            wrong.push(format!("{expression}\n   MariaDB: {wanted}\n    Cohort: {got}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
