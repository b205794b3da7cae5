//! The server's commit path over the real log, binlog and participants. Drafted: the calls sessions make.

use std::fmt;
use std::sync::Arc;

use cohort_base::CommitSeq;
use cohort_engine::ReadView;

use crate::request::{CommitRequest, Prepared};

/// Why a commit could not be prepared; the transaction is still active and is to be rolled back.
#[derive(Debug)]
pub enum CommitError {
    /// No room in the log, or the disk is nearly full: error 1021 for the client, who may try again later.
    DiskFull(String),
    /// A spill file could not be written: error 3 or 1026 for the client.
    Io(std::io::Error),
    /// The server is stopping, or the log failed: error 1053.
    Stopped,
    /// The GTID that the session asked for is not above its domain's last (`gtid_strict_mode`): error 1950.
    OutOfOrderGtid(String),
}

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommitError::DiskFull(what) => write!(f, "disk full: {what}"),
            CommitError::Io(e) => write!(f, "cannot spill the transaction: {e}"),
            CommitError::Stopped => f.write_str("the server is stopping"),
            CommitError::OutOfOrderGtid(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for CommitError {}

/// Told once, by whoever published the awaited transaction. Must be quick and must not call back into the coordinator.
pub trait Wake: Send + Sync {
    /// The transaction is published, and everything before it.
    fn published(self: Arc<Self>);
}

/// The commit path, shared by all sessions.
pub struct Coordinator {
    _private: (),
}

impl Coordinator {
    /// The newest published state (I5): what a statement or transaction that starts now reads.
    pub fn read_view(&self) -> ReadView {
        todo!()
    }

    /// The newest published transaction.
    pub fn published(&self) -> CommitSeq {
        todo!()
    }

    /// Reserves the log room and syncs what was spilled; the last call that can fail (I6). May wait.
    pub fn prepare(&self, request: CommitRequest) -> Result<Prepared, (CommitError, Box<CommitRequest>)> {
        let _ = request;
        todo!()
    }

    /// Takes the transaction's place in the one order (I1): its writes become visible to `Latest` reads, its locks go.
    /// Never waits for the disk. The reply must be held until the returned position is published (I4).
    pub fn order(&self, prepared: Prepared) -> CommitSeq {
        let _ = prepared.request;
        todo!()
    }

    /// Flushes what is ordered if nobody does. A worker that ordered a transaction calls this once before it goes on.
    pub fn lead(&self) {
        todo!()
    }

    /// Blocks until `seq` is published, flushing itself if nobody does. For callers that cannot hold a reply back.
    pub fn wait_published(&self, seq: CommitSeq) -> Result<(), CommitError> {
        let _ = seq;
        todo!()
    }

    /// Has `wake` told when `seq` is published; false if it is already (then nothing is told).
    pub fn when_published(&self, seq: CommitSeq, wake: Arc<dyn Wake>) -> bool {
        let _ = (seq, wake);
        todo!()
    }
}
