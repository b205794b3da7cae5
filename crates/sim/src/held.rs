//! A file system on which a test holds up one kind of operation on some files, to look at what others do
//! meanwhile.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_vfs::{File, Fs, OpenMode, SharedFile, SharedFs};
use parking_lot::{Condvar, Mutex};

/// What is held up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Write,
    Sync,
}

/// Wraps a file system. Cloning shares it.
#[derive(Clone)]
pub struct HeldFs {
    inner: SharedFs,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    held: Mutex<Held>,
    changed: Condvar,
}

#[derive(Default)]
struct Held {
    /// The operation, and how the names of its files begin.
    what: Option<(Operation, &'static str)>,
    waiting: usize,
}

struct HeldFile {
    inner: SharedFile,
    name: String,
    state: Arc<State>,
}

impl HeldFs {
    /// Nothing is held up.
    pub fn new(inner: SharedFs) -> HeldFs {
        HeldFs { inner, state: Arc::default() }
    }

    /// From now on this operation waits on files whose names begin so.
    pub fn hold(&self, operation: Operation, prefix: &'static str) {
        self.state.held.lock().what = Some((operation, prefix));
    }

    /// Waits until somebody is held up.
    pub fn await_held(&self) {
        let mut held = self.state.held.lock();
        while held.waiting == 0 {
            self.state.changed.wait(&mut held);
        }
    }

    /// Lets everybody go on.
    pub fn release(&self) {
        self.state.held.lock().what = None;
        self.state.changed.notify_all();
    }
}

impl State {
    fn pass(&self, operation: Operation, name: &str) {
        let mut held = self.held.lock();
        let is_held = |held: &Held| {
            held.what.is_some_and(|(which, prefix)| which == operation && name.starts_with(prefix))
        };
        if !is_held(&held) {
            return;
        }
        held.waiting += 1;
        self.changed.notify_all();
        while is_held(&held) {
            self.changed.wait(&mut held);
        }
        held.waiting -= 1;
    }
}

impl Fs for HeldFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<SharedFile> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let inner = self.inner.open(path, mode)?;
        Ok(Arc::new(HeldFile { inner, name, state: Arc::clone(&self.state) }))
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

impl File for HeldFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buf, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.state.pass(Operation::Write, &self.name);
        self.inner.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.state.pass(Operation::Sync, &self.name);
        self.inner.sync_data()
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
