//! Histograms of a slot: four buckets for each power of two, in microseconds.

use cohort_base::{bucket_of, last_in_bucket};

const SUB_BITS: u32 = 2;

/// Number of buckets. The last one begins at 14 seconds.
pub const BINS: usize = 96;

/// Returns what a counter has grown by. One that was reset counts from zero.
pub(super) fn difference(before: u64, now: u64) -> u64 {
    now.checked_sub(before).unwrap_or(now)
}

/// Returns the bucket of a duration in microseconds.
pub fn bin_of(us: u64) -> usize {
    bucket_of::<SUB_BITS>(us).min(BINS - 1)
}

/// Counts of values by bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bins(pub(super) Box<[u32; BINS]>);

impl Bins {
    /// Returns the counts that `now` has in excess of `before`.
    pub(super) fn between(before: &[u64], now: &[u64]) -> Bins {
        let mut counts = Box::new([0; BINS]);
        for (n, count) in counts.iter_mut().enumerate() {
            let of = |all: &[u64]| all.get(n).copied().unwrap_or(0);
            *count = u32::try_from(difference(of(before), of(now))).unwrap_or(u32::MAX);
        }
        Bins(counts)
    }

    pub(super) fn merge(&mut self, other: &Bins) {
        self.0.iter_mut().zip(&*other.0).for_each(|(own, others)| *own = own.saturating_add(*others));
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|count| u64::from(*count)).sum()
    }

    /// Returns the value in microseconds that the share `p` (0..=1) of all values does not exceed; `None`
    /// without values. Within a bucket values count as evenly spread.
    pub fn percentile(&self, p: f64) -> Option<f64> {
        let all = self.count();
        if all == 0 {
            return None;
        }
        let rank = all as f64 * p;
        let mut below = 0.0;
        for (bin, count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            let count = f64::from(*count);
            if below + count >= rank {
                let begin = bin.checked_sub(1).map_or(0, |before| last_in_bucket::<SUB_BITS>(before) + 1);
                let end = last_in_bucket::<SUB_BITS>(bin) + 1;
                return Some(begin as f64 + (end - begin) as f64 * (rank - below).max(0.0) / count);
            }
            below += count;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_within_their_bucket() {
        let mut counts = vec![0; BINS];
        for us in 1..=10_000_u64 {
            counts[bin_of(us)] += 1;
        }
        let bins = Bins::between(&[], &counts);
        for (p, expected) in [(0.5, 5000.0), (0.95, 9500.0), (0.99, 9900.0)] {
            let found = bins.percentile(p).expect("values") / expected;
            assert!((0.9..1.1).contains(&found), "{p}: {found}");
        }
        assert_eq!(Bins::between(&counts, &counts).percentile(0.5), None);
        assert_eq!((bin_of(0), bin_of(u64::MAX)), (0, BINS - 1));
    }
}
