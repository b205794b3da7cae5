//! Dates and times as MariaDB keeps them: fields, not instants; zero and partial dates exist.

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

mod zone;

use crate::SqlMode;

pub use zone::{FixedOffset, LocalToUtc, TIMESTAMP_MICROS_MAX, TimeZone};

/// What a temporal conversion met; several may hold. None of them: the input was good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Issues(pub u8);

impl Issues {
    /// Text followed the value, or there was no value at all.
    pub const TRUNCATED: Issues = Issues(1);
    /// A field, or the whole, was out of range.
    pub const OUT_OF_RANGE: Issues = Issues(2);
    /// The date is zero and NO_ZERO_DATE is on.
    pub const ZERO_DATE: Issues = Issues(4);
    /// Month or day is zero and NO_ZERO_IN_DATE is on.
    pub const ZERO_IN_DATE: Issues = Issues(8);
    /// Only a part that the target type lacks was cut (a note in MariaDB): time of day for DATE, digits beyond
    /// the sixth.
    pub const NOTE: Issues = Issues(16);

    /// Whether any of `other` holds.
    pub fn any(self, other: Issues) -> bool {
        self.0 & other.0 != 0
    }
    /// Nothing but notes.
    pub fn is_good(self) -> bool {
        self.0 & !Issues::NOTE.0 == 0
    }
}

impl std::ops::BitOrAssign for Issues {
    fn bitor_assign(&mut self, other: Issues) {
        self.0 |= other.0;
    }
}

/// A parsed temporal. `value` is `None` when nothing usable was found (MariaDB then yields NULL in expressions and
/// the zero value in columns).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed<T> {
    /// The value, fractions cut to microseconds (rounded under TIME_ROUND_FRACTIONAL).
    pub value: Option<T>,
    /// What to warn about.
    pub issues: Issues,
    /// Whether the text had a time of day.
    pub has_time: bool,
    /// Fraction digits written, at most 6.
    pub decimals: u8,
}

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

/// The amount of an interval, split into what calendars and clocks count.
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
    /// The interval of a text such as `1 02:03` under a unit; `None` when it is beyond all range.
    pub fn parse(text: &[u8], unit: IntervalUnit) -> Option<Interval> {
        todo!()
    }
    /// The interval of an integer.
    pub fn from_int(v: i64, unit: IntervalUnit) -> Option<Interval> {
        todo!()
    }
    /// Turned round.
    pub fn neg(self) -> Interval {
        Interval { months: -self.months, days: -self.days, micros: -self.micros }
    }
}

impl IntervalUnit {
    /// By its SQL name, any case.
    pub fn by_name(name: &str) -> Option<IntervalUnit> {
        todo!()
    }
    /// Whether the unit counts anything below a day, so that DATE + INTERVAL is a DATETIME.
    pub fn has_time(self) -> bool {
        todo!()
    }
    /// Whether the unit counts microseconds, so that the result has six fraction digits.
    pub fn has_micros(self) -> bool {
        todo!()
    }
}

impl Date {
    /// `0000-00-00`.
    pub const ZERO: Date = Date { year: 0, month: 0, day: 0 };
    /// Fields as they are.
    pub const fn new(year: u16, month: u8, day: u8) -> Date {
        Date { year, month, day }
    }
    /// Lenient text, as MariaDB reads it.
    pub fn parse(text: &[u8], mode: SqlMode) -> Parsed<Date> {
        todo!()
    }
    /// A number such as 20260102 or 260102.
    pub fn from_number(v: i64, mode: SqlMode) -> Parsed<Date> {
        todo!()
    }
    /// 20260102.
    pub fn to_number(self) -> u32 {
        u32::from(self.year) * 10_000 + u32::from(self.month) * 100 + u32::from(self.day)
    }
    /// Whether all fields are 0.
    pub fn is_zero(self) -> bool {
        self == Date::ZERO
    }
    /// Whether the date stands in the calendar (no zero parts, day within its month).
    pub fn is_real(self) -> bool {
        todo!()
    }
    /// Days since year 0 (TO_DAYS); 0 for a zero date.
    pub fn day_number(self) -> u32 {
        todo!()
    }
    /// The date of a day number (FROM_DAYS); `None` beyond 9999-12-31, zero below day 366.
    pub fn from_day_number(days: u32) -> Option<Date> {
        todo!()
    }
    /// 0 is Monday (WEEKDAY).
    pub fn weekday(self) -> u8 {
        todo!()
    }
    /// 1 to 366.
    pub fn day_of_year(self) -> u16 {
        todo!()
    }
    /// WEEK(date, mode): the week and, as YEARWEEK needs it, the year it belongs to.
    pub fn week(self, mode: u8) -> (u16, u8) {
        todo!()
    }
    /// The last day of the month; 0 when the month is not 1 to 12.
    pub fn days_in_month(year: u16, month: u8) -> u8 {
        todo!()
    }
    /// Months later (or earlier), the day clamped to the month's last; `None` outside years 0 to 9999.
    pub fn add_months(self, months: i64) -> Option<Date> {
        todo!()
    }
    /// Days later; `None` outside the calendar.
    pub fn add_days(self, days: i64) -> Option<Date> {
        todo!()
    }
    /// Appends `2026-01-02`.
    pub fn write_text(self, out: &mut Vec<u8>) {
        todo!()
    }
    /// The 3 bytes of a row event, as a number: year*512 + month*32 + day.
    pub fn to_packed(self) -> u32 {
        u32::from(self.year) << 9 | u32::from(self.month) << 5 | u32::from(self.day)
    }
    /// The reverse; `None` when a field is out of range.
    pub fn from_packed(v: u32) -> Option<Date> {
        todo!()
    }
    /// Midnight of this date.
    pub fn at_midnight(self) -> DateTime {
        DateTime { date: self, ..DateTime::default() }
    }
}

impl Time {
    /// 838:59:59.999999.
    pub const MAX: Time = Time { micros: 3_020_399_999_999 };
    /// Lenient text: `hh:mm:ss.f`, `D hh:mm:ss`, `hhmmss`, or a datetime, of which the time of day is taken.
    pub fn parse(text: &[u8], mode: SqlMode) -> Parsed<Time> {
        todo!()
    }
    /// A number such as 10203 for 01:02:03, with microseconds of its fraction.
    pub fn from_number(v: i64, micros: u32, mode: SqlMode) -> Parsed<Time> {
        todo!()
    }
    /// From its parts; clamped to [`Time::MAX`].
    pub fn from_hms(negative: bool, hour: u32, minute: u8, second: u8, micros: u32) -> Time {
        todo!()
    }
    /// hhmmss with sign, fraction cut.
    pub fn to_number(self) -> i64 {
        todo!()
    }
    /// Hours of the absolute value.
    pub fn hour(self) -> u32 {
        todo!()
    }
    /// Minute of the hour.
    pub fn minute(self) -> u8 {
        todo!()
    }
    /// Second of the minute.
    pub fn second(self) -> u8 {
        todo!()
    }
    /// Microsecond of the second.
    pub fn microsecond(self) -> u32 {
        todo!()
    }
    /// With `decimals` fraction digits, the rest cut or rounded (TIME_ROUND_FRACTIONAL).
    pub fn with_decimals(self, decimals: u8, mode: SqlMode) -> Time {
        todo!()
    }
    /// Appends `-01:02:03.450`.
    pub fn write_text(self, decimals: u8, out: &mut Vec<u8>) {
        todo!()
    }
}

impl DateTime {
    /// Lenient text, as MariaDB reads it.
    pub fn parse(text: &[u8], mode: SqlMode) -> Parsed<DateTime> {
        todo!()
    }
    /// A number such as 20260102030405 or 20260102, with microseconds of its fraction.
    pub fn from_number(v: i64, micros: u32, mode: SqlMode) -> Parsed<DateTime> {
        todo!()
    }
    /// 20260102030405.
    pub fn to_number(self) -> u64 {
        u64::from(self.date.to_number()) * 1_000_000
            + u64::from(self.hour) * 10_000
            + u64::from(self.minute) * 100
            + u64::from(self.second)
    }
    /// Whether all fields are 0.
    pub fn is_zero(self) -> bool {
        self == DateTime::default()
    }
    /// Microseconds since midnight.
    pub fn micros_of_day(&self) -> i64 {
        let seconds = (i64::from(self.hour) * 60 + i64::from(self.minute)) * 60 + i64::from(self.second);
        seconds * 1_000_000 + i64::from(self.micros)
    }
    /// A date and microseconds since midnight (below 24 hours).
    pub fn from_micros_of_day(date: Date, micros: i64) -> DateTime {
        todo!()
    }
    /// The time of day.
    pub fn time(&self) -> Time {
        Time { micros: self.micros_of_day() }
    }
    /// Later by an interval; `None` outside years 0 to 9999 or when the date is not real.
    pub fn add_interval(&self, interval: &Interval) -> Option<DateTime> {
        todo!()
    }
    /// With `decimals` fraction digits, the rest cut or rounded (TIME_ROUND_FRACTIONAL); `None` beyond 9999.
    pub fn with_decimals(self, decimals: u8, mode: SqlMode) -> Option<DateTime> {
        todo!()
    }
    /// Appends `2026-01-02 03:04:05.670`.
    pub fn write_text(&self, decimals: u8, out: &mut Vec<u8>) {
        todo!()
    }
}
