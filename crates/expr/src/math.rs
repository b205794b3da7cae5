//! Mathematical functions.

use cohort_types::{DateTime, Decimal, IntValue, SqlResult, Time, TypeKind, Value};

use crate::args::{Args, or_null};
use crate::arith::{class_of_types, hex_as_number};
use crate::context::SessionEnv;
use crate::convert;
use crate::expr::Expr;
use crate::expr_type::{ExprType, NOT_FIXED_DECIMALS, TypeClass, decimal_width, int_type};
use crate::function::{Anywhere, Function, NotGenerated, Rows, Text, Unsafe};
use crate::typing::{any_nullable, byte_width, precision_of, scale_of};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("abs", 1, 1, type_abs, abs, Text, Anywhere),
    Function::new("ceil", 1, 1, type_whole, ceil, Text, Anywhere),
    Function::new("ceiling", 1, 1, type_whole, ceil, Text, Anywhere),
    Function::new("floor", 1, 1, type_whole, floor, Text, Anywhere),
    Function::new("round", 1, 2, type_round, round, Text, Anywhere),
    Function::new("truncate", 2, 2, type_truncate, truncate, Rows, Anywhere),
    Function::new("sign", 1, 1, type_sign, sign, Rows, Anywhere),
    Function::new("pow", 2, 2, type_double, pow, Rows, Anywhere),
    Function::new("power", 2, 2, type_double, pow, Rows, Anywhere),
    Function::new("sqrt", 1, 1, type_double, sqrt, Rows, Anywhere),
    Function::new("exp", 1, 1, type_double, exp, Rows, Anywhere),
    Function::new("ln", 1, 1, type_double, ln, Rows, Anywhere),
    Function::new("log", 1, 2, type_double, log, Rows, Anywhere),
    Function::new("log2", 1, 1, type_double, log2, Rows, Anywhere),
    Function::new("log10", 1, 1, type_double, log10, Rows, Anywhere),
    Function::new("sin", 1, 1, type_double, sin, Rows, Anywhere),
    Function::new("cos", 1, 1, type_double, cos, Rows, Anywhere),
    Function::new("tan", 1, 1, type_double, tan, Rows, Anywhere),
    Function::new("cot", 1, 1, type_double, cot, Rows, Anywhere),
    Function::new("asin", 1, 1, type_double, asin, Rows, Anywhere),
    Function::new("acos", 1, 1, type_double, acos, Rows, Anywhere),
    Function::new("atan", 1, 2, type_double, atan, Rows, Anywhere),
    Function::new("atan2", 2, 2, type_double, atan, Rows, Anywhere),
    Function::new("radians", 1, 1, type_angle, radians, Rows, Anywhere),
    Function::new("degrees", 1, 1, type_angle, degrees, Rows, Anywhere),
    Function::new("pi", 0, 0, type_pi, pi, Rows, Anywhere),
    Function::new("rand", 0, 1, type_rand, rand, Unsafe, NotGenerated).volatile(),
    Function::new("crc32", 1, 2, type_crc, crc32, Text, Anywhere),
    Function::new("crc32c", 1, 2, type_crc, crc32c, Rows, Anywhere),
];

fn type_double(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::double())
}

fn type_angle(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::double().with_nullable(any_nullable(args)))
}

fn type_rand(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::double().with_nullable(false))
}

fn type_pi(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::double_fixed(8, 6).with_nullable(false))
}

fn type_sign(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::number(TypeKind::Int, 2, 0))
}

fn type_crc(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::number(TypeKind::Int, 10, 0).with_unsigned(true).with_nullable(any_nullable(args)))
}

fn type_abs(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    hex_as_number(args);
    let ty = args[0].ty();
    let nullable = ty.nullable;
    Ok(match class_of_types(args) {
        TypeClass::Real => real_like(&ty),
        // The length of ENUM and SET is that of their text.
        TypeClass::Int if ty.class() == TypeClass::String => {
            int_type(u32::try_from(byte_width(&args[0])).unwrap_or(u32::MAX), false)
        }
        TypeClass::Decimal => {
            ExprType::decimal(precision_of(&args[0]), scale_of(&args[0]) as u8, ty.unsigned)
        }
        _ => int_type(decimal_width(precision_of(&args[0]), 0, ty.unsigned), ty.unsigned),
    }
    .with_nullable(nullable))
}

fn real_like(ty: &ExprType) -> ExprType {
    match ty.class() {
        TypeClass::Real if ty.decimals < NOT_FIXED_DECIMALS => {
            ExprType::double_fixed(17 + u32::from(ty.decimals), ty.decimals)
        }
        _ => ExprType::double(),
    }
}

/// Returns the decimal digits of the largest number with this many bits.
pub(crate) fn bit_digits(bits: u32) -> u32 {
    let largest = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
    largest.to_string().len() as u32
}

/// Returns the type of an unchanged integer.
fn same_integer(ty: &ExprType) -> ExprType {
    match ty.kind {
        TypeKind::Bit => int_type(bit_digits(ty.length), true),
        TypeKind::Year => int_type(ty.length, ty.unsigned),
        TypeKind::Enum | TypeKind::Set => ExprType::number(TypeKind::Int, 5, 0).with_unsigned(true),
        TypeKind::Date => ExprType::number(TypeKind::Int, 8, 0).with_unsigned(true),
        kind if ty.class() == TypeClass::Int => {
            ExprType::number(kind, ty.length, 0).with_unsigned(ty.unsigned)
        }
        _ => int_type(ty.length, ty.unsigned),
    }
}

/// CEIL and FLOOR: an integer if the digits fit BIGINT.
fn type_whole(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    hex_as_number(args);
    let ty = args[0].ty();
    if let Some(rounded) = clock_type(&ty, 0) {
        return Ok(rounded);
    }
    Ok(match class_of_types(args) {
        TypeClass::Real => ExprType::double_fixed(17, 0),
        TypeClass::Decimal => {
            let carry = u32::from(scale_of(&args[0]) > 0 || !ty.unsigned);
            let digits = precision_of(&args[0]) - scale_of(&args[0]).min(precision_of(&args[0])) + carry;
            if digits > 18 {
                ExprType::decimal(digits.min(65), 0, ty.unsigned)
            } else {
                let length = digits + u32::from(!ty.unsigned);
                let kind = if length > 10 { TypeKind::BigInt } else { TypeKind::Int };
                ExprType::number(kind, length, 0).with_unsigned(ty.unsigned)
            }
        }
        _ => same_integer(&ty),
    }
    .with_nullable(ty.nullable))
}

fn type_round(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(type_cut(args, Cut::Round))
}

fn type_truncate(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(type_cut(args, Cut::Truncate))
}

/// Returns the type of a rounded TIME or DATETIME, which keeps its class and has this many fraction digits.
fn clock_type(ty: &ExprType, digits: u8) -> Option<ExprType> {
    match ty.class() {
        TypeClass::Time => Some(ExprType::time(digits)),
        TypeClass::DateTime => Some(ExprType::datetime(digits)),
        _ => None,
    }
}

/// Rounding mode for fractions of a second.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClockStep {
    Ceil,
    Floor,
    Round,
    Truncate,
}

/// Rounds a TIME or DATETIME to the digits of the call's type. Returns `None` for other values.
fn clock(a: &Args<'_>, step: ClockStep) -> SqlResult<Option<Value>> {
    let value = a.value(0)?;
    let unit = 10i64.pow(6 - u32::from(a.call.ty.decimals.min(6)));
    let rounded = |micros: i64| match step {
        ClockStep::Truncate => micros / unit * unit,
        ClockStep::Floor => micros.div_euclid(unit) * unit,
        ClockStep::Ceil => -(-micros).div_euclid(unit) * unit,
        ClockStep::Round => (micros.abs() + unit / 2) / unit * unit * micros.signum(),
    };
    Ok(match value.as_ref() {
        Value::Time(time) => {
            let micros = rounded(time.micros).clamp(-Time::MAX.micros, Time::MAX.micros);
            Some(Value::Time(Time { micros }))
        }
        Value::DateTime(datetime) => {
            let of_day = rounded(datetime.micros_of_day());
            const DAY: i64 = 86_400_000_000;
            if of_day < DAY {
                return Ok(Some(Value::DateTime(DateTime::from_micros_of_day(datetime.date, of_day))));
            }
            let next = datetime.date.add_days(1).map(|date| Value::DateTime(date.at_midnight()));
            Some(next.unwrap_or(Value::Null))
        }
        _ => None,
    })
}

/// Returns the type of ROUND or TRUNCATE. A constant second argument fixes its digits; rounding may carry
/// into another digit.
fn type_cut(args: &mut [Expr], how: Cut) -> ExprType {
    hex_as_number(args);
    let ty = args[0].ty();
    let nullable = any_nullable(args);
    let places = places_of(args.get(1));
    let digits = places.map_or(ty.decimals, |n| n.clamp(0, 6) as u8);
    if let Some(rounded) = clock_type(&ty, digits.min(ty.decimals)) {
        return rounded;
    }
    let class = class_of_types(&args[..1]);
    let result = match (class, places) {
        (TypeClass::Real, Some(n)) if n < i64::from(NOT_FIXED_DECIMALS) => {
            let n = n.max(0) as u8;
            ExprType::double_fixed(17 + u32::from(n), n)
        }
        (TypeClass::Real, _) => ExprType::double(),
        (TypeClass::Decimal, Some(n)) => {
            let n = n.clamp(0, 38) as u32;
            let whole = precision_of(&args[0]) - scale_of(&args[0]).min(precision_of(&args[0]));
            let grows = u32::from(how == Cut::Round && n < scale_of(&args[0]));
            ExprType::decimal((whole + grows + n).clamp(1, 65), n as u8, ty.unsigned)
        }
        (TypeClass::Decimal, None) => {
            ExprType::decimal(precision_of(&args[0]), scale_of(&args[0]) as u8, ty.unsigned)
        }
        _ => {
            let is_bit = ty.kind == TypeKind::Bit;
            let grows = u32::from(how == Cut::Round && !is_bit && places.is_none_or(|n| n < 0));
            let precision = precision_of(&args[0]) + grows;
            // Another digit may exceed BIGINT.
            if grows == 0 {
                same_integer(&ty)
            } else if precision > 19 {
                ExprType::decimal(precision, 0, ty.unsigned)
            } else {
                int_type(decimal_width(precision, 0, ty.unsigned), ty.unsigned)
            }
        }
    };
    result.with_nullable(nullable)
}

/// Returns the number of fraction digits to keep if it is constant; 0 if the argument is absent.
fn places_of(arg: Option<&Expr>) -> Option<i64> {
    match arg {
        None => Some(0),
        Some(Expr::Const(c)) => match &c.value {
            Value::Int(v) => Some(*v),
            Value::UInt(v) => Some(i64::try_from(*v).unwrap_or(i64::MAX)),
            other => other.to_int(&mut cohort_types::NoWarnings).map(convert::clamp_signed),
        },
        Some(_) => None,
    }
}

/// A number for a mathematical function: integers and decimals are exact, other values doubles.
enum Number {
    Int(IntValue),
    Decimal(Decimal),
    Real(f64),
}

fn number(a: &Args<'_>) -> SqlResult<Option<Number>> {
    let value = a.value(0)?;
    Ok(match value.as_ref() {
        Value::Null => None,
        Value::Decimal(d) => Some(Number::Decimal(*d)),
        v @ (Value::DateTime(_) | Value::Time(_)) if a.expr(0).ty_cow().decimals > 0 => {
            convert::to_decimal(v, a.ctx)?.map(Number::Decimal)
        }
        v => match v.class() {
            cohort_types::Class::Real | cohort_types::Class::Str => {
                convert::to_f64(v, a.ctx)?.map(Number::Real)
            }
            _ => convert::to_int(v, a.ctx)?.map(Number::Int),
        },
    })
}

fn int_value(v: IntValue) -> Value {
    match v {
        IntValue::Signed(v) => Value::Int(v),
        IntValue::Unsigned(v) => Value::UInt(v),
    }
}

fn abs(a: Args<'_>) -> SqlResult<Value> {
    Ok(match or_null!(number(&a)) {
        Number::Int(IntValue::Signed(v)) => {
            Value::Int(v.checked_abs().ok_or_else(|| a.out_of_range("BIGINT"))?)
        }
        Number::Int(v) => int_value(v),
        Number::Decimal(d) => Value::Decimal(d.abs()),
        Number::Real(d) => Value::Double(d.abs()),
    })
}

fn ceil(a: Args<'_>) -> SqlResult<Value> {
    match clock(&a, ClockStep::Ceil)? {
        Some(rounded) => Ok(rounded),
        None => whole(a, f64::ceil, Decimal::ceil),
    }
}

fn floor(a: Args<'_>) -> SqlResult<Value> {
    match clock(&a, ClockStep::Floor)? {
        Some(rounded) => Ok(rounded),
        None => whole(a, f64::floor, Decimal::floor),
    }
}

type DecimalStep = fn(&Decimal) -> Result<Decimal, cohort_types::Overflow>;

fn whole(a: Args<'_>, real: fn(f64) -> f64, exact: DecimalStep) -> SqlResult<Value> {
    Ok(match or_null!(number(&a)) {
        Number::Int(v) => int_value(v),
        Number::Real(d) => Value::Double(real(d)),
        Number::Decimal(d) => {
            let rounded = exact(&d).map_err(|_| a.out_of_range("DECIMAL"))?;
            if a.call.ty.class() == TypeClass::Int {
                Value::Int(rounded.to_i64().0)
            } else {
                Value::Decimal(rounded)
            }
        }
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    Round,
    Truncate,
}

fn round(a: Args<'_>) -> SqlResult<Value> {
    cut(a, Cut::Round)
}

fn truncate(a: Args<'_>) -> SqlResult<Value> {
    cut(a, Cut::Truncate)
}

fn cut(a: Args<'_>, how: Cut) -> SqlResult<Value> {
    let step = if how == Cut::Round { ClockStep::Round } else { ClockStep::Truncate };
    if let Some(rounded) = clock(&a, step)? {
        let unknown = a.count() > 1 && a.value(1)?.is_null();
        return Ok(if unknown { Value::Null } else { rounded });
    }
    let value = or_null!(number(&a));
    let places = if a.count() > 1 { or_null!(a.integer(1)) } else { IntValue::Signed(0) };
    let places = convert::clamp_signed(places).clamp(-400, 400);
    match value {
        Number::Int(v) => cut_int(&a, v, places, how),
        Number::Real(d) => Ok(Value::Double(cut_real(d, places as i32, how))),
        Number::Decimal(d) => {
            let scale = places.min(i64::from(Decimal::MAX_SCALE)) as i32;
            let scale =
                if places_of(a.call.args.get(1)).is_none() { scale.min(i32::from(d.scale())) } else { scale };
            let cut = match how {
                Cut::Round => d.round(scale).map_err(|_| a.out_of_range("DECIMAL"))?,
                Cut::Truncate => d.truncate(scale),
            };
            // A cut before the decimal point keeps the scale of the type.
            Ok(Value::Decimal(if scale < 0 { cut.round(0).unwrap_or(cut) } else { cut }))
        }
    }
}

fn cut_int(a: &Args<'_>, v: IntValue, places: i64, how: Cut) -> SqlResult<Value> {
    if places >= 0 {
        return Ok(int_value(v));
    }
    if places < -20 {
        return Ok(match v {
            IntValue::Signed(_) => Value::Int(0),
            IntValue::Unsigned(_) => Value::UInt(0),
        });
    }
    let unit = 10i128.pow(places.unsigned_abs() as u32);
    let wide = v.wide();
    let half = if how == Cut::Round { unit / 2 } else { 0 };
    let cut = (wide.abs() + half) / unit * unit * wide.signum();
    if a.call.ty.class() == TypeClass::Decimal {
        return Ok(Value::Decimal(Decimal::from_i128(cut, 0)));
    }
    let fitting = match v {
        IntValue::Signed(_) => i64::try_from(cut).ok().map(Value::Int),
        IntValue::Unsigned(_) => u64::try_from(cut).ok().map(Value::UInt),
    };
    fitting.ok_or_else(|| {
        a.out_of_range(if matches!(v, IntValue::Signed(_)) { "BIGINT" } else { "BIGINT UNSIGNED" })
    })
}

/// Rounds or truncates a double. ROUND(2.5e0) rounds half to even, like rint in MariaDB.
fn cut_real(v: f64, places: i32, how: Cut) -> f64 {
    // Largest power of ten whose product form is exact; larger ones are parsed to the nearest double.
    const EXACT: i32 = 22;
    let unit = match places.abs() {
        power @ ..=EXACT => 10f64.powi(power),
        power => format!("1e{power}").parse().unwrap_or(f64::INFINITY),
    };
    let step = |x: f64| match how {
        Cut::Round => x.round_ties_even(),
        Cut::Truncate => x.trunc(),
    };
    if places < 0 {
        return if unit.is_infinite() { 0.0 } else { step(v / unit) * unit };
    }
    let scaled = v * unit;
    if unit.is_infinite() || scaled.is_infinite() { v } else { step(scaled) / unit }
}

fn sign(a: Args<'_>) -> SqlResult<Value> {
    let v = or_null!(a.real(0));
    Ok(Value::Int(if v > 0.0 { 1 } else { -i64::from(v < 0.0) }))
}

fn finite(a: &Args<'_>, v: f64) -> SqlResult<Value> {
    if v.is_finite() { Ok(Value::Double(v)) } else { Err(a.out_of_range("DOUBLE")) }
}

fn pow(a: Args<'_>) -> SqlResult<Value> {
    let (x, y) = (or_null!(a.real(0)), or_null!(a.real(1)));
    finite(&a, x.powf(y))
}

/// Evaluates a function of one double that returns NULL outside its domain.
fn partial(a: Args<'_>, defined: fn(f64) -> bool, f: fn(f64) -> f64) -> SqlResult<Value> {
    let x = or_null!(a.real(0));
    if defined(x) { finite(&a, f(x)) } else { Ok(Value::Null) }
}

/// Evaluates a logarithm. Zero and negative arguments return NULL with a warning.
fn logarithm(a: Args<'_>, f: fn(f64) -> f64) -> SqlResult<Value> {
    let x = or_null!(a.real(0));
    if x <= 0.0 { a.division_by_zero() } else { finite(&a, f(x)) }
}

fn sqrt(a: Args<'_>) -> SqlResult<Value> {
    partial(a, |x| x >= 0.0, f64::sqrt)
}

fn exp(a: Args<'_>) -> SqlResult<Value> {
    partial(a, |_| true, f64::exp)
}

fn ln(a: Args<'_>) -> SqlResult<Value> {
    logarithm(a, f64::ln)
}

fn log2(a: Args<'_>) -> SqlResult<Value> {
    logarithm(a, |x| x.ln() / std::f64::consts::LN_2)
}

fn log10(a: Args<'_>) -> SqlResult<Value> {
    logarithm(a, f64::log10)
}

/// LOG(x) or LOG(base, x).
fn log(a: Args<'_>) -> SqlResult<Value> {
    if a.count() == 1 {
        return ln(a);
    }
    let base = or_null!(a.real(0));
    if base <= 0.0 {
        return a.division_by_zero();
    }
    let x = or_null!(a.real(1));
    if x <= 0.0 || base == 1.0 {
        return a.division_by_zero();
    }
    finite(&a, x.ln() / base.ln())
}

fn sin(a: Args<'_>) -> SqlResult<Value> {
    partial(a, |_| true, f64::sin)
}

fn cos(a: Args<'_>) -> SqlResult<Value> {
    partial(a, |_| true, f64::cos)
}

fn tan(a: Args<'_>) -> SqlResult<Value> {
    partial(a, |_| true, f64::tan)
}

fn cot(a: Args<'_>) -> SqlResult<Value> {
    partial(a, |_| true, |x| 1.0 / x.tan())
}

fn asin(a: Args<'_>) -> SqlResult<Value> {
    partial(a, |x| (-1.0..=1.0).contains(&x), f64::asin)
}

fn acos(a: Args<'_>) -> SqlResult<Value> {
    partial(a, |x| (-1.0..=1.0).contains(&x), f64::acos)
}

/// ATAN(x), ATAN(y, x), ATAN2(y, x).
fn atan(a: Args<'_>) -> SqlResult<Value> {
    let y = or_null!(a.real(0));
    if a.count() == 1 {
        return Ok(Value::Double(y.atan()));
    }
    Ok(Value::Double(y.atan2(or_null!(a.real(1)))))
}

fn radians(a: Args<'_>) -> SqlResult<Value> {
    partial(a, |_| true, |x| x * (std::f64::consts::PI / 180.0))
}

fn degrees(a: Args<'_>) -> SqlResult<Value> {
    partial(a, |_| true, |x| x * (180.0 / std::f64::consts::PI))
}

fn pi(_: Args<'_>) -> SqlResult<Value> {
    Ok(Value::Double(std::f64::consts::PI))
}

/// Modulus of the generator.
const RAND_MAX: u32 = 0x3FFF_FFFF;

/// RAND: MariaDB's generator, two linear congruences with 30 bits. Each call with a seed has its own
/// sequence.
fn rand(a: Args<'_>) -> SqlResult<Value> {
    let site = if a.count() == 0 { 0 } else { std::ptr::from_ref(a.call) as usize };
    let mut states = a.ctx.random();
    let known = states.get(&site).copied();
    let constant = a.count() == 0 || a.expr(0).is_const_per_execution();
    let (seed1, seed2) = match known {
        Some(state) if constant => state,
        _ if a.count() == 0 => {
            let bits = a.ctx.hooks.random();
            ((bits >> 32) as u32 % RAND_MAX, bits as u32 % RAND_MAX)
        }
        _ => {
            let seed = a.integer(0)?.map_or(0, convert::bits_of) as u32;
            let first = seed.wrapping_mul(0x10001).wrapping_add(55_555_555);
            (first % RAND_MAX, seed.wrapping_mul(0x1000_0001) % RAND_MAX)
        }
    };
    let modulus = u64::from(RAND_MAX);
    let next1 = (u64::from(seed1) * 3 + u64::from(seed2)) % modulus;
    let next2 = (next1 + u64::from(seed2) + 33) % modulus;
    states.insert(site, (next1 as u32, next2 as u32));
    Ok(Value::Double(next1 as f64 / modulus as f64))
}

/// CRC32([start,] text).
fn crc32(a: Args<'_>) -> SqlResult<Value> {
    checksum(a, |start, bytes| {
        let mut hasher = crc32fast::Hasher::new_with_initial(start);
        hasher.update(bytes);
        hasher.finalize()
    })
}

fn crc32c(a: Args<'_>) -> SqlResult<Value> {
    checksum(a, crc32c::crc32c_append)
}

fn checksum(a: Args<'_>, f: fn(u32, &[u8]) -> u32) -> SqlResult<Value> {
    let start = if a.count() > 1 { convert::bits_of(or_null!(a.integer(0))) as u32 } else { 0 };
    let text = or_null!(crate::text_size::stored_bytes(&a, a.count() - 1));
    Ok(Value::UInt(u64::from(f(start, &text))))
}
