//! [`Marker`]: the thread that records acknowledgements to a semi-synchronous source after they are sent.
//!
//! A mark costs one more flush, so a separate thread writes it: neither the receiver nor this thread waits
//! for the other. The thread writes a mark immediately if the last one is old enough, and at most one per
//! [`PAUSE`]. Events acknowledged between the newest mark and a crash are durable nevertheless. Only if the
//! disk damages exactly that range does the damage look like a torn end that was never acknowledged.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::place::RelayPlace;
use crate::relay::RelayLog;

/// Minimum time between two marks.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Default)]
struct Wanted {
    until: RelayPlace,
    is_stopped: bool,
}

/// State shared with the thread.
pub struct Marker<'l> {
    relay: &'l RelayLog,
    wanted: Mutex<Wanted>,
    wake: Condvar,
}

/// Stops the thread when the receiver ends, even by a panic.
pub struct Stop<'m, 'l>(pub &'m Marker<'l>);

impl Drop for Stop<'_, '_> {
    fn drop(&mut self) {
        self.0.wanted.lock().is_stopped = true;
        self.0.wake.notify_all();
    }
}

impl<'l> Marker<'l> {
    /// Creates a marker with nothing acknowledged.
    pub fn new(relay: &'l RelayLog) -> Marker<'l> {
        Marker { relay, wanted: Mutex::default(), wake: Condvar::new() }
    }

    /// Records that everything before `until` was acknowledged.
    pub fn note(&self, until: RelayPlace) {
        self.wanted.lock().until = until;
        self.wake.notify_one();
    }

    /// Runs the thread. Its last mark says that nothing more was acknowledged. Returns the first error. A
    /// mark that cannot be written leaves the previous one in place, and the thread tries the next one.
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
