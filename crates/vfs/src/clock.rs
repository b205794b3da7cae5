//! The machine's clock, and one that stands still until it is moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::{Clock, SharedClock};

/// The machine's clock.
pub struct RealClock {
    start: Instant,
}

impl RealClock {
    /// As a shared clock.
    pub fn shared() -> SharedClock {
        Arc::new(RealClock { start: Instant::now() })
    }
}

impl Clock for RealClock {
    fn wall_us(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64)
    }

    fn monotonic_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

/// A clock for simulations: it moves when told to.
pub struct SimClock {
    wall_us: AtomicU64,
    monotonic_ns: AtomicU64,
}

impl SimClock {
    /// Starts at this wall time.
    pub fn new(wall_us: u64) -> Arc<SimClock> {
        Arc::new(SimClock { wall_us: AtomicU64::new(wall_us), monotonic_ns: AtomicU64::new(0) })
    }

    /// Moves both times forward.
    pub fn advance(&self, by: Duration) {
        self.wall_us.fetch_add(by.as_micros() as u64, Ordering::SeqCst);
        self.monotonic_ns.fetch_add(by.as_nanos() as u64, Ordering::SeqCst);
    }

    /// Sets the wall time, backwards too, as an administrator may.
    pub fn set_wall_us(&self, wall_us: u64) {
        self.wall_us.store(wall_us, Ordering::SeqCst);
    }
}

impl Clock for SimClock {
    fn wall_us(&self) -> u64 {
        self.wall_us.load(Ordering::SeqCst)
    }

    fn monotonic_ns(&self) -> u64 {
        self.monotonic_ns.load(Ordering::SeqCst)
    }
}
