//! Conditions of the last statement, for SHOW WARNINGS and SHOW ERRORS.

use cohort_expr::Warnings;
use cohort_sql::ast::{self, Statement};
use cohort_types::{ErrorCode, Level, SqlError, Warning};

/// The conditions of the last statement that read a table or had any; SHOW WARNINGS itself leaves them.
#[derive(Debug, Default)]
pub struct Diagnostics {
    list: Vec<Warning>,
    total: u64,
    errors: u64,
    /// They are those of an earlier statement: the first condition of this one clears them.
    are_old: bool,
    /// So many are those of an earlier statement, which this one adds to.
    kept: u64,
    /// `max_error_count`: further ones are only counted.
    limit: usize,
    /// Statements add to what those before them had, as parts of a bulk execution do.
    accumulates: bool,
    /// What ROW_NUMBER is of conditions of this statement that know of no row.
    row: u64,
}

impl Diagnostics {
    /// How many a statement keeps from now on.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// From now on each statement adds its conditions to those that there are; or no longer.
    pub fn accumulate(&mut self, accumulates: bool) {
        self.accumulates = accumulates;
    }

    /// The row that conditions of the statement are about which know of none.
    pub fn set_row(&mut self, row: u64) {
        self.row = row;
    }

    /// A statement begins that reads a table, or changes something.
    pub fn clear(&mut self) {
        self.row = 1;
        if self.accumulates {
            return self.keep();
        }
        self.are_old = false;
        if self.total > 0 {
            self.list.clear();
            (self.total, self.errors, self.kept) = (0, 0, 0);
        }
    }

    /// Any other statement begins: the conditions stay until it has its own.
    pub fn begin(&mut self) {
        self.row = 1;
        if self.accumulates {
            return self.keep();
        }
        self.are_old = true;
    }

    /// A statement begins that shows them, or adds to them.
    pub fn keep(&mut self) {
        (self.are_old, self.kept) = (false, self.total);
    }

    /// The statement has read a table, or has a condition of its own.
    #[inline]
    pub fn drop_old(&mut self) {
        if self.are_old {
            let row = self.row;
            self.clear();
            self.row = row;
        }
    }

    /// Takes the warnings of a statement.
    pub fn add_all(&mut self, warnings: &Warnings) {
        self.drop_old();
        let free = self.limit.saturating_sub(self.list.len());
        let row = self.row;
        self.list.extend(warnings.list().iter().take(free).map(|warning| located(warning.clone(), row)));
        self.total += warnings.total();
        self.errors += warnings.list().iter().filter(|w| w.level == Level::Error).count() as u64;
    }

    /// Adds one.
    pub fn push(&mut self, warning: Warning) {
        self.drop_old();
        self.total += 1;
        self.errors += u64::from(warning.level == Level::Error);
        if self.list.len() < self.limit {
            self.list.push(located(warning, self.row));
        }
    }

    /// What the plan was warned of, before it ran.
    pub fn put_first(&mut self, warnings: &[Warning]) {
        if warnings.is_empty() {
            return;
        }
        self.drop_old();
        self.total += warnings.len() as u64;
        self.errors += warnings.iter().filter(|w| w.level == Level::Error).count() as u64;
        let (kept, row) = ((self.kept as usize).min(self.list.len()), self.row);
        let first = warnings.iter().map(|warning| located(warning.clone(), row));
        self.list.splice(kept..kept, first);
        self.list.truncate(self.limit);
    }

    /// The statement failed. What is said of a table that could not be made, of the mode that an
    /// expression depends on, of further columns without a value, and of rows that were not looked at, comes
    /// after the error.
    pub fn set_error(&mut self, error: &SqlError) {
        use ErrorCode as E;
        self.drop_old();
        let is_after = |said: &Warning| match error.code {
            E::CantCreateTable => {
                matches!(said.error.code, E::CannotAddForeignKey | E::DupKey | E::GetErrno)
            }
            E::GeneratedColumnFunctionIsNotAllowed => said.error.code == E::UnknownError,
            E::FilesortAbort => said.error.code == E::QueryResultIncomplete,
            E::NoDefaultForField => said.level == Level::Error && said.error.code == error.code,
            _ => false,
        };
        let before = self.list.iter().rposition(|said| !is_after(said)).map_or(0, |last| last + 1);
        let after = self.list.split_off(before);
        self.push(Warning { level: Level::Error, error: error.clone() });
        self.list.extend(after);
        self.list.truncate(self.limit);
    }

    /// What SHOW WARNINGS lists.
    pub fn list(&self) -> &[Warning] {
        &self.list
    }

    /// `@@warning_count`: also those beyond `max_error_count`.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// `@@error_count`.
    pub fn errors(&self) -> u64 {
        self.errors
    }

    /// As result packets tell it.
    #[inline]
    pub fn count_for_client(&self) -> u16 {
        if self.are_old {
            return 0;
        }
        (self.total - self.kept).min(u64::from(u16::MAX)) as u16
    }
}

fn located(warning: Warning, row: u64) -> Warning {
    Warning { error: warning.error.at_row(row), ..warning }
}

/// What ROW_NUMBER is of conditions of a statement that know of no row: 0 once it has to do with tables.
pub fn row_of_rest(statement: &Statement) -> u64 {
    use ast::{InsertSource, QueryBody};
    let is_without_table = match statement {
        Statement::Query(query) => matches!(&query.body, QueryBody::Select(select) if select.from.is_none()),
        Statement::Insert(insert) => matches!(insert.source, InsertSource::Query(_)),
        Statement::Prepare { .. } | Statement::Execute { .. } | Statement::ExecuteImmediate { .. } => true,
        other => matches!(conditions_before(other), Conditions::Old),
    };
    u64::from(is_without_table)
}

/// Error 1064.
pub fn syntax_error(near: &str) -> SqlError {
    let text = format!(
        "You have an error in your SQL syntax; check the manual that corresponds to your MariaDB server version for \
         the right syntax to use near '{near}' at line 1"
    );
    SqlError::new(ErrorCode::Parse, text)
}

/// What becomes of the conditions of the statement before.
pub enum Conditions {
    /// This statement shows them.
    Kept,
    /// They stay until there are new ones; a query clears them once its plan reads a table.
    Old,
    Cleared,
}

pub fn conditions_before(statement: &Statement) -> Conditions {
    use ast::Show;
    match statement {
        Statement::Show(show) => match **show {
            Show::Warnings { .. } | Show::Errors { .. } | Show::CountWarnings | Show::CountErrors => {
                Conditions::Kept
            }
            _ => Conditions::Cleared,
        },
        Statement::GetDiagnostics(_) => Conditions::Kept,
        Statement::Query(_)
        | Statement::Do(_)
        | Statement::Begin(_)
        | Statement::Commit(_)
        | Statement::Rollback(_)
        | Statement::Savepoint(_)
        | Statement::RollbackTo(_)
        | Statement::ReleaseSavepoint(_)
        | Statement::UnlockTables
        | Statement::Set(_)
        | Statement::Deallocate(_)
        | Statement::Use(_)
        | Statement::Kill(_) => Conditions::Old,
        _ => Conditions::Cleared,
    }
}
