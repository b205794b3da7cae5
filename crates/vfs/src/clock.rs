//! The machine's clock, and a clock for simulations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{Clock, SharedClock};

/// The machine's clock.
///
/// Calls the system directly, because the times of the standard library are checked structures. A statement
/// reads the clock about ten times, and a read this way takes a quarter of the instructions.
pub struct RealClock {
    start_ns: u64,
}

impl RealClock {
    /// Returns it as a shared clock.
    pub fn shared() -> SharedClock {
        Arc::new(RealClock { start_ns: ns(&read(libc::CLOCK_MONOTONIC)) })
    }
}

fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a place for what the call writes.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) };
    debug_assert_eq!(failed, 0, "Linux has these clocks");
    time
}

fn ns(time: &libc::timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Clock for RealClock {
    fn wall_us(&self) -> u64 {
        let time = read(libc::CLOCK_REALTIME);
        // A clock set to a time before 1970 reads as 0.
        u64::try_from(time.tv_sec).map_or(0, |s| s * 1_000_000 + time.tv_nsec as u64 / 1000)
    }

    fn monotonic_ns(&self) -> u64 {
        ns(&read(libc::CLOCK_MONOTONIC)) - self.start_ns
    }

    fn coarse_ms(&self) -> u64 {
        // The coarse clock lags, so its value may be before the start.
        ns(&read(libc::CLOCK_MONOTONIC_COARSE)).saturating_sub(self.start_ns) / 1_000_000
    }
}

/// A clock for simulations: it stands still until it is advanced.
pub struct SimClock {
    wall_us: AtomicU64,
    monotonic_ns: AtomicU64,
}

impl SimClock {
    /// Returns a clock that starts at this wall time.
    pub fn new(wall_us: u64) -> Arc<SimClock> {
        Arc::new(SimClock { wall_us: AtomicU64::new(wall_us), monotonic_ns: AtomicU64::new(0) })
    }

    /// Moves both times forward.
    pub fn advance(&self, by: Duration) {
        self.wall_us.fetch_add(by.as_micros() as u64, Ordering::SeqCst);
        self.monotonic_ns.fetch_add(by.as_nanos() as u64, Ordering::SeqCst);
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

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn the_machines_clock_shows_the_systems_time() {
        let clock = RealClock::shared();
        let wall_us = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_micros() as u64;
        let (before, shown, after) = (wall_us(), clock.wall_us(), wall_us());
        assert!(before <= shown && shown <= after, "{before} {shown} {after}");
    }

    #[test]
    fn coarse_time_is_late_by_some_milliseconds_at_most() {
        let clock = RealClock::shared();
        let began_ns = clock.monotonic_ns();
        std::thread::sleep(Duration::from_millis(30));
        let (coarse_ms, exact_ns) = (clock.coarse_ms(), clock.monotonic_ns());
        assert!(exact_ns - began_ns >= 30_000_000);
        assert!((10..=exact_ns / 1_000_000).contains(&coarse_ms), "{coarse_ms} ms, {exact_ns} ns");
    }
}
