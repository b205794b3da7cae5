//! The statement that a session has traced (`cohort_trace`), for its next statement.

/// Durations of a traced statement, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct StatementTrace {
    pub text: String,
    /// From its begin to its end, before its reply may leave.
    pub execute_ns: u64,
    /// Waits for locks, which are part of it.
    pub lock_wait_ns: u64,
    /// Until its reply may leave.
    pub total_ns: u64,
    /// The steps of its commit, once another statement is traced.
    pub steps: Option<Vec<(&'static str, u64)>>,
}
