//! Operator statistics of one run, for ANALYZE of a statement and for the slow query log.
//!
//! A run with [`PlanProfile`] wraps each operator in a `Profiled`, which counts and times every call. Storage
//! that reads tables for the run adds its own counts. A run without one has no overhead.
//!
//! Parts of a plan are identified by their address, because a plan does not move while it runs and is
//! reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hashbrown::HashMap;
use parking_lot::Mutex;

/// Statistics of the parts of one plan.
#[derive(Debug, Default)]
pub struct PlanProfile {
    parts: Mutex<HashMap<usize, Arc<NodeCounters>>>,
    /// Number of temporary files created.
    spills: AtomicU64,
    /// Planning time in nanoseconds.
    planning: AtomicU64,
}

/// Statistics of one part: an operator, or the reads of one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeProfile {
    /// Number of times it was opened.
    pub loops: u64,
    /// Rows read from a table, before its filter.
    pub read: u64,
    /// Rows returned.
    pub rows: u64,
    /// Elapsed time, including the parts below.
    pub nanos: u64,
    /// Temporary files created, including those of the parts below.
    pub spills: u64,
}

/// A [`NodeProfile`] that accumulates.
#[derive(Debug, Default)]
pub struct NodeCounters {
    loops: AtomicU64,
    read: AtomicU64,
    rows: AtomicU64,
    nanos: AtomicU64,
    spills: AtomicU64,
}

impl NodeCounters {
    /// Adds counts.
    pub fn add(&self, more: NodeProfile) {
        let sums = [&self.loops, &self.read, &self.rows, &self.nanos, &self.spills];
        let parts = [more.loops, more.read, more.rows, more.nanos, more.spills];
        for (sum, part) in sums.into_iter().zip(parts) {
            sum.fetch_add(part, Ordering::Relaxed);
        }
    }

    fn get(&self) -> NodeProfile {
        let [loops, read, rows, nanos, spills] =
            [&self.loops, &self.read, &self.rows, &self.nanos, &self.spills]
                .map(|sum| sum.load(Ordering::Relaxed));
        NodeProfile { loops, read, rows, nanos, spills }
    }
}

impl PlanProfile {
    /// Returns the statistics of a part, or `None` if it never ran.
    pub fn of<T: ?Sized>(&self, part: &T) -> Option<NodeProfile> {
        self.parts.lock().get(&place(part)).map(|counters| counters.get())
    }

    /// Returns the accumulator of a part.
    pub fn counters<T: ?Sized>(&self, part: &T) -> Arc<NodeCounters> {
        Arc::clone(self.parts.lock().entry(place(part)).or_default())
    }

    /// Counts a temporary file.
    pub fn spilled(&self) {
        self.spills.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets the planning time.
    pub fn set_planning(&self, nanos: u64) {
        self.planning.store(nanos, Ordering::Relaxed);
    }

    /// Returns the planning time.
    pub fn planning(&self) -> u64 {
        self.planning.load(Ordering::Relaxed)
    }

    pub(crate) fn spills(&self) -> u64 {
        self.spills.load(Ordering::Relaxed)
    }
}

fn place<T: ?Sized>(part: &T) -> usize {
    std::ptr::from_ref(part).cast::<()>() as usize
}

/// Returns the nanoseconds since `start`.
pub fn nanos_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
