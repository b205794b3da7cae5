//! Exact numbers of up to 65 digits, 38 after the point.

use std::cmp::Ordering;

/// An exact decimal number: a magnitude below 10^65, a sign, and how many of its digits stand after the point.
/// `1.50` and `1.5` compare equal and print differently.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    /// The digits as one number, least significant first.
    limbs: [u32; 7],
    negative: bool,
    scale: u8,
}

/// What a conversion lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Nothing.
    Nothing,
    /// Digits after the point, or text after the number.
    Fraction,
    /// The number was too large; the result is the nearest limit.
    Range,
    /// There was no number at all; the result is zero.
    All,
}

/// The result would need more than 65 digits before the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

impl Decimal {
    /// Most digits.
    pub const MAX_PRECISION: u8 = 65;
    /// Most digits after the point.
    pub const MAX_SCALE: u8 = 38;
    /// 0.
    pub const ZERO: Decimal = Decimal { limbs: [0; 7], negative: false, scale: 0 };

    /// The number at the start of a text, as MariaDB reads it: leading spaces, sign, digits, point, exponent.
    /// [`Lost::Fraction`]: something that is not a space follows it, or it had more digits than fit.
    pub fn parse(text: &[u8]) -> (Decimal, Lost) {
        todo!()
    }
    /// `mantissa / 10^scale`.
    pub fn from_i128(mantissa: i128, scale: u8) -> Decimal {
        todo!()
    }
    /// An integer.
    pub fn from_i64(v: i64) -> Decimal {
        todo!()
    }
    /// An unsigned integer.
    pub fn from_u64(v: u64) -> Decimal {
        todo!()
    }
    /// A double, by its shortest text (up to 17 digits) as MariaDB does it.
    pub fn from_f64(v: f64) -> (Decimal, Lost) {
        todo!()
    }
    /// Rounded half away from zero.
    pub fn to_i64(&self) -> (i64, Lost) {
        todo!()
    }
    /// Rounded half away from zero; negative numbers give 0 and [`Lost::Range`].
    pub fn to_u64(&self) -> (u64, Lost) {
        todo!()
    }
    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        todo!()
    }
    /// Digits after the point.
    pub fn scale(&self) -> u8 {
        self.scale
    }
    /// Digits before the point; 0 for numbers below 1.
    pub fn int_digits(&self) -> u8 {
        todo!()
    }
    /// Digits in all, at least 1.
    pub fn precision(&self) -> u8 {
        todo!()
    }
    /// Whether this is 0.
    pub fn is_zero(&self) -> bool {
        self.limbs == [0; 7]
    }
    /// Whether this is below 0.
    pub fn is_negative(&self) -> bool {
        self.negative
    }
    /// Sum; scale is the larger one.
    pub fn add(&self, other: &Decimal) -> Result<Decimal, Overflow> {
        todo!()
    }
    /// Difference; scale is the larger one.
    pub fn sub(&self, other: &Decimal) -> Result<Decimal, Overflow> {
        todo!()
    }
    /// Product; scale is the sum of both, at most 38.
    pub fn mul(&self, other: &Decimal) -> Result<Decimal, Overflow> {
        todo!()
    }
    /// Quotient, `None` when `other` is 0. It carries at least `increment` (div_precision_increment) more digits
    /// after the point than `self`, in whole groups of nine as MariaDB computes it, cut, not rounded: the caller
    /// rounds to [`Decimal::div_scale`] where a result leaves the expression.
    pub fn div(&self, other: &Decimal, increment: u8) -> Option<Result<Decimal, Overflow>> {
        todo!()
    }
    /// Digits after the point that a quotient's column shows.
    pub fn div_scale(dividend_scale: u8, increment: u8) -> u8 {
        dividend_scale.saturating_add(increment).min(Decimal::MAX_SCALE)
    }
    /// The integer quotient, cut; `None` when `other` is 0.
    pub fn div_int(&self, other: &Decimal) -> Option<Decimal> {
        todo!()
    }
    /// Remainder with the sign of `self`; `None` when `other` is 0.
    pub fn rem(&self, other: &Decimal) -> Option<Decimal> {
        todo!()
    }
    /// Negated.
    pub fn neg(&self) -> Decimal {
        todo!()
    }
    /// Without sign.
    pub fn abs(&self) -> Decimal {
        todo!()
    }
    /// Rounded half away from zero to `scale` digits after the point, padded with zeros when it had fewer;
    /// a negative scale rounds before the point.
    pub fn round(&self, scale: i32) -> Result<Decimal, Overflow> {
        todo!()
    }
    /// The same, digits cut.
    pub fn truncate(&self, scale: i32) -> Decimal {
        todo!()
    }
    /// The smallest integer not below.
    pub fn ceil(&self) -> Result<Decimal, Overflow> {
        todo!()
    }
    /// The largest integer not above.
    pub fn floor(&self) -> Result<Decimal, Overflow> {
        todo!()
    }
    /// The largest number of DECIMAL(precision, scale).
    pub fn max_of(precision: u8, scale: u8) -> Decimal {
        todo!()
    }
    /// Appends `-123.450`.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        todo!()
    }
    /// Bytes of the packed form of DECIMAL(precision, scale).
    pub fn packed_len(precision: u8, scale: u8) -> usize {
        todo!()
    }
    /// Appends the packed form; the number must fit DECIMAL(precision, scale) (see [`Decimal::round`]), digits
    /// that do not are cut.
    pub fn write_packed(&self, precision: u8, scale: u8, out: &mut Vec<u8>) {
        todo!()
    }
    /// Reads [`Decimal::packed_len`] bytes; `None` when they are too short or hold no such number.
    pub fn read_packed(precision: u8, scale: u8, bytes: &[u8]) -> Option<Decimal> {
        todo!()
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
        todo!()
    }
}
impl std::hash::Hash for Decimal {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        todo!()
    }
}
impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        todo!()
    }
}
