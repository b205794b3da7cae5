//! Step counting in loops over rows, for checks of KILL and time limits.

use cohort_expr::EvalContext;
use cohort_types::{Interrupt, SqlResult};

/// Evaluation steps that a row counts as. A row may be read from disk.
const STEPS_OF_A_ROW: u32 = 16;

/// Counts a row, in a loop that has only the evaluation context.
#[inline]
pub fn row_done(eval: &EvalContext<'_>) -> SqlResult<()> {
    eval.steps(STEPS_OF_A_ROW)
}
