//! Layout of a page:
//!
//! ```text
//! 0   4  CRC-32C of the rest of an image on disk; 0 in memory
//! 4   1  level: 0 leaf, above it inner nodes; 255 marks a compressed image, with a header of its own
//!        (`compress.rs`)
//! 5   1  flags: 1 the page has a high fence
//! 6   2  -
//! 8   4  index id
//! 12  4  number of entries
//! 16  8  page id
//! 24  4  heap start: the heap grows from the end of the page towards the slots
//! 28  4  bytes of removed entries in the heap, which compaction reclaims
//! 32  4  offset of the fences: the low fence, followed by the high fence
//! 36  2  length of the low fence
//! 38  2  length of the high fence
//! 40  2  length of the prefix that both fences share; 0 without a high fence
//! 42  6  -
//! 48  8n slots in the order of the keys: u32 offset of the entry | u32 head
//!        heap: entries, fences
//!
//! entry  u8 flags (1 delete mark, 2 version reference, 4 overflow value)
//!        | u16 length of the suffix | u32 length of the value
//!        | with flag 2 only: u64 transaction, u32 position in its undo | suffix | value
//! ```
//! All numbers are little-endian. The head is the number that the first four bytes of the suffix, padded with
//! zeros, are as a big-endian number, so heads compare like the suffixes.

/// Maximum length of a key.
pub const KEY_BYTES_MAX: usize = 12 << 10;

pub(crate) const HEADER: usize = 48;

pub(crate) const SLOT: usize = 8;

pub(crate) const ENTRY_HEADER: usize = 7;

pub(crate) const REFERENCE: usize = 12;

pub const DELETED: u8 = 1;

pub(crate) const REFERRED: u8 = 2;

pub(crate) const OVERFLOW: u8 = 4;

pub(crate) const HAS_HIGH: u8 = 1;

pub(crate) fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// Length of a reference to an overflow value.
pub const NAME_BYTES: usize = 16;
