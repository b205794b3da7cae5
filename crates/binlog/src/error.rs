//! What can go wrong with binlog files.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use cohort_base::BinlogPos;

use crate::event::DecodeError;

/// An error of the files. None of them is raised on the way from `order` to `hardened` (I6).
#[derive(Debug)]
pub enum BinlogError {
    /// The operating system refused; the caller reports it. At recovery: do not start.
    Io {
        /// What was being done, for instance "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// No space is left; the bytes are kept and written as soon as there is room. Tell the client (disk
    /// full).
    NoSpace {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// A file holds what nobody wrote. At recovery: do not start, tell the operator.
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// Where the damaged event starts.
        offset: u64,
        /// What is wrong with it.
        what: String,
    },
    /// The log goes on behind the end of a file: bytes between are lost. At recovery: do not start.
    Gap {
        /// The file that is too short.
        path: PathBuf,
        /// Where the file ends.
        end: u64,
        /// Where the log goes on.
        offset: u64,
    },
    /// A spill file is not what was sealed. At recovery: do not start.
    SpillDamaged {
        /// The spill file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The index holds a line that is no file of this binlog. At recovery: do not start.
    BadIndex {
        /// The index.
        path: PathBuf,
        /// The line.
        line: String,
    },
    /// A file whose bytes the log let go of is not there. At recovery: do not start.
    FileMissing {
        /// The file.
        path: PathBuf,
    },
    /// The index is not there, but the log says that there are files. At recovery: do not start.
    IndexMissing {
        /// The index.
        path: PathBuf,
    },
    /// The index does not name this file. Tell the client (error 1373 or 1220, as the statement goes).
    UnknownFile {
        /// The name as it was given.
        name: String,
    },
    /// An offset that is no place in the file. Tell the client.
    BadOffset {
        /// The offset as it was given.
        offset: u64,
    },
    /// A position that has not been handed over yet, in a materialiser without a thread. The caller's
    /// mistake.
    NotThere {
        /// The position asked for.
        pos: BinlogPos,
    },
    /// An earlier error stopped the writing of files; the text of it. Stop the server.
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
