//! Where rows come from: the transaction's tables and the server's own, behind one interface, so that the
//! operators know neither sessions nor engines.

use cohort_expr::EvalContext;
use cohort_optimize::{Scan, VirtualScan};
use cohort_types::{LaneType, SqlResult, Value};
use cohort_vfs::SharedFile;

use crate::batch::Batch;
use crate::lanes::Lanes;

/// An open cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorId(pub usize);

/// What an operator keeps rows for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// To be sorted.
    Sorted,
    /// To be found by rows of the other side of a join.
    Joined,
    /// As groups, rows seen before, or rows that several readers share.
    Table,
}

/// What operators do that SHOW STATUS counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Rows were brought in order.
    Sorted(Sorted),
    /// Sorted rows on disk are merged.
    Merged,
    /// What was kept as a table goes to disk.
    TableOnDisk,
}

/// What a sort did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sorted {
    /// Rows that it kept.
    pub rows: u64,
    /// They were found by keys or a range of one table.
    pub of_range: bool,
    /// It dropped rows beyond a limit as they came.
    pub limited: bool,
}

/// What a caller charges for matches that are read ahead.
pub(crate) const MATCHED_BYTES: usize = 4 << 20;

/// Which matches of many rows are wanted ([`Storage::begin_matches`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// All of them, in any order.
    InAnyOrder,
    /// Those of one row after the other, all of them.
    All,
    /// The same until the caller knows enough of a row.
    Until,
    /// Of each row whether there is one: nothing is asked of it.
    One,
}

/// The transaction and the server, as operators see them. Filters are asked while the implementor is
/// borrowed: they have no subqueries that are not known already.
pub trait Storage {
    /// Opens a scan. The span expressions read `row`. `rows_expected`: the caller will hardly go beyond.
    fn open(
        &mut self,
        scan: &Scan,
        row: &[Value],
        rows_expected: Option<u64>,
        eval: &EvalContext<'_>,
    ) -> SqlResult<CursorId>;

    /// Starts again, with spans computed from another row.
    fn reopen(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        row: &[Value],
        eval: &EvalContext<'_>,
    ) -> SqlResult<()>;

    /// The next row that the scan's filter lets pass: `row` gets a value per column of the *table*. False at
    /// the end.
    fn next(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        row: &mut Vec<Value>,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool>;

    /// Appends the columns yielded by at most `want` of the next rows that pass, and says of how many; fewer
    /// at the end, and when the batch is full. None, and nothing done: this scan is read row by row.
    fn next_rows(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        out: &mut Batch,
        want: usize,
        eval: &EvalContext<'_>,
    ) -> SqlResult<Option<usize>> {
        let _ = (cursor, scan, out, want, eval);
        Ok(None)
    }

    /// The types of the columns yielded, if they can be had as lanes ([`Storage::next_lanes`]). No row has
    /// been read.
    fn lane_types(&mut self, cursor: CursorId, scan: &Scan, eval: &EvalContext<'_>) -> Option<Vec<LaneType>> {
        let _ = (cursor, scan, eval);
        None
    }

    /// Replaces the lanes by those of some of the next rows that pass; false at the end.
    fn next_lanes(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        lanes: &mut Lanes,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        let _ = (cursor, scan, lanes, eval);
        Ok(false)
    }

    /// Prepares an open cursor for many rows that its spans are computed from. False: it is asked for each of
    /// them ([`Storage::reopen`]).
    fn begin_matches(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        matching: Matching,
        eval: &EvalContext<'_>,
    ) -> bool {
        let _ = (cursor, scan, matching, eval);
        false
    }

    /// Appends the columns yielded of the next match of `rows`, which stay the same until matches begin anew,
    /// and says of which row it is. With `n` it is one of this row: rows are asked for in their order. None
    /// when there are no more.
    fn next_match(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        rows: &Batch,
        n: Option<usize>,
        out: &mut Vec<Value>,
        eval: &EvalContext<'_>,
    ) -> SqlResult<Option<usize>> {
        let _ = (cursor, scan, rows, n, out, eval);
        Ok(None)
    }

    /// Appends the lanes of some matches of `rows` in the order in which they are read, and to `of` the
    /// number of the row of each; false when there are no more.
    fn next_match_lanes(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        rows: &Batch,
        of: &mut Vec<u32>,
        lanes: &mut Lanes,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        let _ = (cursor, scan, rows, of, lanes, eval);
        Ok(false)
    }

    /// Clustered key of the row yielded last. Locking reads only.
    fn key(&self, cursor: CursorId) -> &[u8];

    /// Lets go of a cursor.
    fn close(&mut self, cursor: CursorId);

    /// All rows of a table that the server computes, a value per column of the table. Rows that the filter
    /// does not let pass may be among them.
    fn virtual_rows(&mut self, scan: &VirtualScan, eval: &EvalContext<'_>) -> SqlResult<Vec<Vec<Value>>>;

    /// A new file in `tmpdir` that has no name, for rows that do not fit into memory.
    fn spill_file(&mut self) -> SqlResult<SharedFile>;

    /// An operator tells what it did.
    fn note(&mut self, event: Event);

    /// Bytes that one operator may hold of such rows before it spills.
    fn operator_memory(&self, kept: Kept) -> usize;
}
