//! Digests, and IPv4 addresses as numbers.

use cohort_types::{SqlResult, TypeKind, Value};
use md5::{Digest as _, Md5};
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::convert;
use crate::convert::hex_text;
use crate::expr::Expr;
use crate::expr_type::ExprType;
use crate::function::{Anywhere, Function, Rows, Text};
use crate::text_size::stored_bytes;
use crate::typing::ascii_string;

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("md5", 1, 1, type_md5, md5, Text, Anywhere),
    Function::new("sha", 1, 1, type_sha1, sha1, Text, Anywhere),
    Function::new("sha1", 1, 1, type_sha1, sha1, Text, Anywhere),
    Function::new("sha2", 2, 2, type_sha2, sha2, Rows, Anywhere),
    Function::new("password", 1, 1, type_password, password, Rows, Anywhere),
    Function::new("old_password", 1, 1, type_old_password, old_password, Rows, Anywhere),
    Function::new("inet_aton", 1, 1, type_aton, inet_aton, Rows, Anywhere),
    Function::new("inet_ntoa", 1, 1, type_ntoa, inet_ntoa, Rows, Anywhere),
];

fn type_md5(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ascii_string(env, 32))
}

fn type_sha1(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ascii_string(env, 40))
}

fn type_sha2(args: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    let bits = match &args[1] {
        Expr::Const(c) => match c.value {
            Value::Int(0) => 256,
            Value::Int(bits @ (224 | 256 | 384)) => bits as u64,
            _ => 512,
        },
        _ => 512,
    };
    Ok(ascii_string(env, bits / 4))
}

fn type_password(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ascii_string(env, 41))
}

fn type_aton(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::number(TypeKind::BigInt, 21, 0).with_unsigned(true))
}

fn type_ntoa(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType { decimals: 0, ..ascii_string(env, 31) })
}

fn lower_hex(digest: &[u8]) -> Vec<u8> {
    hex_text(digest).to_ascii_lowercase()
}

fn md5(a: Args<'_>) -> SqlResult<Value> {
    let bytes = or_null!(stored_bytes(&a, 0));
    a.string(lower_hex(&Md5::digest(&bytes)))
}

fn sha1(a: Args<'_>) -> SqlResult<Value> {
    let bytes = or_null!(stored_bytes(&a, 0));
    a.string(lower_hex(&Sha1::digest(&bytes)))
}

/// SHA2(text, bits): 0 means 256; an unknown number returns NULL.
fn sha2(a: Args<'_>) -> SqlResult<Value> {
    let bytes = or_null!(stored_bytes(&a, 0));
    // NULL means 256, too.
    let digest = match a.int(1)?.unwrap_or(0) {
        224 => Sha224::digest(&bytes).to_vec(),
        0 | 256 => Sha256::digest(&bytes).to_vec(),
        384 => Sha384::digest(&bytes).to_vec(),
        512 => Sha512::digest(&bytes).to_vec(),
        other => {
            let text = format!("Incorrect parameters in the call to native function '{}'", "sha2");
            let _ = other;
            a.ctx.warn(cohort_types::ErrorCode::WrongParametersToNativeFct, text)?;
            return Ok(Value::Null);
        }
    };
    a.string(lower_hex(&digest))
}

/// PASSWORD: the hash of mysql_native_password.
fn password(a: Args<'_>) -> SqlResult<Value> {
    let bytes = or_null!(stored_bytes(&a, 0));
    if bytes.is_empty() {
        return a.string(Vec::new());
    }
    let mut out = vec![b'*'];
    out.extend_from_slice(&hex_text(&Sha1::digest(Sha1::digest(&bytes))));
    a.string(out)
}

/// INET_ATON: `a.b.c.d` as a number. With fewer parts, the last part is the last byte (127.1 is 127.0.0.1).
fn inet_aton(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    let (mut number, mut part, mut dots) = (0_u64, 0_u64, 0_u32);
    for byte in text.iter() {
        match byte {
            b'0'..=b'9' => {
                part = part * 10 + u64::from(byte - b'0');
                if part > 255 {
                    return Ok(Value::Null);
                }
            }
            b'.' => {
                dots += 1;
                number = number.wrapping_shl(8).wrapping_add(part);
                part = 0;
            }
            _ => return Ok(Value::Null),
        }
    }
    if !text.last().is_some_and(u8::is_ascii_digit) {
        return Ok(Value::Null);
    }
    // Inserts zero bytes before the last part of a short form. More than eight parts shift out the first
    // ones.
    let missing = 8 * u32::saturating_sub(3, dots.max(1));
    let high = if (1..3).contains(&dots) { number.wrapping_shl(missing) } else { number };
    Ok(Value::UInt(high.wrapping_shl(8).wrapping_add(part)))
}

fn inet_ntoa(a: Args<'_>) -> SqlResult<Value> {
    let number = convert::bits_of(or_null!(a.integer(0)));
    let Ok(address) = u32::try_from(number) else { return Ok(Value::Null) };
    a.string(std::net::Ipv4Addr::from(address).to_string())
}

fn type_old_password(_: &mut [Expr], env: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ascii_string(env, 16))
}

/// Returns the password hash from before MySQL 4.1, which ignores blanks.
pub(crate) fn old_hash(text: &[u8]) -> (u32, u32) {
    let (mut left, mut right, mut add) = (1_345_345_333u32, 0x1234_5671u32, 7u32);
    for b in text.iter().filter(|b| !matches!(b, b' ' | b'\t')) {
        let b = u32::from(*b);
        left ^= ((left & 63).wrapping_add(add)).wrapping_mul(b).wrapping_add(left << 8);
        right = right.wrapping_add((right << 8) ^ left);
        add = add.wrapping_add(b);
    }
    (left & 0x7fff_ffff, right & 0x7fff_ffff)
}

fn old_password(a: Args<'_>) -> SqlResult<Value> {
    let text = or_null!(a.text(0));
    if text.is_empty() {
        return a.string(Vec::new());
    }
    let (left, right) = old_hash(&text);
    a.string(format!("{left:08x}{right:08x}"))
}
