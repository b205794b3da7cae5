//! Foreign keys.
//!
//! The table that has the columns, the *child*, owns the constraint: it is a part of its description, names
//! the *parent* and the parent's columns, and may name a table that is not there (`foreign_key_checks=0`). A
//! table also knows which tables refer to it. That is not stored: [`link`] derives it whenever the catalog
//! changes, so it is the same after a crash, and right whatever order tables come and go in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohort_base::{Reader, Truncated, Write};

use crate::codec::{put_list, put_string, read_list, read_string};
use crate::model::{Catalog, Table, TableName};

/// A constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// One per schema.
    pub name: String,
    /// Ordinals in the child.
    pub columns: Vec<usize>,
    pub parent: TableName,
    /// Their names in the parent, which may have changed or not be there.
    pub parent_columns: Vec<String>,
    pub on_delete: ForeignAction,
    pub on_update: ForeignAction,
}

/// What happens to a child's row whose parent's row goes or gets another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignAction {
    Restrict,
    /// The same as RESTRICT.
    NoAction,
    Cascade,
    SetNull,
}

const ACTIONS: [ForeignAction; 4] =
    [ForeignAction::Restrict, ForeignAction::NoAction, ForeignAction::Cascade, ForeignAction::SetNull];

impl ForeignAction {
    /// Whether it changes the child rather than refusing the parent's change.
    pub fn changes_child(self) -> bool {
        matches!(self, ForeignAction::Cascade | ForeignAction::SetNull)
    }

    /// As it is written.
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
    /// The tables that refer to this one, as the catalog has them: this description may be older.
    pub fn children<'a>(&'a self, catalog: &'a Catalog) -> &'a [TableName] {
        let newest = catalog.table(&self.name.schema, &self.name.table);
        newest.map_or(&self.referenced_by, |table| &table.referenced_by)
    }

    /// The foreign keys that refer to this table, in the order of their schemas and names: each with the
    /// child's description.
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

/// Adds the tables whose links a change of this description may change: itself and its parents.
pub(crate) fn note_links(table: &Table, touched: &mut BTreeSet<TableName>) {
    touched.insert(table.name.clone());
    touched.extend(table.foreign_keys.iter().map(|key| key.parent.clone()));
}

/// Derives anew which tables refer to those of these names.
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
