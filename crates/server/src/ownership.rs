//! Which thread may touch a connection.
//!
//! ```text
//!            event                      hold
//!   Idle ------------> Running --------------------> Parked
//!    ^                  |   |  ^                       |
//!    +------------------+   |  +-----------------------+
//!      nothing to do        |           acknowledged
//!                           v
//!                         Closed
//! ```
//!
//! Running and Parked remember (`...More`) that an event came meanwhile: epoll is edge-triggered and tells it
//! once. The owner is whoever made the move to Running; moves are compare-and-swap on one byte.

use std::sync::atomic::{AtomicU8, Ordering};

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
    /// Owned by whoever makes it.
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

    /// The owner leaves the connection to whoever publishes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_never_lost() {
        let owner = Ownership::new();
        assert!(!owner.take(), "somebody owns it");
        assert_eq!(owner.release(), Events::Missed);
        assert_eq!(owner.release(), Events::None);
        assert!(owner.take());
        owner.park();
        assert!(!owner.take());
        assert_eq!(owner.unpark(), Some(Events::Missed));
        assert_eq!(owner.unpark(), None, "only once");
        owner.close();
        assert!(!owner.take());
        assert_eq!(owner.unpark(), None);
    }
}
