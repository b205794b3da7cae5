//! Times of UTC as texts, in manifests of backups and in the stop of a restore.

/// Formats a time as RFC 3339, in whole seconds of UTC.
pub(crate) fn time_text(us: u64) -> String {
    let seconds = us / 1_000_000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days from 1 March of year 0, in eras of 400 years.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Parses a time of UTC, `YYYY-MM-DD HH:MM:SS[.ffffff]`, with `T` instead of the space and a `Z` at the end
/// if wanted, or `@` and microseconds since 1970. Returns microseconds since 1970.
pub fn parse_time(text: &str) -> Option<u64> {
    if let Some(us) = text.strip_prefix('@') {
        return us.parse().ok();
    }
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let punctuation = [(4, "-"), (7, "-"), (13, ":"), (16, ":")];
    let is_time = whole.len() == 19
        && whole.bytes().filter(u8::is_ascii_digit).count() == 14
        && punctuation.iter().all(|(at, is)| whole.get(*at..at + 1) == Some(is))
        && matches!(whole.get(10..11), Some(" " | "T"));
    if !is_time || fraction.len() > 6 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let fraction_us: u64 = format!("{fraction:0<6}").parse().ok()?;
    Some(seconds_of(whole)? * 1_000_000 + fraction_us)
}

/// Returns the seconds since 1970 of a time of 19 characters.
fn seconds_of(text: &str) -> Option<u64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    // Days since 1970 in the Gregorian calendar, with years that begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    u64::try_from(((days * 24 + hour) * 60 + minute) * 60 + second).ok()
}

#[cfg(test)]
mod tests {
    use super::{parse_time, time_text};

    #[test]
    fn times_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        cases.iter().for_each(|(s, text)| assert_eq!(time_text(s * 1_000_000), *text));
    }

    #[test]
    fn times_of_manifests_are_those_of_the_calendar() {
        let cases = [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-28T23:59:59Z", Some(951_782_399)),
            ("2024-02-29T23:59:59Z", Some(1_709_251_199)),
            ("2100-03-01T00:00:00Z", Some(4_107_542_400)),
            ("2024-02-29 23:59:59", Some(1_709_251_199)),
            ("2024-02-29", None),
            ("2024-02-29 23:59:59 CET", None),
            ("29.02.2024 23:59:59", None),
            ("", None),
        ];
        cases.iter().for_each(|(text, s)| {
            assert_eq!(parse_time(text), s.map(|s: u64| s * 1_000_000), "{text}");
        });
        assert_eq!(parse_time("1970-01-01 00:00:01.25"), Some(1_250_000));
        assert_eq!(parse_time("@77"), Some(77));
    }
}
