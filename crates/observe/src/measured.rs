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
    // The measures from here on are rare.
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

/// Number of measures that most statements have.
const OFTEN: usize = Measure::PlanCacheHits as usize + 1;
const RARE: usize = Measure::NoGoodIndexUsed as usize + 1 - OFTEN;

/// All numbers of one statement, or sums of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    often: [u64; OFTEN],
    /// The other numbers, if one of them was added.
    rare: Option<[u64; RARE]>,
}

impl Measured {
    /// Number of measures.
    pub(crate) const COUNT: usize = OFTEN + RARE;

    /// Returns all numbers, in the order of [`Measure`].
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.often.into_iter().chain(self.rare.unwrap_or_default())
    }

    /// Returns the sums of these numbers.
    pub(crate) fn of_numbers(numbers: [u64; Measured::COUNT]) -> Measured {
        let mut measured = Measured::default();
        measured.often.copy_from_slice(&numbers[..OFTEN]);
        let rare = &numbers[OFTEN..];
        if rare.iter().any(|number| *number > 0) {
            measured.rare.insert([0; RARE]).copy_from_slice(rare);
        }
        measured
    }

    /// Returns whether there is no statement.
    pub(crate) fn is_empty(&self) -> bool {
        self.get(Measure::Calls) == 0
    }

    /// Adds to one number.
    #[inline]
    pub fn add(&mut self, what: Measure, n: u64) {
        let number = match (what as usize).checked_sub(OFTEN) {
            None => &mut self.often[what as usize],
            Some(_) if n == 0 => return,
            Some(place) => &mut self.rare.get_or_insert_default()[place],
        };
        *number = number.wrapping_add(n);
    }

    /// Returns one number.
    #[inline]
    pub fn get(&self, what: Measure) -> u64 {
        match (what as usize).checked_sub(OFTEN) {
            None => self.often[what as usize],
            Some(place) => self.rare.map_or(0, |rare| rare[place]),
        }
    }

    /// Adds all numbers of another. The fixed length lets the compiler add several at a time.
    #[inline]
    pub(crate) fn merge(&mut self, other: &Measured) {
        add_all(&mut self.often, &other.often);
        if let Some(theirs) = &other.rare {
            add_all(self.rare.get_or_insert_default(), theirs);
        }
    }
}

#[inline]
fn add_all<const N: usize>(sums: &mut [u64; N], numbers: &[u64; N]) {
    for (sum, number) in sums.iter_mut().zip(numbers) {
        *sum = sum.wrapping_add(*number);
    }
}
