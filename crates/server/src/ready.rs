//! Ready queue: work for the worker threads beyond the events that they wait for in epoll, and the wakeup of
//! workers for it.
//!
//! # Concepts
//! *Work* is a connection that needs a worker, or a statement that can continue after a wait. A worker that
//! finds no work becomes *idle*: it waits for an epoll event. The *wakeup event* ([`WakeupEvent`], an
//! eventfd) wakes one idle worker. It is edge-triggered: several notifications count as one until a worker
//! has received it.
//!
//! # States of the wakeup event
//! ```text
//!         push, or a worker takes work and leaves more, while another worker is idle
//!   silent ------------------------------------------------------------------> pending
//!     ^                                                                          |
//!     +-------------------- the worker that received it wakes up ----------------+
//! ```
//!
//! # Ownership of work and events
//! - Work belongs to the queue, then to the worker that took it. The worker does not put it back.
//! - An event belongs to the worker that epoll returned it to. [`Ready::next`] returns it at once, and the
//!   worker serves it before it does anything else, including [`Workers::stay`](crate::pool::Workers::stay),
//!   which puts surplus workers to sleep. If epoll returned several events at once, the worker puts all but
//!   one into the queue.
//! - A wakeup belongs to the worker that received it. The worker takes the oldest work. If work is left and
//!   another worker is still idle, it sends the wakeup event again. A burst of work thus wakes as many
//!   workers as there are pieces of work, even if its notifications were merged into one.
//!
//! # Invariants
//! - While the queue holds work and a worker is idle, the wakeup event is pending: it waits in epoll, or
//!   `epoll_wait` has returned it to a worker that has not called [`State::receive_wakeup`] yet.
//!   [`State::wakeup_is_due`] decides at each change of the state whether the event must be sent. Exception:
//!   [`Ready::push_within`] sends no event; the next change, when the same worker leaves its wait, does.
//! - A worker becomes idle only if it found the queue empty, in the same critical section that counts it as
//!   idle.
//! - A worker that wakes up because of another event leaves the wakeup event in epoll for the next idle
//!   worker. If epoll returned the wakeup event as a further event, it sends it again.
//!
//! # Lock order
//! The state's lock is a leaf. The wakeup event is sent after the lock was released.

use std::collections::VecDeque;

use crate::sync::Mutex;

/// A wakeup event: wakes one idle worker.
pub(crate) trait WakeupEvent {
    /// Wakes an idle worker, or the next worker that becomes idle.
    fn notify(&self);
}

/// The reason why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitEnd<E> {
    Wakeup,
    /// Another event, which the worker now owns.
    Other(E),
}

/// The next step of a worker.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<W, E> {
    Work(W),
    /// The wait ended with this event.
    Event(E),
    /// The wait ended, but other workers took the work: call again.
    Nothing,
    /// The worker is not needed any more.
    Leave,
}

/// The queue of work and its wakeup event.
pub(crate) struct Ready<W, B> {
    state: Mutex<State<W>>,
    wakeup: B,
}

struct State<W> {
    queue: VecDeque<W>,
    /// Workers that wait for events, or are about to.
    idle: usize,
    /// The wakeup event was sent, and no worker has woken up since.
    is_pending: bool,
}

impl<W> State<W> {
    /// Returns whether the caller must send the wakeup event after it has released the lock. The event counts
    /// as sent from then on.
    fn wakeup_is_due(&mut self) -> bool {
        let is_due = !self.queue.is_empty() && self.idle > 0 && !self.is_pending;
        self.is_pending |= is_due;
        is_due
    }
}

impl<W, B: WakeupEvent> Ready<W, B> {
    /// Creates an empty queue.
    pub fn new(wakeup: B) -> Ready<W, B> {
        Ready { state: Mutex::new(State { queue: VecDeque::new(), idle: 0, is_pending: false }), wakeup }
    }

    /// Adds work and wakes a worker if one is idle.
    pub fn push(&self, work: W) {
        self.change(|state| state.queue.push_back(work));
    }

    /// Adds work from within `wait` of [`Ready::next`]. `next` sends the wakeup event for it when the caller
    /// wakes up.
    pub fn push_within(&self, work: impl Iterator<Item = W>) {
        self.state.lock().queue.extend(work);
    }

    /// Takes the oldest work.
    pub fn pop(&self) -> Option<W> {
        self.change(|state| state.queue.pop_front())
    }

    /// Returns a worker's next step: the oldest work, or, if `stay` confirms that the worker is still needed,
    /// the event that `wait` returns. The argument of `wait` is true if no other worker is idle. The worker
    /// may then take more than one event and queue the others as work.
    pub fn next<E>(&self, stay: impl FnOnce() -> bool, wait: impl FnOnce(bool) -> WaitEnd<E>) -> Next<W, E> {
        if let Some(work) = self.pop() {
            return Next::Work(work);
        }
        if !stay() {
            return Next::Leave;
        }
        let is_alone = match self.become_idle() {
            Ok(work) => return Next::Work(work),
            Err(idle) => idle == 1,
        };
        match wait(is_alone) {
            WaitEnd::Wakeup => self.change(State::receive_wakeup).map_or(Next::Nothing, Next::Work),
            WaitEnd::Other(event) => {
                self.change(|state| state.idle -= 1);
                Next::Event(event)
            }
        }
    }

    /// Returns the oldest work, or counts the caller as idle and returns the number of idle workers.
    fn become_idle(&self) -> Result<W, usize> {
        self.change(|state| {
            state.queue.pop_front().ok_or_else(|| {
                state.idle += 1;
                state.idle
            })
        })
    }

    /// Returns the wakeup event of this queue.
    pub fn wakeup(&self) -> &B {
        &self.wakeup
    }

    /// Changes the state, and sends the wakeup event if it is due.
    fn change<R>(&self, change: impl FnOnce(&mut State<W>) -> R) -> R {
        let (result, is_due) = {
            let mut state = self.state.lock();
            (change(&mut state), state.wakeup_is_due())
        };
        if is_due {
            self.wakeup.notify();
        }
        result
    }
}

impl<W> State<W> {
    /// Ends the wait of a worker that received the wakeup event, and takes the oldest work.
    fn receive_wakeup(&mut self) -> Option<W> {
        self.idle -= 1;
        self.is_pending = false;
        self.queue.pop_front()
    }
}
