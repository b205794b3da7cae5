//! A hash table of byte keys, numbered in the order they came.
//!
//! # Concepts
//! A short key, which most are, is a number itself (the *word*) and lies in its slot: finding it touches one
//! cache line. A long one lies beside, behind its length; its word is a part of its hash and where it lies.
//!
//! Looking for many keys, a processor waits for memory most of the time. So a caller with a batch of keys
//! hashes all ([`KeyBatch`]) and lets the table look at all their slots first, which the processor does side
//! by side.
//!
//! The slots are a power of two, probed one after the other; a third of them are free. They are chosen by the
//! lower bits of the hash; partitions ([`crate::partition`]) go by the upper ones.

use cohort_expr::append_group_key;
use cohort_types::{Collation, Interrupt, SqlResult};

use crate::batch::Batch;

/// Longest key that lies in its slot.
const SHORT: usize = 15;

/// Stands where a short key has its length.
const LONG: u8 = 0xff;

/// Bytes of keys that are made before some are looked up.
const BATCH_BYTES: usize = 1 << 20;

/// No key.
const FREE: u32 = u32::MAX;

/// Keys, each with a number.
#[derive(Default)]
pub(crate) struct KeyTable {
    slots: Vec<Slot>,
    count: usize,
    /// Long keys, each behind its length in four bytes.
    long: Vec<u8>,
    hasher: ahash::RandomState,
}

#[derive(Clone, Copy)]
struct Slot {
    word: [u64; 2],
    number: u32,
    /// The lower half of the hash.
    hash: u32,
}

/// A key that is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hashed {
    pub hash: u64,
    /// A short key with its length; of a long one the hash, and the mark where it lies.
    word: [u64; 2],
}

/// The keys of some rows.
#[derive(Default)]
pub(crate) struct KeyBatch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    hashed: Vec<Hashed>,
}

impl KeyBatch {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.hashed.clear();
    }

    /// Whether the keys take so much that they are looked up before another is made: a row of numbers may
    /// have a key of megabytes.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= BATCH_BYTES
    }

    /// Where the bytes of the next key go.
    #[inline]
    pub fn open_key(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The bytes behind the last key become one.
    #[inline]
    pub fn end_key(&mut self, table: &KeyTable) {
        let start = self.ends.last().copied().unwrap_or(0);
        self.hashed.push(table.hash(&self.bytes[start..]));
        self.ends.push(self.bytes.len());
    }

    /// A key of these bytes, of which there are few.
    #[inline]
    pub fn push_short<const N: usize>(&mut self, key: [u8; N], table: &KeyTable) {
        const { assert!(N <= SHORT) };
        self.hashed.push(table.hash_short(&key));
        self.bytes.extend_from_slice(&key);
        self.ends.push(self.bytes.len());
    }

    /// Whether a key is the same as the one before it.
    #[inline]
    pub fn is_like_before(&self, n: usize) -> bool {
        if n == 0 || self.hashed[n].word != self.hashed[n - 1].word {
            return false;
        }
        // Words of short keys are the keys.
        let key = self.key(n).1;
        key.len() <= SHORT || key == self.key(n - 1).1
    }

    /// The keys of whole rows, for a look-up in the table.
    pub fn take_rows(
        &mut self,
        rows: &Batch,
        collations: &[Collation],
        table: &KeyTable,
        interrupt: &dyn Interrupt,
    ) -> SqlResult<()> {
        self.clear();
        for row in rows.iter() {
            for (value, collation) in row.iter().zip(collations) {
                append_group_key(value, *collation, self.open_key(), interrupt)?;
            }
            self.end_key(table);
        }
        table.touch(self);
        Ok(())
    }

    /// The n-th key.
    #[inline]
    pub fn key(&self, n: usize) -> (Hashed, &[u8]) {
        let start = if n == 0 { 0 } else { self.ends[n - 1] };
        (self.hashed[n], &self.bytes[start..self.ends[n]])
    }
}

impl KeyTable {
    /// How many keys.
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn clear(&mut self) {
        self.slots = Vec::new();
        self.count = 0;
        self.long = Vec::new();
    }

    #[inline]
    pub fn hash(&self, key: &[u8]) -> Hashed {
        if key.len() > SHORT {
            let hash = self.hasher.hash_one(key);
            return Hashed { hash, word: [hash, u64::from(LONG) << 56] };
        }
        self.hash_short(key)
    }

    #[inline]
    fn hash_short(&self, key: &[u8]) -> Hashed {
        let mut bytes = [0; 16];
        bytes[..key.len()].copy_from_slice(key);
        bytes[SHORT] = key.len() as u8;
        let word = u128::from_le_bytes(bytes);
        Hashed { hash: self.hasher.hash_one(word), word: [word as u64, (word >> 64) as u64] }
    }

    /// Reads the slots where keys may be, so that they are near when the keys are looked for.
    pub fn touch(&self, keys: &KeyBatch) {
        let Some(mask) = self.slots.len().checked_sub(1) else { return };
        let mut seen = 0;
        for key in &keys.hashed {
            seen ^= self.slots[key.hash as usize & mask].number;
        }
        std::hint::black_box(seen);
    }

    fn long_key(&self, at: usize) -> &[u8] {
        let length = self.long[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        &self.long[at + 4..at + 4 + length as usize]
    }

    /// The number of a key.
    #[inline]
    pub fn find(&self, sought: &Hashed, key: &[u8]) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = sought.hash as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.number == FREE {
                return None;
            }
            let is_same = if key.len() <= SHORT {
                slot.word == sought.word
            } else {
                slot.word[0] == sought.word[0]
                    && slot.word[1] >= sought.word[1]
                    && self.long_key((slot.word[1] ^ sought.word[1]) as usize) == key
            };
            if is_same {
                return Some(slot.number as usize);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a key that is not there, and says its number.
    pub fn insert(&mut self, new: &Hashed, key: &[u8]) -> usize {
        if self.slots.len() * 2 <= self.count * 3 {
            self.grow();
        }
        let mut slot = Slot { word: new.word, number: self.count as u32, hash: new.hash as u32 };
        if key.len() > SHORT {
            slot.word[1] |= self.long.len() as u64;
            self.long.extend_from_slice(&(key.len() as u32).to_le_bytes());
            self.long.extend_from_slice(key);
        }
        place(&mut self.slots, slot);
        self.count += 1;
        self.count - 1
    }

    fn grow(&mut self) {
        let free = Slot { word: [0; 2], number: FREE, hash: 0 };
        let mut slots = vec![free; (self.slots.len() * 2).max(16)];
        let taken = self.slots.iter().filter(|slot| slot.number != FREE);
        taken.for_each(|slot| place(&mut slots, *slot));
        self.slots = slots;
    }

    /// Bytes that a key takes.
    pub fn bytes_for(key: &[u8]) -> usize {
        7 * size_of::<Slot>() / 4 + if key.len() > SHORT { key.len() + 4 } else { 0 }
    }
}

/// Puts a slot where there is room.
fn place(slots: &mut [Slot], slot: Slot) {
    let mask = slots.len() - 1;
    let mut at = slot.hash as usize & mask;
    while slots[at].number != FREE {
        at = (at + 1) & mask;
    }
    slots[at] = slot;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_all_lengths_are_told_apart() {
        let mut table = KeyTable::default();
        let keys: Vec<Vec<u8>> =
            (0..40).flat_map(|length| [0u8, 1, 255].map(|byte| vec![byte; length])).collect();
        let distinct: std::collections::BTreeSet<Vec<u8>> = keys.iter().cloned().collect();
        let ended = |round: u8, key: &Vec<u8>| [key.as_slice(), &[round]].concat();
        for round in 0..50 {
            for key in &distinct {
                let key = ended(round, key);
                let hashed = table.hash(&key);
                assert_eq!(table.find(&hashed, &key), None);
                let number = table.insert(&hashed, &key);
                assert_eq!(number + 1, table.len());
                assert_eq!(table.find(&hashed, &key), Some(number));
            }
        }
        for (n, (round, key)) in
            (0..50).flat_map(|round| distinct.iter().map(move |key| (round, key))).enumerate()
        {
            let key = ended(round, key);
            assert_eq!(table.find(&table.hash(&key), &key), Some(n));
        }
    }
}
