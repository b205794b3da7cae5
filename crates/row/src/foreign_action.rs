//! Foreign key actions: RESTRICT, CASCADE and SET NULL for the children of a changed parent row.
//!
//! Children are looked up key by key, in the order of the key names; each lookup sees the changes made for
//! the keys before. If no key changes children, they are looked up before the parent is written. Otherwise
//! the parent is written first. A deleted row is never found again by a cycle, so chains of deletes end. A
//! chain of updates that reaches a table it already updates is refused.
//!
//! InnoDB changes a row index by index, and performs an action when it reaches the referenced index. The
//! entries of later indexes still refuse the change. So a row that refers to itself refuses its own deletion.
//! [`Link::refuses`] reproduces these entries.

use cohort_base::TableId;
use cohort_catalog::{ForeignAction, ROWS};
use cohort_optimize::{Columns, ReadMode};
use cohort_table::{OpenTable, counterpart, named_constraint};
use cohort_trx::{SessionTrx, WaitPolicy};
use cohort_types::{NoWarnings, SqlError, SqlMode, SqlResult, StoreContext, Value, check_stack};

use crate::cursor::{CursorOptions, RowChanges, TableCursor};
use crate::foreign::{ChildKey, Foreign};
use crate::foreign_check::NewRow;
use crate::write::{Buffers, TableWriter, Written};

/// Exclusive limit on the links of a chain, not counting the statement's own row.
const LINKS_MAX: usize = 15;

/// One row change in a chain of actions.
#[derive(Clone, Copy)]
pub(super) struct Link<'c> {
    above: Option<&'c Link<'c>>,
    table: TableId,
    /// The row before the change.
    before: &'c [Value],
    /// The referenced index that is being processed.
    index: usize,
    is_update: bool,
    depth: usize,
}

impl Link<'_> {
    fn updates(&self, table: TableId) -> bool {
        (self.is_update && self.table == table) || self.above.is_some_and(|above| above.updates(table))
    }

    /// Returns true if a row of the chain still refers by this key, through an index that its change has not
    /// reached. Actions that change children skip a row that is being deleted.
    fn refuses(&self, child: &ChildKey, key: &[u8], restricts: bool) -> SqlResult<bool> {
        let place = &child.place;
        if (restricts || self.is_update)
            && self.table == child.child.id
            && self.index < place.index
            && place.key_of(&place.columns, self.before)?.as_deref() == Some(key)
        {
            return Ok(true);
        }
        self.above.map_or(Ok(false), |above| above.refuses(child, key, restricts))
    }
}

/// The reason for a refused change.
pub(super) enum Refused {
    Error(SqlError),
    /// A changed child row would get the key of another row.
    Duplicate {
        table: String,
        key: String,
    },
}

impl From<SqlError> for Refused {
    fn from(error: SqlError) -> Refused {
        Refused::Error(error)
    }
}

/// A row with its change.
#[derive(Clone, Copy)]
pub(super) struct ChangedRow<'r> {
    pub(super) key: &'r [u8],
    pub(super) before: &'r [Value],
    /// `None` if the row is deleted.
    pub(super) after: Option<&'r [Value]>,
    /// The foreign key through which the row follows its parent.
    pub(super) follows: Option<usize>,
}

impl Refused {
    /// Converts to the client's error. Error 1761 names the statement's own row.
    pub(super) fn error(self, table: &OpenTable, row: ChangedRow<'_>, trx: &SessionTrx) -> SqlError {
        let (child, key) = match self {
            Refused::Error(error) => return error,
            Refused::Duplicate { table, key } => (table, key),
        };
        let first = table.indexes.iter().position(|index| index.kind.is_declared());
        let shown = row.after.unwrap_or(row.before);
        let record = first.map_or_else(String::new, |n| table.key_text(n, shown, &trx.settings.time_zone));
        SqlError::foreign_key_would_duplicate(&table.table().name.table, &record, &child, &key)
    }
}

/// Returns the diagnostic that accompanies error 1296.
pub fn chain_too_long() -> SqlError {
    SqlError::foreign_keys_too_deep(LINKS_MAX)
}

impl Foreign {
    /// Updates or deletes a row, and applies the actions to its children. A refused change at the top of a
    /// chain leaves no trace.
    pub(super) fn change(
        &mut self,
        trx: &mut SessionTrx,
        table: &std::sync::Arc<OpenTable>,
        buffers: &mut Buffers,
        row: ChangedRow<'_>,
        above: Option<&Link<'_>>,
    ) -> Result<Written, Refused> {
        if let Some(after) = row.after {
            if let Some(duplicate) = buffers.claim_update(table, trx, row.key, row.before, after)? {
                return Ok(Err(duplicate));
            }
            let new = NewRow { before: Some((row.before, row.key)), after, follows: row.follows };
            self.check(trx, table, new, None)?;
        }
        let concerned: Vec<usize> =
            (0..self.children.len()).filter(|n| self.children[*n].concerns(&row)).collect();
        let is_update = row.after.is_some();
        let follows = |n: &usize| {
            let child = &self.children[*n];
            child.is_self || child.action(is_update).changes_child()
        };
        if !concerned.iter().any(follows) {
            self.act(trx, &concerned, row, above)?;
            buffers.write(table, trx, row)?;
            return Ok(Ok(()));
        }
        let depth = above.map_or(0, |above| above.depth + 1);
        let link = Link { above, table: table.table().id, before: row.before, index: ROWS, is_update, depth };
        let mark = above.is_none().then(|| trx.row_mark());
        let outcome = match buffers.write_unlogged(table, trx, row) {
            Ok(()) => self.act(trx, &concerned, row, Some(&link)),
            Err(error) => Err(error.into()),
        };
        if let Some(mark) = mark {
            trx.end_row(mark, outcome.is_err());
        }
        outcome?;
        buffers.log_change(table, trx, row)?;
        Ok(Ok(()))
    }

    fn act(
        &mut self,
        trx: &mut SessionTrx,
        concerned: &[usize],
        row: ChangedRow<'_>,
        link: Option<&Link<'_>>,
    ) -> Result<(), Refused> {
        if concerned.is_empty() {
            return Ok(());
        }
        self.swap_counts(trx);
        let outcome = concerned.iter().try_for_each(|n| {
            let child = &mut self.children[*n];
            // The row's own link has reached this index.
            let own = link.filter(|link| std::ptr::eq(link.before, row.before));
            let own = own.map(|link| Link { index: child.index, ..*link });
            child.act(trx, row, own.as_ref().or(link))
        });
        self.swap_counts(trx);
        outcome
    }
}

impl ChildKey {
    /// Returns true if rows may refer to the changed part of the row.
    fn concerns(&self, row: &ChangedRow<'_>) -> bool {
        let is_changed = |after: &[Value]| self.columns.iter().any(|c| row.before[*c] != after[*c]);
        self.columns.iter().all(|c| !row.before[*c].is_null()) && row.after.is_none_or(is_changed)
    }

    /// Finds the children and applies the action. `link`: the change of the parent row, or, before that is
    /// written, of the row above it in the chain.
    fn act(
        &mut self,
        trx: &mut SessionTrx,
        row: ChangedRow<'_>,
        link: Option<&Link<'_>>,
    ) -> Result<(), Refused> {
        let action = self.action(row.after.is_some());
        let Some(key) = self.place.key_of(&self.columns, row.before)? else { return Ok(()) };
        let restricts = !action.changes_child();
        if let Some(link) = link
            && link.refuses(self, &key, restricts)?
        {
            return Err(self.refused().into());
        }
        let mode = match restricts {
            true => ReadMode::LockShare(WaitPolicy::Wait),
            false => ReadMode::LockExclusive(WaitPolicy::Wait),
        };
        let options = CursorOptions {
            mode,
            columns: Columns::All,
            rows_expected: restricts.then_some(1),
            changes: RowChanges::Any,
        };
        let is_led = self.place.is_led();
        let spans = self.place.spans(key.clone());
        let cursor = match self.place.cursor.take() {
            // One statement may both refuse and change by the same key: ON DUPLICATE KEY UPDATE, REPLACE.
            Some(mut cursor) if cursor.mode() == mode => {
                cursor.reopen(spans);
                cursor
            }
            _ => TableCursor::open_newest(trx, &self.place.open, spans, options)?.lock_ranges(),
        };
        let mut cursor = cursor;
        let mut found = Vec::new();
        loop {
            let place = &self.place;
            let mut matches =
                |child: &[Value]| Ok(is_led || place.key_of(&place.columns, child)?.as_ref() == Some(&key));
            if !cursor.next(trx, &mut matches, &mut found)? {
                break;
            }
            match link {
                Some(link) if !restricts => self.follow(trx, cursor.key(), &found, row, (action, link))?,
                _ => return Err(self.refused().into()),
            }
        }
        self.place.cursor = Some(cursor);
        Ok(())
    }

    /// Applies the action to one child row.
    fn follow(
        &mut self,
        trx: &mut SessionTrx,
        key: &[u8],
        child: &[Value],
        parent: ChangedRow<'_>,
        (action, link): (ForeignAction, &Link<'_>),
    ) -> Result<(), Refused> {
        check_stack()?;
        trx.check_killed()?;
        let goes = action == ForeignAction::Cascade && parent.after.is_none();
        if !goes && link.updates(self.child.id) {
            return Err(self.refused().into());
        }
        if link.depth + 1 >= LINKS_MAX {
            return Err(self.too_deep().into());
        }
        let after = match goes {
            true => None,
            false => Some(self.following(child, parent, action)?),
        };
        if after.as_deref() == Some(child) {
            return Ok(());
        }
        let follows = Some(self.key);
        let row = ChangedRow { key, before: child, after: after.as_deref(), follows };
        if self.writer.is_none() {
            self.writer = Some(Box::new(TableWriter::following(trx, &self.child)?));
        }
        let writer = self.writer.as_mut().expect("made above");
        match writer.change(trx, row, Some(link))? {
            Ok(()) => Ok(()),
            Err(duplicate) => Err(Refused::Duplicate {
                table: self.child.name.table.clone(),
                key: self.child.indexes[duplicate.index].name.clone(),
            }),
        }
    }

    /// Returns the child row with the parent's new key, or with NULL. Returns error 1451 if it cannot take
    /// that key.
    fn following(
        &self,
        child: &[Value],
        parent: ChangedRow<'_>,
        action: ForeignAction,
    ) -> SqlResult<Vec<Value>> {
        let mut after = child.to_vec();
        for (here, there) in self.foreign_key().columns.iter().zip(&self.columns) {
            let value = match (action, parent.after) {
                (ForeignAction::Cascade, Some(parent)) => parent[*there].clone(),
                _ => Value::Null,
            };
            let column = &self.child.columns[*here];
            after[*here] = match &value {
                Value::Null if !column.nullable => return Err(self.refused()),
                Value::Str(_) => {
                    let store = StoreContext {
                        sql_mode: SqlMode::NONE,
                        strict: true,
                        database: &self.child.name.schema,
                        table: &self.child.name.table,
                        column: &column.name,
                        row: 1,
                        zone: &cohort_expr::TimeZone::Offset(0),
                        now_micros: 0,
                    };
                    let stored = column.ty.store(value, &store, &mut NoWarnings);
                    stored.map_err(|_| self.refused())?
                }
                _ => counterpart(&value, &column.ty).ok_or_else(|| self.refused())?,
            };
        }
        Ok(after)
    }

    /// Returns error 1451.
    fn refused(&self) -> SqlError {
        let constraint = named_constraint(&self.child, self.foreign_key());
        SqlError::parent_row_referenced_by(&constraint)
    }

    /// Returns error 1296.
    fn too_deep(&self) -> SqlError {
        let constraint = named_constraint(&self.child, self.foreign_key());
        SqlError::innodb_constraint_error(&constraint)
    }
}
