//! The statements of a minute that took most time.

use hashbrown::HashMap;

use crate::measured::{Measure, Measured};
use crate::statements::Statements;

/// Statements of a minute.
pub const TOP_MAX: usize = 64;

/// Sums of the statements of one digest within a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopStatement {
    pub digest: u128,
    pub calls: u64,
    pub errors: u64,
    pub latency_us: u64,
    pub rows_examined: u64,
}

impl TopStatement {
    pub(super) const WORDS: usize = 6;

    pub(super) fn encode(&self, out: &mut Vec<u64>) {
        out.extend([(self.digest >> 64) as u64, self.digest as u64]);
        out.extend([self.calls, self.errors, self.latency_us, self.rows_examined]);
    }

    /// Reads the next statement; `None` if there is none.
    pub(super) fn decode(words: &mut impl Iterator<Item = u64>) -> Option<TopStatement> {
        let mut next = || words.next();
        let digest = u128::from(next()?) << 64 | u128::from(next()?);
        let (calls, errors, latency_us, rows_examined) = (next()?, next()?, next()?, next()?);
        (calls > 0).then_some(TopStatement { digest, calls, errors, latency_us, rows_examined })
    }
}

const MEASURES: [Measure; 4] = [Measure::Calls, Measure::Errors, Measure::Latency, Measure::RowsExamined];

/// Compares the sums of statements with those of the minute before.
#[derive(Default)]
pub struct TopStatements {
    /// `None` before the first call.
    before: Option<HashMap<u128, [u64; 4], ahash::RandomState>>,
}

impl TopStatements {
    /// Returns the statements that took most time since the last call. The first call returns none.
    pub fn walk(&mut self, statements: &Statements) -> Vec<TopStatement> {
        self.compare(&statements.brief())
    }

    fn compare(&mut self, sums: &[(u128, Measured)]) -> Vec<TopStatement> {
        let mut now: HashMap<u128, [u64; 4], ahash::RandomState> = HashMap::default();
        for (digest, measured) in sums {
            let sum = now.entry(*digest).or_default();
            sum.iter_mut().zip(MEASURES).for_each(|(sum, measure)| *sum += measured.get(measure));
        }
        let mut all = Vec::new();
        let Some(known) = self.before.replace(now) else { return all };
        for (digest, sums) in self.before.iter().flatten() {
            let before = known.get(digest).copied().unwrap_or_default();
            // Sums that are smaller than before belong to a row that was reset or evicted meanwhile.
            let before = if sums[0] < before[0] { [0; 4] } else { before };
            let since = |n: usize| sums[n].saturating_sub(before[n]);
            if since(0) > 0 {
                all.push(TopStatement {
                    digest: *digest,
                    calls: since(0),
                    errors: since(1),
                    latency_us: since(2) / 1000,
                    rows_examined: since(3),
                });
            }
        }
        all.sort_by_key(|top| (std::cmp::Reverse(top.latency_us), top.digest));
        all.truncate(TOP_MAX);
        all.shrink_to_fit();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(rows: &[(u128, u64, u64)]) -> Vec<(u128, Measured)> {
        let row = |&(digest, calls, us): &(u128, u64, u64)| {
            let mut measured = Measured::default();
            measured.add(Measure::Calls, calls);
            measured.add(Measure::Latency, us * 1000);
            (digest, measured)
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn a_minute_has_differences_and_a_bound() {
        let mut tops = TopStatements::default();
        assert_eq!(tops.compare(&sums(&[(1, 10, 500), (2, 1, 9)])), []);
        // The second row was evicted and came again; a schema adds a second row of the first digest.
        let found = tops.compare(&sums(&[(1, 12, 700), (1, 1, 50), (2, 1, 4), (3, 5, 2000)]));
        let brief: Vec<_> = found.iter().map(|top| (top.digest, top.calls, top.latency_us)).collect();
        assert_eq!(brief, [(3, 5, 2000), (1, 3, 250)]);
        let many: Vec<_> = (10..200).map(|digest| (digest, 1, 1)).collect();
        assert_eq!(tops.compare(&sums(&many)).len(), TOP_MAX);
    }
}
