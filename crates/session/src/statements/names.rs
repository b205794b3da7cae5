//! The objects that a statement changes according to its text.

use cohort_sql::Plannable;
use cohort_sql::ast::{Assignment, Delete, ObjectName, Statement as S, TableFactor, TableRef, Update};

/// The objects that a statement changes.
#[derive(Debug, Default)]
pub struct ChangedNames<'s> {
    /// The schema that is created, changed or dropped.
    pub schema: Option<&'s str>,
    pub tables: Vec<&'s ObjectName>,
}

/// Returns the objects that a statement changes. A nested statement names its own.
pub fn changed_names(statement: &S) -> ChangedNames<'_> {
    let mut names = ChangedNames::default();
    match statement {
        S::Insert(insert) => names.tables.push(&insert.table),
        S::LoadData(load) => names.tables.push(&load.table),
        S::Update(update) => names.tables = updated(update),
        S::Delete(delete) => names.tables = deleted_from(delete),
        S::CreateDatabase(create) => names.schema = Some(&create.name),
        S::AlterDatabase(alter) => names.schema = alter.name.as_deref(),
        S::DropDatabase(drop) => names.schema = Some(&drop.name),
        S::CreateTable(create) => names.tables.push(&create.name),
        S::AlterSequence(alter) => names.tables.push(&alter.name),
        S::AlterTable(alter) => names.tables.push(&alter.table),
        S::DropTable(drop) => names.tables.extend(&drop.names),
        S::CreateView(create) => names.tables.push(&create.name),
        S::RenameTable(rename) => {
            names.tables.extend(rename.renames.iter().flat_map(|(from, to)| [from, to]));
        }
        S::Truncate(name) => names.tables.push(name),
        S::CreateIndex(create) => names.tables.push(&create.table),
        S::DropIndex(drop) => names.tables.push(&drop.table),
        S::TableMaintenance(maintenance) => names.tables.extend(&maintenance.names),
        S::Query(_)
        | S::QueryIntoFile(_)
        | S::Do(_)
        | S::Handler(_)
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
        | S::Revoke(_) => {}
    }
    names
}

/// Returns the table of an INSERT, UPDATE or DELETE that names a single one.
pub fn row_target<'s>(change: &Plannable<'s>) -> Option<&'s ObjectName> {
    let of_one = |table: &'s TableRef| match table {
        TableRef::Table(factor) => Some(&factor.name),
        TableRef::Derived { .. } | TableRef::Json(_) | TableRef::Join(_) => None,
    };
    match change {
        Plannable::Query(_) => None,
        Plannable::Insert(insert) => Some(&insert.table),
        Plannable::Update(update) => of_one(&update.tables),
        Plannable::Delete(delete) => of_one(&delete.from),
    }
}

fn tables_of<'t>(tables: &'t TableRef, out: &mut Vec<&'t TableFactor>) {
    match tables {
        TableRef::Table(table) => out.push(table),
        TableRef::Derived { .. } | TableRef::Json(_) => {}
        TableRef::Join(join) => {
            tables_of(&join.left, out);
            tables_of(&join.right, out);
        }
    }
}

fn is_called(table: &TableFactor, name: &str) -> bool {
    table.alias.as_deref().unwrap_or(&table.name.name) == name
}

/// Returns the tables of a join whose columns are assigned. An unqualified column counts for every table.
fn updated(update: &Update) -> Vec<&ObjectName> {
    let mut all = Vec::new();
    tables_of(&update.tables, &mut all);
    let sets = |table: &TableFactor| {
        let is_of = |assignment: &Assignment| {
            assignment.column.table.as_deref().is_none_or(|name| is_called(table, name))
        };
        update.assignments.iter().any(is_of)
    };
    all.into_iter().filter(|table| sets(table)).map(|table| &table.name).collect()
}

fn deleted_from(delete: &Delete) -> Vec<&ObjectName> {
    let mut all = Vec::new();
    tables_of(&delete.from, &mut all);
    if delete.targets.is_empty() {
        return all.into_iter().map(|table| &table.name).collect();
    }
    let meant = |target| {
        let called = |table: &&&TableFactor| is_called(table, &ObjectName::clone(target).name);
        all.iter().find(called).map_or(target, |table| &table.name)
    };
    delete.targets.iter().map(meant).collect()
}
