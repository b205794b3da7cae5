//! Latencies in buckets of one sixty-fourth of their magnitude: a percentile is off by at most 1.6 %.

const SUB_BITS: u32 = 6;
const SUBS: usize = 1 << SUB_BITS;
const BUCKETS: usize = (64 - SUB_BITS as usize + 1) * SUBS;

/// Counts of durations in nanoseconds.
#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; BUCKETS], total: 0 }
    }
}

impl Histogram {
    pub fn record(&mut self, nanoseconds: u64) {
        self.counts[bucket(nanoseconds)] += 1;
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
                return upper_end(index);
            }
        }
        0
    }
}

fn bucket(value: u64) -> usize {
    if value < SUBS as u64 {
        return value as usize;
    }
    let magnitude = 63 - value.leading_zeros();
    let sub = (value >> (magnitude - SUB_BITS)) as usize & (SUBS - 1);
    (magnitude - SUB_BITS + 1) as usize * SUBS + sub
}

fn upper_end(index: usize) -> u64 {
    if index < SUBS {
        return index as u64;
    }
    let shift = (index / SUBS - 1) as u32;
    let next = (SUBS + index % SUBS + 1) as u128;
    u64::try_from((next << shift) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_below_the_end_of_its_bucket_and_near_it() {
        for shift in 0..63 {
            for value in [1u64 << shift, (1 << shift) + (1 << shift) / 3, (2u64 << shift) - 1] {
                let end = upper_end(bucket(value));
                assert!(end >= value && end - value <= value / 64, "{value} {end}");
            }
        }
        assert_eq!(upper_end(bucket(u64::MAX)), u64::MAX);
    }

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
