//! Results and plan information of a statement, for the logs and for the next statement.

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
