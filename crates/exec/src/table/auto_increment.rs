//! Generated values: AUTO_INCREMENT columns and hidden row ids.
//!
//! The counter lives in memory and is shared by all sessions; a value once given out is not given again, also
//! when its transaction is rolled back. After a restart it continues behind the largest of
//! - the last key in the column's index,
//! - AUTO_INCREMENT=n of the table,
//! - the value stored in the key space [`AUTO_INCREMENT_SPACE`].
//!
//! The stored value is needed only where the index does not tell: when rows at its end were removed. So
//! inserts do not write it (that would be one more entry in every commit); a statement that removes a row at
//! or above the stored value writes the counter in the same transaction ([`AutoIncrement::must_persist`]). A
//! queue that is filled at one end and emptied at the other thus writes it once per filling. Values that only
//! rolled-back transactions have used, and that lie behind the last row, may be given again after a restart.

use std::sync::Arc;

use cohort_base::IndexId;
use cohort_catalog::{IndexKind, Table};
use cohort_engine::{Batch, Direction, KeyRange, ReadAt};
use cohort_types::{ColumnType, SqlError, SqlResult, TypeKind, Value};
use parking_lot::Mutex;

use crate::table::OpenTable;
use crate::trx::{AUTO_INCREMENT_SPACE, SessionTrx, engine_error};

/// A table's counter.
#[derive(Debug, Default)]
pub(crate) struct AutoIncrement {
    state: Mutex<State>,
    row_id: Mutex<Option<u64>>,
}

#[derive(Debug, Default)]
struct State {
    /// None until first used.
    next: Option<u64>,
    /// As stored and ordered; never above what is stored.
    persisted: u64,
}

/// `auto_increment_increment` and `auto_increment_offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Series {
    pub(crate) increment: u64,
    pub(crate) offset: u64,
}

impl Series {
    /// The first value of the series at or above `from`; None beyond u64. An offset above the increment is
    /// ignored.
    pub(crate) fn at_or_above(self, from: u64) -> Option<u64> {
        let increment = self.increment.max(1);
        let offset = if self.offset > increment { 0 } else { self.offset.max(1) };
        if from <= offset {
            return Some(offset.max(1));
        }
        let steps = (from - offset).div_ceil(increment);
        steps.checked_mul(increment)?.checked_add(offset)
    }
}

/// Values given to one statement: `next`, `next + increment`, ..
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reserved {
    pub(crate) next: u64,
    pub(crate) left: u64,
}

/// Why no value can be generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsedUp {
    /// The counter is at its end: error 1467.
    Counter,
    /// The column's type does not hold the next value: error 167.
    Type,
}

impl AutoIncrement {
    /// The next value; the counter must be loaded.
    pub(crate) fn next(&self) -> u64 {
        self.state.lock().next.unwrap_or(1)
    }

    /// Takes `count` values of the series.
    fn reserve(&self, series: Series, count: u64, max: u64) -> Result<Reserved, UsedUp> {
        let mut state = self.state.lock();
        // The last number of all is where a counter ends that can go no further.
        let first = series.at_or_above(state.next.unwrap_or(1)).filter(|first| *first < u64::MAX);
        let first = first.ok_or(UsedUp::Counter)?;
        if first > max {
            return Err(UsedUp::Type);
        }
        let max = max.min(u64::MAX - 1);
        let step = series.increment.max(1);
        let left = count.max(1).min((max - first) / step + 1);
        state.next = Some(first.saturating_add(left.saturating_mul(step)));
        Ok(Reserved { next: first, left })
    }

    /// A row with this value exists: the next one is the session's next behind it.
    fn pass(&self, value: u64, series: Series) {
        let mut state = self.state.lock();
        let behind = series.at_or_above(value.saturating_add(1)).unwrap_or(u64::MAX);
        state.next = Some(state.next.unwrap_or(1).max(behind));
    }

    /// Whether the transaction that removes a row of this value must store the counter.
    fn must_persist(&self, value: u64) -> bool {
        value >= self.state.lock().persisted
    }

    /// The stored value was ordered.
    pub(crate) fn note_persisted(&self, next: u64) {
        self.state.lock().persisted = next;
    }
}

impl SessionTrx {
    /// Takes the next values of the table's AUTO_INCREMENT column.
    pub(crate) fn reserve_auto_increment(
        &mut self,
        table: &OpenTable,
        column: usize,
        count: u64,
    ) -> SqlResult<Result<Reserved, UsedUp>> {
        self.load_auto_increment(table)?;
        let series = self.series();
        let max = largest(&table.columns()[column].ty);
        Ok(table.auto_increment.reserve(series, count, max))
    }

    /// The session's series.
    pub(crate) fn series(&self) -> Series {
        Series {
            increment: self.settings.auto_increment_increment,
            offset: self.settings.auto_increment_offset,
        }
    }

    /// A row with this AUTO_INCREMENT value was written.
    pub(crate) fn pass_auto_increment(&mut self, table: &OpenTable, value: &Value) -> SqlResult<()> {
        let Some(value) = table.counted(value) else { return Ok(()) };
        self.load_auto_increment(table)?;
        table.auto_increment.pass(value, self.series());
        Ok(())
    }

    /// A row with this AUTO_INCREMENT value was removed.
    pub(crate) fn drop_auto_increment(&mut self, table: &Arc<OpenTable>, value: &Value) -> SqlResult<()> {
        let Some(value) = table.counted(value).filter(|_| !table.is_temporary()) else { return Ok(()) };
        if !table.auto_increment.must_persist(value) {
            return Ok(());
        }
        self.load_auto_increment(table)?;
        // The counter may just have been read from an index that no longer has the row.
        table.auto_increment.pass(value, self.series());
        let counters = &mut self.active_mut().counters;
        if !counters.iter().any(|known| known.table().id == table.table().id) {
            counters.push(table.clone());
        }
        Ok(())
    }

    /// Removes the stored counter of a table that is dropped or emptied, in the running transaction.
    pub fn forget_auto_increment(&mut self, table: &Arc<Table>) -> SqlResult<()> {
        if table.is_temporary() {
            return Ok(());
        }
        let open = self.open_table(table)?;
        let key = table.id.0.to_be_bytes();
        self.engine(open.engine).delete(AUTO_INCREMENT_SPACE, &key).map_err(engine_error)
    }

    /// AUTO_INCREMENT as SHOW TABLE STATUS prints it: the next value.
    pub fn auto_increment_next(&mut self, table: &OpenTable) -> SqlResult<Option<u64>> {
        if table.auto_column.is_none() {
            return Ok(None);
        }
        self.load_auto_increment(table)?;
        Ok(Some(table.auto_increment.next()))
    }

    /// Finds out where the counter stands, once per server start and table.
    fn load_auto_increment(&mut self, table: &OpenTable) -> SqlResult<()> {
        if table.auto_column.is_none() {
            return Ok(());
        }
        // Nobody sleeps for a page with the counter locked. The first caller has set it.
        if table.auto_increment.state.lock().next.is_some() {
            return Ok(());
        }
        let mut stored = Vec::new();
        let key = table.table().id.0.to_be_bytes();
        let engine = self.engine(table.engine);
        engine.get(ReadAt::Latest, AUTO_INCREMENT_SPACE, &key, &mut stored).map_err(engine_error)?;
        let stored = stored.try_into().map_or(0, u64::from_le_bytes);
        let behind = self.behind_last_row(table)?;
        let mut state = table.auto_increment.state.lock();
        if state.next.is_none() {
            state.next = Some(stored.max(table.table().auto_increment_start).max(behind));
            state.persisted = stored;
        }
        Ok(())
    }

    /// A new hidden row id. Its user makes sure that the key is free.
    pub(crate) fn next_row_id(&mut self, table: &OpenTable) -> SqlResult<u64> {
        debug_assert_eq!(table.indexes[0].kind, IndexKind::HiddenRowId);
        let is_known = table.auto_increment.row_id.lock().is_some();
        let first = match is_known {
            true => 0,
            false => {
                let last = self.last_key(table, table.indexes[0].id)?;
                let last = last.and_then(|key| key.try_into().ok()).map_or(0, u64::from_be_bytes);
                last.checked_add(1).ok_or_else(SqlError::autoinc_read_failed)?
            }
        };
        let mut counter = table.auto_increment.row_id.lock();
        let next = counter.unwrap_or(first);
        *counter = Some(next.checked_add(1).ok_or_else(SqlError::autoinc_read_failed)?);
        Ok(next)
    }

    /// ALTER TABLE .. AUTO_INCREMENT = n, under the exclusive lock of the table's name: the counter goes on
    /// at
    /// `start`, or behind the last row. Writes the removal of a stored counter, which might be larger.
    pub(crate) fn restart_auto_increment(&mut self, table: &Arc<Table>, start: u64) -> SqlResult<()> {
        let open = self.open_table(table)?;
        let behind = self.behind_last_row(&open)?;
        self.forget_auto_increment(table)?;
        let mut state = open.auto_increment.state.lock();
        state.next = Some(start.max(behind));
        state.persisted = 0;
        Ok(())
    }

    /// The value behind that of the last row in the column's index; 1 without rows.
    fn behind_last_row(&mut self, table: &OpenTable) -> SqlResult<u64> {
        let Some((_, index)) = table.auto_column else { return Ok(1) };
        let Some(last) = self.last_key(table, table.indexes[index].id)? else { return Ok(1) };
        let part = &table.indexes[index].parts[0].1;
        let value = part.decode(&mut &*last).map_err(|e| table.key_error(index, e))?;
        Ok(table.counted(&value).map_or(1, |v| v.saturating_add(1)))
    }

    /// The largest key of an index, those of prepared XA transactions included: looked at first, because one
    /// that ends meanwhile is found in the engine.
    fn last_key(&mut self, table: &OpenTable, index: IndexId) -> SqlResult<Option<Vec<u8>>> {
        let prepared = self.db.commit.xa().largest_key(index);
        Ok(self.last_visible_key(table, index)?.max(prepared))
    }

    fn last_visible_key(&mut self, table: &OpenTable, index: IndexId) -> SqlResult<Option<Vec<u8>>> {
        let (mut range, mut batch, direction) = (KeyRange::default(), Batch::default(), Direction::Backward);
        loop {
            self.check_killed()?;
            let engine = self.engine(table.engine);
            let more =
                engine.scan(ReadAt::Latest, index, &range, direction, 1, &mut batch).map_err(engine_error)?;
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

impl OpenTable {
    /// The value of the AUTO_INCREMENT column as its counter sees it. Numbers with a fraction may be larger
    /// than any that is generated: they do not count.
    fn counted(&self, value: &Value) -> Option<u64> {
        let (column, _) = self.auto_column?;
        positive(value).filter(|value| *value <= largest(&self.columns()[column].ty))
    }
}

/// The value as a number to count from; negative ones do not count.
pub(crate) fn positive(value: &Value) -> Option<u64> {
    match value {
        Value::Int(v) => u64::try_from(*v).ok().filter(|v| *v > 0),
        Value::UInt(v) => Some(*v).filter(|v| *v > 0),
        Value::Float(v) if *v >= 1.0 => Some(*v as u64),
        Value::Double(v) if *v >= 1.0 => Some(*v as u64),
        _ => None,
    }
}

/// The largest value that a column of this type holds.
fn largest(ty: &ColumnType) -> u64 {
    let bits = match ty.kind {
        TypeKind::TinyInt => 8,
        TypeKind::SmallInt => 16,
        TypeKind::MediumInt => 24,
        TypeKind::Int => 32,
        TypeKind::Float => return 1 << 24,
        TypeKind::Double => return 1 << 53,
        _ => 64,
    };
    let signed_max = (1_u64 << (bits - 1)) - 1;
    if ty.unsigned { signed_max * 2 + 1 } else { signed_max }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_begins_at_its_offset_and_steps_by_its_increment() {
        let series = Series { increment: 10, offset: 3 };
        assert_eq!([1, 3, 4, 13, 14].map(|n| series.at_or_above(n)), [3, 3, 13, 13, 23].map(Some));
        assert_eq!(Series { increment: 1, offset: 1 }.at_or_above(7), Some(7));
        assert_eq!(Series { increment: 10, offset: 1 }.at_or_above(u64::MAX), None);
        assert_eq!(
            Series { increment: 5, offset: 9 }.at_or_above(1),
            Some(5),
            "an offset beyond the increment is none"
        );
    }

    #[test]
    fn reservations_do_not_overlap_and_end_at_the_type() {
        let counter = AutoIncrement::default();
        let plain = Series { increment: 1, offset: 1 };
        assert_eq!(counter.reserve(plain, 3, 127), Ok(Reserved { next: 1, left: 3 }));
        counter.pass(9, plain);
        assert_eq!(counter.reserve(plain, 200, 127), Ok(Reserved { next: 10, left: 118 }));
        assert_eq!(counter.reserve(plain, 1, 127), Err(UsedUp::Type));
        counter.pass(u64::MAX - 2, plain);
        assert_eq!(counter.reserve(plain, 5, u64::MAX), Ok(Reserved { next: u64::MAX - 1, left: 1 }));
        assert_eq!(counter.reserve(plain, 1, u64::MAX), Err(UsedUp::Counter));
        counter.pass(u64::MAX, plain);
        assert_eq!(counter.reserve(plain, 1, u64::MAX), Err(UsedUp::Counter));
    }

    #[test]
    fn only_rows_at_the_end_store_the_counter() {
        let counter = AutoIncrement::default();
        counter.pass(9, Series { increment: 1, offset: 1 });
        assert!(counter.must_persist(1));
        counter.note_persisted(10);
        assert!(!counter.must_persist(9));
        assert!(counter.must_persist(10));
    }
}
