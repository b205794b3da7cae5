//! Histograms with a relative bucket width of one sixty-fourth: a percentile is off by at most 1.6 %.
//!
//! Recording takes two additions and a comparison, without a lock. If only one thread at a time records,
//! because it holds the lock of the measured object, [`Histogram::record_alone`] avoids the processor's
//! locked instructions.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{bucket_count, bucket_of, last_in_bucket};

const SUB_BITS: u32 = 6;
/// Values from `2^MAGNITUDE_END` on share the last bucket: 73 minutes in nanoseconds.
const MAGNITUDE_END: u32 = 42;
const BUCKETS: usize = bucket_count::<SUB_BITS>(MAGNITUDE_END);

/// Values of any unit since the server started. Written by the measuring thread, read by any.
#[derive(Debug)]
pub struct Histogram {
    buckets: Box<[AtomicU64; BUCKETS]>,
    sum: AtomicU64,
    max: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            buckets: Box::new([const { AtomicU64::new(0) }; BUCKETS]),
            sum: AtomicU64::new(0),
            max: AtomicU64::new(0),
        }
    }
}

impl Histogram {
    /// Adds a value.
    pub fn record(&self, value: u64) {
        self.buckets[bucket(value)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
        // Nearly always false; then nothing is written.
        if value > self.max.load(Ordering::Relaxed) {
            self.max.fetch_max(value, Ordering::Relaxed);
        }
    }

    /// Adds a value `times` times without locked instructions. The caller must hold a lock that every thread
    /// holds when it records here.
    pub fn record_alone(&self, value: u64, times: u64) {
        add_alone(&self.buckets[bucket(value)], times);
        add_alone(&self.sum, value * times);
        if value > self.max.load(Ordering::Relaxed) {
            self.max.store(value, Ordering::Relaxed);
        }
    }

    /// Returns the sum of all values.
    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }

    /// Returns the largest value.
    pub fn max(&self) -> u64 {
        self.max.load(Ordering::Relaxed)
    }

    /// Returns the values recorded so far. It may or may not include values recorded concurrently.
    pub fn snapshot(&self) -> HistogramSnapshot {
        let counts: Vec<u64> = self.buckets.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        HistogramSnapshot { count: counts.iter().sum(), counts, sum: self.sum(), max: self.max() }
    }
}

/// Adds to a counter that no other thread writes at the same time.
pub fn add_alone(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

/// Contents of a histogram at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramSnapshot {
    counts: Vec<u64>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Default for HistogramSnapshot {
    /// Returns an empty histogram.
    fn default() -> HistogramSnapshot {
        HistogramSnapshot { counts: vec![0; BUCKETS], count: 0, sum: 0, max: 0 }
    }
}

impl HistogramSnapshot {
    /// Adds the values of another histogram.
    pub fn merge(&mut self, other: &HistogramSnapshot) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(own, others)| *own += others);
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum of all values.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the largest value.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns the mean; 0 without values.
    pub fn mean(&self) -> u64 {
        self.sum.checked_div(self.count).unwrap_or(0)
    }

    /// Returns a value that the share `p` (0..=1) of all values does not exceed: the upper end of a bucket.
    /// Returns 0 without values.
    pub fn percentile(&self, p: f64) -> u64 {
        let rank = ((self.count as f64 * p).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                // The last bucket has no end.
                return if index + 1 == BUCKETS {
                    self.max
                } else {
                    last_in_bucket::<SUB_BITS>(index).min(self.max)
                };
            }
        }
        0
    }

    /// Returns the last value and the count of each bucket that is not empty.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.counts.iter().copied().enumerate().filter(|(_, count)| *count > 0);
        counts.map(|(index, count)| (last_in_bucket::<SUB_BITS>(index), count))
    }

    /// Returns the exact number of values below `2^magnitude`; magnitudes above 42 count as 42.
    pub fn below(&self, magnitude: u32) -> u64 {
        let end = bucket(1 << magnitude.min(MAGNITUDE_END));
        self.counts[..end].iter().sum()
    }
}

fn bucket(value: u64) -> usize {
    bucket_of::<SUB_BITS>(value).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_ramp_and_of_nothing() {
        let (low, high) = (Histogram::default(), Histogram::default());
        (1..=500).for_each(|n| low.record(n * 1000));
        (501..=1000).for_each(|n| high.record_alone(n * 1000, 1));
        let mut found = HistogramSnapshot::default();
        [low, high].iter().for_each(|part| found.merge(&part.snapshot()));
        assert_eq!((found.count(), found.sum(), found.max()), (1000, 500_500_000, 1_000_000));
        for (p, expected) in [(0.5, 500_000.0), (0.95, 950_000.0), (0.99, 990_000.0), (1.0, 1e6)] {
            let got = found.percentile(p) as f64;
            assert!((0.9999..1.02).contains(&(got / expected)), "{p}: {got}");
        }
        let nothing = Histogram::default().snapshot();
        assert_eq!((nothing.percentile(0.5), nothing.mean(), nothing.below(20)), (0, 0, 0));
    }

    #[test]
    fn powers_of_two_cut_exactly() {
        let histogram = Histogram::default();
        [15, 16, 1023, 1024, 1025, u64::MAX / 2].iter().for_each(|n| histogram.record(*n));
        let found = histogram.snapshot();
        assert_eq!([4, 10, 11, 41].map(|m| found.below(m)), [1, 3, 5, 5]);
        assert_eq!(found.percentile(1.0), u64::MAX / 2, "the last bucket ends with the largest value");
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        let histogram = Histogram::default();
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let histogram = &histogram;
                scope.spawn(move || (0..10_000).for_each(|n| histogram.record(thread * 10_000 + n)));
            }
        });
        let found = histogram.snapshot();
        assert_eq!((found.count(), found.sum(), found.max()), (40_000, 40_000 * 39_999 / 2, 39_999));
    }
}
