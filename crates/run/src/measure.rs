//! Operator statistics of one run, for ANALYZE of a statement and for the slow query log.
//!
//! A run with [`Measures`] wraps each operator in a [`Measured`], which counts and times every call. Storage
//! that reads tables for the run adds its own counts. A run without measures has no overhead.
//!
//! Parts of a plan are identified by their address, because a plan does not move while it runs and is
//! reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use cohort_types::{SqlResult, VectorType};
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::batch::Batch;
use crate::operator::Operator;
use crate::runtime::Run;
use crate::vectors::Vectors;

/// Statistics of the parts of one plan.
#[derive(Debug, Default)]
pub struct Measures {
    parts: Mutex<HashMap<usize, Arc<Tally>>>,
    /// Number of temporary files created.
    spills: AtomicU64,
    /// Planning time in nanoseconds.
    planning: AtomicU64,
}

/// Statistics of one part: an operator, or the reads of one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measure {
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

/// A [`Measure`] that accumulates.
#[derive(Debug, Default)]
pub struct Tally {
    loops: AtomicU64,
    read: AtomicU64,
    rows: AtomicU64,
    nanos: AtomicU64,
    spills: AtomicU64,
}

impl Tally {
    /// Adds counts.
    pub fn add(&self, more: Measure) {
        let sums = [&self.loops, &self.read, &self.rows, &self.nanos, &self.spills];
        let parts = [more.loops, more.read, more.rows, more.nanos, more.spills];
        for (sum, part) in sums.into_iter().zip(parts) {
            sum.fetch_add(part, Ordering::Relaxed);
        }
    }

    fn get(&self) -> Measure {
        let [loops, read, rows, nanos, spills] =
            [&self.loops, &self.read, &self.rows, &self.nanos, &self.spills]
                .map(|sum| sum.load(Ordering::Relaxed));
        Measure { loops, read, rows, nanos, spills }
    }
}

impl Measures {
    /// Returns the statistics of a part, or `None` if it never ran.
    pub fn of<T: ?Sized>(&self, part: &T) -> Option<Measure> {
        self.parts.lock().get(&place(part)).map(|tally| tally.get())
    }

    /// Returns the accumulator of a part.
    pub fn tally<T: ?Sized>(&self, part: &T) -> Arc<Tally> {
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

    fn spills(&self) -> u64 {
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

/// A wrapper that measures an operator.
pub(crate) struct Measured<'p> {
    pub inner: Box<dyn Operator<'p> + 'p>,
    pub measures: &'p Measures,
    pub tally: Arc<Tally>,
}

impl<'p> Measured<'p> {
    /// Calls the operator. The second result of `call` is the number of rows returned.
    fn call<T>(
        &mut self,
        loops: u64,
        call: impl FnOnce(&mut dyn Operator<'p>) -> SqlResult<(T, u64)>,
    ) -> SqlResult<T> {
        let (start, spills) = (Instant::now(), self.measures.spills());
        let answer = call(&mut *self.inner);
        let rows = answer.as_ref().map_or(0, |(_, rows)| *rows);
        let spills = self.measures.spills() - spills;
        self.tally.add(Measure { loops, read: 0, rows, nanos: nanos_since(start), spills });
        answer.map(|(answer, _)| answer)
    }
}

impl<'p> Operator<'p> for Measured<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.call(1, |inner| Ok((inner.open(run)?, 0)))
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        self.call(0, |inner| {
            let before = out.len();
            inner.next(run, out, want)?;
            Ok(((), (out.len() - before) as u64))
        })
    }

    fn skip(&mut self, run: Run<'_, 'p>, rows: u64) -> SqlResult<Option<u64>> {
        self.call(0, |inner| {
            let skipped = inner.skip(run, rows)?;
            Ok((skipped, skipped.unwrap_or(0)))
        })
    }

    fn vector_types(&mut self, run: Run<'_, 'p>) -> SqlResult<Option<Vec<VectorType>>> {
        self.call(0, |inner| Ok((inner.vector_types(run)?, 0)))
    }

    fn next_vectors(&mut self, run: Run<'_, 'p>, vectors: &mut Vectors) -> SqlResult<bool> {
        self.call(0, |inner| {
            let goes_on = inner.next_vectors(run, vectors)?;
            Ok((goes_on, if goes_on { vectors.rows as u64 } else { 0 }))
        })
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.inner.close(run);
    }
}
