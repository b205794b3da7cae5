//! A file system that calls a test before each open, read, write and sync of a file, so that the test can
//! count, slow down, block or fail operations.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{File, Fs, OpenMode, SharedFile, SharedFs};

/// An operation that is about to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// [`Fs::open`]
    Open,
    /// [`File::read_at`]
    Read,
    /// [`File::write_at`]
    Write,
    /// [`File::sync_data`]
    Sync,
}

type Before = dyn Fn(Operation, &str) -> io::Result<()> + Send + Sync;

/// Wraps a file system. Clones share it.
#[derive(Clone)]
pub struct HookFs {
    inner: SharedFs,
    before: Arc<Before>,
}

struct HookFile {
    inner: SharedFile,
    /// File name when it was opened.
    name: String,
    before: Arc<Before>,
}

impl HookFs {
    /// Calls `before` with the operation and the file's name without its directory. It runs in the thread
    /// that requests the operation, which continues when `before` returns.
    pub fn new(inner: SharedFs, before: impl Fn(Operation, &str) + Send + Sync + 'static) -> HookFs {
        HookFs::failing(inner, move |operation, name| {
            before(operation, name);
            Ok(())
        })
    }

    /// Like [`HookFs::new`], but an error of `before` is returned instead of executing the operation.
    pub fn failing(
        inner: SharedFs,
        before: impl Fn(Operation, &str) -> io::Result<()> + Send + Sync + 'static,
    ) -> HookFs {
        HookFs { inner, before: Arc::new(before) }
    }
}

impl Fs for HookFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<SharedFile> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (self.before)(Operation::Open, &name)?;
        let inner = self.inner.open(path, mode)?;
        Ok(Arc::new(HookFile { inner, name, before: Arc::clone(&self.before) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.inner.list(dir)
    }

    fn exists(&self, path: &Path) -> bool {
        self.inner.exists(path)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.inner.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.sync_dir(dir)
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.inner.free_bytes(dir)
    }
}

impl File for HookFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        (self.before)(Operation::Read, &self.name)?;
        self.inner.read_at(buf, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        (self.before)(Operation::Write, &self.name)?;
        self.inner.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        (self.before)(Operation::Sync, &self.name)?;
        self.inner.sync_data()
    }

    fn send(&self, ranges: &[Range<u64>]) -> io::Result<()> {
        self.inner.send(ranges)
    }

    fn sync_earlier_writes(&self) -> io::Result<()> {
        (self.before)(Operation::Sync, &self.name)?;
        self.inner.sync_earlier_writes()
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.inner.try_lock()
    }
}
