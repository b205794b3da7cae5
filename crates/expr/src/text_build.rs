//! String functions that combine or extend their arguments.

use cohort_types::{Charset, Collation, SqlResult, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::convert;
use crate::expr::Expr;
use crate::expr_type::{Coercibility, Derived, ExprType};
use crate::function::{ANY, Anywhere, Function, Rows, Text};
use crate::mixing::{compared_texts, joined_pair, joined_texts};
use crate::text_size::find;
use crate::typing::{binary_string, joined_collation, long_string_of, or_connection, string_of, width};

/// CHAR(n, .. USING charset).
pub(crate) static CHAR: Function = Function::new("char", 1, ANY, type_char, char, Text, Anywhere);

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("concat", 1, ANY, type_concat, concat, Text, Anywhere),
    Function::new("concat_ws", 2, ANY, type_concat_ws, concat_ws, Text, Anywhere),
    Function::new("lpad", 2, 3, type_pad, lpad, Text, Anywhere),
    Function::new("rpad", 2, 3, type_pad, rpad, Text, Anywhere),
    Function::new("repeat", 2, 2, type_repeat, repeat, Text, Anywhere),
    Function::new("space", 1, 1, type_space, space, Rows, Anywhere),
    Function::new("replace", 3, 3, type_replace, replace, Text, Anywhere),
    Function::new("insert", 4, 4, type_insert, insert, Rows, Anywhere),
    Function::new("make_set", 2, ANY, type_make_set, make_set, Rows, Anywhere),
    Function::new("export_set", 3, 5, type_export_set, export_set, Rows, Anywhere),
    Function::new("char", 1, ANY, type_char, char, Text, Anywhere),
    Function::new("chr", 1, 1, type_chr, chr, Rows, Anywhere),
];

pub(crate) fn type_concat(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let length = args.iter().map(width).sum();
    // NULL also results from exceeding max_allowed_packet.
    Ok(string_of(joined_texts(args, env, "concat")?, length))
}

fn type_concat_ws(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let between = width(&args[0]) * (args.len() as u64).saturating_sub(2);
    let length = args[1..].iter().map(width).sum::<u64>() + between;
    Ok(string_of(joined_texts(args, env, "concat_ws")?, length))
}

fn constant_int(arg: Option<&Expr>) -> Option<u64> {
    let Some(Expr::Const(c)) = arg else { return None };
    c.value.to_int(&mut cohort_types::NoWarnings).map(|v| convert::clamp_signed(v).max(0) as u64)
}

pub(crate) fn type_pad(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let length = constant_int(args.get(1)).unwrap_or(1 << 24);
    let derived = match args {
        [text, _, filler] => joined_pair(text, filler, env, "lpad")?,
        others => joined_texts(&mut others[..1], env, "lpad")?,
    };
    Ok(string_of(derived, length))
}

fn type_repeat(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let times = constant_int(args.get(1)).unwrap_or(1 << 24);
    let length = width(&args[0]).saturating_mul(times);
    Ok(string_of(joined_collation(&args[..1], env, "repeat")?, length))
}

fn type_space(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(crate::typing::ascii_string(env, constant_int(args.first()).unwrap_or(1 << 24)))
}

pub(crate) fn type_replace(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    // The replaced text may be a single character.
    let length = width(&args[0]).saturating_mul(width(&args[2]).max(1));
    Ok(string_of(compared_texts(args, env, "replace")?, length))
}

fn type_insert(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let length = width(&args[0]) + width(&args[3]);
    let [text, _, _, inserted] = args else { return Ok(ExprType::null()) };
    Ok(string_of(joined_pair(text, inserted, env, "insert")?, length))
}

fn type_make_set(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let length = args[1..].iter().map(width).sum::<u64>() + args.len() as u64 - 2;
    Ok(long_string_of(joined_texts(&mut args[1..], env, "make_set")?, length))
}

fn type_export_set(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let sign = width(&args[1]).max(width(&args[2]));
    let between = args.get(3).map_or(1, width);
    let end = args.len().min(4);
    Ok(string_of(joined_texts(&mut args[1..end], env, "export_set")?, sign * 64 + between * 63))
}

/// Returns the type of CHAR, which is binary without USING. With USING, the call's `extra` holds the
/// collation's id as its name.
fn type_char(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    crate::arith::hex_as_number(args);
    Ok(binary_string(args.len() as u64 * 4))
}

fn type_chr(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let derived =
        Derived { collation: env.collation_connection, coercibility: Coercibility::Coercible, ascii: false };
    Ok(string_of(or_connection(derived, env), 1))
}

fn concat(a: Args<'_>) -> SqlResult<Value> {
    let mut out = Vec::new();
    for n in 0..a.count() {
        let part = or_null!(a.text(n));
        if !a.fits_packet((out.len() + part.len()) as u64)? {
            return Ok(Value::Null);
        }
        out.extend_from_slice(&part);
    }
    a.string(out)
}

/// CONCAT_WS: skips NULL arguments; returns NULL for a NULL separator.
fn concat_ws(a: Args<'_>) -> SqlResult<Value> {
    let separator = or_null!(a.text(0));
    let mut out = Vec::new();
    let mut first = true;
    for n in 1..a.count() {
        let Some(part) = a.text(n)? else { continue };
        if !a.fits_packet((out.len() + separator.len() + part.len()) as u64)? {
            return Ok(Value::Null);
        }
        if !first {
            out.extend_from_slice(&separator);
        }
        first = false;
        out.extend_from_slice(&part);
    }
    a.string(out)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pad {
    Left,
    Right,
}

pub(crate) fn lpad(a: Args<'_>) -> SqlResult<Value> {
    pad(a, Pad::Left)
}

pub(crate) fn rpad(a: Args<'_>) -> SqlResult<Value> {
    pad(a, Pad::Right)
}

fn pad(a: Args<'_>, side: Pad) -> SqlResult<Value> {
    let collation = a.call.ty.collation;
    let text = or_null!(a.text(0));
    let wanted = or_null!(a.int(1));
    let filler = if a.count() > 2 { or_null!(a.text(2)) } else { std::borrow::Cow::Borrowed(&b" "[..]) };
    if wanted < 0 {
        return Ok(Value::Null);
    }
    let wanted = wanted as usize;
    let present = collation.char_len(&text);
    if present >= wanted {
        return a.string(&text[..collation.prefix_len(&text, wanted)]);
    }
    if !a.fits_packet((wanted as u64).saturating_mul(u64::from(collation.charset().mbmaxlen())))? {
        return Ok(Value::Null);
    }
    let filler_chars = collation.char_len(&filler);
    if filler_chars == 0 {
        return Ok(Value::Null);
    }
    let missing = wanted - present;
    let mut padding = filler.repeat(missing / filler_chars);
    padding.extend_from_slice(&filler[..collation.prefix_len(&filler, missing % filler_chars)]);
    let parts = if side == Pad::Left { [&padding[..], &text[..]] } else { [&text[..], &padding[..]] };
    a.string(parts.concat())
}

fn repeat(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let times = or_null!(a.int(1)).max(0);
    if text.is_empty() || times == 0 {
        return a.string(Vec::new());
    }
    if !a.fits_packet((text.len() as u64).saturating_mul(times as u64))? {
        return Ok(Value::Null);
    }
    a.string(text.repeat(times as usize))
}

fn space(a: Args<'_>) -> SqlResult<Value> {
    let count = or_null!(a.int(0)).max(0) as u64;
    if !a.fits_packet(count)? {
        return Ok(Value::Null);
    }
    a.string(vec![b' '; count as usize])
}

/// REPLACE compares bytes, as in MariaDB.
pub(crate) fn replace(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let from = or_null!(a.text(1));
    let to = or_null!(a.text(2));
    if from.is_empty() {
        return a.string(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(found) = find(Collation::BINARY, &text, &from, at, a.ctx)? {
        out.extend_from_slice(&text[at..found]);
        out.extend_from_slice(&to);
        at = found + from.len();
        if !a.fits_packet((out.len() + text.len() - at) as u64)? {
            return Ok(Value::Null);
        }
    }
    out.extend_from_slice(&text[at..]);
    a.string(out)
}

/// INSERT(text, position, length, new).
fn insert(a: Args<'_>) -> SqlResult<Value> {
    let collation = a.call.ty.collation;
    let text = or_null!(a.text(0));
    let start = or_null!(a.int(1));
    let length = or_null!(a.int(2));
    let new = or_null!(a.text(3));
    let chars = collation.char_len(&text) as i64;
    if start < 1 || start > chars {
        return a.string(text);
    }
    let length = if length < 0 || length > chars { chars } else { length };
    let from = collation.prefix_len(&text, (start - 1) as usize);
    let to = from + collation.prefix_len(&text[from..], length as usize);
    if !a.fits_packet((text.len() - (to - from) + new.len()) as u64)? {
        return Ok(Value::Null);
    }
    a.string([&text[..from], &new[..], &text[to..]].concat())
}

fn make_set(a: Args<'_>) -> SqlResult<Value> {
    let bits = convert::bits_of(or_null!(a.integer(0)));
    let mut out = Vec::new();
    let mut first = true;
    for n in 1..a.count().min(65) {
        if bits >> (n - 1) & 1 == 0 {
            continue;
        }
        let Some(part) = a.text(n)? else { continue };
        if !a.fits_packet((out.len() + 1 + part.len()) as u64)? {
            return Ok(Value::Null);
        }
        if !first {
            out.push(b',');
        }
        first = false;
        out.extend_from_slice(&part);
    }
    a.string(out)
}

/// EXPORT_SET(bits, on, off [, separator [, number of bits]]).
fn export_set(a: Args<'_>) -> SqlResult<Value> {
    let bits = convert::bits_of(or_null!(a.integer(0)));
    let on = or_null!(a.text(1));
    let off = or_null!(a.text(2));
    let separator = if a.count() > 3 { or_null!(a.text(3)) } else { std::borrow::Cow::Borrowed(&b","[..]) };
    let count = if a.count() > 4 { or_null!(a.int(4)) } else { 64 };
    let count = if (0..=64).contains(&count) { count } else { 64 };
    // The limit is checked as if all of them were the longer text.
    let bytes = count as u64 * on.len().max(off.len()) as u64
        + (count as u64).saturating_sub(1) * separator.len() as u64;
    if !a.fits_packet(bytes)? {
        return Ok(Value::Null);
    }
    let signs: Vec<&[u8]> = (0..count).map(|n| if bits >> n & 1 == 1 { &on[..] } else { &off[..] }).collect();
    a.string(signs.join(&separator[..]))
}

/// CHAR(n, ..): the bytes of each number without leading zeros, most significant first.
fn char(a: Args<'_>) -> SqlResult<Value> {
    let mut out = Vec::new();
    for n in 0..a.count() {
        let Some(number) = a.integer(n)? else { continue };
        let bytes = (convert::bits_of(number) as u32).to_be_bytes();
        let skip = bytes.iter().take(3).take_while(|b| **b == 0).count();
        out.extend_from_slice(&bytes[skip..]);
    }
    let collation = a.call.ty.collation;
    // Pads incomplete multi-byte units with zeros on the left.
    let missing = out.len().next_multiple_of(collation.charset().mbminlen() as usize) - out.len();
    out.splice(..0, std::iter::repeat_n(0, missing));
    if collation == Collation::BINARY {
        return a.string(out);
    }
    if collation.charset() == Charset::Ascii {
        out.iter_mut().filter(|b| !b.is_ascii()).for_each(|b| *b = b'?');
    }
    let mut text = Vec::with_capacity(out.len());
    match collation.charset().decode(&out, &mut text) {
        Ok(()) => a.string(text),
        Err(at) => {
            let shown: String = out[at..].iter().take(6).map(|b| format!("{b:02X}")).collect();
            let message = format!("Invalid {} character string: '{shown}'", collation.charset().name());
            a.ctx.warn(cohort_types::ErrorCode::InvalidCharacterString, message)?;
            Ok(Value::Null)
        }
    }
}

fn chr(a: Args<'_>) -> SqlResult<Value> {
    or_null!(a.integer(0));
    char(a)
}
