//! The branch of an XA transaction that a session works in, with the rows that it has locked.

use std::collections::HashMap;
use std::sync::Arc;

use cohort_base::{IndexId, Reservation};
use cohort_binlog::event::XaXid;
use cohort_commit::XaBranches;
use cohort_locks::RowMode;
use cohort_types::{ErrorCode, SqlResult};

use crate::active::TemporaryChanges;

/// What a row takes among those noted of a branch, besides its key.
const ROW_BYTES: usize = 64;

/// How far a branch has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XaState {
    Active,
    Idle,
    Prepared,
    /// It was rolled back, and this is what XA COMMIT answers.
    RollbackOnly(ErrorCode),
}

impl XaState {
    /// As error 1399 calls it.
    pub fn name(self) -> &'static str {
        match self {
            XaState::Active => "ACTIVE",
            XaState::Idle => "IDLE",
            XaState::Prepared => "PREPARED",
            XaState::RollbackOnly(_) => "ROLLBACK ONLY",
        }
    }
}

/// How a prepared branch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XaEnding {
    Commit,
    Rollback,
}

/// The row locks of a branch, by key space and key.
pub(crate) type NotedRows = HashMap<(IndexId, Box<[u8]>), RowMode, ahash::RandomState>;

/// The branch that a session works in.
pub(crate) struct SessionXa {
    pub(crate) xid: XaXid,
    pub(crate) state: XaState,
    /// The row locks of the branch, as the record of its PREPARE will name them.
    pub(crate) rows: NotedRows,
    /// Bytes of their keys.
    pub(crate) row_bytes: usize,
    /// What they take.
    pub(crate) memory: Reservation,
    branches: Arc<XaBranches>,
    /// Of a prepared branch: what it has changed in temporary tables, which are the session's alone. They
    /// are undone unless this session commits the branch.
    pub(crate) temporary: Option<TemporaryChanges>,
    /// The name is somebody else's by now.
    pub(crate) is_over: bool,
}

impl SessionXa {
    pub(crate) fn new(xid: XaXid, branches: Arc<XaBranches>, memory: Reservation) -> SessionXa {
        let (state, rows) = (XaState::Active, NotedRows::default());
        SessionXa { xid, state, rows, row_bytes: 0, memory, branches, temporary: None, is_over: false }
    }

    /// A row was locked, or its lock strengthened.
    pub(crate) fn note_row(&mut self, index: IndexId, key: &[u8], mode: RowMode) {
        let row_bytes = &mut self.row_bytes;
        let held = self.rows.entry((index, key.into())).or_insert_with(|| {
            *row_bytes += key.len();
            mode
        });
        *held = mode.max(*held);
    }

    /// The lock was given back.
    pub(crate) fn forget_row(&mut self, index: IndexId, key: &[u8]) {
        if self.rows.remove(&(index, key.into())).is_some() {
            self.row_bytes -= key.len();
        }
    }

    /// Charges what is noted of the rows.
    pub(crate) fn charge(&mut self) -> SqlResult<()> {
        Ok(self.memory.resize((self.row_bytes + self.rows.len() * ROW_BYTES) as u64)?)
    }

    /// The lock is a shared one from now on.
    pub(crate) fn weaken_row(&mut self, index: IndexId, key: &[u8]) {
        if let Some(mode) = self.rows.get_mut(&(index, key.into())) {
            *mode = RowMode::Shared;
        }
    }
}

/// The session leaves: a prepared branch is anybody's then, any other is over.
impl Drop for SessionXa {
    fn drop(&mut self) {
        match self.state {
            _ if self.is_over => {}
            XaState::Prepared => self.branches.detach(&self.xid),
            _ => self.branches.forget(&self.xid),
        }
    }
}

/// What XA COMMIT answers when this error has rolled the branch back.
pub(crate) fn undone_by(error: ErrorCode) -> ErrorCode {
    match error {
        ErrorCode::LockDeadlock => ErrorCode::XaRbdeadlock,
        ErrorCode::LockWaitTimeout => ErrorCode::XaRbtimeout,
        _ => ErrorCode::XaRbrollback,
    }
}
