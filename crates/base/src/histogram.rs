//! Counts of values in buckets of one sixty-fourth of their magnitude: a percentile is off by at most 1.6 %.
//!
//! Recording is two additions and a comparison, without a lock. Where one thread at a time records, because
//! it holds the lock of what it measures, [`Histogram::record_alone`] does it without the processor's locked
//! instructions.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{bucket_count, bucket_of, last_in_bucket};

const SUB_BITS: u32 = 6;
/// Values of `2^MAGNITUDE_END` and above share the last bucket: 73 minutes in nanoseconds.
const MAGNITUDE_END: u32 = 42;
const BUCKETS: usize = bucket_count::<SUB_BITS>(MAGNITUDE_END);

/// Values of any unit since the server's start. Written by the measuring thread, read by any.
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
        // Nearly always false, and then nothing is written.
        if value > self.max.load(Ordering::Relaxed) {
            self.max.fetch_max(value, Ordering::Relaxed);
        }
    }

    /// Adds a value so many times while nobody else can: the caller holds a lock that every thread that
    /// records here holds.
    pub fn record_alone(&self, value: u64, times: u64) {
        add_alone(&self.buckets[bucket(value)], times);
        add_alone(&self.sum, value * times);
        if value > self.max.load(Ordering::Relaxed) {
            self.max.store(value, Ordering::Relaxed);
        }
    }

    /// Sum of all values.
    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }

    /// The largest value.
    pub fn max(&self) -> u64 {
        self.max.load(Ordering::Relaxed)
    }

    /// What was recorded so far. Values recorded meanwhile may be in it or not.
    pub fn snapshot(&self) -> HistogramSnapshot {
        let counts: Vec<u64> = self.buckets.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        HistogramSnapshot { count: counts.iter().sum(), counts, sum: self.sum(), max: self.max() }
    }
}

/// Adds to a counter that only this thread writes now.
pub fn add_alone(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

/// A histogram at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramSnapshot {
    counts: Vec<u64>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Default for HistogramSnapshot {
    /// No values.
    fn default() -> HistogramSnapshot {
        HistogramSnapshot { counts: vec![0; BUCKETS], count: 0, sum: 0, max: 0 }
    }
}

impl HistogramSnapshot {
    /// Adds the values of another one.
    pub fn merge(&mut self, other: &HistogramSnapshot) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(own, others)| *own += others);
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all values.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The largest value.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean; 0 without values.
    pub fn mean(&self) -> u64 {
        self.sum.checked_div(self.count).unwrap_or(0)
    }

    /// The value that the share `p` (0..=1) of all did not exceed: the upper end of its bucket; 0 without
    /// values.
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

    /// How many values are below `2^magnitude`, exactly; magnitudes above 42 count as 42.
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
