//! Batched lookups: gathers the entries of many spans in one batch, to match the rows of a join.

use cohort_catalog::ROWS;
use cohort_engine::{Batch, Direction, MultiGet, ReadAt, ScanRequest};
use cohort_trx::{Counted, SessionTrx, engine_error};
use cohort_types::SqlResult;

use super::TableCursor;
use crate::access::KeySpan;

/// Destination of gathered entries.
pub(crate) enum Into<'b> {
    /// The cursor's own batch.
    Own,
    Other(&'b mut Batch),
}

impl TableCursor {
    /// Returns true if entries of many spans can be gathered. Cursors that lock cannot.
    pub(crate) fn gathers(&self) -> bool {
        self.view.is_some() && self.row_keys.is_none()
    }

    /// Returns true if entries lead to rows because they lack some wanted columns.
    pub(crate) fn leads_to_rows(&self) -> bool {
        self.spans.index != ROWS && self.covering.is_none()
    }

    /// Empties the batch before entries or rows ([`TableCursor::gather_row`]) are gathered.
    pub(crate) fn begin_gathering(&mut self) {
        self.spans.spans.clear();
        self.range = None;
        self.look = None;
        self.batch.clear();
        self.batch_order.clear();
        self.batch_at = 0;
    }

    /// Returns number and total bytes of the gathered entries.
    pub(crate) fn gathered(&self) -> (usize, usize) {
        (self.batch.len(), self.batch.size_bytes())
    }

    /// Notes whether a span is the whole table. The rest of a span belongs to the same scan.
    fn note_scan(&mut self, span: &KeySpan) {
        match span {
            KeySpan::Range(range) if range.start.is_some() => {}
            KeySpan::Range(range) if range.end.is_none() && self.spans.index == ROWS => {
                self.step = Counted::ReadRndNext;
            }
            _ => self.step = Counted::ReadNext,
        }
    }

    /// Appends at most `limit` entries of a span. Returns the unread rest of the span, or `None` if it was
    /// read completely.
    pub(crate) fn gather(
        &mut self,
        trx: &mut SessionTrx,
        span: KeySpan,
        limit: usize,
        into: Into<'_>,
    ) -> SqlResult<Option<KeySpan>> {
        self.note_scan(&span);
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
                    engine.get_with_hint(ReadAt::View(&view), index, &key, &mut self.value, &mut self.hint);
                found.map(|found| {
                    if found {
                        batch.push(&key, &self.value);
                    }
                    None
                })
            }
            KeySpan::Range(mut range) => {
                let at = ReadAt::View(&view);
                let more = engine.scan_with_hint(
                    &ScanRequest { at, index, range: &range, direction, limit },
                    batch,
                    &mut self.hint,
                );
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
        self.count_read(trx, found as u64);
        Ok(rest)
    }

    /// Appends the rows of some entries, which always exist, and appends the entry numbers to `found`. Stops
    /// once the batch holds `bytes_max`. Returns the number of entries processed.
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
        let index = self.table.rows.id;
        let engine = trx.engine(self.table.engine);
        let mut looks = MultiGet { index, keys: &keys, bytes_max, batch: &mut self.batch, found };
        let looked = engine.get_many(ReadAt::View(&view), &mut looks, &mut self.near_row);
        self.view = Some(view);
        looked.map_err(engine_error)
    }

    /// Records the average length of the gathered rows.
    pub(crate) fn note_gathered(&self) {
        self.table.note_entries(self.batch.size_bytes(), self.batch.len());
    }
}
