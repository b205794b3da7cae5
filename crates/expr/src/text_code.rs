//! String functions that change the notation: number bases, base64, quoting, number formats, SOUNDEX.

use std::borrow::Cow;

use cohort_types::{Class, Decimal, ErrorCode, SqlResult, TypeKind, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::convert;
use crate::convert::hex_text;
use crate::expr::Expr;
use crate::expr_type::{ExprType, TypeClass};
use crate::function::{Anywhere, Function, Rows, Text};
use crate::number_style::NumberStyle;
use crate::text_size::stored_bytes;
use crate::typing::{
    ascii_string, binary_string, byte_width, joined_collation, long_ascii_string, long_binary_string,
    long_string_of, string_of, width,
};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("hex", 1, 1, type_hex, hex, Text, Anywhere),
    Function::new("unhex", 1, 1, type_unhex, unhex, Text, Anywhere),
    Function::new("bin", 1, 1, type_conv, bin, Rows, Anywhere),
    Function::new("oct", 1, 1, type_conv, oct, Rows, Anywhere),
    Function::new("conv", 3, 3, type_conv, conv, Text, Anywhere),
    Function::new("quote", 1, 1, type_quote, quote, Rows, Anywhere),
    Function::new("format", 2, 3, type_format, format, Rows, Anywhere),
    Function::new("soundex", 1, 1, type_soundex, soundex, Rows, Anywhere),
    Function::new("to_base64", 1, 1, type_to_base64, to_base64, Rows, Anywhere),
    Function::new("from_base64", 1, 1, type_from_base64, from_base64, Rows, Anywhere),
];

fn type_hex(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let ty = args[0].ty();
    let digits = match ty.class() {
        // A negative number shows all 64 bits.
        TypeClass::Int if ty.unsigned && !matches!(args[0], Expr::Const(_)) => u64::from(ty.length) * 2,
        TypeClass::Int | TypeClass::Decimal | TypeClass::Real => 16,
        _ => byte_width(&args[0]) * 2,
    };
    Ok(ExprType { decimals: 0, ..long_ascii_string(env, digits) })
}

fn type_unhex(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    // MariaDB computes the length with 32 bits.
    let length = (byte_width(&args[0]) as u32).wrapping_add(1) / 2;
    Ok(ExprType { decimals: 0, ..long_binary_string(length.into()) })
}

fn type_conv(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ascii_string(env, 65))
}

fn type_quote(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let length = width(&args[0]) * 2 + 2;
    Ok(string_of(joined_collation(args, env, "quote")?, length))
}

fn type_format(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let places = match args.get(1) {
        Some(Expr::Const(c)) => {
            c.value.to_int(&mut cohort_types::NoWarnings).map_or(0, |n| n.wide().clamp(0, 38))
        }
        _ => 38,
    };
    let digits = notation_digits(&args[0], places as u8);
    let separators = digits / 3 + u64::from(places > 0) + 1;
    Ok(ascii_string(env, digits + separators + places as u64))
}

/// Returns the maximum digits of the argument before the decimal point.
fn notation_digits(arg: &Expr, places: u8) -> u64 {
    use TypeKind::*;
    let ty = arg.ty_cow();
    // Rounding may carry into another digit.
    let carry = u64::from(ty.decimals > places);
    match ty.kind {
        TinyInt => 3,
        SmallInt => 5,
        MediumInt => 8 - u64::from(!ty.unsigned),
        Int => 10,
        BigInt => 19 + u64::from(ty.unsigned),
        Bit => u64::from(crate::math::bit_digits(ty.length)),
        Float => 40,
        Double => 310,
        Decimal => u64::from(ty.int_digits()) + carry,
        Year => 4,
        Date => 8,
        Time => 7 + carry,
        DateTime | Timestamp => 14 + carry,
        _ => 310,
    }
}

fn type_soundex(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let length = width(&args[0]).max(4);
    Ok(long_string_of(joined_collation(args, env, "soundex")?, length))
}

fn type_to_base64(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let bytes = width(&args[0]) * u64::from(args[0].ty_cow().collation.charset().mbmaxlen());
    let coded = bytes.div_ceil(3) * 4;
    Ok(ascii_string(env, coded + coded.saturating_sub(1) / 76))
}

fn type_from_base64(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(binary_string(byte_width(&args[0]).div_ceil(4) * 3))
}

/// HEX: a number is shown by its value, a string by its bytes.
fn hex(a: Args<'_>) -> SqlResult<Value> {
    let value = a.value(0)?;
    if matches!(value.class(), Class::Int | Class::Real | Class::Decimal)
        && !matches!(*value, Value::Bit { .. })
    {
        let number = match value.as_ref() {
            // HEX rounds half away from zero; a number out of range sets all 64 bits.
            v @ (Value::Double(_) | Value::Float(_) | Value::Decimal(_)) => {
                let d = or_null!(convert::to_f64(v, a.ctx)).round();
                match d {
                    _ if d <= i64::MIN as f64 || d >= u64::MAX as f64 => u64::MAX,
                    _ if d >= 0.0 => d as u64,
                    _ => d as i64 as u64,
                }
            }
            v => convert::bits_of(or_null!(convert::to_int(v, a.ctx))),
        };
        return a.string(format!("{number:X}"));
    }
    if let Value::Bit { bits, .. } = value.as_ref() {
        return a.string(format!("{bits:X}"));
    }
    if let Value::Fixed(fixed) = value.as_ref() {
        return a.string(hex_text(fixed.bytes()));
    }
    let ty = a.expr(0).ty_cow();
    let text = or_null!(Ok::<_, cohort_types::SqlError>(convert::text_of_cow(value, ty.decimals)));
    let bytes = crate::convert::encode(text, ty.collation);
    if !a.fits_packet(bytes.len() as u64 * 2)? {
        return Ok(Value::Null);
    }
    a.string(hex_text(&bytes))
}

fn unhex(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let digits: Option<Vec<u8>> = text.iter().map(|b| char::from(*b).to_digit(16).map(|d| d as u8)).collect();
    let Some(mut digits) = digits else { return Ok(Value::Null) };
    if digits.len() % 2 == 1 {
        digits.insert(0, 0);
    }
    a.string(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect::<Vec<u8>>())
}

fn bin(a: Args<'_>) -> SqlResult<Value> {
    converted(&a, 10, 2)
}

fn oct(a: Args<'_>) -> SqlResult<Value> {
    converted(&a, 10, 8)
}

fn conv(a: Args<'_>) -> SqlResult<Value> {
    let from = or_null!(a.int(1));
    let to = or_null!(a.int(2));
    converted(&a, from, to)
}

/// CONV: a negative base makes its side signed.
fn converted(a: &Args<'_>, from: i64, to: i64) -> SqlResult<Value> {
    let value = a.value(0)?;
    let text = match value.as_ref() {
        // The value of BIT is used, regardless of the base of the digits.
        Value::Bit { bits, .. } => in_base(*bits, from.unsigned_abs().clamp(2, 36), false),
        _ => or_null!(Ok::<_, cohort_types::SqlError>(convert::text_of_cow(
            value,
            a.expr(0).ty_cow().decimals
        )))
        .into_owned(),
    };
    if text.is_empty() {
        return Ok(Value::Null);
    }
    let valid = |base: i64| (2..=36).contains(&base.unsigned_abs());
    if !valid(from) || !valid(to) {
        return Ok(Value::Null);
    }
    let number = parse_in_base(&text, from.unsigned_abs() as u32, from < 0);
    let negative = to < 0 && (number as i64) < 0;
    let magnitude = if negative { (number as i64).unsigned_abs() } else { number };
    a.string(in_base(magnitude, to.unsigned_abs(), negative))
}

/// Returns the number at the start of a text, clamped to 64 bits.
fn parse_in_base(text: &[u8], base: u32, signed: bool) -> u64 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text.first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let mut number: u128 = 0;
    for b in digits {
        let Some(digit) = char::from(*b).to_digit(base) else { break };
        number = (number * u128::from(base) + u128::from(digit)).min(1 << 70);
    }
    if signed {
        let limit = if negative { 1u128 << 63 } else { (1 << 63) - 1 };
        let clamped = number.min(limit) as u64;
        return if negative { clamped.wrapping_neg() } else { clamped };
    }
    let Ok(clamped) = u64::try_from(number) else { return u64::MAX };
    if negative { clamped.wrapping_neg() } else { clamped }
}

fn in_base(mut number: u64, base: u64, negative: bool) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let digit = char::from_digit((number % base) as u32, base as u32).unwrap_or('0');
        out.push(digit.to_ascii_uppercase() as u8);
        number /= base;
        if number == 0 {
            break;
        }
    }
    if negative {
        out.push(b'-');
    }
    out.reverse();
    out
}

fn quote(a: Args<'_>) -> SqlResult<Value> {
    let Some(text) = a.text(0)? else { return a.string(&b"NULL"[..]) };
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b'\'');
    for b in text.iter() {
        match b {
            0 => out.extend_from_slice(b"\\0"),
            0x1a => out.extend_from_slice(b"\\Z"),
            b'\'' | b'\\' => out.extend_from_slice(&[b'\\', *b]),
            _ => out.push(*b),
        }
    }
    out.push(b'\'');
    a.bounded_string(out)
}

/// FORMAT(x, decimals [, locale]).
fn format(a: Args<'_>) -> SqlResult<Value> {
    let value = a.number(0)?;
    let places = (convert::bits_of(or_null!(a.integer(1))) as i64).clamp(0, 38) as i32;
    let mut digits = Vec::new();
    let exact = matches!(a.expr(0).ty_cow().class(), TypeClass::Int | TypeClass::Decimal);
    if exact && !matches!(value.class(), Class::Real | Class::Str) {
        let number = or_null!(convert::to_decimal(&value, a.ctx));
        number.round(places).unwrap_or(number).write_text(&mut digits);
    } else {
        let number = or_null!(convert::to_f64(&value, a.ctx));
        digits = fixed_double(number, places);
    }
    let style = if a.count() > 2 { style_of(&a)? } else { NumberStyle::ENGLISH };
    a.string(style.write(&digits))
}

/// Rounds a double to fraction digits, half to even like MariaDB's rint.
fn fixed_double(number: f64, places: i32) -> Vec<u8> {
    let unit = 10f64.powi(places);
    let scaled = (number * unit).round_ties_even() / unit;
    let (exact, _) = Decimal::from_f64(if scaled.is_finite() { scaled } else { number });
    let mut out = Vec::new();
    exact.round(places).unwrap_or(exact).write_text(&mut out);
    out
}

/// Returns the number format of the locale in argument 2. An unknown locale warns and means en_US.
fn style_of(a: &Args<'_>) -> SqlResult<NumberStyle> {
    let name = a.text(2)?.unwrap_or(Cow::Borrowed(b"NULL"));
    let name = String::from_utf8_lossy(&name);
    match NumberStyle::of_locale(&name) {
        Some(style) => Ok(style),
        None => {
            let shown = crate::convert::start_of_text(name.as_bytes(), 64);
            a.ctx.warn(ErrorCode::UnknownLocale, format!("Unknown locale: '{shown}'"))?;
            Ok(NumberStyle::ENGLISH)
        }
    }
}

/// SOUNDEX: the original algorithm without the limit of four characters.
fn soundex(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let text = String::from_utf8_lossy(&text);
    let mut letters = text.chars().filter(|c| c.is_alphabetic());
    let Some(first) = letters.next() else { return a.string(Vec::new()) };
    let mut out = String::from(first.to_ascii_uppercase());
    let mut last = sound(first);
    for letter in letters {
        let code = sound(letter);
        if code == Some('0') || code.is_none() {
            // Vowels, H and W do not separate two letters of one sound class.
            if code.is_none() {
                last = None;
            }
            continue;
        }
        if code != last {
            out.extend(code);
            last = code;
        }
    }
    while out.chars().count() < 4 {
        out.push('0');
    }
    a.string(out)
}

/// Returns the sound class of a letter; `0` for vowels and other characters.
fn sound(letter: char) -> Option<char> {
    Some(match letter.to_ascii_uppercase() {
        'B' | 'F' | 'P' | 'V' => '1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => '2',
        'D' | 'T' => '3',
        'L' => '4',
        'M' | 'N' => '5',
        'R' => '6',
        _ => '0',
    })
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// TO_BASE64, with lines of 76 characters.
fn to_base64(a: Args<'_>) -> SqlResult<Value> {
    let bytes = or_null!(stored_bytes(&a, 0));
    if !a.fits_packet(bytes.len() as u64 * 3 / 2)? {
        return Ok(Value::Null);
    }
    let mut out = Vec::with_capacity(bytes.len() * 4 / 3 + 4);
    let mut line = 0;
    for chunk in bytes.chunks(3) {
        if line == 76 {
            out.push(b'\n');
            line = 0;
        }
        let bits = chunk.iter().fold(0u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for n in 0..4 {
            let index = bits >> (18 - 6 * n) & 63;
            out.push(if n <= chunk.len() { BASE64[index as usize] } else { b'=' });
        }
        line += 4;
    }
    a.string(out)
}

fn from_base64(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    match decode_base64(&text) {
        Ok(bytes) => a.string(bytes),
        Err(at) => {
            let message = format!("Bad base64 data as position {at}");
            a.ctx.warn(cohort_types::ErrorCode::Base64, message)?;
            Ok(Value::Null)
        }
    }
}

/// Decodes base64 and skips white space. The error is the position of the first invalid character.
fn decode_base64(text: &[u8]) -> Result<Vec<u8>, usize> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count, mut padding) = (0u32, 0, 0);
    for (at, b) in text.iter().enumerate() {
        if b.is_ascii_whitespace() {
            continue;
        }
        let digit = BASE64.iter().position(|d| d == b);
        match (digit, b) {
            (Some(d), _) if padding == 0 => bits = bits << 6 | d as u32,
            (None, b'=') if count >= 2 => {
                padding += 1;
                bits <<= 6;
            }
            _ => return Err(at),
        }
        count += 1;
        if count == 4 {
            out.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
            (bits, count) = (0, 0);
        }
    }
    if count == 0 { Ok(out) } else { Err(text.len()) }
}
