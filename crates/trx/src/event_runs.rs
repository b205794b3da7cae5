//! The times of events' last runs, in a key space of the server's own. They are not in the catalog, because a
//! change of the catalog makes plans stale.

use cohort_base::IndexId;
use cohort_engine::{Batch, Engine, EngineError, KeyRange, ReadAt, ScanRequest};
use cohort_locks::{RowMode, WaitPolicy};
use cohort_table::EngineNo;
use cohort_types::SqlResult;

use crate::errors::engine_error;
use crate::session_trx::SessionTrx;

/// The key space, in the first engine.
const EVENT_RUNS_SPACE: IndexId = IndexId(2);
const ENGINE: EngineNo = EngineNo(0);
const BATCH: usize = 1000;

impl SessionTrx {
    /// Writes the time of an event's run, in seconds since 1970 UTC, and commits.
    pub fn keep_event_run(&mut self, event: &[u8], at: i64) -> SqlResult<()> {
        self.lock_row(EVENT_RUNS_SPACE, event, RowMode::Exclusive, WaitPolicy::Wait)?;
        self.engine(ENGINE).put(EVENT_RUNS_SPACE, event, &at.to_le_bytes()).map_err(engine_error)?;
        self.commit().map(drop)
    }

    /// Removes the time of an event that is dropped, in the running transaction.
    pub fn forget_event_run(&mut self, event: &[u8]) -> SqlResult<()> {
        self.engine(ENGINE).delete(EVENT_RUNS_SPACE, event).map_err(engine_error)
    }
}

/// Calls `each` with every event that has run, and the time. Called when the server starts.
pub fn stored_event_runs(engine: &dyn Engine, mut each: impl FnMut(&[u8], i64)) -> Result<(), EngineError> {
    let (mut range, mut batch, trx) = (KeyRange::default(), Batch::default(), engine.begin());
    loop {
        let wanted = ScanRequest::forward(ReadAt::Latest, EVENT_RUNS_SPACE, &range, BATCH);
        let more = trx.scan(&wanted, &mut batch)?;
        for n in 0..batch.len() {
            let (event, at) = batch.get(n);
            if let Ok(at) = at.try_into() {
                each(event, i64::from_le_bytes(at));
            }
        }
        if !more {
            return Ok(());
        }
        batch.cut(&mut range, cohort_engine::Direction::Forward);
    }
}
