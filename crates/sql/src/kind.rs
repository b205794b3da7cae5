//! What callers ask about a statement before they run it.

use crate::ast::{Show, Statement, Xa};

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

/// The statement's family.
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
        | S::Kill(_) => StatementKind::Session,
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

/// The name under which the status variable `Com_...` counts the statement.
pub fn command_name(statement: &Statement) -> &'static str {
    use Statement as S;
    match statement {
        S::Query(_) | S::QueryIntoFile(_) => "select",
        S::LoadData(_) => "load",
        S::Insert(insert) => match (insert.replace, &insert.source) {
            (false, crate::ast::InsertSource::Values(_)) => "insert",
            (false, crate::ast::InsertSource::Query(_)) => "insert_select",
            (true, crate::ast::InsertSource::Values(_)) => "replace",
            (true, crate::ast::InsertSource::Query(_)) => "replace_select",
        },
        S::Update(update) => match update.tables {
            crate::ast::TableRef::Table(_) => "update",
            _ => "update_multi",
        },
        S::Delete(delete) if delete.targets.is_empty() => "delete",
        S::Delete(_) => "delete_multi",
        S::Do(_) => "do",
        S::Handler(handler) => match handler.action {
            crate::ast::HandlerAction::Open { .. } => "ha_open",
            crate::ast::HandlerAction::Read(_) => "ha_read",
            crate::ast::HandlerAction::Close => "ha_close",
        },
        S::CreateDatabase(_) => "create_db",
        S::AlterDatabase(_) => "alter_db",
        S::DropDatabase(_) => "drop_db",
        S::CreateTable(table) if table.sequence.is_some() => "create_sequence",
        S::CreateTable(table) if table.temporary => "create_temporary_table",
        S::CreateTable(_) => "create_table",
        S::AlterTable(_) => "alter_table",
        S::AlterSequence(_) => "alter_sequence",
        S::DropTable(table) if table.view => "drop_view",
        S::DropTable(table) if table.sequence => "drop_sequence",
        S::DropTable(table) if table.temporary => "drop_temporary_table",
        S::DropTable(_) => "drop_table",
        S::CreateView(view) if view.alter => "alter_view",
        S::CreateView(_) => "create_view",
        S::RenameTable(_) => "rename_table",
        S::Truncate(_) => "truncate",
        S::CreateIndex(_) => "create_index",
        S::DropIndex(_) => "drop_index",
        S::Begin(_) => "begin",
        S::Commit(_) => "commit",
        S::Rollback(_) => "rollback",
        S::Savepoint(_) => "savepoint",
        S::RollbackTo(_) => "rollback_to_savepoint",
        S::ReleaseSavepoint(_) => "release_savepoint",
        S::LockTables(_) => "lock_tables",
        S::UnlockTables => "unlock_tables",
        S::Xa(xa) => xa_name(xa),
        S::Set(_) | S::SetStatement { .. } => "set_option",
        S::WithLockWait { statement, .. } => command_name(statement),
        S::Prepare { .. } => "prepare_sql",
        S::Execute { .. } => "execute_sql",
        S::ExecuteImmediate { .. } => "execute_immediate",
        S::Deallocate(_) => "dealloc_sql",
        S::Use(_) => "change_db",
        S::Kill(_) => "kill",
        S::Show(show) => show_name(show),
        S::Describe { .. } => "show_fields",
        S::Explain { .. } => "select",
        S::Help(_) => "help",
        S::Flush(_) => "flush",
        S::ResetMaster { .. } | S::ResetSlave { .. } => "reset",
        S::PurgeBinaryLogs(crate::ast::PurgeBinaryLogs::To(_)) => "purge",
        S::PurgeBinaryLogs(_) => "purge_before_date",
        S::Binlog(_) => "binlog",
        S::TableMaintenance(maintenance) => match maintenance.kind {
            crate::ast::MaintenanceKind::Check => "check",
            crate::ast::MaintenanceKind::Analyze => "analyze",
            crate::ast::MaintenanceKind::Optimize => "optimize",
            crate::ast::MaintenanceKind::Repair => "repair",
            crate::ast::MaintenanceKind::Checksum => "checksum",
        },
        S::Backup(crate::ast::Backup::Stage(_)) => "backup",
        S::Backup(_) => "backup_table",
        S::Plugin(plugin) if plugin.installs => "install_plugin",
        S::Plugin(_) => "uninstall_plugin",
        S::Shutdown => "shutdown",
        S::ChangeMaster(_) => "change_master",
        S::StartSlave(_) => "start_slave",
        S::StopSlave(_) => "stop_slave",
        S::CreateUser(_) => "create_user",
        S::CreateRole(_) => "create_role",
        S::DropRole(_) => "drop_role",
        S::AlterUser(_) => "alter_user",
        S::DropUser { .. } => "drop_user",
        S::RenameUser(_) => "rename_user",
        S::Grant(_) => "grant",
        S::Revoke(_) => "revoke",
    }
}

fn xa_name(xa: &Xa) -> &'static str {
    match xa {
        Xa::Start { .. } => "xa_start",
        Xa::End { .. } => "xa_end",
        Xa::Prepare(_) => "xa_prepare",
        Xa::Commit { .. } => "xa_commit",
        Xa::Rollback(_) => "xa_rollback",
        Xa::Recover { .. } => "xa_recover",
    }
}

fn show_name(show: &Show) -> &'static str {
    match show {
        Show::Databases { .. } => "show_databases",
        Show::Tables { .. } => "show_tables",
        Show::TableStatus { .. } => "show_table_status",
        Show::OpenTables { .. } => "show_open_tables",
        Show::Columns { .. } => "show_fields",
        Show::Index { .. } => "show_keys",
        Show::CreateDatabase { .. } => "show_create_db",
        Show::CreateTable(_) | Show::CreateView(_) | Show::CreateSequence(_) => "show_create_table",
        Show::CreateUser(_) => "show_create_user",
        Show::CreateOther { .. } => "show_create_proc",
        Show::Variables { .. } => "show_variables",
        Show::Status { .. } => "show_status",
        Show::ProcessList { .. } => "show_processlist",
        Show::Engines => "show_storage_engines",
        Show::Engine { .. } => "show_engine_status",
        Show::Warnings { .. } | Show::CountWarnings => "show_warnings",
        Show::Errors { .. } | Show::CountErrors => "show_errors",
        Show::BinaryLogs => "show_binlogs",
        Show::BinlogEvents { .. } => "show_binlog_events",
        Show::RelaylogEvents { .. } => "show_relaylog_events",
        Show::MasterStatus => "show_binlog_status",
        Show::SlaveHosts => "show_slave_hosts",
        Show::Explain { .. } => "show_explain",
        Show::SlaveStatus { .. } => "show_slave_status",
        Show::Grants(_) => "show_grants",
        Show::CharacterSet { .. } => "show_charsets",
        Show::Collation { .. } => "show_collations",
        Show::Privileges => "show_privileges",
        Show::Plugins { .. } => "show_plugins",
        Show::Triggers { .. } => "show_triggers",
        Show::Events { .. } => "show_events",
        Show::ProcedureStatus { .. } => "show_procedure_status",
        Show::FunctionStatus { .. } => "show_function_status",
        Show::PackageStatus { .. } => "show_package_status",
        Show::Profiles => "show_profiles",
        Show::Profile { .. } => "show_profile",
    }
}

/// Whether the statement ends the session's transaction before it runs, as MariaDB's manual lists them. SET
/// of `autocommit` is not decided here, and whether the table of an ALTER or DROP is a temporary one neither.
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
