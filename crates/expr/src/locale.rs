//! Names of months and days in MariaDB's locales, recorded from MariaDB 10.11.19 (`locales.txt`).

use std::sync::LazyLock;

static RECORDED: &str = include_str!("locales.txt");

/// Names of a locale.
#[derive(Debug)]
pub struct DateNames {
    /// Twelve months, twelve short months, seven days from Sunday on, seven short days.
    names: Vec<&'static str>,
}

static LOCALES: LazyLock<Vec<(&str, DateNames)>> = LazyLock::new(|| {
    let lines = RECORDED.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let (locales, names) = line.split_once('\t')?;
            Some((locales, DateNames { names: names.split('|').collect() }))
        })
        .collect()
});

impl DateNames {
    /// Returns the names of a locale. The locale's name may be in any case.
    pub fn of_locale(name: &str) -> Option<&'static DateNames> {
        let has = |names: &str| names.split(' ').any(|known| known.eq_ignore_ascii_case(name));
        LOCALES.iter().find(|(names, _)| has(names)).map(|(_, names)| names)
    }

    /// Returns the names for `lc_time_names`, `None` for English, whose names are built in.
    pub fn of_session(name: &str) -> Option<&'static DateNames> {
        if name.starts_with("en_") { None } else { DateNames::of_locale(name) }
    }

    /// Returns the length of the longest name of a month in characters.
    pub(crate) fn month_chars_max(&self) -> usize {
        self.names[..12].iter().map(|name| name.chars().count()).max().unwrap_or(0)
    }

    /// Returns the length of the longest name of a day in characters.
    pub(crate) fn day_chars_max(&self) -> usize {
        self.names[24..31].iter().map(|name| name.chars().count()).max().unwrap_or(0)
    }

    /// Returns the name of a month from 1 to 12.
    pub(crate) fn month(&self, month: u8, is_short: bool) -> Option<&'static str> {
        let month = usize::from(month).checked_sub(1).filter(|month| *month < 12)?;
        self.names.get(month + if is_short { 12 } else { 0 }).copied()
    }

    /// Returns the name of a day, where 0 is Monday.
    pub(crate) fn weekday(&self, weekday: u8, is_short: bool) -> Option<&'static str> {
        let from_sunday = (usize::from(weekday) + 1) % 7;
        self.names.get(24 + from_sunday + if is_short { 7 } else { 0 }).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_locale_has_all_names() {
        assert!(LOCALES.iter().all(|(_, names)| names.names.len() == 38));
        let german = DateNames::of_locale("DE_de").expect("known");
        assert_eq!((german.month(3, false), german.weekday(2, true)), (Some("März"), Some("Mi")));
        assert_eq!(german.month(0, false), None);
        assert!(DateNames::of_locale("nix").is_none());
    }
}
