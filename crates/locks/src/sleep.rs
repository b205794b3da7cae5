//! How waiters sleep and are woken.

use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::Instant;

/// A wait slot: the thread, or the fiber of a server session, that sleeps while it waits.
pub trait Sleeper: Send + Sync {
    /// Sleeps until `wake` is called or the deadline passes; may return early. Only the sleeper itself calls
    /// this. Returns immediately if `wake` was called before.
    fn sleep(&self, deadline: Option<Instant>);

    /// Wakes the sleeper. May be called from any thread; the caller must hold no lock.
    fn wake(&self);
}

/// Returns the wait slot of the calling thread or fiber.
pub type SleeperOf = fn() -> Arc<dyn Sleeper>;

/// Returns a wait slot that parks the calling thread.
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
