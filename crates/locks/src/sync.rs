//! The locks and atomics of this crate, by one name each: the model check (`tests/model.rs`) compiles the
//! same files over a scheduler that permutes threads.

pub use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};

pub use parking_lot::{Mutex, MutexGuard, RwLock};
