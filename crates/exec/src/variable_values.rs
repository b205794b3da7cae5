//! Values for SET of a variable.

use cohort_config::{VarId, VarValue};
use cohort_expr::TimeZone;
use cohort_types::{Collation, SqlError, SqlResult, Value};

pub(crate) fn from_value(value: &Value) -> VarValue {
    match value {
        Value::Null => VarValue::Null,
        Value::Int(n) => VarValue::Int(*n),
        Value::UInt(n) => VarValue::UInt(*n),
        Value::Double(v) => VarValue::Double(*v),
        Value::Float(v) => VarValue::Double(f64::from(*v)),
        Value::Decimal(_) => VarValue::Double(value.to_f64(&mut cohort_types::NoWarnings).unwrap_or(0.0)),
        other => VarValue::text(&other.to_text()),
    }
}

/// Converts numbers of character sets and collations to names: the output of mariadb-binlog contains numbers.
pub(crate) fn charset_by_number(id: VarId, value: VarValue) -> VarValue {
    use VarId::*;
    let number = match value {
        VarValue::Int(n) => u16::try_from(n).ok(),
        VarValue::UInt(n) => u16::try_from(n).ok(),
        _ => None,
    };
    let Some(collation) = number.and_then(Collation::from_id) else { return value };
    match id {
        CharacterSetServer
        | CharacterSetClient
        | CharacterSetConnection
        | CharacterSetResults
        | CharacterSetDatabase
        | CharacterSetFilesystem => VarValue::text(collation.charset().name()),
        CollationServer | CollationConnection | CollationDatabase => VarValue::text(collation.name()),
        _ => value,
    }
}

pub(crate) fn check_time_zone(value: &VarValue) -> SqlResult<()> {
    let known = matches!(value, VarValue::Text(name) if TimeZone::parse(name).is_some());
    let error = || SqlError::unknown_time_zone(value);
    if known { Ok(()) } else { Err(error()) }
}
