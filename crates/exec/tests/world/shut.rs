//! A gate that holds back durable transactions, like a semi-synchronous source without its replica.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cohort_base::{BinlogPos, CommitSeq};
use cohort_commit::{Coordinator, Gate, ReplicaGate};

/// A gate that is open until [`Shut::shut`].
#[derive(Default)]
pub struct Shut {
    is_shut: AtomicBool,
    durable: AtomicBool,
}

#[allow(dead_code)] // not used by every test
impl Shut {
    /// Stops publishing.
    pub fn shut(&self) {
        self.durable.store(false, Ordering::Release);
        self.is_shut.store(true, Ordering::Release);
    }

    /// Waits until a transaction that the gate holds back is durable.
    pub fn wait_durable(&self, what: &str) {
        let end = Instant::now() + Duration::from_secs(60);
        while !self.durable.load(Ordering::Acquire) {
            assert!(Instant::now() < end, "{what} is never durable");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Publishes the transactions held back.
    pub fn open(&self, commit: &Coordinator) {
        self.is_shut.store(false, Ordering::Release);
        commit.gate_opened();
    }
}

impl ReplicaGate for Shut {
    fn made_durable(&self, _: BinlogPos, _: CommitSeq, _: u64) {
        self.durable.store(true, Ordering::Release);
    }

    fn is_on(&self) -> bool {
        true
    }

    fn holds(&self, gate: Gate, _: BinlogPos) -> bool {
        gate == Gate::Publish && self.is_shut.load(Ordering::Acquire)
    }

    fn restarted(&self) {}
}
