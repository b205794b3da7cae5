//! Temporals as text, and truncation or rounding of their fractions.

use super::{DAY, Date, DateTime, SECOND, Time};
use crate::SqlMode;
use crate::value::number::write_padded;

fn put2(v: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'0' + v / 10 % 10, b'0' + v % 10]);
}

/// Appends the fraction of microseconds: `.123`.
fn put_fraction(micros: u32, decimals: u8, out: &mut Vec<u8>) {
    let decimals = decimals.min(6);
    if decimals > 0 {
        out.push(b'.');
        write_padded(micros / 10u32.pow(6 - u32::from(decimals)), decimals.into(), out);
    }
}

/// Truncates microseconds to `decimals` digits, or rounds half away from zero.
fn cut(micros: i64, decimals: u8, mode: SqlMode) -> i64 {
    let unit = 10i64.pow(6 - u32::from(decimals.min(6)));
    if mode.has(SqlMode::TIME_ROUND_FRACTIONAL) {
        let half = if micros < 0 { -unit / 2 } else { unit / 2 };
        (micros + half) / unit * unit
    } else {
        micros / unit * unit
    }
}

impl Date {
    /// Appends `2026-01-02`.
    pub fn write_text(self, out: &mut Vec<u8>) {
        put2((self.year / 100) as u8, out);
        put2((self.year % 100) as u8, out);
        out.push(b'-');
        put2(self.month, out);
        out.push(b'-');
        put2(self.day, out);
    }
}

impl Time {
    /// Appends `-01:02:03.450`.
    pub fn write_text(self, decimals: u8, out: &mut Vec<u8>) {
        if self.micros < 0 {
            out.push(b'-');
        }
        write_padded(self.hour(), 2, out);
        out.push(b':');
        put2(self.minute(), out);
        out.push(b':');
        put2(self.second(), out);
        put_fraction(self.microsecond(), decimals, out);
    }

    /// Returns the time with `decimals` fraction digits, the rest truncated or rounded
    /// (TIME_ROUND_FRACTIONAL).
    pub fn with_decimals(self, decimals: u8, mode: SqlMode) -> Time {
        let limit = cut(Time::MAX.micros, decimals, SqlMode::NONE);
        Time { micros: cut(self.micros, decimals, mode).clamp(-limit, limit) }
    }
}

impl DateTime {
    /// Appends `2026-01-02 03:04:05.670`.
    pub fn write_text(&self, decimals: u8, out: &mut Vec<u8>) {
        self.date.write_text(out);
        out.push(b' ');
        put2(self.hour, out);
        out.push(b':');
        put2(self.minute, out);
        out.push(b':');
        put2(self.second, out);
        put_fraction(self.micros, decimals, out);
    }

    /// Returns the datetime with `decimals` fraction digits, the rest truncated or rounded
    /// (TIME_ROUND_FRACTIONAL). Returns `None` after year 9999.
    pub fn with_decimals(self, decimals: u8, mode: SqlMode) -> Option<DateTime> {
        let micros = cut(self.micros.into(), decimals, mode);
        if micros < SECOND {
            return Some(DateTime { micros: micros as u32, ..self });
        }
        let later = DateTime { micros: 0, ..self }.micros_of_day() + SECOND;
        if later < DAY {
            return Some(DateTime::from_micros_of_day(self.date, later));
        }
        Some(self.date.add_days(1)?.at_midnight())
    }

    /// Returns the datetime one microsecond later.
    pub(super) fn round_up_micro(self) -> Option<DateTime> {
        if self.micros < 999_999 {
            return Some(DateTime { micros: self.micros + 1, ..self });
        }
        self.with_decimals(0, SqlMode::TIME_ROUND_FRACTIONAL)
    }
}
