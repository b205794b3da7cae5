//! Static types of the JSON functions: result lengths by MariaDB's estimates, and character sets. A literal
//! word (true, null) has its printed length; every character of a string may be escaped.

use cohort_types::{Collation, SqlResult, TypeKind};

use crate::context::SessionEnv;
use crate::expr::Expr;
use crate::expr_type::{Coercibility, Derived, ExprType, Flavor, TypeClass};
use crate::typing::{byte_width, joined_collation, long_string_of, or_connection, string_of, width};

/// Maximum length of an escaped character of a path: `\\u1234`.
const ESCAPED_CHARS: u64 = 6;

/// Length that JSON_DETAILED reports, in bytes.
const DETAILED_BYTES: u64 = 1 << 24;

/// Returns the length of an argument as a value inside a document.
fn value_chars(arg: &Expr) -> u64 {
    let ty = arg.ty_cow();
    if ty.nullable {
        return chars_of(arg).max(4);
    }
    chars_of(arg)
}

fn chars_of(arg: &Expr) -> u64 {
    let ty = arg.ty_cow();
    match ty.class() {
        _ if ty.flavor == Flavor::Boolean => 5,
        TypeClass::Int | TypeClass::Decimal | TypeClass::Real => width(arg),
        _ if ty.is_json() => width(arg),
        _ => width(arg).saturating_mul(2),
    }
}

fn json(ty: ExprType) -> ExprType {
    ExprType { kind: TypeKind::Json, ..ty }
}

/// Returns the type of a document in the character set of the first argument.
fn of_first(args: &[Expr], env: &SessionEnv, length: u64) -> SqlResult<ExprType> {
    Ok(json(string_of(joined_collation(&args[..1], env, "json")?, length)))
}

fn in_utf8mb4_bin(length: u64) -> ExprType {
    let derived =
        Derived { collation: Collation::UTF8MB4_BIN, coercibility: Coercibility::Coercible, ascii: false };
    string_of(derived, length)
}

/// Returns the type of JSON_ARRAY and of the merge functions.
pub(crate) fn array(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let length = args.iter().map(|a| value_chars(a).saturating_add(4)).fold(2, u64::saturating_add);
    let length = if args.is_empty() { 0 } else { length };
    Ok(json(string_of(joined_collation(args, env, "json")?, length)))
}

/// Returns the type of JSON_OBJECT.
pub(crate) fn object(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let length = args.iter().map(|a| value_chars(a).saturating_add(5)).fold(2, u64::saturating_add);
    let length = if args.is_empty() { 0 } else { length };
    Ok(json(string_of(joined_collation(args, env, "json")?, length)))
}

/// Returns the type of JSON_QUOTE.
pub(crate) fn quoted(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(in_utf8mb4_bin(width(&args[0]).saturating_mul(2 * ESCAPED_CHARS).saturating_add(2)))
}

/// Returns the type of JSON_UNQUOTE.
pub(crate) fn unquoted(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    let derived =
        Derived { collation: Collation::UTF8MB4_BIN, coercibility: Coercibility::Coercible, ascii: false };
    Ok(long_string_of(derived, width(&args[0])))
}

/// Returns the type of JSON_NORMALIZE, which lengthens numbers.
pub(crate) fn normalized(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(json(in_utf8mb4_bin(width(&args[0]).saturating_mul(5))))
}

/// Returns the type of JSON_SET, JSON_INSERT and JSON_REPLACE, with pairs of a path and a value.
pub(crate) fn changed(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let pairs = args[1..].chunks(2).map(|pair| match pair {
        [path, value] => width(path).saturating_mul(ESCAPED_CHARS).saturating_add(value_chars(value) + 4),
        _ => 0,
    });
    let length = pairs.fold(width(&args[0]), u64::saturating_add);
    of_first(args, env, length)
}

/// Returns the type of JSON_ARRAY_APPEND and JSON_ARRAY_INSERT.
pub(crate) fn longer(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let values = args[1..].chunks(2).map(|pair| pair.get(1).map_or(0, |value| width(value) + 4));
    let length = values.fold(width(&args[0]), u64::saturating_add);
    of_first(args, env, length)
}

/// Returns the type of JSON_EXTRACT: parts of the document for each path, in an array if there are several
/// paths.
pub(crate) fn extracted(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let paths = args.len() as u64 - 1;
    let between = if paths > 1 { 2 * paths } else { 0 };
    let length = width(&args[0]).saturating_mul(2 * paths).saturating_add(between);
    of_first(args, env, length)
}

/// Returns the type of JSON_QUERY and JSON_REMOVE: a document at most as long as the argument.
pub(crate) fn part(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(json(scalar(args, env)?))
}

/// Returns the type of JSON_VALUE and JSON_KEYS.
pub(crate) fn scalar(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(long_string_of(joined_collation(&args[..1], env, "json")?, width(&args[0])))
}

/// Returns the type of JSON_SEARCH: one path, or all paths.
pub(crate) fn found(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let bytes = byte_width(&args[0]);
    let per_char = u64::from(args[0].ty_cow().collation.charset().mbmaxlen());
    of_first(args, env, bytes.saturating_mul(bytes) / per_char)
}

/// Returns the type of JSON_COMPACT.
pub(crate) fn compact(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    formatted(args, env, width(&args[0]))
}

/// Returns the type of JSON_LOOSE.
pub(crate) fn loose(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    formatted(args, env, width(&args[0]).saturating_mul(2))
}

/// Returns the type of JSON_DETAILED.
pub(crate) fn detailed(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let per_char = u64::from(args[0].ty_cow().collation.charset().mbmaxlen());
    formatted(args, env, DETAILED_BYTES / per_char)
}

fn formatted(args: &[Expr], env: &SessionEnv, length: u64) -> SqlResult<ExprType> {
    let derived = or_connection(Derived::of(&args[0].ty()), env);
    Ok(ExprType { decimals: 0, ..json(long_string_of(derived, length)) })
}
