//! Result of checking a relay log.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::marks::Acknowledged;
use crate::place::RelayPlace;

/// The reason why a relay log cannot be used: one of its files, and the problem with it.
#[derive(Debug)]
pub struct Unsound {
    pub path: PathBuf,
    pub what: String,
}

impl Unsound {
    pub(crate) fn new(path: &Path, what: impl fmt::Display) -> Unsound {
        Unsound { path: path.to_owned(), what: what.to_string() }
    }

    pub(crate) fn io(path: &Path) -> impl Fn(std::io::Error) -> Unsound + '_ {
        move |error| match error.kind() {
            ErrorKind::NotFound => Unsound::new(path, "is missing"),
            _ => Unsound::new(path, format_args!("cannot be read: {error}")),
        }
    }
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "relay log file '{}' {}", self.path.display(), self.what)
    }
}

/// The result of a check.
pub struct Survey {
    pub(crate) files: Vec<RelayFile>,
    /// The index names a marks file.
    pub has_marks: bool,
    /// The acknowledged position. If the receiver was interrupted, it is the end of all complete events.
    pub acknowledged: Acknowledged,
    /// The oldest listed files are missing: they were applied, or are lost.
    pub lacks_first: bool,
    /// The part of the newest file to cut off.
    pub torn: Option<Torn>,
}

/// A torn write at the end of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    pub path: PathBuf,
    pub number: u32,
    /// End of the complete events.
    pub whole: u64,
    /// End of the file.
    pub length: u64,
    pub what: String,
}

impl Survey {
    /// Returns the number of the oldest file.
    pub fn first(&self) -> u32 {
        self.files.first().map_or(0, |file| file.number)
    }

    /// Returns the position after the last complete event.
    pub fn end(&self) -> RelayPlace {
        self.files
            .last()
            .map_or_else(RelayPlace::default, |file| RelayPlace { file: file.number, offset: file.bytes })
    }
}

/// Files named by the index.
#[derive(Default)]
pub(crate) struct Listed {
    pub numbers: Vec<u32>,
    /// The index names a marks file, so events were acknowledged.
    pub has_marks: bool,
}

/// A file and its valid length. Bytes after that may be left from a failed write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RelayFile {
    pub number: u32,
    pub bytes: u64,
    /// Its last event names the next file, and the whole file is durable.
    pub is_closed: bool,
}
