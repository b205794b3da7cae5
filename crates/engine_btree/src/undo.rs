//! A transaction's undo: what each of its writes replaced, packed one behind the other.
//!
//! ```text
//! record  u8 flags (1 the write is a deletion, 2 there was an entry, 4 it had a value, 8 a long one,
//!         16 a version reference) | u16 length of the key | u32 length of the value | u32 key space
//!         | u64 transaction, u32 place in its undo (with a version reference) | key | value
//! ```
//!
//! Records begin at multiples of [`ALIGN`] in chunks that double in size up to [`CHUNK_BYTES_MAX`], so the
//! undo of one row takes little and that of a million is never moved. A record is never changed.

use cohort_base::IndexId;

use crate::version::{TrxNo, Undo, Value, VersionRef};

const CHUNK_BYTES_MIN: usize = 256;
const CHUNK_BYTES_MAX: usize = 8 << 20;
const ALIGN: usize = 8;
/// Bits of a place that say where in its chunk a record is.
const OFFSET_BITS: u32 = 20;
const CHUNKS_MAX: usize = 1 << (u32::BITS - OFFSET_BITS);
const HEADER: usize = 11;
/// Most of what one transaction's undo takes.
pub const UNDO_BYTES_MAX: u64 = (CHUNKS_MAX * CHUNK_BYTES_MAX) as u64;

const DELETES: u8 = 1;
const EXISTED: u8 = 2;
const VALUE: u8 = 4;
const OVERFLOW: u8 = 8;
const REFERRED: u8 = 16;

/// What stood under a key before a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before<'u> {
    pub index: IndexId,
    pub key: &'u [u8],
    /// The write that this belongs to is a deletion.
    pub is_deletion: bool,
    /// Whether there was an entry, if only one with a delete mark.
    pub existed: bool,
    /// Who wrote that; none: everybody sees it.
    pub version: Option<VersionRef>,
    /// None: it was deleted, or not there.
    pub value: Option<&'u [u8]>,
    pub is_overflow: bool,
}

impl Before<'_> {
    /// The same without the key, to be kept.
    pub fn to_undo(self) -> Undo {
        let value = self.value.map(|bytes| Value { is_overflow: self.is_overflow, bytes: bytes.into() });
        Undo { value, existed: self.existed, version: self.version }
    }
}

/// The records of one transaction, oldest first.
#[derive(Debug, Default)]
pub struct UndoLog {
    chunks: Vec<Vec<u8>>,
}

/// A place between two records.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    chunk: usize,
    at: usize,
}

impl UndoLog {
    /// Adds a record and returns its place. None: a transaction holds no more.
    pub fn push(&mut self, before: &Before<'_>) -> Option<u32> {
        let value = before.value.unwrap_or(&[]);
        let reference = if before.version.is_some() { 12 } else { 0 };
        let len = (HEADER + reference + before.key.len() + value.len()).next_multiple_of(ALIGN);
        if self.chunks.last().is_none_or(|chunk| chunk.capacity() - chunk.len() < len) {
            if self.chunks.len() == CHUNKS_MAX {
                return None;
            }
            let usual = CHUNK_BYTES_MIN << self.chunks.len().min(15);
            self.chunks.push(Vec::with_capacity(usual.min(CHUNK_BYTES_MAX).max(len)));
        }
        let number = self.chunks.len() - 1;
        let chunk = &mut self.chunks[number];
        let start = chunk.len();
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        chunk.push(
            flag(before.is_deletion, DELETES)
                | flag(before.existed, EXISTED)
                | flag(before.value.is_some(), VALUE)
                | flag(before.is_overflow, OVERFLOW)
                | flag(before.version.is_some(), REFERRED),
        );
        chunk.extend_from_slice(&(before.key.len() as u16).to_le_bytes());
        chunk.extend_from_slice(&(value.len() as u32).to_le_bytes());
        chunk.extend_from_slice(&before.index.0.to_le_bytes());
        if let Some(version) = before.version {
            chunk.extend_from_slice(&version.trx.0.to_le_bytes());
            chunk.extend_from_slice(&version.undo.to_le_bytes());
        }
        chunk.extend_from_slice(before.key);
        chunk.extend_from_slice(value);
        chunk.resize(start + len, 0);
        Some(((number as u32) << OFFSET_BITS) | (start / ALIGN) as u32)
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(Vec::capacity).sum()
    }

    /// The record at a place that [`UndoLog::push`] returned.
    pub fn at(&self, place: u32) -> Before<'_> {
        let offset = (place & ((1 << OFFSET_BITS) - 1)) as usize * ALIGN;
        self.read(Cursor { chunk: (place >> OFFSET_BITS) as usize, at: offset }).0
    }

    /// The record behind the cursor, which moves on.
    pub fn next(&self, cursor: &mut Cursor) -> Option<Before<'_>> {
        while self.chunks.get(cursor.chunk)?.len() == cursor.at {
            *cursor = Cursor { chunk: cursor.chunk + 1, at: 0 };
        }
        let (before, len) = self.read(*cursor);
        cursor.at += len;
        Some(before)
    }

    fn read(&self, cursor: Cursor) -> (Before<'_>, usize) {
        let bytes = &self.chunks[cursor.chunk][cursor.at..];
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let flags = bytes[0];
        let key_len = usize::from(u16::from_le_bytes([bytes[1], bytes[2]]));
        let value_len = u32_at(3) as usize;
        let mut at = HEADER;
        let version = (flags & REFERRED != 0).then(|| {
            let trx = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
            VersionRef { trx: TrxNo(trx), undo: u32_at(at + 8) }
        });
        at += if version.is_some() { 12 } else { 0 };
        let (key, value) = bytes[at..at + key_len + value_len].split_at(key_len);
        let before = Before {
            index: IndexId(u32_at(7)),
            key,
            is_deletion: flags & DELETES != 0,
            existed: flags & EXISTED != 0,
            version,
            value: (flags & VALUE != 0).then_some(value),
            is_overflow: flags & OVERFLOW != 0,
        };
        (before, (at + key_len + value_len).next_multiple_of(ALIGN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_by_place_and_in_order() {
        let mut log = UndoLog::default();
        let keys: Vec<Vec<u8>> =
            (0..5000_u32).map(|n| n.to_be_bytes().repeat(n as usize % 300 + 1)).collect();
        let values: Vec<Vec<u8>> = (0..5000).map(|n| vec![n as u8; n % 4097]).collect();
        let before = |n: usize| Before {
            index: IndexId(n as u32),
            key: &keys[n],
            is_deletion: n.is_multiple_of(3),
            existed: !n.is_multiple_of(5),
            version: (n % 2 == 1).then_some(VersionRef { trx: TrxNo(n as u64), undo: 7 }),
            value: (!n.is_multiple_of(7)).then_some(&*values[n]),
            is_overflow: n.is_multiple_of(14) && !n.is_multiple_of(7),
        };
        let places: Vec<u32> = (0..5000).map(|n| log.push(&before(n)).expect("room")).collect();
        let mut cursor = Cursor::default();
        for (n, place) in places.iter().enumerate() {
            assert_eq!(log.at(*place), before(n));
            assert_eq!(log.next(&mut cursor), Some(before(n)));
        }
        assert_eq!(log.next(&mut cursor), None);
    }
}
