//! Redo: what an engine needs to do a transaction again after a crash.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Arc;

/// A transaction's redo in one engine. The bytes travel in the commit record, or in a file that it names.
///
/// An engine that puts a transaction's writes in place adds a token ([`Installed`]), to one redo of each
/// transaction. Its last owner decides: ordered with the token, the writes become visible; dropped before,
/// they are undone. So a rollback of a prepared transaction drops its redo before its locks go.
#[derive(Clone, Default)]
pub struct Redo {
    /// In the engine's own form; replaying it twice, or replaying older redo before it, must be harmless.
    /// Empty if it is in a file.
    pub bytes: Vec<u8>,
    file: Option<RedoFile>,
    installation: Option<Arc<dyn Installed>>,
}

/// Writes that stand in place and that nobody sees yet. Dropped before `commit_ordered`, they are undone.
pub trait Installed: Any + Send + Sync {
    /// For the engine that made it to get its own type back.
    fn as_any(&self) -> &dyn Any;
}

/// Redo in a durable file.
#[derive(Clone)]
pub struct RedoFile {
    /// Inside of the spill directory.
    pub name: String,
    pub bytes: u64,
    /// CRC-32C of the file.
    pub crc: u32,
    /// Removes the file when its last owner goes, unless it was told to keep it.
    pub hold: Arc<dyn RedoFileHold>,
}

/// The right to remove a file of redo.
pub trait RedoFileHold: Send + Sync {
    /// From now on somebody else sees to the file.
    fn keep(&self);
}

/// Where files of redo are made.
pub trait RedoFiles {
    /// Redo of so many bytes or fewer goes into the commit record.
    fn inline_bytes_max(&self) -> usize;

    /// A new file.
    fn create(&self) -> io::Result<Box<dyn RedoWriter>>;
}

/// A file of redo that is being written. Dropped before it is finished, nothing of it stays.
pub trait RedoWriter: Send {
    /// Adds bytes at the end.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes contents and name durable.
    fn finish(self: Box<Self>) -> io::Result<RedoFile>;
}

impl Redo {
    /// Redo of an engine that applies it at the order stage.
    pub fn new(bytes: Vec<u8>) -> Redo {
        Redo { bytes, file: None, installation: None }
    }

    /// Redo of writes that stand in place.
    pub fn installed(bytes: Vec<u8>, installation: Arc<dyn Installed>) -> Redo {
        Redo { bytes, file: None, installation: Some(installation) }
    }

    /// Redo in a file. The token, if another redo of the transaction has none.
    pub fn in_file(file: RedoFile, installation: Option<Arc<dyn Installed>>) -> Redo {
        Redo { bytes: Vec::new(), file: Some(file), installation }
    }

    /// The file that holds it, if one does.
    pub fn file(&self) -> Option<&RedoFile> {
        self.file.as_ref()
    }

    /// Its length, wherever it is.
    pub fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64 + self.file.as_ref().map_or(0, |file| file.bytes)
    }

    /// The token, if its engine gave one.
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
