//! The entries of many spans in one batch: what a join's rows are matched with.

use cohort_engine::{Batch, Direction, Looks, ReadAt};
use cohort_trx::{Counted, SessionTrx, engine_error};
use cohort_types::SqlResult;

use super::TableCursor;
use crate::access::KeySpan;

/// Entries that are gathered.
pub(crate) enum Into<'b> {
    /// In the cursor's own batch.
    Own,
    Other(&'b mut Batch),
}

impl TableCursor {
    /// Whether the entries of many spans can be gathered: not while ranges are locked.
    pub(crate) fn gathers(&self) -> bool {
        self.view.is_some() && self.words.is_none()
    }

    /// Whether entries have not all that is wanted, but lead to rows.
    pub(crate) fn leads_to_rows(&self) -> bool {
        self.spans.index != 0 && self.covering.is_none()
    }

    /// Empties the batch: entries are gathered, or rows ([`TableCursor::gather_row`]).
    pub(crate) fn begin_gathering(&mut self) {
        self.spans.spans.clear();
        self.range = None;
        self.look = None;
        self.batch.clear();
        self.batch_order.clear();
        self.batch_at = 0;
    }

    /// The entries that were gathered, and their bytes.
    pub(crate) fn gathered(&self) -> (usize, usize) {
        (self.batch.len(), self.batch.size_bytes())
    }

    /// Appends at most so many entries of a span. None: these were all; else what is left of the span.
    pub(crate) fn gather(
        &mut self,
        trx: &mut SessionTrx,
        span: KeySpan,
        limit: usize,
        into: Into<'_>,
    ) -> SqlResult<Option<KeySpan>> {
        let view = self.view.take().expect("entries are gathered from a snapshot");
        let index = self.table.indexes[self.spans.index].id;
        let direction = if self.spans.reverse { Direction::Backward } else { Direction::Forward };
        let batch = match into {
            Into::Own => &mut self.batch,
            Into::Other(batch) => batch,
        };
        let before = batch.len();
        let engine = trx.engine(self.table.engine);
        let rest = match span {
            KeySpan::Point(key) => {
                let found =
                    engine.get_near(ReadAt::View(&view), index, &key, &mut self.value, &mut self.near);
                found.map(|found| {
                    if found {
                        batch.push(&key, &self.value);
                    }
                    None
                })
            }
            KeySpan::Range(mut range) => {
                let at = ReadAt::View(&view);
                let more = engine.scan_near(at, index, &range, direction, limit, batch, &mut self.near);
                more.map(|more| {
                    more.then(|| {
                        batch.cut(&mut range, direction);
                        KeySpan::Range(range)
                    })
                })
            }
        };
        let found = batch.len() - before;
        self.view = Some(view);
        let rest = rest.map_err(engine_error)?;
        let step = if self.spans.reverse { Counted::ReadPrev } else { Counted::ReadNext };
        trx.counts().count_many(step, found as u64);
        Ok(rest)
    }

    /// Appends the rows that some entries lead to, which are there by construction, and to `found` the
    /// numbers of the entries; stops once the batch holds `bytes_max`, and says of how many entries.
    pub(crate) fn gather_rows(
        &mut self,
        trx: &mut SessionTrx,
        leads: &[(&[u8], &[u8])],
        bytes_max: usize,
        found: &mut Vec<u32>,
    ) -> SqlResult<usize> {
        let mut keys = Vec::with_capacity(leads.len());
        for (key, value) in leads {
            keys.push(self.table.clustered_key_of(self.spans.index, key, value)?);
        }
        let view = self.view.take().expect("entries are gathered from a snapshot");
        let index = self.table.indexes[0].id;
        let engine = trx.engine(self.table.engine);
        let mut looks = Looks { index, keys: &keys, bytes_max, batch: &mut self.batch, found };
        let looked = engine.get_many(ReadAt::View(&view), &mut looks, &mut self.near_row);
        self.view = Some(view);
        looked.map_err(engine_error)
    }

    /// Remembers how long the rows gathered are.
    pub(crate) fn note_gathered(&self) {
        self.table.note_entries(self.batch.size_bytes(), self.batch.len());
    }
}
