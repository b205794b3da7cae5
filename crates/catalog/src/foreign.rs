//! Foreign keys.
//!
//! The table with the referencing columns, the *child*, owns the constraint. Its description names the
//! *parent* and the parent's columns, and may name a table that does not exist (`foreign_key_checks=0`). Each
//! table also lists the tables that refer to it. This list is not stored: [`link`] derives it whenever the
//! catalog changes, so it is the same after a crash, and correct whatever the order in which tables are
//! created and dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohort_base::{Reader, Truncated, Write};

use crate::codec::{put_list, put_string, read_list, read_string};
use crate::model::{Catalog, Table, TableName};

/// A foreign key constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// Unique within the schema.
    pub name: String,
    /// Ordinals of the child's columns.
    pub columns: Vec<usize>,
    pub parent: TableName,
    /// Names of the parent's columns, which may not exist.
    pub parent_columns: Vec<String>,
    pub on_delete: ForeignAction,
    pub on_update: ForeignAction,
}

/// Effect on a child row when its parent row is deleted or its key changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignAction {
    Restrict,
    /// Behaves like RESTRICT.
    NoAction,
    Cascade,
    SetNull,
}

const ACTIONS: [ForeignAction; 4] =
    [ForeignAction::Restrict, ForeignAction::NoAction, ForeignAction::Cascade, ForeignAction::SetNull];

impl ForeignAction {
    /// Returns whether the action changes the child instead of refusing the parent's change.
    pub fn changes_child(self) -> bool {
        matches!(self, ForeignAction::Cascade | ForeignAction::SetNull)
    }

    /// Returns the SQL text.
    pub fn text(self) -> &'static str {
        match self {
            ForeignAction::Restrict => "RESTRICT",
            ForeignAction::NoAction => "NO ACTION",
            ForeignAction::Cascade => "CASCADE",
            ForeignAction::SetNull => "SET NULL",
        }
    }

    fn number(self) -> u8 {
        ACTIONS.iter().position(|action| *action == self).expect("every action has a number") as u8
    }

    fn read(r: &mut Reader<'_>) -> Result<ForeignAction, Truncated> {
        ACTIONS.get(usize::from(r.u8()?)).copied().ok_or(Truncated)
    }
}

impl Table {
    /// Returns the tables that refer to this one according to `catalog`, which may be newer than this
    /// description.
    pub fn children<'a>(&'a self, catalog: &'a Catalog) -> &'a [TableName] {
        let newest = catalog.table(&self.name.schema, &self.name.table);
        newest.map_or(&self.referenced_by, |table| &table.referenced_by)
    }

    /// Returns the foreign keys that refer to this table, sorted by schema and name. Each is the child's
    /// description and an index into its foreign keys.
    pub fn references_from(&self, catalog: &Catalog) -> Vec<(Arc<Table>, usize)> {
        let mut found = Vec::new();
        for name in self.children(catalog) {
            let Some(child) = catalog.table(&name.schema, &name.table) else { continue };
            let keys = child.foreign_keys.iter().enumerate().filter(|(_, key)| key.parent == self.name);
            found.extend(keys.map(|(n, _)| (Arc::clone(child), n)));
        }
        found.sort_by(|(a, m), (b, n)| {
            let (left, right) = (&a.foreign_keys[*m].name, &b.foreign_keys[*n].name);
            a.name.schema.cmp(&b.name.schema).then_with(|| left.cmp(right))
        });
        found
    }
}

pub(crate) fn put_foreign_key(out: &mut Vec<u8>, key: &ForeignKey) {
    put_string(out, &key.name);
    put_list(out, key.columns.iter(), |out, column| out.put_u32(*column as u32));
    put_string(out, &key.parent.schema);
    put_string(out, &key.parent.table);
    put_list(out, key.parent_columns.iter(), |out, column| put_string(out, column));
    out.put_u8(key.on_delete.number());
    out.put_u8(key.on_update.number());
}

pub(crate) fn read_foreign_key(r: &mut Reader<'_>) -> Result<ForeignKey, Truncated> {
    Ok(ForeignKey {
        name: read_string(r)?,
        columns: read_list(r, |r| Ok(r.u32()? as usize))?,
        parent: TableName { schema: read_string(r)?, table: read_string(r)? },
        parent_columns: read_list(r, read_string)?,
        on_delete: ForeignAction::read(r)?,
        on_update: ForeignAction::read(r)?,
    })
}

/// Adds the tables whose references may change with this description: the table and its parents.
pub(crate) fn note_links(table: &Table, touched: &mut BTreeSet<TableName>) {
    touched.insert(table.name.clone());
    touched.extend(table.foreign_keys.iter().map(|key| key.parent.clone()));
}

/// Recomputes the lists of referring tables for the tables of these names.
pub(crate) fn link(catalog: &mut Catalog, touched: BTreeSet<TableName>) {
    if touched.is_empty() {
        return;
    }
    let mut children: BTreeMap<&TableName, Vec<TableName>> = BTreeMap::new();
    for table in catalog.schemas.values().flat_map(|schema| schema.tables.values()) {
        for key in &table.foreign_keys {
            let Some(parent) = touched.get(&key.parent) else { continue };
            let of = children.entry(parent).or_default();
            if of.last() != Some(&table.name) {
                of.push(table.name.clone());
            }
        }
    }
    for name in &touched {
        let Some(schema) = catalog.schemas.get_mut(&name.schema) else { continue };
        let now = children.remove(name).unwrap_or_default();
        if schema.tables.get(&name.table).is_some_and(|table| table.referenced_by != now) {
            let table = Arc::make_mut(schema).tables.get_mut(&name.table).expect("found above");
            Arc::make_mut(table).referenced_by = now;
        }
    }
}
