//! Errors of backups.

use std::fmt;
use std::io;
use std::path::PathBuf;

use cohort_binlog::BinlogError;
use cohort_engine::EngineError;
use cohort_log::LogError;

use crate::error::CheckpointError;

/// Reason why there is no backup.
#[derive(Debug)]
pub enum BackupError {
    /// Another one is running.
    Running,
    /// KILL, or the server stops.
    Interrupted,
    /// Replicas do not acknowledge what would be in the backup.
    Gated,
    /// The disk would become too full for writes.
    Space(String),
    Checkpoint(CheckpointError),
    Engine(EngineError),
    Log(LogError),
    Binlog(BinlogError),
    /// The server cannot continue the backup with this identifier.
    Parent(String),
    /// A file of the server could not be read.
    Source(PathBuf, io::Error),
    /// The sink failed.
    Sink(io::Error),
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackupError::Running => f.write_str("another backup is running"),
            BackupError::Interrupted => f.write_str("the backup was interrupted"),
            BackupError::Gated => f.write_str("replicas do not acknowledge what the backup would contain"),
            BackupError::Space(what) => write!(f, "the backup ended before writes had to be refused: {what}"),
            BackupError::Checkpoint(error) => write!(f, "checkpoint: {error}"),
            BackupError::Engine(error) => error.fmt(f),
            BackupError::Log(error) => error.fmt(f),
            BackupError::Binlog(error) => error.fmt(f),
            BackupError::Parent(id) => write!(
                f,
                "backup {id} cannot be continued: this data directory has not taken it on its present timeline, or too many \
                 others since then. Take a full backup"
            ),
            BackupError::Source(path, error) => write!(f, "{} cannot be read: {error}", path.display()),
            BackupError::Sink(error) => write!(f, "the backup cannot be written: {error}"),
        }
    }
}

impl std::error::Error for BackupError {}

impl From<LogError> for BackupError {
    fn from(error: LogError) -> BackupError {
        BackupError::Log(error)
    }
}
