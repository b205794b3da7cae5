//! The proleptic Gregorian calendar from year 0 to 9999, with MariaDB's day numbers.

use super::Date;

/// 9999-12-31.
pub(super) const DAY_NUMBER_MAX: u32 = 3_652_424;

/// Mode bits of WEEK.
const MONDAY_FIRST: u8 = 1;
const WEEK_YEAR: u8 = 2;
const FIRST_WEEKDAY: u8 = 4;

fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || (year % 400 == 0 && year != 0))
}

fn days_in_year(year: i32) -> i64 {
    if is_leap(year) { 366 } else { 365 }
}

impl Date {
    /// Returns the last day of the month, or 0 if the month is not 1 to 12.
    pub fn days_in_month(year: u16, month: u8) -> u8 {
        match month {
            2 if is_leap(year.into()) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => 0,
        }
    }

    /// Returns whether the calendar has this date: no zero parts, day within its month.
    pub fn is_real(self) -> bool {
        self.day >= 1 && self.day <= Date::days_in_month(self.year, self.month)
    }

    /// Returns the days since year 0 (TO_DAYS), 0 for a zero date.
    pub fn day_number(self) -> u32 {
        if self.year == 0 && self.month == 0 {
            return 0;
        }
        let (mut year, month) = (i64::from(self.year), i64::from(self.month));
        let mut days = 365 * year + 31 * (month - 1) + i64::from(self.day);
        if month <= 2 {
            year -= 1;
        } else {
            days -= (month * 4 + 23) / 10;
        }
        (days + year / 4 - ((year / 100 + 1) * 3) / 4).max(0) as u32
    }

    /// Returns the date of a day number (FROM_DAYS): `None` after 9999-12-31, the zero date below day 366.
    pub fn from_day_number(days: u32) -> Option<Date> {
        if days > DAY_NUMBER_MAX {
            return None;
        }
        if days <= 365 {
            return Some(Date::ZERO);
        }
        let days = i64::from(days);
        let mut year = days * 100 / 36_525;
        let mut rest = days - year * 365 - (year - 1) / 4 + (((year - 1) / 100 + 1) * 3) / 4;
        while rest > days_in_year(year as i32) {
            rest -= days_in_year(year as i32);
            year += 1;
        }
        let mut month = 1;
        loop {
            let in_month = i64::from(Date::days_in_month(year as u16, month));
            if rest <= in_month {
                return Some(Date::new(year as u16, month, rest as u8));
            }
            rest -= in_month;
            month += 1;
        }
    }

    /// Returns the day of the week, 0 for Monday (WEEKDAY).
    pub fn weekday(self) -> u8 {
        ((self.day_number() + 5) % 7) as u8
    }

    /// Returns the day of the year, 1 to 366.
    pub fn day_of_year(self) -> u16 {
        let first = Date::new(self.year, 1, 1).day_number();
        (self.day_number() + 1).saturating_sub(first) as u16
    }

    /// Returns the year that the week belongs to and the week's number: WEEK(date, mode). YEARWEEK passes
    /// `mode | 2`.
    pub fn week(self, mode: u8) -> (u16, u8) {
        let mut mode = mode & 7;
        if mode & MONDAY_FIRST == 0 {
            mode ^= FIRST_WEEKDAY;
        }
        let mut week_year = mode & WEEK_YEAR != 0;
        let by_weekday = mode & FIRST_WEEKDAY != 0;
        // True if the first, incomplete week belongs to the previous year.
        let belongs_before = |weekday: i64| if by_weekday { weekday != 0 } else { weekday >= 4 };

        let day = i64::from(self.day_number());
        let mut first = i64::from(Date::new(self.year, 1, 1).day_number());
        let sunday_first = i64::from(mode & MONDAY_FIRST == 0);
        let mut weekday = (first + 5 + sunday_first) % 7;
        let mut year = i32::from(self.year);

        if self.month == 1 && i64::from(self.day) <= 7 - weekday {
            if !week_year && belongs_before(weekday) {
                return (self.year, 0);
            }
            week_year = true;
            year -= 1;
            let days = days_in_year(year);
            first -= days;
            weekday = (weekday + 53 * 7 - days) % 7;
        }
        let days =
            if belongs_before(weekday) { day - (first + 7 - weekday) } else { day - (first - weekday) };
        if week_year && days >= 52 * 7 {
            weekday = (weekday + days_in_year(year)) % 7;
            if !belongs_before(weekday) {
                return ((year + 1) as u16, 1);
            }
        }
        (year.max(0) as u16, (days / 7 + 1) as u8)
    }

    /// Adds months, which may be negative, and clamps the day to the last of the month. Returns `None`
    /// outside years 0 to 9999.
    pub fn add_months(self, months: i64) -> Option<Date> {
        let period = (i64::from(self.year) * 12 + i64::from(self.month) - 1).checked_add(months)?;
        if !(0..120_000).contains(&period) {
            return None;
        }
        let (year, month) = ((period / 12) as u16, (period % 12 + 1) as u8);
        Some(Date::new(year, month, self.day.min(Date::days_in_month(year, month))))
    }

    /// Adds days, which may be negative. Returns `None` outside the calendar.
    pub fn add_days(self, days: i64) -> Option<Date> {
        let day = i64::from(self.day_number()).checked_add(days)?;
        let date = Date::from_day_number(u32::try_from(day).ok()?)?;
        (!date.is_zero()).then_some(date)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn day_numbers_go_both_ways() {
        assert_eq!(Date::new(2026, 1, 2).day_number(), 739_983);
        assert_eq!(Date::new(1970, 1, 1).day_number(), 719_528);
        assert_eq!(Date::new(9999, 12, 31).day_number(), DAY_NUMBER_MAX);
        assert_eq!(Date::from_day_number(DAY_NUMBER_MAX + 1), None);
        for days in (366..=DAY_NUMBER_MAX).step_by(7).chain(719_000..722_000) {
            let date = Date::from_day_number(days).expect("in range");
            assert!(date.is_real(), "{date:?}");
            assert_eq!(date.day_number(), days, "{date:?}");
        }
    }

    #[test]
    fn months_are_clamped() {
        assert_eq!(Date::new(2024, 1, 31).add_months(1), Some(Date::new(2024, 2, 29)));
        assert_eq!(Date::new(2024, 2, 29).add_months(12), Some(Date::new(2025, 2, 28)));
        assert_eq!(Date::new(2024, 2, 29).add_months(-25_000), None);
        assert_eq!(Date::new(9999, 12, 31).add_days(1), None);
        assert_eq!(Date::new(2000, 12, 31).day_of_year(), 366);
    }
}
