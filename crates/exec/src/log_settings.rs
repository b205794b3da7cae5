//! Settings of the logs, as a session keeps them ready.

/// Settings that every statement needs, for the logs.
#[derive(Clone, Copy)]
pub(crate) struct LogSettings {
    /// Version of the session's variables that they were read from.
    pub version: u64,
    /// `cohort_trace`.
    pub traces: bool,
    /// `profiling`.
    pub profiles: bool,
    /// `log_slow_verbosity` asks for measurements.
    pub measures: bool,
    /// `long_query_time` in microseconds.
    pub slow_us: u64,
}

impl LogSettings {
    /// Settings that were never read.
    pub const UNKNOWN: LogSettings =
        LogSettings { version: u64::MAX, traces: false, profiles: false, measures: false, slow_us: 0 };
}
