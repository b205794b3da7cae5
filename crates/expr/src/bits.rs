//! Bit operators and functions on 64-bit unsigned integers.

use cohort_types::{Class, SqlResult, TypeKind, Value};

use crate::args::{Args, or_null};
use crate::arith::hex_as_number;
use crate::context::SessionEnv;
use crate::convert::{self, bits_of};
use crate::expr::Expr;
use crate::expr_type::ExprType;
use crate::function::{Anywhere, Function, Rows};

pub(crate) static AND: Function = Function::operator("&", type_bits, and);
pub(crate) static OR: Function = Function::operator("|", type_bits, or);
pub(crate) static XOR: Function = Function::operator("^", type_bits, xor);
pub(crate) static LEFT: Function = Function::operator("<<", type_bits, shift_left);
pub(crate) static RIGHT: Function = Function::operator(">>", type_bits, shift_right);
pub(crate) static NOT: Function = Function::operator("~", type_bits, not);

pub(crate) static FUNCTIONS: &[Function] =
    &[Function::new("bit_count", 1, 1, type_count, count, Rows, Anywhere)];

fn type_bits(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    hex_as_number(args);
    let nullable = args.iter().any(|a| a.ty_cow().nullable);
    Ok(ExprType::number(TypeKind::BigInt, 21, 0).with_unsigned(true).with_nullable(nullable))
}

fn type_count(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType { length: 2, kind: TypeKind::Int, unsigned: false, ..type_bits(args, env)? })
}

/// Applies an operation to both operands as bits. An operand that is not an integer is converted to DECIMAL,
/// which rounds half away from zero.
fn both(a: Args<'_>, operation: fn(u64, u64) -> u64) -> SqlResult<Value> {
    let x = or_null!(bits(&a, 0));
    let y = or_null!(bits(&a, 1));
    Ok(Value::UInt(operation(x, y)))
}

fn bits(a: &Args<'_>, n: usize) -> SqlResult<Option<u64>> {
    let value = a.number(n)?;
    if let Class::Int | Class::Null = value.class() {
        return Ok(convert::to_int(&value, a.ctx)?.map(bits_of));
    }
    let Some(exact) = convert::to_decimal(&value, a.ctx)? else { return Ok(None) };
    Ok(convert::to_int(&Value::Decimal(exact), a.ctx)?.map(bits_of))
}

fn and(a: Args<'_>) -> SqlResult<Value> {
    both(a, |x, y| x & y)
}

fn or(a: Args<'_>) -> SqlResult<Value> {
    both(a, |x, y| x | y)
}

fn xor(a: Args<'_>) -> SqlResult<Value> {
    both(a, |x, y| x ^ y)
}

/// Shifts the first operand. The distance is always converted to an integer.
fn shift(a: Args<'_>, operation: fn(u64, u64) -> u64) -> SqlResult<Value> {
    let x = or_null!(bits(&a, 0));
    let y = bits_of(or_null!(a.integer(1)));
    Ok(Value::UInt(operation(x, y)))
}

fn shift_left(a: Args<'_>) -> SqlResult<Value> {
    shift(a, |x, y| if y < 64 { x << y } else { 0 })
}

fn shift_right(a: Args<'_>) -> SqlResult<Value> {
    shift(a, |x, y| if y < 64 { x >> y } else { 0 })
}

fn not(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::UInt(!or_null!(bits(&a, 0))))
}

fn count(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::Int(i64::from(or_null!(bits(&a, 0)).count_ones())))
}
