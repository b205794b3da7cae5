//! The numbers that one statement adds to its row.

/// A number of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Measure {
    Calls,
    Errors,
    Warnings,
    /// Time until the reply may leave, in nanoseconds.
    Latency,
    /// Time of waits for row and metadata locks, in nanoseconds.
    LockWait,
    /// Time between the end of the statement and the moment its reply may leave, in nanoseconds.
    CommitWait,
    RowsSent,
    RowsExamined,
    RowsAffected,
    PlanCacheHits,
    TmpTables,
    TmpDiskTables,
    FullJoin,
    FullRangeJoin,
    Range,
    RangeCheck,
    Scan,
    SortMergePasses,
    SortRange,
    SortRows,
    SortScan,
    NoIndexUsed,
    NoGoodIndexUsed,
}

const MEASURES: usize = Measure::NoGoodIndexUsed as usize + 1;

/// All numbers of one statement, or sums of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured([u64; MEASURES]);

impl Measured {
    /// Adds to one number.
    #[inline]
    pub fn add(&mut self, what: Measure, n: u64) {
        let number = &mut self.0[what as usize];
        *number = number.wrapping_add(n);
    }

    /// Returns one number.
    #[inline]
    pub fn get(&self, what: Measure) -> u64 {
        self.0[what as usize]
    }

    /// Adds all numbers of another. The fixed length lets the compiler add several at a time.
    #[inline]
    pub(crate) fn merge(&mut self, other: &Measured) {
        for (own, theirs) in self.0.iter_mut().zip(&other.0) {
            *own = own.wrapping_add(*theirs);
        }
    }
}
