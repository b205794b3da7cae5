//! Locks, atomics and threads for the files that the model checks compile a second time.
//!
//! `ownership`, `ready` and `pool` import them from here. `tests/models` includes the same three files and
//! replaces this module by a scheduler's types, so the product never depends on the scheduler.

pub(crate) use std::sync::atomic;
pub(crate) use std::{thread, thread_local};

pub(crate) use parking_lot::{Condvar, Mutex};
