//! The statements that have a slot: their texts and samples, and the order in which they are evicted.
//!
//! A new statement is on probation. Statements on probation that run a second time are promoted; the others
//! are evicted first. So a flood of texts that run once evicts itself.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashTable;

use crate::sync::Mutex;

/// Candidates that are compared for one eviction.
const CANDIDATES: usize = 16;
/// Share of the bytes of a sample that its plan may take in addition.
pub(crate) const PLAN_SHARE: usize = 2;
/// Share of a score that ages when it is compared.
const AGING: u64 = 16;
/// Estimated bytes of an entry without its texts: the entry, its places in table, list and queue.
pub(crate) const ENTRY_BYTES: usize = 320;

/// Identity of a row of the statistics.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StatementKey {
    /// Current database.
    pub schema: Option<Arc<str>>,
    /// Hash of the normalised text.
    pub digest: u128,
    /// True if the statement ran inside another one.
    pub is_nested: bool,
}

/// Example of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    pub text: String,
    /// Wall-clock time of its end in microseconds.
    pub seen_us: u64,
    pub latency_ns: u64,
    /// Its plan, and when that was made.
    pub plan: String,
    pub planned_us: u64,
}

/// A statement that has a slot.
#[derive(Debug)]
pub(crate) struct Entry {
    pub slot: usize,
    pub generation: u32,
    pub key: StatementKey,
    /// Normalised text.
    pub text: Arc<str>,
    pub kind: usize,
    /// Wall-clock time when the statement was first seen, in microseconds.
    pub first_us: u64,
    pub sample: Mutex<Sample>,
}

impl Entry {
    /// Returns the bytes charged for the entry. `sample_bytes` are the most that a sample may take.
    pub fn bytes(&self, sample_bytes: usize) -> usize {
        ENTRY_BYTES + self.text.len() + sample_bytes + sample_bytes / PLAN_SHARE
    }
}

/// A statement in a queue. Its score are the calls that have not aged yet.
struct Queued {
    slot: usize,
    aged: u64,
}

/// The statements by key and by slot.
#[derive(Default)]
pub(crate) struct Directory {
    hasher: ahash::RandomState,
    by_key: HashTable<Arc<Entry>>,
    by_slot: Vec<Option<Arc<Entry>>>,
    free: Vec<usize>,
    probation: VecDeque<Queued>,
    probation_bytes: usize,
    lasting: VecDeque<Queued>,
}

impl Directory {
    /// Creates a directory whose first slots are reserved.
    pub fn new(reserved: usize) -> Directory {
        Directory { by_slot: vec![None; reserved], ..Directory::default() }
    }

    /// Finds a statement.
    pub fn find(&self, key: &StatementKey) -> Option<&Arc<Entry>> {
        self.by_key.find(self.hasher.hash_one(key), |entry| entry.key == *key)
    }

    /// Returns the statement of a slot.
    pub fn of_slot(&self, slot: usize) -> Option<&Arc<Entry>> {
        self.by_slot.get(slot)?.as_ref()
    }

    /// Returns all statements.
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        self.by_slot.iter().flatten().cloned().collect()
    }

    /// Returns a free slot below `slots`.
    pub fn free_slot(&mut self, slots: usize) -> Option<usize> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        let slot = self.by_slot.len();
        (slot < slots).then(|| {
            self.by_slot.push(None);
            slot
        })
    }

    /// Adds a statement in a free slot, on probation.
    pub fn add(&mut self, entry: &Arc<Entry>, bytes: usize) {
        let hash = self.hasher.hash_one(&entry.key);
        let hasher = &self.hasher;
        self.by_key.insert_unique(hash, Arc::clone(entry), |entry| hasher.hash_one(&entry.key));
        self.probation.push_back(Queued { slot: entry.slot, aged: 0 });
        self.probation_bytes += bytes;
        self.by_slot[entry.slot] = Some(Arc::clone(entry));
    }

    /// Chooses a statement to evict and removes it from the queues. Statements on probation that ran more
    /// than once are promoted on the way. `calls` returns the calls of a slot.
    pub fn victim(
        &mut self,
        probation_bytes_max: usize,
        bytes_of: impl Fn(&Entry) -> usize,
        calls: impl Fn(usize) -> u64,
    ) -> Option<Arc<Entry>> {
        while self.probation_bytes > probation_bytes_max || self.lasting.is_empty() {
            let Some(first) = self.probation.pop_front() else { break };
            let entry = Arc::clone(self.of_slot(first.slot)?);
            self.probation_bytes = self.probation_bytes.saturating_sub(bytes_of(&entry));
            let calls = calls(first.slot);
            if calls < 2 {
                return Some(entry);
            }
            self.lasting.push_back(Queued { slot: first.slot, aged: 0 });
        }
        // The candidate with the lowest score. A share of the others' scores ages.
        let mut least: Option<(u64, usize)> = None;
        for _ in 0..CANDIDATES.min(self.lasting.len()) {
            let Queued { slot, aged } = self.lasting.pop_front()?;
            let score = calls(slot).saturating_sub(aged);
            if least.is_none_or(|(least, _)| score < least) {
                least = Some((score, slot));
            }
            self.lasting.push_back(Queued { slot, aged: aged + score / AGING });
        }
        let (_, slot) = least?;
        let looked_at = self.lasting.len().saturating_sub(CANDIDATES);
        let place = (looked_at..self.lasting.len()).find(|n| self.lasting[*n].slot == slot)?;
        self.lasting.remove(place);
        self.of_slot(slot).cloned()
    }

    /// Removes a statement that is in no queue.
    pub fn remove(&mut self, entry: &Entry) {
        let hash = self.hasher.hash_one(&entry.key);
        if let Ok(found) = self.by_key.find_entry(hash, |other| other.slot == entry.slot) {
            found.remove();
        }
        self.by_slot[entry.slot] = None;
    }

    /// Makes the slot of a removed statement available.
    pub fn release(&mut self, slot: usize) {
        self.free.push(slot);
    }

    /// Removes all statements. Their slots become available.
    pub fn clear(&mut self) {
        self.by_key.clear();
        for (slot, entry) in self.by_slot.iter_mut().enumerate() {
            if entry.take().is_some() {
                self.free.push(slot);
            }
        }
        self.probation.clear();
        self.lasting.clear();
        self.probation_bytes = 0;
    }
}
