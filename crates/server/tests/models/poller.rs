//! A model of epoll, as far as the checks need it: edge-triggered events, merged until they are taken, and
//! each delivered to one waiter.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::ready::WakeupEvent;
use crate::sync::{Condvar, Mutex};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollEvent {
    Wakeup,
    Connection(usize),
    /// Level-triggered: reported repeatedly.
    Stop,
}

#[derive(Default)]
pub(crate) struct Poller {
    state: Mutex<State>,
    waiters: Condvar,
}

#[derive(Default)]
struct State {
    events: VecDeque<PollEvent>,
    is_stopping: bool,
}

impl Poller {
    /// Reports an event of a descriptor.
    pub fn report(&self, event: PollEvent) {
        let mut state = self.state.lock();
        if !state.events.contains(&event) {
            state.events.push_back(event);
        }
        self.waiters.notify_one();
    }

    /// Blocks until there is an event, and takes it. If `more` is given, passes it all other pending events.
    pub fn wait(&self, mut more: Option<impl FnMut(PollEvent)>) -> PollEvent {
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
                return PollEvent::Stop;
            }
            self.waiters.wait(&mut state);
        }
    }

    pub fn stop(&self) {
        self.state.lock().is_stopping = true;
        self.waiters.notify_all();
    }
}

/// The wakeup event (`WakeupEvent`) of the ready queue.
pub(crate) struct WakeupOf(pub Arc<Poller>);

impl WakeupEvent for WakeupOf {
    fn notify(&self) {
        self.0.report(PollEvent::Wakeup);
    }
}
