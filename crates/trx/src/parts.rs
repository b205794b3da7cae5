//! Large transactions: what they have written goes into place while they run.
//!
//! A transaction whose writes take more than [`PART_BYTES`] of memory has its engines *install a part*
//! ([`EngineTrx::install_part`]). So no more than that is in memory of it, beside its locks, and COMMIT has
//! little left to do. The statement that makes the writes pays for it.
//!
//! # When
//! What is in place is undone by dropping all that the transaction has written in that engine, and in no
//! other way. So nothing is installed while somebody may go back to a place behind the engine's first write:
//! - the running statement to its own beginning, unless no other has written in that engine before it. What
//!   it leaves is looked at behind its end;
//! - ROLLBACK TO SAVEPOINT, and those who hold a mark (`savepoint.rs`);
//! - never within an XA transaction, whose PREPARE writes down each write.
//!
//! # On failure
//! The engine's part of the transaction can only be dropped. Within a statement its rollback does that;
//! behind it the transaction is rolled back.
//!
//! # What is missing
//! The second large statement of a transaction is in memory until its end.

use cohort_engine::EngineTrx;
use cohort_types::SqlResult;

use crate::active::Active;
use crate::errors::engine_error;
use crate::session_trx::SessionTrx;

/// Writes of so many bytes are installed. About as much redo goes into a commit record.
const PART_BYTES: usize = 16 << 20;
/// The same of a transaction that has installed a part: the end of a statement leaves little to COMMIT.
const LATER_PART_BYTES: usize = 1 << 20;

/// Where a transaction looks at its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    WithinStatement,
    BehindStatement,
}

impl Active {
    /// Whether nobody can go back to a place behind the engine's first write.
    fn may_install(&self, at: usize, moment: Moment) -> bool {
        let goes_back = |marks: &[Option<_>]| marks.get(at).is_some_and(Option::is_some);
        self.marks_held == 0
            && !(moment == Moment::WithinStatement && goes_back(&self.statement.engines))
            && !self.savepoints.iter().any(|savepoint| goes_back(&savepoint.mark.engines))
    }
}

impl SessionTrx {
    /// Charges what the transaction keeps until it ends, writes and row locks, and installs writes that are
    /// many. Errors 1290 and 1041 when it is more than it may be.
    pub fn charge_writes(&mut self) -> SqlResult<()> {
        self.xa.as_mut().map_or(Ok(()), |xa| xa.charge())?;
        match self.active.as_deref_mut().map_or(Ok(0), Active::charge)? > PART_BYTES {
            true => self.install_parts(Moment::WithinStatement),
            false => Ok(()),
        }
    }

    /// Installs writes that are many, if that may be.
    pub(crate) fn install_parts(&mut self, moment: Moment) -> SqlResult<()> {
        let Some(active) = self.active.as_mut().filter(|_| self.xa.is_none()) else { return Ok(()) };
        let is_later = active.has_parts && moment == Moment::BehindStatement;
        let bytes_max = if is_later { LATER_PART_BYTES } else { PART_BYTES };
        let has_much = |engine: &dyn EngineTrx| engine.installs_parts() && engine.memory_bytes() > bytes_max;
        let mut has_installed = false;
        for at in 0..active.engines.len() {
            let is_large = active.engines[at].as_deref().is_some_and(has_much);
            if !is_large || !active.may_install(at, moment) {
                continue;
            }
            let engine = active.engines[at].as_mut().expect("looked at above");
            engine.install_part(&*self.env.commit).map_err(engine_error)?;
            has_installed = true;
        }
        active.has_parts |= has_installed;
        if has_installed { active.charge().map(drop) } else { Ok(()) }
    }

    /// The statement is over: what it has left is looked at if it is much.
    pub(crate) fn install_behind_statement(&mut self) -> SqlResult<()> {
        match self.active.as_ref().is_some_and(|active| active.charged_bytes() > LATER_PART_BYTES as u64) {
            true => self.install_parts(Moment::BehindStatement),
            false => Ok(()),
        }
    }
}
