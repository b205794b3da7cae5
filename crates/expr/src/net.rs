//! Internet addresses: text and bytes.

use std::net::{Ipv4Addr, Ipv6Addr};

use cohort_types::{Collation, SqlResult, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::expr::Expr;
use crate::expr_type::{ExprType, TypeClass};
use crate::table::Function;
use crate::typing::{any_nullable, ascii_string, binary_string};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::pure("inet6_aton", 1, 1, type_bytes, inet6_aton),
    Function::pure("inet6_ntoa", 1, 1, type_text, inet6_ntoa),
    Function::pure("is_ipv4", 1, 1, type_flag, is_ipv4),
    Function::pure("is_ipv6", 1, 1, type_flag, is_ipv6),
    Function::pure("is_ipv4_compat", 1, 1, type_flag, is_ipv4_compat),
    Function::pure("is_ipv4_mapped", 1, 1, type_flag, is_ipv4_mapped),
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

/// Four numbers of at most three digits.
fn parse_v4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut parts = text.split(|b| *b == b'.');
    let mut octets = [0; 4];
    for octet in &mut octets {
        let digits = parts.next()?;
        let fits = (1..=3).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
        *octet = std::str::from_utf8(digits).ok().filter(|_| fits)?.parse().ok()?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

fn parse_v6(text: &[u8]) -> Option<Ipv6Addr> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Of a text argument; numbers are no addresses.
fn text_of<'a>(a: &Args<'a>) -> SqlResult<Option<std::borrow::Cow<'a, [u8]>>> {
    if a.expr(0).ty_cow().class() != TypeClass::String {
        return Ok(None);
    }
    a.text(0)
}

fn inet6_aton(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(text_of(&a));
    if let Some(address) = parse_v4(&text) {
        return Ok(Value::binary(address.octets()));
    }
    Ok(parse_v6(&text).map_or(Value::Null, |address| Value::binary(address.octets())))
}

/// The address of four or sixteen bytes of a binary string.
fn inet6_ntoa(a: Args<'_>) -> SqlResult<Value> {
    if a.expr(0).ty_cow().collation != Collation::BINARY {
        return Ok(Value::Null);
    }
    let bytes = or_null!(text_of(&a));
    if let Ok(octets) = <[u8; 4]>::try_from(&bytes[..]) {
        return a.string(Ipv4Addr::from(octets).to_string());
    }
    let Ok(octets) = <[u8; 16]>::try_from(&bytes[..]) else { return Ok(Value::Null) };
    // An address of the old form that holds one of four bytes is written with it, but for :: and ::1.
    if is_compat(&octets) && octets[12..14] != [0, 0] {
        let [.., w, x, y, z] = octets;
        return a.string(format!("::{w}.{x}.{y}.{z}"));
    }
    if octets[..10] == [0; 10] && octets[10..12] == [0xff, 0xff] {
        let [.., w, x, y, z] = octets;
        return a.string(format!("::ffff:{w}.{x}.{y}.{z}"));
    }
    a.string(v6_text(&octets))
}

/// `::a.b.c.d`, and neither `::` nor `::1`.
fn is_compat(octets: &[u8; 16]) -> bool {
    octets[..12] == [0; 12] && octets[12..] != [0; 4] && octets[12..] != [0, 0, 0, 1]
}

fn is_ipv4(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::bool(text_of(&a)?.is_some_and(|text| parse_v4(&text).is_some())))
}

fn is_ipv6(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::bool(text_of(&a)?.is_some_and(|text| parse_v6(&text).is_some())))
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

/// Groups of hexadecimal digits; the longest run of zeros, of a single one even, is `::`.
fn v6_text(octets: &[u8; 16]) -> String {
    let groups: Vec<u16> =
        octets.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    let run = |start: usize| groups[start..].iter().take_while(|group| **group == 0).count();
    let (mut at, mut length) = (0, 0);
    for start in 0..groups.len() {
        if run(start) > length {
            (at, length) = (start, run(start));
        }
    }
    let join = |part: &[u16]| part.iter().map(|group| format!("{group:x}")).collect::<Vec<_>>().join(":");
    if length == 0 {
        return join(&groups);
    }
    format!("{}::{}", join(&groups[..at]), join(&groups[at + length..]))
}
