//! String functions with a numeric result: lengths, positions, comparisons; and functions on collations.

use std::cmp::Ordering;

use cohort_types::{Collation, Interrupt, SqlResult, TypeKind, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::convert::encode;
use crate::expr::Expr;
use crate::expr_type::{Coercibility, ExprType, aggregate_collations};
use crate::function::{Anywhere, Function, Rows, Text};
use crate::mixing::compared;
use crate::typing::any_nullable;

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("length", 1, 1, type_length, length, Text, Anywhere),
    Function::new("octet_length", 1, 1, type_length, length, Text, Anywhere),
    Function::new("lengthb", 1, 1, type_length, length, Text, Anywhere),
    Function::new("char_length", 1, 1, type_length, char_length, Text, Anywhere),
    Function::new("character_length", 1, 1, type_length, char_length, Text, Anywhere),
    Function::new("bit_length", 1, 1, type_bits, bit_length, Rows, Anywhere),
    Function::new("ascii", 1, 1, type_small, ascii, Rows, Anywhere),
    Function::new("ord", 1, 1, type_code, ord, Rows, Anywhere),
    Function::new("instr", 2, 2, type_instr, instr, Text, Anywhere),
    Function::new("locate", 2, 3, type_locate, locate, Rows, Anywhere),
    Function::new("position", 2, 2, type_locate, locate, Rows, Anywhere),
    Function::new("strcmp", 2, 2, type_order, strcmp, Rows, Anywhere),
    Function::new("find_in_set", 2, 2, type_find_in_set, find_in_set, Rows, Anywhere),
    Function::new("charset", 1, 1, type_name, charset, Rows, Anywhere),
    Function::new("collation", 1, 1, type_name, collation, Rows, Anywhere),
    Function::new("coercibility", 1, 1, type_strength, coercibility, Rows, Anywhere),
];

fn int(args: &[Expr], length: u32) -> ExprType {
    ExprType::number(TypeKind::Int, length, 0).with_nullable(any_nullable(args))
}

fn type_length(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(int(args, 10))
}

fn type_bits(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::bigint(11).with_nullable(any_nullable(args)))
}

fn type_code(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(int(args, 7))
}

fn type_strength(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::number(TypeKind::Int, 10, 0).with_nullable(false))
}

fn type_instr(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    compared(args, "locate")?;
    Ok(int(args, 11))
}

fn type_locate(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    // The error message names the searched text first.
    args[..2].reverse();
    let outcome = compared(&mut args[..2], "locate");
    args[..2].reverse();
    outcome?;
    Ok(int(args, 11))
}

fn type_find_in_set(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    compared(args, "find_in_set")?;
    Ok(int(args, 3))
}

fn type_small(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(int(args, 3))
}

fn type_order(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    compared(args, "strcmp")?;
    Ok(int(args, 2))
}

fn type_name(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType { coercibility: Coercibility::Coercible, ..crate::info::system_string(env, 64) })
}

/// Returns the bytes of argument n in its character set; in memory all text is UTF-8.
pub(crate) fn stored_bytes<'a>(a: &Args<'a>, n: usize) -> SqlResult<Option<std::borrow::Cow<'a, [u8]>>> {
    let Some(text) = a.text(n)? else { return Ok(None) };
    Ok(Some(encode(text, a.expr(n).ty_cow().collation)))
}

fn length(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::Int(or_null!(stored_bytes(&a, 0)).len() as i64))
}

fn bit_length(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::Int(or_null!(stored_bytes(&a, 0)).len() as i64 * 8))
}

fn char_length(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    Ok(Value::Int(text_collation(a.expr(0)).char_len(&text) as i64))
}

/// Returns the collation that defines the characters. Numbers print as ASCII, so any collation suits them.
pub(crate) fn text_collation(arg: &Expr) -> Collation {
    arg.ty_cow().collation
}

fn ascii(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(stored_bytes(&a, 0));
    Ok(Value::Int(text.first().map_or(0, |b| i64::from(*b))))
}

/// ORD: the bytes of the first character as a number.
fn ord(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let collation = text_collation(a.expr(0));
    let first = text[..collation.prefix_len(&text, 1)].to_vec();
    let stored = encode(first.into(), collation);
    Ok(Value::Int(stored.iter().fold(0, |n, b| n << 8 | i64::from(*b))))
}

/// Returns the byte offset of the first match of a needle at or after `from`, by the equality of a collation.
/// Takes up to as many steps as the product of both lengths.
pub(crate) fn find(
    collation: Collation,
    text: &[u8],
    needle: &[u8],
    from: usize,
    interrupt: &dyn Interrupt,
) -> SqlResult<Option<usize>> {
    if from > text.len() {
        return Ok(None);
    }
    if needle.is_empty() {
        return Ok(Some(from));
    }
    if collation.is_bin() {
        return find_bytes(text, needle, from, interrupt);
    }
    // As in MariaDB, a match has as many bytes as the needle, so an accented letter does not match the plain
    // one.
    let wanted = folded(collation, needle);
    let mut at = from;
    while at + needle.len() <= text.len() {
        let candidate = &text[at..at + needle.len()];
        if std::str::from_utf8(candidate).is_ok() && folded(collation, candidate) == wanted {
            return Ok(Some(at));
        }
        interrupt.steps(needle.len() as u32 / 16 + 1)?;
        at += collation.prefix_len(&text[at..], 1).max(1);
    }
    Ok(None)
}

/// Bytes that are compared between checks of the interrupt.
const COMPARED_BYTES: usize = 1 << 16;

fn find_bytes(
    text: &[u8],
    needle: &[u8],
    from: usize,
    interrupt: &dyn Interrupt,
) -> SqlResult<Option<usize>> {
    let places = (text.len() - from + 1).saturating_sub(needle.len());
    let at_once = (COMPARED_BYTES / needle.len()).max(1);
    for first in (0..places).step_by(at_once) {
        let end = first.saturating_add(at_once).min(places);
        let part = &text[from + first..from + end + needle.len() - 1];
        if let Some(n) = part.windows(needle.len()).position(|w| w == needle) {
            return Ok(Some(from + first + n));
        }
        interrupt.steps((part.len() >> 8) as u32 + 1)?;
    }
    Ok(None)
}

/// Returns a key that equal strings have in common. A mark at the end makes trailing spaces significant.
fn folded(collation: Collation, text: &[u8]) -> Vec<u8> {
    let mut marked = text.to_vec();
    marked.push(b'|');
    let mut key = Vec::with_capacity(marked.len() * 2);
    collation.sort_key(&marked, &mut key);
    key
}

/// Returns the collation for a search with two arguments.
fn shared_collation(a: &Args<'_>, x: usize, y: usize) -> SqlResult<Collation> {
    let (left, right) = (a.expr(x).ty_cow(), a.expr(y).ty_cow());
    Ok(aggregate_collations(a.call.name(), [left.as_ref(), right.as_ref()])?.collation)
}

fn position(a: &Args<'_>, text: usize, needle: usize, start: Option<i64>) -> SqlResult<Value> {
    let (explicit, start) = (start.is_some(), start.unwrap_or(1));
    let collation = shared_collation(a, text, needle)?;
    let text = or_null!(a.text(text));
    let needle = or_null!(a.text(needle));
    // As in MariaDB, `start` counts characters but its limit counts bytes, and so does the position of an
    // empty needle.
    if start < 1 || (start > 1 || explicit) && start as u64 > text.len() as u64 {
        return Ok(Value::Int(0));
    }
    let from = collation.prefix_len(&text, (start - 1) as usize);
    if from + needle.len() > text.len() {
        return Ok(Value::Int(0));
    }
    if needle.is_empty() {
        return Ok(Value::Int(from as i64 + 1));
    }
    let found = find(collation, &text, &needle, from, a.ctx)?;
    Ok(Value::Int(found.map_or(0, |at| collation.char_len(&text[..at]) as i64 + 1)))
}

fn instr(a: Args<'_>) -> SqlResult<Value> {
    position(&a, 0, 1, None)
}

/// LOCATE(needle, text [, start]).
fn locate(a: Args<'_>) -> SqlResult<Value> {
    let start = if a.count() > 2 { Some(or_null!(a.int(2))) } else { None };
    position(&a, 1, 0, start)
}

fn strcmp(a: Args<'_>) -> SqlResult<Value> {
    let collation = shared_collation(&a, 0, 1)?;
    let (x, y) = (or_null!(a.text(0)), or_null!(a.text(1)));
    Ok(Value::Int(match collation.compare(&x, &y) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }))
}

/// FIND_IN_SET(x, 'a,b,c').
fn find_in_set(a: Args<'_>) -> SqlResult<Value> {
    let collation = shared_collation(&a, 0, 1)?;
    let (wanted, list) = (or_null!(a.text(0)), or_null!(a.text(1)));
    if list.is_empty() || wanted.contains(&b',') {
        return Ok(Value::Int(0));
    }
    let mut items = list.split(|b| *b == b',');
    let found = items.position(|item| collation.compare(item, &wanted).is_eq());
    Ok(Value::Int(found.map_or(0, |n| n as i64 + 1)))
}

fn name_of(a: &Args<'_>, name: &str) -> SqlResult<Value> {
    a.string(name.as_bytes())
}

fn charset(a: Args<'_>) -> SqlResult<Value> {
    let collation = a.expr(0).ty_cow().collation;
    name_of(&a, collation.charset().name())
}

fn collation(a: Args<'_>) -> SqlResult<Value> {
    let collation = a.expr(0).ty_cow().collation;
    name_of(&a, collation.name())
}

fn coercibility(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::Int(a.expr(0).ty_cow().coercibility as i64))
}
