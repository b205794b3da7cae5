//! The kind of a statement. Every match lists every variant: a new one does not compile until it has a kind.

use cohort_sql::ast::{
    AccessMode, Backup, GrantLevel, HandlerAction, InsertSource, MaintenanceKind, Program, PurgeBinaryLogs,
    RoutineKind, SetItem, Show, Statement as S, TableRef, Xa,
};

use super::StatementKind as K;

/// Returns the statement's kind.
pub fn kind_of(statement: &S) -> K {
    match statement {
        S::Query(query) if query.into.is_empty() => K::Select,
        S::Query(_) => K::SelectInto,
        S::QueryIntoFile(_) => K::SelectIntoFile,
        S::Insert(insert) => match (insert.replace, &insert.source) {
            (false, InsertSource::Values(_)) => K::Insert,
            (false, InsertSource::Query(_)) => K::InsertSelect,
            (true, InsertSource::Values(_)) => K::Replace,
            (true, InsertSource::Query(_)) => K::ReplaceSelect,
        },
        S::Update(update) => match update.tables {
            TableRef::Table(_) => K::Update,
            TableRef::Derived { .. } | TableRef::Json(_) | TableRef::Join(_) => K::UpdateJoined,
        },
        S::Delete(delete) => {
            if delete.targets.is_empty() {
                K::Delete
            } else {
                K::DeleteJoined
            }
        }
        S::LoadData(_) => K::LoadData,
        S::Do(_) => K::Do,
        S::CreateDatabase(_) => K::CreateDatabase,
        S::AlterDatabase(_) => K::AlterDatabase,
        S::DropDatabase(_) => K::DropDatabase,
        S::CreateTable(create) => match (create.sequence.is_some(), create.temporary) {
            (false, false) => K::CreateTable,
            (false, true) => K::CreateTemporaryTable,
            (true, false) => K::CreateSequence,
            (true, true) => K::CreateTemporarySequence,
        },
        S::AlterSequence(_) => K::AlterSequence,
        S::Handler(handler) => match handler.action {
            HandlerAction::Open { .. } => K::HandlerOpen,
            HandlerAction::Read(_) => K::HandlerRead,
            HandlerAction::Close => K::HandlerClose,
        },
        S::AlterTable(_) => K::AlterTable,
        S::DropTable(drop) => match (drop.view, drop.sequence, drop.temporary) {
            (true, ..) => K::DropView,
            (false, true, false) => K::DropSequence,
            (false, true, true) => K::DropTemporarySequence,
            (false, false, false) => K::DropTable,
            (false, false, true) => K::DropTemporaryTable,
        },
        S::CreateView(create) => {
            if create.alter {
                K::AlterView
            } else {
                K::CreateView
            }
        }
        S::RenameTable(_) => K::RenameTable,
        S::Truncate(_) => K::Truncate,
        S::CreateIndex(_) => K::CreateIndex,
        S::DropIndex(_) => K::DropIndex,
        S::Begin(begin) => match begin.access {
            Some(AccessMode::ReadWrite) => K::BeginReadWrite,
            Some(AccessMode::ReadOnly) | None => K::Begin,
        },
        S::Commit(_) => K::Commit,
        S::Rollback(_) => K::Rollback,
        S::Savepoint(_) => K::Savepoint,
        S::RollbackTo(_) => K::RollbackTo,
        S::ReleaseSavepoint(_) => K::ReleaseSavepoint,
        S::LockTables(_) => K::LockTables,
        S::UnlockTables => K::UnlockTables,
        S::Xa(xa) => match xa {
            Xa::Start { .. } => K::XaStart,
            Xa::End { .. } => K::XaEnd,
            Xa::Prepare(_) => K::XaPrepare,
            Xa::Commit { .. } => K::XaCommit,
            Xa::Rollback(_) => K::XaRollback,
            Xa::Recover { .. } => K::XaRecover,
        },
        S::Set(items) => match items.iter().any(|item| matches!(item, SetItem::Password { .. })) {
            true => K::SetPassword,
            false => K::Set,
        },
        S::SetStatement { .. } => K::SetStatement,
        S::WithLockWait { .. } => K::WithLockWait,
        S::Prepare { .. } => K::Prepare,
        S::Execute { .. } => K::Execute,
        S::ExecuteImmediate { .. } => K::ExecuteImmediate,
        S::Deallocate(_) => K::Deallocate,
        S::Use(_) => K::Use,
        S::Kill(_) => K::Kill,
        S::GetDiagnostics(_) => K::GetDiagnostics,
        S::Program(program) => kind_of_program(program),
        S::Show(show) => kind_of_show(show),
        S::Describe { .. } => K::Describe,
        S::Explain { .. } => K::Explain,
        S::Help(_) => K::Help,
        S::Flush(_) => K::Flush,
        S::ResetMaster { .. } => K::ResetMaster,
        S::PurgeBinaryLogs(PurgeBinaryLogs::To(_)) => K::PurgeTo,
        S::PurgeBinaryLogs(PurgeBinaryLogs::Before(_)) => K::PurgeBefore,
        S::Binlog(_) => K::Binlog,
        S::TableMaintenance(maintenance) => match maintenance.kind {
            MaintenanceKind::Check => K::CheckTable,
            MaintenanceKind::Analyze => K::AnalyzeTable,
            MaintenanceKind::Optimize => K::OptimizeTable,
            MaintenanceKind::Repair => K::RepairTable,
            MaintenanceKind::Checksum => K::ChecksumTable,
        },
        S::Backup(Backup::Stage(_)) => K::BackupStage,
        S::Backup(Backup::Lock(_)) => K::BackupLock,
        S::Backup(Backup::Unlock) => K::BackupUnlock,
        S::Backup(Backup::Server(_) | Backup::Proven(_)) => K::BackupServer,
        S::Clone(_) => K::Clone,
        S::Plugin(plugin) => {
            if plugin.installs {
                K::InstallPlugin
            } else {
                K::UninstallPlugin
            }
        }
        S::Shutdown => K::Shutdown,
        S::ChangeMaster(_) => K::ChangeMaster,
        S::StartSlave(control) => {
            if control.all {
                K::StartAllSlaves
            } else {
                K::StartSlave
            }
        }
        S::StopSlave(control) => {
            if control.all {
                K::StopAllSlaves
            } else {
                K::StopSlave
            }
        }
        S::ResetSlave { .. } => K::ResetSlave,
        S::CreateUser(_) => K::CreateUser,
        S::CreateRole(_) => K::CreateRole,
        S::DropRole(_) => K::DropRole,
        S::AlterUser(_) => K::AlterUser,
        S::DropUser { .. } => K::DropUser,
        S::RenameUser(_) => K::RenameUser,
        S::Grant(grant) => match grant.level {
            GrantLevel::Role | GrantLevel::RoleAdmin => K::GrantRole,
            GrantLevel::Global
            | GrantLevel::Database(_)
            | GrantLevel::Table(_)
            | GrantLevel::Routine { .. }
            | GrantLevel::Everywhere
            | GrantLevel::Proxy(_) => K::Grant,
        },
        S::Revoke(revoke) => match revoke.level {
            GrantLevel::Role | GrantLevel::RoleAdmin => K::RevokeRole,
            GrantLevel::Everywhere => K::RevokeAll,
            GrantLevel::Global
            | GrantLevel::Database(_)
            | GrantLevel::Table(_)
            | GrantLevel::Routine { .. }
            | GrantLevel::Proxy(_) => K::Revoke,
        },
    }
}

fn kind_of_program(program: &Program) -> K {
    use RoutineKind::{Function, Procedure};
    match program {
        Program::CreateRoutine(create) => match create.kind {
            Procedure => K::CreateProcedure,
            Function => K::CreateFunction,
        },
        Program::AlterRoutine { kind: Procedure, .. } => K::AlterProcedure,
        Program::AlterRoutine { kind: Function, .. } => K::AlterFunction,
        Program::DropRoutine { kind: Procedure, .. } => K::DropProcedure,
        Program::DropRoutine { kind: Function, .. } => K::DropFunction,
        Program::CreateTrigger(_) => K::CreateTrigger,
        Program::DropTrigger { .. } => K::DropTrigger,
        Program::CreateEvent(_) => K::CreateEvent,
        Program::AlterEvent(alter) => match alter.body {
            None => K::AlterEvent,
            Some(_) => K::AlterEventBody,
        },
        Program::DropEvent { .. } => K::DropEvent,
        Program::Call { .. } => K::Call,
        Program::Check { .. } => K::CheckProgram,
        Program::Compound(_) => K::Compound,
        Program::Signal(_) => K::Signal,
        Program::Resignal(_) => K::Resignal,
    }
}

fn kind_of_show(show: &Show) -> K {
    match show {
        Show::Databases { .. } => K::ShowDatabases,
        Show::Tables { .. } => K::ShowTables,
        Show::TableStatus { .. } => K::ShowTableStatus,
        Show::OpenTables { .. } => K::ShowOpenTables,
        Show::Columns { .. } => K::ShowColumns,
        Show::Index { .. } => K::ShowIndex,
        Show::CreateDatabase { .. } => K::ShowCreateDatabase,
        Show::CreateTable(_) => K::ShowCreateTable,
        Show::CreateSequence(_) => K::ShowCreateSequence,
        Show::CreateView(_) => K::ShowCreateView,
        Show::CreateUser(_) => K::ShowCreateUser,
        Show::CreateOther { kind, .. } => match &**kind {
            "FUNCTION" => K::ShowCreateFunction,
            "TRIGGER" => K::ShowCreateTrigger,
            "EVENT" => K::ShowCreateEvent,
            "PACKAGE" => K::ShowCreatePackage,
            "PACKAGE BODY" => K::ShowCreatePackageBody,
            _ => K::ShowCreateProcedure,
        },
        Show::Variables { .. } => K::ShowVariables,
        Show::Status { .. } => K::ShowStatus,
        Show::ProcessList { .. } => K::ShowProcessList,
        Show::Engines => K::ShowEngines,
        Show::Engine { .. } => K::ShowEngine,
        Show::Warnings { .. } => K::ShowWarnings,
        Show::Errors { .. } => K::ShowErrors,
        Show::CountWarnings => K::ShowCountWarnings,
        Show::CountErrors => K::ShowCountErrors,
        Show::BinaryLogs => K::ShowBinaryLogs,
        Show::BinlogEvents { .. } => K::ShowBinlogEvents,
        Show::RelaylogEvents { .. } => K::ShowRelaylogEvents,
        Show::MasterStatus => K::ShowMasterStatus,
        Show::SlaveHosts => K::ShowSlaveHosts,
        Show::Explain { .. } => K::ShowExplain,
        Show::SlaveStatus { .. } => K::ShowSlaveStatus,
        Show::Grants(_) => K::ShowGrants,
        Show::CharacterSet { .. } => K::ShowCharacterSet,
        Show::Collation { .. } => K::ShowCollation,
        Show::Privileges => K::ShowPrivileges,
        Show::Plugins { .. } => K::ShowPlugins,
        Show::Usage { .. } => K::ShowUsage,
        Show::Triggers { .. } => K::ShowTriggers,
        Show::Events { .. } => K::ShowEvents,
        Show::ProcedureStatus { .. } => K::ShowProcedureStatus,
        Show::FunctionStatus { .. } => K::ShowFunctionStatus,
        Show::PackageStatus { .. } => K::ShowPackageStatus,
        Show::Profiles => K::ShowProfiles,
        Show::Profile { .. } => K::ShowProfile,
    }
}
