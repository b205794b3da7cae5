//! Ownership of a connection: decides which thread may use it.
//!
//! # States and transitions
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
//! | `take` | a worker that received an event from epoll; the accepting thread, to end a half-open login |
//! | `release`, `park` | the owner |
//! | `close` | the owner; the accepting thread, if it has released a new connection and cannot register it with epoll |
//! | `unpark` | the thread that acknowledges the commit that the reply waits for; the thread that has just parked it, if the commit was acknowledged before |
//!
//! Running and Parked each have a second form, `...More`, which records that an event has arrived since. A
//! new connection is Running, owned by the accepting thread. An Idle or Parked connection has no owner.
//!
//! # Ownership of connections and events
//! A connection in Running has one owner: the thread that made the connection, or that moved the state to
//! Running. The owner may hand the connection over without a change of the state, through the ready queue or
//! to a new dump thread.
//!
//! The thread that receives an event from epoll must call `take`. After that, the thread owns the connection,
//! or the state has the form `...More`, or the connection is Closed and the event is void. In the form
//! `...More`, the next call of `release` or `unpark` returns [`Events::Missed`] and leaves the connection
//! with its caller, which then processes the event.
//!
//! The thread that released the connection may still be sending its reply. Until it has finished it holds the
//! lock of the connection's contents (`connection.rs`), and a new owner waits for that lock.
//!
//! # Invariants
//! - One owner at a time: only `take` and `unpark` give ownership, each from a state without an owner, by an
//!   atomic change of one byte. Of several threads that call them at once, one gets ownership.
//! - No event is lost: epoll is edge-triggered and reports each event once. `release` therefore changes
//!   RunningMore to Running, not to Idle, and the owner reads the socket again.
//! - Closed is final.

use crate::sync::atomic::{AtomicU8, Ordering};

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
const RUNNING_MORE: u8 = 2;
const PARKED: u8 = 3;
const PARKED_MORE: u8 = 4;
const CLOSED: u8 = 5;

/// Whether an event arrived while the connection was not idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Events {
    None,
    Missed,
}

pub(crate) struct Ownership(AtomicU8);

impl Ownership {
    /// Creates a connection's state, owned by the caller.
    pub fn new() -> Ownership {
        Ownership(AtomicU8::new(RUNNING))
    }

    fn swap(&self, next: impl Fn(u8) -> u8) -> u8 {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| Some(next(now)))
            .expect("the closure always answers")
    }

    /// Records an event. Returns true if the caller now owns the connection.
    pub fn take(&self) -> bool {
        let before = self.swap(|now| match now {
            IDLE => RUNNING,
            RUNNING => RUNNING_MORE,
            PARKED => PARKED_MORE,
            other => other,
        });
        before == IDLE
    }

    /// Makes the connection idle. Returns `Missed` if an event arrived: the caller is still the owner and
    /// must read the socket again.
    pub fn release(&self) -> Events {
        let before = self.swap(|now| match now {
            RUNNING => IDLE,
            RUNNING_MORE => RUNNING,
            other => other,
        });
        if before == RUNNING_MORE { Events::Missed } else { Events::None }
    }

    /// Leaves the connection to the thread that acknowledges the commit that its reply waits for.
    pub fn park(&self) {
        self.swap(|now| match now {
            RUNNING => PARKED,
            RUNNING_MORE => PARKED_MORE,
            other => other,
        });
    }

    /// Takes ownership of a parked connection whose reply may be sent. Returns `None` if the connection was
    /// closed.
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

    /// Closes the connection for good. Called by the owner.
    pub fn close(&self) {
        self.0.store(CLOSED, Ordering::Release);
    }

    /// Returns whether the connection is Idle. Only a hint. A parked connection has no owner either.
    pub fn is_idle(&self) -> bool {
        self.0.load(Ordering::Relaxed) == IDLE
    }
}
