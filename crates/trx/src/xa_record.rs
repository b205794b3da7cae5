//! Conversion of a branch's writes from the engines to the record of its PREPARE, and back.
//!
//! Both directions take time proportional to the size of the branch: they check for KILL, and charge the
//! memory that they allocate as they go.

use std::ops::ControlFlow;

use cohort_base::{ParticipantId, Reservation};
use cohort_binlog::event::XaXid;
use cohort_commit::{XaBody, XaBodyBuilder, XaHead, XaWrite};
use cohort_engine::{EngineTrx, Redo};
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::active::Active;
use crate::branch::NotedRows;
use crate::errors::engine_error;
use crate::session_trx::SessionTrx;

/// Maximum bytes of a row or a write in the record of a PREPARE, without key and value.
const ENTRY_BYTES: usize = 24;
/// Estimated bytes of a locked name in the record.
const NAME_BYTES: usize = 140;
/// Number of writes between two checks for KILL.
const LOOK_EVERY: usize = 1024;

/// Returns the memory of a branch's locks.
pub(super) fn lock_bytes(active: &Active) -> usize {
    active.locks.row_lock_bytes() + active.locks.claim_bytes()
}

/// Counts steps, and checks for KILL periodically.
struct Looks<'t> {
    trx: &'t SessionTrx,
    steps: usize,
}

impl<'t> Looks<'t> {
    fn new(trx: &'t SessionTrx) -> Looks<'t> {
        Looks { trx, steps: 0 }
    }

    /// Counts a step. Returns true if a check was due; the caller then does its own periodic work.
    fn step(&mut self) -> SqlResult<bool> {
        self.steps += 1;
        let is_time = self.steps.is_multiple_of(LOOK_EVERY);
        if is_time {
            self.trx.check_killed()?;
        }
        Ok(is_time)
    }
}

/// Returns an upper bound of the size of a PREPARE's record.
pub(super) fn record_bytes_expected(active: &Active, rows: usize, row_bytes: usize) -> usize {
    let writes: usize = active.engines.iter().flatten().map(|trx| trx.memory_bytes()).sum();
    let names = active.locks.names_held() * NAME_BYTES;
    row_bytes + rows * ENTRY_BYTES + writes + names
}

impl SessionTrx {
    /// Builds the record of the PREPARE.
    pub(super) fn record_branch(
        &self,
        active: &Active,
        xid: &XaXid,
        rows: &NotedRows,
        bytes_expected: usize,
    ) -> SqlResult<XaBodyBuilder> {
        let is_logged = !active.log.is_empty();
        let head = XaHead { xid: xid.clone(), since_us: self.env.clock.wall_us(), is_logged };
        let names = active.locks.held_names();
        let mut builder = XaBodyBuilder::new(head, &names, rows.len(), bytes_expected);
        let mut looks = Looks::new(self);
        for ((index, key), mode) in rows {
            looks.step()?;
            builder.row(*index, key, *mode);
        }
        for (engine, trx) in self.env.engines.iter().zip(&active.engines) {
            let Some(trx) = trx else { continue };
            let participant = engine.id();
            let mut looked = Ok(false);
            let shown = trx.each_write(&mut |index, key, value| {
                builder.write(XaWrite { participant, index, key, value });
                looked = looks.step();
                if looked.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            if shown.is_break() {
                looked?;
            }
        }
        Ok(builder)
    }

    /// Writes the branch's changes into the engines and prepares them there. Charges their memory; the redo
    /// is no larger than the writes.
    pub(super) fn redo_of_branch(
        &self,
        body: &XaBody,
        memory: &mut Reservation,
    ) -> SqlResult<Vec<(ParticipantId, Redo)>> {
        let engines = &self.env.engines;
        let mut trxs: Vec<Option<Box<dyn EngineTrx>>> = engines.iter().map(|_| None).collect();
        let bytes = |trxs: &[Option<Box<dyn EngineTrx>>]| -> u64 {
            trxs.iter().flatten().map(|trx| trx.memory_bytes() as u64).sum()
        };
        let mut looks = Looks::new(self);
        body.each_write(&mut |write: XaWrite<'_>| {
            let at = engines.iter().position(|engine| engine.id() == write.participant);
            let at = at.ok_or_else(|| {
                let text = format!("This server has no engine of number {}", write.participant);
                SqlError::new(ErrorCode::UnknownError, text)
            })?;
            let trx = trxs[at].get_or_insert_with(|| engines[at].begin());
            let written = match write.value {
                Some(value) => trx.put(write.index, write.key, value),
                None => trx.delete(write.index, write.key),
            };
            written.map_err(engine_error)?;
            if looks.step()? {
                memory.resize(bytes(&trxs))?;
            }
            Ok::<(), SqlError>(())
        })?;
        memory.resize(bytes(&trxs))?;
        let mut redo = Vec::new();
        for (engine, trx) in engines.iter().zip(&mut trxs) {
            let Some(trx) = trx else { continue };
            let mut prepared = Vec::new();
            trx.prepare_into(&*self.env.commit, &mut prepared).map_err(engine_error)?;
            redo.extend(prepared.into_iter().map(|redo| (engine.id(), redo)));
        }
        Ok(redo)
    }
}
