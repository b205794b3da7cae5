//! Decimals as text.

use std::fmt;

use super::wide::Wide;
use super::{Decimal, Lost, Overflow};

/// Maximum exponent. Larger ones are out of every range.
const EXPONENT_MAX: i64 = 100_000;

/// The parts of a number's text.
struct Parts<'a> {
    negative: bool,
    int: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
    /// True if text other than spaces follows the number.
    trailing: bool,
}

/// Splits `  -12.5e3 rest`. Returns `None` if the text does not start with a number.
fn split(text: &[u8]) -> Option<Parts<'_>> {
    let mut rest = text.trim_ascii_start();
    let negative = rest.first() == Some(&b'-');
    if let Some(b'-' | b'+') = rest.first() {
        rest = &rest[1..];
    }
    let digits = |bytes: &[u8]| bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    let (int, mut rest) = rest.split_at(digits(rest));
    let mut fraction: &[u8] = &[];
    if rest.first() == Some(&b'.') {
        (fraction, rest) = rest[1..].split_at(digits(&rest[1..]));
    }
    if int.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut exponent = 0;
    if let Some(b'e' | b'E') = rest.first() {
        let signed = match rest.get(1) {
            Some(b'-' | b'+') => 2,
            _ => 1,
        };
        let len = digits(&rest[signed..]);
        if len > 0 {
            let value = rest[signed..signed + len]
                .iter()
                .fold(0i64, |v, b| (v * 10 + i64::from(b - b'0')).min(EXPONENT_MAX));
            exponent = if rest[1] == b'-' { -value } else { value };
            rest = &rest[signed + len..];
        }
    }
    Some(Parts { negative, int, fraction, exponent, trailing: !rest.trim_ascii_start().is_empty() })
}

impl Decimal {
    /// Parses the number at the start of a text as MariaDB does: leading spaces, sign, digits, point,
    /// exponent. Returns [`Lost::Fraction`] if text other than spaces follows, or if the number has more
    /// digits than fit.
    pub fn parse(text: &[u8]) -> (Decimal, Lost) {
        let Some(parts) = split(text) else { return (Decimal::ZERO, Lost::All) };
        let digits = parts.int.iter().chain(parts.fraction).skip_while(|&&b| b == b'0');
        let zeros = parts.int.iter().chain(parts.fraction).take_while(|&&b| b == b'0').count();
        let count = parts.int.len() + parts.fraction.len() - zeros;
        if count == 0 {
            let scale =
                (parts.fraction.len() as i64 - parts.exponent).clamp(0, Decimal::MAX_SCALE.into()) as u8;
            let lost = if parts.trailing { Lost::Fraction } else { Lost::Nothing };
            return (Decimal { scale, ..Decimal::ZERO }, lost);
        }
        // The point is `scale` digits from the right end of the digits. If negative, zeros follow the digits.
        let scale = parts.fraction.len() as i64 - parts.exponent;
        let int_digits = count as i64 - scale;
        if int_digits > i64::from(Decimal::MAX_PRECISION) {
            let max = Decimal::max_of(Decimal::MAX_PRECISION, 0);
            return (if parts.negative { max.neg() } else { max }, Lost::Range);
        }
        // The digits used: those before the point, and one more than the 38 after it, for rounding.
        let kept = (int_digits + i64::from(Decimal::MAX_SCALE) + 1).clamp(0, count as i64) as usize;
        let mut mantissa = Wide::ZERO;
        let mut dropped = false;
        for (n, digit) in digits.enumerate() {
            if n < kept {
                mantissa.mul_add_small(10, u32::from(digit - b'0'));
            } else {
                dropped |= *digit != b'0';
            }
        }
        let mut scale = scale - (count - kept) as i64;
        if scale < 0 {
            mantissa = mantissa.mul_pow10(scale.unsigned_abs() as usize);
            scale = 0;
        }
        let too_fine = scale > i64::from(Decimal::MAX_SCALE);
        let lost = if parts.trailing || dropped || too_fine { Lost::Fraction } else { Lost::Nothing };
        if kept == 0 {
            return (Decimal { scale: Decimal::MAX_SCALE, ..Decimal::ZERO }, Lost::Fraction);
        }
        match Decimal::fit(mantissa, parts.negative, scale as usize) {
            Ok(number) => (number, lost),
            Err(Overflow) => (Decimal::max_of(Decimal::MAX_PRECISION, 0), Lost::Range),
        }
    }

    /// Appends the number as text: `-123.450`.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        let mut buffer = [0; DIGITS];
        let digits = self.digits(&mut buffer);
        if self.negative {
            out.push(b'-');
        }
        let scale = usize::from(self.scale);
        if digits.len() > scale {
            out.extend_from_slice(&digits[..digits.len() - scale]);
        } else {
            out.push(b'0');
        }
        if scale > 0 {
            out.push(b'.');
            out.extend(std::iter::repeat_n(b'0', scale.saturating_sub(digits.len())));
            out.extend_from_slice(&digits[digits.len().saturating_sub(scale)..]);
        }
    }

    /// Returns the mantissa's digits in ASCII, without leading zeros. Empty for 0.
    pub(super) fn digits<'a>(&self, buffer: &'a mut [u8; DIGITS]) -> &'a [u8] {
        let mut at = DIGITS;
        if let Some(mut small) = self.as_small().and_then(|s| u64::try_from(s).ok()) {
            while small > 0 {
                at -= 1;
                buffer[at] = b'0' + (small % 10) as u8;
                small /= 10;
            }
            return &buffer[at..];
        }
        let mut mantissa = self.wide();
        while !mantissa.is_zero() {
            let mut group = mantissa.div_small(1_000_000_000);
            for _ in 0..9 {
                at -= 1;
                buffer[at] = b'0' + (group % 10) as u8;
                group /= 10;
            }
        }
        let zeros = buffer[at..].iter().take_while(|&&b| b == b'0').count();
        &buffer[at + zeros..]
    }
}

/// Buffer size for 65 digits in groups of nine.
pub(super) const DIGITS: usize = 72;

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(DIGITS);
        self.write_text(&mut text);
        f.pad(std::str::from_utf8(&text).expect("digits are ASCII"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_mariadb_reads() {
        for (text, printed, lost) in [
            ("12", "12", Lost::Nothing),
            ("  +001.50  ", "1.50", Lost::Nothing),
            (".5", "0.5", Lost::Nothing),
            ("5.", "5", Lost::Nothing),
            ("-.5e1", "-5", Lost::Nothing),
            ("1e3", "1000", Lost::Nothing),
            ("1.5e-3", "0.0015", Lost::Nothing),
            ("1e", "1", Lost::Fraction),
            ("12abc", "12", Lost::Fraction),
            ("abc", "0", Lost::All),
            ("", "0", Lost::All),
            ("-", "0", Lost::All),
            ("-0.00", "0.00", Lost::Nothing),
            ("1e-60", "0.00000000000000000000000000000000000000", Lost::Fraction),
            ("6e-39", "0.00000000000000000000000000000000000001", Lost::Fraction),
        ] {
            let (number, got) = Decimal::parse(text.as_bytes());
            assert_eq!((number.to_string().as_str(), got), (printed, lost), "{text:?}");
        }
        let (max, lost) = Decimal::parse(b"-1e65");
        assert_eq!((max.to_string(), lost), (format!("-{}", "9".repeat(65)), Lost::Range));
        assert_eq!(Decimal::parse(b"1e9999999999999").1, Lost::Range);
        assert_eq!(Decimal::parse("9".repeat(65).as_bytes()).0.to_string(), "9".repeat(65));
    }
}
