//! WEIGHT_STRING and NATURAL_SORT_KEY: strings whose byte order is another string's sort order.

use cohort_types::{Collation, SqlResult, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::expr::Expr;
use crate::expr_type::{ExprType, TypeClass};
use crate::function::{Anywhere, Function, NotIndexed, Rows};
use crate::typing::{joined_collation, long_binary_string, string_of, width};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("weight_string", 3, 3, type_weight_string, weight_string, Rows, Anywhere),
    Function::new("natural_sort_key", 1, 1, type_natural_sort_key, natural_sort_key, Rows, NotIndexed),
];

fn characters(args: &[Expr]) -> u64 {
    match &args[1] {
        Expr::Const(c) => c.value.to_int(&mut cohort_types::NoWarnings).map_or(0, |n| n.wide() as u64),
        _ => 0,
    }
}

fn type_weight_string(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    let collation = args[0].ty_cow().collation;
    let characters = match characters(args) {
        0 => width(&args[0]),
        n => n,
    };
    Ok(long_binary_string(characters.saturating_mul(collation.weight_bytes_max().into())))
}

/// WEIGHT_STRING(x, characters, flags): weights of this many characters, of all for 0. Numbers have no
/// weights.
fn weight_string(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let ty = a.expr(0).ty_cow();
    if matches!(ty.class(), TypeClass::Int | TypeClass::Decimal | TypeClass::Real) {
        return Ok(Value::Null);
    }
    let is_text = ty.class() == TypeClass::String;
    let collation = if is_text { ty.collation } else { Collation::LATIN1_SWEDISH_CI };
    let characters = usize::try_from(or_null!(a.int(1))).unwrap_or(usize::MAX);
    let flags = or_null!(a.int(2));
    let most = if characters == 0 { usize::MAX } else { characters };
    let characters_max = characters.max(collation.char_len(&text)) as u64;
    let bytes = characters_max.saturating_mul(collation.weight_bytes_max().into());
    if !a.fits_packet(bytes)? {
        return Ok(Value::Null);
    }
    let mut out = Vec::new();
    collation.weight_string(&text, most, characters, &mut out);
    if flags & 1 != 0 {
        out.iter_mut().for_each(|byte| *byte = !*byte);
    }
    if flags & 2 != 0 {
        out.reverse();
    }
    a.string(out)
}

fn type_natural_sort_key(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let length = width(&args[0]);
    Ok(string_of(joined_collation(args, env, "natural_sort_key")?, length + length.div_ceil(2)))
}

/// NATURAL_SORT_KEY: the text with the length of each number inserted before it.
fn natural_sort_key(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let mut out = Vec::with_capacity(text.len() + text.len() / 2);
    let mut rest = &text[..];
    while let Some(first) = rest.first() {
        if !first.is_ascii_digit() {
            out.push(*first);
            rest = &rest[1..];
            continue;
        }
        let (digits, tail) = rest.split_at(rest.iter().take_while(|b| b.is_ascii_digit()).count());
        rest = tail;
        let zeros = digits.iter().take(digits.len() - 1).take_while(|b| **b == b'0').count();
        let digits = &digits[zeros..];
        put_length(digits.len(), &mut out);
        out.extend_from_slice(digits);
    }
    a.bounded_string(out)
}

/// Appends a length, encoded so that longer lengths sort after shorter ones: up to two nines and a digit
/// below 9. From 28 on: `9990`, the digit count of `length - 1` minus 1, and `length - 1` itself.
fn put_length(length: usize, out: &mut Vec<u8>) {
    let nines = (length - 1) / 9;
    if nines < 3 {
        out.extend(std::iter::repeat_n(b'9', nines));
        out.push(b'0' + ((length - 1) % 9) as u8);
        return;
    }
    let number = (length - 1).to_string();
    out.extend_from_slice(format!("9990{}{number}", number.len() - 1).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_sort_as_numbers_do() {
        let written = |length| {
            let mut out = Vec::new();
            put_length(length, &mut out);
            String::from_utf8(out).expect("ASCII")
        };
        for (length, text) in [
            (1, "0"),
            (9, "8"),
            (10, "90"),
            (18, "98"),
            (19, "990"),
            (27, "998"),
            (28, "9990127"),
            (100, "9990199"),
            (101, "99902100"),
            (5000, "999034999"),
        ] {
            assert_eq!(written(length), text, "{length}");
        }
    }
}
