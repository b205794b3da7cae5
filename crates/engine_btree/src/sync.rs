//! The locks, latches and atomics of this crate. The model check (`tests/model.rs`) replaces this module, so
//! that the same files run under a scheduler that permutes threads. It also has a smaller [`BLOCK`].

use std::io;
use std::sync::Arc;

use parking_lot::{ArcRwLockReadGuard, ArcRwLockWriteGuard, RawRwLock};

pub use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

pub use parking_lot::{Condvar, Mutex, RwLock, RwLockReadGuard};

/// Numbers per block of a rollback segment.
pub const BLOCK: u64 = 64;

/// A readers-writer lock with guards that own a reference to it.
pub type Latch<T> = RwLock<T>;
/// Guard of a shared latch.
pub type SharedGuard<T> = ArcRwLockReadGuard<RawRwLock, T>;
/// Guard of an exclusive latch.
pub type ExclusiveGuard<T> = ArcRwLockWriteGuard<RawRwLock, T>;

/// Turns an exclusive latch into a shared one.
pub fn downgrade<T>(guard: ExclusiveGuard<T>) -> SharedGuard<T> {
    ArcRwLockWriteGuard::downgrade(guard)
}

/// Returns the latch of the guard.
pub fn latch_of<T>(guard: &ExclusiveGuard<T>) -> &Arc<Latch<T>> {
    ArcRwLockWriteGuard::rwlock(guard)
}

/// Returns the latch of a shared guard.
pub fn latch_of_shared<T>(guard: &SharedGuard<T>) -> &Arc<Latch<T>> {
    ArcRwLockReadGuard::rwlock(guard)
}

/// Starts a detached thread.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}
