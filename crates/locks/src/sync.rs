//! The locks and atomics of this crate, imported from one place: the model check (`tests/model.rs`) compiles
//! the same files with a scheduler that permutes threads.

pub use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};

pub use parking_lot::{Mutex, MutexGuard, RwLock};
