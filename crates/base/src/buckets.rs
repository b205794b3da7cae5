//! Buckets of nearly constant relative precision for values of any size: `2^SUB_BITS` buckets per power of
//! two.
//!
//! ```text
//! SUB_BITS = 4
//! value   0 .. 15    16 .. 31    32, 34 .. 62    64, 68 .. 124    ...
//! bucket  0 .. 15    16 .. 31    32 ..     47    48 ..      63    ...
//! ```

/// Returns the number of buckets for the values below `2^magnitude_end`.
pub const fn bucket_count<const SUB_BITS: u32>(magnitude_end: u32) -> usize {
    ((magnitude_end - SUB_BITS + 1) as usize) << SUB_BITS
}

/// Returns the bucket of a value.
pub fn bucket_of<const SUB_BITS: u32>(value: u64) -> usize {
    let subs = 1 << SUB_BITS;
    if value < subs {
        return value as usize;
    }
    let shift = value.ilog2() - SUB_BITS;
    // The leading one bit of the shifted value adds one more power of two.
    ((u64::from(shift) << SUB_BITS) + (value >> shift)) as usize
}

/// Returns the largest value of a bucket.
pub fn last_in_bucket<const SUB_BITS: u32>(index: usize) -> u64 {
    let (index, subs) = (index as u64, 1 << SUB_BITS);
    if index < subs {
        return index;
    }
    let shift = index / subs - 1;
    // The very last bucket ends with the largest number.
    ((subs + index % subs + 1) << shift).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const SUB_BITS: u32>() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1 << shift) + ((1 << shift) / 3), u64::MAX >> (63 - shift)] {
                let index = bucket_of::<SUB_BITS>(value);
                let end = last_in_bucket::<SUB_BITS>(index);
                assert!(end >= value && end - value <= value >> SUB_BITS, "{value} {end}");
                assert!(index == 0 || last_in_bucket::<SUB_BITS>(index - 1) < value, "{value}");
                assert!(index < bucket_count::<SUB_BITS>((shift + 1).max(SUB_BITS)), "{value}");
            }
        }
        assert_eq!(last_in_bucket::<SUB_BITS>(bucket_count::<SUB_BITS>(64) - 1), u64::MAX);
    }

    #[test]
    fn every_value_lies_in_its_bucket_and_near_its_end() {
        check::<4>();
        check::<6>();
    }
}
