//! Settings that refuse statements: `read_only`, `sql_safe_updates`, what cannot be set inside of a
//! transaction.

use cohort_config::VarId;
use cohort_sql::ast::{self, Statement};
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::plan::TargetPlan;
use crate::session_state::SessionState;
use crate::table::Spans;

/// Error 1290 under `read_only`, for accounts without READ_ONLY ADMIN.
pub(crate) fn check_read_only(session: &SessionState) -> SqlResult<()> {
    if !session.db.globals.flag(VarId::ReadOnly) {
        return Ok(());
    }
    if crate::ddl::check_privilege(session, "READ_ONLY ADMIN", None, None).is_ok() {
        return Ok(());
    }
    let text =
        "The MariaDB server is running with the --read-only option so it cannot execute this statement";
    Err(SqlError::new(ErrorCode::OptionPreventsStatement, text))
}

/// Whether `read_only` refuses a statement that is no plain data change: those are checked with their tables.
pub(crate) fn writes(statement: &Statement) -> bool {
    use Statement::*;
    match statement {
        CreateDatabase(_)
        | AlterDatabase(_)
        | DropDatabase(_)
        | CreateTable(_)
        | AlterTable(_)
        | DropTable(_)
        | RenameTable(_)
        | Truncate(_)
        | CreateIndex(_)
        | DropIndex(_)
        | CreateUser(_)
        | AlterUser(_)
        | DropUser { .. }
        | RenameUser(_)
        | Grant(_)
        | Revoke(_)
        | Binlog(_) => true,
        TableMaintenance(work) => {
            !matches!(work.kind, ast::MaintenanceKind::Check | ast::MaintenanceKind::Checksum)
        }
        Begin(begin) => begin.access == Some(ast::AccessMode::ReadWrite),
        Set(items) => items.iter().any(|item| matches!(item, ast::SetItem::Password { .. })),
        _ => false,
    }
}

/// Error 1175 under `sql_safe_updates` for rows that are found without a key. `no_where`: DELETE is also
/// refused without a WHERE that depends on the row, whatever its LIMIT.
pub(crate) fn check_safe_update(
    session: &SessionState,
    target: &TargetPlan,
    no_where: bool,
) -> SqlResult<()> {
    if !session.vars.flag(VarId::SqlSafeUpdates) {
        return Ok(());
    }
    let uses_key = !matches!(target.access.spans, Spans::Full);
    if !no_where && (uses_key || target.limit.is_some()) {
        return Ok(());
    }
    let text = "You are using safe update mode and you tried to update a table without a WHERE that uses a KEY column";
    Err(SqlError::new(ErrorCode::UpdateWithoutKeyInSafeMode, text))
}

/// Errors 1953, 1694, 1929, 1679: what the binlog needs to know from a transaction's start on.
pub(crate) fn check_settable_now(id: VarId, in_transaction: bool) -> SqlResult<()> {
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
