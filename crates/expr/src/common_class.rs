//! Conversion of values to the type of their result column.

use cohort_types::{Collation, NoWarnings, Str, Value};

use crate::expr_type::{ExprType, TypeClass};

/// Converts a value to the class of a result column, and decimals to its scale.
pub fn to_common_class(value: Value, ty: &ExprType) -> Value {
    let mut ignored = NoWarnings;
    match (&value, ty.class()) {
        (Value::Null, _) => return value,
        (Value::Decimal(d), TypeClass::Decimal) if d.scale() == ty.decimals => return value,
        (Value::Decimal(_), TypeClass::Decimal) => {}
        _ if class_of(&value) == Some(ty.class()) => return value,
        _ => {}
    }
    match ty.class() {
        TypeClass::String => {
            let collation =
                if ty.collation == Collation::BINARY { Collation::UTF8MB4_GENERAL_CI } else { ty.collation };
            let bytes = value.to_text().into_bytes();
            Value::Str(Str { bytes, collation })
        }
        TypeClass::Real => value.to_f64(&mut ignored).map_or(Value::Null, Value::Double),
        TypeClass::Decimal => match value.to_decimal(&mut ignored).map(|d| d.round(ty.decimals.into())) {
            Some(Ok(rounded)) => Value::Decimal(rounded),
            _ => value,
        },
        _ => value,
    }
}

/// Variant that keeps the scale of decimals.
pub fn to_class_of(value: Value, ty: &ExprType) -> Value {
    match (&value, ty.class()) {
        (Value::Decimal(_), TypeClass::Decimal) => value,
        _ => to_common_class(value, ty),
    }
}

fn class_of(value: &Value) -> Option<TypeClass> {
    Some(match value {
        Value::Null => return None,
        Value::Int(_) | Value::UInt(_) | Value::Bit { .. } => TypeClass::Int,
        Value::Float(_) | Value::Double(_) => TypeClass::Real,
        Value::Decimal(_) => TypeClass::Decimal,
        Value::Str(_) | Value::Enum { .. } | Value::Set { .. } => TypeClass::String,
        Value::Date(_) => TypeClass::Date,
        Value::Time(_) => TypeClass::Time,
        Value::Fixed(_) => TypeClass::Fixed,
        Value::DateTime(_) | Value::Timestamp(_) => TypeClass::DateTime,
    })
}
