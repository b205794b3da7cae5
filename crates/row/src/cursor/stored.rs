//! Snapshot rows in stored form, for operations that need no decoded values.

use std::ops::Range;

use cohort_catalog::ROWS;
use cohort_engine::{Batch, ReadAt};
use cohort_trx::SessionTrx;
use cohort_types::SqlResult;

use super::{Candidate, TableCursor};

/// Location of the rows that a cursor found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// A range of the cursor's batch; its entries are rows.
    Entries(Range<usize>),
    /// One row that was read by its key.
    Single,
}

/// An owned batch of stored rows.
#[derive(Debug, Default)]
pub struct StoredBatch(Batch);

impl StoredBatch {
    /// Returns the n-th row.
    #[inline]
    pub fn row(&self, n: usize) -> &[u8] {
        self.0.value(n)
    }

    /// Returns a range of rows.
    #[inline]
    pub fn rows(&self, rows: Range<usize>) -> impl Iterator<Item = &[u8]> {
        self.0.values(rows)
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the size of the rows with their keys, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.0.size_bytes()
    }

    /// Appends a row.
    pub fn push(&mut self, row: &[u8]) {
        self.0.push(&[], row);
    }
}

impl TableCursor {
    /// Returns true if rows are available in stored form: a snapshot scan whose rows are not decoded from
    /// index entries.
    pub fn gives_stored(&self) -> bool {
        self.view.is_some() && self.covering.is_none()
    }

    /// Returns the next rows, at most `rows_max`, or `None` at the end. Requires
    /// [`TableCursor::gives_stored`].
    pub fn next_stored(&mut self, trx: &mut SessionTrx, rows_max: usize) -> SqlResult<Option<Stored>> {
        while let Some(candidate) = self.candidate(trx)? {
            if let (Candidate::Entry, ROWS) = (candidate, self.spans.index) {
                let first = self.batch_at - 1;
                let end = self.batch.len().min(first.saturating_add(rows_max.max(1)));
                trx.counts().count_many(self.step, (end - self.batch_at) as u64);
                self.count_read(trx, (end - first) as u64);
                self.batch_at = end;
                return Ok(Some(Stored::Entries(first..end)));
            }
            // Moved out during the read, to avoid an atomic reference count.
            let view = self.view.take().expect("snapshot reads have a view");
            let found = self.read_row(trx, ReadAt::View(&view), candidate);
            self.view = Some(view);
            if found? {
                self.count_read(trx, 1);
                return Ok(Some(Stored::Single));
            }
        }
        Ok(None)
    }

    /// Returns stored rows by their batch entries.
    #[inline]
    pub fn stored_rows(&self, entries: Range<usize>) -> impl Iterator<Item = &[u8]> {
        self.batch.values(entries)
    }

    /// Returns the single row that was read last.
    pub fn single(&self) -> &[u8] {
        &self.value
    }

    /// Moves out the batch, all entries of which were returned.
    pub fn take_stored(&mut self) -> StoredBatch {
        debug_assert_eq!(self.batch_at, self.batch.len(), "entries that were not returned would be lost");
        self.batch_at = 0;
        self.batch_order.clear();
        StoredBatch(std::mem::take(&mut self.batch))
    }
}
