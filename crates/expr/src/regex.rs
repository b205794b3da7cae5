//! Regular expressions, with PCRE2's syntax and error messages: back references, look-around, named classes.

use std::cell::RefCell;
use std::sync::Arc;

use cohort_types::{Charset, Collation, ErrorCode, Interrupt as _, SqlError, SqlResult, TypeKind, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::expr::Expr;
use crate::expr_type::{ExprType, aggregate_collations};
use crate::function::{Anywhere, Function, Rows};
use crate::mixing::{compared, compared_texts};
use crate::pcre::{Groups, Pattern, PatternOptions};
use crate::typing::{any_nullable, long_string_of, string_of, width};

pub(crate) static REGEXP: Function = Function::operator("regexp", type_match, matches);

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("regexp_instr", 2, 2, type_instr, instr, Rows, Anywhere),
    Function::new("regexp_substr", 2, 2, type_substr, substr, Rows, Anywhere),
    Function::new("regexp_replace", 3, 3, type_replace, replace, Rows, Anywhere),
];

/// Returns whether rows may have different patterns, as MariaDB determines it before it reads them.
fn varies(pattern: &Expr) -> bool {
    !pattern.columns().is_empty() || pattern.calls_back()
}

/// Returns whether the result may be NULL. If rows have different patterns, an invalid one gives NULL.
fn may_be_null(args: &[Expr]) -> bool {
    any_nullable(args) || varies(&args[1])
}

fn type_match(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    compared(args, "regexp")?;
    Ok(ExprType::boolean().with_nullable(may_be_null(args)))
}

fn type_instr(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    compared(args, "regexp_instr")?;
    Ok(ExprType::number(TypeKind::Int, 11, 0).with_nullable(may_be_null(args)))
}

fn type_substr(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let length = width(&args[0]);
    Ok(long_string_of(compared_texts(args, env, "regexp_substr")?, length))
}

fn type_replace(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(string_of(compared_texts(args, env, "regexp_replace")?, 1 << 24))
}

thread_local! {
    /// Patterns that this thread compiled last. Most patterns are constant.
    static COMPILED: RefCell<Vec<(Vec<u8>, PatternOptions, Arc<Pattern>)>> = const { RefCell::new(Vec::new()) };
}

/// Maximum number of compiled patterns per thread.
const COMPILED_MAX: usize = 16;

/// Returns a compiled pattern. Must not be inlined: a fiber may continue on another thread after a lock wait
/// and must not reuse the address of this thread's cache.
#[inline(never)]
fn compiled(pattern: &[u8], collation: Collation) -> SqlResult<Arc<Pattern>> {
    let options =
        PatternOptions { ignore_case: !collation.is_bin(), unicode: collation.charset() != Charset::Binary };
    let kept = COMPILED.with_borrow(|list| {
        list.iter().find(|(p, o, _)| p == pattern && *o == options).map(|(_, _, r)| Arc::clone(r))
    });
    if let Some(regex) = kept {
        return Ok(regex);
    }
    let regex = Arc::new(Pattern::compile(pattern, options).map_err(|why| refused(&why))?);
    COMPILED.with_borrow_mut(|list| {
        if list.len() >= COMPILED_MAX {
            list.remove(0);
        }
        list.push((pattern.to_vec(), options, Arc::clone(&regex)));
    });
    Ok(regex)
}

fn refused(why: &str) -> SqlError {
    SqlError::regex_error(why)
}

/// Returns the compiled pattern of a call. An invalid pattern is error 1139, or `None` if rows have different
/// patterns.
fn pattern_of(a: &Args<'_>, pattern: &[u8], collation: Collation) -> SqlResult<Option<Arc<Pattern>>> {
    match compiled(pattern, collation) {
        Err(_) if varies(a.expr(1)) => Ok(None),
        compiled => compiled.map(Some),
    }
}

fn shared_collation(a: &Args<'_>) -> SqlResult<Collation> {
    let (left, right) = (a.expr(0).ty_cow(), a.expr(1).ty_cow());
    Ok(aggregate_collations(a.call.name(), [left.as_ref(), right.as_ref()])?.collation)
}

/// Bytes of text per interruption step of a search; a byte takes some ten nanoseconds.
const SEARCH_STEPS_PER_BYTE: usize = 16;

/// Returns the first match at or after `from`. A search that exceeds a limit warns and returns `None`.
fn search(a: &Args<'_>, regex: &Pattern, text: &[u8], from: usize) -> SqlResult<Option<Groups>> {
    a.ctx.steps((text.len() - from).div_ceil(SEARCH_STEPS_PER_BYTE) as u32 + 1)?;
    match regex.find(text, from) {
        Ok(found) => Ok(found),
        Err(why) => {
            // The search took long, so check for KILL now.
            a.ctx.steps(u32::MAX)?;
            a.ctx.warn(ErrorCode::Regexp, refused(&why).message)?;
            Ok(None)
        }
    }
}

fn matches(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let pattern = or_null!(a.text(1));
    let regex = or_null!(pattern_of(&a, &pattern, shared_collation(&a)?));
    Ok(Value::bool(search(&a, &regex, &text, 0)?.is_some()))
}

fn instr(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let pattern = or_null!(a.text(1));
    let collation = shared_collation(&a)?;
    let regex = or_null!(pattern_of(&a, &pattern, collation));
    let found = search(&a, &regex, &text, 0)?;
    let place = |groups: Groups| collation.char_len(&text[..groups.whole().start]) as i64 + 1;
    Ok(Value::Int(found.map_or(0, place)))
}

fn substr(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let pattern = or_null!(a.text(1));
    let regex = or_null!(pattern_of(&a, &pattern, shared_collation(&a)?));
    a.string(search(&a, &regex, &text, 0)?.map_or(&b""[..], |groups| &text[groups.whole()]))
}

/// REGEXP_REPLACE: `\1` in the replacement refers to a group. An empty match ends the replacement.
fn replace(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let pattern = or_null!(a.text(1));
    let replacement = or_null!(a.text(2));
    let regex = or_null!(pattern_of(&a, &pattern, shared_collation(&a)?));
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(groups) = search(&a, &regex, &text, at)? {
        let whole = groups.whole();
        if whole.is_empty() {
            break;
        }
        out.extend_from_slice(&text[at..whole.start]);
        expand(&replacement, &groups, &text, &mut out);
        at = whole.end;
        if !a.fits_packet((out.len() + text.len() - at) as u64)? {
            return Ok(Value::Null);
        }
    }
    out.extend_from_slice(&text[at..]);
    a.string(out)
}

fn expand(replacement: &[u8], groups: &Groups, text: &[u8], out: &mut Vec<u8>) {
    let mut bytes = replacement.iter();
    while let Some(b) = bytes.next() {
        match (b, bytes.as_slice().first()) {
            (b'\\', Some(d)) if d.is_ascii_digit() => {
                bytes.next();
                out.extend(groups.get(usize::from(d - b'0')).map_or(&b""[..], |group| &text[group]));
            }
            (b'\\', Some(other)) => {
                bytes.next();
                out.push(*other);
            }
            _ => out.push(*b),
        }
    }
}
