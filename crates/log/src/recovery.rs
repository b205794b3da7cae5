//! Reading the log after a stop or a crash.

use std::path::Path;

use cohort_base::Lsn;
use cohort_vfs::World;

use crate::{Log, LogError, LogOptions, Record};

/// In which state the log was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// There was none; it has been made.
    Created,
    /// It was closed by [`Log::close`].
    Clean,
    /// It was not closed.
    AfterCrash,
}

/// The log while it is read; becomes a [`Log`].
pub struct Recovery {}

impl Recovery {
    /// Opens the log in a directory, or makes it.
    pub fn open(_world: &World, _dir: &Path, _options: LogOptions) -> Result<Recovery, LogError> {
        todo!()
    }

    /// In which state the log was found.
    pub fn opened(&self) -> Opened {
        todo!()
    }

    /// The last checkpoint: where [`Recovery::next`] starts, and the payload given to [`Log::checkpoint`] (empty
    /// if there was none).
    pub fn checkpoint(&self) -> (Lsn, &[u8]) {
        todo!()
    }

    /// The next record in log order; none at the end of the log. A torn tail ends the log, damage is an error.
    #[allow(clippy::should_implement_trait)] // the record borrows from self
    pub fn next(&mut self) -> Result<Option<Record<'_>>, LogError> {
        todo!()
    }

    /// Cuts the torn tail and opens the log for appending. Reads to the end first if `next` was not called until
    /// it said none.
    pub fn finish(self) -> Result<Log, LogError> {
        todo!()
    }
}
