//! Blocks one kind of operation on some files, so that a test can observe other threads meanwhile.

use std::sync::Arc;

use cohort_vfs::{HookFs, Operation, SharedFs};
use parking_lot::{Condvar, Mutex};

/// Blocks operations. Clones share their state.
#[derive(Clone, Default)]
pub struct Holder {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    held: Mutex<Held>,
    changed: Condvar,
}

#[derive(Default)]
struct Held {
    /// The blocked operation, and the prefix of the file names.
    what: Option<(Operation, &'static str)>,
    waiting: usize,
}

impl Holder {
    /// Returns a file system on which operations can be blocked. Initially none is.
    pub fn over(&self, inner: SharedFs) -> SharedFs {
        let state = Arc::clone(&self.state);
        Arc::new(HookFs::new(inner, move |operation, name| state.pass(operation, name)))
    }

    /// Blocks this operation on files whose names begin with `prefix`.
    pub fn hold(&self, operation: Operation, prefix: &'static str) {
        self.state.held.lock().what = Some((operation, prefix));
    }

    /// Waits until a thread is blocked.
    pub fn await_held(&self) {
        let mut held = self.state.held.lock();
        while held.waiting == 0 {
            self.state.changed.wait(&mut held);
        }
    }

    /// Unblocks all threads.
    pub fn release(&self) {
        self.state.held.lock().what = None;
        self.state.changed.notify_all();
    }
}

impl State {
    fn pass(&self, operation: Operation, name: &str) {
        let mut held = self.held.lock();
        let is_held = |held: &Held| {
            held.what.is_some_and(|(which, prefix)| which == operation && name.starts_with(prefix))
        };
        if !is_held(&held) {
            return;
        }
        held.waiting += 1;
        self.changed.notify_all();
        while is_held(&held) {
            self.changed.wait(&mut held);
        }
        held.waiting -= 1;
    }
}
