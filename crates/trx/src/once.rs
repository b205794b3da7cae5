//! [`Once`]: an applied statement is ordered only once, and only with an outcome that its source's event
//! allows.
//!
//! # Why
//! Attached redo is part of the statement's commit: it records that the statement is done. A statement may
//! commit the part that succeeded and then report an error for the rest. If the event of the source has
//! another outcome, nothing of the statement may be ordered here, because the position would pass a statement
//! that is half done. So the outcomes are compared before the commit, and a second commit of the same
//! statement is refused.

use cohort_base::{CommitSeq, ParticipantId};
use cohort_engine::Redo;
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::session_trx::{AllowsOutcome, Once, SessionTrx};

/// Result of an applied statement that has ended.
#[derive(Debug)]
pub enum OnceEnd {
    /// It committed nothing.
    Open,
    /// It is ordered together with the attached redo.
    Ordered(CommitSeq),
    /// It is not ordered: it would have ended with this outcome, which its event does not allow.
    Refused(SqlResult<()>),
    /// It is ordered, and tried to commit again.
    Twice(CommitSeq),
}

impl SessionTrx {
    /// Attaches redo to the commit of the statement that is about to run. The statement commits at most once,
    /// with an allowed outcome.
    pub fn attach_once(&mut self, participant: ParticipantId, redo: Redo, allows: AllowsOutcome) {
        self.attach(participant, redo);
        self.once = Some(Box::new(Once { allows, ordered: None, refused: None }));
    }

    /// Ends the applied statement and returns its result.
    pub fn end_once(&mut self) -> OnceEnd {
        let Some(once) = self.once.take() else { return OnceEnd::Open };
        match (once.ordered, once.refused) {
            (None, None) => OnceEnd::Open,
            (None, Some(outcome)) => OnceEnd::Refused(outcome),
            (Some(seq), None) => OnceEnd::Ordered(seq),
            (Some(seq), Some(_)) => OnceEnd::Twice(seq),
        }
    }

    /// Called before the commit of a statement that ends with `failed`, or without an error.
    pub(super) fn check_once(&mut self, failed: Option<&SqlError>) -> SqlResult<()> {
        let Some(once) = &mut self.once else { return Ok(()) };
        if once.ordered.is_none() && (once.allows)(failed.map_or(0, |error| error.number())) {
            return Ok(());
        }
        once.refused = Some(failed.cloned().map_or(Ok(()), Err));
        Err(failed.cloned().unwrap_or_else(|| {
            SqlError::new(ErrorCode::UnknownError, "A statement did not end as its event says")
        }))
    }

    /// Records the CommitSeq of a commit that `check_once` has allowed.
    pub(super) fn note_once(&mut self, seq: CommitSeq) {
        if let Some(once) = &mut self.once {
            once.ordered = Some(seq);
        }
    }
}
