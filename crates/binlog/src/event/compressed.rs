//! Format of the compressed part of events.
//!
//! ```text
//! head u8: bit 7 set, bits 4..6 algorithm (0 zlib), bits 0..2 size of the length | length, big-endian | data
//! ```

use std::io::{Read, Write};

use cohort_base::Reader;

use super::DecodeError;

/// Maximum decompressed length: twice the largest packet.
pub const PLAIN_LEN_MAX: u64 = 0x8000_0000;

/// Compresses `plain` and appends it.
pub fn deflate(plain: &[u8], out: &mut Vec<u8>) {
    let len = (plain.len() as u32).to_be_bytes();
    let skip = len.iter().position(|&byte| byte != 0).unwrap_or(3);
    out.push(0x80 | (4 - skip) as u8);
    out.extend_from_slice(&len[skip..]);
    let mut encoder = flate2::write::ZlibEncoder::new(out, flate2::Compression::default());
    let done = encoder.write_all(plain).and_then(|()| encoder.finish().map(drop));
    done.expect("a Vec takes everything");
}

/// Returns the decompressed length as stored in the packed data. [`inflate`] never produces more.
pub fn plain_len(packed: &[u8]) -> Result<u64, DecodeError> {
    read_head(&mut Reader::new(packed))
}

fn read_head(r: &mut Reader<'_>) -> Result<u64, DecodeError> {
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
    Ok(len)
}

/// Decompresses. The allocation grows with the actual data, up to [`plain_len`].
pub fn inflate(packed: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut r = Reader::new(packed);
    let len = read_head(&mut r)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_values_unpack() {
        for len in [0, 1, 255, 256, 70_000] {
            let plain: Vec<u8> = (0..len).map(|n: u32| (n % 7) as u8).collect();
            let mut packed = Vec::new();
            deflate(&plain, &mut packed);
            assert_eq!(plain_len(&packed), Ok(len.into()), "{len}");
            assert_eq!(inflate(&packed), Ok(plain), "{len}");
        }
        let mut packed = Vec::new();
        deflate(&[7; 300], &mut packed);
        assert_eq!(packed[..3], [0x82, 1, 44], "two bytes of length, the high one first");
    }
}
