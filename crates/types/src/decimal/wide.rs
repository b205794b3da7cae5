//! Unsigned 512-bit arithmetic, which fits the product of two mantissas (432 bits) and the dividend of a
//! division with all its extra digits (65 + 38 + 47 digits, 499 bits).

use std::cmp::Ordering;

/// A 512-bit number as little-endian limbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wide([u32; LIMBS]);

const LIMBS: usize = 16;

/// Number of powers of ten that fit.
const POWERS: usize = 154;

static POW10: [Wide; POWERS] = powers();

const fn powers() -> [Wide; POWERS] {
    let mut table = [Wide([0; LIMBS]); POWERS];
    table[0].0[0] = 1;
    let mut n = 1;
    while n < POWERS {
        let mut carry = 0u64;
        let mut i = 0;
        while i < LIMBS {
            let product = table[n - 1].0[i] as u64 * 10 + carry;
            table[n].0[i] = product as u32;
            carry = product >> 32;
            i += 1;
        }
        n += 1;
    }
    table
}

impl Wide {
    pub(super) const ZERO: Wide = Wide([0; LIMBS]);

    pub(super) fn from_limbs(limbs: &[u32; 7]) -> Wide {
        let mut wide = Wide::ZERO;
        wide.0[..7].copy_from_slice(limbs);
        wide
    }

    /// Returns the low limbs. The caller guarantees that the others are zero.
    pub(super) fn to_limbs(self) -> [u32; 7] {
        debug_assert!(self.0[7..].iter().all(|&l| l == 0));
        let mut limbs = [0; 7];
        limbs.copy_from_slice(&self.0[..7]);
        limbs
    }

    pub(super) fn pow10(n: usize) -> &'static Wide {
        &POW10[n]
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0 == [0; LIMBS]
    }

    pub(super) fn is_odd(&self) -> bool {
        self.0[0] & 1 == 1
    }

    /// Returns the number of limbs in use.
    fn len(&self) -> usize {
        LIMBS - self.0.iter().rev().take_while(|&&l| l == 0).count()
    }

    /// Returns the number of decimal digits, 0 for zero.
    pub(super) fn digits(&self) -> usize {
        let len = self.len();
        if len == 0 {
            return 0;
        }
        let bits = len * 32 - self.0[len - 1].leading_zeros() as usize;
        // floor(bits * log10(2)) is the result or one below it.
        let low = bits * 1233 / 4096;
        if low < POWERS && *self >= POW10[low] { low + 1 } else { low }
    }

    pub(super) fn add(&self, other: &Wide) -> Wide {
        let mut sum = Wide::ZERO;
        let mut carry = 0u64;
        for i in 0..LIMBS {
            let v = u64::from(self.0[i]) + u64::from(other.0[i]) + carry;
            sum.0[i] = v as u32;
            carry = v >> 32;
        }
        debug_assert_eq!(carry, 0);
        sum
    }

    /// Returns the difference. `other` must not exceed `self`.
    pub(super) fn sub(&self, other: &Wide) -> Wide {
        let mut difference = Wide::ZERO;
        let mut borrow = 0i64;
        for i in 0..LIMBS {
            let v = i64::from(self.0[i]) - i64::from(other.0[i]) + borrow;
            difference.0[i] = v as u32;
            borrow = v >> 32;
        }
        debug_assert_eq!(borrow, 0);
        difference
    }

    pub(super) fn mul(&self, other: &Wide) -> Wide {
        let mut product = Wide::ZERO;
        let (a, b) = (self.len(), other.len());
        debug_assert!(a + b <= LIMBS + 1);
        for i in 0..a {
            let mut carry = 0u64;
            for j in 0..b {
                if i + j < LIMBS {
                    let v =
                        u64::from(self.0[i]) * u64::from(other.0[j]) + u64::from(product.0[i + j]) + carry;
                    product.0[i + j] = v as u32;
                    carry = v >> 32;
                }
            }
            if i + b < LIMBS {
                product.0[i + b] = carry as u32;
            }
        }
        product
    }

    pub(super) fn mul_pow10(&self, n: usize) -> Wide {
        if n == 0 { *self } else { self.mul(&POW10[n]) }
    }

    /// Computes `self * factor + addend` in place.
    pub(super) fn mul_add_small(&mut self, factor: u32, addend: u32) {
        let mut carry = u64::from(addend);
        for limb in &mut self.0 {
            let v = u64::from(*limb) * u64::from(factor) + carry;
            *limb = v as u32;
            carry = v >> 32;
        }
    }

    /// Divides in place and returns the remainder.
    pub(super) fn div_small(&mut self, divisor: u32) -> u32 {
        let mut rest = 0u64;
        for i in (0..self.len()).rev() {
            let v = rest << 32 | u64::from(self.0[i]);
            self.0[i] = (v / u64::from(divisor)) as u32;
            rest = v % u64::from(divisor);
        }
        rest as u32
    }

    /// Returns quotient and remainder (Knuth, The Art of Computer Programming 2, 4.3.1, algorithm D).
    /// `divisor` is not 0.
    pub(super) fn div_rem(&self, divisor: &Wide) -> (Wide, Wide) {
        let n = divisor.len();
        if self < divisor {
            return (Wide::ZERO, *self);
        }
        if n == 1 {
            let mut quotient = *self;
            let rest = quotient.div_small(divisor.0[0]);
            let mut remainder = Wide::ZERO;
            remainder.0[0] = rest;
            return (quotient, remainder);
        }
        let shift = divisor.0[n - 1].leading_zeros();
        let d = divisor.shl(shift).0;
        let mut u = [0u32; LIMBS + 1];
        u[..LIMBS].copy_from_slice(&self.shl(shift).0);
        if shift > 0 {
            u[LIMBS] = self.0[LIMBS - 1] >> (32 - shift);
        }
        let mut quotient = Wide::ZERO;
        for j in (0..=self.len() - n).rev() {
            quotient.0[j] = subtract_multiple(&mut u[j..=j + n], &d[..n]);
        }
        let mut remainder = Wide::ZERO;
        for i in 0..n {
            let high = if shift > 0 { u64::from(u[i + 1]) << 32 } else { 0 };
            remainder.0[i] = ((high | u64::from(u[i])) >> shift) as u32;
        }
        (quotient, remainder)
    }

    fn shl(&self, shift: u32) -> Wide {
        if shift == 0 {
            return *self;
        }
        let mut shifted = Wide::ZERO;
        let mut carry = 0;
        for i in 0..LIMBS {
            shifted.0[i] = self.0[i] << shift | carry;
            carry = self.0[i] >> (32 - shift);
        }
        shifted
    }
}

/// Computes one digit of algorithm D: subtracts the largest multiple of `d` from the window `u`, which is one
/// limb longer, and returns the factor.
fn subtract_multiple(u: &mut [u32], d: &[u32]) -> u32 {
    let n = d.len();
    let top = u64::from(u[n]) << 32 | u64::from(u[n - 1]);
    let mut q = top / u64::from(d[n - 1]);
    let mut r = top % u64::from(d[n - 1]);
    while q >> 32 != 0 || q * u64::from(d[n - 2]) > (r << 32 | u64::from(u[n - 2])) {
        q -= 1;
        r += u64::from(d[n - 1]);
        if r >> 32 != 0 {
            break;
        }
    }
    let (mut carry, mut borrow) = (0u64, 0i64);
    for i in 0..n {
        let product = q * u64::from(d[i]) + carry;
        carry = product >> 32;
        let v = i64::from(u[i]) - i64::from(product as u32) + borrow;
        u[i] = v as u32;
        borrow = v >> 32;
    }
    let v = i64::from(u[n]) - carry as i64 + borrow;
    u[n] = v as u32;
    if v < 0 {
        q -= 1;
        let mut carry = 0u64;
        for i in 0..n {
            let v = u64::from(u[i]) + u64::from(d[i]) + carry;
            u[i] = v as u32;
            carry = v >> 32;
        }
        u[n] = u[n].wrapping_add(carry as u32);
    }
    q as u32
}

impl PartialOrd for Wide {
    fn partial_cmp(&self, other: &Wide) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Wide {
    fn cmp(&self, other: &Wide) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}
