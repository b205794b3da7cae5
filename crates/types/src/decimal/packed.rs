//! Packed decimals, the encoding in row events and rows.
//!
//! DECIMAL(p,s) is `p-s` digits before the point and `s` after it, in big-endian groups of nine digits
//! counted from the point; the outermost group on either side may be shorter:
//!
//! ```text
//! | leading digits | 9 digits | .. || 9 digits | .. | trailing digits |
//! | 0..4 bytes     | 4 bytes  |    || 4 bytes  |    | 0..4 bytes      |
//!
//! bytes of a group of 1-2 digits: 1, 3-4: 2, 5-6: 3, 7-9: 4
//! ```
//!
//! The highest bit of the first byte is flipped, then all bits if the number is negative. Bytes therefore
//! sort as the numbers do, and the encoding is also the key encoding.

use super::text::DIGITS;
use super::wide::Wide;
use super::{Decimal, Rounding};

/// Bytes of a group of n digits.
const GROUP_BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// Exclusive upper bound of a group of n digits.
const GROUP_POWERS: [u32; 10] =
    [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// Powers of ten that fit 64 bits.
const POWERS: [u64; 19] = {
    let mut powers = [1; 19];
    let mut n = 1;
    while n < powers.len() {
        powers[n] = powers[n - 1] * 10;
        n += 1;
    }
    powers
};

/// Maximum number of digits that always fits 64 bits.
const SHORT_DIGITS: u8 = 18;

/// Returns the digit counts of the groups of DECIMAL(precision, scale), left to right.
fn groups(precision: u8, scale: u8) -> impl Iterator<Item = usize> {
    let (int, fraction) = (usize::from(precision.saturating_sub(scale)), usize::from(scale));
    let before = std::iter::once(int % 9).chain(std::iter::repeat_n(9, int / 9));
    let after = std::iter::repeat_n(9, fraction / 9).chain(std::iter::once(fraction % 9));
    before.chain(after).filter(|&n| n > 0)
}

/// Decodes the magnitude and the sign of a packed number of at most 18 digits.
#[inline]
fn short_mantissa(precision: u8, scale: u8, bytes: &[u8]) -> Option<(u64, bool)> {
    let negative = *bytes.first()? < 0x80;
    let flip = if negative { u32::MAX } else { 0 };
    let (int, fraction) = (usize::from(precision - scale), usize::from(scale));
    let mut at = 0;
    let mut first = 0x80;
    let mut mantissa = 0u64;
    let mut take = |digits: usize| {
        let len = GROUP_BYTES[digits];
        let group = bytes.get(at..at + len)?;
        at += len;
        let read = group.iter().fold(0u32, |v, b| v << 8 | u32::from(b ^ std::mem::take(&mut first)));
        let value = (read ^ flip) & (u32::MAX >> (32 - 8 * len));
        let power = GROUP_POWERS[digits];
        mantissa = mantissa * u64::from(power) + u64::from(value);
        (value < power).then_some(())
    };
    if int % 9 > 0 {
        take(int % 9)?;
    }
    for _ in 0..int / 9 + fraction / 9 {
        take(9)?;
    }
    if fraction % 9 > 0 {
        take(fraction % 9)?;
    }
    Some((mantissa, negative))
}

/// Appends the packed form of a number of at most 18 digits that fits the precision.
fn write_short(mantissa: i64, precision: u8, scale: u8, out: &mut Vec<u8>) {
    let (int, fraction) = (usize::from(precision - scale), usize::from(scale));
    let flip = if mantissa < 0 { u32::MAX } else { 0 };
    let mut rest = mantissa.unsigned_abs();
    let mut digits_left = usize::from(precision);
    let start = out.len();
    let mut put = |digits: usize| {
        digits_left -= digits;
        let group = (rest / POWERS[digits_left]) as u32;
        rest %= POWERS[digits_left];
        out.extend_from_slice(&(group ^ flip).to_be_bytes()[4 - GROUP_BYTES[digits]..]);
    };
    if int % 9 > 0 {
        put(int % 9);
    }
    for _ in 0..int / 9 + fraction / 9 {
        put(9);
    }
    if fraction % 9 > 0 {
        put(fraction % 9);
    }
    if let Some(first) = out.get_mut(start) {
        *first ^= 0x80;
    }
}

impl Decimal {
    /// Returns the length of the packed form of DECIMAL(precision, scale).
    #[inline]
    pub fn packed_len(precision: u8, scale: u8) -> usize {
        let bytes = |digits: usize| digits / 9 * 4 + GROUP_BYTES[digits % 9];
        bytes(precision.saturating_sub(scale).into()) + bytes(scale.into())
    }

    /// Appends the packed form. Digits beyond the scale are truncated; a number that is too large becomes the
    /// limit of DECIMAL(precision, scale).
    pub fn write_packed(&self, precision: u8, scale: u8, out: &mut Vec<u8>) {
        if scale <= precision
            && precision <= SHORT_DIGITS
            && let Some(mantissa) = self.mantissa_at(scale)
            && mantissa.unsigned_abs() < POWERS[usize::from(precision)]
        {
            return write_short(mantissa, precision, scale, out);
        }
        self.write_digits(precision, scale, out);
    }

    fn write_digits(&self, precision: u8, scale: u8, out: &mut Vec<u8>) {
        let limit = || Decimal { negative: self.negative, ..Decimal::max_of(precision, scale) };
        let mut number = self.rescaled(scale.into(), Rounding::Cut).unwrap_or_else(|_| limit());
        let mut buffer = [0; DIGITS];
        if number.digits(&mut buffer).len() > usize::from(precision) {
            number = limit();
        }
        let used = number.digits(&mut buffer).len();
        buffer[..DIGITS - used].fill(b'0');
        let mut digits = &buffer[DIGITS - usize::from(precision)..];
        let start = out.len();
        for n in groups(precision, scale) {
            let (group, rest) = digits.split_at(n);
            digits = rest;
            let value = group.iter().fold(0u32, |v, b| v * 10 + u32::from(b - b'0'));
            out.extend_from_slice(&value.to_be_bytes()[4 - GROUP_BYTES[n]..]);
        }
        if number.negative {
            out[start..].iter_mut().for_each(|b| *b = !*b);
        }
        if let Some(first) = out.get_mut(start) {
            *first ^= 0x80;
        }
    }

    /// [`Decimal::read_packed`] for precisions up to 18, whose mantissas fit 64 bits. Most columns are of
    /// this kind.
    fn read_short(precision: u8, scale: u8, bytes: &[u8]) -> Option<Decimal> {
        let (mantissa, negative) = short_mantissa(precision, scale, bytes)?;
        Some(Decimal::small(mantissa.into(), negative, scale))
    }

    /// Decodes the mantissa of a packed number of at most 18 digits.
    #[inline]
    pub fn read_packed_mantissa(precision: u8, scale: u8, bytes: &[u8]) -> Option<i64> {
        let (mantissa, negative) = short_mantissa(precision, scale, bytes)?;
        Some(if negative { -(mantissa as i64) } else { mantissa as i64 })
    }

    /// Returns the mantissa at a scale, if the number has no more digits after the point than that and the
    /// mantissa fits 64 bits.
    pub fn mantissa_at(&self, scale: u8) -> Option<i64> {
        if scale < self.scale {
            return None;
        }
        let mantissa = i128::try_from(self.as_small_at(scale)?).ok()?;
        i64::try_from(if self.negative { -mantissa } else { mantissa }).ok()
    }

    /// Decodes [`Decimal::packed_len`] bytes. Returns `None` if they are too short or not a valid number.
    pub fn read_packed(precision: u8, scale: u8, bytes: &[u8]) -> Option<Decimal> {
        if precision > Decimal::MAX_PRECISION || scale > Decimal::MAX_SCALE.min(precision) {
            return None;
        }
        if precision <= SHORT_DIGITS {
            return Decimal::read_short(precision, scale, bytes);
        }
        let negative = bytes.first()? & 0x80 == 0;
        let mut rest = bytes;
        let mut first = 0x80;
        let (mut small, mut wide) = (0u128, Wide::ZERO);
        let fits = precision <= 38;
        for n in groups(precision, scale) {
            let (group, tail) = rest.split_at_checked(GROUP_BYTES[n])?;
            rest = tail;
            let mask = if negative { 0xff } else { 0 };
            let value = group.iter().fold(0u32, |v, b| {
                let byte = b ^ mask ^ std::mem::take(&mut first);
                v << 8 | u32::from(byte)
            });
            let power = 10u32.pow(n as u32);
            if value >= power {
                return None;
            }
            if fits {
                small = small * u128::from(power) + u128::from(value);
            } else {
                wide.mul_add_small(power, value);
            }
        }
        if fits {
            Some(Decimal::small(small, negative, scale))
        } else {
            Some(Decimal::exact(wide, negative, scale))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manuals_example_to_the_byte() {
        let mut bytes = Vec::new();
        Decimal::parse(b"1234567890.1234").0.write_packed(14, 4, &mut bytes);
        assert_eq!(bytes, [0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2]);
        bytes.clear();
        Decimal::parse(b"-1234567890.1234").0.write_packed(14, 4, &mut bytes);
        assert_eq!(bytes, [0x7e, 0xf2, 0x04, 0xc7, 0x2d, 0xfb, 0x2d]);
        assert_eq!(Decimal::packed_len(65, 38), 29);
    }

    #[test]
    fn short_numbers_are_written_as_long_ones() {
        for (precision, scale) in [(1, 0), (2, 2), (9, 4), (10, 0), (12, 2), (18, 0), (18, 9), (18, 18)] {
            for mantissa in
                [0, 1, -1, 9, 10, 12_345, -99_999, 999_999_999, -1_000_000_000, i64::MAX, i64::MIN]
            {
                for own_scale in [0, 2, 5, 18] {
                    let number = Decimal::from_i128(mantissa.into(), own_scale);
                    let (mut short, mut long) = (Vec::new(), Vec::new());
                    number.write_packed(precision, scale, &mut short);
                    number.write_digits(precision, scale, &mut long);
                    assert_eq!(short, long, "{number} as ({precision},{scale})");
                    assert_eq!(short.len(), Decimal::packed_len(precision, scale));
                }
            }
        }
    }

    #[test]
    fn short_numbers_come_back() {
        for (precision, scale) in
            [(1, 0), (1, 1), (9, 0), (9, 9), (10, 9), (15, 2), (18, 0), (18, 9), (18, 18), (19, 2)]
        {
            for text in
                ["0", "0.5", "-0.25", "7", "-7.75", "123456.789", "-99999999999.99", "123456789012345678"]
            {
                let mut bytes = Vec::new();
                let number = Decimal::parse(text.as_bytes()).0;
                number.write_packed(precision, scale, &mut bytes);
                let back = Decimal::read_packed(precision, scale, &bytes).expect("a number");
                let mut again = Vec::new();
                back.write_packed(precision, scale, &mut again);
                assert_eq!((back.scale(), again), (scale, bytes.clone()), "{text} as ({precision},{scale})");
                let limit = Decimal::max_of(precision, scale);
                if number.abs() <= limit {
                    assert_eq!(back, number.truncate(scale.into()), "{text} as ({precision},{scale})");
                }
                assert_eq!(Decimal::read_packed(precision, scale, &bytes[..bytes.len() - 1]), None);
            }
        }
    }

    #[test]
    fn bytes_that_are_no_number_are_refused() {
        assert_eq!(Decimal::read_packed(14, 4, &[0x81, 0x0d]), None);
        assert_eq!(Decimal::read_packed(9, 0, &[0xff; 4]), None);
        assert_eq!(Decimal::read_packed(99, 50, &[0x80; 60]), None);
        assert_eq!(Decimal::read_packed(9, 0, &[]), None);
    }
}
