//! Sorting that KILL can end.
//!
//! The standard library's sort cannot be left in the middle. So long inputs are sorted in runs, which are
//! short enough not to be interrupted, and the runs are merged, which reports every row to the [`Interrupt`].

use std::cmp::Ordering;
use std::vec::IntoIter;

use cohort_types::{Interrupt, SqlResult};

/// Rows of a run: sorting one takes some milliseconds.
const RUN_ROWS: usize = 8192;

/// Sorts; equal rows stay in the order they came.
pub fn sort_rows<T>(
    rows: &mut Vec<T>,
    compare: &dyn Fn(&T, &T) -> Ordering,
    interrupt: &dyn Interrupt,
) -> SqlResult<()> {
    interrupt.steps(RUN_ROWS.min(rows.len()) as u32)?;
    if rows.len() <= RUN_ROWS {
        rows.sort_by(compare);
        return Ok(());
    }
    let count = rows.len();
    let mut unsorted = std::mem::take(rows).into_iter();
    let mut runs = Vec::with_capacity(count / RUN_ROWS + 1);
    while unsorted.len() > 0 {
        interrupt.steps(RUN_ROWS as u32)?;
        let mut run: Vec<T> = unsorted.by_ref().take(RUN_ROWS).collect();
        run.sort_by(compare);
        runs.push(run.into_iter());
    }
    drop(unsorted);
    let mut merge = Merge::new(runs, compare);
    rows.reserve_exact(count);
    while let Some(row) = merge.pop() {
        interrupt.step()?;
        rows.push(row);
    }
    Ok(())
}

/// Runs with a heap of those that have rows left, the one with the smallest first row on top.
struct Merge<'c, T> {
    runs: Vec<IntoIter<T>>,
    heap: Vec<usize>,
    compare: &'c dyn Fn(&T, &T) -> Ordering,
}

impl<'c, T> Merge<'c, T> {
    fn new(runs: Vec<IntoIter<T>>, compare: &'c dyn Fn(&T, &T) -> Ordering) -> Merge<'c, T> {
        let heap = (0..runs.len()).collect();
        let mut merge = Merge { runs, heap, compare };
        for at in (0..merge.heap.len() / 2).rev() {
            merge.sink(at);
        }
        merge
    }

    /// The smallest row left.
    fn pop(&mut self) -> Option<T> {
        let top = *self.heap.first()?;
        let row = self.runs[top].next();
        if self.runs[top].len() == 0 {
            self.heap.swap_remove(0);
        }
        self.sink(0);
        row
    }

    /// Moves the entry at a place of the heap down to where it belongs.
    fn sink(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.comes_before(self.heap[child], self.heap[least]) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }

    /// Of equal rows the one of the earlier run comes first.
    fn comes_before(&self, a: usize, b: usize) -> bool {
        let heads = self.runs[a].as_slice().first().zip(self.runs[b].as_slice().first());
        let order = heads.map_or(Ordering::Equal, |(x, y)| (self.compare)(x, y));
        order.then(a.cmp(&b)).is_lt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohort_types::{ErrorCode, SqlError, Uninterrupted};
    use std::cell::Cell;

    #[test]
    fn long_inputs_are_sorted_and_stable() {
        for count in [0, 1, RUN_ROWS, RUN_ROWS + 1, 5 * RUN_ROWS + 17] {
            let mut rows: Vec<(usize, usize)> = (0..count).map(|n| (n * 7919 % 100, n)).collect();
            let mut expected = rows.clone();
            expected.sort();
            sort_rows(&mut rows, &|a, b| a.0.cmp(&b.0), &Uninterrupted).expect("uninterrupted");
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
            assert!(sort_rows(&mut rows, &|a, b| a.cmp(b), &After(Cell::new(steps))).is_err(), "{steps}");
        }
    }
}
