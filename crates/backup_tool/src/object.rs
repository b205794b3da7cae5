//! Objects: compressed, encrypted, checksummed. docs/backup-format.md describes every byte.
//!
//! ```text
//!  0  8  "CoBackup"
//!  8  1  kind: 1 chunk, 2 catalogue, 3 lock, 4 log, 5 timeline, 6 part of a file of the archive
//!  9  1  protection: 0 SHA-256, 1 AES-256-GCM
//! 10  1  compression: 1 zstd
//! 11  1  0
//! 12  4  length of the contents, little-endian
//! 16     protection 0: a zstd frame, then SHA-256 of the object's name and everything before it
//!        protection 1: nonce (12), encrypted zstd frame, tag (16); the header and the name are authenticated
//! ```

use cohort_backup_format::FRAME_BYTES_MAX;
use ring::digest;

use crate::key::Keys;

const MAGIC: &[u8; 8] = b"CoBackup";
const HEADER_BYTES: usize = 16;
const HASH_BYTES: usize = 32;
const ZSTD: u8 = 1;
const ZSTD_LEVEL: i32 = 1;

/// Kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Chunk = 1,
    Catalogue = 2,
    Lock = 3,
    /// Ranges of the log.
    Log = 4,
    Timeline = 5,
    /// Part of a file that the log names.
    Part = 6,
}

impl Kind {
    /// Maximum size of the contents.
    pub fn bytes_max(self) -> usize {
        match self {
            Kind::Chunk => CHUNK_BYTES,
            Kind::Catalogue => 1 << 30,
            Kind::Lock | Kind::Timeline => 64 << 10,
            Kind::Log => FRAME_BYTES_MAX as usize + (1 << 10),
            Kind::Part => CHUNK_BYTES + PART_HEADER_BYTES,
        }
    }
}

/// Bytes of an object in addition to its compressed contents, at most.
const OVERHEAD_BYTES: usize = 64;

/// Returns the maximum size of an object.
pub fn stored_bytes_max(kind: Kind) -> usize {
    zstd::zstd_safe::compress_bound(kind.bytes_max()) + OVERHEAD_BYTES
}

/// Length and checksum of a file of the archive, before the bytes of each of its parts.
pub const PART_HEADER_BYTES: usize = 12;

/// Maximum size of a chunk's contents, and size of the windows that files are cut into.
pub const CHUNK_BYTES: usize = 4 << 20;

/// Encodes an object.
pub fn encode(kind: Kind, name: &str, contents: &[u8], keys: &Keys) -> Vec<u8> {
    assert!(contents.len() <= kind.bytes_max(), "a {kind:?} of {} bytes", contents.len());
    let mut object = Vec::with_capacity(zstd::zstd_safe::compress_bound(contents.len()) + OVERHEAD_BYTES);
    object.extend_from_slice(MAGIC);
    object.extend_from_slice(&[kind as u8, u8::from(keys.are_present()), ZSTD, 0]);
    object.extend_from_slice(&(contents.len() as u32).to_le_bytes());
    zstd::stream::copy_encode(contents, &mut object, ZSTD_LEVEL).expect("memory is large enough");
    match keys.are_present() {
        true => keys.seal(name, HEADER_BYTES, &mut object),
        false => {
            let hash = hash_of(name, &object);
            object.extend_from_slice(&hash);
        }
    }
    object
}

fn hash_of(name: &str, bytes: &[u8]) -> [u8; HASH_BYTES] {
    let mut hash = digest::Context::new(&digest::SHA256);
    hash.update(name.as_bytes());
    hash.update(bytes);
    hash.finish().as_ref().try_into().expect("32 bytes")
}

/// Decodes an object. `Err` says what is wrong with it.
pub fn decode(kind: Kind, name: &str, mut object: Vec<u8>, keys: &Keys) -> Result<Vec<u8>, &'static str> {
    let header: [u8; HEADER_BYTES] =
        object.get(..HEADER_BYTES).and_then(|h| h.try_into().ok()).ok_or("it is cut off")?;
    let protection = u8::from(keys.are_present());
    if header[..8] != *MAGIC || header[8..12] != [kind as u8, protection, ZSTD, 0] {
        return Err("its header is damaged");
    }
    let length = u32::from_le_bytes(header[12..].try_into().expect("4 bytes")) as usize;
    if length > kind.bytes_max() {
        return Err("its header is damaged");
    }
    let frame = match keys.are_present() {
        true => keys.unseal(name, HEADER_BYTES, &mut object).ok_or("it is damaged")?,
        false => {
            let end = object.len().checked_sub(HASH_BYTES).filter(|end| *end >= HEADER_BYTES);
            let (body, hash) = object.split_at(end.ok_or("it is cut off")?);
            if hash_of(name, body) != hash {
                return Err("its checksum is wrong");
            }
            &body[HEADER_BYTES..]
        }
    };
    let contents = zstd::bulk::decompress(frame, length).map_err(|_| "it cannot be decompressed")?;
    if contents.len() == length { Ok(contents) } else { Err("its length is wrong") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::MasterKey;

    #[test]
    fn each_changed_bit_is_found() {
        for keys in [Keys::none(), MasterKey::create([7; 16]).keys()] {
            let contents = b"a row and its neighbours ".repeat(9);
            let object = encode(Kind::Chunk, "chunks/a", &contents, &keys);
            assert_eq!(decode(Kind::Chunk, "chunks/a", object.clone(), &keys), Ok(contents));
            for bit in 0..object.len() * 8 {
                let mut damaged = object.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(decode(Kind::Chunk, "chunks/a", damaged, &keys).is_err(), "bit {bit}");
            }
            for length in 0..object.len() {
                assert!(decode(Kind::Chunk, "chunks/a", object[..length].to_vec(), &keys).is_err());
            }
            assert!(decode(Kind::Chunk, "chunks/b", object.clone(), &keys).is_err(), "another name");
            assert!(decode(Kind::Catalogue, "chunks/a", object.clone(), &keys).is_err(), "another kind");
            let other = MasterKey::create([7; 16]).keys();
            assert!(decode(Kind::Chunk, "chunks/a", object, &other).is_err(), "another key");
        }
    }
}
