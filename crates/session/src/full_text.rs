//! Word frequencies for MATCH, counted over the newest committed entries of FULLTEXT indexes.

use std::sync::Arc;

use cohort_engine::{Batch, Direction, Engine, KeyRange, ReadAt, ScanRequest};
use cohort_expr::{SessionHooks, WordSource};
use cohort_trx::engine_error;
use cohort_types::{SqlError, SqlResult};

use crate::session_state::SessionState;

/// Entries counted between two checks for KILL.
const ENTRIES: usize = 4096;

fn engine_of<'s>(session: &'s SessionState, source: &WordSource) -> SqlResult<&'s Arc<dyn Engine>> {
    let mut engines = session.db.engines.iter();
    let found = engines.find(|engine| engine.name().eq_ignore_ascii_case(&source.engine));
    found.ok_or_else(|| SqlError::unknown_engine(&source.engine))
}

/// Returns the number of rows of the table.
pub(crate) fn row_count(session: &SessionState, source: &WordSource) -> SqlResult<u64> {
    Ok(engine_of(session, source)?.stats(source.rows).entries)
}

/// Counts the entries from `start` on, below `end`.
pub(crate) fn word_row_count(
    session: &SessionState,
    source: &WordSource,
    start: &[u8],
    end: Option<&[u8]>,
) -> SqlResult<u64> {
    let trx = engine_of(session, source)?.begin();
    let mut range = KeyRange { start: Some(start.to_vec()), end: end.map(<[u8]>::to_vec) };
    let (mut batch, mut rows) = (Batch::default(), 0);
    loop {
        session.check_interrupt()?;
        batch.clear();
        let more = trx
            .scan(&ScanRequest::forward(ReadAt::Latest, source.index, &range, ENTRIES), &mut batch)
            .map_err(engine_error)?;
        rows += batch.len() as u64;
        if !more {
            return Ok(rows);
        }
        batch.cut(&mut range, Direction::Forward);
    }
}
