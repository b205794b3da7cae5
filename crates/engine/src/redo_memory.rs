//! Redo files in memory, for tests of engines and for [`crate::Mirror`].

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::redo::{Redo, RedoFile, RedoFileGuard, RedoFiles, RedoWriter};
use crate::traits::{EngineError, EngineTrx};

/// Redo files of one transaction. All files are written to one buffer, one after the other.
#[derive(Clone, Default)]
pub struct MemoryRedo {
    written: Arc<Mutex<Vec<u8>>>,
    /// Capacity; writes beyond it fail with a full disk.
    bytes_max: Option<usize>,
    inline_bytes_max: usize,
}

struct NoHold;

impl RedoFileGuard for NoHold {
    fn keep(&self) {}
}

struct Writer {
    to: MemoryRedo,
    bytes: u64,
}

impl MemoryRedo {
    /// Creates files with a total capacity of `bytes_max`.
    pub fn of(bytes_max: usize) -> MemoryRedo {
        MemoryRedo { bytes_max: Some(bytes_max), ..MemoryRedo::default() }
    }

    /// Creates files that are used only for redo larger than `inline_bytes_max`.
    pub fn new(inline_bytes_max: usize) -> MemoryRedo {
        MemoryRedo { inline_bytes_max, ..MemoryRedo::default() }
    }

    /// Returns a copy of the written bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.lock().clone()
    }

    /// Prepares a transaction whose parts were installed with these files. Returns all of its redo as one,
    /// with the token.
    pub fn prepare(&self, trx: &mut dyn EngineTrx) -> Result<Redo, EngineError> {
        let mut redo = Vec::new();
        trx.prepare_into(self, &mut redo)?;
        let last = redo.pop().expect("a transaction has redo");
        assert!(redo.iter().all(|redo| redo.installation().is_none()), "the last one has the token");
        let bytes = if last.file().is_some() { self.bytes() } else { last.bytes.clone() };
        Ok(match last.installation() {
            Some(token) => Redo::installed(bytes, Arc::clone(token)),
            None => Redo::new(bytes),
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RedoFiles for MemoryRedo {
    fn inline_bytes_max(&self) -> usize {
        self.inline_bytes_max
    }

    fn create(&self) -> io::Result<Box<dyn RedoWriter>> {
        Ok(Box::new(Writer { to: self.clone(), bytes: 0 }))
    }
}

impl RedoWriter for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut written = self.to.lock();
        if self.to.bytes_max.is_some_and(|max| written.len() + bytes.len() > max) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        written.extend_from_slice(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<RedoFile> {
        Ok(RedoFile { name: "memory".to_owned(), bytes: self.bytes, crc: 0, hold: Arc::new(NoHold) })
    }
}
