//! Statements that run inside another statement, as those of stored functions and triggers do.
//!
//! An inner statement belongs to the transaction, and to the binary log events, of the outermost one:
//!
//! | | outermost | inner |
//! |---|---|---|
//! | view of READ COMMITTED | new at begin, dropped at end | that of the outermost |
//! | commit under autocommit | at end | never |
//! | time and annotation of row events | its own | those of the outermost |
//! | STMT_END_F | at end | before a mark, so that the events before it can be kept |
//! | whether it changes rows | its own | at begin that of the outer one, which has its own back at end |
//! | mark for its undo | at begin | only if the outer statement may continue after a failure |
//!
//! A mark forbids the early installation of large write sets (`parts.rs`), so it is taken only where it is
//! needed.
//!
//! # On failure
//! - With a mark, the inner statement is undone, and the outer one may continue.
//! - Without a mark, the outer statement fails too, even if its caller drops the error. So do the statements
//!   around it, up to one with a mark or the outermost one.
//! - After an error that rolls back the whole transaction, all of them fail. Otherwise the outermost one
//!   would commit its second half.
//! - No further inner statement begins in a statement that must fail.

use cohort_types::SqlResult;

use crate::active::Mark;
use crate::branch::xa_error_for;
use crate::session_trx::{InnerFailure, SessionTrx};

/// Whether the outer statement can continue after a failure of an inner one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// No: the outer statement fails as well.
    Fail,
    /// It may: the inner statement alone is undone.
    MayContinue,
}

/// State of an outer statement while an inner one runs.
#[must_use = "the inner statement must end"]
pub struct OuterStatement {
    is_writing: bool,
    mark: Option<Mark>,
}

impl SessionTrx {
    /// Returns whether an inner statement runs.
    #[inline]
    pub fn is_inside(&self) -> bool {
        self.inner_depth > 0
    }

    /// Fails if the running statement must fail, because a statement inside it has failed.
    pub fn check_inner(&self) -> SqlResult<()> {
        self.inner_failure.as_ref().map_or(Ok(()), |failure| Err(failure.error.clone()))
    }

    /// Begins a statement inside the running one. Fails if the running one must fail already.
    pub fn inner_begin(&mut self, after: AfterFailure) -> SqlResult<OuterStatement> {
        self.check_inner()?;
        let mark = match after {
            AfterFailure::Fail => None,
            AfterFailure::MayContinue => {
                self.active_mut().log.pause()?;
                Some(self.mark())
            }
        };
        self.inner_depth += 1;
        Ok(OuterStatement { is_writing: self.is_writing, mark })
    }

    /// Ends an inner statement, and undoes it after an error if the outer one may continue. Rolls back the
    /// whole transaction after the same errors as [`SessionTrx::statement_end`].
    pub fn inner_end<T>(&mut self, outer: OuterStatement, outcome: SqlResult<T>) -> SqlResult<T> {
        debug_assert!(self.is_inside());
        self.inner_depth -= 1;
        let OuterStatement { is_writing, mark } = outer;
        self.is_writing = is_writing;
        let failure = self.inner_failure.take();
        let was_undone = failure.as_ref().is_some_and(|failure| failure.is_transaction_undone);
        let outcome = match failure {
            Some(failure) => outcome.and(Err(failure.error)),
            None => outcome,
        };
        let Err(error) = &outcome else {
            if mark.is_some() {
                self.leave_mark();
            }
            return outcome;
        };
        self.mark_observed();
        let is_whole = self.undoes_transaction(error);
        if is_whole {
            self.note_branch_undone(xa_error_for(error.code));
            self.rollback();
        }
        let is_transaction_undone = match &mark {
            // The mark is of a transaction that is gone.
            Some(_) if is_whole || was_undone => {
                self.leave_mark();
                true
            }
            Some(mark) => {
                self.undo_to(mark);
                if self.active().is_some() {
                    return outcome;
                }
                true
            }
            None => is_whole || was_undone,
        };
        self.inner_failure = Some(Box::new(InnerFailure { error: error.clone(), is_transaction_undone }));
        outcome
    }
}
