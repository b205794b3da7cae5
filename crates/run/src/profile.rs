//! Measurements of one run of a statement's plans: for ANALYZE, for the slow query log, and for SHOW ANALYZE
//! of a statement that runs.
//!
//! Each part of a plan has a number, under which its work is counted ([`PartId`]): an operator, or the reads
//! of one table. Rows and loops are always counted. Times are measured if the run is *timed*. A run without a
//! profile has no overhead.
//!
//! The statement's own thread writes, and others may read meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use cohort_base::EngineWork;
use cohort_optimize::PartId;

/// Measurements of the parts of a statement's plans.
#[derive(Debug)]
pub struct PlanProfile {
    parts: Box<[NodeCounters]>,
    /// Counts parts that the plans do not number.
    others: NodeCounters,
    is_timed: bool,
    /// Number of temporary files created.
    spills: AtomicU64,
    /// Planning time in nanoseconds.
    planning: u64,
}

/// Statistics of one part.
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
    /// Pages accessed and waits, like the time.
    pub engine: EngineWork,
}

/// The moment when a part of a timed run was called.
#[derive(Clone, Copy, Debug)]
pub struct Started {
    at: Instant,
    engine: EngineWork,
}

impl Started {
    /// Returns the time since then, and the work of engines.
    pub fn spent(&self) -> Spent {
        Spent { nanos: nanos_since(Some(self.at)), engine: EngineWork::here().since(&self.engine) }
    }
}

/// Time and work of engines.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    pub nanos: u64,
    pub engine: EngineWork,
}

impl Spent {
    /// Adds more.
    pub fn add(&mut self, more: &Spent) {
        self.nanos += more.nanos;
        self.engine = self.engine.plus(&more.engine);
    }

    /// Subtracts a part.
    pub fn less(&self, part: &Spent) -> Spent {
        Spent { nanos: self.nanos.saturating_sub(part.nanos), engine: self.engine.since(&part.engine) }
    }
}

/// Returns the time and the work since a start; nothing without a start.
pub fn spent_since(start: Option<Started>) -> Spent {
    start.map(|start| start.spent()).unwrap_or_default()
}

/// A [`NodeProfile`] that accumulates. One thread adds.
#[derive(Debug, Default)]
pub struct NodeCounters {
    loops: AtomicU64,
    read: AtomicU64,
    rows: AtomicU64,
    nanos: AtomicU64,
    spills: AtomicU64,
    engine: [AtomicU64; EngineWork::NUMBERS],
}

#[inline]
fn raise(sum: &AtomicU64, by: u64) {
    sum.store(sum.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

impl NodeCounters {
    /// Adds counts.
    pub fn add(&self, more: NodeProfile) {
        self.count(more.loops, more.read, more.rows);
        raise(&self.spills, more.spills);
        self.spend(&Spent { nanos: more.nanos, engine: more.engine });
    }

    /// Adds time and work of engines.
    pub fn spend(&self, spent: &Spent) {
        raise(&self.nanos, spent.nanos);
        self.engine.iter().zip(spent.engine.numbers()).for_each(|(sum, by)| raise(sum, by));
    }

    /// Adds loops, rows read and rows returned.
    #[inline]
    pub fn count(&self, loops: u64, read: u64, rows: u64) {
        raise(&self.loops, loops);
        raise(&self.read, read);
        raise(&self.rows, rows);
    }

    fn get(&self) -> NodeProfile {
        let [loops, read, rows, nanos, spills] =
            [&self.loops, &self.read, &self.rows, &self.nanos, &self.spills]
                .map(|sum| sum.load(Ordering::Relaxed));
        let engine = self.engine.each_ref().map(|sum| sum.load(Ordering::Relaxed));
        NodeProfile { loops, read, rows, nanos, spills, engine: EngineWork::of_numbers(engine) }
    }
}

impl PlanProfile {
    /// Creates a profile of plans with `parts` parts, without times.
    pub fn counting(parts: u32) -> PlanProfile {
        PlanProfile {
            parts: (0..parts).map(|_| NodeCounters::default()).collect(),
            others: NodeCounters::default(),
            is_timed: false,
            spills: AtomicU64::new(0),
            planning: 0,
        }
    }

    /// Creates a profile with times. `planning` is the planning time in nanoseconds.
    pub fn timing(parts: u32, planning: u64) -> PlanProfile {
        PlanProfile { is_timed: true, planning, ..PlanProfile::counting(parts) }
    }

    /// Returns whether times are measured.
    pub fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// Returns the time and the counters of engines, if times are measured.
    #[inline]
    pub fn clock(&self) -> Option<Started> {
        self.is_timed.then(|| Started { at: Instant::now(), engine: EngineWork::here() })
    }

    /// Returns the measurements of a part.
    pub fn of(&self, part: PartId) -> NodeProfile {
        self.parts.get(part.0 as usize).map(NodeCounters::get).unwrap_or_default()
    }

    /// Returns the counters of a part.
    pub fn counters(&self, part: PartId) -> &NodeCounters {
        self.parts.get(part.0 as usize).unwrap_or(&self.others)
    }

    /// Counts a temporary file.
    pub fn spilled(&self) {
        raise(&self.spills, 1);
    }

    /// Returns the planning time in nanoseconds.
    pub fn planning(&self) -> u64 {
        self.planning
    }

    pub(crate) fn spills(&self) -> u64 {
        self.spills.load(Ordering::Relaxed)
    }
}

/// The profile of one of the statement's plans, whose parts are numbered from `first`.
#[derive(Clone, Copy, Debug)]
pub struct PlanParts<'p> {
    pub profile: &'p PlanProfile,
    pub first: PartId,
}

impl<'p> PlanParts<'p> {
    /// Returns the counters of a part of the plan.
    pub fn counters(&self, part: PartId) -> &'p NodeCounters {
        self.profile.counters(PartId(self.first.0 + part.0))
    }

    /// Returns the measurements of a part of the plan.
    pub fn of(&self, part: PartId) -> NodeProfile {
        self.profile.of(PartId(self.first.0 + part.0))
    }
}

/// Returns the nanoseconds since `start`, 0 without a start.
pub fn nanos_since(start: Option<Instant>) -> u64 {
    start.map_or(0, |start| u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}
