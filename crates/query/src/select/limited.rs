//! [`LimitedStorage`]: reads a transaction's tables under LIMIT ROWS EXAMINED. Rows are read one by one, and
//! scans end when the limit is reached.

use cohort_expr::{CallBack, EvalContext};
use cohort_optimize::{Node, Scan, VirtualScan};
use cohort_run::{CursorId, Event, Kept, Storage};
use cohort_session::RowsExamined;
use cohort_types::{ErrorCode, SqlError, SqlResult, Value};
use cohort_vfs::SharedFile;

use super::storage::{TrxStorage, passes};

pub(super) struct LimitedStorage<'s> {
    inner: TrxStorage<'s>,
    examined: &'s RowsExamined,
}

impl<'s> LimitedStorage<'s> {
    pub(super) fn new(inner: TrxStorage<'s>, examined: &'s RowsExamined) -> LimitedStorage<'s> {
        LimitedStorage { inner, examined }
    }
}

/// Returns what a scan has found, or false if the limit ended it.
pub(super) fn found_within(examined: &RowsExamined, found: SqlResult<bool>) -> SqlResult<bool> {
    match found {
        Err(error) if error.code == ErrorCode::QueryResultIncomplete && examined.is_over() => Ok(false),
        other => other,
    }
}

/// Effect of the unread rows on the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeftOut {
    /// Rows are returned as they are found: those found so far are the result.
    Rest,
    /// Groups and windows over some of the rows would be wrong: the result is empty.
    All,
    /// Error 1028.
    Sort,
}

impl LeftOut {
    pub(super) fn of(root: &Node) -> LeftOut {
        let mut left_out = LeftOut::Rest;
        root.each(&mut |node| match node {
            Node::Aggregate(_) | Node::Window(_) => left_out = LeftOut::All,
            Node::Sort(_) if left_out == LeftOut::Rest => left_out = LeftOut::Sort,
            _ => {}
        });
        left_out
    }

    /// Returns true if the rows found are the result. Called once the limit is reached.
    pub(super) fn keeps_rows(self) -> SqlResult<bool> {
        match self {
            LeftOut::Rest => Ok(true),
            LeftOut::All => Ok(false),
            LeftOut::Sort => Err(SqlError::sort_aborted_by_examined_rows()),
        }
    }
}

impl Storage for LimitedStorage<'_> {
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
        self.inner.open(scan, row, rows_expected, eval)
    }

    fn reopen(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        row: &[Value],
        eval: &EvalContext<'_>,
    ) -> SqlResult<()> {
        self.inner.reopen(cursor, scan, row, eval)
    }

    fn next(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        row: &mut Vec<Value>,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        let examined = self.examined;
        let found = self.inner.next_that_passes(cursor, scan, row, &mut |row: &[Value]| {
            examined.examine()?;
            passes(scan, row, eval)
        });
        found_within(examined, found)
    }

    fn key(&self, cursor: CursorId) -> &[u8] {
        self.inner.key(cursor)
    }

    fn close(&mut self, cursor: CursorId) {
        self.inner.close(cursor);
    }

    fn virtual_rows(&mut self, scan: &VirtualScan, eval: &EvalContext<'_>) -> SqlResult<Vec<Vec<Value>>> {
        self.inner.virtual_rows(scan, eval)
    }

    fn spill_file(&mut self) -> SqlResult<SharedFile> {
        self.inner.spill_file()
    }

    fn note(&mut self, event: Event) {
        self.inner.note(event);
    }

    fn operator_memory(&self, kept: Kept) -> usize {
        self.inner.operator_memory(kept)
    }
}
