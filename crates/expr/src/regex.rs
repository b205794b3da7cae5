//! Regular expressions. Patterns are of the `regex` crate's syntax, which has no back references and no look
//! around: such a pattern is refused with error 1139, never matched wrongly.

use std::cell::RefCell;
use std::sync::Arc;

use cohort_types::{Charset, Collation, ErrorCode, SqlError, SqlResult, TypeKind, Value};
use regex::bytes::{Regex, RegexBuilder};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::expr::Expr;
use crate::expr_type::{ExprType, aggregate_collations};
use crate::table::Function;
use crate::typing::{any_nullable, joined_collation, string_of, width};

pub(crate) static REGEXP: Function = Function::operator("regexp", type_match, matches);

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::pure("regexp_instr", 2, 2, type_instr, instr),
    Function::pure("regexp_substr", 2, 2, type_substr, substr),
    Function::pure("regexp_replace", 3, 3, type_replace, replace),
];

fn type_match(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    let (left, right) = (args[0].ty(), args[1].ty());
    aggregate_collations("regexp", [&left, &right])?;
    Ok(ExprType::boolean().with_nullable(any_nullable(args)))
}

fn type_instr(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::number(TypeKind::Int, 11, 0).with_nullable(any_nullable(args)))
}

fn type_substr(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let length = width(&args[0]);
    Ok(string_of(joined_collation(args, env, "regexp_substr")?, length))
}

fn type_replace(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(string_of(joined_collation(args, env, "regexp_replace")?, 1 << 24))
}

thread_local! {
    /// The last few patterns this thread compiled: patterns are nearly always constant.
    static COMPILED: RefCell<Vec<(Vec<u8>, Folding, Arc<Regex>)>> = const { RefCell::new(Vec::new()) };
}

/// How many compiled patterns a thread keeps.
const COMPILED_MAX: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Folding {
    Exact,
    IgnoreCase,
}

/// Not inlined: a caller may go on on another thread after it has waited for a lock, and must not keep this
/// one's address.
#[inline(never)]
fn compiled(pattern: &[u8], collation: Collation) -> SqlResult<Arc<Regex>> {
    let folding = if collation.is_bin() { Folding::Exact } else { Folding::IgnoreCase };
    let kept = COMPILED.with_borrow(|list| {
        list.iter().find(|(p, f, _)| p == pattern && *f == folding).map(|(_, _, r)| Arc::clone(r))
    });
    if let Some(regex) = kept {
        return Ok(regex);
    }
    let text = std::str::from_utf8(pattern).map_err(|_| refused("the pattern is no text"))?;
    let regex = RegexBuilder::new(text)
        .case_insensitive(folding == Folding::IgnoreCase)
        .unicode(collation.charset() != Charset::Binary)
        .size_limit(4 << 20)
        .build()
        .map_err(|e| refused(e.to_string().lines().last().unwrap_or("bad pattern")))?;
    let regex = Arc::new(regex);
    COMPILED.with_borrow_mut(|list| {
        if list.len() >= COMPILED_MAX {
            list.remove(0);
        }
        list.push((pattern.to_vec(), folding, Arc::clone(&regex)));
    });
    Ok(regex)
}

fn refused(why: &str) -> SqlError {
    SqlError::new(ErrorCode::Regexp, format!("Regex error '{}'", why.trim_start_matches("error: ")))
}

fn shared_collation(a: &Args<'_>) -> SqlResult<Collation> {
    let (left, right) = (a.expr(0).ty_cow(), a.expr(1).ty_cow());
    Ok(aggregate_collations(a.call.name(), [left.as_ref(), right.as_ref()])?.collation)
}

fn matches(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let pattern = or_null!(a.text(1));
    Ok(Value::bool(compiled(&pattern, shared_collation(&a)?)?.is_match(&text)))
}

fn instr(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let pattern = or_null!(a.text(1));
    let collation = shared_collation(&a)?;
    let found = compiled(&pattern, collation)?.find(&text).map(|m| m.start());
    Ok(Value::Int(found.map_or(0, |at| collation.char_len(&text[..at]) as i64 + 1)))
}

fn substr(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let pattern = or_null!(a.text(1));
    let regex = compiled(&pattern, shared_collation(&a)?)?;
    a.string(regex.find(&text).map_or(&b""[..], |m| m.as_bytes()))
}

/// REGEXP_REPLACE: `\1` in the replacement stands for a group.
fn replace(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let pattern = or_null!(a.text(1));
    let replacement = or_null!(a.text(2));
    let regex = compiled(&pattern, shared_collation(&a)?)?;
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    for groups in regex.captures_iter(&text) {
        let Some(whole) = groups.get(0) else { continue };
        out.extend_from_slice(&text[at..whole.start()]);
        expand(&replacement, &groups, &mut out);
        at = whole.end();
    }
    out.extend_from_slice(&text[at..]);
    a.string(out)
}

fn expand(replacement: &[u8], groups: &regex::bytes::Captures<'_>, out: &mut Vec<u8>) {
    let mut bytes = replacement.iter();
    while let Some(b) = bytes.next() {
        match (b, bytes.as_slice().first()) {
            (b'\\', Some(d)) if d.is_ascii_digit() => {
                bytes.next();
                out.extend_from_slice(groups.get(usize::from(d - b'0')).map_or(&b""[..], |g| g.as_bytes()));
            }
            (b'\\', Some(other)) => {
                bytes.next();
                out.push(*other);
            }
            _ => out.push(*b),
        }
    }
}
