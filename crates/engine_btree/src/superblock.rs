//! The superblock: one block from which a restart finds everything else. The data file has two copies of it
//! (`store.rs`).
//!
//! # Format
//! ```text
//!  0  [8]   "COHBTR03", or "COHBTR02" of versions whose page map has no generations
//!  8  u64   generation: one more than that of the superblock before
//! 16  u64   LSN of the checkpoint
//! 24  u64   next page id
//! 32  u32   number of parts of the page map (`map.rs`)
//! 36        the parts, oldest level first; each has 17 bytes:
//!             u8 1 if it begins a level, otherwise 0 | u64 block | u32 bytes | u32 CRC-32C of the part
//!           u32 CRC-32C of everything before
//! ```
//! Integers are little-endian.
//!
//! # On failure
//! [`Superblock::decode`] returns `None` for a superblock that is damaged or was never written. `store.rs`
//! then uses the other copy. A superblock of an earlier format begins with another magic
//! ([`outdated_format`]); such a file is rejected.

use cohort_base::{Lsn, Reader, Truncated, Write};

use crate::map::Level;
use crate::space::{BLOCK_BYTES, Extent, FIRST_FREE_BLOCK};

const MAGIC: &[u8; 8] = b"COHBTR03";
/// Magic of the format before, which is read.
const MAGIC_BEFORE: &[u8; 8] = b"COHBTR02";
/// Beginning of the magic in every format.
const MAGIC_STEM: &[u8] = b"COHBTR";
const HEAD_BYTES: usize = 36;
const PART_BYTES: usize = 17;
/// Limit of numbers that count up from zero. A superblock with a larger one was damaged before its checksum
/// was computed.
const COUNT_MAX: u64 = 1 << 62;
/// Maximum number of parts in a superblock.
pub const PARTS_MAX: usize = (BLOCK_BYTES as usize - HEAD_BYTES - 4) / PART_BYTES;
/// Length of the shortest superblock.
pub const SUPERBLOCK_BYTES_MIN: u64 = HEAD_BYTES as u64 + 4;

/// Content of a superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    pub generation: u64,
    pub lsn: Lsn,
    pub next_page: u64,
    /// The levels of the page map, without their keys.
    pub levels: Vec<Level>,
}

impl Superblock {
    /// Returns the encoded superblock, at most one block.
    pub fn encode(&self) -> Vec<u8> {
        debug_assert!(
            self.generation < COUNT_MAX && self.next_page < COUNT_MAX,
            "no start accepts these numbers"
        );
        debug_assert!(
            self.levels.iter().all(|level| !level.parts.is_empty()),
            "a level without parts is lost"
        );
        debug_assert!(
            self.levels.iter().flat_map(|level| &level.parts).all(|(part, _)| part.block >= FIRST_FREE_BLOCK),
            "a part of the page map in a superblock"
        );
        let mut out = MAGIC.to_vec();
        out.put_u64(self.generation);
        out.put_u64(self.lsn.0);
        out.put_u64(self.next_page);
        out.put_u32(self.levels.iter().map(|level| level.parts.len()).sum::<usize>() as u32);
        for level in &self.levels {
            for (n, (extent, crc)) in level.parts.iter().enumerate() {
                out.put_u8(u8::from(n == 0));
                out.put_u64(extent.block);
                out.put_u32(extent.bytes);
                out.put_u32(*crc);
            }
        }
        let crc = crc32c::crc32c(&out);
        out.put_u32(crc);
        assert!(out.len() <= BLOCK_BYTES as usize, "a superblock is a block");
        debug_assert!(
            Superblock::decode(&out).is_some_and(|read| read == *self),
            "no start reads this superblock"
        );
        out
    }

    /// Returns `None` if the superblock is damaged or was never written.
    pub fn decode(bytes: &[u8]) -> Option<Superblock> {
        let is_known = bytes.starts_with(MAGIC) || bytes.starts_with(MAGIC_BEFORE);
        let read = is_known.then(|| Superblock::read(bytes).ok().flatten()).flatten();
        read.filter(|read| read.generation.max(read.next_page) < COUNT_MAX)
    }

    fn read(bytes: &[u8]) -> Result<Option<Superblock>, Truncated> {
        let mut r = Reader::new(bytes);
        r.bytes(MAGIC.len())?;
        let (generation, lsn, next_page) = (r.u64()?, Lsn(r.u64()?), r.u64()?);
        let parts = r.u32()? as usize;
        if parts > PARTS_MAX || !has_checksum(bytes, HEAD_BYTES + parts * PART_BYTES) {
            return Ok(None);
        }
        let mut levels: Vec<Level> = Vec::new();
        for _ in 0..parts {
            if r.u8()? == 1 {
                levels.push(Level::default());
            }
            let part = (Extent { block: r.u64()?, bytes: r.u32()? }, r.u32()?);
            let Some(level) = levels.last_mut() else { return Ok(None) };
            level.parts.push(part);
        }
        Ok(Some(Superblock { generation, lsn, next_page, levels }))
    }
}

/// Returns the name of the format if the block has a superblock of another format than this one.
pub fn outdated_format(block: &[u8]) -> Option<String> {
    let magic = block.first_chunk::<8>().filter(|magic| magic.starts_with(MAGIC_STEM))?;
    let magic = Some(magic).filter(|magic| *magic != MAGIC && *magic != MAGIC_BEFORE)?;
    Some(String::from_utf8_lossy(magic).into_owned())
}

/// Returns whether the first `len` bytes are followed by their checksum.
fn has_checksum(bytes: &[u8], len: usize) -> bool {
    let stored = bytes.get(len..len + 4).and_then(|crc| crc.first_chunk::<4>());
    stored.is_some_and(|stored| crc32c::crc32c(&bytes[..len]) == u32::from_le_bytes(*stored))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_superblock_says_what_it_was_given_and_damage_is_noticed() {
        let part = |n: u32| (Extent { block: 1 << 40, bytes: n }, !n);
        let level =
            |parts: std::ops::Range<u32>| Level { parts: parts.map(part).collect(), ..Level::default() };
        let superblock = Superblock {
            generation: 7,
            lsn: Lsn(1 << 50),
            next_page: 9,
            levels: vec![level(0..PARTS_MAX as u32 - 2), level(5..6), level(6..7)],
        };
        let bytes = superblock.encode();
        assert!(bytes.len() as u64 <= BLOCK_BYTES);
        assert_eq!(Superblock::decode(&bytes), Some(superblock));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(Superblock::decode(&damaged), None, "byte {at}");
        }
        assert_eq!(Superblock::decode(&[0; 4096]), None);
    }

    #[test]
    fn an_earlier_format_has_a_name() {
        let first = [b"COHBTR01".as_slice(), &[0; 100]].concat();
        assert_eq!(outdated_format(&first).as_deref(), Some("COHBTR01"));
        for other in [&MAGIC[..], MAGIC_BEFORE, b"", b"COHBT", b"COHBTR0", &[0; 100]] {
            assert_eq!(outdated_format(other), None, "{other:?}");
        }
    }

    #[test]
    fn the_format_before_is_read() {
        let superblock = Superblock { generation: 3, lsn: Lsn(4096), next_page: 2, levels: Vec::new() };
        let mut bytes = superblock.encode();
        bytes[..MAGIC.len()].copy_from_slice(MAGIC_BEFORE);
        let end = bytes.len() - 4;
        let crc = crc32c::crc32c(&bytes[..end]);
        bytes[end..].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Superblock::decode(&bytes), Some(superblock));
    }
}
