//! Arithmetic operators. The classes of the operands select the arithmetic: exact for integers of both 64-bit
//! types, exact up to 65 digits for decimals, double for all other classes.

use cohort_types::{Class, Decimal, IntValue, SqlMode, SqlResult, TypeKind, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::convert;
use crate::convert::hex_number;
use crate::expr::Expr;
use crate::expr_type::{ExprType, Flavor, NOT_FIXED_DECIMALS, TypeClass, decimal_width, int_type};
use crate::function::{Anywhere, Function, NumberOf, Text};
use crate::typing::{byte_width, precision_of, scale_of, width};

pub(crate) static ADD: Function = Function::operator("+", type_add, add);
pub(crate) static SUB: Function = Function::operator("-", type_sub, sub);
pub(crate) static MUL: Function = Function::operator("*", type_mul, mul);
pub(crate) static DIV: Function = Function::operator("/", type_div, div);
pub(crate) static INT_DIV: Function = Function::operator("DIV", type_int_div, int_div);
pub(crate) static MOD: Function = Function::operator("MOD", type_mod, rem);
pub(crate) static NEG: Function = Function::operator("neg", type_neg, neg);

pub(crate) static FUNCTIONS: &[Function] = &[Function::new("mod", 2, 2, type_mod, rem, Text, Anywhere)];

/// Maximum number of characters of a printed DOUBLE.
const DOUBLE_CHARS_MAX: u32 = 53;

/// Returns the class of the arithmetic for these operand types.
pub(crate) fn class_of_types(args: &[Expr]) -> TypeClass {
    let mut joined = TypeClass::Int;
    for arg in args {
        let ty = arg.ty_cow();
        match ty.class() {
            TypeClass::Real => return TypeClass::Real,
            // ENUM and SET are used as their numbers.
            TypeClass::String if matches!(ty.kind, TypeKind::Enum | TypeKind::Set) => {}
            TypeClass::String => return TypeClass::Real,
            TypeClass::Decimal => joined = TypeClass::Decimal,
            TypeClass::Time | TypeClass::DateTime if ty.decimals > 0 => joined = TypeClass::Decimal,
            _ => {}
        }
    }
    joined
}

/// Number of decimal digits of the largest number, by its number of bytes.
const HEX_DIGITS: [u32; 9] = [1, 3, 5, 8, 10, 13, 15, 17, 20];

/// Converts hexadecimal literals to numbers, which they are in arithmetic.
pub(crate) fn hex_as_number(args: &mut [Expr]) {
    for arg in args {
        if let Expr::Const(c) = arg
            && c.ty.flavor == Flavor::Hex
        {
            let bytes = c.value.as_bytes().map_or(0, <[u8]>::len);
            let number = hex_number(&c.value);
            let ty = Expr::constant(number.clone()).ty();
            // The type's length is that of the largest number with this many bytes.
            let length = HEX_DIGITS[bytes.min(HEX_DIGITS.len() - 1)].max(1);
            *arg = Expr::typed_constant(number, ExprType { length, ..ty });
        }
    }
}

fn nullable(args: &[Expr]) -> bool {
    args.iter().any(|a| a.ty_cow().nullable)
}

fn double_with(decimals: u32) -> ExprType {
    if decimals >= u32::from(NOT_FIXED_DECIMALS) {
        return ExprType::double();
    }
    ExprType::double_fixed(17 + decimals, decimals as u8)
}

/// Returns the fraction digits of an argument converted to DOUBLE.
pub(crate) fn real_decimals(arg: &Expr) -> u32 {
    let ty = arg.ty_cow();
    match ty.class() {
        // A computed date and time has the fraction digits of its type.
        TypeClass::String if arg.number_view() == Some(NumberOf::DateTime) => {
            u32::from(datetime_decimals(arg))
        }
        TypeClass::String if ty.null_literal => 0,
        TypeClass::String => u32::from(NOT_FIXED_DECIMALS),
        TypeClass::Int | TypeClass::Date => 0,
        _ => u32::from(ty.decimals),
    }
}

/// Returns the fraction digits of a date and time that a function computes from a text.
fn datetime_decimals(arg: &Expr) -> u8 {
    match arg {
        Expr::Call(call) => call.args.iter().map(crate::typing::temporal_decimals).max().unwrap_or(0),
        _ => 0,
    }
}

fn additive(args: &mut [Expr], mode: SqlMode, is_sub: bool) -> ExprType {
    hex_as_number(args);
    let scale = scale_of(&args[0]).max(scale_of(&args[1]));
    let whole = (precision_of(&args[0]) - scale_of(&args[0]).min(precision_of(&args[0])))
        .max(precision_of(&args[1]) - scale_of(&args[1]).min(precision_of(&args[1])));
    let precision = (whole + scale + 1).min(65);
    let (u0, u1) = (args[0].ty_cow().unsigned, args[1].ty_cow().unsigned);
    let ty = match class_of_types(args) {
        TypeClass::Real => double_with(real_decimals(&args[0]).max(real_decimals(&args[1]))),
        TypeClass::Decimal => ExprType::decimal(precision, scale as u8, u0 && u1),
        _ => {
            let unsigned =
                is_unsigned_result(args) && !(is_sub && mode.has(SqlMode::NO_UNSIGNED_SUBTRACTION));
            int_type(decimal_width(precision, 0, unsigned), unsigned)
        }
    };
    ty.with_nullable(nullable(args))
}

/// Returns whether the integer that an operator returns is unsigned: if an operand is, and none is a date or
/// time, whose number has a sign.
fn is_unsigned_result(args: &[Expr]) -> bool {
    args.iter().any(|arg| arg.ty_cow().unsigned) && !args.iter().any(is_point_in_time)
}

fn is_point_in_time(arg: &Expr) -> bool {
    use TypeKind::{Date, DateTime, Time, Timestamp};
    matches!(arg.ty_cow().kind, Date | Time | DateTime | Timestamp)
}

fn type_add(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(additive(args, env.sql_mode, false))
}

fn type_sub(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(additive(args, env.sql_mode, true))
}

fn type_mul(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    hex_as_number(args);
    let scale = (scale_of(&args[0]) + scale_of(&args[1])).min(38);
    let precision = (precision_of(&args[0]) + precision_of(&args[1])).min(65);
    let (u0, u1) = (args[0].ty_cow().unsigned, args[1].ty_cow().unsigned);
    let ty = match class_of_types(args) {
        TypeClass::Real => double_with(real_decimals(&args[0]).max(real_decimals(&args[1]))),
        TypeClass::Decimal => ExprType::decimal(precision, scale as u8, u0 && u1),
        _ => {
            let unsigned = is_unsigned_result(args);
            int_type(decimal_width(precision, 0, unsigned), unsigned)
        }
    };
    Ok(ty.with_nullable(nullable(args)))
}

fn type_div(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    hex_as_number(args);
    let increment = u32::from(env.div_precision_increment);
    if class_of_types(args) == TypeClass::Real {
        let own = real_decimals(&args[0]);
        let decimals = own.max(real_decimals(&args[1])) + increment;
        let quotient = double_with(decimals);
        let whole = args[0].ty_cow().length.saturating_sub(own);
        let length = if quotient.decimals == NOT_FIXED_DECIMALS { u32::MAX } else { whole + decimals };
        return Ok(ExprType { length: quotient.length.min(length), ..quotient });
    }
    let scale = (scale_of(&args[0]) + increment).min(38);
    let precision = (precision_of(&args[0]) + scale_of(&args[1]) + increment).min(65);
    let unsigned = args[0].ty_cow().unsigned && args[1].ty_cow().unsigned;
    Ok(ExprType::decimal(precision.max(scale), scale as u8, unsigned))
}

fn type_int_div(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    hex_as_number(args);
    let digits = match args[0].ty_cow().class() {
        TypeClass::Real if args[0].ty_cow().decimals < NOT_FIXED_DECIMALS => {
            args[0].ty_cow().length.saturating_sub(args[0].ty_cow().decimals.into())
        }
        TypeClass::Real | TypeClass::String => u32::try_from(width(&args[0])).unwrap_or(u32::MAX),
        _ => precision_of(&args[0]) - scale_of(&args[0]).min(precision_of(&args[0])),
    };
    let unsigned = args[0].ty_cow().unsigned || args[1].ty_cow().unsigned;
    Ok(int_type(digits.clamp(1, 21), unsigned))
}

fn type_mod(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    hex_as_number(args);
    let scale = scale_of(&args[0]).max(scale_of(&args[1]));
    let precision = precision_of(&args[0]).max(precision_of(&args[1]));
    let unsigned = args[0].ty_cow().unsigned;
    Ok(match class_of_types(args) {
        TypeClass::Real => double_with(real_decimals(&args[0]).max(real_decimals(&args[1]))),
        TypeClass::Decimal => ExprType::decimal(precision, scale as u8, unsigned),
        _ => int_type(decimal_width(precision, 0, unsigned), unsigned),
    }
    .with_unsigned(unsigned))
}

fn type_neg(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    hex_as_number(args);
    let ty = args[0].ty();
    let length = u32::try_from(byte_width(&args[0])).unwrap_or(u32::MAX).saturating_add(1);
    Ok(match class_of_types(args) {
        TypeClass::Real => {
            ExprType { length: length.min(DOUBLE_CHARS_MAX), ..double_with(real_decimals(&args[0])) }
        }
        TypeClass::Decimal => ExprType { length, ..negated_decimal(&args[0]) },
        _ if ty.is_temporal() => ExprType { length, ..negated_decimal(&args[0]) },
        _ => int_type(length, false),
    }
    .with_nullable(ty.nullable))
}

fn negated_decimal(arg: &Expr) -> ExprType {
    ExprType::decimal(precision_of(arg), scale_of(arg) as u8, false)
}

/// Two operands converted to the class of their arithmetic.
enum Pair {
    Int(IntValue, IntValue),
    Decimal(Decimal, Decimal),
    Real(f64, f64),
}

/// Returns the class of a value in arithmetic: a temporal value with a fraction is a decimal.
fn class_of_value(value: &Value) -> TypeClass {
    match value {
        Value::DateTime(d) if d.micros != 0 => TypeClass::Decimal,
        Value::Time(t) if t.microsecond() != 0 => TypeClass::Decimal,
        Value::Enum { .. } | Value::Set { .. } => TypeClass::Int,
        other => match other.class() {
            Class::Decimal => TypeClass::Decimal,
            Class::Real | Class::Str => TypeClass::Real,
            _ => TypeClass::Int,
        },
    }
}

fn pair(a: &Args<'_>) -> SqlResult<Option<Pair>> {
    if let [left, right] = a.call.args.as_slice()
        && let (Some(left), Some(right)) = (left.leaf(a.row, a.ctx), right.leaf(a.row, a.ctx))
    {
        match (left, right) {
            (Value::Int(x), Value::Int(y)) => {
                return Ok(Some(Pair::Int(IntValue::Signed(*x), IntValue::Signed(*y))));
            }
            (Value::Decimal(x), Value::Decimal(y)) => return Ok(Some(Pair::Decimal(*x, *y))),
            (Value::Int(x), Value::Decimal(y)) => return Ok(Some(Pair::Decimal(Decimal::from_i64(*x), *y))),
            (Value::Decimal(x), Value::Int(y)) => return Ok(Some(Pair::Decimal(*x, Decimal::from_i64(*y)))),
            (Value::Double(x), Value::Double(y)) => return Ok(Some(Pair::Real(*x, *y))),
            _ => {}
        }
    }
    let (left, right) = (a.number(0)?, a.number(1)?);
    match (left.as_ref(), right.as_ref()) {
        (Value::Int(x), Value::Int(y)) => {
            return Ok(Some(Pair::Int(IntValue::Signed(*x), IntValue::Signed(*y))));
        }
        (Value::Decimal(x), Value::Decimal(y)) => return Ok(Some(Pair::Decimal(*x, *y))),
        _ => {}
    }
    if left.is_null() || right.is_null() {
        // Both operands are converted, so an invalid number warns even if the other operand is NULL.
        for side in [&left, &right] {
            if side.class() == Class::Str {
                convert::to_f64(side, a.ctx)?;
            }
        }
        return Ok(None);
    }
    let (c0, c1) = (class_of_value(&left), class_of_value(&right));
    let ctx = a.ctx;
    if c0 == TypeClass::Real || c1 == TypeClass::Real {
        let (x, y) = (convert::to_f64(&left, ctx)?, convert::to_f64(&right, ctx)?);
        return Ok(x.zip(y).map(|(x, y)| Pair::Real(x, y)));
    }
    if c0 == TypeClass::Decimal || c1 == TypeClass::Decimal {
        let (x, y) = (convert::to_decimal(&left, ctx)?, convert::to_decimal(&right, ctx)?);
        return Ok(x.zip(y).map(|(x, y)| Pair::Decimal(x, y)));
    }
    let (x, y) = (convert::to_int(&left, ctx)?, convert::to_int(&right, ctx)?);
    Ok(x.zip(y).map(|(x, y)| Pair::Int(x, y)))
}

fn is_unsigned(v: IntValue) -> bool {
    matches!(v, IntValue::Unsigned(_))
}

/// Returns whether the result of +, - or * on these integers is unsigned.
fn are_unsigned(a: &Args<'_>, x: IntValue, y: IntValue) -> bool {
    (is_unsigned(x) || is_unsigned(y)) && !a.call.args.iter().any(is_point_in_time)
}

/// Returns an exact integer as BIGINT [UNSIGNED]. Error 1690 if it is out of range.
fn int_result(a: &Args<'_>, exact: Option<i128>, unsigned: bool) -> SqlResult<Value> {
    let fitting = exact.and_then(|v| {
        if unsigned { u64::try_from(v).ok().map(Value::UInt) } else { i64::try_from(v).ok().map(Value::Int) }
    });
    fitting.ok_or_else(|| a.out_of_range(if unsigned { "BIGINT UNSIGNED" } else { "BIGINT" }))
}

fn real_result(a: &Args<'_>, v: f64) -> SqlResult<Value> {
    if v.is_finite() { Ok(Value::Double(v)) } else { Err(a.out_of_range("DOUBLE")) }
}

fn decimal_result<E>(a: &Args<'_>, v: Result<Decimal, E>) -> SqlResult<Value> {
    v.map(Value::Decimal).map_err(|_| a.out_of_range("DECIMAL"))
}

fn add(a: Args<'_>) -> SqlResult<Value> {
    match or_null!(pair(&a)) {
        Pair::Int(x, y) => int_result(&a, Some(x.wide() + y.wide()), are_unsigned(&a, x, y)),
        Pair::Decimal(x, y) => decimal_result(&a, x.add(&y)),
        Pair::Real(x, y) => real_result(&a, x + y),
    }
}

fn sub(a: Args<'_>) -> SqlResult<Value> {
    match or_null!(pair(&a)) {
        Pair::Int(x, y) => {
            let unsigned =
                are_unsigned(&a, x, y) && !a.ctx.env.sql_mode.has(SqlMode::NO_UNSIGNED_SUBTRACTION);
            int_result(&a, Some(x.wide() - y.wide()), unsigned)
        }
        Pair::Decimal(x, y) => decimal_result(&a, x.sub(&y)),
        Pair::Real(x, y) => real_result(&a, x - y),
    }
}

fn mul(a: Args<'_>) -> SqlResult<Value> {
    match or_null!(pair(&a)) {
        Pair::Int(x, y) => int_result(&a, x.wide().checked_mul(y.wide()), are_unsigned(&a, x, y)),
        Pair::Decimal(x, y) => decimal_result(&a, x.mul(&y)),
        Pair::Real(x, y) => real_result(&a, x * y),
    }
}

fn div(a: Args<'_>) -> SqlResult<Value> {
    let (x, y) = match or_null!(pair(&a)) {
        Pair::Real(_, 0.0) => return a.division_by_zero(),
        Pair::Real(x, y) => return real_result(&a, x / y),
        Pair::Decimal(x, y) => (x, y),
        Pair::Int(x, y) => (decimal_of(x), decimal_of(y)),
    };
    match x.div(&y, a.ctx.env.div_precision_increment) {
        None => a.division_by_zero(),
        Some(quotient) => decimal_result(&a, quotient),
    }
}

fn decimal_of(v: IntValue) -> Decimal {
    match v {
        IntValue::Signed(v) => Decimal::from_i64(v),
        IntValue::Unsigned(v) => Decimal::from_u64(v),
    }
}

/// Evaluates both operands as integers or as decimals.
fn exact_pair(a: &Args<'_>) -> SqlResult<Option<Pair>> {
    let (left, right) = (a.number(0)?, a.number(1)?);
    let both = class_of_value(&left) == TypeClass::Int && class_of_value(&right) == TypeClass::Int;
    if both {
        let (x, y) = (convert::to_int(&left, a.ctx)?, convert::to_int(&right, a.ctx)?);
        return Ok(x.zip(y).map(|(x, y)| Pair::Int(x, y)));
    }
    let Some(x) = convert::to_decimal(&left, a.ctx)? else { return Ok(None) };
    let y = convert::to_decimal(&right, a.ctx)?;
    Ok(y.map(|y| Pair::Decimal(x, y)))
}

/// DIV: the quotient truncated to an integer. Doubles and strings are converted to DECIMAL.
fn int_div(a: Args<'_>) -> SqlResult<Value> {
    let unsigned_type = a.call.ty.unsigned;
    let (x, y) = match or_null!(exact_pair(&a)) {
        Pair::Int(_, y) if y.wide() == 0 => return a.division_by_zero(),
        Pair::Int(x, y) => {
            return int_result(&a, Some(x.wide() / y.wide()), is_unsigned(x) || is_unsigned(y));
        }
        Pair::Decimal(x, y) => (x, y),
        Pair::Real(..) => return Ok(Value::Null),
    };
    let quotient = match x.div_int(&y) {
        None => return a.division_by_zero(),
        Some(quotient) => quotient.map_err(|_| a.out_of_range("DECIMAL"))?,
    };
    let mut digits = Vec::new();
    quotient.write_text(&mut digits);
    let exact = std::str::from_utf8(&digits).ok().and_then(|t| t.split('.').next()?.parse::<i128>().ok());
    int_result(&a, exact, unsigned_type)
}

fn rem(a: Args<'_>) -> SqlResult<Value> {
    match or_null!(pair(&a)) {
        Pair::Int(_, y) if y.wide() == 0 => a.division_by_zero(),
        Pair::Int(x, y) => int_result(&a, Some(x.wide() % y.wide()), is_unsigned(x)),
        Pair::Decimal(x, y) => match x.rem(&y) {
            None => a.division_by_zero(),
            Some(rest) => Ok(Value::Decimal(rest)),
        },
        Pair::Real(_, 0.0) => a.division_by_zero(),
        Pair::Real(x, y) => real_result(&a, x % y),
    }
}

fn neg(a: Args<'_>) -> SqlResult<Value> {
    let value = a.number(0)?;
    negated(&value, &a)
}

fn negated(value: &Value, a: &Args<'_>) -> SqlResult<Value> {
    match class_of_value(value) {
        TypeClass::Int if a.call.ty.class() == TypeClass::Decimal => {
            Ok(Value::Decimal(or_null!(convert::to_decimal(value, a.ctx)).neg()))
        }
        _ if value.is_null() => Ok(Value::Null),
        TypeClass::Decimal => Ok(Value::Decimal(or_null!(convert::to_decimal(value, a.ctx)).neg())),
        TypeClass::Real => Ok(Value::Double(-or_null!(convert::to_f64(value, a.ctx)))),
        _ => int_result(a, Some(-or_null!(convert::to_int(value, a.ctx)).wide()), false),
    }
}

/// Returns the negated literal.
pub(crate) fn negated_literal(value: &Value) -> Option<Value> {
    const MIN_MAGNITUDE: u64 = 1 << 63;
    match value {
        Value::Int(v) => Some(v.checked_neg().map_or(Value::UInt(MIN_MAGNITUDE), Value::Int)),
        Value::UInt(v) if *v <= MIN_MAGNITUDE => Some(Value::Int((*v as i64).wrapping_neg())),
        Value::UInt(v) => Some(Value::Decimal(Decimal::from_u64(*v).neg())),
        Value::Decimal(d) => Some(Value::Decimal(d.neg())),
        Value::Double(d) => Some(Value::Double(-d)),
        _ => None,
    }
}
