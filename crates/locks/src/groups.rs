//! Groups: the row locks that one transaction has on neighbouring keys, as bits.
//!
//! A transaction of a million rows would fill the tables of row locks with slots that nobody ever asks for.
//! So once a transaction has many row locks, those that it takes one after the other on keys that differ in
//! their last byte only are bits of one *group*: 256 of them in a hundred bytes, and in one cache line or
//! two.
//!
//! A group only says who holds which rows in one mode. Whatever else happens to a row needs a slot: as soon
//! as anybody else asks for it, or its owner for another mode, the row *moves* out of the group into a slot
//! that says the same, and goes on there.
//!
//! # Invariants
//! - A row that a group holds has no slot.
//! - A row that has moved out is held by the group's owner until that gives it back: the group remembers it,
//!   and its slot goes with the group.

use std::sync::Arc;

use cohort_base::IndexId;
use hashbrown::HashTable;

use crate::mode::RowMode;
use crate::owner::Owner;
use crate::rows::RowKey;

/// The rows of a group, by the last byte of their keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bits([u64; 4]);

impl Bits {
    fn has(&self, last: u8) -> bool {
        self.0[usize::from(last / 64)] >> (last % 64) & 1 != 0
    }

    fn set(&mut self, last: u8) {
        self.0[usize::from(last / 64)] |= 1 << (last % 64);
    }

    /// False if it was not set.
    fn clear(&mut self, last: u8) -> bool {
        let had = self.has(last);
        self.0[usize::from(last / 64)] &= !(1 << (last % 64));
        had
    }

    fn is_empty(self) -> bool {
        self == Bits::default()
    }

    fn iter(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(move |last| self.has(*last))
    }

    fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// Keys that differ in their last byte only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupKey {
    hash: u64,
    index: IndexId,
}

impl GroupKey {
    pub fn of(key: RowKey) -> GroupKey {
        GroupKey { hash: key.group, index: key.index }
    }

    pub fn row(self, last: u8) -> RowKey {
        RowKey { group: self.hash, index: self.index, last }
    }
}

struct Group {
    key: GroupKey,
    owner: Arc<Owner>,
    mode: RowMode,
    held: Bits,
    moved: Bits,
}

/// Whether a row lock that is new may go into a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Apart,
    Grouped,
}

/// What the groups say to a request.
pub(crate) enum Asked {
    /// The owner has the row in this mode or a stronger one.
    Held,
    /// The owner has the row now, in a group that it had.
    Added,
    /// The same in a new group, which it has to give back.
    Founded,
    /// The row was held here by this owner in this mode, and is no more: a slot has to say that.
    MovedOut(Arc<Owner>, RowMode),
    /// Nothing: the row's slot has the answer.
    Unknown,
}

/// What a transaction gives back with a group.
pub(crate) struct Released {
    pub mode: RowMode,
    held: Bits,
    moved: Bits,
}

impl Released {
    /// The rows that the group held.
    pub fn held(&self) -> impl Iterator<Item = u8> + use<> {
        self.held.iter()
    }

    /// The rows that have slots.
    pub fn moved(&self) -> impl Iterator<Item = u8> + use<> {
        self.moved.iter()
    }
}

/// One row that a transaction has given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReleasedRow {
    /// It had moved out: its slot is to be released.
    pub has_slot: bool,
    /// It was the last of its group, which is gone.
    pub is_last: bool,
}

/// The groups of a shard.
#[derive(Default)]
pub(crate) struct Groups {
    table: HashTable<Group>,
}

/// A table that has room for fewer groups than this keeps it.
const KEPT_GROUPS: usize = 64;

impl Groups {
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    fn find(&mut self, key: RowKey) -> Option<&mut Group> {
        let of = GroupKey::of(key);
        self.table.find_mut(of.hash, |group| group.key == of)
    }

    /// A request for a row. `has_slot` says whether the row has one.
    pub fn request(
        &mut self,
        key: RowKey,
        owner: &Arc<Owner>,
        mode: RowMode,
        packing: Packing,
        has_slot: impl FnOnce() -> bool,
    ) -> Asked {
        let Some(group) = self.find(key) else {
            if packing == Packing::Apart || has_slot() {
                return Asked::Unknown;
            }
            self.found(key, owner, mode);
            return Asked::Founded;
        };
        let is_own = Arc::ptr_eq(&group.owner, owner);
        if group.held.has(key.last) {
            if is_own && group.mode >= mode {
                return Asked::Held;
            }
            return group.move_out(key.last);
        }
        let fits = is_own && group.mode == mode && packing == Packing::Grouped;
        if !fits || has_slot() {
            return Asked::Unknown;
        }
        // What moved out once, and has no slot any more, is free.
        group.moved.clear(key.last);
        group.held.set(key.last);
        Asked::Added
    }

    fn found(&mut self, key: RowKey, owner: &Arc<Owner>, mode: RowMode) {
        let mut held = Bits::default();
        held.set(key.last);
        let group =
            Group { key: GroupKey::of(key), owner: owner.clone(), mode, held, moved: Bits::default() };
        self.table.insert_unique(group.key.hash, group, |group| group.key.hash);
    }

    /// Moves a row out, if a group holds it.
    pub fn move_out(&mut self, key: RowKey) -> Option<(Arc<Owner>, RowMode)> {
        let group = self.find(key).filter(|group| group.held.has(key.last))?;
        match group.move_out(key.last) {
            Asked::MovedOut(owner, mode) => Some((owner, mode)),
            _ => None,
        }
    }

    /// The owner's lock on a row that a group holds.
    pub fn mode_of(&self, key: RowKey, owner: &Arc<Owner>) -> Option<RowMode> {
        let of = GroupKey::of(key);
        let group = self.table.find(of.hash, |group| group.key == of)?;
        (Arc::ptr_eq(&group.owner, owner) && group.held.has(key.last)).then_some(group.mode)
    }

    /// Gives one row back. None: no group of the owner knows it.
    pub fn release_one(&mut self, key: RowKey, owner: &Arc<Owner>) -> Option<ReleasedRow> {
        let of = GroupKey::of(key);
        let mut entry = self.table.find_entry(of.hash, |group| group.key == of).ok()?;
        let group = entry.get_mut();
        if !Arc::ptr_eq(&group.owner, owner) {
            return None;
        }
        let was_held = group.held.clear(key.last);
        let had_moved = !was_held && group.moved.clear(key.last);
        if !was_held && !had_moved {
            return None;
        }
        let is_last = group.held.is_empty() && group.moved.is_empty();
        if is_last {
            entry.remove();
        }
        Some(ReleasedRow { has_slot: had_moved, is_last })
    }

    /// Gives a whole group back.
    pub fn release(&mut self, key: GroupKey) -> Option<Released> {
        let entry = self.table.find_entry(key.hash, |group| group.key == key).ok()?;
        let (Group { mode, held, moved, .. }, _) = entry.remove();
        if self.table.capacity() > KEPT_GROUPS && self.table.len() < self.table.capacity() / 8 {
            self.table.shrink_to(self.table.len() * 2, |group| group.key.hash);
        }
        Some(Released { mode, held, moved })
    }

    /// Rows that groups hold.
    pub fn rows(&self) -> usize {
        self.table.iter().map(|group| group.held.count()).sum()
    }

    /// Bytes of the table.
    pub fn bytes(&self) -> usize {
        self.table.allocation_size()
    }
}

impl Group {
    fn move_out(&mut self, last: u8) -> Asked {
        self.held.clear(last);
        self.moved.set(last);
        Asked::MovedOut(self.owner.clone(), self.mode)
    }
}
