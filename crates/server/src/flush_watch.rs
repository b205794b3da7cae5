//! Reports slow flushes of the log, and flushes that do not end, in the error log.
//!
//! The leader only updates counters (`cohort_commit::Metrics`). This thread reads them twice a second and
//! logs. A flush that hangs is thus reported while it hangs, and a disk that is slow for hours does not fill
//! the error log: at most one line is written in ten seconds.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::Builder;
use std::time::Duration;

use cohort_commit::Coordinator;
use cohort_config::{Globals, VarId};

use crate::error_log::ErrorLog;

const EVERY: Duration = Duration::from_millis(500);
/// Minimum time between two lines in the error log.
const QUIET_NS: u64 = 10_000_000_000;

/// Applies `slow_flush_warning_ms` to the commit path.
pub fn apply_threshold(commit: &Coordinator, globals: &Globals) {
    let ns = match globals.uint(VarId::SlowFlushWarningMs) {
        0 => u64::MAX,
        ms => ms.saturating_mul(1_000_000),
    };
    commit.metrics().slow_flush_ns.store(ns, Ordering::Relaxed);
}

/// Starts the thread. It ends with the commit path.
pub fn start(commit: &Arc<Coordinator>, log: ErrorLog) -> io::Result<()> {
    let commit: Weak<Coordinator> = Arc::downgrade(commit);
    let run = move || {
        let mut watch = Watch::default();
        while let Some(commit) = commit.upgrade() {
            let metrics = commit.metrics();
            let now_ns = commit.now_ns();
            let ended_ns = metrics.flush_ended_ns.load(Ordering::Relaxed);
            let began_ns = metrics.flush_began_ns.load(Ordering::Relaxed);
            let seen = Seen {
                now_ns,
                slow: metrics.slow_flushes.load(Ordering::Relaxed),
                longest_ns: metrics.flush_ns_recent_max.swap(0, Ordering::Relaxed),
                running_ns: if began_ns <= ended_ns { 0 } else { now_ns.saturating_sub(began_ns) },
                threshold_ns: metrics.slow_flush_ns.load(Ordering::Relaxed),
            };
            drop(commit);
            if let Some(line) = watch.look(&seen) {
                log.warning(format_args!("{line}"));
            }
            std::thread::sleep(EVERY);
        }
    };
    Builder::new().name("flush watch".into()).spawn(run).map(drop)
}

/// Values read in one check.
struct Seen {
    now_ns: u64,
    /// Number of slow flushes since the start.
    slow: u64,
    /// Duration of the longest flush that ended since the last check.
    longest_ns: u64,
    /// Duration of the current flush so far; 0 if there is none.
    running_ns: u64,
    threshold_ns: u64,
}

/// State of the reporting.
#[derive(Default)]
struct Watch {
    logged: u64,
    longest_ns: u64,
    /// Time of the last line; `None` if there was none.
    logged_ns: Option<u64>,
}

impl Watch {
    /// Returns the line to log, if one is due.
    fn look(&mut self, seen: &Seen) -> Option<String> {
        self.longest_ns = self.longest_ns.max(seen.longest_ns);
        let is_hanging = seen.running_ns >= seen.threshold_ns;
        let new = seen.slow - self.logged;
        let is_quiet =
            self.logged_ns.is_some_and(|logged_ns| seen.now_ns < logged_ns.saturating_add(QUIET_NS));
        if new == 0 {
            // Flushes that were long but not slow are not reported later.
            self.longest_ns = 0;
        }
        if is_quiet || !is_hanging && new == 0 {
            return None;
        }
        let seconds = |ns: u64| ns as f64 / 1e9;
        let line = match (is_hanging, new) {
            (true, _) => format!(
                "A flush of the log has been running for {:.1} s and has not ended: no commit is acknowledged in the meantime; check the disk",
                seconds(seen.running_ns)
            ),
            (false, new) => format!(
                "{new} slow flush{} of the log since the last message, the longest {:.3} s (slow_flush_warning_ms is {}): \
                 commits wait for them; check the disk",
                if new == 1 { "" } else { "es" },
                seconds(self.longest_ns),
                seen.threshold_ns / 1_000_000
            ),
        };
        *self = Watch { logged: seen.slow, longest_ns: 0, logged_ns: Some(seen.now_ns) };
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn seen(now_ms: u64, slow: u64, longest_ms: u64, running_ms: u64) -> Seen {
        Seen {
            now_ns: now_ms * MS,
            slow,
            longest_ns: longest_ms * MS,
            running_ns: running_ms * MS,
            threshold_ns: 1000 * MS,
        }
    }

    #[test]
    fn slow_flushes_are_logged_together_at_a_limited_rate() {
        let mut watch = Watch::default();
        assert_eq!(watch.look(&seen(0, 0, 900, 0)), None, "long, not slow");
        let line = watch.look(&seen(500, 1, 1500, 0)).expect("logged at once");
        assert!(line.starts_with("1 slow flush of the log") && line.contains("1.500 s"), "{line}");
        assert_eq!(watch.look(&seen(1000, 3, 2500, 0)), None, "quiet");
        assert_eq!(watch.look(&seen(9000, 3, 10, 0)), None, "still quiet");
        let line = watch.look(&seen(10_600, 3, 10, 0)).expect("due");
        assert!(line.starts_with("2 slow flushes") && line.contains("2.500 s"), "{line}");
        assert_eq!(watch.look(&seen(30_000, 3, 900, 0)), None, "nothing new");
    }

    #[test]
    fn a_hanging_flush_is_logged_while_it_hangs() {
        let mut watch = Watch::default();
        assert_eq!(watch.look(&seen(0, 0, 0, 999)), None);
        let line = watch.look(&seen(500, 0, 0, 1499)).expect("logged");
        assert!(line.contains("has been running for 1.5 s"), "{line}");
        assert_eq!(watch.look(&seen(1000, 0, 0, 1999)), None, "quiet");
        assert!(watch.look(&seen(11_000, 0, 0, 12_000)).is_some());
    }
}
