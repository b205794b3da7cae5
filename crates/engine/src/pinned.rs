//! What a backup copies of a participant.
//!
//! # The life of a pin
//! ```text
//! Participant::pin   no checkpoint runs; the newest one is where recovery of the copy will begin
//!   files()          the files of that checkpoint; copied while commits, checkpoints and bulk loads go on
//!   cut()            the order stage is held, and everything ordered is durable: the end of the copy
//!   rest()           still no checkpoint since `cut`; what recovery lacks: files that the log does not replace
//! dropped            the participant may reuse the space
//! ```
//! The copy has to be a state that a crash could leave: the files of a checkpoint, the files of the bulk loads
//! since then, and the log from that checkpoint to the cut. A file of `rest` may be younger than the
//! checkpoint, because redo is absolute: replaying older redo over it, and then the newer, gives the newest
//! values. It must not contain anything of a transaction after the cut, which the log of the copy lacks.
//!
//! A participant whose files are small, or immutable, has everything in `rest`.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use cohort_vfs::SharedFs;

use crate::checkpoint_file;
use crate::traits::EngineError;

/// Files of a participant that do not change while the value exists.
pub trait PinnedFiles: Send {
    /// Returns what to copy first. Called once.
    fn files(&mut self) -> Vec<PinnedFile> {
        Vec::new()
    }

    /// Notes the end of the copy. Must be quick: the order stage is held.
    fn cut(&mut self) {}

    /// Returns what else to copy. Called once, after `cut`, and before the next checkpoint may begin.
    fn rest(&mut self) -> Result<Vec<PinnedFile>, EngineError>;
}

/// Bytes of one file. A file may come in several values, which have no byte in common.
pub struct PinnedFile {
    /// Absolute path in the data directory, under which the copy needs it.
    pub path: PathBuf,
    pub bytes: PinnedBytes,
}

/// Function that reads a file at an offset. Returns fewer bytes than asked for only at the end of the file.
pub type ReadPinned = Box<dyn Fn(&mut [u8], u64) -> io::Result<usize> + Send>;

/// Source of a file's bytes.
pub enum PinnedBytes {
    /// Bytes in memory, for this offset. The file exists also if there are none.
    Memory { offset: u64, bytes: Vec<u8> },
    /// Ranges of the file, ascending and apart.
    Ranges {
        read: ReadPinned,
        ranges: Box<dyn Iterator<Item = Range<u64>> + Send>,
        /// Approximate sum of their lengths.
        total: u64,
    },
}

impl PinnedBytes {
    /// Returns the approximate number of bytes.
    pub fn total(&self) -> u64 {
        match self {
            PinnedBytes::Memory { bytes, .. } => bytes.len() as u64,
            PinnedBytes::Ranges { total, .. } => *total,
        }
    }
}

/// The pin of a participant with small files, which checkpoints replace as a whole: reads them at the end of
/// the copy.
pub struct SmallFiles<F> {
    fs: SharedFs,
    /// Returns the paths. Those that do not exist are left out.
    paths: F,
}

impl<F: Fn() -> io::Result<Vec<PathBuf>> + Send> SmallFiles<F> {
    /// Creates the pin.
    pub fn new(fs: SharedFs, paths: F) -> SmallFiles<F> {
        SmallFiles { fs, paths }
    }
}

impl<F: Fn() -> io::Result<Vec<PathBuf>> + Send> PinnedFiles for SmallFiles<F> {
    fn rest(&mut self) -> Result<Vec<PinnedFile>, EngineError> {
        let paths = (self.paths)().map_err(EngineError::Io)?;
        let read = |path: &Path| {
            let bytes = checkpoint_file::read_bytes(&self.fs, path)?;
            Ok(PinnedFile { path: path.to_path_buf(), bytes: PinnedBytes::Memory { offset: 0, bytes } })
        };
        paths.iter().filter(|path| self.fs.exists(path)).map(|path| read(path)).collect()
    }
}
