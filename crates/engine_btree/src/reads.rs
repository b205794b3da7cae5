//! Asynchronous page reads: reader threads read pages while the fibers that need them wait.
//!
//! # Purpose
//! A worker serves many sessions. If it waited for the disk itself, only as many reads could be in progress
//! as there are workers. Pages in the operating system's cache are read immediately, by the worker that needs
//! them. All other reads are passed to a reader thread.
//!
//! # One read
//! ```text
//! miss ---Pool enters a latched frame---> Request in the queue ---a reader thread---> frame filled,
//!         and its Loading                                             latch released, waiters woken
//! ```
//! A caller that needs a page that is being read finds the page's [`Loading`] and waits there without a
//! latch. If it waited for the latch instead, all workers might do so, and none would be left to resume the
//! fiber that holds it. After waiting, a caller descends again from the root, with the page pinned.
//!
//! # Invariants
//! - A [`Loading`] always finishes: its request is in the queue or with a reader thread, and reader threads
//!   wait for no latch.
//! - A reader thread ends when the queue is closed and empty.
//!
//! # On failure
//! If a page cannot be read, no frame remains, and the waiters are notified of the failure. They descend
//! again and read the page themselves. The page may have been removed legitimately; otherwise they get the
//! error.

use std::collections::VecDeque;
use std::sync::Arc;

use cohort_base::IndexId;
use cohort_engine::WaitSlot;

use crate::frame::{Exclusive, Latch};
use crate::page::PageId;
use crate::sync::{Condvar, Mutex};

/// Maximum number of reader threads. They are started on demand.
pub const READERS_MAX: usize = 16;
/// Queue length from which on prefetch requests are dropped.
const AHEAD_MAX: usize = 64;

/// A read in progress.
#[derive(Default)]
pub struct Loading {
    state: Mutex<LoadingState>,
}

#[derive(Default)]
struct LoadingState {
    /// Set when the read is over: whether the page was read.
    outcome: Option<bool>,
    sleepers: Vec<Arc<dyn WaitSlot>>,
}

impl Loading {
    /// Waits until the read is over. Returns whether the page was read.
    pub fn sleep(&self, wait_slot: &Arc<dyn WaitSlot>) -> bool {
        let mut is_entered = false;
        loop {
            {
                let mut state = self.state.lock();
                if let Some(outcome) = state.outcome {
                    return outcome;
                }
                if !is_entered {
                    state.sleepers.push(Arc::clone(wait_slot));
                    is_entered = true;
                }
            }
            wait_slot.sleep();
        }
    }

    /// Ends the read and wakes the waiters.
    pub fn finish(&self, is_there: bool) {
        let sleepers = {
            let mut state = self.state.lock();
            state.outcome = Some(is_there);
            std::mem::take(&mut state.sleepers)
        };
        sleepers.iter().for_each(|wait_slot| wait_slot.wake());
    }
}

/// Handle for waiting for a page that is being read.
pub struct Wait {
    pub loading: Arc<Loading>,
    /// Pins the page until it is latched.
    pub latch: Latch,
    pub wait_slot: Arc<dyn WaitSlot>,
}

/// A request to read a page into its frame.
pub struct Request {
    pub index: IndexId,
    pub id: PageId,
    pub frame: Exclusive,
    pub loading: Arc<Loading>,
}

#[derive(Default)]
struct State {
    requests: VecDeque<Request>,
    threads: usize,
    idle: usize,
    is_closed: bool,
}

/// Queue of requests for the reader threads.
#[derive(Default)]
pub struct ReadQueue {
    state: Mutex<State>,
    has_request: Condvar,
}

impl ReadQueue {
    /// Adds a request. Returns true if the caller must start another thread.
    #[must_use]
    pub fn push(&self, request: Request) -> bool {
        let mut state = self.state.lock();
        state.requests.push_back(request);
        let starts = state.idle < state.requests.len() && state.threads < READERS_MAX;
        state.threads += usize::from(starts);
        drop(state);
        self.has_request.notify_one();
        starts
    }

    /// Returns whether the queue accepts a prefetch request.
    pub fn takes_more(&self) -> bool {
        self.state.lock().requests.len() < AHEAD_MAX
    }

    /// Returns whether there are requests that no thread has taken yet.
    pub fn is_behind(&self) -> bool {
        !self.state.lock().requests.is_empty()
    }

    /// Notes that a thread could not be started. Returns true if there is no other.
    pub fn start_failed(&self) -> bool {
        let mut state = self.state.lock();
        state.threads -= 1;
        state.threads == 0
    }

    /// Returns the oldest request, if there is one.
    pub fn try_pop(&self) -> Option<Request> {
        self.state.lock().requests.pop_front()
    }

    /// Waits for a request and returns the oldest one, or `None` if the queue is closed.
    pub fn pop(&self) -> Option<Request> {
        let mut state = self.state.lock();
        loop {
            if let Some(request) = state.requests.pop_front() {
                return Some(request);
            }
            if state.is_closed {
                return None;
            }
            state.idle += 1;
            self.has_request.wait(&mut state);
            state.idle -= 1;
        }
    }

    /// Closes the queue, so that the threads end.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.has_request.notify_all();
    }
}
