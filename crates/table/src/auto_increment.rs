//! Generated values: AUTO_INCREMENT columns and hidden row ids.
//!
//! The counter is in memory and shared by all sessions. A value is given out once, even if its transaction
//! rolls back. After a restart, the counter continues after the largest of
//! - the last key in the column's index,
//! - AUTO_INCREMENT=n of the table,
//! - the value stored in the index [`AUTO_INCREMENT_SPACE`].
//!
//! The stored value is needed only if rows at the end of the index were deleted. So inserts do not write it,
//! which would add an entry to every commit. A statement that deletes a row at or above the stored value
//! writes the counter in the same transaction ([`AutoIncrement::must_persist`]). So a table used as a queue
//! writes it once per fill, at the first delete after it. Values after the last row that only rolled-back
//! transactions used may be given out again after a restart.

use cohort_base::IndexId;
use cohort_types::{ColumnType, TypeKind, Value};
use parking_lot::Mutex;

/// The index of auto-increment counters: table id (u64, big-endian) -> next value (u64, little-endian).
pub const AUTO_INCREMENT_SPACE: IndexId = IndexId(1);

/// A table's counter.
#[derive(Debug, Default)]
pub struct AutoIncrement {
    state: Mutex<State>,
    row_id: Mutex<Option<u64>>,
}

#[derive(Debug, Default)]
struct State {
    /// `None` until first used.
    next: Option<u64>,
    /// The stored value, once its transaction is ordered. Never above the value on disk.
    persisted: u64,
}

/// `auto_increment_increment` and `auto_increment_offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    pub increment: u64,
    pub offset: u64,
}

impl Series {
    /// Returns the first value of the series at or above `from`, or `None` beyond u64. An offset above the
    /// increment is ignored.
    pub fn at_or_above(self, from: u64) -> Option<u64> {
        let increment = self.increment.max(1);
        let offset = if self.offset > increment { 0 } else { self.offset.max(1) };
        if from <= offset {
            return Some(offset.max(1));
        }
        let steps = (from - offset).div_ceil(increment);
        steps.checked_mul(increment)?.checked_add(offset)
    }
}

/// Values reserved for one statement: `next`, `next + increment`, ..
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    pub next: u64,
    pub left: u64,
}

/// The reason why no value can be generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsedUp {
    /// The counter is at its end: error 1467.
    Counter,
    /// The column's type cannot hold the next value: error 167.
    Type,
}

impl AutoIncrement {
    /// Returns the next value. The counter must be loaded.
    pub fn next(&self) -> u64 {
        self.state.lock().next.unwrap_or(1)
    }

    /// Reserves `count` values of the series.
    pub fn reserve(&self, series: Series, count: u64, max: u64) -> Result<Reserved, UsedUp> {
        let mut state = self.state.lock();
        // u64::MAX marks an exhausted counter.
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

    /// Advances the counter past an explicit value, to the next value of the session's series. Returns true
    /// if the counter had not given it out.
    pub fn pass(&self, value: u64, series: Series) -> bool {
        let mut state = self.state.lock();
        let next = state.next.unwrap_or(1);
        let following = series.at_or_above(value.saturating_add(1)).unwrap_or(u64::MAX);
        state.next = Some(next.max(following));
        value >= next
    }

    /// Returns true if a transaction that deletes a row with this value must store the counter.
    pub fn must_persist(&self, value: u64) -> bool {
        value >= self.state.lock().persisted
    }

    /// Records that the stored value was ordered.
    pub fn note_persisted(&self, next: u64) {
        self.state.lock().persisted = next;
    }

    /// Returns true if the counter is loaded.
    pub fn is_loaded(&self) -> bool {
        self.state.lock().next.is_some()
    }

    /// Loads the counter unless another session has: it continues at `start`, after the stored value and
    /// after the last row.
    pub fn load(&self, stored: u64, start: u64, after_last_row: u64) {
        let mut state = self.state.lock();
        if state.next.is_none() {
            state.next = Some(stored.max(start).max(after_last_row));
            state.persisted = stored;
        }
    }

    /// Restarts the counter at `next`. No value is stored then.
    pub fn restart(&self, next: u64) {
        *self.state.lock() = State { next: Some(next), persisted: 0 };
    }

    /// Returns true if row ids have been given out.
    pub fn has_row_ids(&self) -> bool {
        self.row_id.lock().is_some()
    }

    /// Returns the next row id: `first` if none was given out before. Returns `None` when they are exhausted.
    pub fn next_row_id(&self, first: u64) -> Option<u64> {
        let mut counter = self.row_id.lock();
        let next = counter.unwrap_or(first);
        *counter = Some(next.checked_add(1)?);
        Some(next)
    }
}

/// Returns the value as a counter value, or `None` if it is not positive.
pub fn positive(value: &Value) -> Option<u64> {
    match value {
        Value::Int(v) => u64::try_from(*v).ok().filter(|v| *v > 0),
        Value::UInt(v) => Some(*v).filter(|v| *v > 0),
        Value::Float(v) if *v >= 1.0 => Some(*v as u64),
        Value::Double(v) if *v >= 1.0 => Some(*v as u64),
        _ => None,
    }
}

/// Returns the largest value that a column of this type can hold.
pub fn largest_counted(ty: &ColumnType) -> u64 {
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
