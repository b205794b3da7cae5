//! Static types that many functions share: joined types of branches, and string results.

use cohort_types::{SqlResult, TypeKind};

use crate::arith::{int_type, precision_of, scale_of};
use crate::context::SessionEnv;
use crate::expr::Expr;
use crate::expr_type::{
    Coercibility, Derived, ExprType, Flavor, NOT_FIXED_DECIMALS, TypeClass, aggregate_collations,
};

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

/// A string of ASCII characters in the connection's collation (`HEX`, `MD5`, ..).
pub(crate) fn ascii_string(env: &SessionEnv, length: u64) -> ExprType {
    let derived =
        Derived { collation: env.collation_connection, coercibility: Coercibility::Coercible, ascii: true };
    string_of(derived, length)
}

/// A binary string.
pub(crate) fn binary_string(length: u64) -> ExprType {
    let derived = Derived {
        collation: cohort_types::Collation::BINARY,
        coercibility: Coercibility::Implicit,
        ascii: false,
    };
    string_of(derived, length)
}

/// Characters the argument prints.
pub(crate) fn width(arg: &Expr) -> u64 {
    let ty = arg.ty_cow();
    match ty.class() {
        TypeClass::Int => u64::from(ty.length),
        _ => u64::from(ty.char_length()),
    }
}

/// The type all branches of IF, CASE, COALESCE and the like are converted to.
pub(crate) fn joined_type(
    branches: &[&Expr],
    operation: &str,
    env: Option<&SessionEnv>,
) -> SqlResult<ExprType> {
    let nullable = branches.iter().any(|b| b.ty_cow().nullable);
    let types: Vec<ExprType> = branches.iter().map(|b| b.ty()).filter(|t| !t.null_literal).collect();
    let Some(first) = types.first() else { return Ok(ExprType::null()) };
    let ty = match joined_class(&types) {
        TypeClass::Int => joined_int(branches, &types),
        TypeClass::Decimal => joined_decimal(branches, &types),
        TypeClass::Real => {
            let decimals = types.iter().map(|t| t.decimals).max().unwrap_or(NOT_FIXED_DECIMALS);
            let length = types.iter().map(|t| t.length).max().unwrap_or(23);
            if decimals >= NOT_FIXED_DECIMALS {
                ExprType::double()
            } else {
                ExprType::double_fixed(length, decimals)
            }
        }
        TypeClass::Date => ExprType::date(),
        TypeClass::Time => ExprType::time(max_decimals(&types)),
        TypeClass::DateTime => ExprType::datetime(max_decimals(&types)),
        TypeClass::String => joined_string(branches, first, &types, operation, env)?,
    };
    Ok(ty.with_nullable(nullable))
}

fn max_decimals(types: &[ExprType]) -> u8 {
    types.iter().filter(|t| t.is_temporal()).map(|t| t.decimals).max().unwrap_or(0)
}

fn joined_class(types: &[ExprType]) -> TypeClass {
    let has = |class| types.iter().any(|t| t.class() == class);
    let temporal = types.iter().filter(|t| t.is_temporal()).count();
    if has(TypeClass::String) || (temporal > 0 && temporal < types.len()) {
        return TypeClass::String;
    }
    if temporal > 0 {
        let same = types.iter().all(|t| t.class() == types[0].class());
        return if same { types[0].class() } else { TypeClass::DateTime };
    }
    if has(TypeClass::Real) {
        return TypeClass::Real;
    }
    if has(TypeClass::Decimal) || mixes_signs(types) { TypeClass::Decimal } else { TypeClass::Int }
}

/// A BIGINT UNSIGNED and a signed integer have no common integer type.
fn mixes_signs(types: &[ExprType]) -> bool {
    let wide = types.iter().any(|t| t.unsigned && t.kind == TypeKind::BigInt);
    wide && types.iter().any(|t| !t.unsigned && t.kind != TypeKind::Bit && t.kind != TypeKind::Year)
}

fn joined_int(branches: &[&Expr], types: &[ExprType]) -> ExprType {
    let unsigned = types.iter().all(|t| t.unsigned);
    let same_kind = types.iter().all(|t| t.kind == types[0].kind);
    let digits = branches.iter().map(|b| precision_of(b)).max().unwrap_or(1);
    let length = digits + u32::from(!unsigned);
    let mut ty = int_type(length, unsigned);
    if types.iter().all(|t| t.flavor == Flavor::Boolean) {
        ty.flavor = Flavor::Boolean;
    }
    if same_kind {
        ty.kind = types[0].kind;
        ty.length = types.iter().map(|t| t.length).max().unwrap_or(length).max(length);
    } else if types.iter().any(|t| t.kind == TypeKind::BigInt) {
        ty.kind = TypeKind::BigInt;
    }
    ty
}

fn joined_decimal(branches: &[&Expr], types: &[ExprType]) -> ExprType {
    let scale = branches.iter().map(|b| scale_of(b)).max().unwrap_or(0);
    let whole =
        branches.iter().map(|b| precision_of(b) - scale_of(b).min(precision_of(b))).max().unwrap_or(1);
    let unsigned = types.iter().all(|t| t.unsigned);
    ExprType::decimal((whole + scale).clamp(1, 65), scale as u8, unsigned)
}

fn joined_string(
    branches: &[&Expr],
    first: &ExprType,
    types: &[ExprType],
    operation: &str,
    env: Option<&SessionEnv>,
) -> SqlResult<ExprType> {
    let mut joined = aggregate_collations(operation, types)?;
    if joined.coercibility >= Coercibility::Numeric {
        joined = match env {
            Some(env) => or_connection(joined, env),
            None => Derived {
                collation: cohort_types::Collation::UTF8MB4_GENERAL_CI,
                coercibility: Coercibility::Coercible,
                ascii: true,
            },
        };
    }
    let length = branches.iter().map(|b| width(b)).max().unwrap_or(0);
    let mut ty = string_of(joined, length);
    if types.iter().all(|t| t.kind == first.kind && t.kind == TypeKind::Json) {
        ty.kind = TypeKind::Json;
    }
    Ok(ty)
}
