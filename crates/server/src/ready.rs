//! The ready queue: work for workers beside the events of epoll, and which worker is woken for it.
//!
//! # Concepts
//! *Work* is a connection that wants a worker, or a statement that waited and goes on. A worker that finds no
//! work *rests*: it waits for an event. The *bell* is an event that ends one rest; it is edge-triggered, and
//! strokes that come before anybody has heard the first are one.
//!
//! # States of the bell
//! ```text
//!             push, or a worker that leaves work behind, while somebody rests
//!   silent ------------------------------------------------------------------> rung
//!     ^                                                                          |
//!     +------------------------- the worker that heard it gets up ---------------+
//! ```
//!
//! # Who owns what
//! - Work belongs to the queue, then to the worker that took it, which does not put it back.
//! - An event belongs to the worker that epoll gave it to. [`Ready::next`] hands it out at once; the worker
//!   serves it before it asks for anything else, [`Workers::stay`](crate::pool::Workers::stay) included. Of
//!   several that came at once, it leaves all but one to the queue.
//! - A stroke of the bell belongs to the worker that heard it. It takes the oldest work and, if work is left
//!   and somebody else still rests, rings for that one. So a burst of work wakes as many as there is work
//!   for, although its strokes were one.
//!
//! # Invariants
//! - While the queue holds work and a worker rests, the bell is rung: its stroke waits in epoll, or a worker
//!   has heard it and has not got up yet. Checked at every change of the state ([`State::bell_is_due`]), but
//!   for work that a worker leaves which is about to get up: that is the next change.
//! - A worker rests only when it found the queue empty under the lock, in the same step in which it was
//!   counted as resting.
//! - A worker that gets up because of another event leaves the stroke in epoll, for the next one that rests;
//!   if it was told of the stroke beside that event, it rings again.
//!
//! # Lock order
//! The state's lock is a leaf. The bell is rung after it was released.

use std::collections::VecDeque;

use crate::sync::Mutex;

/// Ends the rest of one worker.
pub(crate) trait Bell {
    /// Wakes a worker that rests, or the next one that will.
    fn ring(&self);
}

/// What ended a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard<E> {
    Bell,
    /// Something else, which the worker owns now.
    Other(E),
}

/// What a worker is to do next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<W, E> {
    Work(W),
    /// A rest ended with this.
    Event(E),
    /// A rest ended, and others were faster: ask again.
    Nothing,
    /// The worker is not needed any more.
    Leave,
}

/// The queue.
pub(crate) struct Ready<W, B> {
    state: Mutex<State<W>>,
    bell: B,
}

struct State<W> {
    queue: VecDeque<W>,
    /// Workers that wait for events, or are about to.
    resting: usize,
    /// The bell was rung, and no worker has got up since.
    is_rung: bool,
}

impl<W> State<W> {
    /// Whether the caller has to ring once it has released the lock; then it counts as rung.
    fn bell_is_due(&mut self) -> bool {
        let is_due = !self.queue.is_empty() && self.resting > 0 && !self.is_rung;
        self.is_rung |= is_due;
        is_due
    }
}

impl<W, B: Bell> Ready<W, B> {
    /// An empty queue.
    pub fn new(bell: B) -> Ready<W, B> {
        Ready { state: Mutex::new(State { queue: VecDeque::new(), resting: 0, is_rung: false }), bell }
    }

    /// Leaves work to the workers.
    pub fn push(&self, work: W) {
        self.change(|state| state.queue.push_back(work));
    }

    /// Leaves work to the others from within `wait` of [`Ready::next`], which rings for it when the caller
    /// gets up.
    pub fn push_within(&self, work: impl Iterator<Item = W>) {
        self.state.lock().queue.extend(work);
    }

    /// The oldest work.
    pub fn pop(&self) -> Option<W> {
        self.change(|state| state.queue.pop_front())
    }

    /// What a worker does next: the oldest work; else, if `stay` says that the worker is still needed, what
    /// `wait` waits for. That is told whether all other workers are at work: then it may take more events
    /// than one, and makes work of the others.
    pub fn next<E>(&self, stay: impl FnOnce() -> bool, wait: impl FnOnce(bool) -> Heard<E>) -> Next<W, E> {
        if let Some(work) = self.pop() {
            return Next::Work(work);
        }
        if !stay() {
            return Next::Leave;
        }
        let is_alone = match self.lie_down() {
            Ok(work) => return Next::Work(work),
            Err(resting) => resting == 1,
        };
        match wait(is_alone) {
            Heard::Bell => self.change(State::answer_bell).map_or(Next::Nothing, Next::Work),
            Heard::Other(event) => {
                self.change(|state| state.resting -= 1);
                Next::Event(event)
            }
        }
    }

    /// The oldest work; or the number of workers that rest, of which the caller is one now.
    fn lie_down(&self) -> Result<W, usize> {
        self.change(|state| {
            state.queue.pop_front().ok_or_else(|| {
                state.resting += 1;
                state.resting
            })
        })
    }

    /// The bell this queue rings.
    pub fn bell(&self) -> &B {
        &self.bell
    }

    /// Changes the state and rings if that is due then.
    fn change<R>(&self, change: impl FnOnce(&mut State<W>) -> R) -> R {
        let (result, is_due) = {
            let mut state = self.state.lock();
            (change(&mut state), state.bell_is_due())
        };
        if is_due {
            self.bell.ring();
        }
        result
    }
}

impl<W> State<W> {
    /// A worker that heard the bell gets up and takes the oldest work.
    fn answer_bell(&mut self) -> Option<W> {
        self.resting -= 1;
        self.is_rung = false;
        self.queue.pop_front()
    }
}
