//! GET DIAGNOSTICS: copies conditions, as listed by SHOW WARNINGS, into variables.

use cohort_session::Job;
use cohort_sql::ast::{ConditionInfo, GetDiagnostics, StatementInfo};
use cohort_types::{Collation, ErrorCode, Level, SqlError, SqlResult, Str, Value, Warning};

use crate::session::Session;

impl Session {
    /// Runs GET DIAGNOSTICS, which leaves the conditions and ROW_COUNT() unchanged. An unknown condition
    /// number adds error 1758 to the conditions, and the statement succeeds.
    pub(crate) fn get_diagnostics(&mut self, get: &GetDiagnostics, job: &Job<'_>) -> SqlResult<()> {
        match get {
            GetDiagnostics::Statement(items) => {
                // The number of stored conditions: these are the numbers that can be requested.
                let number = self.diagnostics.list().len() as u64;
                let row_count = self.state.settings.env.row_count;
                for (target, item) in items {
                    let value = match item {
                        StatementInfo::Number => Value::UInt(number),
                        StatementInfo::RowCount => Value::Int(row_count),
                    };
                    self.state.assign(target, value)?;
                }
            }
            GetDiagnostics::Condition { number, items } => {
                let counts = (self.state.settings.env.found_rows, self.state.settings.env.row_count);
                let number = self.eval_alone(number, job)?.to_int(&mut cohort_types::NoWarnings);
                (self.state.settings.env.found_rows, self.state.settings.env.row_count) = counts;
                let at = number.and_then(|n| usize::try_from(n.wide()).ok()).and_then(|n| n.checked_sub(1));
                let Some(condition) = at.and_then(|at| self.diagnostics.list().get(at)).cloned() else {
                    let code = ErrorCode::DaInvalidConditionNumber;
                    let error = SqlError::new(code, "Invalid condition number");
                    self.diagnostics.push(Warning { level: Level::Error, error });
                    return Ok(());
                };
                for (target, item) in items {
                    self.state.assign(target, item_value(&condition, *item))?;
                }
            }
        }
        Ok(())
    }
}

fn item_value(condition: &Warning, item: ConditionInfo) -> Value {
    let text = |text: &str| {
        Value::Str(Str { bytes: text.as_bytes().to_vec(), collation: Collation::UTF8MB3_GENERAL_CI })
    };
    match item {
        ConditionInfo::Errno => Value::UInt(condition.error.number().into()),
        ConditionInfo::Sqlstate => text(condition.error.sqlstate()),
        ConditionInfo::MessageText => text(&condition.error.message),
        ConditionInfo::RowNumber => Value::UInt(condition.error.row().unwrap_or(0)),
        ConditionInfo::Named => text(""),
    }
}
