//! How a waiter sleeps.

use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::Instant;

/// Where a waiter sleeps: a thread, or whatever a server runs its sessions on.
pub trait Sleeper: Send + Sync {
    /// Sleeps until `wake` is called or the deadline has passed; may return early. The sleeper itself calls
    /// this. After an earlier `wake` it returns at once.
    fn sleep(&self, deadline: Option<Instant>);

    /// Wakes the sleeper; from any thread, holding no lock.
    fn wake(&self);
}

/// Returns the caller's place to sleep.
pub type SleeperOf = fn() -> Arc<dyn Sleeper>;

/// The calling thread sleeps itself.
pub fn this_thread() -> Arc<dyn Sleeper> {
    Arc::new(ThreadSleeper(thread::current()))
}

struct ThreadSleeper(Thread);

impl Sleeper for ThreadSleeper {
    fn sleep(&self, deadline: Option<Instant>) {
        match deadline {
            Some(deadline) => thread::park_timeout(deadline.saturating_duration_since(Instant::now())),
            None => thread::park(),
        }
    }

    fn wake(&self) {
        self.0.unpark();
    }
}
