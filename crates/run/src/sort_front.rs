//! The front of a sort key as a number: where the numbers of two rows differ, they say which comes first. So
//! a comparison in a sort looks at one integer most of the time.

use cohort_expr::SortKey;
use cohort_types::{Class, Value};

/// What the fronts of a sort are of. Numbers of different kinds do not compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrontKind {
    /// Only NULL so far.
    Unknown,
    Integer,
    Real,
    Exact,
    Text,
    Date,
    Time,
    Timestamp,
    /// Several: fronts say nothing.
    Mixed,
}

/// The front of a value; `kind` is what came before, and becomes [`FrontKind::Mixed`] when this does not go
/// with it. 0 is NULL's.
#[inline]
pub(crate) fn front_of(value: &Value, key: &SortKey, kind: &mut FrontKind) -> u64 {
    let (own, front) = match value {
        Value::Null => (*kind, 0),
        Value::Int(v) => (FrontKind::Integer, of_signed(*v)),
        Value::UInt(v) => (FrontKind::Integer, of_signed(i64::try_from(*v).unwrap_or(i64::MAX))),
        Value::Bit { bits, .. } | Value::Set { bits, .. } => {
            (FrontKind::Integer, of_signed(i64::try_from(*bits).unwrap_or(i64::MAX)))
        }
        Value::Enum { index, .. } => (FrontKind::Integer, of_signed((*index).into())),
        Value::Float(v) => (FrontKind::Real, of_real(f64::from(*v))),
        Value::Double(v) => (FrontKind::Real, of_real(*v)),
        Value::Decimal(v) => (FrontKind::Exact, of_signed(v.truncate(0).to_i64().0)),
        Value::Str(text) => (FrontKind::Text, nonzero(key.collation.sort_key_front(&text.bytes))),
        Value::Date(v) => (FrontKind::Date, of_date(v.to_packed(), 0)),
        Value::DateTime(v) => (FrontKind::Date, of_date(v.date.to_packed(), v.micros_of_day())),
        Value::Time(v) => (FrontKind::Time, of_signed(v.micros)),
        Value::Timestamp(v) => (FrontKind::Timestamp, of_signed(*v)),
    };
    debug_assert!(value.is_null() == (value.class() == Class::Null));
    if own != *kind {
        *kind = if *kind == FrontKind::Unknown { own } else { FrontKind::Mixed };
    }
    if key.descending { !front } else { front }
}

/// Keeps the order, and leaves 0 to NULL; the lowest bit is lost.
fn nonzero(v: u64) -> u64 {
    (v >> 1) | (1 << 63)
}

fn of_signed(v: i64) -> u64 {
    nonzero(v as u64 ^ (1 << 63))
}

fn of_real(v: f64) -> u64 {
    let bits = (if v == 0.0 { 0.0 } else { v }).to_bits();
    nonzero(if bits >> 63 == 1 { !bits } else { bits | (1 << 63) })
}

/// A date takes 23 bits, the microseconds of a day 37.
fn of_date(packed: u32, micros_of_day: i64) -> u64 {
    nonzero((u64::from(packed) << 37) | (micros_of_day as u64))
}
