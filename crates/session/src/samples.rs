//! [`IndexSamples`]: samples of indexes and of table rows, for the planner's estimates.

use std::collections::HashMap;
use std::sync::Arc;

use cohort_base::IndexId;
use cohort_engine::{Batch, Engine, KeyRange, ReadAt, ScanRequest};
use cohort_table::OpenIndex;
use parking_lot::Mutex;

/// Number of separator keys requested from the engine.
const KEYS: usize = 128;
/// Positions in an index at which neighbouring entries are compared, and the entries read at each.
const PLACES: usize = 32;
const ENTRIES_OF_A_PLACE: usize = 32;
/// Largest number of entries for which an index is read completely.
const SMALL: usize = PLACES * ENTRIES_OF_A_PLACE;
/// Maximum number of samples. When it is reached, all are dropped.
const SAMPLES_MAX: usize = 10_000;

/// Rows of a table sample, against which conditions are evaluated, and the number of adjacent rows at each
/// position.
const ROWS: usize = 512;
const ROWS_OF_A_PLACE: usize = 4;
/// Maximum size of a row sample in bytes, and the number of tables that samples are kept of.
const ROW_BYTES_MAX: usize = 256 << 10;
const ROW_SAMPLES_MAX: usize = 256;

/// The samples of all indexes.
#[derive(Default)]
pub(crate) struct IndexSamples {
    all: Mutex<HashMap<IndexId, Arc<Sample>>>,
    rows: Mutex<HashMap<IndexId, Arc<RowSample>>>,
}

impl IndexSamples {
    pub(crate) fn of_index(&self, index: IndexId) -> Option<Arc<Sample>> {
        self.all.lock().get(&index).cloned()
    }

    pub(crate) fn keep_of_index(&self, index: IndexId, sample: &Arc<Sample>) {
        let mut all = self.all.lock();
        if all.len() >= SAMPLES_MAX {
            all.clear();
        }
        all.insert(index, Arc::clone(sample));
    }

    pub(crate) fn of_rows(&self, index: IndexId) -> Option<Arc<RowSample>> {
        self.rows.lock().get(&index).cloned()
    }

    pub(crate) fn keep_of_rows(&self, index: IndexId, sample: &Arc<RowSample>) {
        let mut all = self.rows.lock();
        if all.len() >= ROW_SAMPLES_MAX {
            all.clear();
        }
        all.insert(index, Arc::clone(sample));
    }
}

/// A sample of a table's stored rows.
pub(crate) struct RowSample {
    /// Rows in the table when the sample was taken.
    pub(crate) entries: u64,
    pub(crate) rows: Batch,
}

impl RowSample {
    pub(crate) fn take(engine: &dyn Engine, index: IndexId, entries: u64) -> Option<RowSample> {
        let trx = engine.begin();
        let mut rows = Batch::default();
        if entries <= ROWS as u64 {
            let all = KeyRange::default();
            trx.scan(&ScanRequest::forward(ReadAt::Latest, index, &all, ROWS), &mut rows).ok()?;
            return Some(RowSample { entries, rows });
        }
        for start in engine.sample(index, KEYS).ok()? {
            let range = KeyRange { start: Some(start), end: None };
            trx.scan(&ScanRequest::forward(ReadAt::Latest, index, &range, ROWS_OF_A_PLACE), &mut rows)
                .ok()?;
            if rows.size_bytes() > ROW_BYTES_MAX {
                break;
            }
        }
        Some(RowSample { entries, rows })
    }
}

/// A sample of an index.
pub(crate) struct Sample {
    /// Entries in the index when the sample was taken.
    pub(crate) entries: u64,
    /// Separator keys, in order, which divide the index into ranges of about the same size.
    keys: Vec<Vec<u8>>,
    /// Average rows that share the first key part, the first two, and so on.
    pub(crate) rows_per_key: Vec<f64>,
}

impl Sample {
    pub(crate) fn take(engine: &dyn Engine, index: &OpenIndex, entries: u64) -> Option<Sample> {
        let keys = engine.sample(index.id, KEYS).ok().filter(|keys| !keys.is_empty())?;
        let mut counts = vec![Neighbours::default(); index.parts.len()];
        let trx = engine.begin();
        let step = keys.len().div_ceil(PLACES).max(1);
        let mut batch = Batch::default();
        let (places, at_each) = match is_small(entries) {
            true => (vec![None], SMALL + 1),
            false => (keys.iter().step_by(step).cloned().map(Some).collect(), ENTRIES_OF_A_PLACE),
        };
        for start in places {
            batch.clear();
            let range = KeyRange { start, end: None };
            trx.scan(&ScanRequest::forward(ReadAt::Latest, index.id, &range, at_each), &mut batch).ok()?;
            for n in 1..batch.len() {
                let shared = shared_parts(index, batch.get(n - 1).0, batch.get(n).0);
                for (part, count) in counts.iter_mut().enumerate() {
                    count.pairs += 1;
                    count.different += u64::from(part >= shared);
                }
            }
        }
        if is_small(entries) {
            let rows = batch.len() as f64;
            let rows_per_key = counts.iter().map(|count| rows / (count.different + 1) as f64).collect();
            return Some(Sample { entries, keys, rows_per_key });
        }
        for pair in keys.windows(2) {
            let shared = shared_parts(index, &pair[0], &pair[1]);
            counts.iter_mut().skip(shared).for_each(|count| count.changes += 1);
        }
        let rows_per_key = counts.iter().map(|count| count.rows_per_key(entries)).collect();
        Some(Sample { entries, keys, rows_per_key })
    }

    /// Returns the estimated share of the index that lies in a range.
    pub(crate) fn share(&self, range: &KeyRange) -> f64 {
        let is_in = |key: &&Vec<u8>| {
            range.start.as_ref().is_none_or(|start| *key >= start)
                && range.end.as_ref().is_none_or(|end| *key < end)
        };
        let found = self.keys.iter().filter(is_in).count() as f64;
        // A range between two separators still covers part of their distance.
        found.max(0.3) / self.keys.len() as f64
    }
}

/// Returns whether a sample taken at `then` entries is still valid at `now` entries.
pub(crate) fn holds_for(then: u64, now: u64) -> bool {
    then.abs_diff(now) <= 100.max(then.max(now) / 3)
}

/// Returns whether an index with this number of entries is read completely.
pub(crate) fn is_small(entries: u64) -> bool {
    entries <= SMALL as u64
}

/// Differences counted between neighbouring entries and between separator keys.
#[derive(Clone, Default)]
struct Neighbours {
    pairs: u64,
    different: u64,
    /// Separator keys that differ from the preceding separator.
    changes: u64,
}

impl Neighbours {
    /// Estimates the rows per key. Long runs of equal keys show in the separators: at least one run begins
    /// between two that differ. Short runs show in neighbouring entries.
    fn rows_per_key(&self, entries: u64) -> f64 {
        let entries = entries.max(1) as f64;
        let runs = entries * self.different as f64 / self.pairs.max(1) as f64;
        (entries / runs.max(self.changes as f64 + 1.0)).max(1.0)
    }
}

/// Returns the number of leading key parts that two keys share.
fn shared_parts(index: &OpenIndex, a: &[u8], b: &[u8]) -> usize {
    let (mut left, mut right) = (a, b);
    for (n, (_, part)) in index.parts.iter().enumerate() {
        let (at, other) = (left, right);
        if part.skip(&mut left).is_err() || part.skip(&mut right).is_err() {
            return n;
        }
        if at[..at.len() - left.len()] != other[..other.len() - right.len()] {
            return n;
        }
    }
    index.parts.len()
}
