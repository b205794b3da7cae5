//! The timekeeper: a thread that closes groups which were left open (`pace.rs`) and whose last members did
//! not come in time.
//!
//! It sleeps while no group is open, and never while one is out of time: [`Pace::wait_due`](crate::Pace)
//! answers then, and it leads like anybody else. Without it (tests) a group that is out of time is closed by
//! the next one who orders or waits.

use std::sync::Arc;

use crate::coordinator::Coordinator;

/// Starts the thread; it ends with the coordinator.
pub fn start(coordinator: &Arc<Coordinator>) {
    let pace = Arc::clone(coordinator.pace());
    let clock = Arc::clone(&coordinator.env().world.clock);
    let weak = Arc::downgrade(coordinator);
    let run = move || {
        while pace.wait_due(&|| clock.monotonic_ns()) {
            let Some(coordinator) = weak.upgrade() else { return };
            coordinator.lead();
        }
    };
    std::thread::Builder::new().name("timekeeper".to_owned()).spawn(run).expect("a thread at start");
}
