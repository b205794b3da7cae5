//! Comparison of values by MariaDB's rules for pairs of classes; sort keys and grouping keys.
//!
//! | one side | other side | compared as |
//! |---|---|---|
//! | integer, BIT | integer, BIT | integers, exact for signed and unsigned |
//! | integer | string | exact numbers |
//! | decimal | integer, decimal | exact numbers |
//! | double, float | any number | doubles |
//! | decimal, double | string | doubles |
//! | string, ENUM, SET | string, ENUM, SET | strings, by the joined collation |
//! | DATE, DATETIME | any class except TIME | DATETIME, after conversion of the other side |
//! | TIME | TIME, string, number | TIME, after conversion of the other side |
//! | TIME | DATE, DATETIME | DATETIME, the TIME added to the current date |
//! | UUID, INET6, INET4 | the same type, string | values of that type |

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;

use cohort_types::{Class, Collation, CountBytes, DateTime, Decimal, Interrupt, SqlResult, Time, Value};

use crate::context::EvalContext;
use crate::convert::{self, Origin};
use crate::expr::Expr;
use crate::expr_type::{Flavor, TypeClass};

/// Comparison method of two expressions, chosen when the tree is built. Without a forced class, the classes
/// of the values select the comparison.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CompareHow {
    /// Two scalars.
    Scalar {
        /// Collation for strings.
        collation: Collation,
        /// Class that both values are converted to, regardless of their own classes.
        class: Option<TypeClass>,
    },
    /// Two rows, element by element.
    Row(Vec<CompareHow>),
}

impl CompareHow {
    /// Compares by the classes of the values, and strings by `collation`.
    pub fn scalar(collation: Collation) -> CompareHow {
        CompareHow::Scalar { collation, class: None }
    }
}

/// Compares two scalars. Returns `None` if one is NULL.
pub fn compare(a: &Value, b: &Value, how: &CompareHow, ctx: &EvalContext<'_>) -> SqlResult<Option<Ordering>> {
    compare_operands(a, b, how, [None, None], ctx)
}

/// Variant for values of known expressions.
pub(crate) fn compare_operands(
    a: &Value,
    b: &Value,
    how: &CompareHow,
    exprs: [Option<&Expr>; 2],
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<Ordering>> {
    let CompareHow::Scalar { collation, class } = how else { return Ok(None) };
    match (a, b) {
        (Value::Null, _) => return Ok(None),
        (_, Value::Null) => {
            return if let (Value::Str(_), [Some(left), Some(right)]) = (a, exprs) {
                read_left(a, *class, left, right, *collation, ctx)
            } else {
                Ok(None)
            };
        }
        (Value::Int(x), Value::Int(y)) => return Ok(Some(x.cmp(y))),
        _ => {}
    }
    if let (Some(x), Some(y)) = (bytes_of(a), bytes_of(b))
        && matches!(class, None | Some(TypeClass::String))
    {
        ctx.count_bytes(x.len().min(y.len()))?;
        return Ok(Some(collation.compare(x, y)));
    }
    let class = class.unwrap_or_else(|| common_class(a.class(), b.class()));
    if let (TypeClass::Int | TypeClass::Decimal | TypeClass::Real, [Some(left), Some(right)]) = (class, exprs)
    {
        let (a, b) = (left.as_number(Cow::Borrowed(a))?, right.as_number(Cow::Borrowed(b))?);
        return compare_as(class, &a, &b, *collation, exprs, ctx);
    }
    compare_as(class, a, b, *collation, exprs, ctx)
}

/// Converts a constant text that is compared with a number or a date at its first use, and caches the result
/// for the statement.
pub(crate) fn read_constant<'v>(
    value: Cow<'v, Value>,
    expr: &Expr,
    other: &Value,
    how: &CompareHow,
    ctx: &EvalContext<'_>,
) -> SqlResult<Cow<'v, Value>> {
    let (Expr::Const(_) | Expr::Param(_), Value::Str(_)) = (expr, value.as_ref()) else { return Ok(value) };
    let CompareHow::Scalar { class, .. } = how else { return Ok(value) };
    if matches!(other, Value::Str(_) | Value::Enum { .. } | Value::Set { .. } | Value::Null) {
        return Ok(value);
    }
    let class = class.unwrap_or_else(|| common_class(other.class(), value.class()));
    let is_other_than_its_text = expr.number_view().is_some() || expr.ty_cow().flavor == Flavor::Hex;
    if class == TypeClass::String || is_other_than_its_text {
        return Ok(value);
    }
    ctx.read_once(std::ptr::from_ref(expr) as usize, &value, class, || {
        Ok(match class {
            TypeClass::Int | TypeClass::Decimal => {
                convert::to_decimal(&value, ctx)?.map_or(Value::Null, Value::Decimal)
            }
            TypeClass::Real => convert::to_f64(&value, ctx)?.map_or(Value::Null, Value::Double),
            TypeClass::Time => Value::Time(time_or_zero(&value, Some(expr), ctx)?),
            _ => Value::DateTime(datetime_or_zero(&value, Some(expr), ctx)?),
        })
    })
    .map(Cow::Owned)
}

/// Converts a text on the left whose right side is NULL: the conversion may warn, as in MariaDB.
#[cold]
fn read_left(
    a: &Value,
    class: Option<TypeClass>,
    left: &Expr,
    right: &Expr,
    collation: Collation,
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<Ordering>> {
    let ty = right.ty_cow();
    let other = match ty.class() {
        TypeClass::String => return Ok(None),
        _ if matches!(right, Expr::Const(_)) || ty.null_literal => return Ok(None),
        TypeClass::Int => Value::Int(0),
        TypeClass::Decimal => Value::Decimal(cohort_types::Decimal::ZERO),
        TypeClass::Real => Value::Double(0.0),
        TypeClass::Time => Value::Time(Time::default()),
        TypeClass::Date | TypeClass::DateTime => Value::DateTime(DateTime::default()),
        // Texts are already converted to the type.
        TypeClass::Fixed => return Ok(None),
    };
    let class = class.unwrap_or_else(|| common_class(a.class(), other.class()));
    let a = left.as_number(Cow::Borrowed(a))?;
    compare_as(class, &a, &other, collation, [Some(left), None], ctx)?;
    Ok(None)
}

/// Returns the class that two values are compared as.
fn common_class(a: Class, b: Class) -> TypeClass {
    let has = |class| a == class || b == class;
    if has(Class::Fixed) {
        return TypeClass::Fixed;
    }
    if has(Class::Time) {
        return if has(Class::DateTime) { TypeClass::DateTime } else { TypeClass::Time };
    }
    if has(Class::DateTime) {
        return TypeClass::DateTime;
    }
    if has(Class::Str) {
        return match (a, b) {
            (Class::Str, Class::Str) => TypeClass::String,
            _ if has(Class::Int) => TypeClass::Decimal,
            _ => TypeClass::Real,
        };
    }
    if has(Class::Real) {
        return TypeClass::Real;
    }
    if has(Class::Decimal) { TypeClass::Decimal } else { TypeClass::Int }
}

fn compare_as(
    class: TypeClass,
    a: &Value,
    b: &Value,
    collation: Collation,
    [left, right]: [Option<&Expr>; 2],
    ctx: &EvalContext<'_>,
) -> SqlResult<Option<Ordering>> {
    Ok(match class {
        TypeClass::Int => {
            both(convert::to_int(a, ctx)?, convert::to_int(b, ctx)?, |x, y| x.wide().cmp(&y.wide()))
        }
        TypeClass::Decimal => {
            both(convert::to_decimal(a, ctx)?, convert::to_decimal(b, ctx)?, |x, y| x.cmp(&y))
        }
        TypeClass::Real => both(convert::to_f64(a, ctx)?, convert::to_f64(b, ctx)?, |x, y| {
            x.partial_cmp(&y).unwrap_or(Ordering::Equal)
        }),
        TypeClass::Date | TypeClass::DateTime => {
            Some(datetime_or_zero(a, left, ctx)?.cmp(&datetime_or_zero(b, right, ctx)?))
        }
        TypeClass::Time => Some(time_or_zero(a, left, ctx)?.cmp(&time_or_zero(b, right, ctx)?)),
        TypeClass::String => {
            let (x, y) = (printed(a), printed(b));
            ctx.count_bytes(x.len().min(y.len()))?;
            Some(collation.compare(&x, &y))
        }
        TypeClass::Fixed => match (a, b) {
            (Value::Fixed(x), Value::Fixed(y)) => Some(x.cmp(y)),
            // The classes differ only at run time: a value that comes from another expression's plan.
            (Value::Fixed(x), other) | (other, Value::Fixed(x)) => {
                let Some(other) = convert::to_fixed(other, x.kind(), ctx)? else { return Ok(None) };
                let order = x.cmp(&other);
                Some(if matches!(a, Value::Fixed(_)) { order } else { order.reverse() })
            }
            _ => None,
        },
    })
}

fn both<T>(a: Option<T>, b: Option<T>, order: impl FnOnce(T, T) -> Ordering) -> Option<Ordering> {
    Some(order(a?, b?))
}

fn bytes_of(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Str(s) => Some(&s.bytes),
        Value::Enum { label, .. } | Value::Set { label, .. } => Some(&label.bytes),
        _ => None,
    }
}

fn printed(value: &Value) -> Cow<'_, [u8]> {
    convert::text_of(value, cohort_types::DECIMALS_NOT_FIXED).unwrap_or_default()
}

/// An invalid date compares as the zero date.
fn datetime_or_zero(value: &Value, from: Option<&Expr>, ctx: &EvalContext<'_>) -> SqlResult<DateTime> {
    Ok(convert::to_datetime(value, Origin::compared(from), ctx)?.unwrap_or_default())
}

fn time_or_zero(value: &Value, from: Option<&Expr>, ctx: &EvalContext<'_>) -> SqlResult<Time> {
    Ok(convert::to_time(value, Origin::compared(from), ctx)?.unwrap_or_default())
}

/// Collation and direction of a sort key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    pub collation: Collation,
    pub descending: bool,
}

/// Compares two rows of sort keys with equal types, NULL first. `keys[n]` applies to element n of both rows.
pub fn compare_rows(a: &[Value], b: &[Value], keys: &[SortKey]) -> Ordering {
    for ((x, y), key) in a.iter().zip(b).zip(keys) {
        let order = compare_same(x, y, key.collation);
        if order.is_ne() {
            return if key.descending { order.reverse() } else { order };
        }
    }
    Ordering::Equal
}

/// Compares two values of one column in a total order, NULL first. ENUM and SET sort by number.
pub(crate) fn compare_same(a: &Value, b: &Value, collation: Collation) -> Ordering {
    match (a, b) {
        (Value::Int(x), Value::Int(y)) => x.cmp(y),
        (Value::Str(x), Value::Str(y)) => collation.compare(&x.bytes, &y.bytes),
        (Value::Enum { index: x, .. }, Value::Enum { index: y, .. }) => x.cmp(y),
        (Value::Set { bits: x, .. }, Value::Set { bits: y, .. }) => x.cmp(y),
        _ if a.class() == b.class() || a.is_null() || b.is_null() => a.compare(b),
        _ => compare_mixed(a, b),
    }
}

/// Compares values of one expression that have different numeric classes.
fn compare_mixed(a: &Value, b: &Value) -> Ordering {
    let mut sink = cohort_types::NoWarnings;
    match common_class(a.class(), b.class()) {
        TypeClass::Decimal | TypeClass::Int => a.to_decimal(&mut sink).cmp(&b.to_decimal(&mut sink)),
        TypeClass::Real => {
            let (x, y) = (a.to_f64(&mut sink), b.to_f64(&mut sink));
            x.partial_cmp(&y).unwrap_or(Ordering::Equal)
        }
        _ => a.compare(b),
    }
}

/// First byte of the keys of UUIDs and addresses.
const FIXED: u8 = 8;

/// Appends the grouping key of a value. Two values of one type have equal keys if and only if GROUP BY and
/// DISTINCT treat them as equal. Used by the hash tables of grouping, DISTINCT and hash joins.
pub fn append_group_key(
    value: &Value,
    collation: Collation,
    out: &mut Vec<u8>,
    interrupt: &dyn Interrupt,
) -> SqlResult<()> {
    match value {
        Value::Null => out.push(0),
        Value::Int(v) => number_key(i128::from(*v), out),
        Value::UInt(v) => number_key(i128::from(*v), out),
        Value::Bit { bits, .. } => number_key(i128::from(*bits), out),
        Value::Enum { index, .. } => number_key(i128::from(*index), out),
        Value::Set { bits, .. } => number_key(i128::from(*bits), out),
        Value::Float(v) => real_key(f64::from(*v), out),
        Value::Double(v) => real_key(*v, out),
        Value::Decimal(v) => decimal_key(v, out),
        Value::Str(s) => {
            interrupt.count_bytes(s.bytes.len())?;
            out.push(4);
            collation.sort_key(&s.bytes, out);
        }
        Value::Fixed(fixed) => {
            out.push(FIXED);
            out.extend_from_slice(fixed.bytes());
        }
        Value::Date(d) => datetime_key(&d.at_midnight(), out),
        Value::DateTime(d) => datetime_key(d, out),
        Value::Time(t) => {
            out.push(6);
            out.extend_from_slice(&t.micros.to_be_bytes());
        }
        Value::Timestamp(t) => {
            out.push(7);
            out.extend_from_slice(&t.to_be_bytes());
        }
    }
    Ok(())
}

fn number_key(v: i128, out: &mut Vec<u8>) {
    out.push(1);
    out.extend_from_slice(&(v as i64).to_be_bytes());
    // Distinguishes 2^64 - 1 from -1.
    out.push(u8::from(v > i128::from(i64::MAX)));
}

fn real_key(v: f64, out: &mut Vec<u8>) {
    out.push(2);
    let v = if v == 0.0 { 0.0 } else { v };
    out.extend_from_slice(&v.to_bits().to_be_bytes());
}

/// Appends the digits without trailing zeros of the fraction, which equal numbers may differ in.
fn decimal_key(v: &Decimal, out: &mut Vec<u8>) {
    out.push(3);
    let start = out.len();
    v.write_text(out);
    if out[start..].contains(&b'.') {
        while out.last() == Some(&b'0') {
            out.pop();
        }
        if out.last() == Some(&b'.') {
            out.pop();
        }
    }
    out.push(0);
}

fn datetime_key(v: &DateTime, out: &mut Vec<u8>) {
    out.push(5);
    out.extend_from_slice(&v.date.to_packed().to_be_bytes());
    out.extend_from_slice(&v.micros_of_day().to_be_bytes());
}

/// A constant IN list as a hash set.
#[derive(Debug)]
pub(crate) struct InSet {
    items: InItems,
    has_null: bool,
}

#[derive(Debug)]
enum InItems {
    Integers(HashSet<i128, ahash::RandomState>),
    Strings(Collation, HashSet<Vec<u8>, ahash::RandomState>),
}

/// Shorter lists are compared element by element.
const IN_SET_MIN: usize = 5;

impl InSet {
    /// Returns the set of a list of integer or of string constants, `None` if the list is short or has other
    /// elements.
    pub(crate) fn of(list: &[Expr], collation: Collation) -> Option<InSet> {
        if list.len() < IN_SET_MIN {
            return None;
        }
        let values: Option<Vec<&Value>> =
            list.iter().map(|e| if let Expr::Const(c) = e { Some(&c.value) } else { None }).collect();
        let values = values?;
        let has_null = values.iter().any(|v| v.is_null());
        let present = values.into_iter().filter(|v| !v.is_null());
        let items = if let Some(set) = present.clone().map(integer_of).collect::<Option<HashSet<_, _>>>() {
            InItems::Integers(set)
        } else {
            InItems::Strings(collation, present.map(|v| string_key(v, collation)).collect::<Option<_>>()?)
        };
        Some(InSet { items, has_null })
    }

    /// Returns the result of IN. The outer option is `None` if the value has another class than the set.
    pub(crate) fn lookup(&self, value: &Value) -> Option<Option<bool>> {
        let found = match &self.items {
            InItems::Integers(set) => set.contains(&integer_of(value)?),
            InItems::Strings(collation, set) => set.contains(&string_key(value, *collation)?),
        };
        Some(if !found && self.has_null { None } else { Some(found) })
    }
}

/// A constant IN list of rows as a hash set.
#[derive(Debug)]
pub(crate) struct InRows {
    /// Kinds of the row elements: `None` is an integer, otherwise a string of this collation.
    kinds: Vec<Option<Collation>>,
    keys: HashSet<Vec<u8>, ahash::RandomState>,
    /// Positions in the list of rows with an element of another kind, such as NULL.
    pub others: Vec<usize>,
}

impl InRows {
    /// Returns `None` if the list is short, or its first row has an element that is neither integer nor
    /// string.
    pub(crate) fn of(list: &[Expr], hows: &[CompareHow]) -> Option<InRows> {
        if list.len() < IN_SET_MIN {
            return None;
        }
        let kinds = constants_of(&list[0])?.zip(hows).map(|(value, how)| kind_of(value?, how));
        let kinds = kinds.collect::<Option<Vec<_>>>()?;
        let mut rows = InRows { kinds, keys: HashSet::default(), others: Vec::new() };
        for (n, row) in list.iter().enumerate() {
            match constants_of(row).and_then(|values| rows.key(values)) {
                Some(key) => drop(rows.keys.insert(key)),
                None => rows.others.push(n),
            }
        }
        Some(rows)
    }

    /// Returns true if a row of the list, without `others`, is equal. Returns `None` if a value has another
    /// kind.
    pub(crate) fn lookup<'v>(&self, values: impl Iterator<Item = &'v Value>) -> Option<bool> {
        Some(self.keys.contains(&self.key(values.map(Some))?))
    }

    fn key<'v>(&self, values: impl Iterator<Item = Option<&'v Value>>) -> Option<Vec<u8>> {
        let mut key = Vec::new();
        for (value, kind) in values.zip(&self.kinds) {
            match kind {
                None => key.extend_from_slice(&integer_of(value?)?.to_be_bytes()),
                Some(collation) => {
                    let part = string_key(value?, *collation)?;
                    key.extend_from_slice(&(part.len() as u64).to_be_bytes());
                    key.extend_from_slice(&part);
                }
            }
        }
        Some(key)
    }
}

fn constants_of(row: &Expr) -> Option<impl Iterator<Item = Option<&Value>>> {
    let Expr::Row(parts) = row else { return None };
    Some(parts.iter().map(|part| if let Expr::Const(part) = part { Some(&part.value) } else { None }))
}

fn kind_of(value: &Value, how: &CompareHow) -> Option<Option<Collation>> {
    let CompareHow::Scalar { collation, class } = how else { return None };
    match class {
        None | Some(TypeClass::Int) if integer_of(value).is_some() => Some(None),
        None | Some(TypeClass::String) if bytes_of(value).is_some() => Some(Some(*collation)),
        _ => None,
    }
}

fn integer_of(value: &Value) -> Option<i128> {
    match value {
        Value::Int(v) => Some(i128::from(*v)),
        Value::UInt(v) => Some(i128::from(*v)),
        _ => None,
    }
}

fn string_key(value: &Value, collation: Collation) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    collation.sort_key(bytes_of(value)?, &mut key);
    Some(key)
}
