//! [`Marker`]: the thread that records acknowledgements to a semi-synchronous source after they are sent.
//!
//! A mark is one more flush. It waits for none of the receiver's and the receiver for none of its: it is
//! written by a thread of its own, at once if the last one is some time ago, and at most once in
//! [`PAUSE`]. What was acknowledged between the newest mark and a crash is whole on disk all the same; only
//! damage there looks like an end that was never written.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::relay::{RelayLog, RelayPlace};

/// Between two marks.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Default)]
struct Wanted {
    until: RelayPlace,
    is_stopped: bool,
}

/// The thread's orders.
pub struct Marker<'l> {
    relay: &'l RelayLog,
    wanted: Mutex<Wanted>,
    wake: Condvar,
}

/// Ends the thread when the receiver leaves, be it by a bug.
pub struct Stop<'m, 'l>(pub &'m Marker<'l>);

impl Drop for Stop<'_, '_> {
    fn drop(&mut self) {
        self.0.wanted.lock().is_stopped = true;
        self.0.wake.notify_all();
    }
}

impl<'l> Marker<'l> {
    /// Nothing is acknowledged yet.
    pub fn new(relay: &'l RelayLog) -> Marker<'l> {
        Marker { relay, wanted: Mutex::default(), wake: Condvar::new() }
    }

    /// Everything before this place was acknowledged.
    pub fn note(&self, until: RelayPlace) {
        self.wanted.lock().until = until;
        self.wake.notify_one();
    }

    /// The thread's life. Its last mark says that no more was acknowledged. The first error is the answer; a
    /// mark that cannot be written leaves the one before it, and the next one is tried.
    pub fn run(&self) -> std::io::Result<()> {
        let mut outcome = Ok(());
        let mut marked = RelayPlace::default();
        loop {
            let (until, is_stopped) = {
                let mut wanted = self.wanted.lock();
                while wanted.until <= marked && !wanted.is_stopped {
                    self.wake.wait(&mut wanted);
                }
                (wanted.until, wanted.is_stopped)
            };
            outcome = outcome.and(self.relay.mark(until.max(marked), !is_stopped));
            if is_stopped {
                return outcome;
            }
            marked = until;
            let end = Instant::now() + PAUSE;
            let mut wanted = self.wanted.lock();
            while !wanted.is_stopped && !self.wake.wait_until(&mut wanted, end).timed_out() {}
        }
    }
}
