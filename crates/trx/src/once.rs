//! [`Once`]: an applied statement is ordered once, and only with an outcome that its source's event allows.
//!
//! # Why
//! Redo that is attached travels with the statement's commit: it says that the statement is done. A statement
//! may commit what worked and then report an error for the rest. If the event on the source names another
//! outcome, nothing of it may be ordered here: the position would pass a statement that is half done. So the
//! comparison takes place before the commit, and a second commit of the same statement is refused.

use cohort_base::{CommitSeq, ParticipantId};
use cohort_engine::Redo;
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::session_trx::SessionTrx;

/// Answers whether a statement may be ordered that ends with this error number; 0 is none.
pub type AllowsOutcome = Box<dyn Fn(u16) -> bool + Send>;

/// The applied statement that runs.
pub(super) struct Once {
    allows: AllowsOutcome,
    ordered: Option<CommitSeq>,
    refused: Option<SqlResult<()>>,
}

/// The state of an applied statement that has ended.
#[derive(Debug)]
pub enum OnceEnd {
    /// It has committed nothing.
    Open,
    /// It is ordered with what was attached.
    Ordered(CommitSeq),
    /// It is not ordered: it would have ended like this, which its event does not allow.
    Refused(SqlResult<()>),
    /// It is ordered, and has tried to commit more.
    Twice(CommitSeq),
}

impl SessionTrx {
    /// Has the commit of the statement that is about to run carry redo. It commits once at most, with an
    /// outcome that is allowed.
    pub fn attach_once(&mut self, participant: ParticipantId, redo: Redo, allows: AllowsOutcome) {
        self.attach(participant, redo);
        self.once = Some(Box::new(Once { allows, ordered: None, refused: None }));
    }

    /// The applied statement has ended.
    pub fn end_once(&mut self) -> OnceEnd {
        let Some(once) = self.once.take() else { return OnceEnd::Open };
        match (once.ordered, once.refused) {
            (None, None) => OnceEnd::Open,
            (None, Some(outcome)) => OnceEnd::Refused(outcome),
            (Some(seq), None) => OnceEnd::Ordered(seq),
            (Some(seq), Some(_)) => OnceEnd::Twice(seq),
        }
    }

    /// Before the commit of a statement that ends with `failed`, or without an error.
    pub(super) fn check_once(&mut self, failed: Option<&SqlError>) -> SqlResult<()> {
        let Some(once) = &mut self.once else { return Ok(()) };
        if once.ordered.is_none() && (once.allows)(failed.map_or(0, |error| error.code.number())) {
            return Ok(());
        }
        once.refused = Some(failed.cloned().map_or(Ok(()), Err));
        Err(failed.cloned().unwrap_or_else(|| {
            SqlError::new(ErrorCode::UnknownError, "A statement did not end as its event says")
        }))
    }

    /// Notes the place of a commit that `check_once` has let pass.
    pub(super) fn note_once(&mut self, seq: CommitSeq) {
        if let Some(once) = &mut self.once {
            once.ordered = Some(seq);
        }
    }
}
