//! Row locks: a sharded hash table.
//!
//! A row is identified by `(index, keyed 64-bit hash of its key without the last byte, last byte)`, so that
//! slots have a fixed size. Two keys with the same hash share a lock: that can cause a needless wait, but
//! never lets two conflicting owners in.
//!
//! Most rows are locked by one owner without waiters, and the slot itself stores that; a queue is allocated
//! when a second owner arrives. Locks of a large transaction on neighbouring keys have no slots until another
//! owner requests one of them ([`crate::groups`]).
//!
//! A slot also remembers the CommitSeq of the newest early release, separately for shared and exclusive
//! locks, until that CommitSeq is durable (I5, I8): a reader depends on the last writer; a writer depends on
//! the last writer and the last locking readers. Remembered slots that are no longer locked are removed
//! incrementally: every shard queues its early releases, each release checks two entries of the queue, and
//! each advance of the durable mark cleans one shard.

use std::collections::VecDeque;
use std::sync::Arc;

use cohort_base::CommitSeq;
use hashbrown::HashTable;

use crate::groups::{Asked, Groups, Packing};
use crate::mode::RowMode;
use crate::owner::Owner;
use crate::queue::{Blockers, Claim, Queue, Request};
use crate::row_key::{GroupKey, RowKey};
use crate::sync::{AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering};

const SHARDS: usize = 64;
/// Early releases checked by a release, and by an advance of the durable mark.
const FORGET_PER_RELEASE: usize = 2;
const FORGET_PER_ADVANCE: usize = 4096;
/// A shard with capacity for fewer slots than this never shrinks.
const KEPT_SLOTS: usize = 512;

/// Holders of a row lock.
enum State {
    Free,
    One(Arc<Owner>, RowMode),
    Queue(Box<Queue<RowMode>>),
}

struct Slot {
    key: RowKey,
    state: State,
    /// Newest early releases of an exclusive and of a shared lock; 0 if none.
    released_exclusive: u64,
    released_shared: u64,
}

#[derive(Default)]
struct Shard {
    slots: HashTable<Slot>,
    groups: Groups,
    /// Early releases in order: the CommitSeq and the row.
    remembered: VecDeque<(u64, RowKey)>,
}

/// Outcome of a row request.
pub(crate) struct RowAnswer {
    pub request: Request,
    pub home: Home,
    /// CommitSeq of the early release that it follows, 0 if none.
    pub predecessor: u64,
}

/// Where a new lock is stored, which decides what its owner must release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// In a slot: the owner releases the row.
    Slot,
    /// In a group that the owner already has.
    Group,
    /// In a new group, which the owner must release.
    NewGroup,
}

/// All row locks.
pub(crate) struct Rows {
    shards: Vec<Mutex<Shard>>,
    hardened: AtomicU64,
    /// The shard that the next advance of the durable mark cleans.
    next_cleared: AtomicUsize,
}

impl Slot {
    fn predecessor(&self, mode: RowMode, hardened: u64) -> u64 {
        let seq = match mode {
            RowMode::Shared => self.released_exclusive,
            RowMode::Exclusive => self.released_exclusive.max(self.released_shared),
        };
        if seq > hardened { seq } else { 0 }
    }

    /// Requests the lock, without allocating a queue if possible.
    fn request(&mut self, owner: &Arc<Owner>, mode: RowMode) -> Request {
        match &mut self.state {
            State::Free => {
                self.state = State::One(owner.clone(), mode);
                Request::Granted
            }
            State::One(holder, held) if Arc::ptr_eq(holder, owner) => {
                if *held >= mode {
                    return Request::Held;
                }
                *held = mode;
                Request::Upgraded
            }
            State::One(_, RowMode::Exclusive) => Request::Blocked,
            State::One(_, RowMode::Shared) if mode == RowMode::Exclusive => Request::Blocked,
            State::One(..) | State::Queue(_) => self.queue().request(owner, mode, 0),
        }
    }

    /// Returns the queue, allocating it if there is none.
    fn queue(&mut self) -> &mut Queue<RowMode> {
        if !matches!(self.state, State::Queue(_)) {
            let mut queue = Box::new(Queue::new());
            if let State::One(owner, mode) = std::mem::replace(&mut self.state, State::Free) {
                queue.holders.push(Claim { owner, mode });
            }
            self.state = State::Queue(queue);
        }
        match &mut self.state {
            State::Queue(queue) => queue,
            State::Free | State::One(..) => unreachable!("it has just been made"),
        }
    }

    /// Grants the waiters that can be granted now, and returns them: the caller wakes them.
    fn grant(&mut self, hardened: u64) -> Vec<Arc<Owner>> {
        let State::Queue(queue) = &mut self.state else { return Vec::new() };
        let granted = queue.grant(0);
        queue.check_invariants(0);
        debug_assert!(
            queue.has_blocked_first(),
            "a waiter is blocked by no holder: no release will grant it"
        );
        if queue.waiters.is_empty() && queue.holders.len() < 2 {
            self.state = match queue.holders.pop() {
                Some(claim) => State::One(claim.owner, claim.mode),
                None => State::Free,
            };
        }
        granted.iter().for_each(|c| c.owner.grant(self.predecessor(c.mode, hardened)));
        granted.into_iter().map(|c| c.owner).collect()
    }

    fn release(&mut self, owner: &Arc<Owner>) -> Option<RowMode> {
        match &mut self.state {
            State::Free => None,
            State::One(holder, mode) => {
                let mode = Arc::ptr_eq(holder, owner).then_some(*mode);
                if mode.is_some() {
                    self.state = State::Free;
                }
                mode
            }
            State::Queue(queue) => queue.release(owner),
        }
    }

    fn remember(&mut self, mode: RowMode, seq: u64) {
        let released = match mode {
            RowMode::Shared => &mut self.released_shared,
            RowMode::Exclusive => &mut self.released_exclusive,
        };
        debug_assert!(seq > 0, "a release at rollback is remembered");
        *released = seq.max(*released);
    }

    fn is_forgettable(&self, hardened: u64) -> bool {
        matches!(self.state, State::Free) && self.released_exclusive.max(self.released_shared) <= hardened
    }
}

impl Shard {
    fn slot(&mut self, key: RowKey) -> Option<&mut Slot> {
        self.slots.find_mut(key.hash(), |s| s.key == key)
    }

    fn slot_or_insert(&mut self, key: RowKey) -> &mut Slot {
        let entry = self.slots.entry(key.hash(), |s| s.key == key, |s| s.key.hash());
        let new = || Slot { key, state: State::Free, released_exclusive: 0, released_shared: 0 };
        entry.or_insert_with(new).into_mut()
    }

    /// Requests the row from the groups. Returns `None` if the row's slot decides.
    fn request_in_groups(
        &mut self,
        key: RowKey,
        owner: &Arc<Owner>,
        mode: RowMode,
        packing: Packing,
    ) -> Option<RowAnswer> {
        if packing == Packing::Apart && self.groups.is_empty() {
            return None;
        }
        let slots = &self.slots;
        let has_slot = || slots.find(key.hash(), |s| s.key == key).is_some();
        let (request, home) = match self.groups.request(key, owner, mode, packing, has_slot) {
            Asked::Held => (Request::Held, Home::Group),
            Asked::Added => (Request::Granted, Home::Group),
            Asked::Founded => (Request::Granted, Home::NewGroup),
            Asked::Unknown => return None,
            Asked::MovedOut(holder, held) => {
                self.occupy(key, holder, held);
                return None;
            }
        };
        Some(RowAnswer { request, home, predecessor: 0 })
    }

    /// Moves a row from its group, if any, into a slot.
    fn move_out(&mut self, key: RowKey) {
        if !self.groups.is_empty()
            && let Some((holder, held)) = self.groups.move_out(key)
        {
            self.occupy(key, holder, held);
        }
    }

    /// Creates the slot of a row that has left its group.
    fn occupy(&mut self, key: RowKey, holder: Arc<Owner>, held: RowMode) {
        debug_assert!(
            self.slots.find(key.hash(), |s| s.key == key).is_none(),
            "a row that a group holds has a slot: its lock has two holders"
        );
        self.slot_or_insert(key).state = State::One(holder, held);
    }

    /// Releases a row that has a slot. The slot remembers `seq` if it is not durable. Returns the sleepers to
    /// wake.
    fn release(&mut self, key: RowKey, owner: &Arc<Owner>, seq: u64, hardened: u64) -> Vec<Arc<Owner>> {
        let Some(slot) = self.slot(key) else { return Vec::new() };
        debug_assert!(
            !matches!(&slot.state, State::Queue(queue) if queue.waiters.iter().any(|w| Arc::ptr_eq(&w.owner, owner))),
            "an owner releases a row for which it waits"
        );
        let Some(mode) = slot.release(owner) else { return Vec::new() };
        if seq > hardened {
            slot.remember(mode, seq);
        }
        let granted = slot.grant(hardened);
        if seq > hardened {
            self.remembered.push_back((seq, key));
            self.forget(FORGET_PER_RELEASE, hardened);
        } else {
            self.remove_if_forgettable(key, hardened);
            self.forget(0, hardened);
        }
        granted
    }

    fn remove_if_forgettable(&mut self, key: RowKey, hardened: u64) {
        if let Ok(slot) = self.slots.find_entry(key.hash(), |s| s.key == key)
            && slot.get().is_forgettable(hardened)
        {
            debug_assert!(
                slot.get().predecessor(RowMode::Exclusive, hardened) == 0,
                "a dependency is forgotten (I8)"
            );
            slot.remove();
        }
    }

    /// Removes up to `limit` early releases that are durable by now.
    fn forget(&mut self, limit: usize, hardened: u64) {
        for _ in 0..limit {
            match self.remembered.front() {
                Some(&(seq, key)) if seq <= hardened => {
                    self.remembered.pop_front();
                    self.remove_if_forgettable(key, hardened);
                }
                _ => break,
            }
        }
        // Free the tables that a transaction of a million rows has grown.
        if self.slots.capacity() > KEPT_SLOTS && self.slots.len() < self.slots.capacity() / 8 {
            self.slots.shrink_to(self.slots.len() * 2, |s| s.key.hash());
            self.remembered.shrink_to(self.remembered.len() * 2);
        }
    }
}

impl Rows {
    pub fn new() -> Rows {
        Rows {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hardened: AtomicU64::new(0),
            next_cleared: AtomicUsize::new(0),
        }
    }

    fn shard(&self, key: RowKey) -> MutexGuard<'_, Shard> {
        // The tables inside use the lowest and the highest bits of the hash. Neighbours are in one shard,
        // together with their group.
        self.shards[(key.group >> 32) as usize % SHARDS].lock()
    }

    fn hardened(&self) -> u64 {
        self.hardened.load(Ordering::Acquire)
    }

    /// Returns whether the owner holds the row in any mode.
    pub fn holds(&self, key: RowKey, owner: &Arc<Owner>) -> bool {
        let mut shard = self.shard(key);
        if shard.groups.mode_of(key, owner).is_some() {
            return true;
        }
        match shard.slot(key).map(|s| &s.state) {
            Some(State::One(holder, _)) => Arc::ptr_eq(holder, owner),
            Some(State::Queue(queue)) => queue.holds(owner),
            Some(State::Free) | None => false,
        }
    }

    /// Requests a row without waiting.
    pub fn request(&self, key: RowKey, owner: &Arc<Owner>, mode: RowMode, packing: Packing) -> RowAnswer {
        let mut shard = self.shard(key);
        if let Some(answer) = shard.request_in_groups(key, owner, mode, packing) {
            return answer;
        }
        let slot = shard.slot_or_insert(key);
        let request = slot.request(owner, mode);
        RowAnswer { request, home: Home::Slot, predecessor: slot.predecessor(mode, self.hardened()) }
    }

    /// Requests a row. If it is blocked, runs `before` and queues the request.
    pub fn request_or_enqueue(
        &self,
        key: RowKey,
        owner: &Arc<Owner>,
        mode: RowMode,
        before: impl FnOnce(),
    ) -> RowAnswer {
        let mut shard = self.shard(key);
        if let Some(answer) = shard.request_in_groups(key, owner, mode, Packing::Apart) {
            return answer;
        }
        let slot = shard.slot_or_insert(key);
        let request = slot.request(owner, mode);
        if request == Request::Blocked {
            before();
            let queue = slot.queue();
            queue.enqueue(owner, mode);
            queue.mark_waited_for(owner);
            queue.check_invariants(0);
            debug_assert!(queue.has_blocked_first(), "a request waits for a row that is free");
        }
        RowAnswer { request, home: Home::Slot, predecessor: slot.predecessor(mode, self.hardened()) }
    }

    /// Withdraws a waiting request. Returns false if the lock was granted meanwhile, and the sleepers to
    /// wake, whose requests may have become grantable.
    pub fn abandon(&self, key: RowKey, owner: &Arc<Owner>) -> (bool, Vec<Arc<Owner>>) {
        let hardened = self.hardened();
        let mut shard = self.shard(key);
        let Some(slot) = shard.slot(key) else { return (false, Vec::new()) };
        let State::Queue(queue) = &mut slot.state else { return (false, Vec::new()) };
        let gone = queue.dequeue(owner);
        debug_assert!(
            gone || queue.holds(owner),
            "a request that was neither granted nor queued is given up"
        );
        (gone, slot.grant(hardened))
    }

    /// Downgrades an exclusive lock to a shared one. Returns the sleepers to wake.
    pub fn weaken(&self, key: RowKey, owner: &Arc<Owner>) -> Vec<Arc<Owner>> {
        let hardened = self.hardened();
        let mut shard = self.shard(key);
        shard.move_out(key);
        let Some(slot) = shard.slot(key) else { return Vec::new() };
        match &mut slot.state {
            State::One(holder, mode) if Arc::ptr_eq(holder, owner) => *mode = RowMode::Shared,
            State::Queue(queue) => queue.weaken(owner, RowMode::Shared),
            State::Free | State::One(..) => {}
        }
        slot.grant(hardened)
    }

    /// Releases a row; with a `seq`, the row remembers it. Returns the sleepers to wake.
    pub fn release(&self, key: RowKey, owner: &Arc<Owner>, seq: Option<CommitSeq>) -> Vec<Arc<Owner>> {
        let (hardened, seq) = (self.hardened(), seq.map_or(0, |seq| seq.0));
        self.shard(key).release(key, owner, seq, hardened)
    }

    /// Releases a row that the owner holds in a group, or that has moved out of one; `None` if there is no
    /// such row. Returns whether the group was removed, and the sleepers to wake.
    pub fn release_grouped(&self, key: RowKey, owner: &Arc<Owner>) -> Option<(bool, Vec<Arc<Owner>>)> {
        let mut shard = self.shard(key);
        let released = shard.groups.release_one(key, owner)?;
        let woken = match released.has_slot {
            true => shard.release(key, owner, 0, self.hardened()),
            false => Vec::new(),
        };
        Some((released.is_last, woken))
    }

    /// Releases the rows of a group; with a `seq`, the rows remember it. Returns the sleepers to wake.
    pub fn release_group(&self, of: GroupKey, owner: &Arc<Owner>, seq: Option<CommitSeq>) -> Vec<Arc<Owner>> {
        let (hardened, seq) = (self.hardened(), seq.map_or(0, |seq| seq.0));
        let mut shard = self.shard(of.row(0));
        let Some(released) = shard.groups.release(of) else { return Vec::new() };
        debug_assert!(
            !released.held().any(|last| shard.slot(of.row(last)).is_some()),
            "a row that a group holds has a slot"
        );
        if seq > hardened {
            for key in released.held().map(|last| of.row(last)) {
                shard.slot_or_insert(key).remember(released.mode, seq);
                shard.remembered.push_back((seq, key));
            }
        }
        let moved = released.moved().map(|last| of.row(last));
        moved.flat_map(|key| shard.release(key, owner, seq, hardened)).collect()
    }

    /// Records that everything up to `seq` is durable.
    pub fn set_hardened(&self, seq: CommitSeq) {
        self.hardened.fetch_max(seq.0, Ordering::AcqRel);
        let at = self.next_cleared.fetch_add(1, Ordering::Relaxed) % SHARDS;
        self.shards[at].lock().forget(FORGET_PER_ADVANCE, seq.0);
    }

    /// Returns the owners that a waiter for this row waits for.
    pub fn blockers(&self, key: RowKey, owner: &Arc<Owner>) -> Blockers {
        match self.shard(key).slot(key).map(|s| &s.state) {
            Some(State::Queue(queue)) => queue.blockers(owner),
            _ => Blockers::default(),
        }
    }

    /// Returns the mode that an owner holds on a row, or else the mode that it waits for.
    pub fn mode_of(&self, key: RowKey, owner: &Arc<Owner>) -> Option<RowMode> {
        let mut shard = self.shard(key);
        if let Some(mode) = shard.groups.mode_of(key, owner) {
            return Some(mode);
        }
        match shard.slot(key).map(|s| &s.state) {
            Some(State::One(holder, mode)) if Arc::ptr_eq(holder, owner) => Some(*mode),
            Some(State::Queue(queue)) => {
                let mut claims = queue.holders.iter().chain(&queue.waiters);
                claims.find(|claim| Arc::ptr_eq(&claim.owner, owner)).map(|claim| claim.mode)
            }
            _ => None,
        }
    }

    /// Returns the mode that an owner waits for.
    pub fn mode_wanted(&self, key: RowKey, owner: &Arc<Owner>) -> Option<RowMode> {
        match self.shard(key).slot(key).map(|s| &s.state) {
            Some(State::Queue(queue)) => {
                queue.waiters.iter().find(|claim| Arc::ptr_eq(&claim.owner, owner)).map(|claim| claim.mode)
            }
            _ => None,
        }
    }

    /// Returns the number of rows that are locked or remembered.
    pub fn len(&self) -> usize {
        let rows = |s: &Mutex<Shard>| {
            let shard = s.lock();
            shard.slots.len() + shard.groups.rows()
        };
        self.shards.iter().map(rows).sum()
    }

    /// Returns the allocated bytes of the tables.
    pub fn table_bytes(&self) -> usize {
        let bytes = |s: &Mutex<Shard>| {
            let shard = s.lock();
            let remembered = shard.remembered.capacity() * size_of::<(u64, RowKey)>();
            shard.slots.allocation_size() + shard.groups.bytes() + remembered
        };
        self.shards.iter().map(bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_small() {
        assert!(size_of::<Slot>() <= 56, "{}", size_of::<Slot>());
    }
}
