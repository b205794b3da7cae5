//! Encodes values as bytes that are equal if `=` considers the values equal, also for operands of different
//! types.

use std::borrow::Cow;

use cohort_expr::{Expr, TypeClass, append_group_key};
use cohort_types::{Collation, Decimal, Interrupt, NoWarnings, SqlResult, Str, TypeKind, Value};

/// Conversion of values before their bytes are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyMode {
    /// No conversion: both sides have the same type.
    Plain,
    /// Integers and decimals.
    Exact,
    /// Doubles.
    Real,
    /// Texts, including labels of ENUM and SET.
    Text,
}

impl KeyMode {
    /// Returns the mode for comparing two expressions. Callers pass only pairs of numbers, of texts, or of
    /// the same type.
    pub fn of(left: &Expr, right: &Expr) -> KeyMode {
        let (left, right) = (left.ty(), right.ty());
        let is_exact = |class| matches!(class, TypeClass::Int | TypeClass::Decimal);
        match (left.class(), right.class()) {
            (TypeClass::Int, TypeClass::Int) => KeyMode::Plain,
            (a, b) if is_exact(a) && is_exact(b) => KeyMode::Exact,
            (TypeClass::Real, b) if is_exact(b) => KeyMode::Real,
            (a, TypeClass::Real) if is_exact(a) => KeyMode::Real,
            (TypeClass::String, TypeClass::String) => {
                let has_label = |kind| matches!(kind, TypeKind::Enum | TypeKind::Set);
                if has_label(left.kind) || has_label(right.kind) { KeyMode::Text } else { KeyMode::Plain }
            }
            _ => KeyMode::Plain,
        }
    }
}

/// Appends the encoded value.
#[inline]
pub(crate) fn append_equal_key(
    value: &Value,
    mode: KeyMode,
    collation: Collation,
    key: &mut Vec<u8>,
    interrupt: &dyn Interrupt,
) -> SqlResult<()> {
    if mode == KeyMode::Plain {
        return append_group_key(value, collation, key, interrupt);
    }
    let plain = match (mode, value) {
        (KeyMode::Exact, Value::Int(v)) => Cow::Owned(Value::Decimal(Decimal::from_i64(*v))),
        (KeyMode::Exact, Value::UInt(v) | Value::Bit { bits: v, .. }) => {
            Cow::Owned(Value::Decimal(Decimal::from_u64(*v)))
        }
        (KeyMode::Real, value) => {
            value.to_f64(&mut NoWarnings).map_or(Cow::Borrowed(value), |v| Cow::Owned(Value::Double(v)))
        }
        (KeyMode::Text, Value::Enum { label, .. } | Value::Set { label, .. }) => {
            Cow::Owned(Value::Str(Str { bytes: label.bytes.clone(), collation }))
        }
        _ => Cow::Borrowed(value),
    };
    append_group_key(&plain, collation, key, interrupt)
}
