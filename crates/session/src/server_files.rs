//! The host's files ([`ServerFiles`]).

use std::io;
use std::path::{Path, PathBuf};

/// Access to the host's files, as far as the server allows it to statements.
pub trait ServerFiles: Send + Sync {
    /// Creates a file. Fails if it exists, or if the server could mistake it for one of its own files.
    fn create(&self, path: &Path) -> io::Result<Box<dyn io::Write>>;
    /// Opens a file for reading, and returns its length.
    fn open(&self, path: &Path) -> io::Result<(Box<dyn io::Read>, u64)>;
    /// Returns the length of a file that is readable by all users of the host.
    fn public_bytes(&self, path: &Path) -> io::Result<u64>;
    /// Removes a file that a statement created and could not complete.
    fn remove(&self, path: &Path);
    /// Returns the path of an existing file or directory without symbolic links and dots.
    fn real(&self, path: &Path) -> io::Result<PathBuf>;
    /// Returns the data directory, which relative names start from.
    fn datadir(&self) -> &Path;
}
