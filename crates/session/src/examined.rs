//! LIMIT ROWS EXAMINED: limits how many table rows a statement may examine.

use std::cell::Cell;

use cohort_types::{SqlError, Warning};

/// The limit of the running statement. When it is used up, scans return no more rows.
#[derive(Debug, Default)]
pub struct RowsExamined {
    limit: Cell<Option<u64>>,
    seen: Cell<u64>,
    is_over: Cell<bool>,
}

impl RowsExamined {
    /// Starts a statement with a limit, or without one.
    pub fn begin(&self, limit: Option<u64>) {
        self.limit.set(limit);
        self.seen.set(0);
        self.is_over.set(false);
    }

    /// Exchanges the limit and its count with another statement's.
    pub(crate) fn swap(&self, other: &RowsExamined) {
        self.limit.swap(&other.limit);
        self.seen.swap(&other.seen);
        self.is_over.swap(&other.is_over);
    }

    /// Returns whether the statement has a limit.
    #[inline]
    pub fn is_limited(&self) -> bool {
        self.limit.get().is_some()
    }

    /// Counts an examined row. Error 1931 if it exceeds the limit; scans treat that error as their end.
    #[inline]
    pub fn examine(&self) -> Result<(), SqlError> {
        let Some(limit) = self.limit.get() else { return Ok(()) };
        if self.is_over.get() || self.seen.get() >= limit {
            self.is_over.set(true);
            return Err(complaint(limit));
        }
        self.seen.set(self.seen.get() + 1);
        Ok(())
    }

    /// Returns whether the limit was exceeded.
    pub fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Returns warning 1931 if the limit was exceeded.
    pub fn warning(&self) -> Option<Warning> {
        let limit = self.limit.get().filter(|_| self.is_over.get())?;
        Some(Warning::new(complaint(limit)))
    }
}

fn complaint(limit: u64) -> SqlError {
    SqlError::examined_rows_exceeded(limit)
}
