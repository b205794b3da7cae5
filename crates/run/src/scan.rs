//! Table scans.

use cohort_expr::{Expr, Subquery};
use cohort_optimize::{ReadMode, Scan, Spans, VirtualScan};
use cohort_types::{Interrupt, SqlResult, Value, VectorType, row_memory_bytes};

use crate::batch::{Batch, taken};
use crate::operator::Operator;
use crate::runtime::{Held, Run, subqueries_of};
use crate::storage::{CursorId, MATCHED_BYTES, Matching};
use crate::vectors::{Vectors, scan_types};

/// An operator's cursor on a table.
pub(crate) struct Cursor<'p> {
    scan: &'p Scan,
    id: Option<CursorId>,
    /// A row of the whole table.
    row: Vec<Value>,
    /// Subqueries in the spans.
    subqueries: Vec<&'p Subquery>,
    /// No column is returned twice, so values can be moved.
    takes: bool,
}

impl<'p> Cursor<'p> {
    pub fn new(scan: &'p Scan) -> Cursor<'p> {
        let mut sorted = scan.columns.clone();
        sorted.sort_unstable();
        let takes = sorted.windows(2).all(|pair| pair[0] != pair[1]);
        Cursor { scan, id: None, row: Vec::new(), subqueries: subqueries_of(span_exprs(scan)), takes }
    }

    /// Returns the number of values per returned row.
    pub fn width(&self) -> usize {
        self.scan.columns.len() + usize::from(self.scan.with_key)
    }

    /// Restarts before the first row, with spans computed from `outer`.
    pub fn seek(&mut self, run: Run<'_, 'p>, outer: &[Value], rows: Option<u64>) -> SqlResult<()> {
        run.prime(&self.subqueries, outer)?;
        let sought = match self.id {
            Some(id) => run.storage().reopen(id, self.scan, outer, run.eval).map(|()| id),
            None => run.storage().open(self.scan, outer, rows, run.eval),
        };
        run.unprime(&self.subqueries);
        self.id = Some(sought?);
        Ok(())
    }

    /// Appends the values of at most `want` rows and returns their number. It is smaller at the end, and when
    /// the batch is full.
    pub fn read(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<usize> {
        let Some(id) = self.id else { return Ok(0) };
        let mut storage = run.storage();
        if let Some(rows) = storage.next_rows(id, self.scan, out, want, run.eval)? {
            return Ok(rows);
        }
        for rows in 0..want {
            if out.is_full() || !storage.next(id, self.scan, &mut self.row, run.eval)? {
                return Ok(rows);
            }
            self.yield_row(out.open_row());
            if self.scan.with_key {
                out.open_row().push(Value::binary(storage.key(id)));
            }
            out.end_row();
        }
        Ok(want)
    }

    /// Appends the values of the next row to an incomplete row. Returns false at the end.
    pub fn read_into(&mut self, run: Run<'_, 'p>, out: &mut Vec<Value>) -> SqlResult<bool> {
        let Some(id) = self.id else { return Ok(false) };
        let mut storage = run.storage();
        if !storage.next(id, self.scan, &mut self.row, run.eval)? {
            return Ok(false);
        }
        self.yield_row(out);
        if self.scan.with_key {
            out.push(Value::binary(storage.key(id)));
        }
        Ok(true)
    }

    /// Prepares a batched lookup for many rows like `row`. Returns false if rows must be looked up one by
    /// one.
    pub fn begin_matches(&mut self, run: Run<'_, 'p>, row: &[Value], matching: Matching) -> SqlResult<bool> {
        if !self.subqueries.is_empty() || self.scan.mode != ReadMode::Snapshot {
            return Ok(false);
        }
        if self.id.is_none() {
            self.seek(run, row, None)?;
        }
        let Some(id) = self.id else { return Ok(false) };
        Ok(run.storage().begin_matches(id, self.scan, matching, run.eval))
    }

    /// Appends the next match to an incomplete row ([`crate::Storage::next_match`]).
    #[inline]
    pub fn next_match(
        &mut self,
        run: Run<'_, 'p>,
        rows: &Batch,
        n: Option<usize>,
        out: &mut Vec<Value>,
    ) -> SqlResult<Option<usize>> {
        let Some(id) = self.id else { return Ok(None) };
        run.storage().next_match(id, self.scan, rows, n, out, run.eval)
    }

    /// Appends the matches that are available at once ([`crate::Storage::next_match_vectors`]).
    pub fn next_match_vectors(
        &mut self,
        run: Run<'_, 'p>,
        rows: &Batch,
        of: &mut Vec<u32>,
        vectors: &mut Vectors,
    ) -> SqlResult<bool> {
        let Some(id) = self.id else { return Ok(false) };
        run.storage().next_match_vectors(id, self.scan, rows, of, vectors, run.eval)
    }

    fn vector_types(&self, run: Run<'_, 'p>) -> Option<Vec<VectorType>> {
        run.storage().vector_types(self.id?, self.scan, run.eval)
    }

    fn next_vectors(&mut self, run: Run<'_, 'p>, vectors: &mut Vectors) -> SqlResult<bool> {
        let Some(id) = self.id else { return Ok(false) };
        run.storage().next_vectors(id, self.scan, vectors, run.eval)
    }

    #[inline]
    fn yield_row(&mut self, out: &mut Vec<Value>) {
        if self.takes {
            let row = &mut self.row;
            out.extend(self.scan.columns.iter().map(|n| std::mem::replace(&mut row[*n], Value::Null)));
        } else {
            out.extend(self.scan.columns.iter().map(|n| self.row[*n].clone()));
        }
    }

    pub fn close(&mut self, run: Run<'_, 'p>) {
        if let Some(id) = self.id.take() {
            run.storage().close(id);
        }
    }
}

pub(crate) fn span_exprs(scan: &Scan) -> Vec<&Expr> {
    let Spans::List(spans) = &scan.access.spans else { return Vec::new() };
    spans.iter().flat_map(|span| span.exprs()).collect()
}

/// The table scan operator.
pub(crate) struct ScanOperator<'p> {
    cursor: Cursor<'p>,
    progress: Progress,
    /// If set, vectors are read as the matches of this one row, which has no columns: the index leads to
    /// rows.
    matched: Option<Batch>,
    /// Memory charged for prefetched matches.
    held: Held,
}

#[derive(PartialEq)]
enum Progress {
    Unopened,
    Reading,
    Done,
}

impl<'p> ScanOperator<'p> {
    pub fn new(scan: &'p Scan) -> ScanOperator<'p> {
        ScanOperator {
            cursor: Cursor::new(scan),
            progress: Progress::Unopened,
            matched: None,
            held: Held::default(),
        }
    }
}

impl<'p> Operator<'p> for ScanOperator<'p> {
    fn open(&mut self, _: Run<'_, 'p>) -> SqlResult<()> {
        self.progress = Progress::Unopened;
        self.matched = None;
        Ok(())
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        if self.progress == Progress::Unopened {
            let expected = (want < run.state.batch_rows).then_some(want as u64);
            self.cursor.seek(run, &[], expected)?;
            self.progress = Progress::Reading;
        }
        if self.progress == Progress::Reading && self.cursor.read(run, out, want)? < want && !out.is_full() {
            self.progress = Progress::Done;
        }
        Ok(())
    }

    fn vector_types(&mut self, run: Run<'_, 'p>) -> SqlResult<Option<Vec<VectorType>>> {
        if self.progress == Progress::Unopened {
            self.cursor.seek(run, &[], None)?;
            self.progress = Progress::Reading;
        }
        if let Some(types) = self.cursor.vector_types(run) {
            return Ok(Some(types));
        }
        let Some(types) = scan_types(self.cursor.scan) else { return Ok(None) };
        let matching = match self.cursor.scan.access.is_for_order {
            true => Matching::All,
            false => Matching::InAnyOrder,
        };
        let has_room = self.held.bytes() > 0 || self.held.grow(run, MATCHED_BYTES).is_ok();
        if !has_room || !self.cursor.begin_matches(run, &[], matching)? {
            return Ok(None);
        }
        let mut one = Batch::new();
        one.push([]);
        self.matched = Some(one);
        Ok(Some(types))
    }

    fn next_vectors(&mut self, run: Run<'_, 'p>, vectors: &mut Vectors) -> SqlResult<bool> {
        let Some(one) = &self.matched else { return self.cursor.next_vectors(run, vectors) };
        vectors.clear();
        self.cursor.next_match_vectors(run, one, &mut Vec::new(), vectors)
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.progress = Progress::Unopened;
        self.matched = None;
        self.held.release(run);
        self.cursor.close(run);
    }
}

/// A scan of a virtual table, whose rows the server computes.
pub(crate) struct Virtual<'p> {
    scan: &'p VirtualScan,
    rows: Option<std::vec::IntoIter<Vec<Value>>>,
    held: Held,
}

impl<'p> Virtual<'p> {
    pub fn new(scan: &'p VirtualScan) -> Virtual<'p> {
        Virtual { scan, rows: None, held: Held::default() }
    }
}

impl<'p> Operator<'p> for Virtual<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.close(run);
        Ok(())
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        if self.rows.is_none() {
            let rows = run.storage().virtual_rows(self.scan, run.eval)?;
            self.held.grow(run, rows.iter().map(|row| row_memory_bytes(row)).sum())?;
            self.rows = Some(rows.into_iter());
        }
        let Some(rows) = &mut self.rows else { return Ok(()) };
        let mut missing = want;
        while missing > 0 && !out.is_full() {
            let Some(mut row) = rows.next() else { break };
            run.eval.step()?;
            if let Some(filter) = &self.scan.filter
                && !filter.passes(&row, run.eval)?
            {
                continue;
            }
            if self.scan.columns.len() == row.len() && self.scan.columns.iter().copied().eq(0..row.len()) {
                out.push(taken(&mut row));
            } else {
                out.push(self.scan.columns.iter().map(|n| row[*n].clone()));
            }
            missing -= 1;
        }
        Ok(())
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.rows = None;
        self.held.release(run);
    }
}
