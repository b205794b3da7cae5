//! Counts and slows down a server's flushes from outside. `preload/preload.rs` is the other side and
//! documents the shared file.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::disk::Disk;

/// Built by `build.rs`.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libcohort_preload.so"));

const WORDS: usize = 8;
const READY: usize = 0;
const FSYNC: usize = 1;
const FDATASYNC: usize = 2;
const SYNC_FILE_RANGE: usize = 3;
const NANOSECONDS: usize = 4;
const DELAY: usize = 5;
const TWO_DISKS: usize = 6;

/// Flush counters of one server process.
pub struct Flushes {
    words: NonNull<[AtomicU64; WORDS]>,
    library: PathBuf,
    counters: PathBuf,
}

/// Counts since the server's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlushCounts {
    /// Calls of `fsync` and `fdatasync`.
    pub flushes: u64,
    /// Calls of `sync_file_range`, which do not flush the disk's cache.
    pub ranges: u64,
    /// Time spent in flushes.
    pub nanoseconds: u64,
}

impl Flushes {
    /// Writes the library and the counters into `dir`.
    pub fn new(dir: &Path) -> io::Result<Flushes> {
        let library = dir.join("libcohort_preload.so");
        let counters = dir.join("flushes");
        fs::write(&library, LIBRARY)?;
        fs::write(&counters, [0; WORDS * 8])?;
        let file = OpenOptions::new().read(true).write(true).open(&counters)?;
        // SAFETY: a new shared mapping of a file that is long enough; the result is checked.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                WORDS * 8,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let words = NonNull::new(at.cast()).expect("a mapping is never at address zero");
        Ok(Flushes { words, library, counters })
    }

    /// Makes a server that is about to start load the library.
    pub fn preload_into(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("COHORT_BENCH_FLUSHES", &self.counters);
    }

    /// Returns whether the library runs inside the server and has counted a flush.
    pub fn is_connected(&self) -> bool {
        self.words()[READY].load(Ordering::Relaxed) == 1
    }

    /// Sets the disk to emulate from now on.
    pub fn set_disk(&self, disk: Disk) {
        self.words()[TWO_DISKS].store(u64::from(disk.is_two), Ordering::Relaxed);
        self.words()[DELAY].store(disk.flush.as_nanos() as u64, Ordering::Relaxed);
    }

    pub fn counts(&self) -> FlushCounts {
        let word = |index: usize| self.words()[index].load(Ordering::Relaxed);
        FlushCounts {
            flushes: word(FSYNC) + word(FDATASYNC),
            ranges: word(SYNC_FILE_RANGE),
            nanoseconds: word(NANOSECONDS),
        }
    }

    fn words(&self) -> &[AtomicU64; WORDS] {
        // SAFETY: the mapping lives as long as self and is accessed only by atomic operations.
        unsafe { self.words.as_ref() }
    }
}

impl Drop for Flushes {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; no reference outlives self.
        unsafe { libc::munmap(self.words.as_ptr().cast(), WORDS * 8) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_program_s_flushes_are_counted_and_take_the_time_they_are_given() {
        let dir = tempfile::tempdir().expect("a folder");
        let flushes = Flushes::new(dir.path()).expect("set up");
        flushes.set_disk(Disk { flush: Duration::from_millis(40), ..Disk::REAL });
        let mut dd = Command::new("dd");
        dd.args(["if=/dev/zero", "bs=512", "count=1", "conv=fdatasync", "status=none"]);
        dd.arg(format!("of={}", dir.path().join("file").display()));
        flushes.preload_into(&mut dd);
        let began = Instant::now();
        assert!(dd.status().expect("dd runs").success());
        assert!(began.elapsed() >= Duration::from_millis(40));
        assert!(flushes.is_connected());
        let counts = flushes.counts();
        assert_eq!((counts.flushes, counts.ranges), (1, 0));
        assert!((40_000_000..200_000_000).contains(&counts.nanoseconds), "{counts:?}");
    }
}
