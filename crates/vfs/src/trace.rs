//! A file system that records operations, for golden I/O traces.
//!
//! One line per modifying operation, with file names but without their directories:

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::{File, Fs, OpenMode, SharedFile, SharedFs};

/// Wraps a file system. Clones share one trace.
#[derive(Clone)]
pub struct TraceFs {
    inner: SharedFs,
    lines: Arc<Mutex<String>>,
    /// Names of open files; a rename changes them.
    names: Arc<Mutex<HashMap<PathBuf, SharedName>>>,
}

type SharedName = Arc<Mutex<String>>;

struct TraceFile {
    inner: SharedFile,
    name: SharedName,
    fs: TraceFs,
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl TraceFs {
    /// Returns a file system with an empty trace.
    pub fn new(inner: SharedFs) -> TraceFs {
        TraceFs { inner, lines: Arc::default(), names: Arc::default() }
    }

    /// Adds a line of the test, to separate its steps.
    pub fn note(&self, line: &str) {
        let mut lines = self.lines.lock();
        lines.push_str(line);
        lines.push('\n');
    }

    /// Returns the lines so far and clears the trace.
    pub fn take(&self) -> String {
        std::mem::take(&mut self.lines.lock())
    }
}

impl Fs for TraceFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<SharedFile> {
        if matches!(mode, OpenMode::CreateNew | OpenMode::CreateOrOpen) && !self.inner.exists(path) {
            self.note(&format!("create {}", name(path)));
        }
        let inner = self.inner.open(path, mode)?;
        let mut names = self.names.lock();
        let name =
            names.entry(path.to_path_buf()).or_insert_with(|| Arc::new(Mutex::new(name(path)))).clone();
        Ok(Arc::new(TraceFile { inner, name, fs: self.clone() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.note(&format!("rename {} -> {}", name(from), name(to)));
        self.inner.rename(from, to)?;
        let mut names = self.names.lock();
        names.remove(to);
        if let Some(shared) = names.remove(from) {
            *shared.lock() = name(to);
            names.insert(to.to_path_buf(), shared);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.note(&format!("remove {}", name(path)));
        self.names.lock().remove(path);
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
        self.note(&format!("syncdir {}", name(dir)));
        self.inner.sync_dir(dir)
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.inner.free_bytes(dir)
    }
}

impl File for TraceFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buf, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.fs.note(&format!("write {} {offset}+{}", self.name.lock(), bytes.len()));
        self.inner.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.fs.note(&format!("sync {}", self.name.lock()));
        self.inner.sync_data()
    }

    fn send(&self, ranges: &[Range<u64>]) -> io::Result<()> {
        self.inner.send(ranges)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.fs.note(&format!("setlen {} {len}", self.name.lock()));
        self.inner.set_len(len)
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.inner.try_lock()
    }
}
