//! Rate limit for lines of the error log that a remote party can cause repeatedly: a few lines a minute for
//! each cause, then the number of omitted lines.

use std::collections::BTreeMap;

/// Maximum number of lines of one cause in a window.
const LINES_MAX: u64 = 4;
const WINDOW_US: u64 = 60_000_000;
/// Maximum number of causes that are counted separately. If there are more, all counts are reset.
const CAUSES_MAX: usize = 1000;

/// Cause of a line: its level, and the id of the party that causes it.
pub type Cause = (&'static str, u32);

/// Recent lines by cause.
#[derive(Debug, Default)]
pub struct Repeated {
    windows: BTreeMap<Cause, Window>,
}

#[derive(Debug)]
struct Window {
    began_us: u64,
    lines: u64,
}

/// Decision on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Log the line; `left_out` lines of its cause were omitted before it.
    Log { left_out: u64 },
    /// Omit the line.
    LeaveOut,
}

impl Repeated {
    /// Decides on a line of this cause.
    pub fn ask(&mut self, cause: Cause, now_us: u64) -> Verdict {
        if self.windows.len() >= CAUSES_MAX && !self.windows.contains_key(&cause) {
            self.windows.clear();
        }
        let window = self.windows.entry(cause).or_insert(Window { began_us: now_us, lines: 0 });
        let mut left_out = 0;
        if now_us.saturating_sub(window.began_us) >= WINDOW_US {
            left_out = window.lines.saturating_sub(LINES_MAX);
            *window = Window { began_us: now_us, lines: 0 };
        }
        window.lines += 1;
        if window.lines > LINES_MAX { Verdict::LeaveOut } else { Verdict::Log { left_out } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_lines_a_second_are_four_a_minute_and_a_count() {
        let mut repeated = Repeated::default();
        let mut logged = Vec::new();
        for n in 0..121_000 {
            if let Verdict::Log { left_out } = repeated.ask(("Note", 7), n * 1000) {
                logged.push((n / 1000, left_out));
            }
        }
        let expected = [0, 60, 120].map(|second| [second; 4]).concat();
        assert_eq!(logged.iter().map(|(second, _)| *second).collect::<Vec<_>>(), expected);
        assert_eq!(logged.iter().map(|(_, left_out)| left_out).sum::<u64>(), 2 * (60_000 - 4));
        assert_eq!(repeated.ask(("Note", 8), 0), Verdict::Log { left_out: 0 }, "another cause");
        for cause in 0..5000 {
            repeated.ask(("Note", cause), 0);
        }
        assert!(repeated.windows.len() <= CAUSES_MAX);
    }
}
