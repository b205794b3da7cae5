//! GET DIAGNOSTICS: copies conditions, as listed by SHOW WARNINGS, into variables.

use cohort_session::{Diagnostics, Job, SessionState};
use cohort_sql::ast::{ConditionInfo, GetDiagnostics, StatementInfo};
use cohort_types::{Collation, ErrorCode, Level, SqlError, SqlResult, Str, Value, Warning};

use crate::session::Session;

impl Session {
    /// Runs GET DIAGNOSTICS, which leaves the conditions and ROW_COUNT() unchanged.
    pub(crate) fn get_diagnostics(&mut self, get: &GetDiagnostics, job: &Job<'_>) -> SqlResult<()> {
        let number = match get {
            GetDiagnostics::Statement(_) => None,
            GetDiagnostics::Condition { number, .. } => {
                let counts = (self.state.settings.env.found_rows, self.state.settings.env.row_count);
                let number = self.eval_alone(number, job)?;
                (self.state.settings.env.found_rows, self.state.settings.env.row_count) = counts;
                Some(number)
            }
        };
        run(get, number, &mut self.diagnostics, &self.state)
    }
}

/// Runs GET DIAGNOSTICS. `number` is the number of the condition. An unknown one adds error 1758 to the
/// conditions, and the statement succeeds.
pub(crate) fn run(
    get: &GetDiagnostics,
    number: Option<Value>,
    diagnostics: &mut Diagnostics,
    session: &SessionState,
) -> SqlResult<()> {
    match get {
        GetDiagnostics::Statement(items) => {
            // The number of stored conditions: these are the numbers that can be requested.
            let stored = diagnostics.list().len() as u64;
            let row_count = session.settings.env.row_count;
            for (target, item) in items {
                let value = match item {
                    StatementInfo::Number => Value::UInt(stored),
                    StatementInfo::RowCount => Value::Int(row_count),
                };
                session.assign(target, value)?;
            }
        }
        GetDiagnostics::Condition { items, .. } => {
            let number = number.and_then(|number| number.to_int(&mut cohort_types::NoWarnings));
            let at = number.and_then(|n| usize::try_from(n.wide()).ok()).and_then(|n| n.checked_sub(1));
            let Some(condition) = at.and_then(|at| diagnostics.list().get(at)).cloned() else {
                let code = ErrorCode::DaInvalidConditionNumber;
                let error = SqlError::new(code, "Invalid condition number");
                diagnostics.push(Warning { level: Level::Error, error });
                return Ok(());
            };
            for (target, item) in items {
                session.assign(target, item_value(&condition, *item))?;
            }
        }
    }
    Ok(())
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
        ConditionInfo::Named(name) => {
            let items = condition.error.signal().map_or(&[][..], |parts| &parts.items);
            text(items.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value))
        }
    }
}
