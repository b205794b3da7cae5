//! Exact numbers of up to 65 digits.
//!
//! A number is a sign, a binary mantissa below 10^65 and a scale. MariaDB computes with groups of nine digits
//! instead. Where this is visible (quotients have whole groups after the point), the results here have the
//! same digits. Mantissas that fit 128 bits, nearly all, take a fast path.

mod packed;
mod text;
mod wide;

use std::cmp::Ordering;

use wide::Wide;

/// An exact decimal number: a magnitude below 10^65, a sign, and a scale, which is the number of digits after
/// the point. `1.50` and `1.5` compare equal and print differently.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    /// The digits as one integer, least significant limb first.
    limbs: [u32; 7],
    /// Never set on zero.
    negative: bool,
    scale: u8,
}

/// Loss of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// No loss.
    Nothing,
    /// Digits after the point, or text after the number.
    Fraction,
    /// The number was too large; the result is the nearest limit.
    Range,
    /// The text has no number; the result is zero.
    All,
}

/// The result would need more than 65 digits before the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

/// Powers of ten that fit 128 bits.
const SMALL_POWERS: [u128; 39] = {
    let mut powers = [1; 39];
    let mut n = 1;
    while n < powers.len() {
        powers[n] = powers[n - 1] * 10;
        n += 1;
    }
    powers
};

/// Returns 10^n if it fits 128 bits.
#[inline]
fn small_power(n: usize) -> Option<u128> {
    SMALL_POWERS.get(n).copied()
}

/// Treatment of dropped digits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounding {
    /// Truncate.
    Cut,
    /// Round half away from zero.
    HalfUp,
}

impl Decimal {
    /// Maximum number of digits.
    pub const MAX_PRECISION: u8 = 65;
    /// Maximum number of digits after the point.
    pub const MAX_SCALE: u8 = 38;
    /// 0.
    pub const ZERO: Decimal = Decimal { limbs: [0; 7], negative: false, scale: 0 };

    /// Returns `mantissa / 10^scale`. Scales above 38 are rounded to 38.
    pub fn from_i128(mantissa: i128, scale: u8) -> Decimal {
        let number = Decimal::small(mantissa.unsigned_abs(), mantissa < 0, scale);
        if scale <= Decimal::MAX_SCALE {
            return number;
        }
        let wide = scaled_down(number.wide(), usize::from(scale - Decimal::MAX_SCALE), Rounding::HalfUp);
        Decimal::exact(wide, number.negative, Decimal::MAX_SCALE)
    }

    /// Converts an integer.
    pub fn from_i64(v: i64) -> Decimal {
        Decimal::small(v.unsigned_abs().into(), v < 0, 0)
    }

    /// Converts an unsigned integer.
    pub fn from_u64(v: u64) -> Decimal {
        Decimal::small(v.into(), false, 0)
    }

    #[inline]
    fn small(magnitude: u128, negative: bool, scale: u8) -> Decimal {
        let limb = |i: u32| (magnitude >> (32 * i)) as u32;
        let limbs = [limb(0), limb(1), limb(2), limb(3), 0, 0, 0];
        Decimal { limbs, negative: negative && magnitude != 0, scale }
    }

    /// Returns the mantissa if it fits 128 bits.
    #[inline]
    fn as_small(&self) -> Option<u128> {
        let [a, b, c, d, rest @ ..] = self.limbs;
        if rest[0] | rest[1] | rest[2] != 0 {
            return None;
        }
        let half = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        Some(u128::from(half(a, b)) | u128::from(half(c, d)) << 64)
    }

    /// Returns the mantissa if it fits 64 bits.
    #[inline]
    fn as_short(&self) -> Option<u64> {
        let [a, b, rest @ ..] = self.limbs;
        let is_short = rest[0] | rest[1] | rest[2] | rest[3] | rest[4] == 0;
        is_short.then(|| u64::from(a) | u64::from(b) << 32)
    }

    /// Returns the mantissa at a scale that is not below its own, if it fits 128 bits.
    fn as_small_at(&self, scale: u8) -> Option<u128> {
        match scale - self.scale {
            0 => self.as_small(),
            by => {
                let power = small_power(by.into())?;
                match (self.as_short(), u64::try_from(power)) {
                    // A product of two 64-bit numbers cannot overflow.
                    (Some(short), Ok(power)) => Some(u128::from(short) * u128::from(power)),
                    _ => self.as_small()?.checked_mul(power),
                }
            }
        }
    }

    fn wide(&self) -> Wide {
        Wide::from_limbs(&self.limbs)
    }

    /// Makes a number from a mantissa known to be below 10^65.
    fn exact(mantissa: Wide, negative: bool, scale: u8) -> Decimal {
        Decimal { limbs: mantissa.to_limbs(), negative: negative && !mantissa.is_zero(), scale }
    }

    /// Brings a mantissa of any scale within the limits: digits beyond the 38th after the point are rounded,
    /// and further ones truncated if the number would have more than 65 digits.
    fn fit(mantissa: Wide, negative: bool, scale: usize) -> Result<Decimal, Overflow> {
        let max_scale = usize::from(Decimal::MAX_SCALE);
        let (mut mantissa, mut scale) = (mantissa, scale);
        if scale > max_scale {
            mantissa = scaled_down(mantissa, scale - max_scale, Rounding::HalfUp);
            scale = max_scale;
        }
        let excess = mantissa.digits().saturating_sub(usize::from(Decimal::MAX_PRECISION));
        if excess > scale {
            return Err(Overflow);
        }
        if excess > 0 {
            mantissa = scaled_down(mantissa, excess, Rounding::Cut);
            scale -= excess;
        }
        Ok(Decimal::exact(mantissa, negative, scale as u8))
    }

    /// Converts a double by its shortest text, as MariaDB does.
    pub fn from_f64(v: f64) -> (Decimal, Lost) {
        if v.is_nan() {
            return (Decimal::ZERO, Lost::All);
        }
        if v.is_infinite() {
            let max = Decimal::max_of(Decimal::MAX_PRECISION, 0);
            return (if v < 0.0 { max.neg() } else { max }, Lost::Range);
        }
        Decimal::parse(format!("{v:e}").as_bytes())
    }

    /// Converts to an integer, rounding half away from zero.
    pub fn to_i64(&self) -> (i64, Lost) {
        let limit = if self.negative { i64::MIN } else { i64::MAX };
        match self.to_integer() {
            Some((magnitude, lost)) => {
                let signed = if self.negative { -i128::from(magnitude) } else { magnitude.into() };
                i64::try_from(signed).map_or((limit, Lost::Range), |v| (v, lost))
            }
            None => (limit, Lost::Range),
        }
    }

    /// Converts to an unsigned integer, rounding half away from zero. Returns 0 and [`Lost::Range`] for
    /// negative numbers.
    pub fn to_u64(&self) -> (u64, Lost) {
        match self.to_integer() {
            Some((0, lost)) => (0, lost),
            _ if self.negative => (0, Lost::Range),
            Some(result) => result,
            None => (u64::MAX, Lost::Range),
        }
    }

    /// Returns the rounded magnitude if it fits 64 bits.
    fn to_integer(self) -> Option<(u64, Lost)> {
        let rounded = self.round(0).ok()?;
        let lost = if rounded == self { Lost::Nothing } else { Lost::Fraction };
        Some((u64::try_from(rounded.as_small()?).ok()?, lost))
    }

    /// Returns the nearest double.
    pub fn to_f64(&self) -> f64 {
        if let (Some(small), 0..=22) = (self.as_small(), self.scale)
            && small < 1 << 53
        {
            // Both operands are exact doubles, so the quotient is correctly rounded.
            let v = small as f64 / 10f64.powi(i32::from(self.scale));
            return if self.negative { -v } else { v };
        }
        let mut text = Vec::with_capacity(72);
        self.write_text(&mut text);
        std::str::from_utf8(&text).ok().and_then(|t| t.parse().ok()).expect("a decimal's text is a number")
    }

    /// Returns the number of digits after the point.
    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// Returns the number of digits before the point, 0 for numbers below 1.
    pub fn int_digits(&self) -> u8 {
        (self.wide().digits() as u8).saturating_sub(self.scale)
    }

    /// Returns the total number of digits, at least 1.
    pub fn precision(&self) -> u8 {
        (self.int_digits() + self.scale).max(1)
    }

    /// Returns whether the number is 0.
    pub fn is_zero(&self) -> bool {
        self.limbs == [0; 7]
    }

    /// Returns whether the number is below 0.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Returns the sum. Its scale is the larger one.
    pub fn add(&self, other: &Decimal) -> Result<Decimal, Overflow> {
        let scale = self.scale.max(other.scale);
        if let (Some(a), Some(b)) = (self.as_small_at(scale), other.as_small_at(scale)) {
            const HEADROOM: u128 = 1 << 126;
            if a < HEADROOM && b < HEADROOM {
                let signed = |v: u128, negative| if negative { -(v as i128) } else { v as i128 };
                let sum = signed(a, self.negative) + signed(b, other.negative);
                return Ok(Decimal::small(sum.unsigned_abs(), sum < 0, scale));
            }
        }
        let a = self.wide().mul_pow10(usize::from(scale - self.scale));
        let b = other.wide().mul_pow10(usize::from(scale - other.scale));
        let (magnitude, negative) = match (self.negative == other.negative, a >= b) {
            (true, _) => (a.add(&b), self.negative),
            (false, true) => (a.sub(&b), self.negative),
            (false, false) => (b.sub(&a), other.negative),
        };
        Decimal::fit(magnitude, negative, scale.into())
    }

    /// Returns the difference. Its scale is the larger one.
    pub fn sub(&self, other: &Decimal) -> Result<Decimal, Overflow> {
        self.add(&other.neg())
    }

    /// Returns the product. Its scale is the sum of both, at most 38.
    pub fn mul(&self, other: &Decimal) -> Result<Decimal, Overflow> {
        let negative = self.negative != other.negative;
        let scale = usize::from(self.scale) + usize::from(other.scale);
        if let (true, Some(a), Some(b)) =
            (scale <= usize::from(Decimal::MAX_SCALE), self.as_short(), other.as_short())
        {
            return Ok(Decimal::small(u128::from(a) * u128::from(b), negative, scale as u8));
        }
        if let (true, Some(a), Some(b)) =
            (scale <= usize::from(Decimal::MAX_SCALE), self.as_small(), other.as_small())
            && let Some(product) = a.checked_mul(b)
        {
            return Ok(Decimal::small(product, negative, scale as u8));
        }
        Decimal::fit(self.wide().mul(&other.wide()), negative, scale)
    }

    /// Returns the quotient, or `None` if `other` is 0. It has at least `increment` (div_precision_increment)
    /// more digits after the point than `self`, in whole groups of nine as in MariaDB. Further digits are
    /// truncated; only digits beyond the 38th are rounded. The caller rounds to the digits of the result's
    /// type where the result leaves the expression.
    pub fn div(&self, other: &Decimal, increment: u8) -> Option<Result<Decimal, Overflow>> {
        if other.is_zero() {
            return None;
        }
        let groups = |digits: u8| digits.div_ceil(9) * 9;
        let (fa, fb) = (groups(self.scale), groups(other.scale));
        let increment = increment.saturating_sub(fa - self.scale + fb - other.scale);
        let scale = usize::from(fa + fb).saturating_add(increment.into()).div_ceil(9) * 9;
        let scale = scale.min(45);
        // No underflow: the scale is either 45 or not below the dividend's, and no scale exceeds 38.
        let shift = scale + usize::from(other.scale) - usize::from(self.scale);
        let quotient = self.wide().mul_pow10(shift).div_rem(&other.wide()).0;
        let (quotient, scale) = match scale.checked_sub(usize::from(Decimal::MAX_SCALE)) {
            Some(over) if over > 0 => (scaled_down(quotient, over, Rounding::HalfUp), scale - over),
            _ => (quotient, scale),
        };
        Some(Decimal::fit(quotient, self.negative != other.negative, scale))
    }

    /// Returns the truncated integer quotient, or `None` if `other` is 0.
    pub fn div_int(&self, other: &Decimal) -> Option<Result<Decimal, Overflow>> {
        let (a, b) = self.aligned(other)?;
        Some(Decimal::fit(a.div_rem(&b).0, self.negative != other.negative, 0))
    }

    /// Returns the remainder with the sign of `self`, or `None` if `other` is 0.
    pub fn rem(&self, other: &Decimal) -> Option<Decimal> {
        let (a, b) = self.aligned(other)?;
        let rest = Decimal::fit(a.div_rem(&b).1, self.negative, self.scale.max(other.scale).into());
        Some(rest.expect("a remainder has no more digits before the point than the divisor"))
    }

    /// Returns both mantissas at the larger scale, or `None` if `other` is 0.
    fn aligned(&self, other: &Decimal) -> Option<(Wide, Wide)> {
        if other.is_zero() {
            return None;
        }
        let scale = self.scale.max(other.scale);
        let a = self.wide().mul_pow10(usize::from(scale - self.scale));
        Some((a, other.wide().mul_pow10(usize::from(scale - other.scale))))
    }

    /// Returns the negated number.
    pub fn neg(&self) -> Decimal {
        Decimal { negative: !self.negative && !self.is_zero(), ..*self }
    }

    /// Returns the number without its sign.
    pub fn abs(&self) -> Decimal {
        Decimal { negative: false, ..*self }
    }

    /// Rounds half away from zero to `scale` digits after the point, padding with zeros. A negative scale
    /// rounds before the point.
    pub fn round(&self, scale: i32) -> Result<Decimal, Overflow> {
        self.rescaled(scale, Rounding::HalfUp)
    }

    /// Truncates to `scale` digits after the point, without padding.
    pub fn truncate(&self, scale: i32) -> Decimal {
        let cut = scale.min(i32::from(self.scale));
        self.rescaled(cut, Rounding::Cut).expect("cutting digits makes no number larger")
    }

    fn rescaled(&self, scale: i32, rounding: Rounding) -> Result<Decimal, Overflow> {
        let scale = scale.clamp(-i32::from(Decimal::MAX_PRECISION) - 1, Decimal::MAX_SCALE.into());
        let drop = i32::from(self.scale) - scale;
        if drop == 0 {
            return Ok(*self);
        }
        if drop < 0 {
            let by = drop.unsigned_abs();
            if let Some(small) = self.as_small()
                && let Some(scaled) = small_power(by as usize).and_then(|p| small.checked_mul(p))
            {
                return Ok(Decimal::small(scaled, self.negative, scale as u8));
            }
            let scaled = self.wide().mul_pow10(by as usize);
            if scaled.digits() > usize::from(Decimal::MAX_PRECISION) {
                return Err(Overflow);
            }
            return Ok(Decimal::exact(scaled, self.negative, scale as u8));
        }
        if let (true, Some(small), Some(power)) = (scale >= 0, self.as_small(), small_power(drop as usize)) {
            let (quotient, rest) = (small / power, small % power);
            let up = rounding == Rounding::HalfUp && rest >= power - rest;
            return Ok(Decimal::small(quotient + u128::from(up), self.negative, scale as u8));
        }
        let cut = scaled_down(self.wide(), drop as usize, rounding);
        let zeros = (-scale).max(0) as usize;
        Decimal::fit(cut.mul_pow10(zeros), self.negative, scale.max(0) as usize)
    }

    /// Returns the smallest integer that is not below the number.
    pub fn ceil(&self) -> Result<Decimal, Overflow> {
        let cut = self.truncate(0);
        if cut == *self || self.negative { Ok(cut) } else { cut.add(&Decimal::from_i64(1)) }
    }

    /// Returns the largest integer that is not above the number.
    pub fn floor(&self) -> Result<Decimal, Overflow> {
        let cut = self.truncate(0);
        if cut == *self || !self.negative { Ok(cut) } else { cut.sub(&Decimal::from_i64(1)) }
    }

    /// Returns the largest number of DECIMAL(precision, scale).
    pub fn max_of(precision: u8, scale: u8) -> Decimal {
        let one = Wide::pow10(0);
        Decimal::exact(Wide::pow10(precision.min(Decimal::MAX_PRECISION).into()).sub(one), false, scale)
    }
}

/// Removes the last `digits` digits of a mantissa.
fn scaled_down(mantissa: Wide, digits: usize, rounding: Rounding) -> Wide {
    if digits == 0 {
        return mantissa;
    }
    let divisor = Wide::pow10(digits);
    let (quotient, rest) = mantissa.div_rem(divisor);
    if rounding == Rounding::HalfUp && rest.add(&rest) >= *divisor {
        quotient.add(Wide::pow10(0))
    } else {
        quotient
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        if self.negative != other.negative {
            return other.negative.cmp(&self.negative);
        }
        let magnitudes = if self.scale == other.scale {
            match (self.as_small(), other.as_small()) {
                (Some(a), Some(b)) => a.cmp(&b),
                _ => self.limbs.iter().rev().cmp(other.limbs.iter().rev()),
            }
        } else {
            let scale = self.scale.max(other.scale);
            if let (Some(a), Some(b)) = (self.as_small_at(scale), other.as_small_at(scale)) {
                a.cmp(&b)
            } else {
                let a = self.wide().mul_pow10(usize::from(scale - self.scale));
                a.cmp(&other.wide().mul_pow10(usize::from(scale - other.scale)))
            }
        };
        if self.negative { magnitudes.reverse() } else { magnitudes }
    }
}

impl std::hash::Hash for Decimal {
    /// Hashes without trailing zeros of the fraction: 1.50 and 1.5 are equal.
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let (mut mantissa, mut scale) = (self.wide(), self.scale);
        while scale > 0 && !mantissa.is_odd() {
            let mut shorter = mantissa;
            if shorter.div_small(10) != 0 {
                break;
            }
            mantissa = shorter;
            scale -= 1;
        }
        (mantissa.to_limbs(), self.negative, if self.is_zero() { 0 } else { scale }).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(text: &str) -> Decimal {
        let (number, lost) = Decimal::parse(text.as_bytes());
        assert_eq!(lost, Lost::Nothing, "{text}");
        number
    }

    #[test]
    fn sums_and_products_have_the_scale_of_mariadb() {
        assert_eq!(d("1.5").add(&d("2.25")).map(|v| v.to_string()), Ok("3.75".into()));
        assert_eq!(d("1.5").sub(&d("1.50")).map(|v| v.to_string()), Ok("0.00".into()));
        assert_eq!(d("-1.5").mul(&d("2.25")).map(|v| v.to_string()), Ok("-3.375".into()));
        let nines = "9".repeat(65);
        assert_eq!(d(&nines).add(&d("1")), Err(Overflow));
        assert_eq!(d(&nines).mul(&d("-1")), Ok(d(&nines).neg()));
    }

    #[test]
    fn quotients_carry_groups_of_nine_digits() {
        let third = d("1").div(&d("3"), 4).expect("not by zero").expect("fits");
        assert_eq!(third.to_string(), "0.333333333");
        let one = third.mul(&d("3")).and_then(|v| v.round(4)).expect("fits");
        assert_eq!(one.to_string(), "1.0000", "as SELECT (1/3)*3 answers");
        assert!(d("1").div(&Decimal::ZERO, 4).is_none());
        assert_eq!(d("-7.5").rem(&d("2")).map(|v| v.to_string()), Some("-1.5".into()));
        assert_eq!(d("-7.5").div_int(&d("2")).and_then(Result::ok).map(|v| v.to_string()), Some("-3".into()));
        let big = d(&"8".repeat(65)).div(&d("0.00000000000000000000000000000000000007"), 4);
        assert_eq!(big, Some(Err(Overflow)));
    }

    #[test]
    fn rounding_goes_away_from_zero() {
        for (text, scale, rounded, cut) in [
            ("2.5", 0, "3", "2"),
            ("-2.5", 0, "-3", "-2"),
            ("2.449", 1, "2.4", "2.4"),
            ("155", -1, "160", "150"),
            ("99.99", 1, "100.0", "99.9"),
            ("-0.04", 1, "0.0", "0.0"),
            ("5", -1, "10", "0"),
        ] {
            assert_eq!(d(text).round(scale).map(|v| v.to_string()), Ok(rounded.into()), "{text}");
            assert_eq!(d(text).truncate(scale).to_string(), cut, "{text}");
        }
        assert_eq!(d("1.2").ceil().map(|v| v.to_string()), Ok("2".into()));
        assert_eq!(d("-1.2").floor().map(|v| v.to_string()), Ok("-2".into()));
        assert_eq!(d("1.2").round(3).map(|v| v.to_string()), Ok("1.200".into()));
    }

    #[test]
    fn integers_and_doubles() {
        assert_eq!(d("9223372036854775807.4").to_i64(), (i64::MAX, Lost::Fraction));
        assert_eq!(d("9223372036854775807.5").to_i64(), (i64::MAX, Lost::Range));
        assert_eq!(d("-9223372036854775808").to_i64(), (i64::MIN, Lost::Nothing));
        assert_eq!(d("-0.4").to_u64(), (0, Lost::Fraction));
        assert_eq!(d("-1").to_u64(), (0, Lost::Range));
        assert_eq!(d("18446744073709551615").to_u64(), (u64::MAX, Lost::Nothing));
        assert_eq!(d("0.1").to_f64(), 0.1);
        assert_eq!(d("123456789012345678901234.5").to_f64(), 123456789012345678901234.5);
        assert_eq!(Decimal::from_f64(1e-5).0.to_string(), "0.00001");
        assert_eq!(Decimal::from_f64(-1234.5).0.to_string(), "-1234.5");
        assert_eq!(Decimal::from_f64(1e70).1, Lost::Range);
    }

    #[test]
    fn equal_numbers_of_different_scale_are_one() {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let hash = |v: Decimal| {
            let mut state = DefaultHasher::new();
            v.hash(&mut state);
            state.finish()
        };
        assert_eq!(d("1.50"), d("1.5"));
        assert_eq!(hash(d("1.50")), hash(d("1.5")));
        assert_eq!(hash(d("0.00")), hash(d("0")));
        assert!(d("-2") < d("-1.5") && d("-1.5") < d("0.1") && d("0.1") < d("0.11"));
    }
}
