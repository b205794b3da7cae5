//! [`CountFs`]: counts the reads, writes and syncs of each file.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use crate::io_report::{FileIo, IoReport, IoSum};
use crate::{File, Fs, OpenMode, SharedFile, SharedFs};

/// Maximum number of files that are counted. Others are [`IoReport::lost`].
const FILES_MAX: usize = 4096;

/// Operations of one kind on one file.
#[derive(Debug, Default)]
struct Counter {
    count: AtomicU64,
    bytes: AtomicU64,
    ns: AtomicU64,
    min_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Counter {
    fn add(&self, bytes: u64, start: Instant) {
        let ns = start.elapsed().as_nanos() as u64;
        if self.count.fetch_add(1, Ordering::Relaxed) == 0 {
            self.min_ns.store(ns, Ordering::Relaxed);
        } else if ns < self.min_ns.load(Ordering::Relaxed) {
            self.min_ns.fetch_min(ns, Ordering::Relaxed);
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.ns.fetch_add(ns, Ordering::Relaxed);
        if ns > self.max_ns.load(Ordering::Relaxed) {
            self.max_ns.fetch_max(ns, Ordering::Relaxed);
        }
    }

    fn sum(&self) -> IoSum {
        let [count, bytes, ns, min_ns, max_ns] =
            [&self.count, &self.bytes, &self.ns, &self.min_ns, &self.max_ns]
                .map(|number| number.load(Ordering::Relaxed));
        IoSum { count, bytes, ns, min_ns, max_ns }
    }

    fn clear(&self) {
        for number in [&self.count, &self.bytes, &self.ns, &self.min_ns, &self.max_ns] {
            number.store(0, Ordering::Relaxed);
        }
    }
}

#[derive(Debug, Default)]
struct FileCounters {
    open: AtomicU64,
    reads: Counter,
    writes: Counter,
    /// Syncs, and waits for writeback.
    syncs: Counter,
}

#[derive(Default)]
struct Counted {
    files: Mutex<BTreeMap<PathBuf, Arc<FileCounters>>>,
    opened: AtomicU64,
    lost: AtomicU64,
}

/// A file system that counts the operations on the files of the server itself. Files of clients, and files
/// without a name, are not counted.
pub struct CountFs {
    inner: SharedFs,
    counted: Counted,
}

impl CountFs {
    /// Counts the operations on the files of `inner`.
    pub fn shared(inner: SharedFs) -> SharedFs {
        Arc::new(CountFs { inner, counted: Counted::default() })
    }

    fn counted(&self, path: &Path, file: SharedFile) -> SharedFile {
        self.counted.opened.fetch_add(1, Ordering::Relaxed);
        let mut files = self.counted.files.lock();
        let is_full = files.len() >= FILES_MAX;
        let counters = match files.get(path) {
            Some(known) => Arc::clone(known),
            None if is_full => {
                self.counted.lost.fetch_add(1, Ordering::Relaxed);
                return file;
            }
            None => Arc::clone(files.entry(path.to_owned()).or_default()),
        };
        drop(files);
        counters.open.fetch_add(1, Ordering::Relaxed);
        Arc::new(CountedFile { inner: file, counters })
    }
}

impl Fs for CountFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<SharedFile> {
        Ok(self.counted(path, self.inner.open(path, mode)?))
    }

    fn open_for_client(&self, path: &Path, mode: OpenMode) -> io::Result<SharedFile> {
        self.inner.open_for_client(path, mode)
    }

    fn open_direct(&self, path: &Path, mode: OpenMode) -> io::Result<SharedFile> {
        Ok(self.counted(path, self.inner.open_direct(path, mode)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)?;
        let mut files = self.counted.files.lock();
        if let Some(counters) = files.remove(from) {
            files.insert(to.to_owned(), counters);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)?;
        self.counted.files.lock().remove(path);
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.inner.list(dir)
    }

    fn is_empty_dir(&self, dir: &Path) -> io::Result<bool> {
        self.inner.is_empty_dir(dir)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.remove_dir(dir)
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

    fn device(&self, dir: &Path) -> io::Result<u64> {
        self.inner.device(dir)
    }

    fn io(&self) -> IoReport {
        let report = |(path, counters): (&PathBuf, &Arc<FileCounters>)| FileIo {
            path: path.clone(),
            open: counters.open.load(Ordering::Relaxed),
            reads: counters.reads.sum(),
            writes: counters.writes.sum(),
            syncs: counters.syncs.sum(),
        };
        let files = self.counted.files.lock().iter().map(report).collect();
        let [opened, lost] =
            [&self.counted.opened, &self.counted.lost].map(|number| number.load(Ordering::Relaxed));
        IoReport { files, opened, lost }
    }

    fn reset_io(&self) {
        for counters in self.counted.files.lock().values() {
            [&counters.reads, &counters.writes, &counters.syncs].into_iter().for_each(Counter::clear);
        }
    }
}

struct CountedFile {
    inner: SharedFile,
    counters: Arc<FileCounters>,
}

impl Drop for CountedFile {
    fn drop(&mut self) {
        self.counters.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl File for CountedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = Instant::now();
        let read = self.inner.read_at(buf, offset)?;
        self.counters.reads.add(read as u64, start);
        Ok(read)
    }

    fn try_read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        let start = Instant::now();
        let read = self.inner.try_read_at(buf, offset)?;
        if let Some(read) = read {
            self.counters.reads.add(read as u64, start);
        }
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let start = Instant::now();
        self.inner.write_at(bytes, offset)?;
        self.counters.writes.add(bytes.len() as u64, start);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let start = Instant::now();
        self.inner.sync_data()?;
        self.counters.syncs.add(0, start);
        Ok(())
    }

    fn send(&self, ranges: &[Range<u64>]) -> io::Result<()> {
        let start = Instant::now();
        self.inner.send(ranges)?;
        self.counters.syncs.add(0, start);
        Ok(())
    }

    fn sync_earlier_writes(&self) -> io::Result<()> {
        let start = Instant::now();
        self.inner.sync_earlier_writes()?;
        self.counters.syncs.add(0, start);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn is_empty(&self) -> io::Result<bool> {
        self.inner.is_empty()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.inner.try_lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemFs;

    #[test]
    fn operations_are_counted_by_file_and_follow_its_name() {
        let fs = CountFs::shared(Arc::new(MemFs::new()));
        fs.create_dir_all(Path::new("/d")).expect("made");
        let file = fs.open(Path::new("/d/a"), OpenMode::CreateNew).expect("opens");
        file.write_at(b"12345", 0).expect("written");
        file.write_at(b"678", 5).expect("written");
        file.sync_data().expect("synced");
        let mut bytes = [0; 16];
        assert_eq!(file.read_at(&mut bytes, 4).expect("read"), 4);
        fs.rename(Path::new("/d/a"), Path::new("/d/b")).expect("renamed");
        let again = fs.open(Path::new("/d/b"), OpenMode::Read).expect("opens");
        let files = fs.io().files;
        let [of] = files.as_slice() else { panic!("one file: {files:?}") };
        assert_eq!((of.path.as_path(), of.open), (Path::new("/d/b"), 2));
        let sums = [of.reads, of.writes, of.syncs].map(|sum| (sum.count, sum.bytes));
        assert_eq!(sums, [(1, 4), (2, 8), (1, 0)]);
        assert!(of.writes.min_ns <= of.writes.max_ns && of.writes.max_ns <= of.writes.ns);
        drop((file, again));
        fs.reset_io();
        let of = fs.io().files.remove(0);
        assert_eq!((of.open, of.reads, of.writes.ns), (0, IoSum::default(), 0));
        fs.remove(Path::new("/d/b")).expect("removed");
        assert!(fs.io().files.is_empty() && fs.io().opened == 2);
    }
}
