//! String functions of Oracle mode: an empty result is NULL, and NULL arguments are empty texts.

use cohort_types::{SqlResult, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::expr::Expr;
use crate::expr_type::ExprType;
use crate::function::{ANY, Anywhere, Function, Rows};
use crate::text_build::{lpad, replace, rpad, type_concat, type_pad, type_replace};
use crate::text_cut::{ltrim, rtrim, substring, type_substring, type_trim};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("concat_operator_oracle", 1, ANY, typed_concat, concat, Rows, Anywhere),
    Function::new("lpad_oracle", 2, 3, typed_pad, |a| empty_is_null(lpad(a)), Rows, Anywhere),
    Function::new("rpad_oracle", 2, 3, typed_pad, |a| empty_is_null(rpad(a)), Rows, Anywhere),
    Function::new("ltrim_oracle", 1, 1, typed_trim, |a| empty_is_null(ltrim(a)), Rows, Anywhere),
    Function::new("rtrim_oracle", 1, 1, typed_trim, |a| empty_is_null(rtrim(a)), Rows, Anywhere),
    Function::new("replace_oracle", 3, 3, typed_replace, |a| empty_is_null(replaced(a)), Rows, Anywhere),
    Function::new("substr_oracle", 2, 3, typed_substring, |a| empty_is_null(part(a)), Rows, Anywhere),
    // The parser translates TRIM_ORACLE to it. The name contains spaces, so SQL text cannot call it.
    Function::new("null if empty", 1, 1, typed_trim, text_or_null, Rows, Anywhere),
];

fn nullable(ty: SqlResult<ExprType>) -> SqlResult<ExprType> {
    Ok(ty?.with_nullable(true))
}

fn typed_concat(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    nullable(type_concat(args, env))
}

fn typed_pad(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    nullable(type_pad(args, env))
}

fn typed_trim(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    nullable(type_trim(args, env))
}

fn typed_replace(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    nullable(type_replace(args, env))
}

fn typed_substring(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    nullable(type_substring(args, env))
}

fn empty_is_null(value: SqlResult<Value>) -> SqlResult<Value> {
    Ok(match value? {
        Value::Str(text) if text.bytes.is_empty() => Value::Null,
        other => other,
    })
}

fn text_or_null(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    empty_is_null(a.string(text))
}

/// Concatenates and skips NULL arguments. Returns NULL if all arguments are NULL.
fn concat(a: Args<'_>) -> SqlResult<Value> {
    let mut out = None::<Vec<u8>>;
    for n in 0..a.count() {
        let Some(part) = a.text(n)? else { continue };
        let text = out.get_or_insert_default();
        if !a.fits_packet((text.len() + part.len()) as u64)? {
            return Ok(Value::Null);
        }
        text.extend_from_slice(&part);
    }
    out.map_or(Ok(Value::Null), |text| a.string(text))
}

/// REPLACE: a NULL replacement removes the matches; a NULL search text matches nothing.
fn replaced(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let Some(from) = a.text(1)? else { return a.string(text) };
    if a.text(2)?.is_some() {
        return replace(a);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        match !from.is_empty() && text[at..].starts_with(&from) {
            true => at += from.len(),
            false => {
                out.push(text[at]);
                at += 1;
            }
        }
    }
    a.string(out)
}

/// SUBSTR: position 0 means 1.
fn part(a: Args<'_>) -> SqlResult<Value> {
    if a.int(1)? != Some(0) {
        return substring(a);
    }
    let text = or_null!(a.text(0));
    let length = if a.count() > 2 { or_null!(a.int(2)) } else { i64::MAX };
    let end = a.call.ty.collation.prefix_len(&text, length.max(0) as usize);
    a.string(&text[..end])
}
