//! Static types of string results, used by many functions.

use cohort_types::{SqlResult, Value};

use crate::context::SessionEnv;
use crate::expr::Expr;
use crate::expr_type::{Coercibility, Derived, ExprType, TypeClass, aggregate_collations};

/// Returns true if an argument may be NULL.
pub(crate) fn any_nullable(args: &[Expr]) -> bool {
    args.iter().any(|a| a.ty_cow().nullable)
}

/// Returns the collation of a string that is made of these arguments; numbers have the connection's.
pub(crate) fn joined_collation(args: &[Expr], env: &SessionEnv, operation: &str) -> SqlResult<Derived> {
    let types: Vec<ExprType> = args.iter().map(Expr::ty).collect();
    let joined = aggregate_collations(operation, &types)?;
    Ok(or_connection(joined, env))
}

/// Replaces the collation of numbers by the connection's.
pub(crate) fn or_connection(joined: Derived, env: &SessionEnv) -> Derived {
    if joined.coercibility < Coercibility::Numeric {
        return joined;
    }
    Derived { collation: env.collation_connection, coercibility: Coercibility::Coercible, ascii: true }
}

/// Returns the type of a string with a collation.
pub(crate) fn string_of(derived: Derived, length: u64) -> ExprType {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let mut ty = ExprType::string(length, derived.collation, derived.coercibility);
    ty.ascii = derived.ascii;
    ty
}

/// Returns the type of a substring or conversion of an argument, which may be as long as the longest text.
pub(crate) fn long_string_of(derived: Derived, length: u64) -> ExprType {
    let bytes_max = u64::from(u32::MAX) / u64::from(derived.collation.charset().mbmaxlen());
    let length = u32::try_from(length.min(bytes_max)).unwrap_or(u32::MAX);
    let mut ty = ExprType::text(length, derived.collation, derived.coercibility);
    ty.ascii = derived.ascii;
    ty
}

/// Returns the type of an ASCII string in the connection's collation (`HEX`, `MD5`, ..).
pub(crate) fn ascii_string(env: &SessionEnv, length: u64) -> ExprType {
    let derived =
        Derived { collation: env.collation_connection, coercibility: Coercibility::Coercible, ascii: true };
    string_of(derived, length)
}

/// Returns the type of an ASCII string of any length in the connection's collation.
pub(crate) fn long_ascii_string(env: &SessionEnv, length: u64) -> ExprType {
    let derived =
        Derived { collation: env.collation_connection, coercibility: Coercibility::Coercible, ascii: true };
    long_string_of(derived, length)
}

/// Returns the type of a binary string of any length.
pub(crate) fn long_binary_string(length: u64) -> ExprType {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    ExprType::text(length, cohort_types::Collation::BINARY, Coercibility::Coercible)
}

/// Returns the maximum length of the argument in bytes.
pub(crate) fn byte_width(arg: &Expr) -> u64 {
    let ty = arg.ty_cow();
    if ty.class() != TypeClass::String {
        return width(arg);
    }
    (u64::from(ty.length) * u64::from(ty.collation.charset().mbmaxlen())).min(u32::MAX.into())
}

/// Returns the type of a binary string.
pub(crate) fn binary_string(length: u64) -> ExprType {
    let derived = Derived {
        collation: cohort_types::Collation::BINARY,
        coercibility: Coercibility::Coercible,
        ascii: false,
    };
    string_of(derived, length)
}

/// Returns the maximum length of the printed argument in characters.
pub(crate) fn width(arg: &Expr) -> u64 {
    let ty = arg.ty_cow();
    match ty.class() {
        // A string has at most 2^32 - 1 bytes.
        TypeClass::String => u64::from(ty.length.min(u32::MAX / ty.collation.charset().mbmaxlen())),
        _ => u64::from(ty.length),
    }
}

/// Returns the number of fraction digits of a temporal function's argument.
pub(crate) fn temporal_decimals(arg: &Expr) -> u8 {
    let ty = arg.ty_cow();
    match (arg, ty.class()) {
        (_, TypeClass::Int | TypeClass::Date) => 0,
        (Expr::Const(c), TypeClass::String) => match &c.value {
            Value::Str(s) => digits_after_point(&s.bytes),
            _ => 0,
        },
        _ => ty.decimals.min(6),
    }
}

/// Returns the number of digits after the last point of a text, at most six.
fn digits_after_point(text: &[u8]) -> u8 {
    match text.iter().rposition(|b| *b == b'.') {
        None => 0,
        Some(at) => text[at + 1..].iter().take(6).take_while(|b| b.is_ascii_digit()).count() as u8,
    }
}

/// Returns the digits of an argument converted to DECIMAL.
pub(crate) fn precision_of(arg: &Expr) -> u32 {
    let ty = arg.ty_cow();
    match (arg, ty.class()) {
        (Expr::Const(c), TypeClass::Int) => {
            let negative = matches!(c.value, Value::Int(v) if v < 0);
            ty.length.saturating_sub(u32::from(negative)).max(1)
        }
        (_, TypeClass::Date) => 8,
        (_, TypeClass::DateTime) => 14 + u32::from(ty.decimals),
        (_, TypeClass::Time) => 7 + u32::from(ty.decimals),
        _ => ty.precision(),
    }
}

/// Returns the fraction digits of an argument converted to DECIMAL.
pub(crate) fn scale_of(arg: &Expr) -> u32 {
    let ty = arg.ty_cow();
    match ty.class() {
        TypeClass::Int | TypeClass::Date | TypeClass::String => 0,
        _ => u32::from(ty.decimals.min(38)),
    }
}
