//! Buffer pool dump and load: the list of pages in memory is saved to a file and read back after a restart.

use std::path::PathBuf;

/// A request to dump or load the list of pages in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolDumpRequest {
    /// Writes the list: `percent` percent of the pages, the recently used ones first.
    Dump { file: PathBuf, percent: u8 },
    /// Reads the listed pages back in the background.
    Load { file: PathBuf },
    /// Stops a running load.
    AbortLoad,
}

/// Progress of a request. Times are microseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PoolDumpState {
    #[default]
    NotStarted,
    Running {
        done: usize,
        of: usize,
    },
    Completed {
        pages: usize,
        at_us: u64,
    },
    Aborted {
        done: usize,
        of: usize,
        at_us: u64,
    },
    /// The reason.
    Failed(String),
}

/// Progress of the last dump and the last load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolDumpStates {
    pub dump: PoolDumpState,
    pub load: PoolDumpState,
}
