//! Checks of settings that reject statements: `read_only`, `sql_safe_updates`, and variables that cannot be
//! set inside a transaction.

use cohort_config::VarId;
use cohort_types::{ErrorCode, Privilege, SqlError, SqlResult};

use cohort_session::SessionState;

/// Returns error 1290 under `read_only`, for accounts without READ_ONLY ADMIN.
pub fn check_read_only(session: &SessionState) -> SqlResult<()> {
    if !session.db.globals.flag(VarId::ReadOnly) {
        return Ok(());
    }
    if session.access().everywhere().has(Privilege::ReadOnlyAdmin) {
        return Ok(());
    }
    Err(cohort_trx::read_only())
}

/// Returns error 1175 under `sql_safe_updates`.
pub fn refuse_without_key(session: &SessionState) -> SqlResult<()> {
    if !session.settings.vars.flag(VarId::SqlSafeUpdates) {
        return Ok(());
    }
    Err(SqlError::update_without_key())
}

/// Returns error 1953, 1694, 1929 or 1679 for a variable that the binary log needs from the start of a
/// transaction.
pub fn check_settable_now(id: VarId, in_transaction: bool) -> SqlResult<()> {
    if !in_transaction {
        return Ok(());
    }
    let inside = |code, name: &str| {
        Err(SqlError::new(code, format!("Cannot modify @@session.{name} inside a transaction")))
    };
    match id {
        VarId::GtidDomainId | VarId::GtidSeqNo => Err(SqlError::gtid_switch_in_transaction()),
        VarId::SqlLogBin => inside(ErrorCode::InsideTransactionPreventsSwitchSqlLogBin, "sql_log_bin"),
        VarId::SkipReplication => {
            inside(ErrorCode::InsideTransactionPreventsSwitchSkipReplication, "skip_replication")
        }
        VarId::BinlogFormat => {
            inside(ErrorCode::InsideTransactionPreventsSwitchBinlogFormat, "binlog_format")
        }
        _ => Ok(()),
    }
}
