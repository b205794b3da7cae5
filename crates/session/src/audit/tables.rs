//! TABLE events: the tables that a statement reads, writes, creates, alters and drops.

use cohort_base::TableId;
use cohort_catalog::{Catalog, CatalogChange, ForeignAction, ForeignKey, Table, TableName};
use cohort_optimize::ReadMode;

use super::rules::EventKind;
use super::{Client, head, text};
use crate::session_state::SessionState;

/// How a statement uses a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableUse {
    Read,
    Write,
    Create,
    Alter,
    Drop,
}

/// How rows are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowChange {
    Update,
    Delete,
}

/// The TABLE events of one session's statements.
pub struct AuditTables<'s>(&'s SessionState);

impl SessionState {
    /// Returns `None` if TABLE events are not logged.
    #[inline]
    pub fn audit_tables(&self) -> Option<AuditTables<'_>> {
        self.wants_audit(EventKind::Table as u8).then_some(AuditTables(self))
    }
}

impl AuditTables<'_> {
    pub(crate) fn report(&self, of: TableUse, name: &TableName) {
        let operation = match of {
            TableUse::Read => "READ",
            TableUse::Write => "WRITE",
            TableUse::Create => "CREATE",
            TableUse::Alter => "ALTER",
            TableUse::Drop => "DROP",
        };
        self.write(operation, name, None);
    }

    /// Logs the use of a table, unless it is temporary.
    pub fn report_use(&self, of: TableUse, table: &Table) {
        if !table.is_temporary() {
            self.report(of, &table.name);
        }
    }

    /// Logs a change to a table, and to all tables that may change with it through foreign keys, whichever
    /// rows are affected.
    pub fn changed(&self, table: &Table, how: RowChange) {
        self.report_use(TableUse::Write, table);
        if table.referenced_by.is_empty() {
            return;
        }
        let catalog = self.0.db.catalog();
        let (mut seen, mut next) = (vec![table.name.clone()], vec![(table.name.clone(), how)]);
        while let Some((parent, how)) = next.pop() {
            let Some(children) = catalog.table(&parent.schema, &parent.table) else { continue };
            for name in
                children.referenced_by.iter().filter(|name| !seen.contains(name)).cloned().collect::<Vec<_>>()
            {
                let Some(child) = catalog.table(&name.schema, &name.table) else { continue };
                let action =
                    |key: &ForeignKey| if how == RowChange::Delete { key.on_delete } else { key.on_update };
                let follows = |key: &&ForeignKey| key.parent == parent && action(key).changes_child();
                let Some(key) = child.foreign_keys.iter().find(follows) else { continue };
                self.report(TableUse::Write, &name);
                let is_gone = how == RowChange::Delete && action(key) == ForeignAction::Cascade;
                seen.push(name.clone());
                next.push((name, if is_gone { RowChange::Delete } else { RowChange::Update }));
            }
        }
    }

    fn made(&self, table: &Table) {
        self.report(TableUse::Create, &table.name);
        if table.is_sequence() {
            self.report(TableUse::Write, &table.name);
        }
    }

    pub(crate) fn renamed(&self, from: &TableName, to: &TableName) {
        self.write("RENAME", from, Some(to));
    }

    /// Logs the tables that a query reads in this mode.
    pub fn query<'t>(&self, mode: ReadMode, tables: impl Iterator<Item = &'t Table>) {
        let of = match mode {
            ReadMode::LockExclusive(_) => TableUse::Write,
            _ => TableUse::Read,
        };
        tables.for_each(|table| self.report_use(of, table));
    }

    fn write(&self, operation: &str, name: &TableName, to: Option<&TableName>) {
        let AuditTables(session) = self;
        let (db, info) = (&session.db, &session.info);
        if session.identity.is_applier || !db.audit.rules.read().wants_user(&info.user) {
            return;
        }
        let client = Client { id: info.id, user: &info.user, host: &info.host };
        let mut line = head(&db.globals, client, session.log.statement.get(), operation);
        text::put_name(&mut line, &name.schema);
        line.push(b',');
        text::put_name(&mut line, &name.table);
        if let Some(to) = to {
            line.push(b'|');
            text::put_name(&mut line, &to.schema);
            line.push(b'.');
            text::put_name(&mut line, &to.table);
        }
        line.push(b',');
        db.audit.write(db.clock.wall_us(), &line);
    }
}

/// Logs the tables that a DDL statement created, dropped and renamed.
pub fn changed_tables(tables: &AuditTables<'_>, before: &Catalog, changes: &[CatalogChange]) {
    // One statement may rename a table several times.
    let mut renamed: Vec<(TableId, &TableName)> = Vec::new();
    for change in changes {
        match change {
            CatalogChange::DropTable(id) => {
                if let Some(table) = before.table_by_id(*id) {
                    tables.report(TableUse::Drop, &table.name);
                }
            }
            CatalogChange::PutTable(table) => {
                let newest = renamed.iter().rev().find(|(id, _)| *id == table.id).map(|(_, name)| *name);
                let known = newest.or_else(|| before.table_by_id(table.id).map(|old| &old.name));
                match known {
                    Some(name) if *name != table.name => {
                        tables.renamed(name, &table.name);
                        renamed.push((table.id, &table.name));
                    }
                    Some(_) => {}
                    None => tables.made(table),
                }
            }
            _ => {}
        }
    }
}
