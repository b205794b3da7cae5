//! [`ServerFiles`]: the files of the machine.

use std::io;
use std::path::{Path, PathBuf};

/// The machine's files, as the server lets statements see them.
pub trait ServerFiles: Send + Sync {
    /// Makes a file; one that is there is an error, and so is one that the server would take for its own.
    fn create(&self, path: &Path) -> io::Result<Box<dyn io::Write>>;
    /// Opens a file for reading.
    fn open(&self, path: &Path) -> io::Result<Box<dyn io::Read>>;
    /// The length of a file that everybody on the machine may read.
    fn public_bytes(&self, path: &Path) -> io::Result<u64>;
    /// Removes a file that a statement has made and could not fill.
    fn remove(&self, path: &Path);
    /// The path without links and dots of something that is there.
    fn real(&self, path: &Path) -> io::Result<PathBuf>;
    /// Where names without a folder are.
    fn datadir(&self) -> &Path;
}
