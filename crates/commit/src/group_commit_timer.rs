//! The group-commit timer thread. It leads open groups (`group_commit.rs`) whose last members did not arrive
//! in time. It also leads queues that no worker would lead: those left for too long, and those queued while a
//! leader decides (`pipeline.rs`).
//!
//! It sleeps while no group is open. When an open group's time is up,
//! [`GroupCommitPolicy::wait_due`](crate::GroupCommitPolicy) returns, and the thread leads as a worker does.
//! Without the thread (in tests) such a group is flushed by the next caller that orders or waits, or by the
//! leader that has decided.

use std::sync::Arc;

use cohort_base::AbortOnUnwind;

use crate::coordinator::Coordinator;

/// Starts the thread; it ends with the coordinator.
pub fn start(coordinator: &Arc<Coordinator>) {
    let group_commit = Arc::clone(coordinator.group_commit());
    let clock = Arc::clone(&coordinator.env().world.clock);
    let weak = Arc::downgrade(coordinator);
    let run = move || {
        // A panic must end the process: without the thread, open groups would stay open.
        let guard = AbortOnUnwind::during("the work of the group-commit timer");
        while group_commit.wait_due(&|| clock.monotonic_ns()) {
            let Some(coordinator) = weak.upgrade() else { break };
            coordinator.lead();
        }
        guard.disarm();
    };
    std::thread::Builder::new().name("group_commit".to_owned()).spawn(run).expect("a thread at start");
}
