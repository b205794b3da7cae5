//! Groups: one transaction's row locks on neighbouring keys, as bitmaps.
//!
//! A transaction with a million row locks would fill the lock tables with slots that no other transaction
//! ever requests. So once a transaction has many row locks, further ones are grouped: locks taken one after
//! the other on keys that differ only in their last byte become bits of one *group*. A group holds up to 256
//! rows in a hundred bytes, in one or two cache lines.
//!
//! A group only records one owner, one mode and the rows. Everything else needs a slot: when another owner
//! requests a row of the group, or its owner requests it in another mode, the row *moves out* of the group
//! into a slot with the same holder and mode, and the request continues there.
//!
//! # Invariants
//! - A row that a group holds has no slot.
//! - A row that has moved out stays locked by the group's owner until the owner releases it. The group
//!   remembers such rows, and releases their slots together with the group.

use std::sync::Arc;

use hashbrown::HashTable;

use crate::mode::RowMode;
use crate::owner::Owner;
use crate::row_key::{GroupKey, RowKey};

/// Rows of a group, by the last byte of their keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bits([u64; 4]);

impl Bits {
    fn has(&self, last: u8) -> bool {
        self.0[usize::from(last / 64)] >> (last % 64) & 1 != 0
    }

    fn set(&mut self, last: u8) {
        self.0[usize::from(last / 64)] |= 1 << (last % 64);
    }

    /// Returns false if the bit was not set.
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

struct Group {
    key: GroupKey,
    owner: Arc<Owner>,
    mode: RowMode,
    held: Bits,
    moved: Bits,
}

/// Where a new row lock may be stored: in a slot of its own, or in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Apart,
    Grouped,
}

/// Outcome of a request to the groups.
pub(crate) enum Asked {
    /// The owner already holds the row in this mode or a stronger one.
    Held,
    /// The lock was granted, in an existing group of the owner.
    Added,
    /// The lock was granted, in a new group that the owner must release.
    Founded,
    /// The row was held by this owner in this mode, and has left the group. The caller must store that in a
    /// slot.
    MovedOut(Arc<Owner>, RowMode),
    /// The groups do not decide: the row's slot does.
    Unknown,
}

/// Contents of a group that its owner releases.
pub(crate) struct Released {
    pub mode: RowMode,
    held: Bits,
    moved: Bits,
}

impl Released {
    /// Returns the rows that the group held.
    pub fn held(&self) -> impl Iterator<Item = u8> + use<> {
        self.held.iter()
    }

    /// Returns the rows that have moved out into slots.
    pub fn moved(&self) -> impl Iterator<Item = u8> + use<> {
        self.moved.iter()
    }
}

/// A single row that its owner releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReleasedRow {
    /// The row had moved out: its slot must be released.
    pub has_slot: bool,
    /// The row was the last one of its group, which was removed.
    pub is_last: bool,
}

/// Groups of one shard.
#[derive(Default)]
pub(crate) struct Groups {
    table: HashTable<Group>,
}

/// A table with capacity for fewer groups than this never shrinks.
const KEPT_GROUPS: usize = 64;

impl Groups {
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    fn find(&mut self, key: RowKey) -> Option<&mut Group> {
        let of = GroupKey::of(key);
        self.table.find_mut(of.hash, |group| group.key == of)
    }

    /// Requests a row. `has_slot` returns whether the row has a slot.
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
        // A row that moved out and whose slot is gone is free again.
        group.moved.clear(key.last);
        group.held.set(key.last);
        group.check_invariants();
        Asked::Added
    }

    fn found(&mut self, key: RowKey, owner: &Arc<Owner>, mode: RowMode) {
        let mut held = Bits::default();
        held.set(key.last);
        let group =
            Group { key: GroupKey::of(key), owner: owner.clone(), mode, held, moved: Bits::default() };
        debug_assert!(
            self.table.find(group.key.hash, |other| other.key == group.key).is_none(),
            "two groups for one part of an index: the second is never found"
        );
        self.table.insert_unique(group.key.hash, group, |group| group.key.hash);
    }

    /// Moves a row out, if a group holds it. Returns the holder and its mode.
    pub fn move_out(&mut self, key: RowKey) -> Option<(Arc<Owner>, RowMode)> {
        let group = self.find(key).filter(|group| group.held.has(key.last))?;
        match group.move_out(key.last) {
            Asked::MovedOut(owner, mode) => Some((owner, mode)),
            _ => None,
        }
    }

    /// Returns the owner's mode on a row that a group holds.
    pub fn mode_of(&self, key: RowKey, owner: &Arc<Owner>) -> Option<RowMode> {
        let of = GroupKey::of(key);
        let group = self.table.find(of.hash, |group| group.key == of)?;
        (Arc::ptr_eq(&group.owner, owner) && group.held.has(key.last)).then_some(group.mode)
    }

    /// Releases one row. Returns `None` if no group of the owner has it.
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
        debug_assert!(was_held != had_moved, "a row is in a group and has left it");
        if is_last {
            entry.remove();
        }
        Some(ReleasedRow { has_slot: had_moved, is_last })
    }

    /// Releases a whole group.
    pub fn release(&mut self, key: GroupKey) -> Option<Released> {
        let entry = self.table.find_entry(key.hash, |group| group.key == key).ok()?;
        entry.get().check_invariants();
        let (Group { mode, held, moved, .. }, _) = entry.remove();
        if self.table.capacity() > KEPT_GROUPS && self.table.len() < self.table.capacity() / 8 {
            self.table.shrink_to(self.table.len() * 2, |group| group.key.hash);
        }
        Some(Released { mode, held, moved })
    }

    /// Returns the number of rows that the groups hold.
    pub fn rows(&self) -> usize {
        self.table.iter().map(|group| group.held.count()).sum()
    }

    /// Returns the allocated bytes of the table.
    pub fn bytes(&self) -> usize {
        self.table.allocation_size()
    }
}

impl Group {
    fn check_invariants(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let both = self.held.0.iter().zip(&self.moved.0).any(|(held, moved)| held & moved != 0);
        debug_assert!(!both, "a row is in a group and has left it: it would be released twice");
        debug_assert!(!self.held.is_empty() || !self.moved.is_empty(), "a group without rows is kept");
    }

    fn move_out(&mut self, last: u8) -> Asked {
        let was_held = self.held.clear(last);
        debug_assert!(was_held, "a row leaves a group that does not hold it");
        self.moved.set(last);
        self.check_invariants();
        Asked::MovedOut(self.owner.clone(), self.mode)
    }
}
