//! Work that waits for a worker, beside the events of epoll.
//!
//! A worker looks here before it waits for an event. Who puts work in wakes a worker only if one waits: the
//! worker says so ([`Ready::rest`]), then looks here once more, so either it sees the work or the other sees
//! that it waits.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::epoll::EventFd;
use crate::fiber::Fiber;

/// Something for a worker to do.
pub(crate) enum Work<J: Send + 'static> {
    /// A job that has not begun.
    Begin(J),
    /// A job that slept and was woken.
    Continue(Fiber<J>),
}

/// The queue.
pub(crate) struct Ready<J: Send + 'static> {
    queue: Mutex<VecDeque<Work<J>>>,
    /// Workers that wait for events, or are about to.
    resting: AtomicUsize,
    event: EventFd,
}

impl<J: Send> Ready<J> {
    pub fn new() -> io::Result<Ready<J>> {
        Ok(Ready { queue: Mutex::default(), resting: AtomicUsize::new(0), event: EventFd::new()? })
    }

    /// Leaves work to the workers.
    pub fn push(&self, work: Work<J>) {
        self.queue.lock().push_back(work);
        if self.resting.load(Ordering::SeqCst) > 0 {
            self.event.notify();
        }
    }

    /// The oldest work.
    pub fn pop(&self) -> Option<Work<J>> {
        self.queue.lock().pop_front()
    }

    /// A worker waits for an event with `wait`, unless there is work.
    pub fn rest<T>(&self, wait: impl FnOnce() -> T) -> Result<T, Work<J>> {
        self.resting.fetch_add(1, Ordering::SeqCst);
        let rested = match self.pop() {
            Some(work) => Err(work),
            None => Ok(wait()),
        };
        self.resting.fetch_sub(1, Ordering::SeqCst);
        rested
    }
}

impl<J: Send> AsRawFd for Ready<J> {
    fn as_raw_fd(&self) -> RawFd {
        self.event.as_raw_fd()
    }
}
