//! [`Foreign`]: enforces the foreign keys of a table for each change of a row.
//!
//! # Concepts
//! - The *child* table has the constraint and its columns. The constraint refers to the *parent* table
//!   ([`cohort_catalog::ForeignKey`]).
//! - A *check* looks up the parent row of a child row that is new or has a new key (`foreign_check`).
//! - An *action* looks up the child rows of a parent row that is deleted or gets another key. It refuses the
//!   change or applies it to the children (`foreign_action`). Changed children may be parents in turn: a
//!   *chain*, of fewer than 15 links.
//!
//! A table that neither has foreign keys nor is referenced has no `Foreign`; its rows pay for one test of an
//! option. While `foreign_key_checks` is off, no table has one.
//!
//! # Steps of one row's change
//! ```text
//! insert   for each index: check, claim its key -> write
//! update   claim keys -> check -> refuse, if all children refuse -> write -> actions
//! delete                          refuse, if all children refuse -> write -> actions
//! ```
//! All of this happens below row events: a replica performs actions itself, like MariaDB's replicas. So rows
//! that an action changes are not in the binary log, do not trigger ON UPDATE CURRENT_TIMESTAMP, and do not
//! count as affected rows.
//!
//! # Locks
//! Checks and actions read the newest rows at every isolation level. A check holds the parent row shared. A
//! writer that deletes a parent row, or changes its key, locks the row exclusively before it looks up
//! children. So if a child insert races with a parent delete, the later one waits and sees the result of the
//! earlier one. An action that refuses holds the child row it found shared; an action that changes children
//! holds them exclusively.
//!
//! Metadata locks: opening the writer locks all tables that the statement may reach through foreign keys, and
//! their schemas, after the tables that the statement names. Parents and refusing children are locked
//! `SharedRead`, children that change `SharedWrite`. If another statement locks the same names in another
//! order, one of the two ends with a deadlock error (1213). LOCK TABLES need not name these tables.
//!
//! # On failure
//! A refused change leaves no trace of its row, except that claimed keys stay locked, as for duplicates.
//! Changes that actions have made by then are undone with the row (`SessionTrx::end_row`), which is why the
//! row is logged to the binary log last. Recovery restores whole transactions only.

use std::collections::BTreeSet;
use std::sync::Arc;

use cohort_binlog::event::rows_flags;
use cohort_catalog::{ForeignAction, ForeignKey, Table, TableName};
use cohort_engine::KeyRange;
use cohort_locks::{MetadataKey, MetadataMode};
use cohort_table::{OpenTable, counterpart, fit, is_led, leading_index};
use cohort_trx::{SessionCounts, SessionTrx};
use cohort_types::{SqlResult, Value, prefix_end};

use crate::access::{KeySpan, KeySpans};
use crate::cursor::TableCursor;
use crate::write::TableWriter;

/// Foreign key state of one writer.
pub(super) struct Foreign {
    /// Foreign keys of this table, ordered by index and name.
    pub(super) parents: Vec<ParentKey>,
    /// Foreign keys that refer to this table, ordered by index and name.
    pub(super) children: Vec<ChildKey>,
    /// Status counters for internal lookups, which the client's statement must not count.
    quiet: Arc<SessionCounts>,
}

/// A foreign key of the table itself (child side).
pub(super) struct ParentKey {
    /// Its position among the table's keys.
    pub(super) key: usize,
    pub(super) columns: Vec<usize>,
    /// The index whose leading columns are the key. The key is checked together with this index.
    pub(super) index: usize,
    pub(super) is_self: bool,
    /// `None` if the parent does not exist or no longer fits. Then every row fails the check.
    pub(super) parent: Option<Place>,
}

/// A foreign key that refers to the table (parent side).
pub(super) struct ChildKey {
    pub(super) child: Arc<Table>,
    /// Its position among the child's keys.
    pub(super) key: usize,
    /// The referenced columns of this table; `index` is the index that begins with them.
    pub(super) columns: Vec<usize>,
    pub(super) index: usize,
    pub(super) is_self: bool,
    pub(super) place: Place,
    /// Opened when the first child row changes.
    pub(super) writer: Option<Box<TableWriter>>,
}

/// Lookup path into the other table: the leading columns of an index.
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

    /// Returns the key's action for a change of the parent row.
    pub(super) fn action(&self, is_update: bool) -> ForeignAction {
        let key = self.foreign_key();
        if is_update { key.on_update } else { key.on_delete }
    }
}

impl Foreign {
    /// Returns `None` if no foreign key applies.
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
            // A change made while checks were off may not fit any more. Then the key refers to no table.
            let Some(key) = child.foreign_keys.get(n) else { continue };
            let Ok((columns, referred)) = fit(&child, key, described) else { continue };
            // Without the index (dropped while checks were off), all rows are scanned.
            let index = leading_index(&child, &key.columns).unwrap_or(0);
            let open = if is_self { Arc::clone(table) } else { trx.open_table(&child)? };
            let place = Place { open, index, columns: key.columns.clone(), cursor: None };
            children.push(ChildKey { child, key: n, columns, index: referred, is_self, place, writer: None });
        }
        children.sort_by_key(|key: &ChildKey| key.index);
        Ok(Some(Box::new(Foreign { parents, children, quiet: Arc::default() })))
    }

    /// Swaps the counters of the client's statement with the internal ones, and back.
    pub(super) fn swap_counts(&mut self, trx: &mut SessionTrx) {
        trx.swap_counts(&mut self.quiet);
    }
}

/// Locks the names of all tables that a row change may reach, and returns the current table description.
/// While the thread waits for a name, a table may be redefined. So names are locked until the catalog did not
/// change during a round.
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
            lock_metadata(trx, &key.parent, MetadataMode::SharedRead)?;
        }
        for child in &table.referenced_by {
            if changed.contains(child) {
                continue;
            }
            lock_metadata(trx, child, MetadataMode::SharedRead)?;
            let Some(described) = trx.env().catalog().table(&child.schema, &child.table).cloned() else {
                continue;
            };
            let follows = |key: &ForeignKey| {
                key.parent == table.name && (key.on_delete.changes_child() || key.on_update.changes_child())
            };
            if described.foreign_keys.iter().any(follows) {
                lock_metadata(trx, child, MetadataMode::SharedWrite)?;
                changed.insert(child.clone());
                next.push(described);
            }
        }
    }
    Ok(())
}

fn lock_metadata(trx: &mut SessionTrx, name: &TableName, mode: MetadataMode) -> SqlResult<()> {
    let schema: Arc<str> = name.schema.as_str().into();
    trx.lock_related(&MetadataKey::Schema(schema.clone()), MetadataMode::SharedRead)?;
    trx.lock_related(&MetadataKey::Table(schema, name.table.as_str().into()), mode)
}

impl Place {
    /// Returns the other table's key for these columns of a row, or `None` if one of them is NULL or has a
    /// value that the other table's column cannot have.
    pub(super) fn key_of(&self, columns: &[usize], row: &[Value]) -> SqlResult<Option<Vec<u8>>> {
        if columns.iter().any(|column| row[*column].is_null()) {
            return Ok(None);
        }
        let mut key = Vec::with_capacity(16);
        for (place, column) in columns.iter().enumerate() {
            let at = self.columns[place];
            let part = self.open.key_part(self.index, place, at);
            let Some(value) = counterpart(&row[*column], &part.ty) else { return Ok(None) };
            part.encode(&value, &mut key).map_err(|e| self.open.key_error(self.index, e))?;
        }
        Ok(Some(key))
    }

    /// Returns true if the columns are all columns of a unique index.
    pub(super) fn is_unique(&self) -> bool {
        let index = &self.open.indexes[self.index];
        index.kind.is_unique() && index.parts.len() == self.columns.len()
    }

    /// Returns the spans that hold the rows with this key.
    pub(super) fn spans(&self, key: Vec<u8>) -> KeySpans {
        let span = match () {
            () if !self.is_led() => KeySpan::Range(KeyRange::default()),
            () if self.is_unique() => KeySpan::Point(key),
            () => KeySpan::Range(KeyRange { end: prefix_end(&key), start: Some(key) }),
        };
        KeySpans { index: self.index, reverse: false, spans: vec![span] }
    }

    /// Returns true if the index begins with the columns.
    pub(super) fn is_led(&self) -> bool {
        is_led(self.open.table(), self.index, &self.columns)
    }
}
