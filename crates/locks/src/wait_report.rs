//! Reports of the current lock waits and of the last deadlock.

use std::sync::Arc;
use std::time::Instant;

use crate::owner::{Owner, WaitOn};
use crate::table::LockTable;
use crate::waits::{Deadlock, DeadlockMember, LockWait, WaitedFor};

impl LockTable {
    /// Returns all current waits.
    pub fn waits(&self) -> Vec<LockWait> {
        let waiting: Vec<Arc<Owner>> = self.waiting.lock().values().cloned().collect();
        waiting.iter().filter_map(|owner| self.wait_of(owner)).collect()
    }

    /// Returns the last deadlock since the server started.
    pub fn last_deadlock(&self) -> Option<Deadlock> {
        self.last_deadlock.lock().clone()
    }

    fn wait_of(&self, owner: &Arc<Owner>) -> Option<LockWait> {
        let on = owner.waits_on()?;
        let waited = owner.wait.lock().since?.elapsed();
        let blockers = match &on {
            WaitOn::Row(key) => {
                let blockers = self.rows.blockers(*key, owner);
                let all = blockers.holders.into_iter().chain(blockers.waiters);
                all.map(|other| (other.trx, self.rows.mode_of(*key, &other))).collect()
            }
            WaitOn::Name(name) => {
                let blockers = name.blockers(owner);
                blockers.holders.into_iter().chain(blockers.waiters).map(|other| (other.trx, None)).collect()
            }
            WaitOn::Range(index) => {
                let blockers = self.ranges.blockers(*index, owner);
                blockers.holders.into_iter().map(|other| (other.trx, None)).collect()
            }
        };
        Some(LockWait { trx: owner.trx, waited, lock: self.described(owner, &on)?, blockers })
    }

    fn described(&self, owner: &Arc<Owner>, on: &WaitOn) -> Option<WaitedFor> {
        Some(match on {
            WaitOn::Row(key) => {
                let mode = self.rows.mode_wanted(*key, owner)?;
                let bytes = owner.wait.lock().key.clone();
                WaitedFor::Row { index: key.index, hash: key.hash(), key: bytes, mode }
            }
            WaitOn::Name(name) => WaitedFor::Name(name.key().clone()),
            WaitOn::Range(index) => {
                WaitedFor::Range { index: *index, wish: self.ranges.wish_of(*index, owner)? }
            }
        })
    }

    /// Saves a cycle that is about to be broken.
    pub(crate) fn note_deadlock(&self, cycle: &[Arc<Owner>], victim: &Owner) {
        debug_assert!(
            cycle.iter().any(|owner| std::ptr::eq(&**owner, victim)),
            "the victim is not in the cycle: it stays closed"
        );
        let member = |owner: &Arc<Owner>| DeadlockMember {
            trx: owner.trx,
            lock: owner.waits_on().and_then(|on| self.described(owner, &on)),
        };
        let members = cycle.iter().map(member).collect();
        *self.last_deadlock.lock() = Some(Deadlock { at: Instant::now(), members, victim: victim.trx });
    }
}
