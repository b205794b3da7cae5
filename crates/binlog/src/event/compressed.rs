//! The packed part of compressed events.
//!
//! ```text
//! head u8: bit 7 set, bits 4..6 algorithm (0 zlib), bits 0..2 size of the length | length, big-endian | data
//! ```

use std::io::Read;

use cohort_base::Reader;

use super::DecodeError;

/// Longest plain form: the largest packet, twice.
pub const PLAIN_LEN_MAX: u64 = 0x8000_0000;

/// Decompresses. Memory grows with what is really there, not with what the length field claims.
pub fn inflate(packed: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut r = Reader::new(packed);
    let head = r.u8()?;
    if head & 0x80 == 0 || head & 0x70 != 0 {
        return Err(DecodeError::BadValue("unknown compression"));
    }
    let size = usize::from(head & 7);
    if !(1..=4).contains(&size) {
        return Err(DecodeError::BadValue("size of the plain length is not 1 to 4"));
    }
    let len = r.bytes(size)?.iter().fold(0, |len, &byte| len << 8 | u64::from(byte));
    if len > PLAIN_LEN_MAX {
        return Err(DecodeError::BadValue("plain length of a compressed event is too large"));
    }
    let mut plain = Vec::new();
    flate2::read::ZlibDecoder::new(r.rest())
        .take(len + 1)
        .read_to_end(&mut plain)
        .map_err(|_| DecodeError::BadValue("compressed data is damaged"))?;
    if plain.len() as u64 != len {
        return Err(DecodeError::BadValue("compressed data has another length than it says"));
    }
    Ok(plain)
}
