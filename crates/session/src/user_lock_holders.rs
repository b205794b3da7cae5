//! Holders of user locks ([`UserLockHolders`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The connection that holds each user lock (GET_LOCK), by lock name. One per server.
#[derive(Default)]
pub struct UserLockHolders(Mutex<BTreeMap<Arc<str>, u64>>);

impl UserLockHolders {
    pub(crate) fn of(&self, name: &str) -> Option<u64> {
        self.0.lock().get(name).copied()
    }

    pub(crate) fn note(&self, name: Arc<str>, connection: u64) {
        self.0.lock().insert(name, connection);
    }

    pub(crate) fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }
}
