//! The XA branch that a session works in, with the rows that it has locked.

use std::collections::HashMap;
use std::sync::Arc;

use cohort_base::{IndexId, Reservation};
use cohort_binlog::event::XaXid;
use cohort_commit::XaBranches;
use cohort_locks::RowMode;
use cohort_types::{ErrorCode, SqlResult};

use crate::active::TemporaryChanges;

/// Estimated bytes of a noted row lock, without its key.
const ROW_BYTES: usize = 64;

/// State of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XaState {
    Active,
    Idle,
    Prepared,
    /// It was rolled back; XA COMMIT returns this error.
    RollbackOnly(ErrorCode),
}

impl XaState {
    /// Returns the name used in error 1399.
    pub fn name(self) -> &'static str {
        match self {
            XaState::Active => "ACTIVE",
            XaState::Idle => "IDLE",
            XaState::Prepared => "PREPARED",
            XaState::RollbackOnly(_) => "ROLLBACK ONLY",
        }
    }
}

/// Outcome of a prepared branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XaEnding {
    Commit,
    Rollback,
}

/// Row locks of a branch, by index and key.
pub(crate) type NotedRows = HashMap<(IndexId, Box<[u8]>), RowMode, ahash::RandomState>;

/// The branch that a session works in.
pub(crate) struct SessionXa {
    pub(crate) xid: XaXid,
    pub(crate) state: XaState,
    /// Row locks of the branch, as the record of its PREPARE will list them.
    pub(crate) rows: NotedRows,
    /// Bytes of their keys.
    pub(crate) row_bytes: usize,
    /// Memory of the noted row locks.
    pub(crate) memory: Reservation,
    branches: Arc<XaBranches>,
    /// For a prepared branch: its changes of temporary tables, which belong to the session. They are undone
    /// unless this session commits the branch.
    pub(crate) temporary: Option<TemporaryChanges>,
    /// The branch has ended; its name may be in use again.
    pub(crate) is_over: bool,
}

impl SessionXa {
    pub(crate) fn new(xid: XaXid, branches: Arc<XaBranches>, memory: Reservation) -> SessionXa {
        let (state, rows) = (XaState::Active, NotedRows::default());
        SessionXa { xid, state, rows, row_bytes: 0, memory, branches, temporary: None, is_over: false }
    }

    /// Records that a row was locked, or its lock upgraded.
    pub(crate) fn note_row(&mut self, index: IndexId, key: &[u8], mode: RowMode) {
        let row_bytes = &mut self.row_bytes;
        let held = self.rows.entry((index, key.into())).or_insert_with(|| {
            *row_bytes += key.len();
            mode
        });
        *held = mode.max(*held);
    }

    /// Records that the lock was released.
    pub(crate) fn forget_row(&mut self, index: IndexId, key: &[u8]) {
        if self.rows.remove(&(index, key.into())).is_some() {
            self.row_bytes -= key.len();
        }
    }

    /// Charges the memory of the noted row locks.
    pub(crate) fn charge(&mut self) -> SqlResult<()> {
        Ok(self.memory.resize((self.row_bytes + self.rows.len() * ROW_BYTES) as u64)?)
    }

    /// Records that the lock was downgraded to a shared one.
    pub(crate) fn downgrade_row(&mut self, index: IndexId, key: &[u8]) {
        if let Some(mode) = self.rows.get_mut(&(index, key.into())) {
            *mode = RowMode::Shared;
        }
    }
}

/// Called when the session leaves the branch: a prepared branch can then be ended by any session; any other
/// branch ends.
impl Drop for SessionXa {
    fn drop(&mut self) {
        match self.state {
            _ if self.is_over => {}
            XaState::Prepared => self.branches.detach(&self.xid),
            _ => self.branches.forget(&self.xid),
        }
    }
}

/// Returns the error of XA COMMIT after this error has rolled back the branch.
pub(crate) fn xa_error_for(error: ErrorCode) -> ErrorCode {
    match error {
        ErrorCode::LockDeadlock => ErrorCode::XaRbdeadlock,
        ErrorCode::LockWaitTimeout => ErrorCode::XaRbtimeout,
        _ => ErrorCode::XaRbrollback,
    }
}
