//! Incremental flush of large write sets: parts of a large transaction are installed while it runs.
//!
//! When a transaction's writes take more than [`PART_BYTES`] of memory, its engines *install a part*
//! ([`EngineTrx::install_part`]). So its memory is bounded by that size plus its locks, and COMMIT has little
//! left to do. The statement that makes the writes bears the cost.
//!
//! # When parts are installed
//! An installed part can be undone only by dropping everything that the transaction has written in that
//! engine. So no part is installed while a rollback to a position after the engine's first write is possible:
//! - by the running statement, to its beginning, if an earlier statement has written in that engine. The size
//!   is checked again after the statement's end;
//! - by ROLLBACK TO SAVEPOINT, or by a holder of a mark (`savepoint.rs`).
//!
//! An XA transaction installs no parts, because its PREPARE records each write.
//!
//! # On failure
//! The engine's part of the transaction can only be dropped. Within a statement the statement's rollback does
//! that; after its end the whole transaction is rolled back.
//!
//! # Missing
//! The second large statement of a transaction is kept in memory until its end.

use cohort_engine::EngineTrx;
use cohort_types::SqlResult;

use crate::active::Active;
use crate::errors::engine_error;
use crate::session_trx::SessionTrx;

/// Write sets larger than this are installed. About the same amount of redo fits into a commit record.
const PART_BYTES: usize = 16 << 20;
/// Limit at the end of a statement for a transaction that has already installed a part, so that little is
/// left for COMMIT.
const LATER_PART_BYTES: usize = 1 << 20;

/// Point at which the size of a transaction is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    WithinStatement,
    AfterStatement,
}

impl Active {
    /// Returns whether no rollback to a position after the engine's first write is possible.
    fn may_install(&self, at: usize, phase: Phase) -> bool {
        let goes_back = |marks: &[Option<_>]| marks.get(at).is_some_and(Option::is_some);
        self.marks_held == 0
            && !(phase == Phase::WithinStatement && goes_back(&self.statement.engines))
            && !self.savepoints.iter().any(|savepoint| goes_back(&savepoint.mark.engines))
    }
}

impl SessionTrx {
    /// Charges the memory that the transaction keeps until its end (writes and row locks), and installs large
    /// write sets. Errors 1290 and 1041 if a limit is exceeded.
    pub fn charge_writes(&mut self) -> SqlResult<()> {
        self.xa.as_mut().map_or(Ok(()), |xa| xa.charge())?;
        match self.active.as_deref_mut().map_or(Ok(0), Active::charge)? > PART_BYTES {
            true => self.install_parts(Phase::WithinStatement),
            false => Ok(()),
        }
    }

    /// Installs large write sets, if that is allowed now.
    pub(crate) fn install_parts(&mut self, phase: Phase) -> SqlResult<()> {
        let Some(active) = self.active.as_mut().filter(|_| self.xa.is_none()) else { return Ok(()) };
        let is_later = active.has_parts && phase == Phase::AfterStatement;
        let bytes_max = if is_later { LATER_PART_BYTES } else { PART_BYTES };
        let has_much = |engine: &dyn EngineTrx| engine.installs_parts() && engine.memory_bytes() > bytes_max;
        let mut has_installed = false;
        for at in 0..active.engines.len() {
            let is_large = active.engines[at].as_deref().is_some_and(has_much);
            if !is_large || !active.may_install(at, phase) {
                continue;
            }
            let engine = active.engines[at].as_mut().expect("looked at above");
            engine.install_part(&*self.env.commit).map_err(engine_error)?;
            has_installed = true;
        }
        active.has_parts |= has_installed;
        if has_installed { active.charge().map(drop) } else { Ok(()) }
    }

    /// Checks the size of the write sets after the end of a statement.
    pub(crate) fn install_after_statement(&mut self) -> SqlResult<()> {
        match self.active.as_ref().is_some_and(|active| active.charged_bytes() > LATER_PART_BYTES as u64) {
            true => self.install_parts(Phase::AfterStatement),
            false => Ok(()),
        }
    }
}
