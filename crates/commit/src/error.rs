//! Errors of commits and checkpoints, one variant for each reaction of the caller.

use std::fmt;
use std::sync::Arc;

use cohort_base::DomainId;
use cohort_binlog::{BinlogError, SEQ_NO_MAX};
use cohort_engine::EngineError;
use cohort_log::LogError;

use crate::commit_env::Stopped;

/// Reason why a commit could not be prepared; the transaction is still active and has to be rolled back.
#[derive(Debug)]
pub enum CommitError {
    /// No space in the log, or the disk is nearly full: error 1021 for the client, which may retry later.
    DiskFull(String),
    /// A spill file could not be written: error 3 for the client.
    Io(std::io::Error),
    /// The server is stopping, or the log failed: error 1053.
    Stopped,
    /// The GTID that the session requested is not above the last one of its domain (`gtid_strict_mode`):
    /// error 1950.
    OutOfOrderGtid(String),
    /// The domain's sequence numbers are used up, or the session requested one of the last: error 1598.
    NoSequenceNumber(DomainId),
}

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommitError::DiskFull(what) => write!(f, "disk full: {what}"),
            CommitError::Io(e) => write!(f, "cannot spill the transaction: {e}"),
            CommitError::Stopped => f.write_str("the server is stopping"),
            CommitError::OutOfOrderGtid(what) => f.write_str(what),
            CommitError::NoSequenceNumber(domain) => {
                write!(
                    f,
                    "no sequence number above {SEQ_NO_MAX} is given out, and GTID domain {domain} has come there"
                )
            }
        }
    }
}

impl std::error::Error for CommitError {}

impl From<Stopped> for CommitError {
    fn from(_: Stopped) -> CommitError {
        CommitError::Stopped
    }
}

/// Reason why a group could not be made durable; the server ends.
#[derive(Clone, Debug)]
pub enum FlushError {
    Log(LogError),
    /// The binlog's files failed, where they decide.
    Binlog(Arc<str>),
}

impl FlushError {
    pub(crate) fn binlog(error: cohort_binlog::BinlogError) -> FlushError {
        FlushError::Binlog(error.to_string().into())
    }
}

impl fmt::Display for FlushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlushError::Log(e) => write!(f, "{e}"),
            FlushError::Binlog(e) => f.write_str(e),
        }
    }
}

impl std::error::Error for FlushError {}

/// Reason why a checkpoint did not complete. The log keeps everything, so the checkpoint is retried.
#[derive(Debug)]
pub enum CheckpointError {
    Engine(EngineError),
    Binlog(cohort_binlog::BinlogError),
    Log(LogError),
    /// Replicas do not yet have what would become durable; retry later.
    Gated,
    /// The pipeline stopped.
    Stopped,
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckpointError::Engine(e) => write!(f, "{e}"),
            CheckpointError::Binlog(e) => write!(f, "{e}"),
            CheckpointError::Log(e) => write!(f, "{e}"),
            CheckpointError::Gated => f.write_str("replicas are waited for"),
            CheckpointError::Stopped => f.write_str("the commit pipeline has stopped"),
        }
    }
}

impl std::error::Error for CheckpointError {}

/// Reason why a purge failed, or removed only a part of the files.
#[derive(Debug)]
pub enum PurgeError {
    Checkpoint(CheckpointError),
    Commit(CommitError),
    Binlog(BinlogError),
}

impl fmt::Display for PurgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PurgeError::Checkpoint(error) => error.fmt(f),
            PurgeError::Commit(error) => error.fmt(f),
            PurgeError::Binlog(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PurgeError {}

impl From<BinlogError> for PurgeError {
    fn from(error: BinlogError) -> PurgeError {
        PurgeError::Binlog(error)
    }
}
