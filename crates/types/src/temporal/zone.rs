//! The interface of session time zones, which TIMESTAMP conversions use.

use crate::{Date, DateTime};

/// UTC of a local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalToUtc {
    /// The instant in microseconds since 1970-01-01 00:00 UTC.
    Exact(i64),
    /// The clock jumped over this local time. Contains the instant of the jump and the fraction of the
    /// second, in microseconds.
    Gap(i64),
    /// Before 1970-01-01 00:00:01 or after 2038-01-19 03:14:07 UTC.
    OutOfRange,
}

/// A session's time zone.
pub trait TimeZone {
    /// Converts the local fields of a real date to UTC.
    fn to_utc(&self, local: &DateTime) -> LocalToUtc;
    /// Converts UTC microseconds to local fields. 0, the zero timestamp, is `0000-00-00 00:00:00`.
    fn to_local(&self, utc_micros: i64) -> DateTime;
}

/// Largest TIMESTAMP, in microseconds.
pub const TIMESTAMP_MICROS_MAX: i64 = 0x7fff_ffff * 1_000_000 + 999_999;

/// A zone with a constant offset, such as `+02:00`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedOffset {
    /// Seconds east of Greenwich.
    pub seconds: i32,
}

impl FixedOffset {
    /// `+00:00`.
    pub const UTC: FixedOffset = FixedOffset { seconds: 0 };
}

/// 1970-01-01 as a day number.
const EPOCH_DAY: i64 = 719_528;

impl LocalToUtc {
    /// Returns `OutOfRange` if a TIMESTAMP cannot hold the instant, else the instant unchanged.
    pub fn in_range(self) -> LocalToUtc {
        match self {
            LocalToUtc::Exact(micros) | LocalToUtc::Gap(micros)
                if !(1_000_000..=TIMESTAMP_MICROS_MAX).contains(&micros) =>
            {
                LocalToUtc::OutOfRange
            }
            inside => inside,
        }
    }
}

impl DateTime {
    /// Returns the microseconds since 1970-01-01 00:00 on the local clock of any zone.
    pub fn clock_micros(&self) -> i64 {
        (i64::from(self.date.day_number()) - EPOCH_DAY) * 86_400_000_000 + self.micros_of_day()
    }
}

impl TimeZone for FixedOffset {
    fn to_utc(&self, local: &DateTime) -> LocalToUtc {
        LocalToUtc::Exact(local.clock_micros() - i64::from(self.seconds) * 1_000_000).in_range()
    }

    fn to_local(&self, utc_micros: i64) -> DateTime {
        if utc_micros == 0 {
            return DateTime::default();
        }
        let micros = utc_micros + i64::from(self.seconds) * 1_000_000;
        let day = micros.div_euclid(86_400_000_000) + EPOCH_DAY;
        let date = u32::try_from(day).ok().and_then(Date::from_day_number).unwrap_or_default();
        DateTime::from_micros_of_day(date, micros.rem_euclid(86_400_000_000))
    }
}
