//! Lock owners: their state, and the session (party) that they belong to. `table.rs` acquires and releases
//! their locks.

use std::sync::Arc;

use cohort_base::{CommitSeq, TrxId};

use crate::groups::Packing;
use crate::mode::{MetadataKey, MetadataMode};
use crate::party::{Part, Party};
use crate::row_key::RowKey;
use crate::sync::Ordering;
use crate::table::LockOwner;

/// Estimated bytes of a row lock, and of a group of row locks.
const ROW_BYTES: usize = 200;
const GROUP_BYTES: usize = 250;

impl LockOwner {
    /// Returns whether it had to wait for a row lock (the GTID flag WAITED).
    pub fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// Returns the number of metadata locks that it holds.
    pub fn names_held(&self) -> usize {
        self.shared.names.lock().len()
    }

    /// Returns whether it holds no row or range locks, has no dependency and has never waited. Then another
    /// transaction may reuse it.
    pub fn is_as_new(&self) -> bool {
        let has_locks = self.row_locks() > 0 || self.has_claims();
        !has_locks && self.depends_on == CommitSeq(0) && !self.has_waited
    }

    /// Returns whether it has inserted keys or locked ranges.
    pub(crate) fn has_claims(&self) -> bool {
        self.has_points || !self.ranges_in.is_empty()
    }

    /// Returns the estimated bytes of its keys and ranges.
    pub fn claim_bytes(&self) -> usize {
        self.point_bytes + self.shared.range_bytes.load(Ordering::Relaxed) as usize
    }

    /// Chooses where to store a new row lock: in a group if the previous request was for a neighbour.
    pub(crate) fn packing(&mut self, key: RowKey, grouped_from: usize) -> Packing {
        if self.rows.len() < grouped_from {
            return Packing::Apart;
        }
        let recent = &mut self.recent_groups[key.index.0 as usize % 4];
        match std::mem::replace(recent, key.group) == key.group {
            true => Packing::Grouped,
            false => Packing::Apart,
        }
    }

    /// Returns the transaction id.
    pub fn trx(&self) -> TrxId {
        self.shared.trx
    }

    /// Returns the newest predecessor of all locks taken (I8), `CommitSeq(0)` if none.
    pub fn depends_on(&self) -> CommitSeq {
        self.depends_on
    }

    /// Returns the estimated bytes of its row locks.
    pub fn row_lock_bytes(&self) -> usize {
        self.rows.len() * ROW_BYTES + self.groups.len() * GROUP_BYTES
    }

    /// Takes over the dependencies of another owner without taking its locks (I8).
    pub fn inherit_from(&mut self, other: &LockOwner) {
        debug_assert!(!Arc::ptr_eq(&self.shared, &other.shared), "an owner inherits from itself");
        self.depends_on = self.depends_on.max(other.depends_on);
        self.has_waited |= other.has_waited;
    }

    /// Returns the names that it has locked, with their modes.
    pub fn held_names(&self) -> Vec<(MetadataKey, MetadataMode)> {
        self.shared.names.lock().iter().map(|ticket| (ticket.name.key().clone(), ticket.mode)).collect()
    }

    /// Returns the number of row locks that it holds.
    pub fn row_locks(&self) -> usize {
        self.rows.len() + self.grouped_rows
    }

    /// Returns an upper bound of the entries that a release must visit.
    pub fn release_steps(&self) -> usize {
        self.row_locks() + self.groups.len()
    }

    /// Adds changed rows to the rollback cost, which decides on the victim of a deadlock.
    pub fn add_weight(&mut self, rows: u64) {
        self.shared.weight.fetch_add(rows, Ordering::Relaxed);
    }

    /// Makes this an owner of the session, after leaving any party it is in.
    pub fn join(&mut self, party: &Arc<Party>, part: Part) {
        self.leave();
        if part != Part::Transaction {
            self.shared.make_names_known();
        }
        debug_assert!(self.shared.wait.lock().on.is_none(), "an owner changes its session while it waits");
        party.admit(&self.shared, part);
        debug_assert!(self.shared.party.lock().is_none(), "an owner is in two sessions");
        *self.shared.party.lock() = Some((Arc::clone(party), part));
        self.part = Some(part);
    }

    /// Makes this a node of its own, whose locks are released independently of its session.
    pub fn leave(&mut self) {
        let Some(part) = self.part.take() else { return };
        if let Some((party, was)) = self.shared.party.lock().take() {
            debug_assert_eq!(was, part, "an owner leaves its session in another role");
            debug_assert!(
                party.waiting.lock().as_ref().is_none_or(|waiting| !Arc::ptr_eq(waiting, &self.shared)),
                "an owner leaves its session while it waits: a cycle over the session is not found"
            );
            party.dismiss(&self.shared, part);
        }
    }

    /// Records the mode in which a lasting owner holds the global lock.
    pub(crate) fn note_server(&self, name: &MetadataKey, mode: Option<MetadataMode>) {
        if self.part == Some(Part::Lasting)
            && *name == MetadataKey::Global
            && let Some((party, _)) = &*self.shared.party.lock()
        {
            party.note_server(mode);
        }
    }

    /// Returns whether a lasting owner of its party holds the global lock.
    pub(crate) fn has_server_of_party(&self) -> bool {
        self.part.is_some()
            && self.shared.party.lock().as_ref().is_some_and(|(party, _)| party.holds_server())
    }
}
