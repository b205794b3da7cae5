//! Results and plan information of a statement, for the logs and for the next statement.

use cohort_session::short_time;
use cohort_types::Value;

/// Plan information of a running statement, for the slow log.
#[derive(Default)]
pub(crate) struct PlanNotes {
    pub began_us: u64,
    /// Lines of its slow-log entry, set once the plan has run and was slow.
    pub lines: String,
}

/// Results of a statement, for the logs and for the next statement.
#[derive(Clone, Copy, Default)]
pub(crate) struct Work {
    pub(crate) rows_sent: u64,
    pub(crate) rows_affected: u64,
    /// First AUTO_INCREMENT value generated.
    pub(crate) generated_id: Option<u64>,
    /// Error code of the statement, 0 for success.
    pub(crate) error: u16,
}

/// An entry of the slow log, without the duration of its statement.
pub(crate) struct SlowEntry {
    pub began_us: u64,
    /// Lines before that with the duration, and the text after the duration.
    pub head: String,
    pub tail: String,
    /// Row of `mysql.slow_log`.
    pub row: Vec<Value>,
    pub text_bytes: usize,
}

impl SlowEntry {
    /// Returns the lines of the entry.
    pub fn lines(&self, took_us: u64) -> String {
        let Self { head, tail, .. } = self;
        format!(
            "# Time: {}\n{head}# Query_time: {}{tail}",
            short_time(self.began_us + took_us),
            seconds(took_us)
        )
    }
}

/// Returns a duration in seconds with six decimals.
pub(crate) fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}
