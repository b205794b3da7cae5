//! Results and plan information of a statement, for the logs and for the next statement.

use std::fmt::Write;

use cohort_base::EngineWork;
use cohort_session::short_time;
use cohort_types::Value;

/// Notes of a running statement for the slow log, if `log_slow_verbosity` asks for more than the usual lines.
#[derive(Default)]
pub(crate) struct SlowNotes {
    pub began_us: u64,
    /// Lines about its plan, set once the plan has run and was slow.
    pub plan: String,
    /// Time that the plan spent in reads of tables.
    pub reads_ns: u64,
    /// Counters of engines at the begin of the statement, if its entry shows them.
    pub engine: Option<EngineWork>,
}

impl SlowNotes {
    /// Returns the lines of an entry, in MariaDB's order. Pages are changed by the commit for all
    /// transactions of a group, so there is no `Pages_updated`.
    pub fn lines(&self) -> String {
        let mut lines = String::new();
        let work = self.engine.map(|before| EngineWork::here().since(&before)).unwrap_or_default();
        if work.pages_accessed + work.pages_prefetched > 0 {
            let ms = |ns: u64| ns as f64 / 1e6;
            let _ = writeln!(
                lines,
                "# Pages_accessed: {}  Pages_read: {}  Pages_prefetched: {}  Old_rows_read: {}\n\
                 # Pages_read_time: {:.4}  Engine_time: {:.4}",
                work.pages_accessed,
                work.pages_read,
                work.pages_prefetched,
                work.old_rows,
                ms(work.read_ns),
                ms(self.reads_ns)
            );
        }
        lines.push_str(&self.plan);
        lines
    }
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
    /// Place of the steps in `tail`.
    pub steps_at: usize,
    /// Row of `mysql.slow_log`.
    pub row: Vec<Value>,
    pub text_bytes: usize,
    /// Whether the steps of its commit belong into the entry.
    pub has_steps: bool,
}

impl SlowEntry {
    /// Adds the steps of the commit, in seconds, before the text. Statements without a commit have none.
    pub fn add_steps(&mut self, steps: &[(&'static str, u64)]) {
        let mut line = String::new();
        for (step, ns) in steps.iter().filter(|(_, ns)| *ns > 0) {
            let head = if line.is_empty() { "# " } else { "  " };
            let _ = write!(line, "{head}Commit_{step}_time: {}", seconds(ns / 1000));
        }
        if !line.is_empty() {
            line.push('\n');
            self.tail.insert_str(self.steps_at, &line);
        }
    }

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
