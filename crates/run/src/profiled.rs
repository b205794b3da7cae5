//! A wrapper that profiles an operator.

use std::sync::Arc;
use std::time::Instant;

use cohort_types::{SqlResult, VectorType};

use crate::batch::Batch;
use crate::operator::Operator;
use crate::profile::{NodeCounters, NodeProfile, PlanProfile, nanos_since};
use crate::runtime::Run;
use crate::vectors::Vectors;

/// A wrapper that profiles an operator.
pub(crate) struct Profiled<'p> {
    pub inner: Box<dyn Operator<'p> + 'p>,
    pub profile: &'p PlanProfile,
    pub counters: Arc<NodeCounters>,
}

impl<'p> Profiled<'p> {
    /// Calls the operator. The second result of `call` is the number of rows returned.
    fn call<T>(
        &mut self,
        loops: u64,
        call: impl FnOnce(&mut dyn Operator<'p>) -> SqlResult<(T, u64)>,
    ) -> SqlResult<T> {
        let (start, spills) = (Instant::now(), self.profile.spills());
        let answer = call(&mut *self.inner);
        let rows = answer.as_ref().map_or(0, |(_, rows)| *rows);
        let spills = self.profile.spills() - spills;
        self.counters.add(NodeProfile { loops, read: 0, rows, nanos: nanos_since(start), spills });
        answer.map(|(answer, _)| answer)
    }
}

impl<'p> Operator<'p> for Profiled<'p> {
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
