//! Warm restart: which pages are in memory is kept in a file, and read again after a start.

use std::path::PathBuf;

/// What an engine is asked to do about the pages that it has in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WarmRequest {
    /// Writes down which they are: so many percent of them, those that were used lately first.
    Dump { file: PathBuf, percent: u8 },
    /// Reads them again, beside service.
    Load { file: PathBuf },
    /// Ends that reading.
    AbortLoad,
}

/// How far a request has come. Times are microseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WarmState {
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
    /// Why.
    Failed(String),
}

/// How far the last dump and the last load have come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warmth {
    pub dump: WarmState,
    pub load: WarmState,
}
