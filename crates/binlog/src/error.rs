//! Errors of the binlog files.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use cohort_base::BinlogPos;

use crate::event::DecodeError;

/// Error of the binlog files, with the duty of the caller. None is raised between `order` and durability
/// (I6).
#[derive(Debug)]
pub enum BinlogError {
    /// The operating system refused; the caller reports it. During recovery: refuse to start.
    Io {
        /// Operation that failed, for instance "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The disk is full. The bytes are kept and written once there is space. Return "disk full" to the
    /// client.
    NoSpace {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// A file holds bytes that the server never wrote. During recovery: refuse to start, report it to the
    /// operator.
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// Offset of the damaged event.
        offset: u64,
        /// Description of the damage.
        what: String,
    },
    /// The log continues after the end of a file: bytes between them are lost. During recovery: refuse to
    /// start.
    Gap {
        /// The file that is too short.
        path: PathBuf,
        /// End of the file.
        end: u64,
        /// Offset where the log continues.
        offset: u64,
    },
    /// A spill file differs from what was sealed. During recovery: refuse to start.
    SpillDamaged {
        /// The spill file.
        path: PathBuf,
        /// Offset of the damage.
        offset: u64,
        /// Description of the damage.
        what: &'static str,
    },
    /// A line of the index does not name a file of this binlog. During recovery: refuse to start.
    BadIndex {
        /// The index.
        path: PathBuf,
        /// Contents of the line.
        line: String,
    },
    /// A file is missing whose bytes the log no longer holds. During recovery: refuse to start.
    FileMissing {
        /// The file.
        path: PathBuf,
    },
    /// The index is missing although the log says that there are files. During recovery: refuse to start.
    IndexMissing {
        /// The index.
        path: PathBuf,
    },
    /// The index does not contain this file. Return error 1373 or 1220 to the client, depending on the
    /// statement.
    UnknownFile {
        /// The name as given by the client.
        name: String,
    },
    /// The offset is not a valid position in the file. Report it to the client.
    BadOffset {
        /// The offset as given by the client.
        offset: u64,
    },
    /// The position has not been handed over yet, in a binlog file writer without a thread: a mistake of the
    /// caller.
    NotThere {
        /// The requested position.
        pos: BinlogPos,
    },
    /// An earlier error, with this text, stopped the writing of files. Stop the server.
    Failed(String),
}

impl BinlogError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> BinlogError {
        match cohort_vfs::is_no_space(&source) {
            true => BinlogError::NoSpace { path: path.to_owned() },
            false => BinlogError::Io { action, path: path.to_owned(), source },
        }
    }

    pub(crate) fn corrupt(path: &Path, offset: u64, what: DecodeError) -> BinlogError {
        BinlogError::Corrupt { path: path.to_owned(), offset, what: what.to_string() }
    }
}

impl fmt::Display for BinlogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BinlogError::Io { action, path, source } => {
                write!(f, "cannot {action} binary log file '{}': {source}", path.display())
            }
            BinlogError::NoSpace { path } => {
                write!(f, "no space left for binary log file '{}'", path.display())
            }
            BinlogError::Corrupt { path, offset, what } => write!(
                f,
                "binary log file '{}' is damaged at offset {offset}: {what}. Restore this file from a replica or a \
                 backup; or, if its events are not needed any more, move it and all older ones away and remove \
                 their lines from the index file",
                path.display()
            ),
            BinlogError::Gap { path, end, offset } => write!(
                f,
                "binary log file '{}' ends at offset {end}, but the log goes on at offset {offset}. Restore this file \
                 from a replica or a backup",
                path.display()
            ),
            BinlogError::SpillDamaged { path, offset, what } => write!(
                f,
                "spill file '{}' of a committed transaction is damaged at offset {offset}: {what}. Restore the data \
                 directory from a backup or a replica",
                path.display()
            ),
            BinlogError::BadIndex { path, line } => write!(
                f,
                "the binary log index '{}' holds a line that is not one of its files: '{line}'. Correct the line, or \
                 remove it if the file is not needed",
                path.display()
            ),
            BinlogError::FileMissing { path } => write!(f, "binary log file '{}' is missing", path.display()),
            BinlogError::IndexMissing { path } => {
                write!(f, "the binary log index '{}' is missing", path.display())
            }
            BinlogError::UnknownFile { name } => {
                write!(f, "binary log file '{name}' is not in the index")
            }
            BinlogError::BadOffset { offset } => write!(f, "{offset} is no position in the binary log file"),
            BinlogError::NotThere { pos } => {
                write!(f, "binary log position {}:{} has not been written yet", pos.file, pos.offset)
            }
            BinlogError::Failed(text) => write!(f, "writing binary log files stopped: {text}"),
        }
    }
}

impl std::error::Error for BinlogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BinlogError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
