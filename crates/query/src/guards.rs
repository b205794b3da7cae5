//! Settings that refuse statements: `read_only`, `sql_safe_updates`, what cannot be set inside of a
//! transaction.

use cohort_config::VarId;
use cohort_types::{ErrorCode, Privilege, SqlError, SqlResult};

use cohort_session::SessionState;

/// Error 1290 under `read_only`, for accounts without READ_ONLY ADMIN.
pub fn check_read_only(session: &SessionState) -> SqlResult<()> {
    if !session.db.globals.flag(VarId::ReadOnly) {
        return Ok(());
    }
    if session.access().everywhere().has(Privilege::ReadOnlyAdmin) {
        return Ok(());
    }
    Err(cohort_trx::read_only())
}

/// Error 1175 under `sql_safe_updates`.
pub fn refuse_without_key(session: &SessionState) -> SqlResult<()> {
    if !session.vars.flag(VarId::SqlSafeUpdates) {
        return Ok(());
    }
    let text = "You are using safe update mode and you tried to update a table without a WHERE that uses a KEY column";
    Err(SqlError::new(ErrorCode::UpdateWithoutKeyInSafeMode, text))
}

/// Errors 1953, 1694, 1929, 1679: what the binlog needs to know from a transaction's start on.
pub fn check_settable_now(id: VarId, in_transaction: bool) -> SqlResult<()> {
    if !in_transaction {
        return Ok(());
    }
    let inside = |code, name: &str| {
        Err(SqlError::new(code, format!("Cannot modify @@session.{name} inside a transaction")))
    };
    match id {
        VarId::GtidDomainId | VarId::GtidSeqNo => Err(SqlError::new(
            ErrorCode::InsideTransactionPreventsSwitchGtidDomainIdSeqNo,
            "Cannot modify @@session.gtid_domain_id or @@session.gtid_seq_no inside a transaction",
        )),
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
