//! Names and texts of the archive of the log that the server and `cohort-backup` have in common.

use crate::frame::TimelineStart;

/// Name of the file with the history of a timeline.
pub const HISTORY: &str = "history";

/// Returns the name of an object with ranges, without its folder.
pub fn log_object_name(from: u64, to: u64) -> String {
    format!("{}.log", range_name(from, to))
}

/// Returns the LSNs of an object with ranges, if the name is that of one.
pub fn log_object_range(name: &str) -> Option<(u64, u64)> {
    range_of(name.strip_suffix(".log")?)
}

/// Returns the name of a range of LSNs.
pub fn range_name(from: u64, to: u64) -> String {
    format!("{from:016x}-{to:016x}")
}

/// Returns the LSNs of the name of a range, which is not empty.
pub fn range_of(name: &str) -> Option<(u64, u64)> {
    let (from, to) = name.split_once('-')?;
    Some((hex_digits::<16>(from)?, hex_digits::<16>(to)?)).filter(|(from, to)| from < to)
}

/// Returns the number of exactly `N` lower-case hexadecimal digits.
pub fn hex_digits<const N: usize>(text: &str) -> Option<u64> {
    let is_hex = text.len() == N && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_hex.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// Formats the history of a timeline: a line for each ancestor, oldest first, and for itself.
pub fn history_text(history: impl IntoIterator<Item = TimelineStart>) -> String {
    history.into_iter().map(|it| format!("{} {:016x}\n", it.timeline, it.lsn)).collect()
}

/// Parses the history of a timeline.
pub fn parse_history(text: &str) -> Option<Vec<TimelineStart>> {
    let line = |line: &str| {
        let (timeline, lsn) = line.split_once(' ')?;
        Some(TimelineStart { timeline: timeline.parse().ok()?, lsn: hex_digits::<16>(lsn)? })
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_histories_are_read_as_they_are_written() {
        assert_eq!(log_object_range(&log_object_name(0x2000, 0x4000)), Some((0x2000, 0x4000)));
        for name in
            ["", "2-4.log", "+000000000000001-0000000000000002.log", "0000000000000002-0000000000000002.log"]
        {
            assert_eq!(log_object_range(name), None, "{name}");
        }
        let history = [(1, 0), (1_789_919_232, 0x5aa)].map(|(timeline, lsn)| TimelineStart { timeline, lsn });
        let text = history_text(history);
        assert_eq!(text, "1 0000000000000000\n1789919232 00000000000005aa\n");
        assert_eq!(parse_history(&text), Some(history.to_vec()));
        assert_eq!(parse_history("1 5"), None);
    }
}
