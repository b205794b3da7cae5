//! Statement properties that callers check before execution.

use crate::ast::Statement;

/// The family of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatementKind {
    /// SELECT, VALUES, DO.
    Query,
    /// INSERT, REPLACE, UPDATE, DELETE.
    Dml,
    /// Databases, tables, indexes.
    Ddl,
    /// BEGIN, COMMIT, savepoints, XA.
    Transaction,
    /// SET, USE, PREPARE, LOCK TABLES, KILL.
    Session,
    /// SHOW, DESCRIBE, EXPLAIN, HELP.
    Show,
    /// FLUSH, PURGE, table maintenance, BINLOG, SHUTDOWN.
    Admin,
    /// Users and grants.
    Account,
    /// CHANGE MASTER, START and STOP SLAVE.
    Replication,
}

/// Returns the statement's family.
pub fn statement_kind(statement: &Statement) -> StatementKind {
    use Statement as S;
    match statement {
        S::Query(_) | S::QueryIntoFile(_) | S::Do(_) | S::Handler(_) => StatementKind::Query,
        S::Insert(_) | S::Update(_) | S::Delete(_) | S::LoadData(_) => StatementKind::Dml,
        S::CreateDatabase(_)
        | S::AlterDatabase(_)
        | S::DropDatabase(_)
        | S::CreateTable(_)
        | S::AlterTable(_)
        | S::AlterSequence(_)
        | S::DropTable(_)
        | S::CreateView(_)
        | S::RenameTable(_)
        | S::Truncate(_)
        | S::CreateIndex(_)
        | S::DropIndex(_) => StatementKind::Ddl,
        S::Begin(_)
        | S::Commit(_)
        | S::Rollback(_)
        | S::Savepoint(_)
        | S::RollbackTo(_)
        | S::ReleaseSavepoint(_)
        | S::Xa(_) => StatementKind::Transaction,
        S::LockTables(_)
        | S::UnlockTables
        | S::Set(_)
        | S::Prepare { .. }
        | S::Execute { .. }
        | S::ExecuteImmediate { .. }
        | S::Deallocate(_)
        | S::Use(_)
        | S::Kill(_)
        | S::GetDiagnostics(_)
        | S::Program(_) => StatementKind::Session,
        S::SetStatement { statement, .. } | S::WithLockWait { statement, .. } => statement_kind(statement),
        S::Show(_) | S::Describe { .. } | S::Explain { .. } | S::Help(_) => StatementKind::Show,
        S::Flush(_)
        | S::ResetMaster { .. }
        | S::PurgeBinaryLogs(_)
        | S::Binlog(_)
        | S::TableMaintenance(_)
        | S::Backup(_)
        | S::Plugin(_)
        | S::Shutdown => StatementKind::Admin,
        S::ChangeMaster(_) | S::StartSlave(_) | S::StopSlave(_) | S::ResetSlave { .. } => {
            StatementKind::Replication
        }
        S::CreateUser(_)
        | S::CreateRole(_)
        | S::DropRole(_)
        | S::AlterUser(_)
        | S::DropUser { .. }
        | S::RenameUser(_)
        | S::Grant(_)
        | S::Revoke(_) => StatementKind::Account,
    }
}

/// Returns whether the statement commits the session's transaction before it executes, according to MariaDB's
/// manual. The caller decides for SET of `autocommit`, and whether the table of an ALTER or DROP is
/// temporary.
pub fn commits_implicitly(statement: &Statement) -> bool {
    match statement {
        Statement::CreateTable(table) => !table.temporary || table.sequence.is_some(),
        Statement::DropTable(table) => !table.temporary,
        Statement::Begin(_)
        | Statement::LockTables(_)
        | Statement::TableMaintenance(_)
        | Statement::Backup(_) => true,
        Statement::Flush(_)
        | Statement::ResetMaster { .. }
        | Statement::StartSlave(_)
        | Statement::StopSlave(_) => true,
        Statement::ChangeMaster(_) => true,
        other => matches!(statement_kind(other), StatementKind::Ddl | StatementKind::Account),
    }
}
