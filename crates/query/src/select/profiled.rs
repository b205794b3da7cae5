//! [`ProfiledStorage`]: reads a transaction's tables and counts the reads in the profile.

use std::sync::Arc;
use std::time::Instant;

use cohort_expr::{CallBack, EvalContext};
use cohort_optimize::{Scan, VirtualScan};
use cohort_run::{
    Batch, CursorId, Event, Kept, Matching, NodeCounters, NodeProfile, PlanProfile, Storage, Vectors,
    nanos_since,
};
use cohort_types::{SqlResult, Value, VectorType};
use cohort_vfs::SharedFile;
use hashbrown::HashMap;

use super::storage::{TrxStorage, passes};

/// A storage that profiles each scan.
pub(super) struct ProfiledStorage<'m, 's> {
    inner: TrxStorage<'s>,
    profile: &'m PlanProfile,
    /// Accumulators by cursor.
    counters: HashMap<usize, Arc<NodeCounters>>,
}

impl<'m, 's> ProfiledStorage<'m, 's> {
    pub(super) fn new(inner: TrxStorage<'s>, profile: &'m PlanProfile) -> ProfiledStorage<'m, 's> {
        ProfiledStorage { inner, profile, counters: HashMap::new() }
    }

    /// Records a read of a cursor that began at `start`, and the number of rows that passed.
    fn note(&mut self, cursor: CursorId, start: Instant, read: u64, rows: u64) {
        let read = read + self.inner.take_examined(cursor);
        let nanos = nanos_since(start);
        self.counters[&cursor.0].add(NodeProfile { read, rows, nanos, ..NodeProfile::default() });
    }

    /// Records a read of matches. Each looked-up row counts as a loop.
    fn note_matched(&mut self, cursor: CursorId, start: Instant, rows: u64) {
        let (read, loops) = self.inner.take_matched(cursor);
        let nanos = nanos_since(start);
        self.counters[&cursor.0].add(NodeProfile { loops, read, rows, nanos, ..NodeProfile::default() });
    }
}

impl Storage for ProfiledStorage<'_, '_> {
    fn call(&mut self, function: &CallBack, args: &[Value], eval: &EvalContext<'_>) -> SqlResult<Value> {
        self.inner.call(function, args, eval)
    }

    fn open(
        &mut self,
        scan: &Scan,
        row: &[Value],
        rows_expected: Option<u64>,
        eval: &EvalContext<'_>,
    ) -> SqlResult<CursorId> {
        let start = Instant::now();
        let cursor = self.inner.open(scan, row, rows_expected, eval)?;
        let counters = self.profile.counters(scan);
        counters.add(NodeProfile { loops: 1, nanos: nanos_since(start), ..NodeProfile::default() });
        self.counters.insert(cursor.0, counters);
        Ok(cursor)
    }

    fn reopen(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        row: &[Value],
        eval: &EvalContext<'_>,
    ) -> SqlResult<()> {
        let start = Instant::now();
        self.inner.reopen(cursor, scan, row, eval)?;
        self.counters[&cursor.0].add(NodeProfile {
            loops: 1,
            nanos: nanos_since(start),
            ..NodeProfile::default()
        });
        Ok(())
    }

    fn next(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        row: &mut Vec<Value>,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        let (start, mut read) = (Instant::now(), 0);
        let found = self.inner.next_that_passes(cursor, scan, row, &mut |row: &[Value]| {
            read += 1;
            passes(scan, row, eval)
        })?;
        self.note(cursor, start, read, found.into());
        Ok(found)
    }

    fn next_rows(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        out: &mut Batch,
        want: usize,
        eval: &EvalContext<'_>,
    ) -> SqlResult<Option<usize>> {
        let start = Instant::now();
        let rows = self.inner.next_rows(cursor, scan, out, want, eval)?;
        if let Some(rows) = rows {
            self.note(cursor, start, 0, rows as u64);
        }
        Ok(rows)
    }

    fn vector_types(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        eval: &EvalContext<'_>,
    ) -> Option<Vec<VectorType>> {
        self.inner.vector_types(cursor, scan, eval)
    }

    fn next_vectors(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        vectors: &mut Vectors,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        let start = Instant::now();
        let goes_on = self.inner.next_vectors(cursor, scan, vectors, eval)?;
        let rows = if goes_on { vectors.rows } else { 0 };
        self.note(cursor, start, 0, rows as u64);
        Ok(goes_on)
    }

    fn begin_matches(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        matching: Matching,
        eval: &EvalContext<'_>,
    ) -> bool {
        self.inner.begin_matches(cursor, scan, matching, eval)
    }

    fn next_match(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        rows: &Batch,
        n: Option<usize>,
        out: &mut Vec<Value>,
        eval: &EvalContext<'_>,
    ) -> SqlResult<Option<usize>> {
        let start = Instant::now();
        let found = self.inner.next_match(cursor, scan, rows, n, out, eval)?;
        self.note_matched(cursor, start, found.is_some().into());
        Ok(found)
    }

    fn next_match_vectors(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        rows: &Batch,
        of: &mut Vec<u32>,
        vectors: &mut Vectors,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        let (start, before) = (Instant::now(), of.len());
        let goes_on = self.inner.next_match_vectors(cursor, scan, rows, of, vectors, eval)?;
        self.note_matched(cursor, start, (of.len() - before) as u64);
        Ok(goes_on)
    }

    fn key(&self, cursor: CursorId) -> &[u8] {
        self.inner.key(cursor)
    }

    fn close(&mut self, cursor: CursorId) {
        self.counters.remove(&cursor.0);
        self.inner.close(cursor);
    }

    fn virtual_rows(&mut self, scan: &VirtualScan, eval: &EvalContext<'_>) -> SqlResult<Vec<Vec<Value>>> {
        let start = Instant::now();
        let rows = self.inner.virtual_rows(scan, eval)?;
        let read = rows.len() as u64;
        let measure = NodeProfile { loops: 1, read, nanos: nanos_since(start), ..NodeProfile::default() };
        self.profile.counters(scan).add(measure);
        Ok(rows)
    }

    fn spill_file(&mut self) -> SqlResult<SharedFile> {
        self.profile.spilled();
        self.inner.spill_file()
    }

    fn note(&mut self, event: Event) {
        self.inner.note(event);
    }

    fn operator_memory(&self, kept: Kept) -> usize {
        self.inner.operator_memory(kept)
    }
}
