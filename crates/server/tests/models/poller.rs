//! epoll as far as the checks need it: edge-triggered events that are one while nobody has taken them, given
//! to one waiter each.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::ready::Bell;
use crate::sync::{Condvar, Mutex};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Bell,
    Connection(usize),
    /// Level-triggered: told again and again.
    Stop,
}

#[derive(Default)]
pub(crate) struct Poller {
    state: Mutex<State>,
    waiters: Condvar,
}

#[derive(Default)]
struct State {
    events: VecDeque<Told>,
    is_stopping: bool,
}

impl Poller {
    /// Something happened on a descriptor.
    pub fn tell(&self, event: Told) {
        let mut state = self.state.lock();
        if !state.events.contains(&event) {
            state.events.push_back(event);
        }
        self.waiters.notify_one();
    }

    /// Blocks until there is an event, and takes it; and all that are there beside it, if `more` is to have
    /// them.
    pub fn wait(&self, mut more: Option<impl FnMut(Told)>) -> Told {
        let mut state = self.state.lock();
        loop {
            if let Some(event) = state.events.pop_front() {
                if let Some(more) = &mut more {
                    let others = std::mem::take(&mut state.events);
                    drop(state);
                    others.into_iter().for_each(more);
                    return event;
                }
                if !state.events.is_empty() {
                    self.waiters.notify_one();
                }
                return event;
            }
            if state.is_stopping {
                return Told::Stop;
            }
            self.waiters.wait(&mut state);
        }
    }

    pub fn stop(&self) {
        self.state.lock().is_stopping = true;
        self.waiters.notify_all();
    }
}

/// The event that the ready queue rings.
pub(crate) struct BellOf(pub Arc<Poller>);

impl Bell for BellOf {
    fn ring(&self) {
        self.0.tell(Told::Bell);
    }
}
