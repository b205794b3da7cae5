//! GTID positions of places in the binary log, and waiting for one.

use std::time::Duration;

use cohort_base::Gtid;
use cohort_binlog::event::Event;
use cohort_binlog::{BinlogError, GtidState};
use cohort_config::{VarId, VarValue};
use cohort_expr::SessionHooks;
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::database::Database;
use crate::session_state::SessionState;

/// Between two looks at the position that is waited for.
const STEP: Duration = Duration::from_millis(20);

/// BINLOG_GTID_POS(): the state behind the events before `offset`; `None` if the file is unknown or no event
/// starts there.
pub(crate) fn gtid_position_at(db: &Database, name: &str, offset: u64) -> SqlResult<Option<String>> {
    let opened = db.commit.with_binlog_files(|files| {
        let number = match name {
            "" => files.numbers().first().copied().unwrap_or(0),
            name => files.find(name)?,
        };
        Ok((files.reader(number)?, files.state_at_start(number)?))
    });
    let Some(opened) = opened else { return Err(SqlError::no_binary_logging()) };
    let (mut reader, mut state) = match opened.and_then(|opened| opened) {
        Ok(opened) => opened,
        Err(BinlogError::UnknownFile { .. }) => return Ok(None),
        Err(error) => return Err(SqlError::new(ErrorCode::UnknownError, error.to_string())),
    };
    let offset = offset.max(reader.offset());
    while reader.offset() < offset {
        let Ok(Some(raw)) = reader.next_event() else { return Ok(None) };
        if raw.header.kind == cohort_binlog::EventType::GTID
            && let Ok(Event::Gtid(event)) = reader.decode(&raw)
        {
            state.update(event.gtid(raw.header.server_id));
        }
    }
    Ok((reader.offset() == offset).then(|| state.position_text()))
}

/// MASTER_GTID_WAIT(): whether gtid_slave_pos reached the position in time. Without a timeout only KILL ends
/// the wait.
pub(crate) fn wait_for_gtids(
    session: &SessionState,
    position: &str,
    timeout: Option<Duration>,
) -> SqlResult<bool> {
    let wanted = parse(position)?;
    let clock = &session.db.clock;
    let start_ns = clock.monotonic_ns();
    loop {
        let reached = reached(&session.db);
        let has = |gtid: &Gtid| {
            reached.position().iter().any(|has| has.domain == gtid.domain && has.seq_no >= gtid.seq_no)
        };
        if wanted.iter().all(has) {
            return Ok(true);
        }
        let gone = Duration::from_nanos(clock.monotonic_ns().saturating_sub(start_ns));
        let left = timeout.map_or(STEP, |timeout| timeout.saturating_sub(gone));
        if left.is_zero() {
            return Ok(false);
        }
        session.sleep(left.min(STEP))?;
    }
}

/// gtid_slave_pos.
fn reached(db: &Database) -> GtidState {
    let facts = db.facts.read().clone();
    let text = match facts.and_then(|facts| facts.variable(VarId::GtidSlavePos)) {
        Some(VarValue::Text(text)) => text.to_string(),
        _ => String::new(),
    };
    GtidState::from_list(&parse(&text).unwrap_or_default())
}

fn parse(text: &str) -> SqlResult<Vec<Gtid>> {
    Gtid::parse_list(text)
        .map_err(|_| SqlError::new(ErrorCode::IncorrectGtidState, "Could not parse GTID list"))
}
