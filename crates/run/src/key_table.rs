//! [`KeyTable`]: a hash table of byte strings, numbered in insertion order.
//!
//! # Concepts
//! Most keys are short. A short key is encoded as an integer (the *word*) and stored in its slot, so a lookup
//! touches one cache line. A long key is stored in a separate buffer after its length; its word holds part of
//! its hash and its position.
//!
//! Lookups of many keys are dominated by cache misses. So a caller with a batch of keys hashes all of them
//! first ([`KeyBatch`]) and lets the table touch all their slots, which lets the processor overlap the
//! misses.
//!
//! The number of slots is a power of two, about a third or more of them are free, and collisions are resolved
//! by linear probing. Slots are chosen by the low bits of the hash; partitions ([`crate::partition`]) use the
//! high bits.

use cohort_expr::append_group_key;
use cohort_types::{Collation, Interrupt, SqlResult};

use crate::batch::Batch;

/// Maximum length of a key stored in its slot.
const SHORT: usize = 15;

/// Mark of a long key, in the byte that holds the length of a short one.
const LONG: u8 = 0xff;

/// Bytes of keys after which a batch must be looked up.
const BATCH_BYTES: usize = 1 << 20;

/// Key number of a free slot.
const FREE: u32 = u32::MAX;

/// A table of keys with consecutive numbers.
#[derive(Default)]
pub(crate) struct KeyTable {
    slots: Vec<Slot>,
    count: usize,
    /// Long keys, each after its length in four bytes.
    long: Vec<u8>,
    hasher: ahash::RandomState,
}

#[derive(Clone, Copy)]
struct Slot {
    word: [u64; 2],
    number: u32,
    /// Low half of the hash.
    hash: u32,
}

/// A hashed key to look up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hashed {
    pub hash: u64,
    /// A short key with its length; or the hash of a long key and the mark [`LONG`].
    word: [u64; 2],
}

/// Hashed keys of a batch of rows.
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

    /// Returns true if the keys are so large that they must be looked up before the next is built. Even a row
    /// of numbers may have a key of megabytes.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= BATCH_BYTES
    }

    /// Returns the buffer to append the next key's bytes to.
    #[inline]
    pub fn open_key(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Completes the key from the bytes appended after the last one.
    #[inline]
    pub fn end_key(&mut self, table: &KeyTable) {
        let start = self.ends.last().copied().unwrap_or(0);
        self.hashed.push(table.hash(&self.bytes[start..]));
        self.ends.push(self.bytes.len());
    }

    /// Appends a short key of fixed length.
    #[inline]
    pub fn push_short<const N: usize>(&mut self, key: [u8; N], table: &KeyTable) {
        const { assert!(N <= SHORT) };
        self.hashed.push(table.hash_short(&key));
        self.bytes.extend_from_slice(&key);
        self.ends.push(self.bytes.len());
    }

    /// Returns true if key `n` equals the key before it.
    #[inline]
    pub fn is_like_before(&self, n: usize) -> bool {
        if n == 0 || self.hashed[n].word != self.hashed[n - 1].word {
            return false;
        }
        // The word of a short key is the key.
        let key = self.key(n).1;
        key.len() <= SHORT || key == self.key(n - 1).1
    }

    /// Appends the keys of whole rows.
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

    /// Returns the n-th key with its hash.
    #[inline]
    pub fn key(&self, n: usize) -> (Hashed, &[u8]) {
        let start = if n == 0 { 0 } else { self.ends[n - 1] };
        (self.hashed[n], &self.bytes[start..self.ends[n]])
    }
}

impl KeyTable {
    /// Returns the number of keys.
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

    /// Touches the slots of the keys to bring them into the cache before the lookups.
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

    /// Returns the number of a key, if present.
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

    /// Inserts an absent key and returns its number.
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

    /// Returns the memory that a key needs.
    pub fn bytes_for(key: &[u8]) -> usize {
        7 * size_of::<Slot>() / 4 + if key.len() > SHORT { key.len() + 4 } else { 0 }
    }
}

/// Stores a slot at the first free position.
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
    fn keys_of_all_lengths_are_distinguished() {
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
