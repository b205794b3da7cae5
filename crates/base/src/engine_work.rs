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

struct Counters {
    pages_accessed: Cell<u64>,
    pages_read: Cell<u64>,
    read_ns: Cell<u64>,
    pages_prefetched: Cell<u64>,
    old_rows: Cell<u64>,
    lock_wait_ns: Cell<u64>,
}

thread_local! {
    static COUNTERS: Counters = const {
        Counters {
            pages_accessed: Cell::new(0),
            pages_read: Cell::new(0),
            read_ns: Cell::new(0),
            pages_prefetched: Cell::new(0),
            old_rows: Cell::new(0),
            lock_wait_ns: Cell::new(0),
        }
    };
}

fn add(counter: &Cell<u64>, n: u64) {
    counter.set(counter.get().wrapping_add(n));
}

impl EngineWork {
    /// Returns the counters of the running stack.
    #[inline(never)]
    pub fn here() -> EngineWork {
        COUNTERS.with(|counters| EngineWork {
            pages_accessed: counters.pages_accessed.get(),
            pages_read: counters.pages_read.get(),
            read_ns: counters.read_ns.get(),
            pages_prefetched: counters.pages_prefetched.get(),
            old_rows: counters.old_rows.get(),
            lock_wait_ns: counters.lock_wait_ns.get(),
        })
    }

    /// Sets the counters of the stack that the thread has just entered to those that it had.
    #[inline(never)]
    pub fn resume(self) {
        COUNTERS.with(|counters| {
            counters.pages_accessed.set(self.pages_accessed);
            counters.pages_read.set(self.pages_read);
            counters.read_ns.set(self.read_ns);
            counters.pages_prefetched.set(self.pages_prefetched);
            counters.old_rows.set(self.old_rows);
            counters.lock_wait_ns.set(self.lock_wait_ns);
        });
    }

    /// Returns the work since an earlier reading.
    pub fn since(&self, before: &EngineWork) -> EngineWork {
        EngineWork {
            pages_accessed: self.pages_accessed.wrapping_sub(before.pages_accessed),
            pages_read: self.pages_read.wrapping_sub(before.pages_read),
            read_ns: self.read_ns.wrapping_sub(before.read_ns),
            pages_prefetched: self.pages_prefetched.wrapping_sub(before.pages_prefetched),
            old_rows: self.old_rows.wrapping_sub(before.old_rows),
            lock_wait_ns: self.lock_wait_ns.wrapping_sub(before.lock_wait_ns),
        }
    }

    /// Returns the sum of two differences.
    pub fn plus(&self, more: &EngineWork) -> EngineWork {
        EngineWork {
            pages_accessed: self.pages_accessed.wrapping_add(more.pages_accessed),
            pages_read: self.pages_read.wrapping_add(more.pages_read),
            read_ns: self.read_ns.wrapping_add(more.read_ns),
            pages_prefetched: self.pages_prefetched.wrapping_add(more.pages_prefetched),
            old_rows: self.old_rows.wrapping_add(more.old_rows),
            lock_wait_ns: self.lock_wait_ns.wrapping_add(more.lock_wait_ns),
        }
    }

    /// Counts a page that a stack has requested.
    #[inline(never)]
    pub fn page_accessed() {
        COUNTERS.with(|counters| add(&counters.pages_accessed, 1));
    }

    /// Counts a page that is read from the disk.
    #[inline(never)]
    pub fn page_read() {
        COUNTERS.with(|counters| add(&counters.pages_read, 1));
    }

    /// Adds the time of a read, or of a wait for one, that began at `start`.
    #[inline(never)]
    pub fn read_since(start: Instant) {
        COUNTERS.with(|counters| add(&counters.read_ns, start.elapsed().as_nanos() as u64));
    }

    /// Counts a page that is requested in advance.
    #[inline(never)]
    pub fn page_prefetched() {
        COUNTERS.with(|counters| add(&counters.pages_prefetched, 1));
    }

    /// Counts a row of which an older version was needed.
    #[inline(never)]
    pub fn old_row() {
        COUNTERS.with(|counters| add(&counters.old_rows, 1));
    }

    /// Counts a wait for a lock.
    #[inline(never)]
    pub fn lock_waited(ns: u64) {
        COUNTERS.with(|counters| add(&counters.lock_wait_ns, ns));
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
