//! What commits and checkpoints can fail with, by what the caller does about it.

use std::fmt;
use std::sync::Arc;

use cohort_base::DomainId;
use cohort_binlog::SEQ_NO_MAX;
use cohort_engine::EngineError;
use cohort_log::LogError;

use crate::seam::Stopped;

/// Why a commit could not be prepared; the transaction is still active and is to be rolled back.
#[derive(Debug)]
pub enum CommitError {
    /// No room in the log, or the disk is nearly full: error 1021 for the client, who may try again later.
    DiskFull(String),
    /// A spill file could not be written: error 3 for the client.
    Io(std::io::Error),
    /// The server is stopping, or the log failed: error 1053.
    Stopped,
    /// The GTID that the session asked for is not above its domain's last (`gtid_strict_mode`): error 1950.
    OutOfOrderGtid(String),
    /// The domain's sequence numbers are used up, or the session asked for one of the last: error 1598.
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

/// Why a group could not be made durable: the server ends.
#[derive(Clone, Debug)]
pub enum HardenError {
    Log(LogError),
    /// The binlog's files, where they decide.
    Binlog(Arc<str>),
}

impl HardenError {
    pub(crate) fn binlog(error: cohort_binlog::BinlogError) -> HardenError {
        HardenError::Binlog(error.to_string().into())
    }
}

impl fmt::Display for HardenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HardenError::Log(e) => write!(f, "{e}"),
            HardenError::Binlog(e) => f.write_str(e),
        }
    }
}

impl std::error::Error for HardenError {}

/// Why a checkpoint did not complete; the log keeps everything, so it is tried again.
#[derive(Debug)]
pub enum CheckpointError {
    Engine(EngineError),
    Binlog(cohort_binlog::BinlogError),
    Log(LogError),
    /// Replicas have not got what would become durable here; later.
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
