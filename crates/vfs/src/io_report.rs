//! Counts of the operations on files.

use std::path::PathBuf;

/// Operations of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoSum {
    pub count: u64,
    pub bytes: u64,
    /// Nanoseconds of all of them, of the shortest and of the longest.
    pub ns: u64,
    pub min_ns: u64,
    pub max_ns: u64,
}

impl IoSum {
    /// Adds operations of the same kind, or of another one.
    pub fn add(&mut self, other: &IoSum) {
        self.min_ns = match (self.count, other.count) {
            (0, _) => other.min_ns,
            (_, 0) => self.min_ns,
            _ => self.min_ns.min(other.min_ns),
        };
        self.count += other.count;
        self.bytes += other.bytes;
        self.ns += other.ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

/// Operations on one file since it was first opened, or since the last reset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileIo {
    pub path: PathBuf,
    /// Number of open handles.
    pub open: u64,
    pub reads: IoSum,
    pub writes: IoSum,
    pub syncs: IoSum,
}

/// Operations on all files.
#[derive(Clone, Debug, Default)]
pub struct IoReport {
    /// Ordered by path.
    pub files: Vec<FileIo>,
    /// Number of times that a file was opened.
    pub opened: u64,
    /// Number of opened files that are not counted.
    pub lost: u64,
}
