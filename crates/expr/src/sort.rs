//! Interruptible sorting.
//!
//! The standard library's sort cannot be interrupted. Long inputs are therefore split into runs that are
//! sorted without interruption, and merged with a report to the [`Interrupt`] for each row. With long keys, a
//! run has fewer rows, down to one, and every comparison reports the bytes of a key.

use std::cmp::Ordering;
use std::vec::IntoIter;

use cohort_types::{CountBytes, Interrupt, SqlResult};

/// Maximum rows of a run, which take some milliseconds to sort.
const RUN_ROWS: usize = 8192;
/// Maximum key bytes of a run.
const RUN_BYTES: usize = 1 << 20;

/// Sorts rows in a stable way. `key_bytes` is the approximate size of all keys.
pub fn sort_rows<T>(
    rows: &mut Vec<T>,
    key_bytes: usize,
    compare: &dyn Fn(&T, &T) -> Ordering,
    interrupt: &dyn Interrupt,
) -> SqlResult<()> {
    let row_bytes = key_bytes / rows.len().max(1);
    let run_rows = (RUN_BYTES / row_bytes.max(1)).clamp(1, RUN_ROWS);
    interrupt.steps(run_rows.min(rows.len()) as u32)?;
    if rows.len() <= run_rows {
        rows.sort_by(compare);
        return Ok(());
    }
    let count = rows.len();
    let mut unsorted = std::mem::take(rows).into_iter();
    let mut runs = Vec::with_capacity(count / run_rows + 1);
    while unsorted.len() > 0 {
        interrupt.steps(run_rows as u32)?;
        let mut run: Vec<T> = unsorted.by_ref().take(run_rows).collect();
        run.sort_by(compare);
        runs.push(run.into_iter());
    }
    drop(unsorted);
    let mut merge = Merge::new(runs, Comparison { compare, row_bytes, interrupt })?;
    rows.reserve_exact(count);
    while let Some(row) = merge.pop()? {
        interrupt.step()?;
        rows.push(row);
    }
    Ok(())
}

/// A merge of sorted runs, with a heap of the runs that have rows left, by their first rows.
struct Merge<'c, T> {
    runs: Vec<IntoIter<T>>,
    heap: Vec<usize>,
    order: Comparison<'c, T>,
}

/// A comparison of rows that reports to the interrupt.
struct Comparison<'c, T> {
    compare: &'c dyn Fn(&T, &T) -> Ordering,
    /// Average key bytes of a row.
    row_bytes: usize,
    interrupt: &'c dyn Interrupt,
}

impl<'c, T> Merge<'c, T> {
    fn new(runs: Vec<IntoIter<T>>, order: Comparison<'c, T>) -> SqlResult<Merge<'c, T>> {
        let heap = (0..runs.len()).collect();
        let mut merge = Merge { runs, heap, order };
        for at in (0..merge.heap.len() / 2).rev() {
            merge.sink(at)?;
        }
        Ok(merge)
    }

    /// Returns the smallest remaining row.
    fn pop(&mut self) -> SqlResult<Option<T>> {
        let Some(&top) = self.heap.first() else { return Ok(None) };
        let row = self.runs[top].next();
        if self.runs[top].len() == 0 {
            self.heap.swap_remove(0);
        }
        self.sink(0)?;
        Ok(row)
    }

    /// Moves the entry at position `at` of the heap down to its place.
    fn sink(&mut self, mut at: usize) -> SqlResult<()> {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.comes_before(self.heap[child], self.heap[least])? {
                    least = child;
                }
            }
            if least == at {
                return Ok(());
            }
            self.heap.swap(at, least);
            at = least;
        }
    }

    /// Returns true if run `a` comes first: equal rows are taken from the earlier run.
    fn comes_before(&self, a: usize, b: usize) -> SqlResult<bool> {
        self.order.interrupt.count_bytes(self.order.row_bytes)?;
        let heads = self.runs[a].as_slice().first().zip(self.runs[b].as_slice().first());
        let order = heads.map_or(Ordering::Equal, |(x, y)| (self.order.compare)(x, y));
        Ok(order.then(a.cmp(&b)).is_lt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohort_types::{ErrorCode, SqlError, Uninterrupted};
    use std::cell::Cell;

    #[test]
    fn long_inputs_are_sorted_and_stable() {
        let counts = [0, 1, RUN_ROWS, RUN_ROWS + 1, 5 * RUN_ROWS + 17];
        let short = counts.map(|count| (count, 0));
        for (count, row_bytes) in short.into_iter().chain([(100, 30_000), (100, RUN_BYTES)]) {
            let mut rows: Vec<(usize, usize)> = (0..count).map(|n| (n * 7919 % 100, n)).collect();
            let mut expected = rows.clone();
            expected.sort();
            let compare = |a: &(usize, usize), b: &(usize, usize)| a.0.cmp(&b.0);
            sort_rows(&mut rows, count * row_bytes, &compare, &Uninterrupted).expect("uninterrupted");
            assert_eq!(rows, expected);
        }
    }

    struct After(Cell<u32>);

    impl Interrupt for After {
        fn steps(&self, rounds: u32) -> SqlResult<()> {
            let left = self.0.get().checked_sub(rounds);
            self.0.set(left.ok_or_else(|| SqlError::new(ErrorCode::QueryInterrupted, ""))?);
            Ok(())
        }
    }

    #[test]
    fn a_long_sort_can_be_ended_anywhere() {
        let count = 10 * RUN_ROWS as u32;
        for steps in [0, count / 2, count, 3 * count / 2] {
            let mut rows: Vec<u32> = (0..count).rev().collect();
            assert!(sort_rows(&mut rows, 0, &|a, b| a.cmp(b), &After(Cell::new(steps))).is_err(), "{steps}");
        }
    }

    #[test]
    fn long_keys_are_counted_at_every_comparison() {
        let mut compared = Cell::new(0);
        let compare = |a: &u32, b: &u32| {
            compared.set(compared.get() + 1);
            a.cmp(b)
        };
        let mut rows: Vec<u32> = (0..100).rev().collect();
        let steps = After(Cell::new(10 * (RUN_BYTES / 256) as u32));
        assert!(sort_rows(&mut rows, 100 * RUN_BYTES, &compare, &steps).is_err());
        assert!((1..=10).contains(compared.get_mut()), "{compared:?}");
    }
}
