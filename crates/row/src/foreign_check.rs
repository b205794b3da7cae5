//! The child side of a foreign key: checks that a row's parent exists.

use cohort_catalog::ROWS;
use cohort_engine::ReadAt;
use cohort_locks::RowMode;
use cohort_optimize::{Columns, ReadMode};
use cohort_table::{OpenTable, named_constraint};
use cohort_trx::{SessionTrx, WaitPolicy, engine_error};
use cohort_types::{SqlError, SqlResult, Value};

use crate::cursor::{CursorOptions, RowChanges, TableCursor, check_unchanged, every_row};
use crate::foreign::{Foreign, ParentKey, Place};

/// A row that is about to be written.
#[derive(Clone, Copy)]
pub(super) struct NewRow<'r> {
    /// The row before the change, and its clustered key.
    pub(super) before: Option<(&'r [Value], &'r [u8])>,
    pub(super) after: &'r [Value],
    /// The key through which the row follows its parent. It is not checked, because the parent change is
    /// incomplete.
    pub(super) follows: Option<usize>,
}

impl Foreign {
    /// Locks the parent of each key that is new to the row. Returns error 1452 if one is missing. With
    /// `index`, checks only the keys that belong to this index.
    pub(super) fn check(
        &mut self,
        trx: &mut SessionTrx,
        table: &OpenTable,
        row: NewRow<'_>,
        index: Option<usize>,
    ) -> SqlResult<()> {
        let concerns = |key: &ParentKey| index.is_none_or(|index| index == key.index);
        if !self.parents.iter().any(concerns) {
            return Ok(());
        }
        self.swap_counts(trx);
        let mut concerned = self.parents.iter_mut().filter(|key| concerns(key));
        let outcome = concerned.try_for_each(|key| key.check(trx, table, row));
        self.swap_counts(trx);
        outcome
    }
}

impl ParentKey {
    fn check(&mut self, trx: &mut SessionTrx, table: &OpenTable, row: NewRow<'_>) -> SqlResult<()> {
        let is_same = |before: &[Value]| self.columns.iter().all(|c| before[*c] == row.after[*c]);
        // A row whose clustered key changes gets new index entries, so each of its keys is checked again.
        let moves = |before: &[Value]| {
            !self.is_self && table.row_parts().iter().any(|(c, _)| before[*c] != row.after[*c])
        };
        let is_kept = |(before, _): (&[Value], &[u8])| is_same(before) && !moves(before);
        if row.follows == Some(self.key) || row.before.is_some_and(is_kept) {
            return Ok(());
        }
        if self.columns.iter().any(|column| row.after[*column].is_null()) {
            return Ok(());
        }
        let Some(parent) = &mut self.parent else { return Err(refused(table, self.key)) };
        let Some(key) = parent.key_of(&self.columns, row.after)? else {
            return Err(refused(table, self.key));
        };
        // The row may be its own parent, through indexes that are already written: with its new key or with
        // its old one.
        let is_written = self.is_self && parent.index < self.index;
        if is_written && parent.key_of(&parent.columns, row.after)?.as_ref() == Some(&key) {
            return Ok(());
        }
        let own = row.before.map(|(_, key)| key).filter(|_| is_written);
        match parent.find(trx, key, own)? {
            true => Ok(()),
            false => Err(refused(table, self.key)),
        }
    }
}

/// Returns error 1452.
fn refused(table: &OpenTable, key: usize) -> SqlError {
    let described = table.table();
    let constraint = named_constraint(described, &described.foreign_keys[key]);
    SqlError::no_parent_row(&constraint)
}

impl Place {
    /// Returns true if a row with this key exists, other than the row with clustered key `own`. Locks it
    /// shared.
    fn find(&mut self, trx: &mut SessionTrx, key: Vec<u8>, own: Option<&[u8]>) -> SqlResult<bool> {
        if self.index == ROWS && self.is_unique() {
            return match own == Some(&key) {
                true => Ok(false),
                false => self.find_clustered(trx, &key),
            };
        }
        let spans = self.spans(key);
        let mode = ReadMode::LockShare(WaitPolicy::Wait);
        let options =
            CursorOptions { mode, columns: Columns::All, rows_expected: Some(1), changes: RowChanges::Any };
        let mut cursor = match self.cursor.take() {
            Some(mut cursor) => {
                cursor.reopen(spans);
                cursor
            }
            None => {
                let cursor = TableCursor::open_newest(trx, &self.open, spans, options)?;
                // Waits for a row that another transaction has inserted but not committed, at every isolation
                // level.
                if self.is_unique() { cursor.lock_ranges() } else { cursor }
            }
        };
        let mut row = Vec::new();
        let found = loop {
            match cursor.next(trx, &mut every_row, &mut row)? {
                true if own == Some(cursor.key()) => {}
                found => break found,
            }
        };
        self.cursor = Some(cursor);
        Ok(found)
    }

    fn find_clustered(&mut self, trx: &mut SessionTrx, key: &[u8]) -> SqlResult<bool> {
        let clustered = self.open.rows.id;
        let lock = trx.lock_row(clustered, key, RowMode::Shared, WaitPolicy::Wait)?;
        let mut row = Vec::new();
        let engine = trx.engine(self.open.engine);
        let found = engine.get(ReadAt::Latest, clustered, key, &mut row).map_err(engine_error)?;
        if !found {
            trx.unlock_unmatched(clustered, key, lock);
            return Ok(false);
        }
        if let Some(view) = trx.view_to_keep() {
            check_unchanged(&self.open, trx, &view, key)?;
        }
        Ok(true)
    }
}
