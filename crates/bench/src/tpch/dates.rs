//! Dates as numbers of days, with arithmetic and formatting.

/// Days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(pub i32);

/// 1992-01-01: the oldest order.
pub const FIRST: Day = Day(8035);
/// 1998-08-02: the newest order.
pub const LAST_ORDER: Day = Day(10_440);
/// 1995-06-17: items received until then may have been returned.
pub const CURRENT: Day = Day(9298);

impl Day {
    pub fn after(self, days: i32) -> Day {
        Day(self.0 + days)
    }

    /// Returns year, month and day of the month.
    pub fn civil(self) -> (i32, i32, i32) {
        // Years are counted from March, so that the leap day is the last.
        let days = self.0 + 719_468;
        let era = days.div_euclid(146_097);
        let of_era = days.rem_euclid(146_097);
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        (era * 400 + year + carry, month, day)
    }
}

impl std::fmt::Display for Day {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let (year, month, day) = self.civil();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        let shown = [FIRST, LAST_ORDER, CURRENT, Day(0), Day(11_016)].map(|day| day.to_string());
        assert_eq!(shown, ["1992-01-01", "1998-08-02", "1995-06-17", "1970-01-01", "2000-02-29"]);
    }
}
