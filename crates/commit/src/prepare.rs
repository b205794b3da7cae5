//! Prepare: everything in a commit that can fail (I6).
//!
//! A request brings a permit of the server's global lock (`cohort_locks::WritePermit`). FLUSH TABLES WITH
//! READ LOCK, BACKUP STAGE BLOCK_COMMIT and SET GLOBAL read_only wait for all holders of permits, and block
//! further permits.
//!
//! Prepare spills large redo and syncs it, has the engines stage writes that would block the order stage for
//! long, and reserves space in the log. It may wait for a checkpoint that frees space.
//!
//! # On failure
//! Prepare fails when the disk is full or nearly so, the log has reached its cap and no checkpoint helps, a
//! spill file cannot be written, or the server is stopping. The spill files of a refused transaction are
//! removed, and the request is returned to the caller to be rolled back.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cohort_base::{CommitSeq, ParticipantId, Xid};
use cohort_engine::{EngineError, RedoFile, StagedRedo};
use cohort_log::{FullCause, Log, LogError, LogReservation};

use crate::binlog::{Binlog, NO_SPACE_FOR_BINLOG};
use crate::commit_env::CommitEnv;
use crate::coordinator::Coordinator;
use crate::error::CommitError;
use crate::logs::LogNeeds;
use crate::metrics::Step;
use crate::request::{CommitRequest, Prepared, SpilledRedo, Trx};
use crate::reservations::TrxReservations;
use crate::stage::{Point, Stage};

/// Maximum size of redo inside a record. Larger redo is spilled, because the log's buffer is not meant for
/// huge records.
pub(crate) const INLINE_REDO_BYTES_MAX: usize = 16 << 20;
/// Maximum time that `prepare` waits for a checkpoint to free space in a log that has reached its cap.
const CAP_WAIT: Duration = Duration::from_secs(30);

/// The spill file of each redo, or `None` for redo that is not spilled.
type Spilled = Vec<Option<SpilledRedo>>;
/// Writes that a participant has staged.
type Staged = (ParticipantId, Box<dyn StagedRedo>);

impl Coordinator {
    /// Prepares a transaction: reserves log space and makes spilled data durable. This is the last call that
    /// can fail (I6). May wait.
    #[allow(clippy::result_large_err)] // the request is returned to the caller to be rolled back
    ///
    /// The locks become a node of their own in the wait-for graph: transactions that wait for them no longer
    /// wait for the session. After an error the caller may let them rejoin the session's node.
    pub fn prepare(&self, mut request: CommitRequest) -> Result<Prepared, (CommitError, Box<CommitRequest>)> {
        self.env().reached(Point::Before(Stage::Prepare));
        assert!(
            request.permit.is_for_logged() || request.binlog.is_none(),
            "a transaction for the binary log passes by those that keep commits out"
        );
        request.locks.leave();
        let began_ns = self.now_ns();
        match self.prepare_space(&request) {
            Ok((reserved, spilled, staged)) => {
                let since_ns = self.now_ns();
                self.metrics().record(Step::Prepare, since_ns.saturating_sub(began_ns), 1);
                if let Some(trace) = request.trace() {
                    trace.note(Step::Prepare, since_ns.saturating_sub(began_ns));
                }
                let trx = Trx {
                    request,
                    spilled,
                    staged,
                    reserved,
                    gtid: None,
                    xid: Xid(0),
                    depends_on: CommitSeq(0),
                    since_ns,
                };
                self.env().reached(Point::After(Stage::Prepare));
                Ok(Prepared::new(trx))
            }
            Err(error) => {
                self.discard_events(&request);
                Err((error, Box::new(request)))
            }
        }
    }

    /// Returns why writes are refused, if they are: a statement should not start writing what cannot be
    /// committed.
    pub fn refusal(&self) -> Option<String> {
        let is_without_space = |binlog: &Binlog| binlog.files.is_without_space();
        if self.env().binlog.as_ref().is_some_and(is_without_space) {
            return Some(NO_SPACE_FOR_BINLOG.to_owned());
        }
        self.checkpointer.refusal()
    }

    fn prepare_space(
        &self,
        request: &CommitRequest,
    ) -> Result<(TrxReservations, Spilled, Vec<Staged>), CommitError> {
        if self.is_closing.load(Ordering::Relaxed) || self.pipeline.is_stopped() {
            return Err(CommitError::Stopped);
        }
        for (id, _) in &request.redo {
            let is_known = self.env().participants.iter().any(|participant| participant.id() == *id);
            assert!(
                is_known,
                "redo of participant {id}, which this server does not have, would never be applied (I2)"
            );
        }
        if let Some(why) = self.refusal() {
            return Err(CommitError::DiskFull(why));
        }
        if let Some(part) = &request.binlog {
            self.env().check_numbers(part)?;
        }
        self.checkpointer.fill_rotation_reserve(self);
        let mut spilled = Vec::with_capacity(request.redo.len());
        let reserved = self.spill_and_reserve(request, &mut spilled);
        if reserved.is_err() {
            self.discard_redo(&spilled);
        }
        let (reserved, staged) = reserved?;
        Ok((reserved, spilled, staged))
    }

    fn spill_and_reserve(
        &self,
        request: &CommitRequest,
        spilled: &mut Spilled,
    ) -> Result<(TrxReservations, Vec<Staged>), CommitError> {
        for (_, redo) in &request.redo {
            if let Some(RedoFile { name, bytes, crc, hold }) = redo.file() {
                hold.keep();
                spilled.push(Some(SpilledRedo { name: name.clone(), bytes: *bytes, crc: *crc }));
            } else if redo.bytes.len() > INLINE_REDO_BYTES_MAX {
                spilled.push(Some(self.spill_redo(&redo.bytes).map_err(CommitError::Io)?));
            } else {
                spilled.push(None);
            }
        }
        let staged = self.stage(request)?;
        let is_logged = request.binlog.is_some() && self.env().binlog.is_some();
        let needs = LogNeeds { request, spilled, is_logged };
        let logs = &self.env().logs;
        let reserved = logs.reserve(&needs, &mut |log, bytes| self.reserve_in(log, bytes))?;
        logs.sync_at_prepare(&reserved).map_err(|e| self.refused(e))?;
        Ok((reserved, staged))
    }

    /// Has the engines stage large redo, which would otherwise block the order stage for long. Not done while
    /// replicas are waited for, because writes that an engine has ingested can no longer be cut off
    /// (`recovery.rs`).
    fn stage(&self, request: &CommitRequest) -> Result<Vec<Staged>, CommitError> {
        let mut staged = Vec::new();
        for (id, redo) in &request.redo {
            if redo.bytes.len() <= INLINE_REDO_BYTES_MAX || self.env().is_gated() {
                continue;
            }
            let participant = self.env().participants.iter().find(|participant| participant.id() == *id);
            let participant = participant.expect("looked at above");
            let done = participant.stage(redo).map_err(|error| match error {
                EngineError::Io(error) => CommitError::Io(error),
                other => CommitError::Io(std::io::Error::other(other)),
            })?;
            staged.extend(done.map(|done| (*id, done)));
        }
        if !staged.is_empty()
            && let Err(error) = self.checkpoint()
        {
            if self.pipeline.is_stopped() {
                return Err(CommitError::Stopped);
            }
            // When the engine ingests the staged writes it would have to flush, which would fail for the same
            // reason (I6). So the transaction is applied in the normal way.
            log::warn!("checkpoint before a large transaction failed: {error}");
            return Ok(Vec::new());
        }
        Ok(staged)
    }

    /// Reserves space in the coordinator's log.
    pub(crate) fn reserve(&self, bytes: u64) -> Result<LogReservation, CommitError> {
        self.reserve_in(self.env().logs.main(), bytes)
    }

    fn reserve_in(&self, log: &Log, bytes: u64) -> Result<LogReservation, CommitError> {
        let mut since = None;
        loop {
            match log.reserve(bytes) {
                Ok(reservation) => return Ok(reservation),
                Err(LogError::Full(FullCause::Cap))
                    if self.options.has_threads
                        && since.get_or_insert_with(Instant::now).elapsed() < CAP_WAIT =>
                {
                    self.checkpointer.request();
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(e) => return Err(self.refused(e)),
            }
        }
    }

    /// Converts an error of a log to the error of a transaction that is not ordered yet.
    fn refused(&self, error: LogError) -> CommitError {
        match error {
            e @ LogError::Full(_) => CommitError::DiskFull(e.to_string()),
            e @ LogError::Poisoned { .. } => {
                // The log may have stopped without a flush, when the thread that prepares segments met an
                // error.
                if !self.is_closing() {
                    self.fail(&e);
                }
                CommitError::Stopped
            }
            e => CommitError::Io(std::io::Error::other(e.to_string())),
        }
    }

    fn spill_redo(&self, bytes: &[u8]) -> std::io::Result<SpilledRedo> {
        let name = self.spill.write_redo(bytes)?;
        Ok(SpilledRedo { name, bytes: bytes.len() as u64, crc: crc32c::crc32c(bytes) })
    }

    /// Removes the spill file of a transaction that is not committed.
    pub(crate) fn discard_events(&self, request: &CommitRequest) {
        if let Some(part) = &request.binlog {
            // Nothing refers to the file; if it cannot be removed now, the next start removes it.
            let _ = self.spill.discard(&part.events);
        }
    }

    pub(crate) fn discard_redo(&self, spilled: &[Option<SpilledRedo>]) {
        for file in spilled.iter().flatten() {
            // See `discard_events`.
            let _ = self.spill.remove(&file.name);
        }
    }
}
