//! [`Storage`]: the source of rows. It hides the transaction's tables and the server's own tables under one
//! interface, so that operators know neither sessions nor engines.

use cohort_expr::{CallBack, EvalContext};
use cohort_optimize::{Scan, VirtualScan};
use cohort_types::{SqlError, SqlResult, Value, VectorType};
use cohort_vfs::SharedFile;

use crate::batch::Batch;
use crate::vectors::Vectors;

/// Handle of an open cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorId(pub usize);

/// Purpose of the rows that an operator keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// To sort them.
    Sorted,
    /// To look them up for the other side of a join.
    Joined,
    /// Groups, rows seen before, or rows shared by several readers.
    Table,
}

/// Operator events that SHOW STATUS counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Rows were sorted.
    Sorted(Sorted),
    /// Sorted runs on disk are merged.
    Merged,
    /// A table of kept rows is spilled.
    TableOnDisk,
}

/// Statistics of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sorted {
    /// Number of rows it kept.
    pub rows: u64,
    /// The rows came from key lookups or a range of one table.
    pub of_range: bool,
    /// Rows beyond a limit were dropped as they arrived.
    pub limited: bool,
}

/// Memory that a caller charges for prefetched matches.
pub(crate) const MATCHED_BYTES: usize = 4 << 20;

/// The matches wanted from a batched lookup ([`Storage::begin_matches`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// All matches, in any order.
    InAnyOrder,
    /// All matches of one row after the other.
    All,
    /// Matches of one row after the other, each until the caller needs no more of that row.
    Until,
    /// At most one match of each row, without a further condition.
    One,
}

/// The transaction and the server, as operators see them. Filters are evaluated while the implementor is
/// borrowed, so they call back nothing but precomputed subqueries.
pub trait Storage {
    /// Opens a scan. The span expressions read `row`. `rows_expected`: the caller is unlikely to read more
    /// rows.
    fn open(
        &mut self,
        scan: &Scan,
        row: &[Value],
        rows_expected: Option<u64>,
        eval: &EvalContext<'_>,
    ) -> SqlResult<CursorId>;

    /// Restarts a cursor, with spans computed from another row.
    fn reopen(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        row: &[Value],
        eval: &EvalContext<'_>,
    ) -> SqlResult<()>;

    /// Runs a function that runs statements, in the transaction. Open cursors of the caller stay as they are.
    fn call(&mut self, function: &CallBack, args: &[Value], eval: &EvalContext<'_>) -> SqlResult<Value> {
        let _ = (args, eval);
        Err(SqlError::not_supported(&format!("calls of {} here", function.name)))
    }

    /// Writes the next row that passes the scan's filter to `row`, one value per column of the *table*.
    /// Returns false at the end.
    fn next(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        row: &mut Vec<Value>,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool>;

    /// Appends the output columns of at most `want` of the next passing rows and returns their number. It is
    /// smaller at the end, and when the batch is full. Returns `None`, with no effect, if this scan must be
    /// read row by row.
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

    /// Returns the types of the output columns if the scan can be read as vectors
    /// ([`Storage::next_vectors`]). Must be called before any row is read.
    fn vector_types(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        eval: &EvalContext<'_>,
    ) -> Option<Vec<VectorType>> {
        let _ = (cursor, scan, eval);
        None
    }

    /// Replaces the vectors with those of the next passing rows. Returns false at the end.
    fn next_vectors(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        vectors: &mut Vectors,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        let _ = (cursor, scan, vectors, eval);
        Ok(false)
    }

    /// Prepares an open cursor for a batched lookup of many rows, from which its spans are computed. Returns
    /// false if each row must be looked up separately ([`Storage::reopen`]).
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

    /// Appends the output columns of the next match of `rows`, and returns the matched row's number. `rows`
    /// must not change until the next batch begins. With `n`, returns only matches of that row; rows must be
    /// requested in order. Returns `None` if there are no more.
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

    /// Appends some matches of `rows` to the vectors, in reading order, and the number of each matched row to
    /// `of`. Returns false if there are no more.
    fn next_match_vectors(
        &mut self,
        cursor: CursorId,
        scan: &Scan,
        rows: &Batch,
        of: &mut Vec<u32>,
        vectors: &mut Vectors,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        let _ = (cursor, scan, rows, of, vectors, eval);
        Ok(false)
    }

    /// Returns the clustered key of the row returned last. Locking reads only.
    fn key(&self, cursor: CursorId) -> &[u8];

    /// Closes a cursor.
    fn close(&mut self, cursor: CursorId);

    /// Returns all rows of a virtual table, one value per column of the table. The result may include rows
    /// that fail the filter.
    fn virtual_rows(&mut self, scan: &VirtualScan, eval: &EvalContext<'_>) -> SqlResult<Vec<Vec<Value>>>;

    /// Creates an anonymous temporary file in `tmpdir`, for rows that do not fit into memory.
    fn spill_file(&mut self) -> SqlResult<SharedFile>;

    /// Reports an event of an operator.
    fn note(&mut self, event: Event);

    /// Returns the bytes of such rows that one operator may hold before it spills.
    fn operator_memory(&self, kept: Kept) -> usize;
}
