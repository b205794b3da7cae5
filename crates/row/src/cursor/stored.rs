//! Rows of a snapshot as they are stored: what needs no value of them.

use std::ops::Range;

use cohort_engine::{Batch, ReadAt};
use cohort_trx::SessionTrx;
use cohort_types::SqlResult;

use super::{Candidate, TableCursor};

/// Where the rows lie that a cursor found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// These entries of the cursor's batch are rows.
    Entries(Range<usize>),
    /// One that was read by its key.
    Single,
}

/// Rows that somebody keeps.
#[derive(Debug, Default)]
pub struct StoredBatch(Batch);

impl StoredBatch {
    /// The n-th row.
    #[inline]
    pub fn row(&self, n: usize) -> &[u8] {
        self.0.value(n)
    }

    /// Some rows.
    #[inline]
    pub fn rows(&self, rows: Range<usize>) -> impl Iterator<Item = &[u8]> {
        self.0.values(rows)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of the rows and of what stands with them.
    pub fn size_bytes(&self) -> usize {
        self.0.size_bytes()
    }

    /// Adds a row.
    pub fn push(&mut self, row: &[u8]) {
        self.0.push(&[], row);
    }
}

impl TableCursor {
    /// Whether rows can be had as they are stored: they come from a snapshot, and none is made of the entry
    /// of an index.
    pub fn gives_stored(&self) -> bool {
        self.view.is_some() && self.covering.is_none()
    }

    /// Passes the next rows, at most so many; None at the end. [`TableCursor::gives_stored`] has said yes.
    pub fn next_stored(&mut self, trx: &mut SessionTrx, rows_max: usize) -> SqlResult<Option<Stored>> {
        while let Some(candidate) = self.candidate(trx)? {
            if let (Candidate::Entry, 0) = (candidate, self.spans.index) {
                let first = self.batch_at - 1;
                let end = self.batch.len().min(first.saturating_add(rows_max.max(1)));
                trx.counts().count_many(self.step, (end - self.batch_at) as u64);
                self.batch_at = end;
                return Ok(Some(Stored::Entries(first..end)));
            }
            // Taken out while it is read by, so that no reference to it is counted.
            let view = self.view.take().expect("snapshot reads have a view");
            let found = self.read_row(trx, ReadAt::View(&view), candidate);
            self.view = Some(view);
            if found? {
                return Ok(Some(Stored::Single));
            }
        }
        Ok(None)
    }

    /// Entries that were found, as rows.
    #[inline]
    pub fn stored_rows(&self, entries: Range<usize>) -> impl Iterator<Item = &[u8]> {
        self.batch.values(entries)
    }

    /// The single row that was found last.
    pub fn single(&self) -> &[u8] {
        &self.value
    }

    /// Hands over the batch with all of its entries, which were passed.
    pub fn take_stored(&mut self) -> StoredBatch {
        debug_assert_eq!(self.batch_at, self.batch.len(), "entries that nobody has seen would be lost");
        self.batch_at = 0;
        self.batch_order.clear();
        StoredBatch(std::mem::take(&mut self.batch))
    }
}
