//! Conversion between temporals and numbers.

use super::{Date, DateTime, Issues, Parsed, SECOND, Time};
use crate::{Decimal, SqlMode};

/// Completes a number to yyyymmddhhmmss, with two-digit years below 70 as 20xx. The flag is whether the
/// number has a time. Returns `None` if the number has no valid form.
fn widen(v: i64) -> Option<(i64, bool)> {
    const DATE: i64 = 1_000_000;
    Some(match v {
        0 => (0, true),
        // yymmdd
        101..=691_231 => ((v + 20_000_000) * DATE, false),
        700_101..=991_231 => ((v + 19_000_000) * DATE, false),
        // yyyymmdd
        10_000_101..=99_991_231 => (v * DATE, false),
        // yymmddhhmmss
        101_000_000..=691_231_235_959 => (v + 20_000_000_000_000, true),
        700_101_000_000..=991_231_235_959 => (v + 19_000_000_000_000, true),
        // yyyymmddhhmmss, and the numbers between the forms above
        991_231_235_960..=99_999_999_999_999 => (v, true),
        _ => return None,
    })
}

/// Returns the whole part, saturated, and the microseconds of the fraction.
pub(super) fn split(v: &Decimal, mode: SqlMode) -> (i64, u32) {
    let kept = match v.round(6) {
        Ok(rounded) if mode.has(SqlMode::TIME_ROUND_FRACTIONAL) => rounded,
        _ => v.truncate(6),
    };
    let whole = kept.truncate(0);
    let micros = kept.sub(&whole).and_then(|f| f.mul(&Decimal::from_i64(SECOND)));
    (whole.to_i64().0, micros.map_or(0, |m| m.abs().to_u64().0 as u32))
}

impl Decimal {
    /// Converts a double that represents a date or time: nine digits of the fraction are kept, the others
    /// truncated.
    pub fn of_temporal_number(v: f64) -> Decimal {
        const LONGEST: f64 = 1e18;
        let magnitude = v.abs().min(LONGEST);
        let nanos = ((magnitude - magnitude.floor()) * 1e9) as i128;
        let exact = Decimal::from_i128(magnitude.floor() as i128 * 1_000_000_000 + nanos, 9);
        if v < 0.0 { exact.neg() } else { exact }
    }
}

impl DateTime {
    /// Converts a number such as 20260102030405 or 20260102, with the microseconds of its fraction.
    pub fn from_number(v: i64, micros: u32, mode: SqlMode) -> Parsed<DateTime> {
        let Some((wide, has_time)) = widen(v) else {
            let beyond = v > 99_999_999_999_999;
            return Parsed::bad(if beyond { Issues::OUT_OF_RANGE } else { Issues::TRUNCATED });
        };
        let part = |divisor: i64, modulus: i64| wide / divisor % modulus;
        let (month, day) = (part(100_000_000, 100), part(1_000_000, 100));
        let (hour, minute, second) = (part(10_000, 100), part(100, 100), part(1, 100));
        if month > 12 || day > 31 || hour > 23 || minute > 59 || second > 59 {
            return Parsed::bad(Issues::TRUNCATED);
        }
        let date = Date::new(part(10_000_000_000, 10_000) as u16, month as u8, day as u8);
        if let Err(issue) = check_date(date, wide != 0 || micros != 0, mode) {
            return Parsed::bad(issue);
        }
        // The fraction of a date is truncated.
        let (kept, issues) = match (has_time, micros) {
            (false, 1..) => (0, Issues::NOTE),
            _ => (micros, Issues::default()),
        };
        let value =
            DateTime { date, hour: hour as u8, minute: minute as u8, second: second as u8, micros: kept };
        Parsed {
            value: Some(value),
            issues,
            has_date: true,
            has_time,
            decimals: if kept > 0 { 6 } else { 0 },
        }
    }

    /// Converts a number with a fraction.
    pub fn from_decimal(v: &Decimal, mode: SqlMode) -> Parsed<DateTime> {
        if v.is_negative() {
            return Parsed::bad(Issues::TRUNCATED);
        }
        let (whole, micros) = split(v, mode);
        DateTime::from_number(whole, micros, mode)
    }

    /// Returns the number 20260102030405.
    pub fn to_number(self) -> u64 {
        u64::from(self.date.to_number()) * 1_000_000
            + u64::from(self.hour) * 10_000
            + u64::from(self.minute) * 100
            + u64::from(self.second)
    }
}

impl Date {
    /// Converts a number such as 20260102 or 260102. A time of day is truncated.
    pub fn from_number(v: i64, mode: SqlMode) -> Parsed<Date> {
        DateTime::from_number(v, 0, mode).into_date()
    }

    /// Returns the number 20260102.
    pub fn to_number(self) -> u32 {
        u32::from(self.year) * 10_000 + u32::from(self.month) * 100 + u32::from(self.day)
    }
}

impl Time {
    /// Converts a number such as 10203 for 01:02:03, with the microseconds of its fraction, which has the
    /// sign of `v`.
    pub fn from_number(v: i64, micros: u32, mode: SqlMode) -> Parsed<Time> {
        let negative = v < 0;
        let magnitude = v.unsigned_abs();
        if (10_000_000..=99_999_999_999_999).contains(&v) {
            let lenient = SqlMode(mode.0 & SqlMode::TIME_ROUND_FRACTIONAL.0 | SqlMode::ALLOW_INVALID_DATES.0);
            return DateTime::from_number(v, micros, lenient).into_time();
        }
        let (minute, second) = ((magnitude / 100 % 100) as u8, (magnitude % 100) as u8);
        if (minute > 59 || second > 59) && magnitude < 10_000_000 {
            return Parsed::bad(Issues::TRUNCATED);
        }
        let (mut value, mut issues) = (Time::MAX, Issues::default());
        if magnitude > 8_385_959 {
            issues = Issues::OUT_OF_RANGE;
        } else {
            value = Time::from_hms(false, (magnitude / 10_000) as u32, minute, second, micros);
        }
        if negative {
            value.micros = -value.micros;
        }
        let decimals = if micros > 0 { 6 } else { 0 };
        Parsed { value: Some(value), issues, has_date: false, has_time: true, decimals }
    }

    /// Converts a number with a fraction.
    pub fn from_decimal(v: &Decimal, mode: SqlMode) -> Parsed<Time> {
        let (whole, micros) = split(v, mode);
        let mut parsed = Time::from_number(whole, micros, mode);
        if whole == 0 && v.is_negative() {
            parsed = parsed.map(|t| Time { micros: -t.micros });
        }
        parsed
    }

    /// Returns the number hhmmss with sign. The fraction is truncated.
    pub fn to_number(self) -> i64 {
        let seconds = self.micros / SECOND;
        let magnitude = seconds.abs();
        let number = magnitude / 3600 * 10_000 + magnitude / 60 % 60 * 100 + magnitude % 60;
        if seconds < 0 { -number } else { number }
    }
}

/// Checks a whole date. `not_zero`: a field of the date or time is not 0.
pub(crate) fn check_date(date: Date, not_zero: bool, mode: SqlMode) -> Result<(), Issues> {
    if !not_zero {
        return if mode.has(SqlMode::NO_ZERO_DATE) { Err(Issues::ZERO_DATE) } else { Ok(()) };
    }
    if mode.has(SqlMode::NO_ZERO_IN_DATE) && (date.month == 0 || date.day == 0) {
        return Err(Issues::ZERO_IN_DATE);
    }
    let too_late = date.month > 0 && date.day > Date::days_in_month(date.year, date.month);
    if too_late && !mode.has(SqlMode::ALLOW_INVALID_DATES) { Err(Issues::OUT_OF_RANGE) } else { Ok(()) }
}
