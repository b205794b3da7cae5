//! [`WritePermit`]: the proof that a transaction may be ordered now.
//!
//! The server's name keeps commits out: FLUSH TABLES WITH READ LOCK, BACKUP STAGE BLOCK_COMMIT and SET GLOBAL
//! read_only hold it as `SharedNoWrite`, and every commit holds it as `SharedWrite` from before it is
//! prepared until it is published. A commit is prepared with a permit, and a permit is had for that lock
//! alone; so there is no way to the binary log that passes by it.
//!
//! A session whose lasting owner has the name commits under that lock: it has locked tables for writing, or
//! it keeps the others out itself. It gives the name back only when what it has committed is published.

use crate::mode::{MetadataMode, NameKey};
use crate::owner::{KillFlag, LockOwner};
use crate::table::{LockError, LockTable, WaitLimit};

/// The permission to have one transaction ordered.
#[derive(Debug)]
#[must_use = "it permits one commit"]
pub struct WritePermit {
    is_for_logged: bool,
}

impl WritePermit {
    /// For redo of the server itself that changes no table and is not in the binary log.
    pub fn unlogged() -> WritePermit {
        WritePermit { is_for_logged: false }
    }

    /// Whether it permits what the binary log gets.
    pub fn is_for_logged(&self) -> bool {
        self.is_for_logged
    }
}

impl LockTable {
    /// Takes the server's name for a commit of the owner, unless its session has it.
    pub fn permit_write(
        &self,
        owner: &mut LockOwner,
        wait: WaitLimit,
        kill: &KillFlag,
    ) -> Result<WritePermit, LockError> {
        if !owner.has_server_of_party() {
            self.lock_name(owner, &NameKey::Global, MetadataMode::SharedWrite, wait, kill)?;
        }
        Ok(WritePermit { is_for_logged: true })
    }
}
