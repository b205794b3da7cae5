//! Reads of pages that are not in memory: by threads of their own, while the fiber that needs the page
//! sleeps.
//!
//! # Purpose
//! A worker serves many sessions. If it waited for the disk itself, there would be as many reads under way as
//! there are workers. What the operating system has in its cache is read at once, by the worker that needs
//! it; the rest is asked of a reader thread.
//!
//! # One read
//! ```text
//! miss ---Pool enters the frame, latched alone---> Request in the queue ---a reader thread---> frame filled,
//!         and its Loading                                                     latch free, sleepers woken
//! ```
//! A caller that needs a page that is being read finds its [`Loading`] and sleeps there, without a latch:
//! all workers might wait for that latch, and none would be left to go on with the fiber that holds it.
//! So a caller that slept begins its way down anew, with the page pinned.
//!
//! # Invariants
//! - A [`Loading`] ends: its request is in the queue or with a reader thread, and readers wait for no latch.
//! - A reader thread ends when the queue is closed and empty.
//!
//! # On failure
//! A page that cannot be read leaves no frame, and the sleepers are told so. They go down again and read for
//! themselves: the page may be gone for a good reason, and if not, they have the error.

use std::collections::VecDeque;
use std::sync::Arc;

use cohort_base::IndexId;
use cohort_engine::Bed;

use crate::page::PageId;
use crate::pool::{Exclusive, Latch};
use crate::sync::{Condvar, Mutex};

/// Reader threads at most; they start as they are needed.
pub const READERS_MAX: usize = 16;
/// Requests that nobody waits for are not taken beyond so many.
const AHEAD_MAX: usize = 64;

/// A read under way.
#[derive(Default)]
pub struct Loading {
    state: Mutex<LoadingState>,
}

#[derive(Default)]
struct LoadingState {
    /// Some: whether the page was read.
    outcome: Option<bool>,
    sleepers: Vec<Arc<dyn Bed>>,
}

impl Loading {
    /// Sleeps until the read is over. Returns whether the page is there.
    pub fn sleep(&self, bed: &Arc<dyn Bed>) -> bool {
        let mut is_entered = false;
        loop {
            {
                let mut state = self.state.lock();
                if let Some(outcome) = state.outcome {
                    return outcome;
                }
                if !is_entered {
                    state.sleepers.push(Arc::clone(bed));
                    is_entered = true;
                }
            }
            bed.sleep();
        }
    }

    /// The read is over.
    pub fn finish(&self, is_there: bool) {
        let sleepers = {
            let mut state = self.state.lock();
            state.outcome = Some(is_there);
            std::mem::take(&mut state.sleepers)
        };
        sleepers.iter().for_each(|bed| bed.wake());
    }
}

/// A page that is being read, for all that wait for it.
pub struct Wait {
    pub loading: Arc<Loading>,
    /// Keeps the page in memory until it is latched.
    pub latch: Latch,
    pub bed: Arc<dyn Bed>,
}

/// A page to be read into its frame.
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

/// Requests on their way to reader threads.
#[derive(Default)]
pub struct ReadQueue {
    state: Mutex<State>,
    has_request: Condvar,
}

impl ReadQueue {
    /// Adds a request. True: a further thread is to be started for it.
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

    /// Whether there is room for a request that nobody waits for.
    pub fn takes_more(&self) -> bool {
        self.state.lock().requests.len() < AHEAD_MAX
    }

    /// Whether requests are left for which there is no thread yet.
    pub fn is_behind(&self) -> bool {
        !self.state.lock().requests.is_empty()
    }

    /// A thread was to be started and could not be: true if there is no other.
    pub fn start_failed(&self) -> bool {
        let mut state = self.state.lock();
        state.threads -= 1;
        state.threads == 0
    }

    /// The oldest request, if there is one now.
    pub fn try_pop(&self) -> Option<Request> {
        self.state.lock().requests.pop_front()
    }

    /// The oldest request; none: the queue is closed.
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

    /// Lets the threads end.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.has_request.notify_all();
    }
}
