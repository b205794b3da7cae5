//! Steps of loops over rows, after which they look for KILL and time limits.

use cohort_expr::EvalContext;
use cohort_types::{Interrupt, SqlResult};

/// Steps that a row counts as: it may come from a disk.
const STEPS_OF_A_ROW: u32 = 16;

/// Counts a row of a loop that holds only the evaluation's half of the statement.
#[inline]
pub fn row_done(eval: &EvalContext<'_>) -> SqlResult<()> {
    eval.steps(STEPS_OF_A_ROW)
}
