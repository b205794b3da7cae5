//! The functions and triggers that run inside the running statement ([`RunningPrograms`]).

use std::sync::Arc;

use cohort_base::TableId;
use cohort_catalog::{Routine, Table};
use cohort_config::{VarId, VarValue};
use cohort_types::{SqlError, SqlResult, Warning};

/// The programs that run inside the running statement, and the tables of the statements around them.
#[derive(Debug, Default)]
pub struct RunningPrograms {
    /// The running routines, outermost first.
    routines: Vec<Arc<Routine>>,
    /// Tables of the statements that have called the programs.
    used: Vec<TableId>,
    /// The places where an error has left programs, innermost first.
    places: Vec<Warning>,
    /// A statement of a program has cleared the conditions of before the calling statement.
    has_cleared: bool,
    /// The variables of the session that programs have set, with their last values.
    variables: Vec<(VarId, VarValue)>,
}

impl RunningPrograms {
    /// Returns how often a routine runs.
    pub fn count(&self, routine: &Routine) -> usize {
        self.routines.iter().filter(|running| running.is_same(routine)).count()
    }

    /// Begins a routine.
    pub fn enter(&mut self, routine: Arc<Routine>) {
        self.routines.push(routine);
    }

    /// Ends the innermost routine.
    pub fn leave(&mut self) {
        self.routines.pop();
    }

    /// Returns whether programs have left something for the statement that has called them.
    #[inline]
    pub fn has_results(&self) -> bool {
        self.has_cleared || !self.places.is_empty() || !self.variables.is_empty()
    }

    /// Adds the places where an error has left a program.
    pub fn add_places(&mut self, notes: Vec<Warning>) {
        self.places.extend(notes);
    }

    /// Takes the places where an error has left programs.
    pub fn take_places(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.places)
    }

    /// Notes that a statement of a program has cleared earlier conditions.
    pub fn note_cleared(&mut self) {
        self.has_cleared = true;
    }

    /// Returns whether a program has cleared earlier conditions.
    pub fn take_cleared(&mut self) -> bool {
        std::mem::take(&mut self.has_cleared)
    }

    /// Notes that a program has set a variable of the session.
    pub fn set_variable(&mut self, id: VarId, value: VarValue) {
        self.variables.retain(|(known, _)| *known != id);
        self.variables.push((id, value));
    }

    /// Returns the variables of the session that programs of the running statement have set.
    pub fn variables(&self) -> &[(VarId, VarValue)] {
        &self.variables
    }

    /// Takes the variables of the session that programs have set.
    pub fn take_variables(&mut self) -> Vec<(VarId, VarValue)> {
        std::mem::take(&mut self.variables)
    }

    /// Adds the tables of a statement that may call programs. Returns a mark for
    /// [`RunningPrograms::release_tables`].
    pub fn use_tables(&mut self, tables: impl IntoIterator<Item = TableId>) -> usize {
        let mark = self.used.len();
        self.used.extend(tables);
        mark
    }

    /// Removes the tables of a statement that has ended.
    pub fn release_tables(&mut self, mark: usize) {
        self.used.truncate(mark);
    }

    /// Checks that no calling statement uses a table that a function or trigger is about to change: error
    /// 1442.
    pub fn check_change(&self, table: &Table) -> SqlResult<()> {
        match self.used.contains(&table.id) {
            true => Err(SqlError::table_used_by_caller(&table.name.table)),
            false => Ok(()),
        }
    }
}
