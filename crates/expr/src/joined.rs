//! The common type of several expressions: the branches of CASE, IF and COALESCE, the sides of a UNION. First
//! their kinds are joined pair by pair, as in MariaDB's table of field types, then the attributes of all.
//!
//! | kinds | joined |
//! |---|---|
//! | two integers | the wider one; DECIMAL if one is signed and the other is not |
//! | FLOAT with TINYINT to MEDIUMINT, YEAR | FLOAT; DOUBLE with wider integers, DECIMAL and DOUBLE |
//! | YEAR with an integer | that integer |
//! | two of DATE, TIME, DATETIME, TIMESTAMP | DATETIME |
//! | BIT with another kind | bytes in a UNION, a number elsewhere |
//! | a string with anything | a string: CHAR only with CHAR or a type that is not a string |
//! | ENUM or SET | VARCHAR; unchanged in a UNION with nothing but NULL |

use cohort_types::{Collation, FixedKind, NoWarnings, SqlError, SqlResult, Str, TypeKind, Value};

use crate::context::{EvalContext, SessionEnv};
use crate::convert;
use crate::expr::Expr;
use crate::expr_type::{
    Coercibility, Derived, ExprType, Flavor, NOT_FIXED_DECIMALS, TypeClass, aggregate_collations,
};
use crate::typing::{byte_width, or_connection, precision_of, scale_of, width};

/// The meaning of BIT when it is joined with other kinds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BitAs {
    Number,
    Bytes,
}

/// Returns the type to which the branches of IF, CASE, COALESCE and similar functions are converted.
pub(crate) fn joined_type(
    branches: &[&Expr],
    operation: &str,
    env: Option<&SessionEnv>,
) -> SqlResult<ExprType> {
    join(branches, operation, env, BitAs::Number)
}

/// Returns the type of a column of UNION, EXCEPT, INTERSECT or VALUES.
pub fn union_type(sides: &[Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    join(&sides.iter().collect::<Vec<&Expr>>(), "UNION", Some(env), BitAs::Bytes)
}

/// Converts a value of type `from` to the joined type `to`.
pub fn to_joined(value: Value, from: &ExprType, to: &ExprType, ctx: &EvalContext<'_>) -> SqlResult<Value> {
    let as_is = from.kind == to.kind && from.decimals == to.decimals && from.collation == to.collation;
    if value.is_null() || (as_is && to.class() != TypeClass::Decimal) {
        return Ok(value);
    }
    // With other kinds, BIT is the decimal digits of its number.
    let value = match value {
        Value::Bit { bits, .. } if to.kind != TypeKind::Bit => Value::UInt(bits),
        other => other,
    };
    // In a text column, a float is printed as a double with as many digits as the column's width allows.
    if let (TypeClass::String, Value::Float(_) | Value::Double(_)) = (to.class(), &value)
        && from.decimals >= NOT_FIXED_DECIMALS
        && let Some(number) = value.to_f64(&mut NoWarnings)
    {
        let bytes = number_within(number, to.length as usize).into_bytes();
        return Ok(Value::Str(Str { bytes, collation: to.collation }));
    }
    // The year 0 is `0` in short texts, and `0000` in TEXT types.
    let plain = ExprType::number(TypeKind::BigInt, 20, 0);
    let from = match from.kind == TypeKind::Year && !to.kind.is_blob() {
        true => &plain,
        false => from,
    };
    let value = convert::to_class(std::borrow::Cow::Owned(value), from, to, ctx)?.into_owned();
    Ok(match value {
        Value::Decimal(d) if to.class() == TypeClass::Decimal && d.scale() != to.decimals => {
            Value::Decimal(d.round(to.decimals.into()).unwrap_or(d))
        }
        other => other,
    })
}

/// Prints a number in at most `width` characters, by rounding fraction digits where that is enough.
fn number_within(number: f64, width: usize) -> String {
    let text = |number: f64| Value::Double(number).to_text();
    let whole = text(number);
    let rounded = |digits: &usize| {
        let number: f64 = format!("{number:.*e}", digits - 1).parse().ok()?;
        Some(text(number)).filter(|text| text.len() <= width)
    };
    match whole.len() <= width {
        true => whole,
        false => (1..=17).rev().find_map(|digits| rounded(&digits)).unwrap_or(whole),
    }
}

fn join(branches: &[&Expr], operation: &str, env: Option<&SessionEnv>, bit: BitAs) -> SqlResult<ExprType> {
    let nullable = branches.iter().any(|b| b.ty_cow().nullable);
    let present: Vec<&Expr> = branches.iter().copied().filter(|b| !b.ty_cow().null_literal).collect();
    let mut types: Vec<ExprType> = present.iter().map(|b| b.ty()).collect();
    if types.is_empty() {
        return Ok(ExprType::null());
    }
    // The literal NULL counts as signed.
    if bit == BitAs::Number
        && present.len() < branches.len()
        && types.iter().all(|t| t.unsigned && !matches!(t.kind, TypeKind::Bit | TypeKind::Year))
        && types.iter().all(|t| matches!(t.class(), TypeClass::Int | TypeClass::Decimal))
    {
        types.iter_mut().for_each(|t| t.unsigned = false);
        return Ok(joined_decimal(&present, &types).with_nullable(nullable));
    }
    let first = &types[0];
    // An ENUM joined with nothing but NULL stays an ENUM.
    if let (BitAs::Bytes, [one]) = (bit, types.as_slice())
        && matches!(one.kind, TypeKind::Enum | TypeKind::Set)
        && branches.len() > 1
    {
        return Ok(one.clone().with_nullable(nullable));
    }
    let only_bits = types.iter().all(|t| t.kind == TypeKind::Bit);
    if let Some(fixed) = types.iter().find(|t| t.class() == TypeClass::Fixed)
        && let Some(other) = types.iter().find(|t| t.kind != fixed.kind && t.class() != TypeClass::String)
    {
        let name = |t: &ExprType| t.to_column_type().type_name();
        return Err(SqlError::illegal_types(name(fixed), name(other), operation));
    }
    let kind_of = |t: &ExprType| match t.kind {
        TypeKind::Bit if bit == BitAs::Number && !only_bits && t.length <= 32 => TypeKind::Int,
        kind => kind,
    };
    let kind = types[1..].iter().fold(kind_of(first), |kind, next| join_kinds(kind, kind_of(next), bit));
    let signs_differ = types.iter().any(|t| t.unsigned != first.unsigned);
    let mut ty = match ExprType::number(kind, 0, 0).class() {
        TypeClass::Int if kind == TypeKind::Bit || !signs_differ => {
            let joined = joined_int(kind, &present, &types);
            // A column of a UNION holds numbers, not truth values.
            let is_truth = joined.flavor == Flavor::Boolean && bit == BitAs::Number;
            ExprType { flavor: if is_truth { Flavor::Boolean } else { Flavor::Plain }, ..joined }
        }
        TypeClass::Int | TypeClass::Decimal => joined_decimal(&present, &types),
        TypeClass::Real => joined_real(kind, &types),
        TypeClass::Fixed => FixedKind::of(kind).map_or_else(ExprType::null, ExprType::fixed),
        TypeClass::Date => ExprType::date(),
        TypeClass::Time => ExprType::time(max_decimals(&types)),
        TypeClass::DateTime => ExprType::datetime(max_decimals(&types)),
        TypeClass::String => joined_string(kind, &present, &types, operation, env)?,
    };
    if kind == TypeKind::Timestamp {
        ty.kind = kind;
    }
    // A text may turn out not to be a UUID or address: it becomes NULL then.
    let is_read = ty.class() == TypeClass::Fixed && types.iter().any(|t| t.class() == TypeClass::String);
    Ok(ty.with_nullable(nullable || is_read))
}

fn integer_rank(kind: TypeKind) -> Option<usize> {
    use TypeKind::*;
    [Year, TinyInt, SmallInt, MediumInt, Int, BigInt].iter().position(|known| *known == kind)
}

fn join_kinds(a: TypeKind, b: TypeKind, bit: BitAs) -> TypeKind {
    use TypeKind::*;
    if let (Some(x), Some(y)) = (integer_rank(a), integer_rank(b)) {
        return if x > y { a } else { b };
    }
    if a == b && !matches!(a, Enum | Set) {
        return a;
    }
    // A text joined with addresses is parsed as an address.
    if let Some(kind) = [a, b].into_iter().find(|kind| FixedKind::of(*kind).is_some()) {
        return kind;
    }
    match (a, b) {
        (Bit, other) | (other, Bit) => match bit {
            BitAs::Number => join_kinds(BigInt, other, bit),
            BitAs::Bytes if is_string(other) => join_strings(VarBinary, other, bit),
            BitAs::Bytes => VarBinary,
        },
        (Float, other) | (other, Float) if integer_rank(other).is_some_and(|rank| rank < 4) => Float,
        (x, y) if is_string(x) && is_string(y) => join_strings(x, y, bit),
        (Json, _) | (_, Json) => LongText,
        // CHAR joined with a type that is not a string stays CHAR.
        (x, _) | (_, x) if matches!(x, Char | Binary) && (!is_string(a) || !is_string(b)) => x,
        (x, _) | (_, x) if is_string(x) => {
            if is_long(x) {
                x
            } else {
                VarChar
            }
        }
        (x, y) if is_temporal(x) && is_temporal(y) => DateTime,
        (x, _) | (_, x) if is_temporal(x) => VarChar,
        (Float | Double, _) | (_, Float | Double) => Double,
        _ => Decimal,
    }
}

fn join_strings(a: TypeKind, b: TypeKind, bit: BitAs) -> TypeKind {
    use TypeKind::*;
    match (a, b) {
        (Json, Json) => Json,
        (x, _) | (_, x) if is_long(x) => {
            if x == Json {
                LongText
            } else {
                x
            }
        }
        (Char | Binary, Char | Binary) => Char,
        (Char | Binary, Enum | Set) | (Enum | Set, Char | Binary) if bit == BitAs::Bytes => Char,
        _ => VarChar,
    }
}

fn is_string(kind: TypeKind) -> bool {
    crate::expr_type::is_string_kind(kind)
}

fn is_temporal(kind: TypeKind) -> bool {
    kind.is_temporal() && kind != TypeKind::Year
}

/// Returns whether the kind is a TEXT, a BLOB or JSON.
fn is_long(kind: TypeKind) -> bool {
    use TypeKind::*;
    is_string(kind) && !matches!(kind, Char | VarChar | Binary | VarBinary | Enum | Set)
}

/// Returns the smallest TEXT or BLOB for a length in bytes.
fn long_kind(bytes: u64, is_binary: bool) -> TypeKind {
    let (text, blob) = match bytes {
        0..=0xff => (TypeKind::TinyText, TypeKind::TinyBlob),
        0x100..=0xffff => (TypeKind::Text, TypeKind::Blob),
        0x1_0000..=0xff_ffff => (TypeKind::MediumText, TypeKind::MediumBlob),
        _ => (TypeKind::LongText, TypeKind::LongBlob),
    };
    if is_binary { blob } else { text }
}

fn max_decimals(types: &[ExprType]) -> u8 {
    types.iter().filter(|t| t.is_temporal()).map(|t| t.decimals).max().unwrap_or(0)
}

fn joined_int(kind: TypeKind, branches: &[&Expr], types: &[ExprType]) -> ExprType {
    if kind == TypeKind::Year {
        return types[0].clone();
    }
    // The length of a literal does not include a sign.
    let digits = branches.iter().map(|b| precision_of(b)).max().unwrap_or(1);
    let length =
        types.iter().map(|t| t.length).max().unwrap_or(1).max(digits + u32::from(!types[0].unsigned));
    let mut ty = ExprType::number(kind, length, 0).with_unsigned(types[0].unsigned);
    if types.iter().all(|t| t.flavor == Flavor::Boolean) {
        ty.flavor = Flavor::Boolean;
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

fn joined_real(kind: TypeKind, types: &[ExprType]) -> ExprType {
    let decimals = types.iter().map(|t| t.decimals).max().unwrap_or(NOT_FIXED_DECIMALS);
    let length = if decimals >= NOT_FIXED_DECIMALS {
        types.iter().map(|t| t.length).max().unwrap_or(23)
    } else {
        let whole = types.iter().map(|t| t.length.saturating_sub(t.decimals.into())).max().unwrap_or(0);
        whole + u32::from(decimals)
    };
    ExprType::number(kind, length.min(255), decimals.min(NOT_FIXED_DECIMALS))
}

/// Returns the collation of a column of a UNION. Error 1271 if the sides have no common one.
fn united(types: &[ExprType]) -> SqlResult<Derived> {
    let mixed = || SqlError::mix_of_collations("UNION");
    let joined = aggregate_collations("UNION", types).map_err(|_| mixed())?;
    if joined.coercibility == Coercibility::NoCollation { Err(mixed()) } else { Ok(joined) }
}

fn joined_string(
    kind: TypeKind,
    branches: &[&Expr],
    types: &[ExprType],
    operation: &str,
    env: Option<&SessionEnv>,
) -> SqlResult<ExprType> {
    let bytes = Derived { collation: Collation::BINARY, coercibility: Coercibility::Implicit, ascii: false };
    let joined = if types.iter().any(|t| t.kind == TypeKind::Bit) {
        bytes
    } else {
        match operation {
            "UNION" => united(types)?,
            _ => aggregate_collations(operation, types)?,
        }
    };
    let joined = match env {
        Some(env) => or_connection(joined, env),
        None if joined.coercibility < Coercibility::Numeric => joined,
        None => Derived {
            collation: Collation::UTF8MB4_GENERAL_CI,
            coercibility: Coercibility::Coercible,
            ascii: true,
        },
    };
    // In a binary string, each character counts with the maximum length of its character set.
    let among_bytes = joined.collation == Collation::BINARY && !is_long(kind);
    let length_of = |branch: &Expr| match among_bytes {
        true => byte_width(branch),
        false if is_long(branch.ty_cow().kind) => branch.ty_cow().length.into(),
        false => width(branch),
    };
    let length = branches.iter().map(|b| length_of(b)).max().unwrap_or(0);
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let mut ty = ExprType::text(length, joined.collation, joined.coercibility);
    ty.ascii = joined.ascii;
    let is_binary = joined.collation == Collation::BINARY;
    match kind {
        TypeKind::Json => ty.kind = kind,
        kind if is_long(kind) => {
            let bytes = u64::from(length) * u64::from(joined.collation.charset().mbmaxlen());
            ty.kind = long_kind(bytes, is_binary);
        }
        TypeKind::Char | TypeKind::Binary if matches!(ty.kind, TypeKind::VarChar | TypeKind::VarBinary) => {
            ty.kind = if is_binary { TypeKind::Binary } else { TypeKind::Char };
        }
        _ => {}
    }
    Ok(ty)
}
