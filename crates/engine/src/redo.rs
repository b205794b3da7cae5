//! Redo: the data that an engine needs to apply a transaction again after a crash.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Arc;

/// A transaction's redo in one engine. The bytes are stored in the commit record, or in a file that the
/// record names.
///
/// An engine that flushes a transaction's writes into its indexes before the commit adds a token
/// ([`Installed`]) to one redo of the transaction. If the redo is ordered with its token, the writes become
/// visible. If the last reference to the token is dropped before that, the writes are undone. So a rollback
/// of a prepared transaction must drop its redo before it releases the locks.
#[derive(Clone, Default)]
pub struct Redo {
    /// In the engine's own format. Replaying it twice, or replaying older redo before it, must be harmless.
    /// Empty if the redo is in a file.
    pub bytes: Vec<u8>,
    file: Option<RedoFile>,
    installation: Option<Arc<dyn Installed>>,
}

/// Token of writes that are in the index but not visible yet. Dropping it before `commit_ordered` undoes
/// them.
pub trait Installed: Any + Send + Sync {
    /// Allows the engine that created the token to downcast it.
    fn as_any(&self) -> &dyn Any;
}

/// Redo in a durable file.
#[derive(Clone)]
pub struct RedoFile {
    /// Name within the spill directory.
    pub name: String,
    pub bytes: u64,
    /// CRC-32C of the file.
    pub crc: u32,
    /// Removes the file when the last reference is dropped, unless [`RedoFileGuard::keep`] was called.
    pub hold: Arc<dyn RedoFileGuard>,
}

/// The responsibility for removing a redo file.
pub trait RedoFileGuard: Send + Sync {
    /// Hands over the responsibility: the file is no longer removed on drop.
    fn keep(&self);
}

/// Factory of redo files.
pub trait RedoFiles {
    /// Returns the maximum size of redo that is stored in the commit record itself.
    fn inline_bytes_max(&self) -> usize;

    /// Creates a file.
    fn create(&self) -> io::Result<Box<dyn RedoWriter>>;
}

/// A redo file that is being written. Dropping it before `finish` removes the file.
pub trait RedoWriter: Send {
    /// Appends bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes contents and name durable.
    fn finish(self: Box<Self>) -> io::Result<RedoFile>;
}

impl Redo {
    /// Creates redo for an engine that applies it at the order stage.
    pub fn new(bytes: Vec<u8>) -> Redo {
        Redo { bytes, file: None, installation: None }
    }

    /// Creates redo of writes that are already in the index.
    pub fn installed(bytes: Vec<u8>, installation: Arc<dyn Installed>) -> Redo {
        Redo { bytes, file: None, installation: Some(installation) }
    }

    /// Creates redo that is stored in a file. `installation` is the token, unless another redo of the
    /// transaction has it.
    pub fn in_file(file: RedoFile, installation: Option<Arc<dyn Installed>>) -> Redo {
        Redo { bytes: Vec::new(), file: Some(file), installation }
    }

    /// Returns the redo's file, if it is in one.
    pub fn file(&self) -> Option<&RedoFile> {
        self.file.as_ref()
    }

    /// Returns the size, in the commit record or in the file.
    pub fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64 + self.file.as_ref().map_or(0, |file| file.bytes)
    }

    /// Returns the token, if the engine added one.
    pub fn installation(&self) -> Option<&Arc<dyn Installed>> {
        self.installation.as_ref()
    }
}

impl fmt::Debug for Redo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redo({} bytes)", self.size_bytes())
    }
}

impl PartialEq for Redo {
    fn eq(&self, other: &Redo) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Redo {}
