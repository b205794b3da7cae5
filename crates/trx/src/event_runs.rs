//! The times of the last runs of events, in an index of the server's own: a change of the catalog would make
//! all plans stale.

use cohort_base::IndexId;
use cohort_engine::ReadAt;
use cohort_locks::{RowMode, WaitPolicy};
use cohort_table::EngineNo;
use cohort_types::SqlResult;

use crate::errors::engine_error;
use crate::session_trx::SessionTrx;

/// The index: names of events, and seconds since 1970.
const EVENT_RUNS_SPACE: IndexId = IndexId(2);
/// Its engine.
const ENGINE: EngineNo = EngineNo(0);

impl SessionTrx {
    /// Writes the time at which an event has begun to run, in the running transaction.
    pub fn put_event_run(&mut self, event: &[u8], seconds: i64) -> SqlResult<()> {
        self.pass_global_lock_to_write()?;
        self.lock_row(EVENT_RUNS_SPACE, event, RowMode::Exclusive, WaitPolicy::Wait)?;
        self.engine(ENGINE).put(EVENT_RUNS_SPACE, event, &seconds.to_le_bytes()).map_err(engine_error)
    }

    /// Returns the time at which an event has begun to run last.
    pub fn event_run(&mut self, event: &[u8]) -> SqlResult<Option<i64>> {
        let mut stored = Vec::new();
        let engine = self.engine(ENGINE);
        engine.get(ReadAt::Latest, EVENT_RUNS_SPACE, event, &mut stored).map_err(engine_error)?;
        Ok(stored.try_into().ok().map(i64::from_le_bytes))
    }

    /// Removes the time of an event that is dropped, in the running transaction.
    pub fn forget_event_run(&mut self, event: &[u8]) -> SqlResult<()> {
        self.engine(ENGINE).delete(EVENT_RUNS_SPACE, event).map_err(engine_error)
    }
}
