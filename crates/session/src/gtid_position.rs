//! GTID positions of binary log offsets, and waiting for a GTID position.

use std::time::Duration;

use cohort_base::Gtid;
use cohort_binlog::BinlogError;
use cohort_binlog::event::Event;
use cohort_config::Counter;
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::database::Database;
use crate::replication::parse_gtids;
use crate::session_state::SessionState;

/// Interval between checks of the position.
const STEP: Duration = Duration::from_millis(20);

/// Evaluates BINLOG_GTID_POS(): returns the position after the events before `offset`, or `None` if the file
/// is unknown or no event starts at `offset`.
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

/// Evaluates MASTER_GTID_WAIT(): returns whether gtid_slave_pos reached the position in time. Without a
/// timeout only KILL ends the wait.
pub(crate) fn wait_for_gtids(
    session: &SessionState,
    position: &str,
    timeout: Option<Duration>,
) -> SqlResult<bool> {
    let wanted = parse_gtids(position)?;
    let (clock, status) = (&session.db.clock, &session.db.status);
    status.count(Counter::MasterGtidWaitCount);
    let start_ns = clock.monotonic_ns();
    let gone = || Duration::from_nanos(clock.monotonic_ns().saturating_sub(start_ns));
    let is_reached = await_gtids(session, &wanted, timeout, gone)?;
    status.add(Counter::MasterGtidWaitTime, gone().as_micros() as u64);
    if !is_reached {
        status.count(Counter::MasterGtidWaitTimeouts);
    }
    Ok(is_reached)
}

fn await_gtids(
    session: &SessionState,
    wanted: &[Gtid],
    timeout: Option<Duration>,
    gone: impl Fn() -> Duration,
) -> SqlResult<bool> {
    loop {
        let control = session.db.replica.read().clone();
        let reached = control.as_ref().map_or_else(Vec::new, |control| control.applied());
        // Sequence number 0 precedes the first transaction, so it is reached in every domain.
        let has = |gtid: &Gtid| {
            let is_behind = |has: &Gtid| has.domain == gtid.domain && has.seq_no >= gtid.seq_no;
            gtid.seq_no == 0 || reached.iter().any(is_behind)
        };
        if wanted.iter().all(has) {
            return Ok(true);
        }
        let left = timeout.map_or(STEP, |timeout| timeout.saturating_sub(gone()));
        if left.is_zero() {
            return Ok(false);
        }
        session.pause(left.min(STEP))?;
    }
}

/// Evaluates MASTER_POS_WAIT().
pub(crate) fn wait_for_file_position(
    session: &SessionState,
    file: &str,
    position: u64,
    timeout: Option<Duration>,
    name: &str,
) -> SqlResult<Option<i64>> {
    let control = session.db.replica.read().clone();
    let Some(control) = control else { return Ok(None) };
    let mut ask = |step: Duration| session.pause(step);
    control.wait_for_file_position(&name.to_lowercase(), file, position, timeout, &mut ask)
}
