//! Conversion of errors of the layers below to client errors.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use cohort_binlog::CacheError;
use cohort_commit::CommitError;
use cohort_engine::EngineError;
use cohort_locks::LockError;
use cohort_types::{ErrorCode, SqlError};
use cohort_vfs::is_no_space;

/// Returns the client's error for a failure in an engine.
pub fn engine_error(error: EngineError) -> SqlError {
    match error {
        EngineError::Io(e) if is_no_space(&e) => SqlError::no_disk_space(e),
        EngineError::TooLarge { bytes_max } => SqlError::transaction_exceeds(bytes_max),
        EngineError::OverBudget(over) => over.into(),
        EngineError::Corrupt(what) => {
            log_damage(&what);
            SqlError::index_corrupt(what)
        }
        other => SqlError::new(ErrorCode::UnknownError, other.to_string()),
    }
}

/// Maximum number of damages logged in one run of the server.
const DAMAGE_MAX: usize = 1000;

/// Logs each damage once, regardless of how many statements encounter it.
fn log_damage(what: &str) {
    static LOGGED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    if logged.len() < DAMAGE_MAX && logged.insert(what.to_owned()) {
        log::error!("engine data is corrupt: {what}");
    }
}

/// Returns the client's error for a commit that was refused.
pub fn commit_error(error: CommitError) -> SqlError {
    match error {
        CommitError::DiskFull(what) => SqlError::no_disk_space(what),
        CommitError::Io(e) if is_no_space(&e) => commit_error(CommitError::DiskFull(e.to_string())),
        CommitError::Io(e) => {
            SqlError::new(ErrorCode::UnknownError, format!("Error writing the transaction's spill file: {e}"))
        }
        CommitError::Stopped => SqlError::server_shutdown(),
        CommitError::OutOfOrderGtid(what) => SqlError::gtid_out_of_order(&what),
        CommitError::NoSequenceNumber(_) => SqlError::cannot_log(error),
    }
}

/// Returns the client's error for a lock that was not granted.
pub fn lock_error(error: LockError) -> SqlError {
    use cohort_locks::KillLevel;
    let (code, text) = match error {
        LockError::Deadlock => {
            (ErrorCode::LockDeadlock, "Deadlock found when trying to get lock; try restarting transaction")
        }
        LockError::Timeout | LockError::NoWait => {
            (ErrorCode::LockWaitTimeout, "Lock wait timeout exceeded; try restarting transaction")
        }
        LockError::Killed(KillLevel::Query) => {
            (ErrorCode::QueryInterrupted, "Query execution was interrupted")
        }
        LockError::Killed(KillLevel::Connection) => (ErrorCode::ConnectionKilled, "Connection was killed"),
    };
    SqlError::new(code, text)
}

/// Returns the client's error for events that the transaction's cache refuses.
pub(crate) fn cache_error(error: CacheError) -> SqlError {
    match error {
        CacheError::TooLarge { .. } => SqlError::binlog_cache_exceeded(),
        CacheError::EventTooLarge { .. } => SqlError::binlog_row_failed(),
        CacheError::Spill(e) if is_no_space(&e) => SqlError::no_disk_space(e),
        CacheError::Spill(e) => SqlError::new(
            ErrorCode::UnknownError,
            format!("Error writing the transaction's binlog cache: {e}"),
        ),
    }
}

/// Returns error 1290, under `read_only`.
pub fn read_only() -> SqlError {
    SqlError::prevented_by_option("--read-only")
}

/// Returns error 1399.
pub fn rmfail(state: &str) -> SqlError {
    SqlError::xa_state(state)
}
