//! The plan cache: plans by statement digest.
//!
//! A bounded, sharded map with CLOCK replacement. A hit takes the shard's lock in shared mode, compares the
//! key and clones an `Arc`. It marks the slot as used by a relaxed store, and only if it is not marked yet,
//! so that hot slots stay in shared state in the caches of all cores. A put takes the lock in exclusive mode.
//! If the shard is full, by number or by bytes, the clock hand advances and evicts the first slot that was
//! not used since the hand last passed it, or that belongs to an older schema version.
//!
//! A plan larger than a shard's share of the bytes is not cached.
//!
//! A plan of another schema version is never returned; the next put of its key replaces it. The cache is not
//! needed for correctness: every plan can be built again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hashbrown::HashMap;
use parking_lot::RwLock;

use crate::Digest;

const SHARDS: usize = 16;

/// Cache key: everything that a plan depends on, except the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlanKey {
    pub digest: Digest,
    /// Hash of the current database, the parse options and the session variables that the planner reads.
    pub session: u64,
}

impl PlanKey {
    fn shard(&self) -> usize {
        ((self.digest.0 >> 64) as u64 ^ self.session) as usize % SHARDS
    }
}

struct Slot<P> {
    key: PlanKey,
    schema_version: u64,
    plan: Arc<P>,
    /// Memory of the plan, as reported by the session that inserted it.
    bytes: u64,
    /// Set by hits (shared lock), cleared by the clock hand (exclusive lock).
    used: AtomicBool,
}

struct Shard<P> {
    index: HashMap<PlanKey, usize, ahash::RandomState>,
    slots: Vec<Slot<P>>,
    bytes: u64,
    hand: usize,
}

/// A bounded, concurrent map from [`PlanKey`] to plans of one schema version.
pub struct PlanCache<P> {
    shards: Vec<RwLock<Shard<P>>>,
    slots_per_shard: usize,
    bytes_max: AtomicU64,
    misses: AtomicU64,
}

impl<P> PlanCache<P> {
    /// Makes a cache for about `plans` plans with a total of `bytes_max` bytes. 0 disables the cache.
    pub fn new(plans: usize, bytes_max: u64) -> PlanCache<P> {
        let shard = || Shard { index: HashMap::default(), slots: Vec::new(), bytes: 0, hand: 0 };
        PlanCache {
            shards: (0..SHARDS).map(|_| RwLock::new(shard())).collect(),
            slots_per_shard: plans.div_ceil(SHARDS),
            bytes_max: AtomicU64::new(bytes_max),
            misses: AtomicU64::new(0),
        }
    }

    /// Returns the plan if it was built for this schema version.
    pub fn get(&self, key: &PlanKey, schema_version: u64) -> Option<Arc<P>> {
        let shard = self.shards[key.shard()].read();
        let slot = shard.index.get(key).map(|&at| &shard.slots[at]);
        match slot.filter(|slot| slot.schema_version == schema_version) {
            Some(slot) => {
                if !slot.used.load(Ordering::Relaxed) {
                    slot.used.store(true, Ordering::Relaxed);
                }
                Some(Arc::clone(&slot.plan))
            }
            None => {
                self.misses.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    /// Inserts a plan of `bytes` bytes, built for `schema_version`.
    pub fn put(&self, key: PlanKey, schema_version: u64, plan: Arc<P>, bytes: u64) {
        let bytes_max = self.shard_bytes_max();
        if self.slots_per_shard == 0 || bytes > bytes_max {
            return;
        }
        let slot = Slot { key, schema_version, plan, bytes, used: AtomicBool::new(false) };
        // The evicted plans are dropped after the lock is released: they may be large.
        let _old = self.shards[key.shard()].write().put(slot, self.slots_per_shard, bytes_max);
    }

    fn shard_bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed) / SHARDS as u64
    }

    /// Changes the total size limit and evicts plans above it.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
        let bytes_max = self.shard_bytes_max();
        for shard in &self.shards {
            let _old = shard.write().make_room(usize::MAX, bytes_max, 0);
        }
    }

    /// Returns the total size of the plans in bytes.
    pub fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.read().bytes).sum()
    }

    /// Removes all plans.
    pub fn clear(&self) {
        for shard in &self.shards {
            let mut shard = shard.write();
            shard.index.clear();
            let _old = std::mem::take(&mut shard.slots);
            (shard.bytes, shard.hand) = (0, 0);
        }
    }

    /// Returns the number of plans of all schema versions.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().slots.len()).sum()
    }

    /// Returns whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how often `get` returned no plan.
    pub fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }
}

impl<P> Shard<P> {
    /// Inserts the slot and returns the slots that it replaced.
    fn put(&mut self, slot: Slot<P>, slots_max: usize, bytes_max: u64) -> Vec<Slot<P>> {
        let mut old = Vec::new();
        if let Some(&at) = self.index.get(&slot.key) {
            old.push(self.take(at));
        }
        old.append(&mut self.make_room(slots_max - 1, bytes_max - slot.bytes, slot.schema_version));
        self.bytes += slot.bytes;
        self.index.insert(slot.key, self.slots.len());
        self.slots.push(slot);
        old
    }

    /// Evicts slots until the limits are met, and returns them.
    fn make_room(&mut self, slots_max: usize, bytes_max: u64, schema_version: u64) -> Vec<Slot<P>> {
        let mut old = Vec::new();
        while self.slots.len() > slots_max || self.bytes > bytes_max {
            let victim = self.victim(schema_version);
            old.push(self.take(victim));
        }
        old
    }

    fn take(&mut self, at: usize) -> Slot<P> {
        let slot = self.slots.swap_remove(at);
        self.index.remove(&slot.key);
        if let Some(moved) = self.slots.get(at) {
            self.index.insert(moved.key, at);
        }
        self.bytes -= slot.bytes;
        slot
    }

    /// Returns the victim of the clock hand. Takes at most two rounds, because the first one clears all
    /// marks.
    fn victim(&mut self, schema_version: u64) -> usize {
        loop {
            self.hand = (self.hand + 1) % self.slots.len();
            let slot = &mut self.slots[self.hand];
            let used = std::mem::replace(slot.used.get_mut(), false);
            if !used || slot.schema_version != schema_version {
                return self.hand;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u64) -> PlanKey {
        PlanKey { digest: Digest(u128::from(n) << 64), session: 0 }
    }

    #[test]
    fn hands_out_only_the_schema_version_asked_for() {
        let cache = PlanCache::new(64, 6400);
        cache.put(key(1), 7, Arc::new("a"), 1);
        assert_eq!(cache.get(&key(1), 7).as_deref(), Some(&"a"));
        assert_eq!(cache.get(&key(1), 8), None);
        assert_eq!(cache.get(&PlanKey { session: 1, ..key(1) }, 7), None);
        cache.put(key(1), 8, Arc::new("b"), 1);
        assert_eq!(cache.get(&key(1), 8).as_deref(), Some(&"b"));
        assert_eq!(cache.len(), 1);
        assert_eq!(cache.misses(), 2);
        cache.clear();
        assert!(cache.is_empty());
    }

    #[test]
    fn bounded_and_keeps_what_is_used() {
        let cache = PlanCache::new(4 * SHARDS, 1 << 20);
        // All keys are in one shard: multiples of the number of shards.
        let in_shard = |n: u64| key(n * SHARDS as u64);
        for n in 0..4 {
            cache.put(in_shard(n), 1, Arc::new(n), 10);
        }
        for n in 4..100 {
            assert!(cache.get(&in_shard(0), 1).is_some(), "the used plan stays, at {n}");
            cache.put(in_shard(n), 1, Arc::new(n), 10);
        }
        assert_eq!(cache.len(), 4);
        let none = PlanCache::new(0, 1 << 20);
        none.put(key(1), 1, Arc::new(0), 10);
        assert!(none.is_empty());
    }

    #[test]
    fn bounded_by_bytes() {
        let cache = PlanCache::new(1000 * SHARDS, 100 * SHARDS as u64);
        let in_shard = |n: u64| key(n * SHARDS as u64);
        for n in 0..50 {
            cache.put(in_shard(n), 1, Arc::new(n), 10 + n);
            assert!(cache.bytes() <= 100, "{} bytes", cache.bytes());
            assert!(cache.get(&in_shard(n), 1).is_some(), "the newest is there");
        }
        assert_eq!(cache.len(), 1);
        cache.put(in_shard(60), 1, Arc::new(60), 101);
        assert_eq!((cache.get(&in_shard(60), 1), cache.len()), (None, 1), "larger than its share");
        // A plan that grows replaces itself.
        cache.put(in_shard(49), 1, Arc::new(49), 100);
        assert_eq!((cache.len(), cache.bytes()), (1, 100));
        cache.put(key(1), 1, Arc::new(1), 7);
        cache.set_bytes_max(20 * SHARDS as u64);
        assert_eq!((cache.len(), cache.bytes()), (1, 7));
    }

    #[test]
    fn many_threads() {
        let cache = PlanCache::new(100, 1 << 20);
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let cache = &cache;
                scope.spawn(move || {
                    for n in 0..5000 {
                        let key = key((n * (thread + 1)) % 300);
                        match cache.get(&key, 1) {
                            Some(plan) => assert_eq!(*plan, key),
                            None => cache.put(key, 1, Arc::new(key), 10),
                        }
                    }
                });
            }
        });
        assert!(cache.len() <= 112);
    }
}
