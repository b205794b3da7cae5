//! The programs that run in a session.

use std::sync::Arc;

use cohort_catalog::Routine;
use cohort_types::Value;

/// The programs that run in a session.
#[derive(Default)]
pub(crate) struct RunningPrograms {
    /// Number of programs inside each other.
    pub(super) depth: u32,
    /// The called routines, outermost first.
    pub(super) calls: Vec<Arc<Routine>>,
    /// Rows that the statements of programs have changed.
    pub(super) affected: u64,
    /// The rows of a result were sent to the client, but not its end: its statement has failed.
    pub(super) is_result_open: bool,
    /// An event runs: its statements have a time limit each, and it has none.
    pub(super) is_event: bool,
    /// How the CALL that runs as a prepared statement returns OUT parameters.
    pub(crate) out: OutParameters,
}

/// The values of OUT and INOUT parameters whose arguments are placeholders of a prepared CALL.
#[derive(Default)]
pub(crate) enum OutParameters {
    /// A row of a result set: the binary protocol.
    #[default]
    AsRow,
    /// Values for the variables of USING, each with the number of its placeholder.
    Kept(Vec<(u32, Value)>),
}

impl RunningPrograms {
    /// Returns the number of programs inside each other.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns whether a program runs.
    pub(crate) fn is_inside(&self) -> bool {
        self.depth > 0
    }
}
