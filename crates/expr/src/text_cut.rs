//! String functions that return a part of their argument, or change its case or order.

use cohort_types::{Collation, Interrupt, SqlResult, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::expr::Expr;
use crate::expr_type::ExprType;
use crate::function::{Anywhere, Rows, Text, TrimSide};
use crate::function::{Extra, Function};
use crate::mixing::compared_texts;
use crate::text_size::find;
use crate::typing::{byte_width, joined_collation, long_string_of, string_of, width};

pub(crate) static TRIM: Function = Function::new("trim", 1, 2, type_trim, trim, Text, Anywhere);

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("upper", 1, 1, type_same, upper, Text, Anywhere),
    Function::new("ucase", 1, 1, type_same, upper, Text, Anywhere),
    Function::new("lower", 1, 1, type_same, lower, Text, Anywhere),
    Function::new("lcase", 1, 1, type_same, lower, Text, Anywhere),
    Function::new("left", 2, 2, type_side, left, Text, Anywhere),
    Function::new("right", 2, 2, type_side, right, Text, Anywhere),
    Function::new("substring", 2, 3, type_substring, substring, Text, Anywhere),
    Function::new("substr", 2, 3, type_substring, substring, Text, Anywhere),
    Function::new("mid", 3, 3, type_substring, substring, Text, Anywhere),
    Function::new("substring_index", 3, 3, type_index, substring_index, Rows, Anywhere),
    Function::new("trim", 1, 1, type_trim, trim, Text, Anywhere),
    Function::new("ltrim", 1, 1, type_trim, ltrim, Text, Anywhere),
    Function::new("rtrim", 1, 1, type_trim, rtrim, Text, Anywhere),
    Function::new("reverse", 1, 1, type_reversed, reverse, Text, Anywhere),
];

fn type_same(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let length = width(&args[0]);
    Ok(string_of(joined_collation(&args[..1], env, "upper")?, length))
}

fn type_reversed(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(long_string_of(joined_collation(&args[..1], env, "reverse")?, width(&args[0])))
}

/// Returns a constant number of characters, 0 if it is negative.
fn constant_chars(arg: Option<&Expr>) -> Option<u64> {
    match arg {
        Some(Expr::Const(c)) => match &c.value {
            Value::Int(v) => Some((*v).max(0) as u64),
            Value::UInt(v) => Some(*v),
            _ => None,
        },
        _ => None,
    }
}

fn type_side(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let length = width(&args[0]).min(constant_chars(args.get(1)).unwrap_or(u64::MAX));
    Ok(long_string_of(joined_collation(&args[..1], env, "left")?, length))
}

pub(crate) fn type_substring(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    // MariaDB uses the length in bytes here, although a character may have several.
    let all = byte_width(&args[0]);
    let start = match args.get(1) {
        Some(Expr::Const(c)) => match c.value {
            Value::Int(v) if v > 0 => (v - 1) as u64,
            Value::Int(v) if v < 0 => all.saturating_sub(v.unsigned_abs()),
            _ => 0,
        },
        _ => 0,
    };
    let length = all.saturating_sub(start).min(constant_chars(args.get(2)).unwrap_or(u64::MAX));
    Ok(long_string_of(joined_collation(&args[..1], env, "substr")?, length))
}

fn type_index(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let length = width(&args[0]);
    Ok(long_string_of(compared_texts(&mut args[..2], env, "substring_index")?, length))
}

pub(crate) fn type_trim(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let length = width(&args[0]);
    // The error message names the removed text first.
    args.reverse();
    let joined = compared_texts(args, env, "trim");
    args.reverse();
    Ok(long_string_of(joined?, length))
}

fn collation_of(a: &Args<'_>) -> Collation {
    a.call.ty.collation
}

fn upper(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let mut out = Vec::with_capacity(text.len());
    collation_of(&a).upper(&text, &mut out);
    a.string(out)
}

fn lower(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let mut out = Vec::with_capacity(text.len());
    collation_of(&a).lower(&text, &mut out);
    a.string(out)
}

fn left(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let chars = or_null!(a.int(1));
    let end = collation_of(&a).prefix_len(&text, usize::try_from(chars).unwrap_or(0));
    a.string(&text[..end])
}

fn right(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let chars = or_null!(a.int(1)).max(0) as usize;
    let collation = collation_of(&a);
    let skip = collation.char_len(&text).saturating_sub(chars);
    a.string(&text[collation.prefix_len(&text, skip)..])
}

/// SUBSTRING(text, start [, length]): `start` counts from 1, or from the end if negative.
pub(crate) fn substring(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let start = or_null!(a.int(1));
    let length = if a.count() > 2 { or_null!(a.int(2)) } else { i64::MAX };
    let collation = collation_of(&a);
    let chars = collation.char_len(&text) as i64;
    let skip = if start < 0 { chars.saturating_add(start) } else { start - 1 };
    if start == 0 || skip < 0 || skip >= chars || length <= 0 {
        return a.string(Vec::new());
    }
    let from = collation.prefix_len(&text, skip as usize);
    let end = from + collation.prefix_len(&text[from..], length as usize);
    a.string(&text[from..end])
}

/// SUBSTRING_INDEX(text, delimiter, n): the text before the n-th delimiter; for negative n, the text after
/// the n-th delimiter from the end.
fn substring_index(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let delimiter = or_null!(a.text(1));
    let count = or_null!(a.int(2));
    if text.is_empty() || delimiter.is_empty() || count == 0 {
        return a.string(Vec::new());
    }
    let places = occurrences(&text, &delimiter, a.ctx)?;
    let wanted = count.unsigned_abs() as usize;
    if wanted > places.len() {
        return a.string(text);
    }
    if count > 0 {
        return a.string(&text[..places[wanted - 1]]);
    }
    // Overlapping delimiters are found differently from the end.
    let places = occurrences_backwards(&text, &delimiter, a.ctx)?;
    match places.get(wanted - 1) {
        Some(at) => a.string(&text[at + delimiter.len()..]),
        None => a.string(text),
    }
}

fn occurrences(text: &[u8], delimiter: &[u8], interrupt: &dyn Interrupt) -> SqlResult<Vec<usize>> {
    let mut places = Vec::new();
    let mut at = 0;
    while let Some(found) = find(Collation::BINARY, text, delimiter, at, interrupt)? {
        places.push(found);
        at = found + delimiter.len();
    }
    Ok(places)
}

fn occurrences_backwards(text: &[u8], delimiter: &[u8], interrupt: &dyn Interrupt) -> SqlResult<Vec<usize>> {
    let cost = (delimiter.len() / 256) as u32;
    let mut places = Vec::new();
    let mut end = text.len();
    while end >= delimiter.len() {
        let at = end - delimiter.len();
        if &text[at..end] == delimiter {
            places.push(at);
            end = at;
        } else {
            end -= 1;
            interrupt.steps(cost)?;
        }
    }
    Ok(places)
}

fn trim(a: Args<'_>) -> SqlResult<Value> {
    let side = if let Extra::Side(side) = a.call.extra { side } else { TrimSide::Both };
    trim_side(a, side)
}

pub(crate) fn ltrim(a: Args<'_>) -> SqlResult<Value> {
    trim_side(a, TrimSide::Leading)
}

pub(crate) fn rtrim(a: Args<'_>) -> SqlResult<Value> {
    trim_side(a, TrimSide::Trailing)
}

fn trim_side(a: Args<'_>, side: TrimSide) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let remove = if a.count() > 1 { or_null!(a.text(1)) } else { std::borrow::Cow::Borrowed(&b" "[..]) };
    let mut rest: &[u8] = &text;
    if !remove.is_empty() {
        if side != TrimSide::Trailing {
            while let Some(shorter) = rest.strip_prefix(remove.as_ref()) {
                rest = shorter;
            }
        }
        if side != TrimSide::Leading {
            while let Some(shorter) = rest.strip_suffix(remove.as_ref()) {
                rest = shorter;
            }
        }
    }
    a.string(rest)
}

fn reverse(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let collation = collation_of(&a);
    let mut out = Vec::with_capacity(text.len());
    let mut ends = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let len = collation.prefix_len(&text[at..], 1).max(1);
        ends.push((at, at + len));
        at += len;
    }
    for (from, to) in ends.into_iter().rev() {
        out.extend_from_slice(&text[from..to]);
    }
    a.string(out)
}
