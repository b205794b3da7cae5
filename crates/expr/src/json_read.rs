//! JSON functions that read documents.

use std::collections::HashSet;

use cohort_types::{Collation, ErrorCode, Interrupt, SqlResult, TypeKind, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::expr::Expr;
use crate::expr_type::{Coercibility, Derived, ExprType};
use crate::function::{ANY, Anywhere, Function, NumberOf, Rows};
use crate::json::{Json, all, any, complaint, document, member, number, spans, unescape};
use crate::json_path::{Path, path, single_path};
use crate::json_typing;
use crate::typing::string_of;

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("json_valid", 1, 1, type_flag, valid, Rows, Anywhere),
    Function::new("json_extract", 2, ANY, json_typing::extracted, extract, Rows, Anywhere)
        .with_number(NumberOf::Json),
    Function::new("json_query", 2, 2, json_typing::part, query, Rows, Anywhere),
    Function::new("json_value", 2, 2, json_typing::scalar, value, Rows, Anywhere),
    Function::new("json_unquote", 1, 1, json_typing::unquoted, unquote, Rows, Anywhere),
    Function::new("json_length", 1, 2, type_count, length, Rows, Anywhere),
    Function::new("json_depth", 1, 1, type_count, depth, Rows, Anywhere),
    Function::new("json_type", 1, 1, type_word, type_name, Rows, Anywhere),
    Function::new("json_keys", 1, 2, json_typing::scalar, keys, Rows, Anywhere),
    Function::new("json_contains", 2, 3, type_flag, contains, Rows, Anywhere),
    Function::new("json_contains_path", 3, ANY, type_flag, contains_path, Rows, Anywhere),
    Function::new("json_exists", 2, 2, type_flag, exists, Rows, Anywhere),
    Function::new("json_equals", 2, 2, type_flag, equals, Rows, Anywhere),
    Function::new("json_overlaps", 2, 2, type_flag, overlaps, Rows, Anywhere),
    Function::new("json_compact", 1, 1, json_typing::compact, compact, Rows, Anywhere),
    Function::new("json_loose", 1, 1, json_typing::loose, loose, Rows, Anywhere),
    Function::new("json_detailed", 1, 2, json_typing::detailed, detailed, Rows, Anywhere),
    Function::new("json_pretty", 1, 1, json_typing::detailed, detailed, Rows, Anywhere),
];

fn type_flag(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::boolean())
}

fn type_count(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::number(TypeKind::Int, 10, 0))
}

fn type_word(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    let derived = Derived {
        collation: Collation::UTF8MB3_GENERAL_CI,
        coercibility: Coercibility::Coercible,
        ascii: true,
    };
    Ok(string_of(derived, 12))
}

/// JSON_VALID: an invalid document is a regular result, so it gets a note instead of a warning.
fn valid(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    Ok(Value::bool(match Json::parse(&text) {
        Ok(_) => true,
        Err(error) => {
            let (code, message) = complaint(&a, 0, error);
            a.ctx.note(code, message);
            false
        }
    }))
}

fn print(a: &Args<'_>, json: &Json) -> SqlResult<Value> {
    let mut out = Vec::new();
    json.write_loose(&mut out);
    a.bounded_string(out)
}

/// JSON_EXTRACT: with several paths or a wildcard, returns an array of all matches in document order.
fn extract(a: Args<'_>) -> SqlResult<Value> {
    let json = or_null!(document(&a, 0));
    let mut found: Vec<&Json> = Vec::new();
    let mut known: HashSet<*const Json> = HashSet::new();
    let mut single = a.count() == 2;
    for n in 1..a.count() {
        let path = or_null!(path(&a, n));
        single &= !path.is_wild();
        for place in path.find(&json, a.ctx)? {
            if known.insert(std::ptr::from_ref(place)) {
                found.push(place);
            }
        }
    }
    match found[..] {
        [] => Ok(Value::Null),
        [one] if single => print(&a, one),
        _ => {
            let found =
                positions(&json).into_iter().filter(|place| known.contains(&std::ptr::from_ref(*place)));
            print(&a, &Json::Array(found.cloned().collect()))
        }
    }
}

/// Returns all values of a document in order.
pub(crate) fn positions(json: &Json) -> Vec<&Json> {
    let mut all = vec![json];
    match json {
        Json::Array(items) => items.iter().for_each(|item| all.extend(positions(item))),
        Json::Object(members) => members.iter().for_each(|(_, value)| all.extend(positions(value))),
        _ => {}
    }
    all
}

/// Parses argument n as a document. Returns `None` without a warning if it is invalid.
fn quiet_document(a: &Args<'_>, n: usize) -> SqlResult<Option<Json>> {
    let Some(text) = a.text(n)? else { return Ok(None) };
    Ok(Json::parse(&text).ok())
}

/// JSON_QUERY: an array or object.
fn query(a: Args<'_>) -> SqlResult<Value> {
    let path = or_null!(path(&a, 1));
    let json = or_null!(quiet_document(&a, 0));
    let Some(found) = path.find_every(&json, a.ctx)?.into_iter().find(|j| !j.is_scalar()) else {
        return Ok(Value::Null);
    };
    // The result is the original text of the value.
    let text = or_null!(a.text(0));
    let number = positions(&json).iter().position(|place| std::ptr::eq(*place, found));
    match number.and_then(|n| spans(&text).get(n).cloned()) {
        Some(span) => a.string(&text[span]),
        None => print(&a, found),
    }
}

/// JSON_VALUE: a scalar as text.
fn value(a: Args<'_>) -> SqlResult<Value> {
    let path = or_null!(single_path(&a, 1));
    let json = or_null!(quiet_document(&a, 0));
    match path.find_every(&json, a.ctx)?.into_iter().find(|j| j.is_scalar()) {
        None | Some(Json::Null) => Ok(Value::Null),
        Some(Json::Bool(v)) => a.string(if *v { "1" } else { "0" }),
        Some(scalar) => a.string(plain_text(scalar)),
    }
}

/// Returns a scalar without quotes and escapes.
fn plain_text(json: &Json) -> Vec<u8> {
    match json {
        Json::String(raw) => unescape(raw),
        other => {
            let mut out = Vec::new();
            other.write_loose(&mut out);
            out
        }
    }
}

/// JSON_UNQUOTE: the text of a JSON string. Other values are returned unchanged.
fn unquote(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    match Json::parse(&text) {
        Ok(Json::String(raw)) => a.string(unescape(&raw)),
        _ => a.string(text),
    }
}

/// Returns the document of argument 0, or the value in it at the path in argument n.
fn place(a: &Args<'_>, n: usize) -> SqlResult<Option<Json>> {
    let Some(json) = document(a, 0)? else { return Ok(None) };
    if a.count() <= n {
        return Ok(Some(json));
    }
    let Some(path) = single_path(a, n)? else { return Ok(None) };
    Ok(path.find(&json, a.ctx)?.first().map(|found| (*found).clone()))
}

fn length(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::Int(or_null!(place(&a, 1)).len() as i64))
}

fn depth(a: Args<'_>) -> SqlResult<Value> {
    Ok(Value::Int(or_null!(document(&a, 0)).depth() as i64))
}

fn type_name(a: Args<'_>) -> SqlResult<Value> {
    a.string(match or_null!(document(&a, 0)) {
        Json::Null => "NULL",
        Json::Bool(_) => "BOOLEAN",
        // MariaDB reports 1e-1 as an integer.
        Json::Number(raw) if raw.contains(&b'.') => "DOUBLE",
        Json::Number(_) => "INTEGER",
        Json::String(_) => "STRING",
        Json::Array(_) => "ARRAY",
        Json::Object(_) => "OBJECT",
    })
}

fn keys(a: Args<'_>) -> SqlResult<Value> {
    let Json::Object(members) = or_null!(place(&a, 1)) else { return Ok(Value::Null) };
    let mut known = HashSet::new();
    let keys = members.into_iter().map(|(key, _)| key);
    let names = keys.filter(|key| known.insert(key.clone())).map(Json::String).collect();
    print(&a, &Json::Array(names))
}

/// Returns true if a document contains a candidate: members of an object, elements of an array.
fn holds(json: &Json, candidate: &Json, interrupt: &dyn Interrupt) -> SqlResult<bool> {
    interrupt.step()?;
    match (json, candidate) {
        (Json::Object(members), Json::Object(wanted)) => {
            all(wanted, |(key, value)| member(members, key, |v| holds(v, value, interrupt), interrupt))
        }
        (Json::Array(items), Json::Array(wanted)) => {
            all(wanted, |wanted| any(items, |item| holds(item, wanted, interrupt)))
        }
        (Json::Array(items), scalar) => any(items, |item| holds(item, scalar, interrupt)),
        (Json::Number(x), Json::Number(y)) => Ok(number(x) == number(y)),
        (x, y) => x.equals(y, interrupt),
    }
}

fn contains(a: Args<'_>) -> SqlResult<Value> {
    if a.value(1)?.is_null() {
        return Ok(Value::Null);
    }
    let Some(json) = place(&a, 2)? else {
        // A path without a match contains nothing.
        let missing = a.count() > 2 && document(&a, 0)?.is_some() && single_path(&a, 2)?.is_some();
        return Ok(if missing { Value::bool(false) } else { Value::Null });
    };
    let candidate = or_null!(document(&a, 1));
    Ok(Value::bool(holds(&json, &candidate, a.ctx)?))
}

fn contains_path(a: Args<'_>) -> SqlResult<Value> {
    let mode = or_null!(a.text(1)).to_ascii_lowercase();
    let all = match &mode[..] {
        b"all" => true,
        b"one" => false,
        _ => {
            a.ctx.warn(
                ErrorCode::JsonOneOrAll,
                "Argument 2 to function 'json_contains_path' must be \"one\" or \"all\".",
            )?;
            return Ok(Value::Null);
        }
    };
    let read = |n| path(&a, n);
    let paths = or_null!((2..a.count()).map(read).collect::<SqlResult<Option<Vec<Path>>>>());
    let json = or_null!(document(&a, 0));
    for path in paths {
        if path.find(&json, a.ctx)?.is_empty() == all {
            return Ok(Value::bool(!all));
        }
    }
    Ok(Value::bool(all))
}

fn exists(a: Args<'_>) -> SqlResult<Value> {
    let json = or_null!(document(&a, 0));
    let path = or_null!(path(&a, 1));
    Ok(Value::bool(!path.find(&json, a.ctx)?.is_empty()))
}

fn equals(a: Args<'_>) -> SqlResult<Value> {
    let (x, y) = (or_null!(document(&a, 0)), or_null!(document(&a, 1)));
    Ok(Value::bool(x.equals(&y, a.ctx)?))
}

/// JSON_OVERLAPS: true if two documents have an element or a member in common.
fn overlaps(a: Args<'_>) -> SqlResult<Value> {
    let (x, y) = (or_null!(document(&a, 0)), or_null!(document(&a, 1)));
    let found = match (&x, &y) {
        (Json::Array(xs), Json::Array(ys)) => any(xs, |x| any(ys, |y| x.equals(y, a.ctx))),
        (Json::Array(xs), other) | (other, Json::Array(xs)) => any(xs, |x| x.equals(other, a.ctx)),
        (Json::Object(xs), Json::Object(ys)) => {
            any(xs, |(key, x)| member(ys, key, |y| x.equals(y, a.ctx), a.ctx))
        }
        (x, y) => x.equals(y, a.ctx),
    };
    Ok(Value::bool(found?))
}

fn compact(a: Args<'_>) -> SqlResult<Value> {
    let mut out = Vec::new();
    or_null!(document(&a, 0)).write_compact(&mut out);
    a.string(out)
}

fn loose(a: Args<'_>) -> SqlResult<Value> {
    let json = or_null!(document(&a, 0));
    print(&a, &json)
}

fn detailed(a: Args<'_>) -> SqlResult<Value> {
    const TAB: i64 = 4;
    const TAB_MAX: i64 = 16;
    let tab = if a.count() > 1 { or_null!(a.int(1)).clamp(0, TAB_MAX) } else { TAB };
    let mut out = Vec::new();
    or_null!(document(&a, 0)).write_detailed(0, tab as usize, a.ctx.env.max_allowed_packet, &mut out);
    a.bounded_string(out)
}
