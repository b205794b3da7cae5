//! SAVEPOINT, ROLLBACK TO, RELEASE.

use cohort_binlog::event::{QueryEvent, flags};
use cohort_engine::Savepoint;
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::active::{Mark, NamedSavepoint};
use crate::session_counts::Counted;
use crate::session_trx::SessionTrx;

/// Where the change of a row and of those that follow it began; until it is given back.
pub struct RowMark(Vec<Option<Savepoint>>);

impl SessionTrx {
    /// SAVEPOINT: an older one of the same name goes. Without a transaction that lasts, it has no effect.
    /// `event` is what the binlog holds of it behind row events of the same transaction.
    pub fn savepoint(&mut self, name: &str, event: impl FnOnce() -> QueryEvent) -> SqlResult<()> {
        if !self.lasts() {
            return Ok(());
        }
        if !self.active_mut().log.is_empty() {
            self.log_query(event(), flags::SUPPRESS_USE)?;
            self.active_mut().log.statement_end()?;
        }
        self.counts.count(Counted::Savepoint);
        let active = self.active_mut();
        active.savepoints.retain(|s| !s.name.eq_ignore_ascii_case(name));
        let mark = active.mark();
        active.savepoints.push(NamedSavepoint { name: name.to_string(), mark });
        Ok(())
    }

    /// Where [`SessionTrx::undo_to`] goes back to; the binary log is told nothing of it. Whoever does not go
    /// back gives it back ([`SessionTrx::leave_mark`]).
    pub fn mark(&mut self) -> Mark {
        let active = self.active_mut();
        active.marks_held += 1;
        active.mark()
    }

    /// Nobody will go back to a mark.
    pub fn leave_mark(&mut self) {
        if let Some(active) = &mut self.active {
            active.marks_held = active.marks_held.saturating_sub(1);
        }
    }

    /// Undoes what the transaction has written since the mark, unless it was rolled back; if that fails, all
    /// of it.
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

    /// A place within a statement, as far as the engines are concerned.
    pub fn row_mark(&mut self) -> RowMark {
        let active = self.active_mut();
        active.marks_held += 1;
        RowMark(active.engine_marks().collect())
    }

    /// The row is done, or undone: then what the engines hold since the mark goes. Nothing of it was logged.
    pub fn end_row(&mut self, mark: RowMark, is_undone: bool) {
        self.leave_mark();
        if let Some(active) = self.active.as_mut().filter(|_| is_undone) {
            active.rollback_engines(&mark.0);
        }
    }

    /// ROLLBACK TO SAVEPOINT: later savepoints go, this one and all locks stay.
    pub fn rollback_to(&mut self, name: &str) -> SqlResult<()> {
        let at = self.find(name)?;
        self.counts.count(Counted::SavepointRollback);
        let active = self.active_mut();
        active.savepoints.truncate(at + 1);
        let mark = active.savepoints[at].mark.clone();
        active.rollback_to(&mark)?;
        active.mark_statement();
        Ok(())
    }

    /// RELEASE SAVEPOINT: it and all later ones go, their writes stay.
    pub fn release(&mut self, name: &str) -> SqlResult<()> {
        let at = self.find(name)?;
        self.active_mut().savepoints.truncate(at);
        Ok(())
    }

    fn find(&self, name: &str) -> SqlResult<usize> {
        let found = self
            .active()
            .and_then(|active| active.savepoints.iter().position(|s| s.name.eq_ignore_ascii_case(name)));
        found.ok_or_else(|| {
            SqlError::new(ErrorCode::SpDoesNotExist, format!("SAVEPOINT {name} does not exist"))
        })
    }
}
