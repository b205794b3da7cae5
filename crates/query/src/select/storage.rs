//! The tables of a query as operators read them: cursors over the transaction.

use std::cell::Cell;
use std::sync::Arc;

use cohort_base::CommitSeq;
use cohort_config::VarId;
use cohort_expr::{CallBack, EvalContext};
use cohort_optimize::{ReadMode, Scan, VirtualScan};
use cohort_plan::ParamSource;
use cohort_row::{
    CursorOptions, MatchScan, RowChanges, RowFilter, TableCursor, VectorScan, resolve, row_done,
};
use cohort_run::{Batch, CursorId, Event, Kept, Matching, Storage, Vectors};
use cohort_session::{Callee, Database, Process, SessionState, StatementContext, WantedNames};
use cohort_trx::{Counted, SessionTrx, WaitPolicy};
use cohort_types::{SqlError, SqlResult, Value, VectorType};
use cohort_vfs::SharedFile;

use crate::select::count_sort;

/// The transaction and the server, as operators see them.
pub(super) struct TrxStorage<'s> {
    pub db: &'s Arc<Database>,
    pub session: &'s SessionState,
    pub process: &'s Process,
    /// The statement's text, the positions of its parameters, and their values.
    pub text: (&'s [u8], &'s [u32], &'s [Value]),
    pub trx: &'s mut SessionTrx,
    /// `None` for closed cursors.
    pub cursors: Vec<Option<OpenScan>>,
    /// The commit that must be published before the client sees the rows read so far.
    pub hold: &'s Cell<CommitSeq>,
}

/// A cursor with its read method.
pub(super) struct OpenScan {
    cursor: TableCursor,
    reading: Reading,
    /// Finds the matches of many rows.
    matches: Option<Box<MatchScan>>,
}

/// The read method of a scan.
pub(super) enum Reading {
    /// Not enough rows were requested yet to decide.
    Undecided,
    ByRows,
    ByBatches(Box<VectorScan>),
}

/// Returns true if a row passes the scan's filter.
#[inline]
pub(super) fn passes(scan: &Scan, row: &[Value], eval: &EvalContext<'_>) -> SqlResult<bool> {
    row_done(eval)?;
    scan.filter.as_ref().map_or(Ok(true), |filter| filter.passes(row, eval))
}

impl OpenScan {
    /// Decides on batches, once many rows are requested.
    fn by_batches(
        &mut self,
        scan: &Scan,
        eval: &EvalContext<'_>,
    ) -> Option<(&mut TableCursor, &mut VectorScan)> {
        if let Reading::Undecided = self.reading {
            self.reading = match VectorScan::of(&self.cursor, scan, eval) {
                Some(vectors) => Reading::ByBatches(Box::new(vectors)),
                None => Reading::ByRows,
            };
        }
        match &mut self.reading {
            Reading::ByBatches(vectors) => Some((&mut self.cursor, vectors)),
            Reading::Undecided | Reading::ByRows => None,
        }
    }
}

impl TrxStorage<'_> {
    fn scan(&mut self, cursor: CursorId) -> &mut OpenScan {
        self.cursors[cursor.0].as_mut().expect("an open cursor")
    }

    /// Reads the next row accepted by `passes`.
    #[inline]
    pub(super) fn next_that_passes(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        row: &mut Vec<Value>,
        passes: &mut RowFilter<'_>,
    ) -> SqlResult<bool> {
        let is_plain = self.mode(scan) == ReadMode::Snapshot;
        let open = self.cursors[cursor.0].as_mut().expect("an open cursor");
        debug_assert!(!matches!(open.reading, Reading::ByBatches(_)), "a scan is read in one way");
        let found = open.cursor.next(self.trx, passes, row)?;
        if found && !is_plain {
            // The client sees rows that may not be durable yet (I5).
            self.trx.mark_observed();
            self.hold.set(self.trx.hold_until());
        }
        Ok(found)
    }

    /// Returns the number of rows that a cursor has read in batches since the last call.
    pub(super) fn take_examined(&mut self, cursor: CursorId) -> u64 {
        match &mut self.scan(cursor).reading {
            Reading::ByBatches(vectors) => vectors.take_examined(),
            Reading::Undecided | Reading::ByRows => 0,
        }
    }

    /// Returns the number of rows that a cursor has read as matches, and of rows looked up, since the last
    /// call.
    pub(super) fn take_matched(&mut self, cursor: CursorId) -> (u64, u64) {
        self.scan(cursor).matches.as_mut().map_or((0, 0), |matches| matches.take_examined())
    }

    fn mode(&mut self, scan: &Scan) -> ReadMode {
        match scan.mode {
            ReadMode::Snapshot if self.trx.plain_reads_lock() => ReadMode::LockShare(WaitPolicy::Wait),
            mode => mode,
        }
    }
}

impl Storage for TrxStorage<'_> {
    fn call(&mut self, function: &CallBack, args: &[Value], eval: &EvalContext<'_>) -> SqlResult<Value> {
        let Some(found) = function.function.downcast_ref::<Callee>() else {
            return Err(SqlError::does_not_exist("FUNCTION", &function.name));
        };
        let (text, param_at, params) = self.text;
        let mut ctx = StatementContext {
            db: self.db,
            session: self.session,
            // The statements that it runs have parameters, strictness and warnings of their own.
            eval: EvalContext::new(eval.env, eval.hooks, &[]),
            trx: &mut *self.trx,
            process: self.process,
            text,
            param_at,
            params,
            source: ParamSource::Placeholders,
            more: false,
            uses_zone: Cell::new(false),
            uses_micros: Cell::new(false),
        };
        let value = found.call(function, args, &mut ctx);
        for warning in ctx.eval.take_warnings().list() {
            eval.push_warning(warning.clone());
        }
        let value = value?;
        // What it has read may not be durable yet (I5).
        self.hold.set(self.trx.hold_until());
        Ok(value)
    }

    fn open(
        &mut self,
        scan: &Scan,
        row: &[Value],
        rows_expected: Option<u64>,
        eval: &EvalContext<'_>,
    ) -> SqlResult<CursorId> {
        let open = self.trx.open_table(&scan.table)?;
        let spans = resolve(&scan.access, &open, row, eval)?;
        let options = CursorOptions {
            mode: self.mode(scan),
            columns: scan.read.clone(),
            changes: RowChanges::Any,
            rows_expected,
        };
        let cursor = TableCursor::open(self.trx, &scan.table, spans, options)?;
        let cursor = if scan.access.is_for_order { cursor } else { cursor.in_any_order() };
        let scan = OpenScan { cursor, reading: Reading::Undecided, matches: None };
        let free = self.cursors.iter().position(Option::is_none);
        let at = free.unwrap_or(self.cursors.len());
        match free {
            Some(at) => self.cursors[at] = Some(scan),
            None => self.cursors.push(Some(scan)),
        }
        Ok(CursorId(at))
    }

    fn reopen(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        row: &[Value],
        eval: &EvalContext<'_>,
    ) -> SqlResult<()> {
        let open = self.scan(cursor);
        let spans = resolve(&scan.access, open.cursor.open_table(), row, eval)?;
        open.cursor.reopen(spans);
        open.reading = Reading::Undecided;
        Ok(())
    }

    fn next(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        row: &mut Vec<Value>,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        self.next_that_passes(cursor, scan, row, &mut |row: &[Value]| passes(scan, row, eval))
    }

    fn next_rows(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        out: &mut Batch,
        want: usize,
        eval: &EvalContext<'_>,
    ) -> SqlResult<Option<usize>> {
        let open = self.cursors[cursor.0].as_mut().expect("an open cursor");
        // A caller that wants few rows should not cause a batch to be read.
        if matches!(open.reading, Reading::Undecided) && want < ROWS_OF_A_BATCH {
            open.reading = Reading::ByRows;
        }
        match open.by_batches(scan, eval) {
            Some((cursor, vectors)) => vectors.next_rows(cursor, self.trx, scan, out, want, eval).map(Some),
            None => Ok(None),
        }
    }

    fn vector_types(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        eval: &EvalContext<'_>,
    ) -> Option<Vec<VectorType>> {
        self.scan(cursor).by_batches(scan, eval)?.1.types()
    }

    fn next_vectors(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        vectors: &mut Vectors,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        let open = self.cursors[cursor.0].as_mut().expect("an open cursor");
        match open.by_batches(scan, eval) {
            Some((cursor, reader)) => reader.next_vectors(cursor, self.trx, vectors, eval),
            None => Ok(false),
        }
    }

    fn begin_matches(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        matching: Matching,
        eval: &EvalContext<'_>,
    ) -> bool {
        let open = self.scan(cursor);
        if open.matches.is_none() {
            open.matches = MatchScan::of(&open.cursor, scan, matching, eval).map(Box::new);
        }
        let Some(matches) = &mut open.matches else { return false };
        matches.begin(&mut open.cursor);
        true
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
        let open = self.cursors[cursor.0].as_mut().expect("an open cursor");
        let matches = open.matches.as_mut().expect("matches have begun");
        matches.next(&mut open.cursor, self.trx, scan, rows, n, out, eval)
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
        let open = self.cursors[cursor.0].as_mut().expect("an open cursor");
        let matches = open.matches.as_mut().expect("matches have begun");
        matches.next_vectors(&mut open.cursor, self.trx, scan, rows, of, vectors, eval)
    }

    fn key(&self, cursor: CursorId) -> &[u8] {
        self.cursors[cursor.0].as_ref().expect("an open cursor").cursor.key()
    }

    fn close(&mut self, cursor: CursorId) {
        self.cursors[cursor.0] = None;
    }

    fn virtual_rows(&mut self, scan: &VirtualScan, eval: &EvalContext<'_>) -> SqlResult<Vec<Vec<Value>>> {
        let found = self.db.virtual_tables.find(&scan.schema, &scan.table);
        let table = found.ok_or_else(|| SqlError::no_such_table(&scan.schema, &scan.table))?;
        let wanted = WantedNames::asked(table.names_at(), &scan.filter, eval)?;
        let mut ctx = StatementContext {
            db: self.db,
            session: self.session,
            eval: eval.view(),
            trx: self.trx,
            process: self.process,
            text: &[],
            param_at: &[],
            params: &[],
            source: ParamSource::Placeholders,
            more: false,
            uses_zone: Cell::new(false),
            uses_micros: Cell::new(false),
        };
        let mut rows = table.rows(&wanted, &mut ctx)?;
        wanted.retain(table.names_at(), &mut rows);
        self.hold.set(self.trx.hold_until());
        Ok(rows)
    }

    fn spill_file(&mut self) -> SqlResult<SharedFile> {
        self.process.counts().count(Counted::CreatedTmpFiles);
        self.db.temporary_file()
    }

    fn note(&mut self, event: Event) {
        let counts = self.process.counts();
        match event {
            Event::Sorted(sorted) => count_sort(counts, sorted),
            Event::Merged => counts.count(Counted::SortMergePasses),
            Event::TableOnDisk => counts.count(Counted::CreatedTmpDiskTables),
        }
    }

    fn operator_memory(&self, kept: Kept) -> usize {
        let setting = |id| usize::try_from(self.session.settings.vars.uint(id)).unwrap_or(usize::MAX);
        match kept {
            Kept::Sorted => setting(VarId::SortBufferSize),
            // The default of join_buffer_size is meant for one row at a time.
            Kept::Joined => setting(VarId::JoinBufferSize).max(setting(VarId::TmpTableSize)),
            Kept::Table => setting(VarId::TmpTableSize),
        }
    }
}

/// Number of rows requested at once from which on batches are used.
const ROWS_OF_A_BATCH: usize = 256;
