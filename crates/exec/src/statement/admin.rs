//! Table maintenance, SHUTDOWN.

use cohort_protocol::ResultSink;
use cohort_session::Job;
use cohort_sql::ast::TableMaintenance;
use cohort_types::SqlResult;

use crate::session::Session;

impl Session {
    /// Runs CHECK, ANALYZE, OPTIMIZE, REPAIR or CHECKSUM TABLE.
    pub(crate) fn maintain_tables(
        &mut self,
        work: &TableMaintenance,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let epoch = self.state.temporary.epoch();
        let listing = self.with_context(job, |ctx| cohort_info::maintain_tables(ctx, work));
        if self.state.temporary.epoch() != epoch {
            // OPTIMIZE has re-created a temporary table.
            self.state.refresh();
        }
        self.send_listing(&listing?, job, sink)
    }

    /// Runs SHUTDOWN.
    pub(crate) fn shut_down(&self) {
        if let Some(callbacks) = &*self.state.db.callbacks.read() {
            callbacks.request_stop();
        }
    }
}
