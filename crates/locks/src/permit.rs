//! [`WritePermit`]: the proof that a transaction may be ordered now.
//!
//! The global lock ([`MetadataKey::Global`]) blocks commits: FLUSH TABLES WITH READ LOCK, BACKUP STAGE
//! BLOCK_COMMIT and SET GLOBAL read_only hold it as `SharedNoWrite`. Every commit holds it as `SharedWrite`
//! from before its prepare until it is published. A prepare requires a permit, and a logged permit is issued
//! for that lock only, so no transaction can reach the binary log without the lock.
//!
//! A session whose lasting owner already holds the global lock commits under that lock: the session has
//! locked tables for writing, or it is the one that blocks the other sessions. It releases the global lock
//! only after its own commits are published.

use crate::kill::KillFlag;
use crate::mode::{MetadataKey, MetadataMode};
use crate::table::{LockError, LockOwner, LockTable, WaitLimit};

/// Permission to order one transaction.
#[derive(Debug)]
#[must_use = "it permits one commit"]
pub struct WritePermit {
    is_for_logged: bool,
}

impl WritePermit {
    /// Returns a permit for redo of the server itself, which changes no table and is not in the binary log.
    pub fn unlogged() -> WritePermit {
        WritePermit { is_for_logged: false }
    }

    /// Returns whether the permit covers a transaction that is written to the binary log.
    pub fn is_for_logged(&self) -> bool {
        self.is_for_logged
    }
}

impl LockTable {
    /// Takes the global lock for a commit of the owner, unless the owner's session already holds it.
    pub fn permit_write(
        &self,
        owner: &mut LockOwner,
        wait: WaitLimit,
        kill: &KillFlag,
    ) -> Result<WritePermit, LockError> {
        if !owner.has_server_of_party() {
            self.lock_metadata(owner, &MetadataKey::Global, MetadataMode::SharedWrite, wait, kill)?;
        }
        debug_assert!(
            owner.has_server_of_party()
                || self.has_name(owner, &MetadataKey::Global, MetadataMode::SharedWrite),
            "a commit passes FLUSH TABLES WITH READ LOCK"
        );
        Ok(WritePermit { is_for_logged: true })
    }
}
