//! [`Foreign`]: what the foreign keys of a table ask of each change of its rows.
//!
//! # Concepts
//! - The *child* has the constraint and its columns, the *parent* is referred to
//!   ([`cohort_catalog::ForeignKey`]).
//! - A *check* finds the parent's row of a child's row that is new or has a new key (`foreign_check`).
//! - An *action* finds the child's rows of a parent's row that goes or gets another key, and refuses the
//!   change or follows it (`foreign_action`). Rows that follow may be parents in turn: a *chain*, of fewer
//!   than 15 links.
//!
//! A table that neither has foreign keys nor is referred to has no `Foreign`: its rows pay one look at an
//! option. Nor has any table while `foreign_key_checks` is off.
//!
//! # Steps of one row's change
//! ```text
//! insert   for each index: check, claim its key -> write
//! update   claim keys -> check -> refuse, if all children refuse -> write -> actions
//! delete                          refuse, if all children refuse -> write -> actions
//! ```
//! All of this lies below row events: a replica performs actions itself, as MariaDB's do. So rows that an
//! action changes are not in the binary log, fire no CURRENT_TIMESTAMP, and count as nobody's affected rows.
//!
//! # Locks
//! Checks and actions read the newest rows, whatever the isolation level. A check holds the parent's row
//! shared; a writer that deletes that row, or gives it another key, holds it exclusively before it looks for
//! children.
//! So of a child that comes and a parent that goes at the same time the later one waits, and sees what the
//! earlier one did. A refusing action holds the child's row that it found shared, a following one
//! exclusively.
//!
//! Names: all tables that a statement may come to by its keys, their schemas, are locked when the
//! writer is opened, behind those that the statement names: parents and refusing children `SharedRead`,
//! children that follow `SharedWrite`. Names that are locked in another order elsewhere end as a deadlock
//! (1213). LOCK TABLES need not name them.
//!
//! # On failure
//! A refused change leaves nothing of its row: the keys it has claimed stay locked, as for duplicates. What
//! actions had changed by then is undone with the row (`SessionTrx::end_row`), of which the binary log is
//! told last. A crash knows whole transactions only.

use std::collections::BTreeSet;
use std::sync::Arc;

use cohort_binlog::event::rows_flags;
use cohort_catalog::{ForeignAction, ForeignKey, Table, TableName};
use cohort_engine::KeyRange;
use cohort_locks::{MetadataMode, NameKey};
use cohort_table::{OpenTable, fit, is_led, leading_index};
use cohort_trx::{SessionCounts, SessionTrx};
use cohort_types::{SqlResult, Value, prefix_end};

use crate::access::{KeySpan, KeySpans};
use crate::cursor::TableCursor;
use crate::write::TableWriter;

/// What a table's foreign keys ask; of one writer.
pub(super) struct Foreign {
    /// Keys of this table, in the order of the indexes and of their names.
    pub(super) parents: Vec<ParentKey>,
    /// Keys that refer to this table, in the order of the indexes and of their names.
    pub(super) children: Vec<ChildKey>,
    /// Takes the counts of look-ups that no client asked for.
    quiet: Arc<SessionCounts>,
}

/// A key of the table itself.
pub(super) struct ParentKey {
    /// Its place among the table's keys.
    pub(super) key: usize,
    pub(super) columns: Vec<usize>,
    /// The index that begins with them: the key is checked with it.
    pub(super) index: usize,
    pub(super) is_self: bool,
    /// None: the parent is not there, or no longer fits. No row passes.
    pub(super) parent: Option<Place>,
}

/// A key that refers to the table.
pub(super) struct ChildKey {
    pub(super) child: Arc<Table>,
    /// Its place among the child's keys.
    pub(super) key: usize,
    /// The referenced columns here, and the index that begins with them.
    pub(super) columns: Vec<usize>,
    pub(super) index: usize,
    pub(super) is_self: bool,
    pub(super) place: Place,
    /// Opened when the first row is followed.
    pub(super) writer: Option<Box<TableWriter>>,
}

/// Where the rows of the other table are looked up: the first columns of an index.
pub(super) struct Place {
    pub(super) open: Arc<OpenTable>,
    pub(super) index: usize,
    /// The columns of the other table.
    pub(super) columns: Vec<usize>,
    pub(super) cursor: Option<TableCursor>,
}

impl ChildKey {
    pub(super) fn foreign_key(&self) -> &ForeignKey {
        &self.child.foreign_keys[self.key]
    }

    /// What it does about a change of the parent's row.
    pub(super) fn action(&self, is_update: bool) -> ForeignAction {
        let key = self.foreign_key();
        if is_update { key.on_update } else { key.on_delete }
    }
}

impl Foreign {
    /// None when nothing is asked.
    pub(super) fn open(trx: &mut SessionTrx, table: &Arc<OpenTable>) -> SqlResult<Option<Box<Foreign>>> {
        let described = table.table();
        if described.foreign_keys.is_empty() && described.referenced_by.is_empty() {
            return Ok(None);
        }
        if trx.settings.binlog.rows_flags & rows_flags::NO_FOREIGN_KEY_CHECKS != 0 {
            return Ok(None);
        }
        let described = &lock_names(trx, described)?;
        let catalog = trx.env().catalog();
        let mut parents = Vec::new();
        for (n, key) in described.foreign_keys.iter().enumerate() {
            let is_self = key.parent == described.name;
            let found = match is_self {
                true => Some(described),
                false => catalog.table(&key.parent.schema, &key.parent.table),
            };
            let fitted = found.and_then(|parent| Some((parent, fit(described, key, parent).ok()?)));
            let parent = match fitted {
                None => None,
                Some((_, (columns, index))) if is_self => {
                    Some(Place { open: Arc::clone(table), index, columns, cursor: None })
                }
                Some((parent, (columns, index))) => {
                    Some(Place { open: trx.open_table(parent)?, index, columns, cursor: None })
                }
            };
            let index = leading_index(described, &key.columns).unwrap_or(0);
            parents.push(ParentKey { key: n, columns: key.columns.clone(), index, is_self, parent });
        }
        parents.sort_by_key(|key: &ParentKey| (key.index, key.key));
        let mut children = Vec::new();
        for (child, n) in described.references_from(&catalog) {
            let is_self = child.name == described.name;
            let child = if is_self { Arc::clone(described) } else { child };
            // What was changed while keys were not checked may not fit any more: then nobody is referred to.
            let Some(key) = child.foreign_keys.get(n) else { continue };
            let Ok((columns, referred)) = fit(&child, key, described) else { continue };
            // Without the index, dropped while keys were not checked, all rows are looked at.
            let index = leading_index(&child, &key.columns).unwrap_or(0);
            let open = if is_self { Arc::clone(table) } else { trx.open_table(&child)? };
            let place = Place { open, index, columns: key.columns.clone(), cursor: None };
            children.push(ChildKey { child, key: n, columns, index: referred, is_self, place, writer: None });
        }
        children.sort_by_key(|key: &ChildKey| key.index);
        Ok(Some(Box::new(Foreign { parents, children, quiet: Arc::default() })))
    }

    /// Exchanges the counters of the client's statement for those that nobody reads, and back.
    pub(super) fn swap_counts(&mut self, trx: &mut SessionTrx) {
        trx.swap_counts(&mut self.quiet);
    }
}

/// Locks the names of all tables that a change of this table's rows may come to, and answers how the table is
/// described then: while a name was waited for, its table may have got another one. So names are locked until
/// nothing was described anew meanwhile.
fn lock_names(trx: &mut SessionTrx, table: &Arc<Table>) -> SqlResult<Arc<Table>> {
    loop {
        let catalog = trx.env().catalog();
        let now = catalog.table(&table.name.schema, &table.name.table).filter(|now| now.id == table.id);
        let now = now.unwrap_or(table);
        lock_names_of(trx, now)?;
        if Arc::ptr_eq(&catalog, &trx.env().catalog()) {
            return Ok(Arc::clone(now));
        }
    }
}

fn lock_names_of(trx: &mut SessionTrx, table: &Arc<Table>) -> SqlResult<()> {
    let mut changed = BTreeSet::from([table.name.clone()]);
    let mut next = vec![Arc::clone(table)];
    while let Some(table) = next.pop() {
        for key in table.foreign_keys.iter().filter(|key| !changed.contains(&key.parent)) {
            lock_name(trx, &key.parent, MetadataMode::SharedRead)?;
        }
        for child in &table.referenced_by {
            if changed.contains(child) {
                continue;
            }
            lock_name(trx, child, MetadataMode::SharedRead)?;
            let Some(described) = trx.env().catalog().table(&child.schema, &child.table).cloned() else {
                continue;
            };
            let follows = |key: &ForeignKey| {
                key.parent == table.name && (key.on_delete.changes_child() || key.on_update.changes_child())
            };
            if described.foreign_keys.iter().any(follows) {
                lock_name(trx, child, MetadataMode::SharedWrite)?;
                changed.insert(child.clone());
                next.push(described);
            }
        }
    }
    Ok(())
}

fn lock_name(trx: &mut SessionTrx, name: &TableName, mode: MetadataMode) -> SqlResult<()> {
    let schema: Arc<str> = name.schema.as_str().into();
    trx.lock_related(&NameKey::Schema(schema.clone()), MetadataMode::SharedRead)?;
    trx.lock_related(&NameKey::Table(schema, name.table.as_str().into()), mode)
}

impl Place {
    /// The other table's key of these columns of a row; None if one of them is NULL.
    pub(super) fn key_of(&self, columns: &[usize], row: &[Value]) -> SqlResult<Option<Vec<u8>>> {
        if columns.iter().any(|column| row[*column].is_null()) {
            return Ok(None);
        }
        let mut key = Vec::with_capacity(16);
        for (place, column) in columns.iter().enumerate() {
            let at = self.columns[place];
            let part = self.open.key_part(self.index, place, at);
            part.encode(&row[*column], &mut key).map_err(|e| self.open.key_error(self.index, e))?;
        }
        Ok(Some(key))
    }

    /// Whether the columns are all of an index without duplicates.
    pub(super) fn is_unique(&self) -> bool {
        let index = &self.open.indexes[self.index];
        let is_unique =
            matches!(index.kind, cohort_catalog::IndexKind::Primary | cohort_catalog::IndexKind::Unique);
        is_unique && index.parts.len() == self.columns.len()
    }

    /// Where the rows with this key lie.
    pub(super) fn spans(&self, key: Vec<u8>) -> KeySpans {
        let span = match () {
            () if !self.is_led() => KeySpan::Range(KeyRange::default()),
            () if self.is_unique() => KeySpan::Point(key),
            () => KeySpan::Range(KeyRange { end: prefix_end(&key), start: Some(key) }),
        };
        KeySpans { index: self.index, reverse: false, spans: vec![span] }
    }

    /// Whether the index begins with the columns.
    pub(super) fn is_led(&self) -> bool {
        is_led(self.open.table(), self.index, &self.columns)
    }
}
