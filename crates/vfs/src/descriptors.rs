//! Reserve of file descriptors for operations that must not fail.
//!
//! The log, the binary log and checkpoints open files when transactions can no longer fail. So other uses
//! leave some descriptors free: connections, temporary files, files of statements. The system gives each new
//! descriptor the lowest free number. A number `n` therefore means that `n` others are open, and comparing it
//! is sufficient.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

static KEPT_FROM: AtomicI32 = AtomicI32::new(RawFd::MAX);

/// Reserves the descriptors from this number on, for the rest of the process.
pub fn keep_descriptors_from(number: u64) {
    KEPT_FROM.store(RawFd::try_from(number).unwrap_or(RawFd::MAX), Ordering::Relaxed);
}

/// Refuses a descriptor of the reserve, with the error of a system without free descriptors. The caller
/// closes it.
pub fn refuse_kept(opened: &impl AsRawFd) -> io::Result<()> {
    match opened.as_raw_fd() < KEPT_FROM.load(Ordering::Relaxed) {
        true => Ok(()),
        false => Err(io::Error::from_raw_os_error(libc::EMFILE)),
    }
}
