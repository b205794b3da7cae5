//! A hash table of byte keys, numbered in the order they came.

use hashbrown::HashTable;

/// Keys, each with a number.
#[derive(Default)]
pub(crate) struct KeyTable {
    index: HashTable<Slot>,
    /// The keys one after the other.
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    hasher: ahash::RandomState,
}

#[derive(Clone, Copy)]
struct Slot {
    hash: u64,
    number: u32,
}

impl KeyTable {
    /// How many keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn clear(&mut self) {
        self.index.clear();
        self.bytes.clear();
        self.ends.clear();
    }

    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    #[inline]
    fn key(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.bytes[start..self.ends[number]]
    }

    /// The number of a key.
    #[inline]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<usize> {
        let same = |slot: &Slot| slot.hash == hash && self.key(slot.number) == key;
        self.index.find(hash, same).map(|slot| slot.number as usize)
    }

    /// Adds a key that is not there, and says its number.
    pub fn insert(&mut self, hash: u64, key: &[u8]) -> usize {
        let number = self.ends.len();
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        self.index.insert_unique(hash, Slot { hash, number: number as u32 }, |slot| slot.hash);
        number
    }

    /// Bytes that a key takes.
    pub fn bytes_for(key: &[u8]) -> usize {
        key.len() + size_of::<usize>() + 2 * size_of::<Slot>()
    }
}
