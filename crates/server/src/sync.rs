//! Locks, atomics and threads of the files that the model checks compile a second time.
//!
//! `ownership`, `ready` and `pool` take them from here. `tests/models` includes the same three files and puts
//! a scheduler's types in this module's place, so the product never depends on the scheduler.

pub(crate) use std::sync::atomic;
pub(crate) use std::{thread, thread_local};

pub(crate) use parking_lot::{Condvar, Mutex};
