//! [`PostingScan`]: returns the rows that contain one of several words, each row once, in clustered order.

use cohort_engine::{Batch, Direction, KeyRange, ReadAt, ReadView, ScanRequest};
use cohort_table::OpenTable;
use cohort_trx::{SessionTrx, engine_error};
use cohort_types::SqlResult;

/// Entries read at once, over all words.
const BATCH_ENTRIES: usize = 8192;
const BATCH_ENTRIES_MIN: usize = 32;
const BATCH_ENTRIES_MAX: usize = 256;

/// A merge of the posting lists of several words. The entries of one word are in the order of the clustered
/// keys.
pub(crate) struct PostingScan {
    index: usize,
    words: Vec<Word>,
    /// Entries read at once per word.
    entries: usize,
    /// The key returned last.
    last: Option<Vec<u8>>,
}

/// Posting list of one word.
struct Word {
    /// Unread entries after the batch.
    range: Option<KeyRange>,
    batch: Batch,
    at: usize,
}

impl PostingScan {
    /// Creates a scan. Each range holds the entries of one word.
    pub fn new(index: usize, ranges: Vec<KeyRange>) -> PostingScan {
        let word = |range| Word { range: Some(range), batch: Batch::default(), at: 0 };
        let entries = (BATCH_ENTRIES / ranges.len().max(1)).clamp(BATCH_ENTRIES_MIN, BATCH_ENTRIES_MAX);
        PostingScan { index, words: ranges.into_iter().map(word).collect(), entries, last: None }
    }

    /// Writes the next row's clustered key to `key`. Returns false at the end.
    pub fn next(
        &mut self,
        table: &OpenTable,
        trx: &mut SessionTrx,
        view: Option<&ReadView>,
        key: &mut Vec<u8>,
    ) -> SqlResult<bool> {
        let mut least: Option<&[u8]> = None;
        for word in &mut self.words {
            word.pass(table, self.index, trx, view, self.entries, self.last.as_deref())?;
        }
        for word in &self.words {
            let Some(next) = word.key(table, self.index)? else { continue };
            if least.is_none_or(|least| next < least) {
                least = Some(next);
            }
        }
        let Some(least) = least else { return Ok(false) };
        key.clear();
        key.extend_from_slice(least);
        self.last = Some(key.clone());
        Ok(true)
    }
}

impl Word {
    /// Returns the clustered key of the current entry, or `None` at the end.
    fn key(&self, table: &OpenTable, index: usize) -> SqlResult<Option<&[u8]>> {
        if self.at == self.batch.len() {
            return Ok(None);
        }
        let (key, value) = self.batch.get(self.at);
        table.clustered_key_of(index, key, value).map(Some)
    }

    /// Advances to the first entry after `last`.
    fn pass(
        &mut self,
        table: &OpenTable,
        index: usize,
        trx: &mut SessionTrx,
        view: Option<&ReadView>,
        entries: usize,
        last: Option<&[u8]>,
    ) -> SqlResult<()> {
        loop {
            match self.key(table, index)? {
                Some(key) if last.is_some_and(|last| key <= last) => self.at += 1,
                Some(_) => return Ok(()),
                None => {
                    let Some(mut range) = self.range.take() else { return Ok(()) };
                    trx.check_interrupt()?;
                    self.batch.clear();
                    self.at = 0;
                    let at = view.map_or(ReadAt::Latest, ReadAt::View);
                    let space = table.indexes[index].id;
                    let more = trx
                        .engine(table.engine)
                        .scan(&ScanRequest::forward(at, space, &range, entries), &mut self.batch)
                        .map_err(engine_error)?;
                    if more {
                        self.batch.cut(&mut range, Direction::Forward);
                        self.range = Some(range);
                    }
                }
            }
        }
    }
}
