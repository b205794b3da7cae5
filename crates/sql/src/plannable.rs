//! Queries and row changes: the statements that have a plan.

use crate::ast::{Delete, Insert, Query, Statement, Statement as S, Update};

/// A statement that is planned, cached and run by its plan.
#[derive(Clone, Copy, Debug)]
pub enum Plannable<'s> {
    Query(&'s Query),
    Insert(&'s Insert),
    Update(&'s Update),
    Delete(&'s Delete),
}

impl Statement {
    /// Returns the query or row change, `None` for a statement that runs without a plan.
    pub fn plannable(&self) -> Option<Plannable<'_>> {
        Some(match self {
            S::Query(query) => Plannable::Query(query),
            S::Insert(insert) => Plannable::Insert(insert),
            S::Update(update) => Plannable::Update(update),
            S::Delete(delete) => Plannable::Delete(delete),
            S::QueryIntoFile(_)
            | S::LoadData(_)
            | S::Do(_)
            | S::CreateDatabase(_)
            | S::AlterDatabase(_)
            | S::DropDatabase(_)
            | S::CreateTable(_)
            | S::AlterSequence(_)
            | S::Handler(_)
            | S::AlterTable(_)
            | S::DropTable(_)
            | S::CreateView(_)
            | S::RenameTable(_)
            | S::Truncate(_)
            | S::CreateIndex(_)
            | S::DropIndex(_)
            | S::Begin(_)
            | S::Commit(_)
            | S::Rollback(_)
            | S::Savepoint(_)
            | S::RollbackTo(_)
            | S::ReleaseSavepoint(_)
            | S::LockTables(_)
            | S::UnlockTables
            | S::Xa(_)
            | S::Set(_)
            | S::SetStatement { .. }
            | S::WithLockWait { .. }
            | S::Prepare { .. }
            | S::Execute { .. }
            | S::ExecuteImmediate { .. }
            | S::Deallocate(_)
            | S::Use(_)
            | S::Kill(_)
            | S::GetDiagnostics(_)
            | S::Program(_)
            | S::Show(_)
            | S::Describe { .. }
            | S::Explain { .. }
            | S::Help(_)
            | S::Flush(_)
            | S::ResetMaster { .. }
            | S::PurgeBinaryLogs(_)
            | S::Binlog(_)
            | S::TableMaintenance(_)
            | S::Backup(_)
            | S::Clone(_)
            | S::Plugin(_)
            | S::Shutdown
            | S::ChangeMaster(_)
            | S::StartSlave(_)
            | S::StopSlave(_)
            | S::ResetSlave { .. }
            | S::CreateUser(_)
            | S::CreateRole(_)
            | S::DropRole(_)
            | S::AlterUser(_)
            | S::DropUser { .. }
            | S::RenameUser(_)
            | S::Grant(_)
            | S::Revoke(_) => return None,
        })
    }
}
