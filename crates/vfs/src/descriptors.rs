//! Descriptors that are kept for what a server cannot go on without.
//!
//! The log, the binary log and checkpoints open files while transactions are past the point where they could
//! fail. So other uses leave some descriptors free: connections, temporary files, files of statements. The
//! system gives each new descriptor the lowest free number. A number `n` therefore says that `n` others are
//! open, and one look at it is enough.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

static KEPT_FROM: AtomicI32 = AtomicI32::new(RawFd::MAX);

/// Keeps the descriptors from this number on, for the rest of the process.
pub fn keep_descriptors_from(number: u64) {
    KEPT_FROM.store(RawFd::try_from(number).unwrap_or(RawFd::MAX), Ordering::Relaxed);
}

/// Refuses a descriptor that is kept, as the system refuses one when there are none. The caller closes it.
pub fn refuse_kept(opened: &impl AsRawFd) -> io::Result<()> {
    match opened.as_raw_fd() < KEPT_FROM.load(Ordering::Relaxed) {
        true => Ok(()),
        false => Err(io::Error::from_raw_os_error(libc::EMFILE)),
    }
}
