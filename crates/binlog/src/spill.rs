//! Spill files.
use std::io;
use std::path::Path;

use cohort_vfs::SharedFs;

use crate::SpilledChunk;

/// A finished cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sealed {
    /// Events without checksums, one after the other.
    Memory {
        /// The events.
        bytes: Vec<u8>,
        /// Their number.
        events: u64,
    },
    /// In a spill file, which is durable.
    File {
        /// File name inside the spill directory.
        name: String,
        /// Number of events.
        events: u64,
        /// Their length without checksums.
        event_bytes: u64,
    },
}

/// The directory of spill files.
pub struct SpillDir {}

impl SpillDir {
    /// Opens (and makes) the directory.
    pub fn open(_fs: SharedFs, _dir: &Path) -> io::Result<SpillDir> {
        todo!()
    }

    /// Hands the bytes of a spilled chunk, positions and checksums filled in, to `write` in pieces of bounded size,
    /// in order, each with its file offset. Used by the materialiser and by recovery.
    pub fn copy_spilled(
        &self,
        _chunk: &SpilledChunk,
        _start_offset: u64,
        _write: &mut dyn FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        todo!()
    }

    /// Removes a file that is not needed any more.
    pub fn remove(&self, _name: &str) -> io::Result<()> {
        todo!()
    }

    /// Removes all files but these: at start, what no commit record in the log refers to.
    pub fn retain(&self, _names: &[String]) -> io::Result<()> {
        todo!()
    }
}
