//! Interfaces to the operating system. Every method may be called from any thread.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::io_report::IoReport;

/// A shared file system.
pub type SharedFs = Arc<dyn Fs>;
/// A shared open file. Dropping the last reference closes it.
pub type SharedFile = Arc<dyn File>;
/// A shared clock.
pub type SharedClock = Arc<dyn Clock>;
/// A shared source of random numbers.
pub type SharedRng = Arc<dyn Rng>;

/// Returns whether the error means "no space", on the disk or in the user's quota: the same call may succeed
/// later.
pub fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Mode of opening a file. All modes can read; all but `Read` can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Must exist; writes are refused.
    Read,
    /// Must exist.
    Write,
    /// Created if missing, kept if it exists.
    CreateOrOpen,
    /// Must not exist yet.
    CreateNew,
}

/// A directory tree.
///
/// Durability: contents of a file are durable after [`File::sync_data`]; names (creation, rename, removal)
/// after [`Fs::sync_dir`] of their directory. Data that a process finds when it starts is not necessarily
/// durable: a killed process may have left it in the page cache. Code that relies on it must first call
/// `sync_dir` and [`File::sync_earlier_writes`].
pub trait Fs: Send + Sync {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<SharedFile>;
    /// Opens a file whose failure affects only one client. It does not use descriptors that are reserved for
    /// other purposes ([`crate::keep_descriptors_from`]).
    fn open_for_client(&self, path: &Path, mode: OpenMode) -> io::Result<SharedFile> {
        self.open(path, mode)
    }
    /// Like [`Fs::open`], for a file that is rarely read. Whole blocks of 4 KiB at multiples of 4 KiB bypass
    /// the page cache when written, if the file system supports that. Durability is the same. The file must
    /// have one writer at a time.
    fn open_direct(&self, path: &Path, mode: OpenMode) -> io::Result<SharedFile> {
        self.open(path, mode)
    }
    /// Renames a file within a directory; replaces the target.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file. Open handles stay usable.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Returns the names (not paths) of the files in a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;
    /// Returns whether a directory contains neither files nor directories.
    fn is_empty_dir(&self, dir: &Path) -> io::Result<bool> {
        Ok(self.list(dir)?.is_empty())
    }
    /// Removes an empty directory. File systems in memory keep it.
    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        let _ = dir;
        Ok(())
    }
    /// Returns whether a file or directory of this name exists.
    fn exists(&self, path: &Path) -> bool;
    /// Creates a directory and its parents.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Replaces a small file atomically and durably: a crash leaves the old or the new one. The new file is
    /// first written under the name `unfinished` in the same directory, replacing leftovers of an earlier
    /// attempt.
    fn replace(&self, path: &Path, unfinished: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = self.open(unfinished, OpenMode::CreateOrOpen)?;
        file.set_len(0)?;
        file.write_at(bytes, 0)?;
        file.sync_data()?;
        self.rename(unfinished, path)?;
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        self.sync_dir(dir.unwrap_or(Path::new(".")))
    }
    /// Returns the number of bytes that can still be written, for the disk-full check.
    fn free_bytes(&self, dir: &Path) -> io::Result<u64>;
    /// Returns a number that identifies the device of a directory.
    fn device(&self, dir: &Path) -> io::Result<u64> {
        let _ = dir;
        Ok(0)
    }
    /// Returns the operations on each file, if they are counted ([`crate::CountFs`]).
    fn io(&self) -> IoReport {
        IoReport::default()
    }
    /// Resets these counters.
    fn reset_io(&self) {}
}

/// An open file. All accesses have explicit offsets; there is no cursor.
pub trait File: Send + Sync {
    /// Reads into `buf`. Returns fewer bytes only at the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Reads into `buf` if all of it is in memory. Returns `None` if the read would wait for the disk.
    fn try_read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        self.read_at(buf, offset).map(Some)
    }
    /// Writes all of `bytes`; extends the file if necessary.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes contents and the size needed to read them durable (`fdatasync`).
    fn sync_data(&self) -> io::Result<()>;
    /// Starts the writeback of these nonempty ranges and waits for its completion. The ranges are not durable
    /// afterwards. After an error a write is lost, and no later call reports that again: see
    /// [`WritebackFile`](crate::WritebackFile).
    fn send(&self, ranges: &[Range<u64>]) -> io::Result<()> {
        let _ = ranges;
        Ok(())
    }
    /// Makes durable what an earlier process has written, and drops it from the page cache, so that later
    /// reads return the contents of the disk. After a failed sync the page cache may contain data that the
    /// disk does not have and that no later sync writes.
    fn sync_earlier_writes(&self) -> io::Result<()> {
        self.sync_data()
    }
    /// Returns the length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Returns whether the length is 0.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Truncates the file, or extends it with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Takes the exclusive advisory lock of the file. Returns false if another process has it.
    fn try_lock(&self) -> io::Result<bool>;
}

/// Source of the time.
pub trait Clock: Send + Sync {
    /// Returns the microseconds since 1970-01-01 00:00 UTC.
    fn wall_us(&self) -> u64;
    /// Returns the nanoseconds since a fixed moment; never goes back.
    fn monotonic_ns(&self) -> u64;
    /// Returns the milliseconds since the moment of [`Clock::monotonic_ns`], up to some milliseconds late.
    /// For deadlines of seconds, which are set with every request.
    fn coarse_ms(&self) -> u64 {
        self.monotonic_ns() / 1_000_000
    }
}

/// Source of random numbers.
pub trait Rng: Send + Sync {
    /// Fills the buffer; from the operating system where it matters (salts).
    fn fill(&self, buf: &mut [u8]);

    /// Returns 64 random bits.
    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Returns a number below `n`, which must not be 0. (The bias is n / 2^64.)
    fn below(&self, n: u64) -> u64 {
        self.next_u64() % n
    }
}
