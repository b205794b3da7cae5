//! Generated values of tables, reserved in a session's transaction: [`cohort_table::AutoIncrement`].

use std::sync::Arc;

use cohort_base::IndexId;
use cohort_catalog::{RowKey, Table};
use cohort_engine::{Batch, Direction, KeyRange, ReadAt, ScanRequest};
use cohort_table::{AUTO_INCREMENT_SPACE, OpenTable, Reserved, Series, UsedUp, largest_counted};
use cohort_types::{SqlError, SqlResult, Value};

use crate::errors::engine_error;
use crate::session_trx::SessionTrx;

impl SessionTrx {
    /// Reserves the next values of the table's AUTO_INCREMENT column.
    pub fn reserve_auto_increment(
        &mut self,
        table: &OpenTable,
        column: usize,
        count: u64,
    ) -> SqlResult<Result<Reserved, UsedUp>> {
        self.load_auto_increment(table)?;
        let series = self.series();
        let max = largest_counted(&table.columns()[column].ty);
        Ok(table.auto_increment.reserve(series, count, max))
    }

    /// Returns the session's increment and offset.
    pub fn series(&self) -> Series {
        Series {
            increment: self.settings.auto_increment_increment,
            offset: self.settings.auto_increment_offset,
        }
    }

    /// Advances the counter past the AUTO_INCREMENT value of a row that was written.
    pub fn pass_auto_increment(&mut self, table: &OpenTable, value: &Value) -> SqlResult<()> {
        let Some(value) = table.counted(value) else { return Ok(()) };
        self.load_auto_increment(table)?;
        if table.auto_increment.pass(value, self.series())
            && let Some(active) = &mut self.active
        {
            active.has_passed_counters = true;
        }
        Ok(())
    }

    /// Returns whether the running transaction has advanced counters to values of its own.
    pub fn has_passed_counters(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.has_passed_counters)
    }

    /// Records that a row with this AUTO_INCREMENT value was removed.
    pub fn drop_auto_increment(&mut self, table: &Arc<OpenTable>, value: &Value) -> SqlResult<()> {
        let Some(value) = table.counted(value).filter(|_| !table.is_temporary()) else { return Ok(()) };
        if !table.auto_increment.must_persist(value) {
            return Ok(());
        }
        self.load_auto_increment(table)?;
        // The counter may just have been loaded from an index that no longer has the row.
        table.auto_increment.pass(value, self.series());
        let counters = &mut self.active_mut().counters;
        if !counters.iter().any(|known| known.table().id == table.table().id) {
            counters.push(table.clone());
        }
        Ok(())
    }

    /// Removes the stored counter of a table that is dropped or truncated, in the running transaction.
    pub fn forget_auto_increment(&mut self, table: &Arc<Table>) -> SqlResult<()> {
        if table.is_temporary() {
            return Ok(());
        }
        let open = self.open_table(table)?;
        let key = table.id.0.to_be_bytes();
        self.engine(open.engine).delete(AUTO_INCREMENT_SPACE, &key).map_err(engine_error)
    }

    /// Returns the next value, as shown by SHOW TABLE STATUS.
    pub fn auto_increment_next(&mut self, table: &OpenTable) -> SqlResult<Option<u64>> {
        if table.auto_column.is_none() {
            return Ok(None);
        }
        self.load_auto_increment(table)?;
        Ok(Some(table.auto_increment.next()))
    }

    /// Loads the counter, once per server start and table.
    fn load_auto_increment(&mut self, table: &OpenTable) -> SqlResult<()> {
        if table.auto_column.is_none() {
            return Ok(());
        }
        // No thread waits for a page while it holds the counter's lock. The first caller has set the counter.
        if table.auto_increment.is_loaded() {
            return Ok(());
        }
        let mut stored = Vec::new();
        let key = table.table().id.0.to_be_bytes();
        let engine = self.engine(table.engine);
        engine.get(ReadAt::Latest, AUTO_INCREMENT_SPACE, &key, &mut stored).map_err(engine_error)?;
        let stored = stored.try_into().map_or(0, u64::from_le_bytes);
        let after_last_row = self.after_last_row(table)?;
        table.auto_increment.load(stored, table.table().auto_increment_start, after_last_row);
        Ok(())
    }

    /// Returns a new hidden row id. The caller ensures that the key is free.
    pub fn next_row_id(&mut self, table: &OpenTable) -> SqlResult<u64> {
        debug_assert_eq!(table.rows.key, RowKey::HiddenRowId);
        let first = match table.auto_increment.has_row_ids() {
            true => 0,
            false => {
                let last = self.last_key(table, table.rows.id)?;
                let last = last.and_then(|key| key.try_into().ok()).map_or(0, u64::from_be_bytes);
                last.checked_add(1).ok_or_else(SqlError::autoinc_read_failed)?
            }
        };
        table.auto_increment.next_row_id(first).ok_or_else(SqlError::autoinc_read_failed)
    }

    /// ALTER TABLE .. AUTO_INCREMENT = n, under an exclusive lock of the table's name: the counter continues
    /// at `start`, or after the last row. Writes the removal of a stored counter, which might be larger.
    pub fn restart_auto_increment(&mut self, table: &Arc<Table>, start: u64) -> SqlResult<()> {
        let open = self.open_table(table)?;
        let after_last_row = self.after_last_row(&open)?;
        self.forget_auto_increment(table)?;
        open.auto_increment.restart(start.max(after_last_row));
        Ok(())
    }

    /// Returns the value after the one of the last row in the column's index; 1 without rows.
    fn after_last_row(&mut self, table: &OpenTable) -> SqlResult<u64> {
        let Some((_, index)) = table.auto_column else { return Ok(1) };
        let Some(last) = self.last_key(table, table.indexes[index].id)? else { return Ok(1) };
        let part = &table.indexes[index].parts[0].1;
        let value = part.decode(&mut &*last).map_err(|e| table.key_error(index, e))?;
        Ok(table.counted(&value).map_or(1, |v| v.saturating_add(1)))
    }

    /// Returns the largest key of an index, including those of prepared XA transactions. Reads the latter
    /// first, so that the keys of a transaction that ends meanwhile are found in the engine.
    fn last_key(&mut self, table: &OpenTable, index: IndexId) -> SqlResult<Option<Vec<u8>>> {
        let prepared = self.env.commit.xa().largest_key(index);
        Ok(self.last_visible_key(table, index)?.max(prepared))
    }

    fn last_visible_key(&mut self, table: &OpenTable, index: IndexId) -> SqlResult<Option<Vec<u8>>> {
        let (mut range, mut batch, direction) = (KeyRange::default(), Batch::default(), Direction::Backward);
        loop {
            self.check_killed()?;
            let engine = self.engine(table.engine);
            let more = engine
                .scan(
                    &ScanRequest { at: ReadAt::Latest, index, range: &range, direction, limit: 1 },
                    &mut batch,
                )
                .map_err(engine_error)?;
            if !batch.is_empty() {
                return Ok(Some(batch.get(0).0.to_vec()));
            }
            if !more {
                return Ok(None);
            }
            batch.cut(&mut range, direction);
        }
    }
}
