//! JSON functions that create or change documents.

use cohort_types::{ErrorCode, Interrupt, SqlResult, Value};

use crate::args::{Args, or_null};
use crate::context::EvalContext;
use crate::convert;
use crate::expr::Expr;
use crate::expr_type::{Flavor, TypeClass};
use crate::function::{ANY, Anywhere, Function, Rows};
use crate::json::{Json, document, parsed};
use crate::json_path::{Index, Path, Step, same_key, single_path};
use crate::json_typing;

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("json_array", 0, ANY, json_typing::array, array, Rows, Anywhere),
    Function::new("json_object", 0, ANY, json_typing::object, object, Rows, Anywhere),
    Function::new("json_quote", 1, 1, json_typing::quoted, quote, Rows, Anywhere),
    Function::new("json_set", 3, ANY, json_typing::changed, set, Rows, Anywhere),
    Function::new("json_insert", 3, ANY, json_typing::changed, insert, Rows, Anywhere),
    Function::new("json_replace", 3, ANY, json_typing::changed, replace, Rows, Anywhere),
    Function::new("json_remove", 2, ANY, json_typing::part, remove, Rows, Anywhere),
    Function::new("json_array_append", 3, ANY, json_typing::longer, array_append, Rows, Anywhere),
    Function::new("json_array_insert", 3, ANY, json_typing::longer, array_insert, Rows, Anywhere),
    Function::new("json_merge", 2, ANY, json_typing::array, merge_preserve, Rows, Anywhere),
    Function::new("json_merge_preserve", 2, ANY, json_typing::array, merge_preserve, Rows, Anywhere),
    Function::new("json_merge_patch", 2, ANY, json_typing::array, merge_patch, Rows, Anywhere),
];

/// Appends text as a JSON string.
pub(crate) fn append_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for b in text {
        match b {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *b]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            b if *b < 0x20 => out.extend_from_slice(format!("\\u{b:04X}").as_bytes()),
            _ => out.push(*b),
        }
    }
    out.push(b'"');
}

/// Appends an argument's value as JSON: documents and numbers unchanged, other values as strings.
pub(crate) fn append_json(
    arg: &Expr,
    row: &[Value],
    ctx: &EvalContext<'_>,
    out: &mut Vec<u8>,
) -> SqlResult<()> {
    let value = arg.eval(row, ctx)?;
    let ty = arg.ty_cow();
    let Some(text) = convert::text_of(&value, ty.decimals) else {
        out.extend_from_slice(b"null");
        return Ok(());
    };
    let number = matches!(ty.class(), TypeClass::Int | TypeClass::Decimal | TypeClass::Real);
    match value.as_ref() {
        Value::Int(v) if ty.flavor == Flavor::Boolean => {
            out.extend_from_slice(if *v != 0 { b"true" } else { b"false" })
        }
        _ if ty.is_json() => out.extend_from_slice(&text),
        Value::Int(_) | Value::UInt(_) | Value::Decimal(_) | Value::Double(_) | Value::Float(_) if number => {
            out.extend_from_slice(&text);
        }
        _ => append_string(&text, out),
    }
    Ok(())
}

fn array(a: Args<'_>) -> SqlResult<Value> {
    let mut out = vec![b'['];
    for (n, arg) in a.call.args.iter().enumerate() {
        if n > 0 {
            out.extend_from_slice(b", ");
        }
        append_json(arg, a.row, a.ctx, &mut out)?;
        if !a.fits_packet(out.len() as u64)? {
            return Ok(Value::Null);
        }
    }
    out.push(b']');
    a.string(out)
}

fn object(a: Args<'_>) -> SqlResult<Value> {
    if a.count() % 2 == 1 {
        let text = "Incorrect parameter count in the call to native function 'json_object'";
        return Err(cohort_types::SqlError::new(cohort_types::ErrorCode::WrongParamcountToNativeFct, text));
    }
    let mut out = vec![b'{'];
    for (n, pair) in a.call.args.chunks(2).enumerate() {
        if n > 0 {
            out.extend_from_slice(b", ");
        }
        let key = pair[0].eval_text(a.row, a.ctx)?.unwrap_or_default();
        append_string(&key, &mut out);
        out.extend_from_slice(b": ");
        append_json(&pair[1], a.row, a.ctx, &mut out)?;
        if !a.fits_packet(out.len() as u64)? {
            return Ok(Value::Null);
        }
    }
    out.push(b'}');
    a.string(out)
}

fn quote(a: Args<'_>) -> SqlResult<Value> {
    let ty = a.expr(0).ty_cow();
    if ty.class() != TypeClass::String && !ty.is_temporal() {
        return Ok(Value::Null);
    }
    let text = or_null!(a.text(0));
    let mut out = Vec::new();
    append_string(&text, &mut out);
    a.bounded_string(out)
}

/// Counts the bytes of a call's arguments, so that they are never held in memory beyond the limit of a
/// result.
#[derive(Default)]
struct Pieces {
    bytes: u64,
}

impl Pieces {
    /// Parses argument n as a value of a document. Returns `None` if the limit is exceeded.
    fn value(&mut self, a: &Args<'_>, n: usize) -> SqlResult<Option<Json>> {
        let mut text = Vec::new();
        append_json(a.expr(n), a.row, a.ctx, &mut text)?;
        Ok(self.take(a, &text)?.then(|| Json::parse(&text).unwrap_or(Json::Null)))
    }

    /// Parses argument n as a document. Returns `None` if it is NULL or invalid, or if the limit is exceeded.
    fn document(&mut self, a: &Args<'_>, n: usize) -> SqlResult<Option<Json>> {
        let Some(text) = a.text(n)? else { return Ok(None) };
        if self.take(a, &text)? { parsed(a, n, &text) } else { Ok(None) }
    }

    fn take(&mut self, a: &Args<'_>, text: &[u8]) -> SqlResult<bool> {
        self.bytes += text.len() as u64;
        a.fits_packet(self.bytes)
    }
}

fn print(a: &Args<'_>, json: &Json) -> SqlResult<Value> {
    let mut out = Vec::new();
    json.write_loose(&mut out);
    a.bounded_string(out)
}

/// Condition on the target of a change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Touch {
    Existing,
    Missing,
    Both,
}

/// Parses the paths of a change: every `step`-th argument from the second on. MariaDB parses them before the
/// document.
fn paths(a: &Args<'_>, step: usize) -> SqlResult<Option<Vec<Path>>> {
    if a.value(0)?.is_null() {
        return Ok(None);
    }
    (1..a.count()).step_by(step).map(|n| single_path(a, n)).collect()
}

fn set(a: Args<'_>) -> SqlResult<Value> {
    change(a, Touch::Both)
}

fn insert(a: Args<'_>) -> SqlResult<Value> {
    change(a, Touch::Missing)
}

fn replace(a: Args<'_>) -> SqlResult<Value> {
    change(a, Touch::Existing)
}

fn change(a: Args<'_>, touch: Touch) -> SqlResult<Value> {
    let paths = or_null!(paths(&a, 2));
    let mut json = or_null!(document(&a, 0));
    let mut pieces = Pieces::default();
    for (at, path) in paths.iter().enumerate() {
        a.ctx.steps(STEPS_OF_A_PATH)?;
        let n = at * 2 + 1;
        let new = or_null!(pieces.value(&a, n + 1));
        put(&mut json, path, new, touch);
    }
    print(&a, &json)
}

/// Returns the value at the path.
fn walk<'j>(json: &'j mut Json, steps: &[Step]) -> Option<&'j mut Json> {
    let mut at = json;
    for step in steps {
        at = match (step, at) {
            (Step::Key(key), Json::Object(members)) => {
                members.iter_mut().find(|(k, _)| same_key(k, key)).map(|(_, v)| v)?
            }
            (Step::Index(index), Json::Array(items)) => {
                let n = index.resolve(items.len())?;
                items.get_mut(n)?
            }
            (Step::Index(Index::First(0)), scalar) => scalar,
            _ => return None,
        };
    }
    Some(at)
}

fn put(json: &mut Json, path: &Path, new: Json, touch: Touch) {
    let Some((last, before)) = path.steps.split_last() else {
        if touch != Touch::Missing {
            *json = new;
        }
        return;
    };
    if let Some(place) = walk(json, &path.steps) {
        if touch != Touch::Missing {
            *place = new;
        }
        return;
    }
    if touch == Touch::Existing {
        return;
    }
    match (walk(json, before), last) {
        (Some(Json::Object(members)), Step::Key(key)) => members.push((key.clone(), new)),
        (Some(Json::Array(items)), Step::Index(_)) => items.push(new),
        // A value that is not an array becomes one.
        (Some(other), Step::Index(_)) => *other = Json::Array(vec![other.clone(), new]),
        _ => {}
    }
}

fn remove(a: Args<'_>) -> SqlResult<Value> {
    let paths = or_null!(paths(&a, 1));
    let mut json = or_null!(document(&a, 0));
    for (at, path) in paths.iter().enumerate() {
        a.ctx.steps(STEPS_OF_A_PATH)?;
        let Some((last, before)) = path.steps.split_last() else {
            let text = format!(
                "Path expression '$' is not allowed in argument {} to function 'json_remove'.",
                at + 2
            );
            a.ctx.warn(ErrorCode::JsonPathNotAllowed, text)?;
            return Ok(Value::Null);
        };
        match (walk(&mut json, before), last) {
            (Some(Json::Object(members)), Step::Key(key)) => {
                if let Some(at) = members.iter().position(|(k, _)| same_key(k, key)) {
                    members.remove(at);
                }
            }
            (Some(Json::Array(items)), Step::Index(index)) => {
                if let Some(at) = index.resolve(items.len()).filter(|at| *at < items.len()) {
                    items.remove(at);
                }
            }
            _ => {}
        }
    }
    print(&a, &json)
}

/// JSON_ARRAY_APPEND: a value that is not an array becomes one first.
fn array_append(a: Args<'_>) -> SqlResult<Value> {
    let paths = or_null!(paths(&a, 2));
    let mut json = or_null!(document(&a, 0));
    let mut pieces = Pieces::default();
    for (at, path) in paths.iter().enumerate() {
        a.ctx.steps(STEPS_OF_A_PATH)?;
        let n = at * 2 + 1;
        let new = or_null!(pieces.value(&a, n + 1));
        match walk(&mut json, &path.steps) {
            None => return Ok(Value::Null),
            Some(Json::Array(items)) => items.push(new),
            Some(other) => *other = Json::Array(vec![other.clone(), new]),
        }
    }
    print(&a, &json)
}

fn array_insert(a: Args<'_>) -> SqlResult<Value> {
    let paths = or_null!(paths(&a, 2));
    let mut json = or_null!(document(&a, 0));
    let mut pieces = Pieces::default();
    for (at, path) in paths.iter().enumerate() {
        a.ctx.steps(STEPS_OF_A_PATH)?;
        let n = at * 2 + 1;
        let new = or_null!(pieces.value(&a, n + 1));
        let Some((Step::Index(index), before)) = path.steps.split_last() else { return Ok(Value::Null) };
        if let Some(Json::Array(items)) = walk(&mut json, before) {
            let at = index.resolve(items.len()).unwrap_or(0).min(items.len());
            items.insert(at, new);
        }
    }
    print(&a, &json)
}

fn merge_preserve(a: Args<'_>) -> SqlResult<Value> {
    let mut pieces = Pieces::default();
    let mut merged = or_null!(pieces.document(&a, 0));
    for n in 1..a.count() {
        merged = joined(merged, or_null!(pieces.document(&a, n)), a.ctx)?;
    }
    print(&a, &merged)
}

/// Merges two objects by their members. Other values are concatenated as arrays.
fn joined(left: Json, right: Json, interrupt: &dyn Interrupt) -> SqlResult<Json> {
    Ok(match (left, right) {
        (Json::Object(mut members), Json::Object(more)) => {
            for (key, value) in more {
                match position(&members, &key, interrupt)? {
                    None => members.push((key, value)),
                    Some(at) => {
                        let before = std::mem::replace(&mut members[at].1, Json::Null);
                        members[at].1 = joined(before, value, interrupt)?;
                    }
                }
            }
            Json::Object(members)
        }
        (left, right) => {
            let mut items = as_items(left);
            items.extend(as_items(right));
            Json::Array(items)
        }
    })
}

/// Interruption steps charged for following a path in a large document.
const STEPS_OF_A_PATH: u32 = 250;
/// Number of keys compared per interruption step.
const MEMBERS_OF_A_STEP: usize = 16;

/// Returns the position of a key's member. Long objects make this the main work of a merge, so it counts
/// interruption steps.
fn position(members: &[(Vec<u8>, Json)], key: &[u8], interrupt: &dyn Interrupt) -> SqlResult<Option<usize>> {
    interrupt.steps(u32::try_from(1 + members.len() / MEMBERS_OF_A_STEP).unwrap_or(u32::MAX))?;
    Ok(members.iter().position(|(k, _)| *k == key))
}

fn as_items(json: Json) -> Vec<Json> {
    match json {
        Json::Array(items) => items,
        other => vec![other],
    }
}

/// JSON_MERGE_PATCH: after a NULL, objects are ignored until a value that is not an object becomes the
/// target.
fn merge_patch(a: Args<'_>) -> SqlResult<Value> {
    let mut pieces = Pieces::default();
    let mut merged = None;
    for n in 0..a.count() {
        if a.value(n)?.is_null() {
            merged = None;
            continue;
        }
        let next = or_null!(pieces.document(&a, n));
        merged = match (merged, next) {
            (None, Json::Object(_)) if n > 0 => None,
            (None, next) => Some(next),
            (Some(target), patch) => Some(patched(target, patch, a.ctx)?),
        };
    }
    merged.map_or(Ok(Value::Null), |json| print(&a, &json))
}

/// Applies a merge patch (RFC 7396).
fn patched(target: Json, patch: Json, interrupt: &dyn Interrupt) -> SqlResult<Json> {
    let Json::Object(changes) = patch else { return Ok(patch) };
    let mut members = if let Json::Object(members) = target { members } else { Vec::new() };
    for (key, change) in changes {
        let at = position(&members, &key, interrupt)?;
        match (at, change) {
            (Some(at), Json::Null) => {
                members.remove(at);
            }
            (None, Json::Null) => {}
            (Some(at), change) => {
                let before = std::mem::replace(&mut members[at].1, Json::Null);
                members[at].1 = patched(before, change, interrupt)?;
            }
            (None, change) => members.push((key, patched(Json::Null, change, interrupt)?)),
        }
    }
    Ok(Json::Object(members))
}
