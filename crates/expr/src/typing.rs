//! Static types of string results, used by many functions.

use cohort_types::SqlResult;

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
