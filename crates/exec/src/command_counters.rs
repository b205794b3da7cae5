//! Maps statements to the `Com_...` status variables that count them.

use cohort_config::Counter;
use cohort_sql::ast::{self, GrantLevel, Show, Statement, Xa};

use crate::cached_plan::Planned;

/// Returns the counter of a statement, `None` if only the nested statement counts.
pub(crate) fn counter_of(statement: &Statement) -> Option<Counter> {
    use Statement as S;
    let counter = match statement {
        S::Query(_) | S::QueryIntoFile(_) => Counter::ComSelect,
        S::LoadData(_) => Counter::ComLoad,
        S::Insert(insert) => {
            counter_of_insert(insert.replace, matches!(insert.source, ast::InsertSource::Query(_)))
        }
        S::Update(update) => match update.tables {
            ast::TableRef::Table(_) => Counter::ComUpdate,
            _ => Counter::ComUpdateMulti,
        },
        S::Delete(delete) if delete.targets.is_empty() => Counter::ComDelete,
        S::Delete(_) => Counter::ComDeleteMulti,
        S::Do(_) => Counter::ComDo,
        S::Handler(handler) => match handler.action {
            ast::HandlerAction::Open { .. } => Counter::ComHaOpen,
            ast::HandlerAction::Read(_) => Counter::ComHaRead,
            ast::HandlerAction::Close => Counter::ComHaClose,
        },
        S::CreateDatabase(_) => Counter::ComCreateDb,
        S::AlterDatabase(_) => Counter::ComAlterDb,
        S::DropDatabase(_) => Counter::ComDropDb,
        S::CreateTable(table) if table.sequence.is_some() => Counter::ComCreateSequence,
        S::CreateTable(table) if table.temporary => Counter::ComCreateTemporaryTable,
        S::CreateTable(_) => Counter::ComCreateTable,
        S::AlterTable(_) => Counter::ComAlterTable,
        S::AlterSequence(_) => Counter::ComAlterSequence,
        S::DropTable(table) if table.view => Counter::ComDropView,
        S::DropTable(table) if table.sequence => Counter::ComDropSequence,
        S::DropTable(table) if table.temporary => Counter::ComDropTemporaryTable,
        S::DropTable(_) => Counter::ComDropTable,
        S::CreateView(_) => Counter::ComCreateView,
        S::RenameTable(_) => Counter::ComRenameTable,
        S::Truncate(_) => Counter::ComTruncate,
        S::CreateIndex(_) => Counter::ComCreateIndex,
        S::DropIndex(_) => Counter::ComDropIndex,
        S::Begin(_) => Counter::ComBegin,
        S::Commit(_) => Counter::ComCommit,
        S::Rollback(_) => Counter::ComRollback,
        S::Savepoint(_) => Counter::ComSavepoint,
        S::RollbackTo(_) => Counter::ComRollbackToSavepoint,
        S::ReleaseSavepoint(_) => Counter::ComReleaseSavepoint,
        S::LockTables(_) => Counter::ComLockTables,
        S::UnlockTables => Counter::ComUnlockTables,
        S::Xa(xa) => counter_of_xa(xa),
        S::Set(_) => Counter::ComSetOption,
        S::SetStatement { .. } | S::WithLockWait { .. } => return None,
        S::Prepare { .. } => Counter::ComPrepareSql,
        S::Execute { .. } => Counter::ComExecuteSql,
        S::ExecuteImmediate { .. } => Counter::ComExecuteImmediate,
        S::Deallocate(_) => Counter::ComDeallocSql,
        S::Use(_) => Counter::ComChangeDb,
        S::Kill(_) => Counter::ComKill,
        S::GetDiagnostics(_) => Counter::ComGetDiagnostics,
        S::Show(show) => counter_of_show(show),
        S::Describe { .. } => Counter::ComShowFields,
        S::Explain { statement, .. } => return counter_of(statement),
        S::Help(_) => Counter::ComHelp,
        S::Flush(_) => Counter::ComFlush,
        S::ResetMaster { .. } | S::ResetSlave { .. } => Counter::ComReset,
        S::PurgeBinaryLogs(ast::PurgeBinaryLogs::To(_)) => Counter::ComPurge,
        S::PurgeBinaryLogs(_) => Counter::ComPurgeBeforeDate,
        S::Binlog(_) => Counter::ComBinlog,
        S::TableMaintenance(maintenance) => match maintenance.kind {
            ast::MaintenanceKind::Check => Counter::ComCheck,
            ast::MaintenanceKind::Analyze => Counter::ComAnalyze,
            ast::MaintenanceKind::Optimize => Counter::ComOptimize,
            ast::MaintenanceKind::Repair => Counter::ComRepair,
            ast::MaintenanceKind::Checksum => Counter::ComChecksum,
        },
        S::Backup(ast::Backup::Stage(_)) => Counter::ComBackup,
        S::Backup(_) => Counter::ComBackupLock,
        S::Plugin(plugin) if plugin.installs => Counter::ComInstallPlugin,
        S::Plugin(_) => Counter::ComUninstallPlugin,
        S::Shutdown => Counter::ComShutdown,
        S::ChangeMaster(_) => Counter::ComChangeMaster,
        S::StartSlave(control) if control.all => Counter::ComStartAllSlaves,
        S::StartSlave(_) => Counter::ComStartSlave,
        S::StopSlave(control) if control.all => Counter::ComStopAllSlaves,
        S::StopSlave(_) => Counter::ComStopSlave,
        S::CreateUser(_) => Counter::ComCreateUser,
        S::CreateRole(_) => Counter::ComCreateRole,
        S::DropRole(_) => Counter::ComDropRole,
        S::AlterUser(_) => Counter::ComAlterUser,
        S::DropUser { .. } => Counter::ComDropUser,
        S::RenameUser(_) => Counter::ComRenameUser,
        S::Grant(grant) => match grant.level {
            GrantLevel::Role | GrantLevel::RoleAdmin => Counter::ComGrantRole,
            _ => Counter::ComGrant,
        },
        S::Revoke(revoke) => match revoke.level {
            GrantLevel::Role | GrantLevel::RoleAdmin => Counter::ComRevokeRole,
            GrantLevel::Everywhere => Counter::ComRevokeAll,
            _ => Counter::ComRevoke,
        },
    };
    Some(counter)
}

fn counter_of_xa(xa: &Xa) -> Counter {
    match xa {
        Xa::Start { .. } => Counter::ComXaStart,
        Xa::End { .. } => Counter::ComXaEnd,
        Xa::Prepare(_) => Counter::ComXaPrepare,
        Xa::Commit { .. } => Counter::ComXaCommit,
        Xa::Rollback(_) => Counter::ComXaRollback,
        Xa::Recover { .. } => Counter::ComXaRecover,
    }
}

fn counter_of_show(show: &Show) -> Counter {
    match show {
        Show::Databases { .. } => Counter::ComShowDatabases,
        Show::Tables { .. } => Counter::ComShowTables,
        Show::TableStatus { .. } => Counter::ComShowTableStatus,
        Show::OpenTables { .. } => Counter::ComShowOpenTables,
        Show::Columns { .. } => Counter::ComShowFields,
        Show::Index { .. } => Counter::ComShowKeys,
        Show::CreateDatabase { .. } => Counter::ComShowCreateDb,
        Show::CreateTable(_) | Show::CreateView(_) | Show::CreateSequence(_) => Counter::ComShowCreateTable,
        Show::CreateUser(_) => Counter::ComShowCreateUser,
        Show::CreateOther { .. } => Counter::ComShowCreateProc,
        Show::Variables { .. } => Counter::ComShowVariables,
        Show::Status { .. } => Counter::ComShowStatus,
        Show::ProcessList { .. } => Counter::ComShowProcesslist,
        Show::Engines => Counter::ComShowStorageEngines,
        Show::Engine { .. } => Counter::ComShowEngineStatus,
        Show::Warnings { .. } => Counter::ComShowWarnings,
        Show::Errors { .. } => Counter::ComShowErrors,
        Show::CountWarnings | Show::CountErrors => Counter::ComSelect,
        Show::BinaryLogs => Counter::ComShowBinlogs,
        Show::BinlogEvents { .. } => Counter::ComShowBinlogEvents,
        Show::RelaylogEvents { .. } => Counter::ComShowRelaylogEvents,
        Show::MasterStatus => Counter::ComShowBinlogStatus,
        Show::SlaveHosts => Counter::ComShowSlaveHosts,
        Show::Explain { .. } => Counter::ComShowExplain,
        Show::SlaveStatus { .. } => Counter::ComShowSlaveStatus,
        Show::Grants(_) => Counter::ComShowGrants,
        Show::CharacterSet { .. } => Counter::ComShowCharsets,
        Show::Collation { .. } => Counter::ComShowCollations,
        Show::Privileges => Counter::ComShowPrivileges,
        Show::Plugins { .. } => Counter::ComShowPlugins,
        Show::Triggers { .. } => Counter::ComShowTriggers,
        Show::Events { .. } => Counter::ComShowEvents,
        Show::ProcedureStatus { .. } => Counter::ComShowProcedureStatus,
        Show::FunctionStatus { .. } => Counter::ComShowFunctionStatus,
        Show::PackageStatus { .. } => Counter::ComShowPackageStatus,
        Show::Profiles => Counter::ComShowProfiles,
        Show::Profile { .. } => Counter::ComShowProfile,
    }
}

fn counter_of_insert(replaces: bool, selects: bool) -> Counter {
    match (replaces, selects) {
        (false, false) => Counter::ComInsert,
        (false, true) => Counter::ComInsertSelect,
        (true, false) => Counter::ComReplace,
        (true, true) => Counter::ComReplaceSelect,
    }
}

/// Returns the counter of a planned statement.
pub(crate) fn counter_of_plan(plan: &Planned) -> Counter {
    match plan {
        Planned::Query(_) => Counter::ComSelect,
        Planned::Insert(insert) => counter_of_insert(insert.replaces(), insert.selects()),
        Planned::Update(_) => Counter::ComUpdate,
        Planned::Delete(_) => Counter::ComDelete,
        Planned::Joined(change) if change.is_update() => Counter::ComUpdateMulti,
        Planned::Joined(_) => Counter::ComDeleteMulti,
    }
}
