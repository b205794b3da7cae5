//! Dates and times as in MariaDB: fields, not instants, including zero and partial dates.
//!
//! | file | contents |
//! |---|---|
//! | `calendar` | day numbers, weekdays, weeks, months |
//! | `parse` | lenient text |
//! | `numeric` | numbers such as 20260102030405 |
//! | `print` | text, and fraction digits truncated or rounded |
//! | `interval` | INTERVAL amounts and their addition |
//! | `packed` | encodings in rows, keys and row events |
//! | `zone` | the interface for session time zones |

mod calendar;
mod interval;
mod numeric;
mod packed;
mod parse;
mod print;
mod zone;

use crate::{SqlError, SqlMode, Warning};

pub use interval::{Interval, IntervalUnit};
pub(crate) use numeric::check_date;
pub(crate) use packed::{
    datetime_len, read_date, read_datetime, read_time, read_timestamp, time_len, timestamp_len, write_date,
    write_datetime, write_time, write_timestamp,
};
pub use parse::Span;
pub use zone::{FixedOffset, LocalToUtc, TIMESTAMP_MICROS_MAX, TimeZone};

/// A calendar date; `0000-00-00` and days of month 0 are representable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    pub year: u16,
    pub month: u8,
    pub day: u8,
}

/// A signed interval of up to 838:59:59.999999, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    pub micros: i64,
}

/// A date with a time of day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime {
    pub date: Date,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub micros: u32,
}

/// Issues of a temporal conversion, as a set. Empty for good input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Issues(pub u8);

impl Issues {
    /// Text follows the value, or there was no value at all.
    pub const TRUNCATED: Issues = Issues(1);
    /// A field, or the whole, was out of range.
    pub const OUT_OF_RANGE: Issues = Issues(2);
    /// The date is zero and NO_ZERO_DATE is on.
    pub const ZERO_DATE: Issues = Issues(4);
    /// Month or day is zero and NO_ZERO_IN_DATE is on.
    pub const ZERO_IN_DATE: Issues = Issues(8);
    /// Digits beyond the sixth were truncated, or the fraction of a number that is a date. A note in MariaDB.
    pub const NOTE: Issues = Issues(16);
    /// A part that the target type lacks was truncated: the time of day for DATE, the date for TIME. CAST
    /// does not report it; an assignment to a column adds note 1265.
    pub const CUT: Issues = Issues(32);

    /// Returns whether the sets intersect.
    pub fn any(self, other: Issues) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether there is nothing but notes and truncated parts.
    pub fn is_good(self) -> bool {
        self.0 & !(Issues::NOTE.0 | Issues::CUT.0) == 0
    }
}

impl std::ops::BitOrAssign for Issues {
    fn bitor_assign(&mut self, other: Issues) {
        self.0 |= other.0;
    }
}

/// A parsed temporal. `value` is `None` if nothing usable was found. MariaDB then returns NULL in expressions
/// and stores the zero value in columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed<T> {
    /// The value. Fractions are truncated to microseconds (rounded with TIME_ROUND_FRACTIONAL).
    pub value: Option<T>,
    /// The issues to report.
    pub issues: Issues,
    /// True if the input has a date.
    pub has_date: bool,
    /// True if the input has a time of day, or a time.
    pub has_time: bool,
    /// Number of fraction digits in the input, at most 6.
    pub decimals: u8,
}

impl<T> Parsed<T> {
    fn bad(issues: Issues) -> Parsed<T> {
        Parsed { value: None, issues, has_date: false, has_time: false, decimals: 0 }
    }

    fn map<U>(self, f: impl FnOnce(T) -> U) -> Parsed<U> {
        Parsed {
            value: self.value.map(f),
            issues: self.issues,
            has_date: self.has_date,
            has_time: self.has_time,
            decimals: self.decimals,
        }
    }

    /// Returns the warning of an expression about `input`: "Incorrect datetime value: 'x'" (with the
    /// requested type) if there is no value, else "Truncated incorrect date value: 'x'" (with the type
    /// found).
    pub fn warning(&self, asked_for: &str, input: &[u8]) -> Option<Warning> {
        if self.value.is_none() {
            return Some(Warning::new(SqlError::incorrect_value(asked_for, input)));
        }
        let found = match (self.has_date, self.has_time) {
            (true, false) => "date",
            (true, true) => "datetime",
            (false, _) => "time",
        };
        let error = SqlError::truncated_incorrect(found, input);
        match self.issues {
            issues if !issues.is_good() => Some(Warning::new(error)),
            issues if issues.any(Issues::NOTE) => Some(Warning::note(error)),
            _ => None,
        }
    }
}

impl Date {
    /// `0000-00-00`.
    pub const ZERO: Date = Date { year: 0, month: 0, day: 0 };

    /// Makes a date from unchecked fields.
    pub const fn new(year: u16, month: u8, day: u8) -> Date {
        Date { year, month, day }
    }

    /// Returns whether all fields are 0.
    pub fn is_zero(self) -> bool {
        self == Date::ZERO
    }

    /// Returns whether NO_ZERO_DATE or NO_ZERO_IN_DATE rejects the date.
    pub fn is_refused(self, mode: SqlMode) -> bool {
        let has_zero = self.month == 0 || self.day == 0;
        match self.is_zero() {
            true => mode.has(SqlMode::NO_ZERO_DATE),
            false => has_zero && mode.has(SqlMode::NO_ZERO_IN_DATE),
        }
    }

    /// Returns midnight of this date.
    pub fn at_midnight(self) -> DateTime {
        DateTime { date: self, ..DateTime::default() }
    }
}

/// Microseconds of a second and of a day.
const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

impl Time {
    /// 838:59:59.999999.
    pub const MAX: Time = Time { micros: 3_020_399_999_999 };

    /// Makes a time from its parts, clamped to [`Time::MAX`].
    pub fn from_hms(negative: bool, hour: u32, minute: u8, second: u8, micros: u32) -> Time {
        let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
        let micros = (seconds * SECOND + i64::from(micros)).min(Time::MAX.micros);
        Time { micros: if negative { -micros } else { micros } }
    }

    /// Returns the hours of the absolute value.
    pub fn hour(self) -> u32 {
        (self.micros.unsigned_abs() / 3_600_000_000) as u32
    }

    /// Returns the minute of the hour.
    pub fn minute(self) -> u8 {
        (self.micros.unsigned_abs() / 60_000_000 % 60) as u8
    }

    /// Returns the second of the minute.
    pub fn second(self) -> u8 {
        (self.micros.unsigned_abs() / 1_000_000 % 60) as u8
    }

    /// Returns the microsecond of the second.
    pub fn microsecond(self) -> u32 {
        (self.micros.unsigned_abs() % 1_000_000) as u32
    }
}

impl DateTime {
    /// Returns whether all fields are 0.
    pub fn is_zero(self) -> bool {
        self == DateTime::default()
    }

    /// Returns the microseconds since midnight.
    pub fn micros_of_day(&self) -> i64 {
        let seconds = (i64::from(self.hour) * 60 + i64::from(self.minute)) * 60 + i64::from(self.second);
        seconds * SECOND + i64::from(self.micros)
    }

    /// Makes a datetime from a date and microseconds since midnight (below 24 hours).
    pub fn from_micros_of_day(date: Date, micros: i64) -> DateTime {
        let time = Time { micros };
        DateTime {
            date,
            hour: time.hour() as u8,
            minute: time.minute(),
            second: time.second(),
            micros: time.microsecond(),
        }
    }

    /// Returns the time of day.
    pub fn time(&self) -> Time {
        Time { micros: self.micros_of_day() }
    }
}
