//! Static types that many functions share: string results.

use cohort_types::SqlResult;

use crate::context::SessionEnv;
use crate::expr::Expr;
use crate::expr_type::{Coercibility, Derived, ExprType, TypeClass, aggregate_collations};

/// Whether any argument may be NULL.
pub(crate) fn any_nullable(args: &[Expr]) -> bool {
    args.iter().any(|a| a.ty_cow().nullable)
}

/// The collation of a string made of these arguments; numbers take the connection's.
pub(crate) fn joined_collation(args: &[Expr], env: &SessionEnv, operation: &str) -> SqlResult<Derived> {
    let types: Vec<ExprType> = args.iter().map(Expr::ty).collect();
    let joined = aggregate_collations(operation, &types)?;
    Ok(or_connection(joined, env))
}

/// What is no string of its own is one of the connection's collation.
pub(crate) fn or_connection(joined: Derived, env: &SessionEnv) -> Derived {
    if joined.coercibility < Coercibility::Numeric {
        return joined;
    }
    Derived { collation: env.collation_connection, coercibility: Coercibility::Coercible, ascii: true }
}

/// A string result of a collation.
pub(crate) fn string_of(derived: Derived, length: u64) -> ExprType {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let mut ty = ExprType::string(length, derived.collation, derived.coercibility);
    ty.ascii = derived.ascii;
    ty
}

/// The same for a part of an argument, or an argument in another form: it may be as long as that.
pub(crate) fn long_string_of(derived: Derived, length: u64) -> ExprType {
    let bytes_max = u64::from(u32::MAX) / u64::from(derived.collation.charset().mbmaxlen());
    let length = u32::try_from(length.min(bytes_max)).unwrap_or(u32::MAX);
    let mut ty = ExprType::text(length, derived.collation, derived.coercibility);
    ty.ascii = derived.ascii;
    ty
}

/// A string of ASCII characters in the connection's collation (`HEX`, `MD5`, ..).
pub(crate) fn ascii_string(env: &SessionEnv, length: u64) -> ExprType {
    let derived =
        Derived { collation: env.collation_connection, coercibility: Coercibility::Coercible, ascii: true };
    string_of(derived, length)
}

/// A string of ASCII characters in the connection's collation, of any length.
pub(crate) fn long_ascii_string(env: &SessionEnv, length: u64) -> ExprType {
    let derived =
        Derived { collation: env.collation_connection, coercibility: Coercibility::Coercible, ascii: true };
    long_string_of(derived, length)
}

/// A binary string of any length.
pub(crate) fn long_binary_string(length: u64) -> ExprType {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    ExprType::text(length, cohort_types::Collation::BINARY, Coercibility::Coercible)
}

/// Bytes that the argument takes at most.
pub(crate) fn byte_width(arg: &Expr) -> u64 {
    let ty = arg.ty_cow();
    if ty.class() != TypeClass::String {
        return width(arg);
    }
    (u64::from(ty.length) * u64::from(ty.collation.charset().mbmaxlen())).min(u32::MAX.into())
}

/// A binary string.
pub(crate) fn binary_string(length: u64) -> ExprType {
    let derived = Derived {
        collation: cohort_types::Collation::BINARY,
        coercibility: Coercibility::Coercible,
        ascii: false,
    };
    string_of(derived, length)
}

/// Characters the argument prints.
pub(crate) fn width(arg: &Expr) -> u64 {
    let ty = arg.ty_cow();
    match ty.class() {
        // No string takes more bytes than 32 bits count.
        TypeClass::String => u64::from(ty.length.min(u32::MAX / ty.collation.charset().mbmaxlen())),
        _ => u64::from(ty.length),
    }
}
