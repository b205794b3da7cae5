//! Conditions of the last statement, for SHOW WARNINGS and SHOW ERRORS.

use cohort_expr::Warnings;
use cohort_types::{ErrorCode, Level, SqlError, Warning};

/// The number of conditions that an outer handler removes.
#[derive(Debug)]
pub struct Marked(usize);

/// The conditions of the last statement that read a table or raised any. SHOW WARNINGS itself does not clear
/// them.
#[derive(Debug, Default)]
pub struct Diagnostics {
    list: Vec<Warning>,
    total: u64,
    errors: u64,
    /// Whether the conditions are from an earlier statement. The first condition of this statement clears
    /// them.
    are_old: bool,
    /// Number of conditions from an earlier statement, to which this statement adds.
    kept: u64,
    /// `max_error_count`. Further conditions are only counted.
    limit: usize,
    /// Whether statements add to earlier conditions, as the parts of a bulk execution do.
    accumulates: bool,
    /// ROW_NUMBER for conditions of this statement that have no row of their own.
    row: u64,
    /// Number of conditions that the running handler removes when it ends.
    marked: usize,
    /// The conditions of before this area began were cleared.
    is_new: bool,
    /// Notes for after the next error: where it left stored programs.
    after_error: Vec<Warning>,
    /// The area of the outer statement, while a statement runs inside it.
    outer: Option<Box<Diagnostics>>,
}

impl Diagnostics {
    /// Sets the maximum number of conditions kept from now on.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Sets whether each statement adds to the existing conditions.
    pub fn accumulate(&mut self, accumulates: bool) {
        self.accumulates = accumulates;
    }

    /// Begins an empty area for a statement inside the running one.
    pub fn push_area(&mut self) {
        let inner = Diagnostics { limit: self.limit, row: 1, ..Diagnostics::default() };
        let outer = std::mem::replace(self, inner);
        self.outer = Some(Box::new(outer));
    }

    /// Ends the area of an inner statement, and returns it. The area of the outer one is as it was.
    pub fn pop_area(&mut self) -> Diagnostics {
        let outer = self.outer.take().expect("an area was pushed");
        std::mem::replace(self, *outer)
    }

    /// Begins the area of a program. Its statements see the conditions so far.
    pub fn begin_program(&mut self) {
        let inner = Diagnostics {
            list: self.list.clone(),
            total: self.total,
            errors: self.errors,
            are_old: true,
            limit: self.limit,
            row: 1,
            ..Diagnostics::default()
        };
        let outer = std::mem::replace(self, inner);
        self.outer = Some(Box::new(outer));
    }

    /// Ends the area of a program. If a statement in it has cleared the conditions, those that are left are
    /// the conditions of the statement that ran the program.
    pub fn end_program(&mut self) {
        let mut ended = self.pop_area();
        // Those of a handler that an error has ended.
        ended.remove_marked(Marked(0));
        let Diagnostics { list, total, errors, is_new, after_error, .. } = ended;
        if is_new {
            self.clear();
            (self.list, self.total, self.errors) = (list, total, errors);
        }
        self.after_error.extend(after_error);
    }

    /// Returns the conditions that the running statement has raised.
    pub fn raised(&self) -> &[Warning] {
        let kept = usize::try_from(self.kept).unwrap_or(usize::MAX).min(self.list.len());
        if self.are_old { &[] } else { &self.list[kept..] }
    }

    /// Adds a note that follows the next error.
    pub fn add_after_error(&mut self, note: Warning) {
        self.after_error.push(note);
    }

    /// Returns whether a statement has cleared the conditions of before this area began.
    pub fn has_cleared(&self) -> bool {
        self.is_new
    }

    /// Takes the notes that would follow the next error.
    pub fn take_after_error(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.after_error)
    }

    /// Drops the notes that would follow the next error.
    pub fn forget_notes_after_error(&mut self) {
        self.after_error.clear();
    }

    /// Marks the conditions when a handler begins: those that are left when it ends are removed.
    pub fn mark(&mut self) -> Marked {
        let outer = Marked(self.marked);
        self.marked = self.list.len();
        outer
    }

    /// Keeps the marked conditions: RESIGNAL adds another one to them.
    pub fn unmark(&mut self) {
        self.marked = 0;
        self.keep();
    }

    /// Removes the marked conditions when a handler ends. A statement of the handler may have cleared them.
    pub fn remove_marked(&mut self, outer: Marked) {
        for gone in self.list.drain(..self.marked.min(self.list.len())) {
            self.total -= 1;
            self.errors -= u64::from(gone.level == Level::Error);
        }
        self.kept = self.kept.saturating_sub(self.marked as u64);
        self.marked = outer.0.min(self.list.len());
    }

    /// Sets the row number for conditions that have no row of their own.
    pub fn set_row(&mut self, row: u64) {
        self.row = row;
    }

    /// Begins a statement that reads a table or changes something.
    pub fn clear(&mut self) {
        self.row = 1;
        if !self.after_error.is_empty() {
            self.after_error.clear();
        }
        if self.accumulates {
            return self.keep();
        }
        (self.are_old, self.is_new) = (false, true);
        self.marked = 0;
        if self.total > 0 {
            self.list.clear();
            (self.total, self.errors, self.kept) = (0, 0, 0);
        }
    }

    /// Begins any other statement. The conditions stay until it raises its own.
    pub fn begin(&mut self) {
        self.row = 1;
        if !self.after_error.is_empty() {
            self.after_error.clear();
        }
        if self.accumulates {
            return self.keep();
        }
        self.are_old = true;
    }

    /// Begins a statement that shows the conditions or adds to them.
    pub fn keep(&mut self) {
        (self.are_old, self.kept) = (false, self.total);
    }

    /// Clears old conditions, once the statement reads a table or raises a condition.
    #[inline]
    pub fn drop_old(&mut self) {
        if self.are_old {
            let row = self.row;
            self.clear();
            self.row = row;
        }
    }

    /// Adds the warnings of a statement.
    pub fn add_all(&mut self, warnings: &Warnings) {
        self.drop_old();
        let free = self.limit.saturating_sub(self.list.len());
        let row = self.row;
        self.list.extend(warnings.list().iter().take(free).map(|warning| located(warning.clone(), row)));
        self.total += warnings.total();
        self.errors += warnings.list().iter().filter(|w| w.level == Level::Error).count() as u64;
    }

    /// Adds one condition.
    pub fn push(&mut self, warning: Warning) {
        self.drop_old();
        self.total += 1;
        self.errors += u64::from(warning.level == Level::Error);
        if self.list.len() < self.limit {
            self.list.push(located(warning, self.row));
        }
    }

    /// Inserts the warnings of planning, which precede those of execution.
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

    /// Adds the error of a failed statement. Some conditions are listed after the error: those about a table
    /// that could not be created, about the SQL mode that an expression depends on, about further columns
    /// without a value, and about rows that were not examined.
    pub fn set_error(&mut self, error: &SqlError) {
        use ErrorCode as E;
        let places = std::mem::take(&mut self.after_error);
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
        // An error that leaves programs replaces the oldest conditions if there are too many.
        if !places.is_empty() {
            self.make_room(1 + places.len());
        }
        self.push(Warning { level: Level::Error, error: error.clone() });
        self.list.extend(after);
        self.list.truncate(self.limit);
        for note in places {
            self.push(note);
        }
    }

    /// Removes the oldest conditions if there is no room for `wanted` more. They stay counted.
    fn make_room(&mut self, wanted: usize) {
        let gone = (self.list.len() + wanted).saturating_sub(self.limit).min(self.list.len());
        self.list.drain(..gone);
        self.marked = self.marked.saturating_sub(gone);
    }

    /// Returns the conditions for SHOW WARNINGS.
    pub fn list(&self) -> &[Warning] {
        &self.list
    }

    /// Returns `@@warning_count`, which includes conditions beyond `max_error_count`.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns `@@error_count`.
    pub fn errors(&self) -> u64 {
        self.errors
    }

    /// Returns the warning count for result packets.
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

/// Creates error 1064.
pub fn syntax_error(near: &str) -> SqlError {
    SqlError::parse_error(near, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warn(diagnostics: &mut Diagnostics, text: &str) {
        let error = SqlError::new(ErrorCode::UnknownError, text);
        diagnostics.push(Warning { level: Level::Warning, error });
    }

    #[test]
    fn areas_of_inner_statements_form_a_stack() {
        let mut diagnostics = Diagnostics::default();
        diagnostics.set_limit(2);
        diagnostics.clear();
        warn(&mut diagnostics, "outer");
        for depth in 1..=3 {
            diagnostics.push_area();
            assert_eq!((diagnostics.total(), diagnostics.list().len()), (0, 0), "{depth}");
            for _ in 0..=depth {
                warn(&mut diagnostics, "inner");
            }
        }
        for depth in (1..=3).rev() {
            let ended = diagnostics.pop_area();
            assert_eq!((ended.total(), ended.list().len()), (depth + 1, 2));
        }
        warn(&mut diagnostics, "outer again");
        let texts: Vec<&str> = diagnostics.list().iter().map(|it| &*it.error.message).collect();
        assert_eq!(texts, ["outer", "outer again"]);
        assert_eq!(diagnostics.count_for_client(), 2);
    }
}
