//! Work that storage engines and the lock table do for the running stack: page accesses, page reads, waits.
//!
//! A statement, or a part of its plan, reads the counters before and after: the difference is its work. The
//! counters belong to the stack, not to the thread: a fiber takes its own along when it sleeps
//! ([`EngineWork::here`] before, [`EngineWork::resume`] after), so a difference is right even if the fiber
//! ended its sleep on another thread.
//!
//! The functions that add are not inlined: a caller may be on the stack of a sleeping fiber, where it must
//! not use thread-local variables itself.

use std::cell::Cell;
use std::time::Instant;

/// Counters of one stack since its thread or fiber began, or the difference of two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineWork {
    /// Pages requested from the buffer pool, those that had to be read included.
    pub pages_accessed: u64,
    /// Pages read from the disk.
    pub pages_read: u64,
    /// Time of these reads, with waits for pages that others were reading, in nanoseconds.
    pub read_ns: u64,
    /// Pages requested in advance.
    pub pages_prefetched: u64,
    /// Rows of which an older version was needed.
    pub old_rows: u64,
    /// Time of waits for row and metadata locks, in nanoseconds.
    pub lock_wait_ns: u64,
}

thread_local! {
    static COUNTERS: Cell<EngineWork> = const { Cell::new(EngineWork::of_numbers([0; EngineWork::NUMBERS])) };
}

fn count(change: impl FnOnce(&mut EngineWork)) {
    COUNTERS.with(|counters| {
        let mut work = counters.get();
        change(&mut work);
        counters.set(work);
    });
}

impl EngineWork {
    /// Number of counters.
    pub const NUMBERS: usize = 6;

    /// Returns the counters in the order of the fields.
    pub const fn numbers(self) -> [u64; EngineWork::NUMBERS] {
        let EngineWork { pages_accessed, pages_read, read_ns, pages_prefetched, old_rows, lock_wait_ns } =
            self;
        [pages_accessed, pages_read, read_ns, pages_prefetched, old_rows, lock_wait_ns]
    }

    /// Returns the counters with these numbers.
    pub const fn of_numbers(numbers: [u64; EngineWork::NUMBERS]) -> EngineWork {
        let [pages_accessed, pages_read, read_ns, pages_prefetched, old_rows, lock_wait_ns] = numbers;
        EngineWork { pages_accessed, pages_read, read_ns, pages_prefetched, old_rows, lock_wait_ns }
    }

    fn with(self, other: &EngineWork, each: impl Fn(u64, u64) -> u64) -> EngineWork {
        let (own, other) = (self.numbers(), other.numbers());
        EngineWork::of_numbers(std::array::from_fn(|n| each(own[n], other[n])))
    }

    /// Returns the counters of the running stack.
    #[inline(never)]
    pub fn here() -> EngineWork {
        COUNTERS.get()
    }

    /// Sets the counters of the stack that the thread has just entered to those that it had.
    #[inline(never)]
    pub fn resume(self) {
        COUNTERS.set(self);
    }

    /// Returns the work since an earlier reading.
    pub fn since(&self, before: &EngineWork) -> EngineWork {
        self.with(before, u64::wrapping_sub)
    }

    /// Returns the sum of two differences.
    pub fn plus(&self, more: &EngineWork) -> EngineWork {
        self.with(more, u64::wrapping_add)
    }

    /// Counts a page that a stack has requested.
    #[inline(never)]
    pub fn page_accessed() {
        count(|work| work.pages_accessed = work.pages_accessed.wrapping_add(1));
    }

    /// Counts a page that is read from the disk.
    #[inline(never)]
    pub fn page_read() {
        count(|work| work.pages_read = work.pages_read.wrapping_add(1));
    }

    /// Adds the time of a read, or of a wait for one, that began at `start`.
    #[inline(never)]
    pub fn read_since(start: Instant) {
        count(|work| work.read_ns = work.read_ns.wrapping_add(start.elapsed().as_nanos() as u64));
    }

    /// Counts a page that is requested in advance.
    #[inline(never)]
    pub fn page_prefetched() {
        count(|work| work.pages_prefetched = work.pages_prefetched.wrapping_add(1));
    }

    /// Counts a row of which an older version was needed.
    #[inline(never)]
    pub fn old_row() {
        count(|work| work.old_rows = work.old_rows.wrapping_add(1));
    }

    /// Counts a wait for a lock.
    #[inline(never)]
    pub fn lock_waited(ns: u64) {
        count(|work| work.lock_wait_ns = work.lock_wait_ns.wrapping_add(ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_keeps_its_counters_when_another_one_runs_meanwhile() {
        let before = EngineWork::here();
        EngineWork::page_accessed();
        let asleep = EngineWork::here();
        // Another stack runs on the thread.
        EngineWork::default().resume();
        EngineWork::page_read();
        asleep.resume();
        EngineWork::old_row();
        let work = EngineWork::here().since(&before);
        assert_eq!(work, EngineWork { pages_accessed: 1, old_rows: 1, ..EngineWork::default() });
    }
}
