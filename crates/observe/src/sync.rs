//! The locks and atomics of this crate, imported from one place: the model check (`tests/model.rs`) compiles
//! the same files with a scheduler that permutes threads, and a smaller [`PIECE`].

pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

pub use parking_lot::{Mutex, MutexGuard, RwLock};

/// Slots that a reader copies under one lock.
pub const PIECE: usize = 64;
