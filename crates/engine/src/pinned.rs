//! Files of a participant that a backup copies.
//!
//! # The life of a pin
//! ```text
//! Participant::pin   no checkpoint runs; the newest one is where recovery of the copy will begin
//!   files()          the files of that checkpoint; copied while commits, checkpoints and bulk loads go on
//!   cut()            the order stage is held, and everything ordered is durable: the end of the copy
//!   rest()           still no checkpoint since `cut`; what recovery lacks: files that the log does not replace
//! dropped            the participant may reuse the space
//! ```
//! The copy has to be a state that a crash could leave: the files of a checkpoint, the files of the bulk
//! loads since then, and the log from that checkpoint to the cut. A file of `rest` may be younger than the
//! checkpoint, because redo is absolute: replaying older redo over it, and then the newer, gives the newest
//! values. It must not contain anything of a transaction after the cut, which the log of the copy lacks.
//!
//! # Incremental copies
//! The marks of a pin are kept with the copy. A participant that gets its mark back may leave out what that
//! copy has: then a file is partial, and the bytes that do not come are those of the earlier copy.
//!
//! A participant whose files are small, or immutable, has everything in `rest`.

use std::io;
use std::path::{Path, PathBuf};

use cohort_vfs::SharedFs;

use crate::checkpoint_file;
use crate::traits::{EngineError, PinnedBytes, PinnedFile, PinnedFiles};

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
