//! [`ProfiledStorage`]: reads a transaction's tables and counts the reads in the profile.

use cohort_expr::{CallBack, EvalContext};
use cohort_optimize::{Scan, VirtualScan};
use cohort_run::{
    Batch, CursorId, Event, Kept, Matching, NodeCounters, PlanParts, Started, Storage, Vectors,
};
use cohort_types::{SqlResult, Value, VectorType};
use cohort_vfs::SharedFile;

use super::storage::{TrxStorage, passes};

/// A storage that profiles each scan.
pub(super) struct ProfiledStorage<'m, 's> {
    inner: TrxStorage<'s>,
    parts: PlanParts<'m>,
}

impl<'m, 's> ProfiledStorage<'m, 's> {
    pub(super) fn new(inner: TrxStorage<'s>, parts: PlanParts<'m>) -> ProfiledStorage<'m, 's> {
        ProfiledStorage { inner, parts }
    }

    /// Returns the counters of a scan, and the time if times are measured.
    fn begin(&self, scan: &Scan) -> Begun<'m> {
        (self.parts.counters(scan.part), self.parts.profile.clock())
    }

    /// Records a read of a cursor that began at `start`, and the number of rows that passed.
    fn note(&mut self, cursor: CursorId, (counters, start): Begun<'_>, read: u64, rows: u64) {
        let read = read + self.inner.take_examined(cursor);
        add(counters, start, (0, read, rows));
    }

    /// Records a read of matches. Each looked-up row counts as a loop.
    fn note_matched(&mut self, cursor: CursorId, (counters, start): Begun<'_>, rows: u64) {
        let (read, loops) = self.inner.take_matched(cursor);
        add(counters, start, (loops, read, rows));
    }
}

/// The counters of a scan, and the time when it was called.
type Begun<'m> = (&'m NodeCounters, Option<Started>);

fn add(counters: &NodeCounters, start: Option<Started>, (loops, read, rows): (u64, u64, u64)) {
    counters.count(loops, read, rows);
    if let Some(start) = start {
        counters.spend(&start.spent());
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
        let (counters, start) = self.begin(scan);
        let cursor = self.inner.open(scan, row, rows_expected, eval)?;
        add(counters, start, (1, 0, 0));
        Ok(cursor)
    }

    fn reopen(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        row: &[Value],
        eval: &EvalContext<'_>,
    ) -> SqlResult<()> {
        let (counters, start) = self.begin(scan);
        self.inner.reopen(cursor, scan, row, eval)?;
        add(counters, start, (1, 0, 0));
        Ok(())
    }

    fn next(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        row: &mut Vec<Value>,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        let (begun, mut read) = (self.begin(scan), 0);
        let found = self.inner.next_that_passes(cursor, scan, row, &mut |row: &[Value]| {
            read += 1;
            passes(scan, row, eval)
        })?;
        self.note(cursor, begun, read, found.into());
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
        let begun = self.begin(scan);
        let rows = self.inner.next_rows(cursor, scan, out, want, eval)?;
        if let Some(rows) = rows {
            self.note(cursor, begun, 0, rows as u64);
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
        let begun = self.begin(scan);
        let goes_on = self.inner.next_vectors(cursor, scan, vectors, eval)?;
        let rows = if goes_on { vectors.rows } else { 0 };
        self.note(cursor, begun, 0, rows as u64);
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
        let begun = self.begin(scan);
        let found = self.inner.next_match(cursor, scan, rows, n, out, eval)?;
        self.note_matched(cursor, begun, found.is_some().into());
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
        let (begun, before) = (self.begin(scan), of.len());
        let goes_on = self.inner.next_match_vectors(cursor, scan, rows, of, vectors, eval)?;
        self.note_matched(cursor, begun, (of.len() - before) as u64);
        Ok(goes_on)
    }

    fn key(&self, cursor: CursorId) -> &[u8] {
        self.inner.key(cursor)
    }

    fn close(&mut self, cursor: CursorId) {
        self.inner.close(cursor);
    }

    fn virtual_rows(&mut self, scan: &VirtualScan, eval: &EvalContext<'_>) -> SqlResult<Vec<Vec<Value>>> {
        let start = self.parts.profile.clock();
        let rows = self.inner.virtual_rows(scan, eval)?;
        add(self.parts.counters(scan.part), start, (1, rows.len() as u64, 0));
        Ok(rows)
    }

    fn spill_file(&mut self) -> SqlResult<SharedFile> {
        self.parts.profile.spilled();
        self.inner.spill_file()
    }

    fn note(&mut self, event: Event) {
        self.inner.note(event);
    }

    fn operator_memory(&self, kept: Kept) -> usize {
        self.inner.operator_memory(kept)
    }
}
