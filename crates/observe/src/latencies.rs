//! A histogram of latencies that takes little memory: only the powers of two in use have buckets.
//!
//! Values are microseconds. Eight buckets per power of two, so a percentile is at most 12.5 % too high.

use cohort_base::{bucket_of, last_in_bucket};

const SUB_BITS: u32 = 3;
const SUBS: usize = 1 << SUB_BITS;

/// A histogram of latencies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// The power of two of the first element of `octaves`; the first is that of the values below eight.
    first: usize,
    octaves: Vec<[u64; SUBS]>,
}

/// A bucket that has values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub number: usize,
    /// Lowest and highest value in microseconds.
    pub from_us: u64,
    pub to_us: u64,
    pub count: u64,
}

impl Latencies {
    /// Number of buckets of a power of two.
    pub(crate) const SUBS: usize = SUBS;

    /// Returns the first power of two, and the counts of all from it on.
    pub(crate) fn parts(&self) -> (usize, &[[u64; SUBS]]) {
        (self.first, &self.octaves)
    }

    /// Returns the histogram of these parts. Returns `None` if there is no such histogram.
    pub(crate) fn of_parts(first: usize, octaves: Vec<[u64; SUBS]>) -> Option<Latencies> {
        let end = first.checked_add(octaves.len())?;
        (end <= bucket_of::<SUB_BITS>(u64::MAX) / SUBS + 1).then_some(Latencies { first, octaves })
    }

    /// Bytes of one power of two.
    pub(crate) const OCTAVE_BYTES: usize = SUBS * 8;

    /// Adds one value. Returns the number of bytes that the histogram has grown by.
    #[inline]
    pub(crate) fn record(&mut self, microseconds: u64) -> usize {
        let bucket = bucket_of::<SUB_BITS>(microseconds);
        let (octave, place) = (bucket / SUBS, bucket % SUBS);
        let grown = if octave.wrapping_sub(self.first) < self.octaves.len() { 0 } else { self.reach(octave) };
        self.octaves[octave - self.first][place] += 1;
        grown
    }

    /// Makes room for a power of two.
    #[cold]
    fn reach(&mut self, octave: usize) -> usize {
        let before = self.octaves.len();
        if self.octaves.is_empty() {
            self.first = octave;
        }
        if octave < self.first {
            let missing = self.first - octave;
            self.octaves.reserve_exact(missing);
            self.octaves.splice(0..0, std::iter::repeat_n([0; SUBS], missing));
            self.first = octave;
        } else if octave - self.first >= self.octaves.len() {
            let len = octave - self.first + 1;
            self.octaves.reserve_exact(len - self.octaves.len());
            self.octaves.resize(len, [0; SUBS]);
        }
        (self.octaves.len() - before) * Self::OCTAVE_BYTES
    }

    /// Adds all values of another. Returns the number of bytes that the histogram has grown by.
    pub(crate) fn merge(&mut self, other: &Latencies) -> usize {
        let (Some(last), before) = (other.octaves.len().checked_sub(1), self.octaves.len()) else { return 0 };
        self.reach(other.first);
        self.reach(other.first + last);
        for (n, octave) in other.octaves.iter().enumerate() {
            let own = &mut self.octaves[other.first + n - self.first];
            own.iter_mut().zip(octave).for_each(|(own, theirs)| *own += theirs);
        }
        (self.octaves.len() - before) * Self::OCTAVE_BYTES
    }

    /// Returns the bytes of the buckets.
    pub(crate) fn bytes(&self) -> usize {
        self.octaves.len() * Self::OCTAVE_BYTES
    }

    /// Returns the buckets that have values.
    pub fn filled(&self) -> impl Iterator<Item = Bucket> + '_ {
        let counts = self.octaves.iter().flatten().enumerate();
        counts.filter(|(_, count)| **count > 0).map(|(place, count)| {
            let number = self.first * SUBS + place;
            let from_us = number.checked_sub(1).map_or(0, |before| last_in_bucket::<SUB_BITS>(before) + 1);
            Bucket { number, from_us, to_us: last_in_bucket::<SUB_BITS>(number), count: *count }
        })
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.octaves.iter().flatten().sum()
    }

    /// Returns the last value and the count of each bucket that is not empty.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.octaves.iter().flatten().copied().enumerate().filter(|(_, count)| *count > 0);
        counts.map(|(place, count)| (last_in_bucket::<SUB_BITS>(self.first * SUBS + place), count))
    }

    /// Returns the upper end of the bucket in microseconds that the share `p` (0..=1) of all values does not
    /// exceed. Returns 0 without values.
    pub fn percentile(&self, p: f64) -> u64 {
        let rank = ((self.count() as f64 * p).ceil() as u64).max(1);
        let mut seen = 0;
        for (place, count) in self.octaves.iter().flatten().enumerate() {
            seen += count;
            if seen >= rank {
                return last_in_bucket::<SUB_BITS>(self.first * SUBS + place);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_ramps_and_merges() {
        let (mut low, mut high) = (Latencies::default(), Latencies::default());
        assert_eq!((low.percentile(0.5), low.count()), (0, 0));
        (501..=1000).for_each(|n| _ = high.record(n));
        (1..=500).rev().for_each(|n| _ = low.record(n));
        let grown = low.merge(&high);
        assert_eq!(grown + low.merge(&Latencies::default()), Latencies::OCTAVE_BYTES);
        assert_eq!((low.count(), low.bytes()), (1000, 8 * Latencies::OCTAVE_BYTES));
        for (p, expected) in [(0.001, 1.0), (0.5, 500.0), (0.95, 950.0), (0.99, 990.0), (1.0, 1000.0)] {
            let got = low.percentile(p) as f64;
            assert!((1.0..=1.125).contains(&(got / expected)), "{p}: {got}");
        }
        let buckets: Vec<Bucket> = low.filled().collect();
        assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<u64>(), 1000);
        assert!(buckets.windows(2).all(|pair| pair[0].to_us + 1 == pair[1].from_us));
        assert_eq!((buckets[0].from_us, buckets[0].count), (1, 1));
        let mut other = high.clone();
        other.merge(&Latencies::default());
        assert_eq!(other, high);
    }

    #[test]
    fn only_powers_of_two_in_use_take_memory() {
        let mut found = Latencies::default();
        assert_eq!(found.record(100_000), Latencies::OCTAVE_BYTES);
        assert_eq!(found.record(100_001), 0);
        assert_eq!(found.record(u64::MAX) + found.record(0), found.bytes() - Latencies::OCTAVE_BYTES);
        assert_eq!((found.percentile(0.25), found.percentile(1.0)), (0, u64::MAX));
    }
}
