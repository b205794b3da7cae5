//! Temporals as numbers.

use super::parse::check_date;
use super::{Date, DateTime, Issues, Parsed, SECOND, Time};
use crate::SqlMode;

/// Two-digit years below this are 20xx.
const PIVOT: i64 = 70;

/// Completes a number to yyyymmddhhmmss; the flag tells whether it had a time. `None`: no such form.
fn widen(v: i64) -> Option<(i64, bool)> {
    const DATE: i64 = 1_000_000;
    Some(match v {
        0 => (0, true),
        10_000_101_000_000..=99_999_999_999_999 => (v, true),
        ..101 => return None,
        _ if v <= (PIVOT - 1) * 10_000 + 1231 => ((v + 20_000_000) * DATE, false),
        _ if v < PIVOT * 10_000 + 101 => return None,
        ..=991_231 => ((v + 19_000_000) * DATE, false),
        ..=99_991_231 => (v * DATE, false),
        ..=100_999_999 => return None,
        _ if v <= (PIVOT - 1) * 10_000_000_000 + 1_231_235_959 => (v + 20_000_000_000_000, true),
        _ if v < PIVOT * 10_000_000_000 + 101_000_000 => return None,
        ..=991_231_235_959 => (v + 19_000_000_000_000, true),
        ..=10_000_101_000_000 => (v, true),
        _ => return None,
    })
}

impl DateTime {
    /// A number such as 20260102030405 or 20260102, with microseconds of its fraction.
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
        let value = DateTime { date, hour: hour as u8, minute: minute as u8, second: second as u8, micros };
        Parsed {
            value: Some(value),
            issues: Issues::default(),
            has_time,
            decimals: if micros > 0 { 6 } else { 0 },
        }
    }

    /// 20260102030405.
    pub fn to_number(self) -> u64 {
        u64::from(self.date.to_number()) * 1_000_000
            + u64::from(self.hour) * 10_000
            + u64::from(self.minute) * 100
            + u64::from(self.second)
    }
}

impl Date {
    /// A number such as 20260102 or 260102; a time of day is cut with a note.
    pub fn from_number(v: i64, mode: SqlMode) -> Parsed<Date> {
        DateTime::from_number(v, 0, mode).to_date()
    }

    /// 20260102.
    pub fn to_number(self) -> u32 {
        u32::from(self.year) * 10_000 + u32::from(self.month) * 100 + u32::from(self.day)
    }
}

impl Time {
    /// A number such as 10203 for 01:02:03, with microseconds of its fraction; `v` and the fraction have one sign,
    /// `negative` is that of a number between -1 and 0.
    pub fn from_number(v: i64, micros: u32, mode: SqlMode) -> Parsed<Time> {
        let negative = v < 0;
        let magnitude = v.unsigned_abs();
        if !negative && v > 99_999_999 && v >= 10_000_101_000_000 {
            let lenient = SqlMode(mode.0 & SqlMode::TIME_ROUND_FRACTIONAL.0);
            let mut time = DateTime::from_number(v, micros, lenient).map(|d| d.time());
            time.issues |= Issues::NOTE;
            return time;
        }
        let good = |value, issues| Parsed {
            value: Some(value),
            issues,
            has_time: true,
            decimals: if micros > 0 { 6 } else { 0 },
        };
        if magnitude > 8_385_959 {
            let limit = if negative { Time { micros: -Time::MAX.micros } } else { Time::MAX };
            return good(limit, Issues::OUT_OF_RANGE);
        }
        let (minute, second) = ((magnitude / 100 % 100) as u8, (magnitude % 100) as u8);
        if minute > 59 || second > 59 {
            return Parsed::bad(Issues::TRUNCATED);
        }
        good(Time::from_hms(negative, (magnitude / 10_000) as u32, minute, second, micros), Issues::default())
    }

    /// hhmmss with sign, fraction cut.
    pub fn to_number(self) -> i64 {
        let seconds = self.micros / SECOND;
        let magnitude = seconds.abs();
        let number = magnitude / 3600 * 10_000 + magnitude / 60 % 60 * 100 + magnitude % 60;
        if seconds < 0 { -number } else { number }
    }
}
