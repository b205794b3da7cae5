//! Operations on several character sets and collations: the collation of the result, and conversions of the
//! operands.
//!
//! Text is UTF-8 in memory, regardless of its character set. In an operation with a binary string, it is
//! converted to the bytes of its character set.

use std::borrow::Cow;

use cohort_types::{Charset, Collation, SqlResult, Value};

use crate::context::SessionEnv;
use crate::convert::encode;
use crate::expr::{Cast, CastType, Expr};
use crate::expr_type::{
    Coercibility, Derived, ExprType, TypeClass, aggregate_collations, illegal_mix, join_collations,
};
use crate::typing::or_connection;

/// Returns the collation of a text that is made of these arguments; numbers have the connection's. If one
/// argument is binary, all become bytes.
pub(crate) fn joined_texts(args: &mut [Expr], env: &SessionEnv, operation: &str) -> SqlResult<Derived> {
    let types: Vec<ExprType> = args.iter().map(Expr::ty).collect();
    let joined = aggregate_collations(operation, &types)?;
    become_joined(args, joined.collation, operation, &types.iter().collect::<Vec<_>>())?;
    Ok(or_connection(joined, env))
}

/// Variant for two arguments that are not adjacent.
pub(crate) fn joined_pair(
    left: &mut Expr,
    right: &mut Expr,
    env: &SessionEnv,
    operation: &str,
) -> SqlResult<Derived> {
    let types = [left.ty(), right.ty()];
    let joined = aggregate_collations(operation, &types)?;
    for arg in [left, right] {
        become_joined(std::slice::from_mut(arg), joined.collation, operation, &[&types[0], &types[1]])?;
    }
    Ok(or_connection(joined, env))
}

/// Variant for arguments that are compared with each other.
pub(crate) fn compared_texts(args: &mut [Expr], env: &SessionEnv, operation: &str) -> SqlResult<Derived> {
    Ok(or_connection(compared(args, operation)?, env))
}

/// Returns the collation for a comparison of the arguments. If it is binary, they become bytes.
pub(crate) fn compared(args: &mut [Expr], operation: &str) -> SqlResult<Derived> {
    let types: Vec<ExprType> = args.iter().map(Expr::ty).collect();
    let types: Vec<&ExprType> = types.iter().collect();
    let joined = compared_types(operation, &types)?;
    if types.iter().all(|ty| ty.class() == TypeClass::String) {
        become_joined(args, joined.collation, operation, &types)?;
    }
    Ok(joined)
}

/// Returns the collation for a comparison of these types. Error 1267, 1270 or 1271 if texts have no common
/// collation.
pub(crate) fn compared_types(operation: &str, types: &[&ExprType]) -> SqlResult<Derived> {
    let joined = aggregate_collations(operation, types.iter().copied())?;
    let is_text = |ty: &&ExprType| ty.class() == TypeClass::String;
    if joined.coercibility == Coercibility::NoCollation && types.iter().all(is_text) {
        return Err(illegal_mix(operation, types));
    }
    Ok(joined)
}

/// Converts two operands of a comparison operator to texts of one character set, or to bytes.
pub(crate) fn compared_pair(left: &mut Expr, right: &mut Expr) {
    let joined = {
        let (l, r) = (left.ty_cow(), right.ty_cow());
        let are_texts = l.class() == TypeClass::String && r.class() == TypeClass::String;
        let has_bytes = (l.collation == Collation::BINARY) != (r.collation == Collation::BINARY);
        match are_texts && has_bytes {
            true => join_collations(Derived::of(&l), Derived::of(&r)),
            false => None,
        }
    };
    if let Some(joined) = joined {
        for operand in [left, right] {
            match joined.collation {
                Collation::BINARY => into_bytes(operand),
                collation => into_text(operand, collation),
            }
        }
    }
}

/// Returns true if the character set of a comparison lacks characters of a constant text, which makes it
/// invalid.
pub(crate) fn lacks_characters(arg: &Expr, joined: Collation) -> bool {
    let Expr::Const(node) = arg else { return false };
    let Value::Str(text) = &node.value else { return false };
    let charset = joined.charset();
    text.collation != Collation::BINARY
        && !matches!(charset, Charset::Binary)
        && !charset.is_unicode()
        && text.collation.charset() != charset
        && charset.check(&text.bytes).is_err()
}

/// Converts arguments to their common collation.
fn become_joined(
    args: &mut [Expr],
    joined: Collation,
    operation: &str,
    types: &[&ExprType],
) -> SqlResult<()> {
    if args.iter().any(|arg| lacks_characters(arg, joined)) {
        return Err(illegal_mix(operation, types));
    }
    match joined {
        Collation::BINARY => args.iter_mut().for_each(into_bytes),
        joined => args.iter_mut().for_each(|arg| into_text(arg, joined)),
    }
    Ok(())
}

/// Converts bytes to a text of a character set that differs from the in-memory one.
fn into_text(arg: &mut Expr, collation: Collation) {
    let ty = arg.ty_cow().into_owned();
    let is_bytes = ty.class() == TypeClass::String && ty.collation == Collation::BINARY && !ty.null_literal;
    if !is_bytes || collation.charset().is_as_in_memory() {
        return;
    }
    let text = ExprType::text(ty.length, collation, ty.coercibility).with_nullable(ty.nullable);
    let operand = std::mem::replace(arg, Expr::null());
    let to = CastType::Char { length: None, collation };
    *arg = Expr::Cast(Box::new(Cast { operand, to, ty: text }));
}

/// Converts a text to the bytes of its character set if that differs from the in-memory one.
fn into_bytes(arg: &mut Expr) {
    let ty = arg.ty_cow().into_owned();
    let charset = ty.collation.charset();
    if ty.class() != TypeClass::String
        || ty.null_literal
        || charset == Charset::Binary
        || charset.is_as_in_memory()
    {
        return;
    }
    let length = u64::from(ty.length) * u64::from(charset.mbmaxlen());
    let bytes = ExprType::text(u32::try_from(length).unwrap_or(u32::MAX), Collation::BINARY, ty.coercibility);
    let bytes = bytes.with_nullable(ty.nullable);
    let operand = std::mem::replace(arg, Expr::null());
    let constant = match &operand {
        Expr::Const(node) => match &node.value {
            Value::Str(text) => Some(encode(Cow::Borrowed(&text.bytes), text.collation).into_owned()),
            _ => None,
        },
        _ => None,
    };
    *arg = match constant {
        Some(constant) => Expr::typed_constant(Value::binary(constant), bytes),
        None => {
            let to = CastType::Binary { length: None };
            Expr::Cast(Box::new(Cast { operand, to, ty: bytes }))
        }
    };
}
