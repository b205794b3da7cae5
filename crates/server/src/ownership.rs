//! Which thread may touch a connection.
//!
//! # States and who makes each move
//! ```text
//!            take                        park
//!   Idle ------------> Running --------------------> Parked
//!    ^                  |   |  ^                       |
//!    +------------------+   |  +-----------------------+
//!        release            |            unpark
//!                           v close
//!                         Closed
//! ```
//! | move | by |
//! |---|---|
//! | `take` | a worker that epoll told of an event; the accepting thread, to end a half-open login |
//! | `release`, `park`, `close` | the owner |
//! | `unpark` | the thread that publishes what the reply waits for, or the owner if that had happened before |
//!
//! # Who owns what
//! The thread that moved the state to Running owns the connection, until it moves it on or hands the
//! connection over through the ready queue (the state stays Running meanwhile). An event belongs to the
//! thread that epoll told it to until that thread has called `take`: either the thread owns the connection
//! then, or the state remembers the event (`...More`) and the owner learns of it from `release` or `unpark`.
//!
//! # Invariants
//! - One owner at a time: every move is one compare-and-swap of one byte, and only `take` and `unpark` give
//!   ownership, each from a state without an owner.
//! - No event is lost: epoll is edge-triggered and tells it once, so `release` refuses to go idle over an
//!   event that came meanwhile.
//! - Closed is final.

use crate::sync::atomic::{AtomicU8, Ordering};

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
const RUNNING_MORE: u8 = 2;
const PARKED: u8 = 3;
const PARKED_MORE: u8 = 4;
const CLOSED: u8 = 5;

/// Whether an event came while the connection was not idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Events {
    None,
    Missed,
}

pub(crate) struct Ownership(AtomicU8);

impl Ownership {
    /// Owned by its maker.
    pub fn new() -> Ownership {
        Ownership(AtomicU8::new(RUNNING))
    }

    fn swap(&self, next: impl Fn(u8) -> u8) -> u8 {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| Some(next(now)))
            .expect("the closure always answers")
    }

    /// An event: true if the caller owns the connection now.
    pub fn take(&self) -> bool {
        let before = self.swap(|now| match now {
            IDLE => RUNNING,
            RUNNING => RUNNING_MORE,
            PARKED => PARKED_MORE,
            other => other,
        });
        before == IDLE
    }

    /// The owner has nothing to do. `Missed`: he still owns it and must look at the socket again.
    pub fn release(&self) -> Events {
        let before = self.swap(|now| match now {
            RUNNING => IDLE,
            RUNNING_MORE => RUNNING,
            other => other,
        });
        if before == RUNNING_MORE { Events::Missed } else { Events::None }
    }

    /// The owner leaves the connection to the publisher.
    pub fn park(&self) {
        self.swap(|now| match now {
            RUNNING => PARKED,
            RUNNING_MORE => PARKED_MORE,
            other => other,
        });
    }

    /// The answer may go: the caller owns the connection now, unless it was closed (`None`).
    pub fn unpark(&self) -> Option<Events> {
        let before = self.swap(|now| match now {
            PARKED | PARKED_MORE => RUNNING,
            other => other,
        });
        match before {
            PARKED => Some(Events::None),
            PARKED_MORE => Some(Events::Missed),
            _ => None,
        }
    }

    /// The owner closes the connection; nobody owns it again.
    pub fn close(&self) {
        self.0.store(CLOSED, Ordering::Release);
    }

    /// Whether nobody is at work on it. Only a hint.
    pub fn is_idle(&self) -> bool {
        self.0.load(Ordering::Relaxed) == IDLE
    }
}
