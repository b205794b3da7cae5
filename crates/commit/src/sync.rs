//! The locks and atomics of the protocol under one path. The model check (`tests/model.rs`) compiles the same
//! files with a scheduler that permutes threads.

pub use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

pub use parking_lot::{Condvar, Mutex, MutexGuard};
