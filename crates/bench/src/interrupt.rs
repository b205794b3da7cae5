//! Ctrl-C: ends the load, so that the started servers are stopped and removed.

use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

extern "C" fn request(_: i32) {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Makes SIGINT and SIGTERM only set a flag from now on.
pub fn catch() {
    let handler = request as extern "C" fn(i32) as libc::sighandler_t;
    // SAFETY: the handler only stores to an atomic.
    unsafe {
        libc::signal(libc::SIGINT, handler);
        libc::signal(libc::SIGTERM, handler);
    }
}

pub fn is_requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
