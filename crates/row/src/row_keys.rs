//! [`RowKeys`]: searches of an index that return keys of rows, each once and in order, because the entries
//! themselves are not in the order that a cursor reads. The cursor then reads the rows as points of the
//! clustered index.

use cohort_catalog::ROWS;
use cohort_engine::ReadView;
use cohort_table::OpenTable;
use cohort_trx::SessionTrx;
use cohort_types::SqlResult;

use crate::access::{KeySpan, KeySpans};
use crate::posting_scan::PostingScan;

/// A search that returns keys of rows.
pub(crate) enum RowKeys {
    /// Rows that contain words.
    Words(PostingScan),
}

impl RowKeys {
    /// Takes the spans of an index that is searched in this way, and directs the cursor to the clustered
    /// index. Returns `None` if the entries of the spans are to be read.
    #[inline]
    pub(crate) fn of(table: &OpenTable, spans: &mut KeySpans) -> Option<RowKeys> {
        let index = spans.index;
        if !table.indexes[index].kind.has_words() {
            return None;
        }
        let ranges = std::mem::take(&mut spans.spans).into_iter().filter_map(|span| match span {
            KeySpan::Range(range) => Some(range),
            KeySpan::Point(_) => None,
        });
        spans.index = ROWS;
        Some(RowKeys::Words(PostingScan::new(index, ranges.collect())))
    }

    /// Writes the next row's clustered key to `key`. Returns false at the end.
    pub(crate) fn next(
        &mut self,
        table: &OpenTable,
        trx: &mut SessionTrx,
        view: Option<&ReadView>,
        key: &mut Vec<u8>,
    ) -> SqlResult<bool> {
        match self {
            RowKeys::Words(words) => words.next(table, trx, view, key),
        }
    }
}
