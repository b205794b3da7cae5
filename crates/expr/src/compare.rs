//! Comparison of values by MariaDB's pairing rules, sort keys and grouping keys.
//!
//! | one side | other side | compared as |
//! |---|---|---|
//! | integer, BIT | integer, BIT | integers, signed against unsigned exactly |
//! | integer | string | exact numbers |
//! | decimal | integer, decimal | exact numbers |
//! | double, float | any number | doubles |
//! | decimal, double | string | doubles |
//! | string, ENUM, SET | string, ENUM, SET | strings, by the joined collation |
//! | DATE, DATETIME | anything but TIME | the other side read as DATETIME |
//! | TIME | TIME, string, number | the other side read as TIME |
//! | TIME | DATE, DATETIME | the TIME added to the current date |
//! | UUID, INET6, INET4 | the same, string | values of that type |

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;

use cohort_types::{Class, Collation, CountBytes, DateTime, Decimal, Interrupt, SqlResult, Time, Value};

use crate::context::EvalContext;
use crate::convert::{self, Origin};
use crate::expr::Expr;
use crate::expr_type::{Flavor, TypeClass};

/// How two expressions compare, decided when the tree is built. Values of one class compare as such; of two,
/// by the pairing rules; unless a class is forced on both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CompareHow {
    /// Two scalars.
    Scalar {
        /// Order of strings.
        collation: Collation,
        /// Compare as this class whatever the values are.
        class: Option<TypeClass>,
    },
    /// Two rows, element by element.
    Row(Vec<CompareHow>),
}

impl CompareHow {
    /// By the classes of the values, strings by `collation`.
    pub fn scalar(collation: Collation) -> CompareHow {
        CompareHow::Scalar { collation, class: None }
    }
}

/// Compares two scalars; `None` when one is NULL.
pub fn compare(a: &Value, b: &Value, how: &CompareHow, ctx: &EvalContext<'_>) -> SqlResult<Option<Ordering>> {
    compare_operands(a, b, how, [None, None], ctx)
}

/// The same for values of known expressions.
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

/// A constant text beside a number or a date is read as one when it is met first, and kept for the statement.
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

/// A text on the left is read before the right side turns out to be NULL: it may warn.
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
        // Texts were made values of their kind.
        TypeClass::Fixed => return Ok(None),
    };
    let class = class.unwrap_or_else(|| common_class(a.class(), other.class()));
    let a = left.as_number(Cow::Borrowed(a))?;
    compare_as(class, &a, &other, collation, [Some(left), None], ctx)?;
    Ok(None)
}

/// The class two values are compared as.
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
            // What stands beside one at run time only: a value of another expression's plan.
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

/// What is no date compares as the zero date.
fn datetime_or_zero(value: &Value, from: Option<&Expr>, ctx: &EvalContext<'_>) -> SqlResult<DateTime> {
    Ok(convert::to_datetime(value, Origin::compared(from), ctx)?.unwrap_or_default())
}

fn time_or_zero(value: &Value, from: Option<&Expr>, ctx: &EvalContext<'_>) -> SqlResult<Time> {
    Ok(convert::to_time(value, Origin::compared(from), ctx)?.unwrap_or_default())
}

/// One key of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    pub collation: Collation,
    pub descending: bool,
}

/// Compares two sort keys of the same types, NULL first; element n of both goes with `keys[n]`.
pub fn compare_rows(a: &[Value], b: &[Value], keys: &[SortKey]) -> Ordering {
    for ((x, y), key) in a.iter().zip(b).zip(keys) {
        let order = compare_same(x, y, key.collation);
        if order.is_ne() {
            return if key.descending { order.reverse() } else { order };
        }
    }
    Ordering::Equal
}

/// Total order of two values of one column, NULL first. ENUM and SET sort by number.
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

/// Values of one expression that came out in different number classes.
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

/// Appends bytes that are equal for two values of one type exactly when GROUP BY and DISTINCT take them for
/// the same; for hash tables of grouping, DISTINCT and hash joins.
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
    // Tells 2^64 - 1 from -1.
    out.push(u8::from(v > i128::from(i64::MAX)));
}

fn real_key(v: f64, out: &mut Vec<u8>) {
    out.push(2);
    let v = if v == 0.0 { 0.0 } else { v };
    out.extend_from_slice(&v.to_bits().to_be_bytes());
}

/// Digits without what equal numbers may differ in: zeros at the end of the fraction.
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

/// A constant IN list as a set.
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

/// Lists shorter than this are searched one by one.
const IN_SET_MIN: usize = 5;

impl InSet {
    /// The set of a list of integer or of string constants; `None` when the list is short or of another kind.
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

    /// `None` when the value is of another class than the set; else the answer of IN.
    pub(crate) fn lookup(&self, value: &Value) -> Option<Option<bool>> {
        let found = match &self.items {
            InItems::Integers(set) => set.contains(&integer_of(value)?),
            InItems::Strings(collation, set) => set.contains(&string_key(value, *collation)?),
        };
        Some(if !found && self.has_null { None } else { Some(found) })
    }
}

/// A constant IN list of rows as a set.
#[derive(Debug)]
pub(crate) struct InRows {
    /// What an element of each place is: an integer, or a string of this collation.
    kinds: Vec<Option<Collation>>,
    keys: HashSet<Vec<u8>, ahash::RandomState>,
    /// Places in the list of rows that have something else, such as NULL.
    pub others: Vec<usize>,
}

impl InRows {
    /// `None` when the list is short, or begins with something else than integers and strings.
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

    /// Whether a row of the list but the others is equal; `None` when the values are of other kinds.
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
