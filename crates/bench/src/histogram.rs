//! Latencies in buckets of one sixty-fourth of their magnitude: a percentile is off by at most 1.6 %.

use cohort_base::{bucket_count, bucket_of, last_in_bucket};

const SUB_BITS: u32 = 6;

/// Counts of durations in nanoseconds.
#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; bucket_count::<SUB_BITS>(64)], total: 0 }
    }
}

impl Histogram {
    pub fn record(&mut self, nanoseconds: u64) {
        self.counts[bucket_of::<SUB_BITS>(nanoseconds)] += 1;
        self.total += 1;
    }

    pub fn merge(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
        self.total += other.total;
    }

    /// How many durations were recorded.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The duration in nanoseconds that the share `p` (0..=1) of all did not exceed; 0 without any.
    pub fn percentile(&self, p: f64) -> u64 {
        let rank = ((self.total as f64 * p).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return last_in_bucket::<SUB_BITS>(index);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_ramp() {
        let (mut low, mut high) = (Histogram::default(), Histogram::default());
        (1..=500).for_each(|n| low.record(n * 1000));
        (501..=1000).for_each(|n| high.record(n * 1000));
        low.merge(&high);
        assert_eq!(low.total(), 1000);
        for (p, expected) in [(0.5, 500_000.0), (0.95, 950_000.0), (0.99, 990_000.0), (1.0, 1e6)] {
            let got = low.percentile(p) as f64;
            assert!((got / expected - 1.0).abs() < 0.02, "{p}: {got}");
        }
        assert_eq!(Histogram::default().percentile(0.5), 0);
    }
}
