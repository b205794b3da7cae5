//! The locks, latches and atomics of this crate, by one name each: the model check (`tests/model.rs`)
//! compiles the same files over a scheduler that permutes threads. It has a size of its own, too.

use std::io;
use std::sync::Arc;

use parking_lot::{ArcRwLockReadGuard, ArcRwLockWriteGuard, RawRwLock};

pub use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

pub use parking_lot::{Condvar, Mutex, RwLock, RwLockReadGuard};

/// Numbers of a rollback segment's block.
pub const BLOCK: u64 = 64;

/// A readers-writer lock whose guards own their share of it.
pub type Latch<T> = RwLock<T>;
/// Held with others.
pub type SharedGuard<T> = ArcRwLockReadGuard<RawRwLock, T>;
/// Held alone.
pub type ExclusiveGuard<T> = ArcRwLockWriteGuard<RawRwLock, T>;

/// Lets others in.
pub fn downgrade<T>(guard: ExclusiveGuard<T>) -> SharedGuard<T> {
    ArcRwLockWriteGuard::downgrade(guard)
}

/// What the guard holds.
pub fn latch_of<T>(guard: &ExclusiveGuard<T>) -> &Arc<Latch<T>> {
    ArcRwLockWriteGuard::rwlock(guard)
}

/// The same of a guard that others hold, too.
pub fn latch_of_shared<T>(guard: &SharedGuard<T>) -> &Arc<Latch<T>> {
    ArcRwLockReadGuard::rwlock(guard)
}

/// Starts a thread that nobody waits for.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}
