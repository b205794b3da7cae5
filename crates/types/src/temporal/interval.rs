//! The amounts of `INTERVAL expr unit`.

use super::{DAY, DateTime, SECOND};
use crate::value::number::parse_int;
use crate::{Decimal, Lost};

/// A unit of `INTERVAL expr unit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntervalUnit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Microsecond,
    YearMonth,
    DayHour,
    DayMinute,
    DaySecond,
    HourMinute,
    HourSecond,
    MinuteSecond,
    DayMicrosecond,
    HourMicrosecond,
    MinuteMicrosecond,
    SecondMicrosecond,
}

use IntervalUnit as U;

const NAMES: [(&str, IntervalUnit); 20] = [
    ("YEAR", U::Year),
    ("QUARTER", U::Quarter),
    ("MONTH", U::Month),
    ("WEEK", U::Week),
    ("DAY", U::Day),
    ("HOUR", U::Hour),
    ("MINUTE", U::Minute),
    ("SECOND", U::Second),
    ("MICROSECOND", U::Microsecond),
    ("YEAR_MONTH", U::YearMonth),
    ("DAY_HOUR", U::DayHour),
    ("DAY_MINUTE", U::DayMinute),
    ("DAY_SECOND", U::DaySecond),
    ("HOUR_MINUTE", U::HourMinute),
    ("HOUR_SECOND", U::HourSecond),
    ("MINUTE_SECOND", U::MinuteSecond),
    ("DAY_MICROSECOND", U::DayMicrosecond),
    ("HOUR_MICROSECOND", U::HourMicrosecond),
    ("MINUTE_MICROSECOND", U::MinuteMicrosecond),
    ("SECOND_MICROSECOND", U::SecondMicrosecond),
];

impl IntervalUnit {
    /// Finds a unit by its SQL name, in any case.
    pub fn by_name(name: &str) -> Option<IntervalUnit> {
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, unit)| *unit)
    }

    /// Returns the SQL name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, unit)| *unit == self).map_or("", |(name, _)| name)
    }

    /// Returns whether the unit counts a part of a day, so that DATE + INTERVAL is a DATETIME.
    pub fn has_time(self) -> bool {
        !matches!(self, U::Year | U::Quarter | U::Month | U::YearMonth | U::Week | U::Day)
    }

    /// Returns whether the unit counts microseconds, so that the result has six fraction digits.
    pub fn has_micros(self) -> bool {
        use IntervalUnit as U;
        matches!(
            self,
            U::Microsecond
                | U::DayMicrosecond
                | U::HourMicrosecond
                | U::MinuteMicrosecond
                | U::SecondMicrosecond
        )
    }

    /// Returns the fields of a compound unit, each as the interval of one such unit. Empty for other units.
    fn fields(self) -> &'static [Interval] {
        const YEAR: Interval = Interval { months: 12, days: 0, micros: 0 };
        const MONTH: Interval = Interval { months: 1, days: 0, micros: 0 };
        const D: Interval = Interval { months: 0, days: 1, micros: 0 };
        const H: Interval = Interval { months: 0, days: 0, micros: 3600 * SECOND };
        const M: Interval = Interval { months: 0, days: 0, micros: 60 * SECOND };
        const S: Interval = Interval { months: 0, days: 0, micros: SECOND };
        const F: Interval = Interval { months: 0, days: 0, micros: 1 };
        match self {
            U::YearMonth => &[YEAR, MONTH],
            U::DayHour => &[D, H],
            U::DayMinute => &[D, H, M],
            U::DaySecond => &[D, H, M, S],
            U::HourMinute => &[H, M],
            U::HourSecond => &[H, M, S],
            U::MinuteSecond => &[M, S],
            U::DayMicrosecond => &[D, H, M, S, F],
            U::HourMicrosecond => &[H, M, S, F],
            U::MinuteMicrosecond => &[M, S, F],
            U::SecondMicrosecond => &[S, F],
            _ => &[],
        }
    }
}

/// Amount of an interval, split into months, days and microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Years, quarters and months, in months.
    pub months: i64,
    /// Weeks and days, in days.
    pub days: i64,
    /// The rest, in microseconds.
    pub micros: i64,
}

impl Interval {
    /// Parses a text such as `1 02:03` for a unit. Returns `None` if it has too many fields or overflows.
    pub fn parse(text: &[u8], unit: IntervalUnit) -> Option<Interval> {
        let fields = unit.fields();
        if fields.is_empty() {
            return match unit {
                U::Second => Interval::from_decimal(&Decimal::parse(text).0, unit),
                _ => Interval::from_int(i64::try_from(parse_int(text).0).ok()?, unit),
            };
        }
        let body = text.trim_ascii_start();
        let negative = body.first() == Some(&b'-');
        let mut groups = body.split(|b| !b.is_ascii_digit()).filter(|g| !g.is_empty());
        let values: Vec<&[u8]> = groups.by_ref().take(fields.len()).collect();
        if groups.next().is_some() {
            return None;
        }
        let mut sum = Interval::default();
        // Fewer fields than the unit has are its last ones.
        for (field, digits) in fields[fields.len() - values.len()..].iter().zip(&values) {
            let value = if field.micros == 1 { micros_of(digits) } else { amount(digits)? };
            sum = sum.plus(&field.times(value)?)?;
        }
        Some(if negative { sum.neg() } else { sum })
    }

    /// Returns the interval of an integer. For a compound unit the integer's text is parsed.
    pub fn from_int(v: i64, unit: IntervalUnit) -> Option<Interval> {
        let one = match unit {
            U::Year => Interval { months: 12, ..Interval::default() },
            U::Quarter => Interval { months: 3, ..Interval::default() },
            U::Month => Interval { months: 1, ..Interval::default() },
            U::Week => Interval { days: 7, ..Interval::default() },
            U::Day => Interval { days: 1, ..Interval::default() },
            U::Hour => Interval { micros: 3600 * SECOND, ..Interval::default() },
            U::Minute => Interval { micros: 60 * SECOND, ..Interval::default() },
            U::Second => Interval { micros: SECOND, ..Interval::default() },
            U::Microsecond => Interval { micros: 1, ..Interval::default() },
            _ => return Interval::parse(v.to_string().as_bytes(), unit),
        };
        one.times(v)
    }

    /// Returns the interval of a number. Seconds keep their fraction, other units round. For a compound unit
    /// the number's text is parsed.
    pub fn from_decimal(v: &Decimal, unit: IntervalUnit) -> Option<Interval> {
        if unit == U::Second {
            let micros = v.truncate(6).mul(&Decimal::from_i64(SECOND)).ok()?.to_i64();
            return (micros.1 != Lost::Range).then_some(Interval { micros: micros.0, ..Interval::default() });
        }
        if !unit.fields().is_empty() {
            return Interval::parse(v.to_string().as_bytes(), unit);
        }
        let (v, lost) = v.to_i64();
        if lost == Lost::Range { None } else { Interval::from_int(v, unit) }
    }

    /// Returns the negated interval. This is not the operator, because callers pass it as a function.
    #[allow(clippy::should_implement_trait)]
    pub fn neg(self) -> Interval {
        Interval { months: -self.months, days: -self.days, micros: -self.micros }
    }

    fn times(&self, factor: i64) -> Option<Interval> {
        // i64::MIN cannot be negated.
        let product = |v: i64| v.checked_mul(factor).filter(|&v| v != i64::MIN);
        Some(Interval {
            months: product(self.months)?,
            days: product(self.days)?,
            micros: product(self.micros)?,
        })
    }

    fn plus(&self, other: &Interval) -> Option<Interval> {
        Some(Interval {
            months: self.months.checked_add(other.months)?,
            days: self.days.checked_add(other.days)?,
            micros: self.micros.checked_add(other.micros)?,
        })
    }
}

fn amount(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Returns the microseconds of a last field, which is a fraction: `5` is half a second.
fn micros_of(digits: &[u8]) -> i64 {
    (0..6).fold(0, |v, n| v * 10 + digits.get(n).map_or(0, |b| i64::from(b - b'0')))
}

impl DateTime {
    /// Adds an interval. Returns `None` outside years 0 to 9999 or if the date is not real.
    pub fn add_interval(&self, interval: &Interval) -> Option<DateTime> {
        if !self.date.is_real() {
            return None;
        }
        let date = if interval.months != 0 { self.date.add_months(interval.months)? } else { self.date };
        let micros = self.micros_of_day().checked_add(interval.micros)?;
        let days = interval.days.checked_add(micros.div_euclid(DAY))?;
        let date = if days != 0 { date.add_days(days)? } else { date };
        Some(DateTime::from_micros_of_day(date, micros.rem_euclid(DAY)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Date, SqlMode};

    fn added(start: &str, text: &str, unit: &str) -> Option<String> {
        let start = DateTime::parse(start.as_bytes(), SqlMode::NONE).value.expect("a datetime");
        let interval = Interval::parse(text.as_bytes(), IntervalUnit::by_name(unit).expect("a unit"))?;
        let mut out = Vec::new();
        start
            .add_interval(&interval)?
            .write_text(if interval.micros % SECOND != 0 { 6 } else { 0 }, &mut out);
        String::from_utf8(out).ok()
    }

    #[test]
    fn intervals_of_all_shapes() {
        for (start, text, unit, sum) in [
            ("2024-01-31", "1", "month", "2024-02-29 00:00:00"),
            ("2024-02-29", "1", "year", "2025-02-28 00:00:00"),
            ("2024-01-01 10:00:00", "1 02:03", "day_minute", "2024-01-02 12:03:00"),
            ("2024-01-01", "-1:30", "hour_minute", "2023-12-31 22:30:00"),
            ("2024-01-01", "30", "hour_minute", "2024-01-01 00:30:00"),
            ("2024-01-01", "1.5", "second", "2024-01-01 00:00:01.500000"),
            ("2024-01-01", "1.5", "second_microsecond", "2024-01-01 00:00:01.500000"),
            ("2024-01-01", "1-2", "year_month", "2025-03-01 00:00:00"),
            ("2024-01-01", "2", "week", "2024-01-15 00:00:00"),
            ("2024-01-01", "1 1:1:1.000001", "day_microsecond", "2024-01-02 01:01:01.000001"),
        ] {
            assert_eq!(added(start, text, unit).as_deref(), Some(sum), "{start} + {text} {unit}");
        }
        assert_eq!(added("9999-12-31", "1", "day"), None);
        assert_eq!(added("2024-01-01", "1:2:3", "hour_minute"), None);
        assert_eq!(added("2024-01-01", "99999999999999999", "year"), None);
        assert_eq!(Date::new(2024, 0, 1).at_midnight().add_interval(&Interval::default()), None);
    }
}
