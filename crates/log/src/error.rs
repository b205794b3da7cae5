//! Errors of the log, one variant for each reaction of the caller.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::Lsn;

/// Reason why the log has no space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullCause {
    /// The disk has no space for another segment.
    Disk,
    /// The unreleased part of the log has reached `LogOptions::bytes_max`; a checkpoint frees space.
    Cap,
}

/// An error of the log. Each variant says what the caller must do.
#[derive(Clone, Debug)]
pub enum LogError {
    /// Refuse the transaction (nothing was ordered) or retry later.
    Full(FullCause),
    /// Spill the payload to a file and log a reference to it.
    RecordTooLarge { bytes: u64, bytes_max: u64 },
    /// Stop the server: an earlier write or sync failed, so the contents of the disk are unknown. Never
    /// retried.
    Poisoned { cause: Arc<str> },
    /// Start reading at a later LSN: the log was released up to `retained`.
    Released { asked: Lsn, retained: Lsn },
    /// Refuse to start: durable bytes are damaged or missing. `cure` is an instruction for the administrator.
    Corrupt { file: PathBuf, offset: u64, what: &'static str, cure: &'static str },
    /// Refuse to start: the file was written by another version of the program.
    Version { file: PathBuf, found: u32, known: u32 },
    /// Refuse to start: another process has the log open.
    InUse { file: PathBuf },
    /// Refuse to start: the operating system refused an operation while the log was being opened.
    Io { file: PathBuf, op: &'static str, source: Arc<io::Error> },
}

impl LogError {
    pub(crate) fn io(file: &Path, op: &'static str, source: io::Error) -> LogError {
        LogError::Io { file: file.to_path_buf(), op, source: Arc::new(source) }
    }

    /// Returns whether the log is only full: the transaction may be refused and the server continues.
    pub fn is_full(&self) -> bool {
        matches!(self, LogError::Full(_))
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Full(FullCause::Disk) => {
                f.write_str("the disk is full: no space for another log segment")
            }
            LogError::Full(FullCause::Cap) => {
                f.write_str("the log has reached its size limit; it waits for a checkpoint")
            }
            LogError::RecordTooLarge { bytes, bytes_max } => {
                write!(f, "a log record of {bytes} bytes is over the limit of {bytes_max} bytes")
            }
            LogError::Poisoned { cause } => write!(f, "the log stopped after a failed operation: {cause}"),
            LogError::Released { asked, retained } => {
                write!(f, "LSN {asked} was released; the log starts at LSN {retained}")
            }
            LogError::Corrupt { file, offset, what, cure } => {
                write!(f, "{} is damaged at offset {offset}: {what}; {cure}", file.display())
            }
            LogError::Version { file, found, known } => {
                write!(f, "{} has format version {found}; this program knows version {known}", file.display())
            }
            LogError::InUse { file } => write!(f, "{} is in use by another process", file.display()),
            LogError::Io { file, op, source } => write!(f, "{op} of {} failed: {source}", file.display()),
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LogError::Io { source, .. } => Some(source.as_ref()),
            _ => None,
        }
    }
}
