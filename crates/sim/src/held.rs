//! A test holds up one kind of operation on some files, to look at what others do meanwhile.

use std::sync::Arc;

use cohort_vfs::{HookFs, Operation, SharedFs};
use parking_lot::{Condvar, Mutex};

/// What holds operations up. Cloning shares it.
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
    /// The operation, and how the names of its files begin.
    what: Option<(Operation, &'static str)>,
    waiting: usize,
}

impl Holder {
    /// The file system on which it holds them up; nothing yet.
    pub fn over(&self, inner: SharedFs) -> SharedFs {
        let state = Arc::clone(&self.state);
        Arc::new(HookFs::new(inner, move |operation, name| state.pass(operation, name)))
    }

    /// From now on this operation waits on files whose names begin so.
    pub fn hold(&self, operation: Operation, prefix: &'static str) {
        self.state.held.lock().what = Some((operation, prefix));
    }

    /// Waits until somebody is held up.
    pub fn await_held(&self) {
        let mut held = self.state.held.lock();
        while held.waiting == 0 {
            self.state.changed.wait(&mut held);
        }
    }

    /// Lets everybody go on.
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
