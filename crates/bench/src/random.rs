//! Pseudo-random numbers for workloads: fast and uniform, not cryptographically secure.

/// An xorshift generator, one per connection.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        // Spreads adjacent seeds over the whole range. The state must not be zero.
        Random(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a uniform number in `1..=n`.
    pub fn one_to(&mut self, n: u32) -> u32 {
        (((self.next() >> 32) * u64::from(n)) >> 32) as u32 + 1
    }

    /// Returns a number in `1..=n` with sysbench's default distribution (`special`): three of four numbers
    /// come from the middle hundredth of the range, the others from a bell curve over the whole range.
    pub fn one_to_skewed(&mut self, n: u32) -> u32 {
        if self.one_to(4) > 1 {
            let hot = n.div_ceil(100);
            return (n - hot) / 2 + self.one_to(hot);
        }
        const THROWS: u64 = 12;
        let sum: u64 = (0..THROWS).map(|_| u64::from(self.one_to(n))).sum();
        (sum / THROWS) as u32
    }

    /// Returns a number in `low..=high` with the non-uniform distribution `NURand` of TPC-C.
    pub fn non_uniform(&mut self, a: u32, low: u32, high: u32) -> u32 {
        /// The constant C of the standard; any number in `0..=a` is allowed.
        const SHIFT: u32 = 123;
        let (x, y) = (self.one_to(a + 1) - 1, low + self.one_to(high - low + 1) - 1);
        ((x | y) + SHIFT % (a + 1)) % (high - low + 1) + low
    }

    /// Appends sysbench's filler: `groups` groups of eleven digits, separated by dashes.
    pub fn digits(&mut self, groups: usize, out: &mut Vec<u8>) {
        for group in 0..groups {
            if group > 0 {
                out.push(b'-');
            }
            let mut number = self.next();
            for _ in 0..11 {
                out.push(b'0' + (number % 10) as u8);
                number /= 10;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fill_their_range_evenly() {
        let mut random = Random::new(0);
        let mut seen = [0u32; 10];
        for _ in 0..10_000 {
            seen[random.one_to(10) as usize - 1] += 1;
        }
        assert!(seen.iter().all(|n| (900..1100).contains(n)), "{seen:?}");
    }

    #[test]
    fn skewed_numbers_stay_in_their_range_and_most_are_in_the_middle() {
        let mut random = Random::new(3);
        let drawn: Vec<u32> = (0..10_000).map(|_| random.one_to_skewed(1000)).collect();
        assert!(drawn.iter().all(|n| (1..=1000).contains(n)));
        let hot = drawn.iter().filter(|n| (496..=505).contains(*n)).count();
        assert!((7400..8200).contains(&hot), "{hot} of 10,000");
        assert!((1..4).all(|n| (1..=n).contains(&random.one_to_skewed(n))));
    }

    #[test]
    fn non_uniform_numbers_stay_in_their_range() {
        let mut random = Random::new(5);
        for (a, low, high) in [(255, 0, 999), (1023, 1, 3000), (8191, 1, 100_000)] {
            assert!((0..10_000).all(|_| (low..=high).contains(&random.non_uniform(a, low, high))));
        }
    }

    #[test]
    fn the_filler_is_as_long_as_the_column_of_sysbench() {
        let mut out = Vec::new();
        Random::new(7).digits(10, &mut out);
        assert_eq!(out.len(), 119);
        assert_eq!(out.iter().filter(|b| **b == b'-').count(), 9);
    }
}
