//! WITH CHECK OPTION of views.

use cohort_expr::EvalContext;
use cohort_plan::RowCheck;
use cohort_types::{ErrorCode, Level, SqlError, SqlResult, Value, Warning};

/// Returns whether a row may be written. If it fails a check: error 1369, or with IGNORE a warning and false.
pub(super) fn passes_checks(
    checks: &[RowCheck],
    row: &[Value],
    ignore: bool,
    eval: &EvalContext<'_>,
) -> SqlResult<bool> {
    for check in checks {
        if check.condition.passes(row, eval)? {
            continue;
        }
        let text = format!("CHECK OPTION failed `{}`.`{}`", check.view.schema, check.view.table);
        let error = SqlError::new(ErrorCode::ViewCheckFailed, text);
        if !ignore {
            return Err(error);
        }
        eval.push_warning(Warning { level: Level::Warning, error });
        return Ok(false);
    }
    Ok(true)
}
