//! The size of the tests, and their random numbers.

/// Returns the size for the long variant if `COHORT_LONG_TESTS` is set, else for the short one.
pub fn long_or<T>(long: T, short: T) -> T {
    if std::env::var_os("COHORT_LONG_TESTS").is_some() { long } else { short }
}

/// A generator of random numbers from a seed (SplitMix64).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn byte(&mut self) -> u8 {
        self.next() as u8
    }
}
