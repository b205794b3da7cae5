//! SAVEPOINT, ROLLBACK TO, RELEASE.
//!
//! A function or a trigger has a *level* of savepoints of its own: it sees none of its caller's, and its own
//! ones end with it. They exist in every transaction, also in that of a single statement, and nothing of them
//! is logged.

use cohort_binlog::event::{QueryEvent, flags};
use cohort_engine::Savepoint;
use cohort_types::{SqlError, SqlResult};

use crate::active::{Mark, NamedSavepoint};
use crate::session_counts::Counted;
use crate::session_trx::SessionTrx;

/// The savepoints of a caller, which a function or trigger does not see.
#[must_use = "the level must end"]
#[derive(Debug)]
pub struct OuterSavepoints(usize);

/// Mark at the start of a row's change and its consequences, until `end_row`.
pub struct RowMark(Vec<Option<Savepoint>>);

impl SessionTrx {
    /// SAVEPOINT: replaces an older one of the same name. Has no effect outside of a transaction that lasts.
    /// `event` is logged if the transaction has row events before it.
    pub fn savepoint(&mut self, name: &str, event: impl FnOnce() -> QueryEvent) -> SqlResult<()> {
        if !self.lasts() {
            return Ok(());
        }
        if !self.active_mut().log.is_empty() {
            self.log_query(event(), flags::SUPPRESS_USE)?;
            self.active_mut().log.statement_end()?;
        }
        self.add_savepoint(name);
        Ok(())
    }

    /// SAVEPOINT in a function or trigger.
    pub fn inner_savepoint(&mut self, name: &str) -> SqlResult<()> {
        self.check_inner()?;
        self.active_mut().log.pause()?;
        self.add_savepoint(name);
        Ok(())
    }

    fn add_savepoint(&mut self, name: &str) {
        self.counts.count(Counted::Savepoint);
        if let Ok(at) = self.find(name) {
            self.active_mut().savepoints.remove(at);
        }
        let active = self.active_mut();
        let mark = active.mark();
        active.savepoints.push(NamedSavepoint { name: name.to_string(), mark });
    }

    /// Begins a level of savepoints.
    pub fn begin_savepoints(&mut self) -> OuterSavepoints {
        let count = self.active().map_or(0, |active| active.savepoints.len());
        OuterSavepoints(std::mem::replace(&mut self.savepoints_from, count))
    }

    /// Ends a level of savepoints. The writes since them are kept.
    pub fn end_savepoints(&mut self, outer: &OuterSavepoints) {
        let from = std::mem::replace(&mut self.savepoints_from, outer.0);
        if let Some(active) = &mut self.active {
            active.savepoints.truncate(from);
        }
    }

    /// Returns a mark for [`SessionTrx::undo_to`]; nothing of it is logged. A caller that does not roll back
    /// must call [`SessionTrx::leave_mark`].
    pub fn mark(&mut self) -> Mark {
        let active = self.active_mut();
        active.marks_held += 1;
        active.mark()
    }

    /// Releases a mark to which no rollback will happen.
    pub fn leave_mark(&mut self) {
        if let Some(active) = &mut self.active {
            active.marks_held = active.marks_held.saturating_sub(1);
        }
    }

    /// Undoes the writes since the mark, unless the transaction was rolled back; if that fails, undoes all of
    /// it.
    pub fn undo_to(&mut self, mark: &Mark) {
        self.leave_mark();
        let is_undone = match &mut self.active {
            Some(active) => active.rollback_to(mark).is_ok(),
            None => true,
        };
        if !is_undone {
            self.rollback();
        }
    }

    /// Returns a mark of the engines' state within a statement.
    pub fn row_mark(&mut self) -> RowMark {
        let active = self.active_mut();
        active.marks_held += 1;
        RowMark(active.engine_marks().collect())
    }

    /// Ends the change of a row. With `is_undone`, removes the engines' writes since the mark; nothing of
    /// them was logged.
    pub fn end_row(&mut self, mark: RowMark, is_undone: bool) {
        self.leave_mark();
        if let Some(active) = self.active.as_mut().filter(|_| is_undone) {
            active.rollback_engines(&mark.0);
        }
    }

    /// ROLLBACK TO SAVEPOINT: removes later savepoints; this one and all locks are kept.
    pub fn rollback_to(&mut self, name: &str) -> SqlResult<()> {
        self.roll_back_to(name)?;
        self.active_mut().mark_statement();
        Ok(())
    }

    /// ROLLBACK TO SAVEPOINT in a function or trigger. The calling statement can still be undone as a whole.
    pub fn inner_rollback_to(&mut self, name: &str) -> SqlResult<()> {
        self.check_inner()?;
        self.roll_back_to(name)
    }

    fn roll_back_to(&mut self, name: &str) -> SqlResult<()> {
        let at = self.find(name)?;
        self.counts.count(Counted::SavepointRollback);
        let active = self.active_mut();
        active.savepoints.truncate(at + 1);
        let mark = active.savepoints[at].mark.clone();
        active.rollback_to(&mark)
    }

    /// RELEASE SAVEPOINT: removes it and all later ones; their writes are kept.
    pub fn release(&mut self, name: &str) -> SqlResult<()> {
        let at = self.find(name)?;
        self.active_mut().savepoints.truncate(at);
        Ok(())
    }

    fn find(&self, name: &str) -> SqlResult<usize> {
        let from = self.savepoints_from;
        let found = self.active().and_then(|active| {
            let mut of_level = active.savepoints.iter().enumerate().skip(from);
            of_level.find(|(_, savepoint)| savepoint.name.eq_ignore_ascii_case(name)).map(|(at, _)| at)
        });
        found.ok_or_else(|| SqlError::does_not_exist("SAVEPOINT", name))
    }
}
