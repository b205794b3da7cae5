//! Progress of a long operation, with an estimate of the time that is left.

use std::fmt;

const SECOND_NS: u64 = 1_000_000_000;
/// Duration from which an operation is worth a line in the log.
const LONG_NS: u64 = 10 * SECOND_NS;

/// When an operation began, and when its next line is due.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    began_ns: u64,
    due_ns: u64,
}

/// Progress at one time: `40.0 % after 12 s, about 18 s left`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    per_mille: u64,
    elapsed_s: u64,
    /// `None` before anything is done.
    left_s: Option<u64>,
}

impl Pace {
    /// Begins at a time of a monotonic clock.
    pub fn begin(now_ns: u64) -> Pace {
        Pace { began_ns: now_ns, due_ns: now_ns + LONG_NS }
    }

    /// Returns the progress if a line is due: after ten seconds, and each time the duration has doubled.
    pub fn due(&mut self, now_ns: u64, done: u64, total: u64) -> Option<Progress> {
        if now_ns < self.due_ns {
            return None;
        }
        let elapsed_ns = now_ns - self.began_ns;
        self.due_ns = now_ns + elapsed_ns;
        let done = done.min(total);
        let left = |done| u128::from(elapsed_ns) * u128::from(total - done) / u128::from(done);
        let left_s = (done > 0).then(|| (left(done) / u128::from(SECOND_NS)) as u64);
        let per_mille = (u128::from(done) * 1000).checked_div(total.into()).unwrap_or(0) as u64;
        Some(Progress { per_mille, elapsed_s: elapsed_ns / SECOND_NS, left_s })
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Progress { per_mille, elapsed_s, left_s } = self;
        write!(f, "{}.{} % after {elapsed_s} s", per_mille / 10, per_mille % 10)?;
        left_s.map_or(Ok(()), |left_s| write!(f, ", about {left_s} s left"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Pace, SECOND_NS};

    #[test]
    fn lines_are_due_after_ten_seconds_and_then_ever_less_often() {
        let mut pace = Pace::begin(5 * SECOND_NS);
        for (second, done, total, expected) in [
            (5, 0, 100, None),
            (14, 50, 100, None),
            (15, 0, 100, Some("0.0 % after 10 s")),
            (24, 10, 100, None),
            (25, 25, 100, Some("25.0 % after 20 s, about 60 s left")),
            (44, 50, 100, None),
            // More than was estimated.
            (45, 120, 100, Some("100.0 % after 40 s, about 0 s left")),
            (85, 0, 0, Some("0.0 % after 80 s")),
            (165, u64::MAX / 2, u64::MAX, Some("49.9 % after 160 s, about 160 s left")),
        ] {
            let shown = pace.due(second * SECOND_NS, done, total).map(|progress| progress.to_string());
            assert_eq!(shown.as_deref(), expected, "after {second} s");
        }
    }
}
