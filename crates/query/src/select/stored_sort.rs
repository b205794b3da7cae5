//! Sorts stored rows.
//!
//! # Concepts
//! The batches read by a scan are kept. The sort works on *places*, 128-bit integers that consist of the
//! front of the first sort key ([`Field::front`]), the batch number and the row number. Fronts distinguish
//! most rows, and integers sort fast. Rows with equal fronts are then compared by all keys. The sort is
//! stable, because places increase with each row.
//!
//! With DISTINCT, the sort keys are the result columns ([`StoredWay::Columns`]), so equal rows become
//! adjacent, and the first one is kept.
//!
//! [`Field::front`]: cohort_types::Field::front
//! [`StoredWay::Columns`]: crate::plan::StoredWay::Columns

use std::cmp::Ordering;

use cohort_expr::{EvalContext, sort_rows};
use cohort_row::{Stored, StoredBatch};
use cohort_session::StatementContext;
use cohort_types::{CountBytes, Fronts, Interrupt, SqlResult, StoredColumns};

use crate::plan::SortItem;
use crate::select::Flow;
use crate::select::output::{Output, SORT_SLACK, count_sorted};
use crate::select::sink::StoredScan;

/// Number of places sorted between two checks for KILL: less than a millisecond.
const SORTED_AT_ONCE: usize = 8192;
/// Size of the batches in which single rows are kept.
const LOOSE_BYTES_MAX: usize = 1 << 20;
/// Number of rows sent at once.
const SENT_AT_ONCE: usize = 1024;

/// Rows to sort.
struct StoredSorter<'s> {
    sort: &'s [SortItem],
    /// The sort keys.
    keys: StoredColumns<'s>,
    /// Front encoding of the first key.
    fronts: Fronts,
    is_distinct: bool,
    /// Only this many first rows are needed.
    keep: usize,
    batches: Vec<StoredBatch>,
    places: Vec<u128>,
    /// Bytes charged to the statement.
    charged: usize,
}

/// Packs front, batch and row number into a place.
fn place(front: u64, batch: usize, row: usize) -> u128 {
    u128::from(front) << 64 | (batch as u128) << 32 | row as u128
}

fn front_of(place: u128) -> u64 {
    (place >> 64) as u64
}

impl Output<'_> {
    /// Sends columns of the rows, sorted by `keys`.
    pub(super) fn sort_stored(
        &mut self,
        ctx: &mut StatementContext<'_>,
        items: &[usize],
        keys: &[usize],
        mut scan: StoredScan<'_>,
    ) -> SqlResult<()> {
        let refuse = |error| scan.table.row_error(error);
        let layout = &scan.table.layout;
        let items = StoredColumns::new(layout, items.iter().copied(), &refuse);
        let reach = if self.select.count_all { u64::MAX } else { self.window.left() };
        let mut sorter = StoredSorter {
            sort: &self.select.sort,
            keys: StoredColumns::new(layout, keys.iter().copied(), &refuse),
            fronts: Fronts::of(self.select.sort[0].key.collation),
            is_distinct: self.select.distinct,
            keep: usize::try_from(reach).unwrap_or(usize::MAX),
            batches: Vec::new(),
            places: Vec::new(),
            charged: 0,
        };
        while let Some(found) = scan.next(ctx, usize::MAX)? {
            let rows = match found {
                Stored::Single => {
                    sorter.push_single(scan.cursor.single())?;
                    1
                }
                Stored::Entries(entries) => {
                    let rows = entries.len();
                    sorter.push_batch(scan.cursor.take_stored(), entries)?;
                    rows
                }
            };
            super::stored::rows_done(ctx, rows)?;
            sorter.charge(&ctx.eval)?;
            if sorter.places.len() >= sorter.keep.saturating_mul(2).saturating_add(SORT_SLACK) {
                sorter.order(&ctx.eval)?;
                sorter.drop_rest(&ctx.eval)?;
            }
        }
        sorter.order(&ctx.eval)?;
        count_sorted(ctx, self.select, sorter.places.len(), sorter.keep);
        for places in sorter.places.chunks(SENT_AT_ONCE) {
            let rows: Vec<&[u8]> = places.iter().map(|place| sorter.row(*place)).collect();
            if self.send_rows(ctx, &items, &rows)? == Flow::Stop {
                break;
            }
        }
        Ok(())
    }
}

impl StoredSorter<'_> {
    fn row(&self, place: u128) -> &[u8] {
        self.batches[(place >> 32) as u32 as usize].row(place as u32 as usize)
    }

    /// Returns the front of a row. Reads all keys, so that later reads cannot fail.
    #[inline]
    fn front(&self, row: &[u8]) -> SqlResult<u64> {
        let front = self.keys.front(0, row, self.fronts)?;
        for n in 1..self.sort.len() {
            self.keys.compare(n, row, row, self.sort[n].key.collation)?;
        }
        Ok(if self.sort[0].key.descending { !front } else { front })
    }

    fn push_batch(&mut self, batch: StoredBatch, rows: std::ops::Range<usize>) -> SqlResult<()> {
        self.places.reserve(rows.len());
        let at = self.batches.len();
        for (n, row) in rows.clone().zip(batch.rows(rows)) {
            let front = self.front(row)?;
            self.places.push(place(front, at, n));
        }
        self.batches.push(batch);
        Ok(())
    }

    fn push_single(&mut self, row: &[u8]) -> SqlResult<()> {
        let front = self.front(row)?;
        if self.batches.last().is_none_or(|batch| batch.size_bytes() >= LOOSE_BYTES_MAX) {
            self.batches.push(StoredBatch::default());
        }
        let at = self.batches.len() - 1;
        self.places.push(place(front, at, self.batches[at].len()));
        self.batches[at].push(row);
        Ok(())
    }

    /// Charges the statement for the memory in use.
    fn charge(&mut self, eval: &EvalContext<'_>) -> SqlResult<()> {
        let batches = self.batches.iter().map(StoredBatch::size_bytes).sum::<usize>();
        let bytes = batches + self.places.len() * size_of::<u128>();
        match bytes.checked_sub(self.charged) {
            Some(more) => eval.keep(more)?,
            None => eval.let_go(self.charged - bytes),
        }
        self.charged = bytes;
        Ok(())
    }

    /// Compares two rows by all keys.
    fn compare(&self, a: u128, b: u128) -> Ordering {
        let (a, b) = (self.row(a), self.row(b));
        for (n, item) in self.sort.iter().enumerate() {
            let order = self.keys.compare(n, a, b, item.key.collation);
            let order = order.expect("it was read when it came");
            if order.is_ne() {
                return if item.key.descending { order.reverse() } else { order };
            }
        }
        Ordering::Equal
    }

    /// Sorts the places. If the result is DISTINCT, keeps only the first of equal rows.
    fn order(&mut self, eval: &EvalContext<'_>) -> SqlResult<()> {
        let mut places = std::mem::take(&mut self.places);
        if places.len() <= SORTED_AT_ONCE {
            eval.steps(places.len() as u32)?;
            places.sort_unstable();
        } else {
            sort_rows(&mut places, 0, &|a, b| a.cmp(b), eval)?;
        }
        if places.windows(2).all(|pair| front_of(pair[0]) != front_of(pair[1])) {
            self.places = places;
            return Ok(());
        }
        self.places.reserve(places.len());
        let bytes: usize = self.batches.iter().map(StoredBatch::size_bytes).sum();
        let row_bytes = bytes / places.len().max(1);
        for run in places.chunk_by(|a, b| front_of(*a) == front_of(*b)) {
            match run {
                [place] => self.places.push(*place),
                run => self.push_run(run.to_vec(), row_bytes, eval)?,
            }
        }
        Ok(())
    }

    /// Appends places whose rows have equal fronts.
    fn push_run(&mut self, mut run: Vec<u128>, row_bytes: usize, eval: &EvalContext<'_>) -> SqlResult<()> {
        let key_bytes = row_bytes * run.len();
        sort_rows(&mut run, key_bytes, &|a, b| self.compare(*a, *b), eval)?;
        if self.is_distinct {
            eval.steps(run.len() as u32)?;
            eval.count_bytes(row_bytes * run.len())?;
            run.dedup_by(|b, a| self.compare(*a, *b).is_eq());
        }
        self.places.append(&mut run);
        Ok(())
    }

    /// Keeps only the first rows.
    fn drop_rest(&mut self, eval: &EvalContext<'_>) -> SqlResult<()> {
        self.places.truncate(self.keep);
        let before = std::mem::take(&mut self.batches);
        let mut kept = StoredBatch::default();
        for at in &mut self.places {
            if kept.size_bytes() >= LOOSE_BYTES_MAX {
                self.batches.push(std::mem::take(&mut kept));
            }
            let row = before[(*at >> 32) as u32 as usize].row(*at as u32 as usize);
            *at = place(front_of(*at), self.batches.len(), kept.len());
            kept.push(row);
        }
        self.batches.push(kept);
        self.charge(eval)
    }
}
