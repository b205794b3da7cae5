//! COMPRESS and its inverse: zlib data after four bytes with the original length.

use std::io::{Read as _, Write as _};

use cohort_types::{ErrorCode, Interrupt as _, SqlResult, TypeKind, Value};

use crate::args::{Args, or_null};
use crate::context::SessionEnv;
use crate::expr::Expr;
use crate::expr_type::ExprType;
use crate::function::{Anywhere, Function, Rows};
use crate::text_size::stored_bytes;
use crate::typing::{binary_string, byte_width, long_binary_string};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("compress", 1, 1, type_compressed, compress, Rows, Anywhere),
    Function::new("uncompress", 1, 1, type_uncompressed, uncompress, Rows, Anywhere),
    Function::new("uncompressed_length", 1, 1, type_length, uncompressed_length, Rows, Anywhere),
];

fn type_compressed(args: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    // MariaDB computes the length with 32 bits.
    let length = byte_width(&args[0]) as u32;
    Ok(long_binary_string(u64::from(length.wrapping_mul(120) / 100 + 12)))
}

fn type_uncompressed(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(binary_string(16 << 20))
}

fn type_length(_: &mut [Expr], _: &SessionEnv) -> SqlResult<ExprType> {
    Ok(ExprType::number(TypeKind::Int, 10, 0))
}

/// Bytes of the length prefix. Its highest two bits do not belong to the length.
const PREFIX: usize = 4;

fn length_of(bytes: &[u8]) -> u32 {
    let prefix = [bytes[0], bytes[1], bytes[2], bytes[3]];
    u32::from_le_bytes(prefix) & 0x3fff_ffff
}

fn compress(a: Args<'_>) -> SqlResult<Value> {
    let bytes = or_null!(stored_bytes(&a, 0));
    if bytes.is_empty() {
        return a.string(Vec::new());
    }
    a.ctx.steps((bytes.len() >> 8) as u32 + 1)?;
    let mut out = ((bytes.len() as u32) & 0x3fff_ffff).to_le_bytes().to_vec();
    let mut encoder = flate2::write::ZlibEncoder::new(&mut out, flate2::Compression::default());
    encoder.write_all(&bytes).expect("a vector takes all bytes");
    encoder.finish().expect("a vector takes all bytes");
    // A space at the end would be lost in a CHAR column.
    if out.last() == Some(&b' ') {
        out.push(b'.');
    }
    a.string(out)
}

/// Returns NULL with warning 1259 for invalid data, and with warning 1256 if the result would exceed
/// max_allowed_packet.
fn uncompress(a: Args<'_>) -> SqlResult<Value> {
    let bytes = or_null!(stored_bytes(&a, 0));
    if bytes.is_empty() {
        return a.string(Vec::new());
    }
    if bytes.len() <= PREFIX {
        return damaged(&a);
    }
    let length = length_of(&bytes);
    if u64::from(length) > a.ctx.env.max_allowed_packet {
        let limit = a.ctx.env.max_allowed_packet;
        let text = format!(
            "Uncompressed data size too large; the maximum size is {limit} (probably, length of \
                            uncompressed data was corrupted)"
        );
        a.ctx.warn(ErrorCode::TooBigForUncompress, text)?;
        return Ok(Value::Null);
    }
    a.ctx.steps((length as usize >> 8) as u32 + 1)?;
    let mut out = Vec::new();
    let mut decoder = flate2::read::ZlibDecoder::new(&bytes[PREFIX..]).take(u64::from(length) + 1);
    match decoder.read_to_end(&mut out) {
        Ok(_) if out.len() as u64 <= u64::from(length) => a.string(out),
        _ => damaged(&a),
    }
}

fn damaged(a: &Args<'_>) -> SqlResult<Value> {
    a.ctx.warn(ErrorCode::ZlibZData, "ZLIB: Input data corrupted")?;
    Ok(Value::Null)
}

fn uncompressed_length(a: Args<'_>) -> SqlResult<Value> {
    let bytes = or_null!(stored_bytes(&a, 0));
    if bytes.is_empty() {
        return Ok(Value::Int(0));
    }
    if bytes.len() <= PREFIX {
        return damaged(&a);
    }
    Ok(Value::Int(i64::from(length_of(&bytes))))
}
