//! Functions that select one of their arguments.

use std::borrow::Cow;
use std::cmp::Ordering;

use cohort_types::{Collation, SqlError, SqlMode, SqlResult, TypeKind, Value};

use crate::args::{Args, or_null};
use crate::compare::{CompareHow, compare, compare_operands};
use crate::context::{EvalContext, SessionEnv};
use crate::convert;
use crate::convert::encode;
use crate::expr::{Call, Expr};
use crate::expr_type::{Derived, ExprType, NOT_FIXED_DECIMALS, TypeClass, join_collations};
use crate::function::{ANY, Anywhere, Function, NumberOf, Rows, Text};
use crate::joined::joined_type;
use crate::mixing::{compared, compared_types, joined_texts};
use crate::typing::{any_nullable, long_string_of, width};

pub(crate) static IS_TRUE: Function = Function::new("istrue", 1, 1, type_flag, is_true, Rows, Anywhere);
pub(crate) static IS_FALSE: Function = Function::new("isfalse", 1, 1, type_flag, is_false, Rows, Anywhere);
pub(crate) static XOR: Function = Function::operator("xor", type_truth, xor);

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("if", 3, 3, type_if, eval_if, Text, Anywhere),
    Function::new("ifnull", 2, 2, type_coalesce, coalesce, Text, Anywhere),
    Function::new("nvl", 2, 2, type_coalesce, coalesce, Text, Anywhere),
    Function::new("nvl2", 3, 3, type_nvl2, nvl2, Rows, Anywhere),
    Function::new("nullif", 2, 2, type_nullif, nullif, Text, Anywhere),
    Function::new("coalesce", 1, ANY, type_coalesce, coalesce, Text, Anywhere),
    Function::new("last_value", 1, ANY, type_last, last, Rows, Anywhere),
    Function::new("isnull", 1, 1, type_flag, isnull, Text, Anywhere),
    Function::new("greatest", 2, ANY, type_extreme, greatest, Text, Anywhere)
        .with_number(NumberOf::OfArguments),
    Function::new("least", 2, ANY, type_extreme, least, Text, Anywhere).with_number(NumberOf::OfArguments),
    Function::new("interval", 2, ANY, type_interval, interval, Rows, Anywhere),
    Function::new("elt", 2, ANY, type_elt, elt, Rows, Anywhere),
    Function::new("field", 2, ANY, type_index, field, Rows, Anywhere),
];

fn type_flag(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::boolean().with_nullable(false))
}

fn type_truth(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::boolean().with_nullable(any_nullable(args)))
}

fn type_if(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let ty = joined_type(&[&args[1], &args[2]], "if", Some(env))?;
    // MariaDB derives the nullability from the condition before the parameter has a value.
    let is_param = matches!(args[0], Expr::Param(_));
    Ok(if is_param { ty.with_nullable(true) } else { ty })
}

fn type_nvl2(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    joined_type(&[&args[1], &args[2]], "nvl2", Some(env))
}

fn type_last(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(args.last().map_or_else(ExprType::boolean, Expr::ty))
}

/// LAST_VALUE(a, b, ..) without a window: evaluates all arguments for their side effects.
fn last(a: Args<'_>) -> SqlResult<Value> {
    let mut value = Value::Null;
    for n in 0..a.count() {
        value = a.value(n)?.into_owned();
    }
    Ok(value)
}

fn type_nullif(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    let (left, right) = (args[0].ty_cow(), args[1].ty_cow());
    compared_types("nullif", &[left.as_ref(), right.as_ref()])?;
    drop((left, right));
    Ok(args[0].ty().taken().with_nullable(true))
}

fn type_coalesce(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let nullable = args.iter().all(|a| a.ty_cow().nullable);
    let branches: Vec<&Expr> = args.iter().collect();
    Ok(joined_type(&branches, "coalesce", Some(env))?.with_nullable(nullable))
}

fn type_extreme(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let branches: Vec<&Expr> = args.iter().collect();
    let types: Vec<ExprType> = args.iter().map(Expr::ty).filter(|t| !t.null_literal).collect();
    // A temporal argument makes all other arguments temporal.
    let temporal = types.iter().find(|t| t.is_temporal());
    if let (Some(temporal), true) = (temporal, types.iter().any(|t| !t.is_temporal())) {
        let of_dates: Vec<&Expr> = args.iter().filter(|a| a.ty_cow().is_temporal()).collect();
        let joined = joined_type(&of_dates, "greatest", Some(env)).unwrap_or(temporal.clone());
        let decimals_of = |arg: &Expr| match (arg, arg.ty_cow().class()) {
            (Expr::Const(node), TypeClass::String) => literal_decimals(&node.value),
            (_, TypeClass::String) => 6,
            _ => crate::typing::temporal_decimals(arg),
        };
        let decimals = args.iter().map(decimals_of).max().unwrap_or(0);
        return Ok(match joined.class() {
            TypeClass::Time => ExprType::time(decimals),
            TypeClass::DateTime => ExprType::datetime(decimals),
            _ => joined,
        }
        .with_nullable(true));
    }
    if types.iter().any(|t| t.class() == TypeClass::Fixed) {
        return joined_type(&branches, "least", Some(env));
    }
    // A mix of numbers and strings converts the strings to numbers.
    let strings = types.iter().filter(|t| t.class() == TypeClass::String).count();
    if strings > 0 && strings < types.len() {
        let numbers = |t: &ExprType| matches!(t.kind, TypeKind::Enum | TypeKind::Set | TypeKind::Bit);
        let ty = if types.iter().any(numbers) && types.iter().all(|t| t.decimals == 0) {
            ExprType::double_fixed(17, 0)
        } else {
            ExprType::double()
        };
        return Ok(ty.with_nullable(any_nullable(args)));
    }
    let joined = joined_type(&branches, "greatest", Some(env))?;
    let is_float = types.iter().all(|t| t.kind == TypeKind::Float);
    Ok(match joined.class() {
        TypeClass::Real if is_float => ExprType { length: 23, ..joined },
        TypeClass::Real if joined.decimals < NOT_FIXED_DECIMALS => {
            ExprType::double_fixed(17 + u32::from(joined.decimals), joined.decimals)
        }
        TypeClass::Real => ExprType::double(),
        _ => joined,
    }
    .with_nullable(any_nullable(args)))
}

/// Returns the fraction digits of a text among dates, six if it is not a date or time.
fn literal_decimals(value: &Value) -> u8 {
    let text = value.as_bytes().unwrap_or_default();
    let datetime = cohort_types::DateTime::parse(text, SqlMode::ALLOW_INVALID_DATES);
    let time = cohort_types::Time::parse(text, SqlMode::ALLOW_INVALID_DATES);
    match (datetime.value, time.value) {
        (Some(_), _) => datetime.decimals,
        (None, Some(_)) if time.issues.is_good() => time.decimals,
        _ => 6,
    }
}

fn type_index(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    if args.iter().all(|arg| arg.ty_cow().class() == TypeClass::String) {
        compared(args, "field")?;
    }
    Ok(ExprType::number(TypeKind::Int, 3, 0).with_nullable(false))
}

fn type_interval(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::number(TypeKind::Int, 2, 0).with_nullable(false))
}

fn type_elt(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let derived = joined_texts(&mut args[1..], env, "elt")?;
    let text = long_string_of(derived, args[1..].iter().map(width).max().unwrap_or(0));
    let decimals = args[1..].iter().map(|a| a.ty_cow().decimals).max();
    let decimals = decimals.filter(|d| *d < NOT_FIXED_DECIMALS).unwrap_or(text.decimals);
    Ok(ExprType { decimals, ..text })
}

fn is_true(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::bool(a.expr(0).eval_bool(a.row, a.ctx)? == Some(true)))
}

fn is_false(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::bool(a.expr(0).eval_bool(a.row, a.ctx)? == Some(false)))
}

fn xor(a: Args<'_>) -> SqlResult<Value> {
    let x = or_null!(a.expr(0).eval_bool(a.row, a.ctx));
    let y = or_null!(a.expr(1).eval_bool(a.row, a.ctx));
    Ok(Value::bool(x != y))
}

/// Evaluates argument n and converts it to the call's type.
fn branch(a: &Args<'_>, n: usize) -> SqlResult<Value> {
    let value = a.value(n)?;
    let own = a.expr(n).ty_cow();
    Ok(convert::to_class(value, &own, &a.call.ty, a.ctx)?.into_owned())
}

fn eval_if(a: Args<'_>) -> SqlResult<Value> {
    branch(&a, if a.expr(0).passes(a.row, a.ctx)? { 1 } else { 2 })
}

fn nvl2(a: Args<'_>) -> SqlResult<Value> {
    branch(&a, if a.value(0)?.is_null() { 2 } else { 1 })
}

fn coalesce(a: Args<'_>) -> SqlResult<Value> {
    for n in 0..a.count() {
        let found = branch(&a, n)?;
        if !found.is_null() {
            return Ok(found);
        }
    }
    Ok(Value::Null)
}

/// Returns the comparison method of the arguments.
fn how(a: &Args<'_>) -> CompareHow {
    let collation = if a.call.ty.class() == TypeClass::String {
        a.call.ty.collation
    } else {
        a.expr(0).ty_cow().collation
    };
    CompareHow::scalar(collation)
}

/// NULLIF(a, b): compares like `a = b`, but returns `a` as it was before conversions for the comparison.
fn nullif(a: Args<'_>) -> SqlResult<Value> {
    let (left, right) = (a.expr(0), a.expr(1));
    let joined = join_collations(Derived::of(&left.ty_cow()), Derived::of(&right.ty_cow()));
    let collation = joined.map_or(left.ty_cow().collation, |joined| joined.collation);
    let how = CompareHow::scalar(collation);
    let value = a.value(0)?;
    let other = right.compared_value(a.value(1)?, left, &how);
    let compared = left.compared_value(Cow::Borrowed(value.as_ref()), right, &how);
    let (compared, other) = (in_own_bytes(compared, collation), in_own_bytes(other, collation));
    let exprs = [Some(left), Some(right)];
    let equal = compare_operands(&compared, &other, &how, exprs, a.ctx)? == Some(Ordering::Equal);
    Ok(if equal { Value::Null } else { value.into_owned() })
}

/// Converts a text that is compared with bytes to the bytes of its character set.
fn in_own_bytes(value: Cow<'_, Value>, collation: Collation) -> Cow<'_, Value> {
    match value.as_ref() {
        Value::Str(text) if collation == Collation::BINARY && !text.collation.charset().is_as_in_memory() => {
            Cow::Owned(Value::binary(encode(Cow::Borrowed(&text.bytes), text.collation).into_owned()))
        }
        _ => value,
    }
}

fn isnull(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::bool(a.value(0)?.is_null()))
}

fn greatest(a: Args<'_>) -> SqlResult<Value> {
    extreme(a, Ordering::Greater)
}

fn least(a: Args<'_>) -> SqlResult<Value> {
    extreme(a, Ordering::Less)
}

/// Evaluates argument n of GREATEST and LEAST. If the result is temporal, arguments are converted as in a
/// comparison of dates.
fn extreme_operand(a: &Args<'_>, n: usize) -> SqlResult<Value> {
    let ty = &a.call.ty;
    if !ty.is_temporal() {
        return branch(a, n);
    }
    let value = a.value(n)?;
    if value.is_null() {
        return Ok(Value::Null);
    }
    let from = convert::Origin::compared(Some(a.expr(n)));
    Ok(match ty.class() {
        TypeClass::Time => Value::Time(convert::to_time(&value, from, a.ctx)?.unwrap_or_default()),
        TypeClass::Date => Value::Date(convert::to_datetime(&value, from, a.ctx)?.unwrap_or_default().date),
        _ => Value::DateTime(convert::to_datetime(&value, from, a.ctx)?.unwrap_or_default()),
    })
}

fn extreme(a: Args<'_>, wanted: Ordering) -> SqlResult<Value> {
    let how = how(&a);
    let mut best = extreme_operand(&a, 0)?;
    for n in 1..a.count() {
        if best.is_null() {
            break;
        }
        let next = extreme_operand(&a, n)?;
        match compare(&next, &best, &how, a.ctx)? {
            None => return Ok(Value::Null),
            Some(order) if order == wanted => best = next,
            Some(_) => {}
        }
    }
    Ok(best)
}

/// Evaluates LEAST or GREATEST of strings in a numeric context: compares the arguments as numbers.
pub(crate) fn extreme_number(call: &Call, row: &[Value], ctx: &EvalContext<'_>) -> SqlResult<Value> {
    let wanted = if call.function.name == "least" { Ordering::Less } else { Ordering::Greater };
    let mut best: Option<f64> = None;
    for arg in &call.args {
        let value = arg.eval_number(row, ctx)?;
        let next = or_null!(convert::to_f64(&value, ctx));
        if best.is_none_or(|best| next.partial_cmp(&best) == Some(wanted)) {
            best = Some(next);
        }
    }
    Ok(best.map_or(Value::Null, Value::Double))
}

/// INTERVAL(n, a, b, ..): number of the ascending values a, b, .. that are at most n; -1 if n is NULL.
fn interval(a: Args<'_>) -> SqlResult<Value> {
    let wanted = a.number(0)?;
    if wanted.is_null() {
        return Ok(Value::Int(-1));
    }
    let how = CompareHow::Scalar { collation: cohort_types::Collation::BINARY, class: Some(TypeClass::Real) };
    let mut found = a.count() - 1;
    for n in 1..a.count() {
        let bound = a.number(n)?;
        if compare(&wanted, &bound, &how, a.ctx)? == Some(Ordering::Less) {
            found = n - 1;
            break;
        }
    }
    Ok(Value::Int(found as i64))
}

fn elt(a: Args<'_>) -> SqlResult<Value> {
    let n = or_null!(a.int(0));
    if n < 1 || n as u64 >= a.count() as u64 {
        return Ok(Value::Null);
    }
    let text = or_null!(a.text(n as usize));
    a.string(text)
}

/// FIELD(x, a, b, ..): position of the first of a, b, .. that equals x, or 0. Compares strings if all
/// arguments are strings, otherwise numbers.
fn field(a: Args<'_>) -> SqlResult<Value> {
    let classes: Vec<TypeClass> = a.call.args.iter().map(|e| e.ty_cow().class()).collect();
    let is_text = |c: &TypeClass| {
        matches!(c, TypeClass::String | TypeClass::Date | TypeClass::Time | TypeClass::DateTime)
    };
    let class = if classes.iter().all(is_text) {
        TypeClass::String
    } else if classes.iter().all(|c| *c == TypeClass::Int) {
        TypeClass::Int
    } else {
        TypeClass::Real
    };
    let operand = |n| if class == TypeClass::String { a.value(n) } else { a.number(n) };
    let wanted = operand(0)?;
    if wanted.is_null() {
        return Ok(Value::Int(0));
    }
    // Numbers have no collations that could conflict.
    let collation = match class {
        TypeClass::String => collation_of_strings(&a.call.args)?,
        _ => cohort_types::Collation::BINARY,
    };
    let how = CompareHow::Scalar { collation, class: Some(class) };
    for n in 1..a.count() {
        let candidate = operand(n)?;
        if compare(&wanted, &candidate, &how, a.ctx)? == Some(Ordering::Equal) {
            return Ok(Value::Int(n as i64));
        }
    }
    Ok(Value::Int(0))
}

fn collation_of_strings(args: &[Expr]) -> SqlResult<cohort_types::Collation> {
    let types: Vec<Cow<'_, ExprType>> = args.iter().map(Expr::ty_cow).collect();
    Ok(crate::expr_type::aggregate_collations("field", types.iter().map(AsRef::as_ref))?.collation)
}

/// Returns error 1241 for a row of another size than `wanted`.
pub(crate) fn wrong_columns(wanted: usize) -> SqlError {
    SqlError::operand_columns(wanted)
}
