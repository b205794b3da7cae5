//! LIMIT ROWS EXAMINED: how many rows of tables a statement may look at, whatever it then does with them.

use std::cell::Cell;

use cohort_types::{ErrorCode, SqlError, Warning};

/// The limit of the running statement. Once it is used up, scans find no more rows.
#[derive(Debug, Default)]
pub struct RowsExamined {
    limit: Cell<Option<u64>>,
    seen: Cell<u64>,
    is_over: Cell<bool>,
}

impl RowsExamined {
    /// A statement begins that has such a limit, or has none.
    pub fn begin(&self, limit: Option<u64>) {
        self.limit.set(limit);
        self.seen.set(0);
        self.is_over.set(false);
    }

    /// Whether there is a limit.
    #[inline]
    pub fn is_limited(&self) -> bool {
        self.limit.get().is_some()
    }

    /// Another row is looked at. Error 1931, which scans take for their end, if that is one too many.
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

    /// Whether rows were left out.
    pub fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Warning 1931, if rows were left out.
    pub fn warning(&self) -> Option<Warning> {
        let limit = self.limit.get().filter(|_| self.is_over.get())?;
        Some(Warning::new(complaint(limit)))
    }
}

fn complaint(limit: u64) -> SqlError {
    let text = format!(
        "Query execution was interrupted. The query exceeded LIMIT ROWS EXAMINED {limit}. The query result may be \
         incomplete"
    );
    SqlError::new(ErrorCode::QueryResultIncomplete, text)
}
