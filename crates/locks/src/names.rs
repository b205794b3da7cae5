//! Metadata locks.
//!
//! Every statement takes a shared lock on its tables, so the statements that use a hot table must not contend
//! for a mutex. So a shared lock is usually *anonymous*: its holder is counted in one word of the name and
//! not listed in the queue.
//!
//! ```text
//! bit 63      guarded: a waiter, or a mode stronger than SharedWrite; every request goes through the queue
//! bits 32..63 anonymous SharedWrite holders
//! bits 0..32  anonymous SharedRead holders
//! ```
//!
//! While the name is not guarded, taking and releasing a shared lock is one compare-and-swap. A request for a
//! stronger mode, or one that has to wait, first sets the guard under the queue's mutex. An anonymous holder
//! that releases its lock sees the guard and checks whether a waiter can be granted.
//!
//! Anonymous holders are not in the wait-for graph. Nothing is missed by that: only a waiter can be in a
//! cycle, and before an owner waits, all anonymous locks of its session are registered in their queues
//! (`make_known`).

use std::collections::HashMap;
use std::sync::Arc;

use ahash::RandomState;

use crate::mode::{MetadataKey, MetadataMode, Mode, ModeSet};
use crate::owner::Owner;
use crate::queue::{Blockers, Claim, Queue, Request};
use crate::sync::{AtomicU64, Mutex, Ordering, RwLock};

const SHARDS: usize = 16;
const GUARDED: u64 = 1 << 63;
/// A shard with more names than this removes unused ones when it grows.
const SWEEP_MIN: usize = 256;

/// The lock of one name.
pub(crate) struct Name {
    key: MetadataKey,
    word: AtomicU64,
    queue: Mutex<Queue<MetadataMode>>,
}

/// A metadata lock that an owner holds.
pub(crate) struct Ticket {
    pub name: Arc<Name>,
    pub mode: MetadataMode,
    /// The lock is counted in the name's word, not in the queue.
    pub anonymous: bool,
}

/// All names.
pub(crate) struct Names {
    shards: Vec<RwLock<Shard>>,
    hasher: RandomState,
    /// Stored separately because every writing statement takes it: no lookup.
    global: Arc<Name>,
}

#[derive(Default)]
struct Shard {
    names: HashMap<MetadataKey, Arc<Name>, RandomState>,
    sweep_at: usize,
}

/// Returns the increment of the word for one anonymous holder of a mode, `None` for modes that are never
/// anonymous.
fn unit(mode: MetadataMode) -> Option<u64> {
    match mode {
        MetadataMode::SharedRead => Some(1),
        MetadataMode::SharedWrite => Some(1 << 32),
        _ => None,
    }
}

/// Returns whether a word counts an anonymous holder of the mode with this unit.
fn has_holder(word: u64, unit: u64) -> bool {
    !((word & !GUARDED) / unit).is_multiple_of(1 << 31)
}

impl Names {
    pub fn new(hasher: RandomState) -> Names {
        let shards = (0..SHARDS).map(|_| RwLock::default()).collect();
        Names { shards, hasher, global: Arc::new(Name::new(MetadataKey::Global)) }
    }

    /// Returns the lock of a name, creating it if necessary.
    pub fn get(&self, key: &MetadataKey) -> Arc<Name> {
        if *key == MetadataKey::Global {
            return self.global.clone();
        }
        let shard = &self.shards[self.hasher.hash_one(key) as usize % SHARDS];
        if let Some(name) = shard.read().names.get(key) {
            return name.clone();
        }
        let mut shard = shard.write();
        if shard.names.len() >= shard.sweep_at.max(SWEEP_MIN) {
            shard.names.retain(|_, name| Arc::strong_count(name) > 1);
            shard.sweep_at = 2 * shard.names.len();
        }
        shard.names.entry(key.clone()).or_insert_with(|| Arc::new(Name::new(key.clone()))).clone()
    }
}

impl Names {
    /// Returns whether the global lock has a waiter or a holder of more than `SharedWrite`.
    pub fn is_global_guarded(&self) -> bool {
        self.global.word.load(Ordering::Acquire) & GUARDED != 0
    }
}

impl Name {
    fn new(key: MetadataKey) -> Name {
        Name { key, word: AtomicU64::new(0), queue: Mutex::new(Queue::new()) }
    }

    pub fn is(&self, key: &MetadataKey) -> bool {
        self.key == *key
    }

    /// Takes a shared mode without the queue. Returns false if the mode or the state of the name does not
    /// allow it.
    pub fn take_anonymously(&self, mode: MetadataMode) -> bool {
        let Some(unit) = unit(mode) else { return false };
        let free = |word: u64| {
            debug_assert!(
                !has_holder(word, unit) || has_holder(word + unit, unit),
                "too many holders to count"
            );
            (word & GUARDED == 0).then_some(word + unit)
        };
        self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, free).is_ok()
    }

    /// Releases a lock taken by [`Name::take_anonymously`]. Returns the sleepers to wake.
    pub fn leave_anonymously(&self, mode: MetadataMode) -> Vec<Arc<Owner>> {
        let unit = unit(mode).expect("only these modes are anonymous");
        let before = self.word.fetch_sub(unit, Ordering::AcqRel);
        debug_assert!(has_holder(before, unit), "a shared lock is released twice");
        if before & GUARDED == 0 { Vec::new() } else { self.grant(&mut self.queue.lock()) }
    }

    /// Moves an anonymous holder into the queue. Returns true if another owner waits for the name.
    pub fn make_known(&self, owner: &Arc<Owner>, mode: MetadataMode) -> bool {
        let mut queue = self.queue.lock();
        debug_assert!(!queue.holds(owner), "an anonymous holder is also in the queue");
        queue.holders.push(Claim { owner: owner.clone(), mode });
        let unit = unit(mode).expect("only these modes are anonymous");
        let before = self.word.fetch_sub(unit, Ordering::AcqRel);
        debug_assert!(has_holder(before, unit), "an anonymous holder is registered twice");
        queue.check_invariants(self.unnamed());
        !queue.waiters.is_empty()
    }

    /// Requests a mode through the queue. If it is blocked and `wait` is given, runs `wait` and queues the
    /// request.
    pub fn request(&self, owner: &Arc<Owner>, mode: MetadataMode, wait: Option<impl FnOnce()>) -> Request {
        let mut queue = self.queue.lock();
        // Set first: a caller that takes the lock anonymously is either counted below or sees the guard and
        // comes to the queue.
        self.word.fetch_or(GUARDED, Ordering::AcqRel);
        let request = queue.request(owner, mode, self.unnamed());
        if request == Request::Blocked
            && let Some(wait) = wait
        {
            wait();
            queue.enqueue(owner, mode);
            queue.mark_waited_for(owner);
        }
        queue.check_invariants(self.unnamed());
        self.unguard(&queue);
        request
    }

    /// Withdraws a waiting request. Returns false if the lock was granted meanwhile, and the sleepers to
    /// wake.
    pub fn abandon(&self, owner: &Arc<Owner>) -> (bool, Vec<Arc<Owner>>) {
        let mut queue = self.queue.lock();
        let gone = queue.dequeue(owner);
        (gone, self.grant(&mut queue))
    }

    /// Releases a lock that is in the queue. Returns the owners to wake.
    pub fn release(&self, owner: &Arc<Owner>) -> Vec<Arc<Owner>> {
        let mut queue = self.queue.lock();
        let released = queue.release(owner);
        debug_assert!(released.is_some(), "a lock on a name is released by an owner that does not hold it");
        self.grant(&mut queue)
    }

    /// Downgrades a holder that is in the queue. Returns the owners to wake.
    pub fn downgrade(&self, owner: &Arc<Owner>, mode: MetadataMode) -> Vec<Arc<Owner>> {
        let mut queue = self.queue.lock();
        debug_assert!(queue.holds(owner), "a lock on a name is downgraded by an owner that does not hold it");
        queue.downgrade(owner, mode);
        self.grant(&mut queue)
    }

    /// Returns the key of the lock.
    pub fn key(&self) -> &MetadataKey {
        &self.key
    }

    /// Returns the mode that an owner waits for, and whether it holds the name in another mode.
    pub fn mode_wanted(&self, owner: &Arc<Owner>) -> Option<(MetadataMode, bool)> {
        let queue = self.queue.lock();
        let wanted = queue.waiters.iter().find(|claim| Arc::ptr_eq(&claim.owner, owner))?.mode;
        Some((wanted, queue.holds(owner)))
    }

    /// Returns the owners that a waiter for this name waits for.
    pub fn blockers(&self, owner: &Arc<Owner>) -> Blockers {
        self.queue.lock().blockers(owner)
    }

    fn grant(&self, queue: &mut Queue<MetadataMode>) -> Vec<Arc<Owner>> {
        let granted = queue.grant(self.unnamed());
        queue.check_invariants(self.unnamed());
        self.unguard(queue);
        granted.iter().for_each(|c| c.owner.grant(0));
        granted.into_iter().map(|c| c.owner).collect()
    }

    /// Returns the modes of the anonymous holders.
    fn unnamed(&self) -> ModeSet {
        let word = self.word.load(Ordering::Acquire);
        let has = |mode: MetadataMode, mask: u64| if word & mask != 0 { mode.bit() } else { 0 };
        has(MetadataMode::SharedRead, u64::from(u32::MAX))
            | has(MetadataMode::SharedWrite, (GUARDED - 1) & !u64::from(u32::MAX))
    }

    /// Clears the guard when no waiter or holder requires it.
    fn unguard(&self, queue: &Queue<MetadataMode>) {
        let minds = |c: &Claim<MetadataMode>| unit(c.mode).is_none();
        if queue.waiters.is_empty() && !queue.holders.iter().any(minds) {
            self.word.fetch_and(!GUARDED, Ordering::AcqRel);
        }
    }
}
