//! The effect of one DDL statement on the catalog, as stored in its commit record.
//!
//! ```text
//! u8 1 schema | 2 string schema name | 3 table | 4 u64 table id | 6 string user, string host
//!    | 7 u64 next table, u32 next index | 10 account | 20 view | 21 string schema, string view
//!    | 22 routine | 23 u8 kind, string schema, string routine | 24 event | 25 string schema, string event
//!    | 26 account, grants on routines              repeated up to the end
//! ```
//!
//! 5, 8 and 9 were accounts of builds before the first release. They are rejected
//! ([`Undecodable::Outdated`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Reader, TableId, Truncated, Write};
use cohort_engine::Redo;
use cohort_types::RoutineKind;

use crate::account::{
    Account, AccountName, put_account, put_routine_grants, read_account, read_routine_grants,
};
use crate::codec::{put_schema, put_string, put_table, read_schema, read_string, read_table};
use crate::foreign::{link, note_links};
use crate::model::{Catalog, Schema, Table, TableName};
use crate::program::{
    Event, ProgramKey, Routine, put_event, put_kind, put_routine, read_event, read_number, read_routine,
};
use crate::view::{View, put_view, read_view};

/// A change of the catalog. A list of changes is a catalog redo; applying it twice is harmless.
#[derive(Clone, Debug, PartialEq)]
pub enum CatalogChange {
    /// Creates a schema or replaces its attributes; its contents stay.
    PutSchema(Schema),
    /// Removes a schema with its contents.
    DropSchema(String),
    /// Creates or replaces the table with this id. A rename is a put.
    PutTable(Table),
    DropTable(TableId),
    /// Creates or replaces a view.
    PutView(View),
    DropView(TableName),
    /// Creates or replaces a routine.
    PutRoutine(Routine),
    DropRoutine {
        kind: RoutineKind,
        schema: String,
        name: String,
    },
    /// Creates or replaces an event. A rename is a drop and a put.
    PutEvent(Event),
    DropEvent {
        schema: String,
        name: String,
    },
    PutAccount(Account),
    DropAccount(AccountName),
    /// Ids below these have been used.
    NextIds {
        table: TableId,
        index: IndexId,
    },
}

/// Reason why changes cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecodable {
    /// They are cut off or damaged.
    Truncated,
    /// They contain an account in a format of builds before the first release.
    Outdated,
}

impl From<Truncated> for Undecodable {
    fn from(_: Truncated) -> Undecodable {
        Undecodable::Truncated
    }
}

impl CatalogChange {
    /// Encodes the changes of a statement as redo.
    pub fn encode(changes: &[CatalogChange]) -> Redo {
        let mut bytes = Vec::new();
        for change in changes {
            change.put(&mut bytes);
        }
        Redo::new(bytes)
    }

    /// Decodes the result of [`CatalogChange::encode`].
    pub fn decode(redo: &Redo) -> Result<Vec<CatalogChange>, Undecodable> {
        let mut r = Reader::new(&redo.bytes);
        let mut changes = Vec::new();
        while !r.is_empty() {
            changes.push(CatalogChange::read(&mut r)?);
        }
        Ok(changes)
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            CatalogChange::PutSchema(schema) => {
                out.put_u8(1);
                put_schema(out, schema);
            }
            CatalogChange::DropSchema(name) => {
                out.put_u8(2);
                put_string(out, name);
            }
            CatalogChange::PutTable(table) => {
                out.put_u8(3);
                put_table(out, table);
            }
            CatalogChange::DropTable(id) => {
                out.put_u8(4);
                out.put_u64(id.0);
            }
            CatalogChange::PutView(view) => {
                out.put_u8(20);
                put_view(out, view);
            }
            CatalogChange::DropView(name) => {
                out.put_u8(21);
                put_string(out, &name.schema);
                put_string(out, &name.table);
            }
            CatalogChange::PutRoutine(routine) => {
                out.put_u8(22);
                put_routine(out, routine);
            }
            CatalogChange::DropRoutine { kind, schema, name } => {
                out.put_u8(23);
                put_kind(out, *kind);
                put_string(out, schema);
                put_string(out, name);
            }
            CatalogChange::PutEvent(event) => {
                out.put_u8(24);
                put_event(out, event);
            }
            CatalogChange::DropEvent { schema, name } => {
                out.put_u8(25);
                put_string(out, schema);
                put_string(out, name);
            }
            CatalogChange::PutAccount(account) => {
                let routines = &account.grants.routines;
                out.put_u8(if routines.is_empty() { 10 } else { 26 });
                put_account(out, account);
                if !routines.is_empty() {
                    put_routine_grants(out, routines);
                }
            }
            CatalogChange::DropAccount((user, host)) => {
                out.put_u8(6);
                put_string(out, user);
                put_string(out, host);
            }
            CatalogChange::NextIds { table, index } => {
                out.put_u8(7);
                out.put_u64(table.0);
                out.put_u32(index.0);
            }
        }
    }

    fn read(r: &mut Reader<'_>) -> Result<CatalogChange, Undecodable> {
        Ok(match r.u8()? {
            1 => CatalogChange::PutSchema(read_schema(r)?),
            2 => CatalogChange::DropSchema(read_string(r)?),
            3 => CatalogChange::PutTable(read_table(r)?),
            4 => CatalogChange::DropTable(TableId(r.u64()?)),
            6 => CatalogChange::DropAccount((read_string(r)?, read_string(r)?)),
            7 => CatalogChange::NextIds { table: TableId(r.u64()?), index: IndexId(r.u32()?) },
            10 => CatalogChange::PutAccount(read_account(r)?),
            20 => CatalogChange::PutView(read_view(r)?),
            21 => CatalogChange::DropView(TableName { schema: read_string(r)?, table: read_string(r)? }),
            22 => CatalogChange::PutRoutine(read_routine(r)?),
            23 => CatalogChange::DropRoutine {
                kind: read_number(r, RoutineKind::ALL)?,
                schema: read_string(r)?,
                name: read_string(r)?,
            },
            24 => CatalogChange::PutEvent(read_event(r)?),
            25 => CatalogChange::DropEvent { schema: read_string(r)?, name: read_string(r)? },
            26 => {
                let mut account = read_account(r)?;
                account.grants.routines = read_routine_grants(r)?;
                CatalogChange::PutAccount(account)
            }
            5 | 8 | 9 => return Err(Undecodable::Outdated),
            _ => return Err(Undecodable::Truncated),
        })
    }
}

fn routines_mut(schema: &mut Schema, kind: RoutineKind) -> &mut BTreeMap<ProgramKey, Arc<Routine>> {
    match kind {
        RoutineKind::Procedure => &mut schema.procedures,
        RoutineKind::Function => &mut schema.functions,
    }
}

impl Catalog {
    /// Returns the catalog as a list of changes to an empty one.
    pub fn to_changes(&self) -> Vec<CatalogChange> {
        let mut changes = Vec::new();
        for schema in self.schemas.values() {
            let empty = Schema::new(&schema.name, schema.collation, &schema.comment);
            changes.push(CatalogChange::PutSchema(empty));
            changes.extend(schema.tables.values().map(|table| CatalogChange::PutTable(Table::clone(table))));
            changes.extend(schema.views.values().map(|view| CatalogChange::PutView(View::clone(view))));
            let routines = schema.procedures.values().chain(schema.functions.values());
            changes.extend(routines.map(|routine| CatalogChange::PutRoutine(Routine::clone(routine))));
            changes.extend(schema.events.values().map(|event| CatalogChange::PutEvent(Event::clone(event))));
        }
        changes
            .extend(self.accounts.values().map(|account| CatalogChange::PutAccount(Account::clone(account))));
        changes.push(CatalogChange::NextIds { table: self.next_table, index: self.next_index });
        changes
    }

    /// Applies the changes of transaction `seq` and increments the version.
    pub fn apply(&mut self, seq: CommitSeq, changes: Vec<CatalogChange>) {
        self.version += 1;
        let mut touched = BTreeSet::new();
        for change in changes {
            self.apply_one(seq, change, &mut touched);
        }
        link(self, touched);
    }

    fn apply_one(&mut self, seq: CommitSeq, change: CatalogChange, touched: &mut BTreeSet<TableName>) {
        match change {
            CatalogChange::PutSchema(schema) => {
                let schema = match self.schemas.get(&schema.name) {
                    Some(old) => old.with_attributes(&schema),
                    None => schema,
                };
                self.schemas.insert(schema.name.clone(), Arc::new(schema));
            }
            CatalogChange::DropSchema(name) => {
                let gone = self.schemas.remove(&name);
                let tables = gone.iter().flat_map(|schema| schema.tables.values());
                tables.for_each(|table| note_links(table, touched));
            }
            CatalogChange::PutTable(mut table) => {
                let before = self.remove_table(table.id);
                before.iter().for_each(|before| note_links(before, touched));
                note_links(&table, touched);
                for index in &mut table.indexes {
                    let same = |table: &Arc<Table>| table.indexes.iter().find(|i| i.id == index.id).cloned();
                    index.since = before.as_ref().and_then(same).map_or(seq, |same| same.since);
                }
                let schema =
                    self.schemas.get_mut(&table.name.schema).expect("a table's schema was made before it");
                Arc::make_mut(schema).tables.insert(table.name.table.clone(), Arc::new(table));
            }
            CatalogChange::DropTable(id) => {
                let gone = self.remove_table(id);
                gone.iter().for_each(|table| note_links(table, touched));
            }
            CatalogChange::PutView(view) => {
                let schema =
                    self.schemas.get_mut(&view.name.schema).expect("a view's schema was made before it");
                Arc::make_mut(schema).views.insert(view.name.table.clone(), Arc::new(view));
            }
            CatalogChange::DropView(name) => {
                if let Some(schema) = self.schemas.get_mut(&name.schema) {
                    Arc::make_mut(schema).views.remove(&name.table);
                }
            }
            CatalogChange::PutRoutine(routine) => {
                let schema =
                    self.schemas.get_mut(&routine.schema).expect("a routine's schema was made before it");
                routines_mut(Arc::make_mut(schema), routine.kind).insert(routine.key(), Arc::new(routine));
            }
            CatalogChange::DropRoutine { kind, schema, name } => {
                if let Some(schema) = self.schemas.get_mut(&schema) {
                    routines_mut(Arc::make_mut(schema), kind).remove(&ProgramKey::new(&name));
                }
            }
            CatalogChange::PutEvent(event) => {
                let schema =
                    self.schemas.get_mut(&event.schema).expect("an event's schema was made before it");
                Arc::make_mut(schema).events.insert(event.key(), Arc::new(event));
            }
            CatalogChange::DropEvent { schema, name } => {
                if let Some(schema) = self.schemas.get_mut(&schema) {
                    Arc::make_mut(schema).events.remove(&ProgramKey::new(&name));
                }
            }
            CatalogChange::PutAccount(account) => {
                self.accounts.insert(account.name.clone(), Arc::new(account));
            }
            CatalogChange::DropAccount(name) => drop(self.accounts.remove(&name)),
            CatalogChange::NextIds { table, index } => {
                self.next_table = self.next_table.max(table);
                self.next_index = self.next_index.max(index);
            }
        }
    }

    fn remove_table(&mut self, id: TableId) -> Option<Arc<Table>> {
        let mut schemas = self.schemas.values_mut();
        schemas.find_map(|schema| {
            let table = schema.tables.values().find(|table| table.id == id)?.clone();
            Arc::make_mut(schema).tables.remove(&table.name.table);
            Some(table)
        })
    }
}
