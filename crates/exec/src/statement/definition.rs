//! Definitions of databases, tables, views and accounts.

use cohort_ddl::DdlOutcome;
use cohort_protocol::ResultSink;
use cohort_session::{Job, StatementContext};
use cohort_types::SqlResult;

use crate::session::Session;

impl Session {
    /// Runs a statement that changes definitions.
    pub(crate) fn define(
        &mut self,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
        run: impl FnOnce(&mut StatementContext<'_>) -> SqlResult<DdlOutcome>,
    ) -> SqlResult<()> {
        let epoch = self.state.temporary.epoch();
        self.state.statement.rows_found.set(None);
        let outcome = self.with_context(job, run);
        if self.state.temporary.epoch() != epoch {
            // Existing plans do not know the session's temporary tables.
            self.state.refresh();
        }
        let outcome = outcome?;
        if outcome.dropped_schema.is_some()
            && outcome.dropped_schema.as_deref() == self.state.current_schema.as_deref()
        {
            self.leave_schema();
        }
        self.state.settings.env.row_count = outcome.affected as i64;
        if let Some(found) = self.state.statement.rows_found.take() {
            self.state.settings.env.found_rows = found;
        }
        self.send_ok(job.more, outcome.affected, 0, &outcome.info, sink);
        Ok(())
    }
}
