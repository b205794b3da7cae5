//! The superblock: one block from which a restart finds everything else. The data file has two copies of it
//! (`store.rs`).
//!
//! # Format
//! ```text
//!  0  [8]   "COHBTR02"
//!  8  u64   generation: one more than that of the superblock before
//! 16  u64   LSN of the checkpoint
//! 24  u64   next page id
//! 32  u32   number of parts of the page map (`map.rs`)
//! 36        the parts, oldest level first; each has 17 bytes:
//!             u8 1 if it begins a level, otherwise 0 | u64 block | u32 bytes | u32 CRC-32C of the part
//!           u32 CRC-32C of everything before
//! ```
//! The first format, which is still read, has a page map of one piece and no levels:
//! ```text
//!  0  [8]   "COHBTR01"
//!  8        generation, LSN, next page id as above
//! 32  u64   block of the page map | u32 its bytes | u32 its CRC-32C
//! 48  u32   CRC-32C of everything before
//! ```
//! Integers are little-endian.
//!
//! # On failure
//! [`Superblock::decode`] returns `None` for a superblock that is damaged or was never written. `store.rs`
//! then uses the other copy.

use cohort_base::{Lsn, Reader, Truncated, Write};

use crate::map::Level;
use crate::space::{BLOCK_BYTES, Extent};

const MAGIC: &[u8; 8] = b"COHBTR02";
const FIRST_MAGIC: &[u8; 8] = b"COHBTR01";
const FIRST_BYTES: usize = 52;
const HEAD_BYTES: usize = 36;
const PART_BYTES: usize = 17;
/// Limit of numbers that count up from zero. A superblock with a larger one was damaged before its checksum
/// was computed.
const COUNT_MAX: u64 = 1 << 62;
/// Maximum number of parts in a superblock.
pub const PARTS_MAX: usize = (BLOCK_BYTES as usize - HEAD_BYTES - 4) / PART_BYTES;
/// Length of the shortest superblock.
pub const SUPERBLOCK_BYTES_MIN: u64 = HEAD_BYTES as u64 + 4;

/// Format of the page map on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapForm {
    /// One piece.
    First,
    /// Levels.
    Levels,
}

/// Content of a superblock.
#[derive(Debug, PartialEq, Eq)]
pub struct Superblock {
    pub generation: u64,
    pub lsn: Lsn,
    pub next_page: u64,
    pub form: MapForm,
    /// The levels of the page map, without their keys.
    pub levels: Vec<Level>,
}

impl Superblock {
    /// Returns the encoded superblock, at most one block.
    pub fn encode(&self) -> Vec<u8> {
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
        out
    }

    /// Returns `None` if the superblock is damaged or was never written.
    pub fn decode(bytes: &[u8]) -> Option<Superblock> {
        let read = match bytes.first_chunk()? {
            MAGIC => Superblock::read(bytes).ok().flatten(),
            FIRST_MAGIC => Superblock::read_first_form(bytes).ok().flatten(),
            _ => None,
        };
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
        Ok(Some(Superblock { generation, lsn, next_page, form: MapForm::Levels, levels }))
    }

    fn read_first_form(bytes: &[u8]) -> Result<Option<Superblock>, Truncated> {
        if !has_checksum(bytes, FIRST_BYTES - 4) {
            return Ok(None);
        }
        let mut r = Reader::new(bytes);
        r.bytes(MAGIC.len())?;
        let (generation, lsn, next_page) = (r.u64()?, Lsn(r.u64()?), r.u64()?);
        let part = (Extent { block: r.u64()?, bytes: r.u32()? }, r.u32()?);
        let levels = vec![Level { parts: vec![part], ..Level::default() }];
        Ok(Some(Superblock { generation, lsn, next_page, form: MapForm::First, levels }))
    }
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
            form: MapForm::Levels,
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
    fn the_first_form_is_still_read() {
        let mut bytes = FIRST_MAGIC.to_vec();
        [5, 77, 9, 3].into_iter().for_each(|n| bytes.put_u64(n));
        [100, 0xabcd].into_iter().for_each(|n| bytes.put_u32(n));
        let crc = crc32c::crc32c(&bytes);
        bytes.put_u32(crc);
        bytes.resize(4096, 0);
        let read = Superblock::decode(&bytes).expect("whole");
        assert_eq!((read.generation, read.lsn, read.next_page, read.form), (5, Lsn(77), 9, MapForm::First));
        assert_eq!(read.levels[0].parts, [(Extent { block: 3, bytes: 100 }, 0xabcd)]);
    }
}
