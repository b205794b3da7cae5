//! The interface between a scan and the rest of a direct plan.

use cohort_row::{Stored, TableCursor};
use cohort_run::NodeCounters;
use cohort_session::StatementContext;
use cohort_table::OpenTable;
use cohort_types::{Columns, SqlResult, Value};

use crate::plan::StoredWay;
use crate::select::Flow;

/// Consumer of the rows of a scan.
pub(super) trait ScanSink {
    /// Receives a row of the table, whose values may be moved out.
    fn scanned(&mut self, ctx: &mut StatementContext<'_>, row: &mut Vec<Value>) -> SqlResult<Flow>;

    /// Processes all rows in stored form, as the plan's `StoredWay` says.
    fn take_stored(
        &mut self,
        ctx: &mut StatementContext<'_>,
        way: &StoredWay,
        scan: StoredScan<'_>,
    ) -> SqlResult<()>;

    /// Processes the stored row of a clustered key. Returns false if a scan is needed instead.
    fn take_point(
        &mut self,
        _ctx: &mut StatementContext<'_>,
        _way: &StoredWay,
        _table: &OpenTable,
        _key: &[u8],
    ) -> SqlResult<bool> {
        Ok(false)
    }
}

/// A scan that has not been read yet.
pub(super) struct StoredScan<'s> {
    pub table: &'s OpenTable,
    /// Columns that the plan reads.
    pub columns: &'s Columns,
    pub cursor: TableCursor,
    /// Where its reads are measured, if they are.
    pub counters: Option<&'s NodeCounters>,
}

impl StoredScan<'_> {
    /// Returns the next rows, `None` at the end ([`TableCursor::next_stored`]).
    pub fn next(&mut self, ctx: &mut StatementContext<'_>, rows_max: usize) -> SqlResult<Option<Stored>> {
        let found = self.cursor.next_stored(ctx.trx, rows_max)?;
        if let Some(counters) = self.counters {
            let rows = found.as_ref().map_or(0, |found| match found {
                Stored::Single => 1,
                Stored::Entries(entries) => entries.len() as u64,
            });
            counters.count(0, rows, rows);
        }
        Ok(found)
    }
}
