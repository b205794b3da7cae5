//! [`BodySink`]: the results of a body's statements.

use cohort_protocol::{ColumnMeta, OkInfo, ResultHead, ResultSink, SessionChange, StatusFlags};
use cohort_types::{Collation, SqlError, SqlResult, StoredColumns, Value};

/// A sink that passes on rows, and counts the rows that statements have changed instead of reporting them.
pub(crate) struct BodySink<'c> {
    pub client: &'c mut dyn ResultSink,
    pub affected: u64,
    /// The rows of a result were sent, but not its end.
    pub is_open: bool,
    /// The status with which an unfinished result before this one ends.
    pub status: StatusFlags,
}

impl ResultSink for BodySink<'_> {
    fn start(&mut self, columns: &[ColumnMeta], head: ResultHead) {
        if self.is_open {
            self.client.finish(self.status, 0);
        }
        self.is_open = true;
        // As in MariaDB, the final OK alone has a number of warnings.
        self.client.start(columns, ResultHead { warnings: 0, ..head });
    }

    fn results(&mut self, collation: Option<Collation>) {
        self.client.results(collation);
    }

    fn row(&mut self, values: &[Value]) {
        self.client.row(values);
    }

    fn try_row(&mut self, values: &[Value]) -> SqlResult<()> {
        self.client.try_row(values)
    }

    fn stored_rows(&mut self, columns: &StoredColumns<'_>, rows: &[&[u8]]) -> SqlResult<()> {
        self.client.stored_rows(columns, rows)
    }

    fn finish(&mut self, status: StatusFlags, _: u16) {
        self.is_open = false;
        self.client.finish(status, 0);
    }

    fn ok(&mut self, ok: &OkInfo<'_>) {
        self.affected += ok.affected_rows;
    }

    fn sends_changes_at_end(&self) -> bool {
        self.client.sends_changes_at_end()
    }

    fn takes_more_results(&self) -> bool {
        self.client.takes_more_results()
    }

    fn changed(&mut self, change: SessionChange<'_>) {
        self.client.changed(change);
    }

    fn error(&mut self, error: &SqlError) {
        self.client.error(error);
    }

    fn bytes(&self) -> u64 {
        self.client.bytes()
    }

    fn is_dead(&self) -> bool {
        self.client.is_dead()
    }

    fn has_hung_up(&self) -> bool {
        self.client.has_hung_up()
    }
}
