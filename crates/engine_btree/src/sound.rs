//! Validation of a page image when it is read.
//!
//! A checksum proves that an image is unchanged since it was written, but not that it was a valid page:
//! memory or software may have corrupted it before the checksum was computed. This module checks everything
//! that readers and writers of a page rely on, so that an invalid image affects only its own table.
//!
//! | check | reason |
//! |---|---|
//! | slots, entries and fences lie inside the image, and their sum fits | they are sliced |
//! | keys ascend between the fences and share the prefix of both | searches terminate, and splits divide |
//! | an inner node has children, each once, the first at the low fence | descents find a child for each key |
//! | references to children and overflow values have their length | they are decoded |
//! | a checkpoint image contains no version reference | records of an earlier run are gone |
//!
//! The page's place in the tree is checked on the first descent to it ([`crate::tree`]).

use crate::page_layout::{
    ENTRY_HEADER, HAS_HIGH, HEADER, KEY_BYTES_MAX, NAME_BYTES, OVERFLOW, REFERENCE, REFERRED, SLOT,
    shared_prefix,
};

/// Maximum height of a tree, far more than the number of page ids allows.
const LEVEL_MAX: u8 = 64;
/// Length of a child's page id.
const CHILD_BYTES: usize = 8;

/// Description of the error in an invalid image.
pub type Unsound = &'static str;

/// Kind of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageOf {
    Checkpoint,
    /// An image of this run. Its entries may have version references.
    Eviction,
}

/// One entry of an image.
struct Raw<'i> {
    flags: u8,
    suffix: &'i [u8],
    value: &'i [u8],
}

/// Checks an image whose checksum is correct.
pub fn check(image: &[u8], of: ImageOf) -> Result<(), Unsound> {
    let head = image.get(..HEADER).ok_or("it is shorter than a page's head")?;
    let (level, flags) = (head[4], head[5]);
    if level > LEVEL_MAX || flags & !HAS_HIGH != 0 {
        return Err("its head does not decode");
    }
    let count = u32_at(head, 12);
    let slots = count.checked_mul(SLOT).and_then(|bytes| image.get(HEADER..)?.get(..bytes));
    let (slots, _) = slots.ok_or("it has more entries than room")?.as_chunks::<SLOT>();
    let heap = u32_at(head, 24);
    if heap < HEADER + slots.len() * SLOT || heap > image.len() || u32_at(head, 28) > image.len() {
        return Err("its free space does not lie inside of it");
    }
    let (low, high) = fences(head, image).ok_or("its fences do not lie inside of it")?;
    let longest = low.len().max(high.map_or(0, <[u8]>::len));
    if longest > KEY_BYTES_MAX || high.is_some_and(|high| low >= high) {
        return Err("its fences are none");
    }
    let prefix = u16_at(head, 40);
    if prefix != high.map_or(0, |high| shared_prefix(low, high)) {
        return Err("its prefix is not that of its fences");
    }
    let low_suffix = &low[prefix..];
    let mut used = HEADER + slots.len() * SLOT + low.len() + high.map_or(0, <[u8]>::len);
    let mut before: Option<&[u8]> = None;
    let mut children = Vec::new();
    for slot in slots {
        let (entry, bytes) = entry(image, u32_at(slot, 0)).ok_or("an entry does not lie inside of it")?;
        used += bytes;
        if prefix + entry.suffix.len() > KEY_BYTES_MAX {
            return Err("a key is too long");
        }
        let is_first_wrong = match level {
            0 => entry.suffix < low_suffix,
            _ => entry.suffix != low_suffix,
        };
        if before.map_or(is_first_wrong, |before| before >= entry.suffix) {
            return Err("its keys do not ascend from its low fence");
        }
        if entry.flags & !(1 | REFERRED | OVERFLOW) != 0 {
            return Err("an entry does not decode");
        }
        if of == ImageOf::Checkpoint && entry.flags & REFERRED != 0 {
            return Err("it names versions of an earlier run");
        }
        if level > 0 {
            let child = entry.value.first_chunk::<CHILD_BYTES>().filter(|_| entry.flags == 0);
            let is_name = entry.value.len() == CHILD_BYTES;
            children.push(u64::from_le_bytes(*child.filter(|_| is_name).ok_or("an entry names no child")?));
        } else if entry.flags & OVERFLOW != 0 && entry.value.len() != NAME_BYTES {
            return Err("an entry names no overflow value");
        }
        before = Some(entry.suffix);
    }
    if let Some((last, high)) = before.zip(high)
        && last >= &high[prefix..]
    {
        return Err("its keys reach its high fence");
    }
    if used > image.len() {
        return Err("its entries overlap");
    }
    children.sort_unstable();
    match level {
        0 => Ok(()),
        _ if children.is_empty() => Err("it has no children"),
        _ if children.windows(2).any(|pair| pair[0] == pair[1]) => Err("it has a child twice"),
        _ => Ok(()),
    }
}

fn u16_at(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize
}

fn fences<'i>(head: &[u8], image: &'i [u8]) -> Option<(&'i [u8], Option<&'i [u8]>)> {
    let (low_len, high_len) = (u16_at(head, 36), u16_at(head, 38));
    let (low, rest) = image.get(u32_at(head, 32)..)?.split_at_checked(low_len)?;
    let high = rest.get(..high_len)?;
    match head[5] & HAS_HIGH {
        0 => (high_len == 0).then_some((low, None)),
        _ => Some((low, Some(high))),
    }
}

/// Returns the entry at an offset, and its length.
fn entry(image: &[u8], at: usize) -> Option<(Raw<'_>, usize)> {
    let rest = image.get(at..)?;
    let (head, body) = rest.split_at_checked(ENTRY_HEADER)?;
    let flags = head[0];
    let (suffix_len, value_len) = (u16_at(head, 1), u32_at(head, 3));
    let reference = if flags & REFERRED != 0 { REFERENCE } else { 0 };
    let (suffix, body) = body.get(reference..)?.split_at_checked(suffix_len)?;
    let value = body.get(..value_len)?;
    Some((Raw { flags, suffix, value }, ENTRY_HEADER + reference + suffix_len + value_len))
}
