//! The timekeeper: a thread that closes groups which were left open (`pace.rs`) and whose last members did
//! not come in time, and leads what nobody else would lead while a leader decides (`pipeline.rs`).
//!
//! It sleeps while no group is open. When an open group is out of time, [`Pace::wait_due`](crate::Pace)
//! returns, and the timekeeper leads as a worker does. Without the thread (in tests) the next caller that
//! orders or waits closes such a group, or the leader that has decided.

use std::sync::Arc;

use cohort_base::NoUnwind;

use crate::coordinator::Coordinator;

/// Starts the thread; it ends with the coordinator.
pub fn start(coordinator: &Arc<Coordinator>) {
    let pace = Arc::clone(coordinator.pace());
    let clock = Arc::clone(&coordinator.env().world.clock);
    let weak = Arc::downgrade(coordinator);
    let run = move || {
        // Without it open groups would stay open.
        let guard = NoUnwind::during("the timekeeper's work");
        while pace.wait_due(&|| clock.monotonic_ns()) {
            let Some(coordinator) = weak.upgrade() else { break };
            coordinator.lead();
        }
        guard.passed();
    };
    std::thread::Builder::new().name("timekeeper".to_owned()).spawn(run).expect("a thread at start");
}
