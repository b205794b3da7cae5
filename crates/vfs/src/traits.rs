//! The seams. Every method may be called from any thread.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{RealClock, RealFs, RealRng, SeededRng, SimClock};

/// A file system, shared.
pub type SharedFs = Arc<dyn Fs>;
/// An open file, shared. It closes with its last owner.
pub type SharedFile = Arc<dyn File>;
/// A clock, shared.
pub type SharedClock = Arc<dyn Clock>;
/// A source of random numbers, shared.
pub type SharedRng = Arc<dyn Rng>;

/// All that a component sees of the machine it runs on.
#[derive(Clone)]
pub struct World {
    /// Files.
    pub fs: SharedFs,
    /// The time.
    pub clock: SharedClock,
    /// Random numbers.
    pub rng: SharedRng,
}

impl World {
    /// The machine.
    pub fn real() -> World {
        World { fs: RealFs::shared(), clock: RealClock::shared(), rng: RealRng::shared() }
    }

    /// A simulation on this file system: a clock that stands still, reproducible random numbers.
    pub fn sim(fs: SharedFs, seed: u64) -> World {
        World { fs, clock: SimClock::new(1_700_000_000_000_000), rng: SeededRng::shared(seed) }
    }
}

/// Whether the error says that there is no space, on the disk or left to the user: the same call may succeed
/// later.
pub fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// How a file is opened. All modes read; all but `Read` write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Must exist; writes are refused.
    Read,
    /// Must exist.
    Write,
    /// Made if missing, kept if present.
    CreateOrOpen,
    /// Must not exist yet.
    CreateNew,
}

/// A directory tree.
///
/// What is durable: file contents after [`File::sync_data`]; names (creation, rename, removal) after
/// [`Fs::sync_dir`] of the directory they are in. What a process finds at its start need not be: one that was
/// killed may have left it in the page cache. Whoever goes by it calls `sync_dir` and [`File::settle`]
/// before.
pub trait Fs: Send + Sync {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<SharedFile>;
    /// Opens a file without which only its client fails: it takes none of the descriptors that are kept
    /// for others ([`crate::keep_descriptors_from`]).
    fn open_for_client(&self, path: &Path, mode: OpenMode) -> io::Result<SharedFile> {
        self.open(path, mode)
    }
    /// The same for a file of which hardly anything is read: whole blocks of 4 KiB at multiples of 4 KiB are
    /// written past the page cache, where the file system does that. What is durable is the same. A file that
    /// is written so has one writer at a time.
    fn open_direct(&self, path: &Path, mode: OpenMode) -> io::Result<SharedFile> {
        self.open(path, mode)
    }
    /// Renames within a directory; replaces the target.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file. Who has it open goes on using it.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Names (not paths) of the files in a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;
    /// Whether a file or directory of this name exists.
    fn exists(&self, path: &Path) -> bool;
    /// Makes a directory and its parents.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Replaces a small file as a whole, durably: a crash leaves the old one or the new one. The new one is
    /// written under the name `unfinished` in the same directory; what an earlier attempt left there goes.
    fn replace(&self, path: &Path, unfinished: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = self.open(unfinished, OpenMode::CreateOrOpen)?;
        file.set_len(0)?;
        file.write_at(bytes, 0)?;
        file.sync_data()?;
        self.rename(unfinished, path)?;
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        self.sync_dir(dir.unwrap_or(Path::new(".")))
    }
    /// Bytes that can still be written, for the disk-full check.
    fn free_bytes(&self, dir: &Path) -> io::Result<u64>;
    /// A number of the device that a directory is on: different numbers, different devices.
    fn device(&self, dir: &Path) -> io::Result<u64> {
        let _ = dir;
        Ok(0)
    }
}

/// An open file. Positions are given, there is no cursor.
pub trait File: Send + Sync {
    /// Reads into `buf`; fewer bytes only at the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Reads into `buf` if that does not wait for the disk, because all of it is in memory. None: it would.
    fn try_read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        self.read_at(buf, offset).map(Some)
    }
    /// Writes all of `bytes`; extends the file if it ends before.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes contents and the size needed to read them durable (`fdatasync`).
    fn sync_data(&self) -> io::Result<()>;
    /// Sends to the disk what was written in these ranges, which are not empty, and waits until it is there.
    /// Nothing is durable by it. After an error something that was written is lost, and no later call tells
    /// it again: see [`SteadyFile`](crate::SteadyFile).
    fn send(&self, ranges: &[Range<u64>]) -> io::Result<()> {
        let _ = ranges;
        Ok(())
    }
    /// Makes what an earlier process has written durable, and lets the page cache forget it: reads show what
    /// is on the disk from now on. After a sync that failed the page cache may hold what the disk does not
    /// have, and what no later sync writes.
    fn settle(&self) -> io::Result<()> {
        self.sync_data()
    }
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether the length is 0.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Cuts the file, or extends it with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Takes the exclusive advisory lock of the file; false if another process has it.
    fn try_lock(&self) -> io::Result<bool>;
}

/// The time.
pub trait Clock: Send + Sync {
    /// Microseconds since 1970-01-01 00:00 UTC.
    fn wall_us(&self) -> u64;
    /// Nanoseconds since some moment, never going back.
    fn monotonic_ns(&self) -> u64;
    /// Milliseconds since the same moment, up to some milliseconds late: for deadlines of seconds, which are
    /// set with every request.
    fn coarse_ms(&self) -> u64 {
        self.monotonic_ns() / 1_000_000
    }
}

/// Random numbers.
pub trait Rng: Send + Sync {
    /// Fills the buffer; from the operating system where it matters (salts).
    fn fill(&self, buf: &mut [u8]);

    /// A number of 64 random bits.
    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// A number below `n`, which must not be 0. (The bias is n / 2^64.)
    fn below(&self, n: u64) -> u64 {
        self.next_u64() % n
    }
}
