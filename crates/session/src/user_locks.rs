//! User locks: GET_LOCK and related functions.
//!
//! A session's user locks belong to a separate lock owner, next to that of its transactions. They survive
//! transactions and end with the session. In the wait-for graph they count as locks of the session, so cycles
//! through any mix of locks are found. If GET_LOCK is the victim of a deadlock, it gets error 1213; as in
//! MariaDB, its transaction continues.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cohort_base::{Budget, ConnectionId, Reservation};
use cohort_locks::{KillFlag, LockError, LockOwner, MetadataKey, MetadataMode, Part, Party, WaitLimit};
use cohort_trx::lock_error;
use cohort_types::SqlResult;

use crate::database::Database;

/// Memory per lock in addition to its name, counted for both places: here and in the list of all holders.
const LOCK_BYTES: usize = 256;

/// The user locks of one session.
pub struct UserLocks {
    db: Arc<Database>,
    connection: u64,
    party: Arc<Party>,
    held: RefCell<Held>,
}

struct Held {
    /// The lock owner, while the session has user locks.
    owner: Option<LockOwner>,
    /// How often the session has taken each lock.
    counts: BTreeMap<Arc<str>, u64>,
    memory: Reservation,
}

impl UserLocks {
    pub(crate) fn new(
        db: Arc<Database>,
        connection: u64,
        party: Arc<Party>,
        memory: Arc<Budget>,
    ) -> UserLocks {
        let held = Held { owner: None, counts: BTreeMap::new(), memory: Reservation::new(memory) };
        UserLocks { db, connection, party, held: RefCell::new(held) }
    }

    /// Exchanges the held locks with those of another state of the same connection.
    pub(crate) fn exchange(&self, other: &UserLocks) {
        self.held.swap(&other.held);
    }

    /// Takes a lock, for GET_LOCK. Returns whether it was granted in time.
    pub(crate) fn lock(&self, name: &str, timeout: Duration, kill: &KillFlag) -> SqlResult<bool> {
        // The borrow may last for the wait: only this session uses its own locks.
        let mut held = self.held.borrow_mut();
        if let Some(count) = held.counts.get_mut(name) {
            *count += 1;
            return Ok(true);
        }
        let bytes = (LOCK_BYTES + 2 * name.len()) as u64;
        held.memory.grow(bytes)?;
        let name: Arc<str> = name.into();
        let db = &self.db;
        let owner = held.owner.get_or_insert_with(|| {
            let mut owner = db.locks.owner(db.trx_ids.next());
            owner.join(&self.party, Part::Side);
            owner
        });
        let key = MetadataKey::User(Arc::clone(&name));
        let mut ask = |wait| db.locks.lock_metadata(owner, &key, MetadataMode::Exclusive, wait, kill);
        let taken = match ask(WaitLimit::NoWait) {
            Err(LockError::Timeout | LockError::NoWait) if !timeout.is_zero() => {
                let mut wait = || ask(WaitLimit::For(timeout));
                match db.processes.get(ConnectionId(self.connection)) {
                    Some(process) => process.while_idling("User lock", db.clock.wall_us(), wait),
                    None => wait(),
                }
            }
            taken => taken,
        };
        match taken {
            Ok(()) => {
                db.user_locks.note(Arc::clone(&name), self.connection);
                held.counts.insert(name, 1);
                Ok(true)
            }
            Err(error) => {
                held.memory.shrink(bytes);
                held.drop_unused_owner();
                match error {
                    LockError::Timeout | LockError::NoWait => Ok(false),
                    LockError::Deadlock => {
                        self.db.note_deadlock();
                        Err(lock_error(error).keeping_transaction())
                    }
                    LockError::Killed(_) => Err(lock_error(error)),
                }
            }
        }
    }

    /// Releases a lock, for RELEASE_LOCK. Returns whether this session held it, or `None` if it is not held
    /// at all.
    pub(crate) fn unlock(&self, name: &str) -> Option<bool> {
        let mut held = self.held.borrow_mut();
        let Some(count) = held.counts.get_mut(name) else {
            return self.db.user_locks.of(name).map(|_| false);
        };
        *count -= 1;
        if *count == 0 {
            self.give_back(&mut held, name);
        }
        Some(true)
    }

    fn give_back(&self, held: &mut Held, name: &str) {
        held.counts.remove(name);
        held.memory.shrink((LOCK_BYTES + 2 * name.len()) as u64);
        self.db.user_locks.forget(name);
        if let Some(owner) = &mut held.owner {
            self.db.locks.unlock_name(owner, &MetadataKey::User(name.into()));
        }
        held.drop_unused_owner();
    }

    /// Releases all locks, for RELEASE_ALL_LOCKS. Returns their number, counting each as often as it was
    /// taken.
    pub(crate) fn unlock_all(&self) -> u64 {
        let mut held = self.held.borrow_mut();
        let names: Vec<Arc<str>> = held.counts.keys().cloned().collect();
        let count = held.counts.values().sum();
        names.iter().for_each(|name| self.give_back(&mut held, name));
        count
    }

    /// Returns the connection that holds a lock, for IS_USED_LOCK.
    pub(crate) fn holder(&self, name: &str) -> Option<u64> {
        self.db.user_locks.of(name)
    }
}

impl Held {
    /// Drops the owner when there are no user locks left, so that the session does not count as one with
    /// several owners and skips needless deadlock searches.
    fn drop_unused_owner(&mut self) {
        if self.counts.is_empty() {
            self.owner = None;
        }
    }
}

impl Drop for UserLocks {
    fn drop(&mut self) {
        self.unlock_all();
    }
}
