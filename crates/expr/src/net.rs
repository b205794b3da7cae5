//! Internet addresses as text and bytes.

use cohort_types::{Collation, SqlResult, Value, parse_inet4, parse_inet6, write_inet4, write_inet6};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::expr::Expr;
use crate::expr_type::{ExprType, TypeClass};
use crate::function::{Anywhere, Function, Rows};
use crate::typing::{any_nullable, ascii_string, binary_string};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("inet6_aton", 1, 1, type_bytes, inet6_aton, Rows, Anywhere),
    Function::new("inet6_ntoa", 1, 1, type_text, inet6_ntoa, Rows, Anywhere),
    Function::new("is_ipv4", 1, 1, type_flag, is_ipv4, Rows, Anywhere),
    Function::new("is_ipv6", 1, 1, type_flag, is_ipv6, Rows, Anywhere),
    Function::new("is_ipv4_compat", 1, 1, type_flag, is_ipv4_compat, Rows, Anywhere),
    Function::new("is_ipv4_mapped", 1, 1, type_flag, is_ipv4_mapped, Rows, Anywhere),
];

fn type_bytes(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType { decimals: 0, ..binary_string(16) })
}

fn type_text(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType { decimals: 0, ..ascii_string(env, 39) })
}

fn type_flag(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::boolean().with_nullable(any_nullable(args)))
}

/// Returns the text of the argument, `None` for numbers.
fn text_of<'a>(a: &Args<'a>) -> SqlResult<Option<std::borrow::Cow<'a, [u8]>>> {
    if !matches!(a.expr(0).ty_cow().class(), TypeClass::String | TypeClass::Fixed) {
        return Ok(None);
    }
    a.text(0)
}

fn inet6_aton(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(text_of(&a));
    if let Some(octets) = parse_inet4(&text) {
        return Ok(Value::binary(octets));
    }
    Ok(parse_inet6(&text).map_or(Value::Null, Value::binary))
}

/// INET6_NTOA: the address in a binary string of four or sixteen bytes.
fn inet6_ntoa(a: Args<'_>) -> SqlResult<Value> {
    if a.expr(0).ty_cow().collation != Collation::BINARY {
        return Ok(Value::Null);
    }
    let bytes = or_null!(text_of(&a));
    let mut text = Vec::new();
    match <[u8; 16]>::try_from(&bytes[..]) {
        Ok(octets) => write_inet6(&octets, &mut text),
        Err(_) if bytes.len() == 4 => write_inet4(&bytes, &mut text),
        Err(_) => return Ok(Value::Null),
    }
    a.string(text)
}

/// Returns true for `::a.b.c.d`, except `::` and `::1`.
fn is_compat(octets: &[u8; 16]) -> bool {
    octets[..12] == [0; 12] && octets[12..] != [0; 4] && octets[12..] != [0, 0, 0, 1]
}

fn is_ipv4(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::bool(text_of(&a)?.is_some_and(|text| parse_inet4(&text).is_some())))
}

fn is_ipv6(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::bool(text_of(&a)?.is_some_and(|text| parse_inet6(&text).is_some())))
}

fn octets_of(a: &Args<'_>) -> SqlResult<Option<[u8; 16]>> {
    if a.expr(0).ty_cow().collation != Collation::BINARY {
        return Ok(None);
    }
    Ok(text_of(a)?.and_then(|bytes| <[u8; 16]>::try_from(&bytes[..]).ok()))
}

fn is_ipv4_compat(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::bool(octets_of(&a)?.is_some_and(|octets| is_compat(&octets))))
}

fn is_ipv4_mapped(a: Args<'_>) -> SqlResult<Value> {
    let mapped = |octets: [u8; 16]| octets[..10] == [0; 10] && octets[10..12] == [0xff, 0xff];
    Ok(Value::bool(octets_of(&a)?.is_some_and(mapped)))
}
