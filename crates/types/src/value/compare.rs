//! Order and hash of values of the same class.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::{Class, Value};
use crate::{DateTime, FixedOffset, TimeZone};

impl Value {
    /// Returns the class, which decides how the value compares.
    pub fn class(&self) -> Class {
        match self {
            Value::Null => Class::Null,
            Value::Int(_) | Value::UInt(_) | Value::Bit { .. } => Class::Int,
            Value::Float(_) | Value::Double(_) => Class::Real,
            Value::Decimal(_) => Class::Decimal,
            Value::Str(_) | Value::Enum { .. } | Value::Set { .. } => Class::Str,
            Value::Date(_) | Value::DateTime(_) | Value::Timestamp(_) => Class::DateTime,
            Value::Time(_) => Class::Time,
            Value::Fixed(_) => Class::Fixed,
        }
    }

    /// Compares two values of one class as comparison operators do, NULL first. Strings (and ENUM and SET, by
    /// their text) compare by the collation of `self`. Values of different classes sort by class, which is no
    /// order of SQL: coerce them first. A TIMESTAMP among dates counts as UTC: convert it to the session's
    /// zone first.
    pub fn compare(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::Str(a), Value::Str(b)) => a.collation.compare(&a.bytes, &b.bytes),
            (Value::Double(a), Value::Double(b)) => compare_f64(*a, *b),
            (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
            (Value::Date(a), Value::Date(b)) => a.cmp(b),
            (Value::Time(a), Value::Time(b)) => a.cmp(b),
            (Value::DateTime(a), Value::DateTime(b)) => a.cmp(b),
            (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
            (Value::Fixed(a), Value::Fixed(b)) => a.cmp(b),
            _ => self.compare_mixed(other),
        }
    }

    /// Compares two variants of one class, or values of two classes.
    fn compare_mixed(&self, other: &Value) -> Ordering {
        let (class, other_class) = (self.class(), other.class());
        if class != other_class {
            return (class as u8).cmp(&(other_class as u8));
        }
        match class {
            Class::Int => self.wide_int().cmp(&other.wide_int()),
            Class::Real => compare_f64(self.real(), other.real()),
            Class::DateTime => self.fields().cmp(&other.fields()),
            Class::Str => {
                let (a, b) = (self.as_bytes().unwrap_or_default(), other.as_bytes().unwrap_or_default());
                self.collation().map_or(Ordering::Equal, |c| c.compare(a, b))
            }
            Class::Null | Class::Decimal | Class::Time | Class::Fixed => Ordering::Equal,
        }
    }

    /// Compares as ORDER BY does: as [`Value::compare`], but ENUM by its index and SET by its bits.
    pub fn order(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Enum { index: a, .. }, Value::Enum { index: b, .. }) => a.cmp(b),
            (Value::Set { bits: a, .. }, Value::Set { bits: b, .. }) => a.cmp(b),
            _ => self.compare(other),
        }
    }

    /// Hashes so that values of one class that compare equal have equal hashes. This is not the trait,
    /// because values of different classes have no common equality.
    #[allow(clippy::should_implement_trait)]
    pub fn hash<H: Hasher>(&self, state: &mut H) {
        let class = self.class();
        state.write_u8(class as u8);
        match self {
            Value::Decimal(v) => v.hash(state),
            Value::Time(v) => v.hash(state),
            Value::Fixed(v) => Hash::hash(v, state),
            _ => match class {
                Class::Int => self.wide_int().hash(state),
                Class::Real => (self.real() + 0.0).to_bits().hash(state),
                Class::DateTime => self.fields().hash(state),
                _ => {
                    if let (Some(bytes), Some(collation)) = (self.as_bytes(), self.collation()) {
                        collation.hash(bytes, state);
                    }
                }
            },
        }
    }

    /// Returns the integer of a value of class Int.
    fn wide_int(&self) -> i128 {
        match self {
            Value::Int(v) => (*v).into(),
            Value::UInt(v) | Value::Bit { bits: v, .. } => (*v).into(),
            _ => 0,
        }
    }

    /// Returns the double of a value of class Real.
    fn real(&self) -> f64 {
        match self {
            Value::Float(v) => (*v).into(),
            Value::Double(v) => *v,
            _ => 0.0,
        }
    }

    /// Returns the datetime of a value of class DateTime.
    fn fields(&self) -> DateTime {
        match self {
            Value::Date(v) => v.at_midnight(),
            Value::DateTime(v) => *v,
            Value::Timestamp(v) => FixedOffset::UTC.to_local(*v),
            _ => DateTime::default(),
        }
    }
}

/// Compares doubles. No value is NaN; if one were, it would equal itself and sort first.
fn compare_f64(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}
