//! Reset of the binlog. RESET MASTER removes all binlog files, restarts the GTID sequence numbers at 1, and
//! restarts the stream at the head of a file, which may reuse the number of a removed one. SET GLOBAL
//! gtid_binlog_state does this to a binlog without transactions, and its first file begins with the GTIDs
//! that are set.
//!
//! # Steps
//! ```text
//! a checkpoint while commits continue, so that the one below has little left to do
//! check that there are no readers of the files, and block new ones
//! hold the order stage, with everything ordered durable and published:
//!   a checkpoint whose control file says that the binlog is being reset      <- decides
//!   remove the index and the files
//!   append the head of the new file to the log, flush it, submit it to the binlog writer
//!   reset GTIDs and positions: the stream's end, the published end, the replicas' gate
//!   sync the new file, and clear the reset mark in the control file
//! ```
//!
//! # Invariants
//! - Positions from before and after the reset are never compared. So there are no readers of the stream
//!   meanwhile, the gate releases every group it knew, and code that waits for the files checks
//!   [`cohort_binlog::BinlogFileWriter::restarts`].
//! - After the checkpoint the log names no chunk of the old files. While the control file has the reset mark,
//!   recovery removes all binlog files, so no transaction may be in them. Therefore none is ordered
//!   meanwhile, and a start that found the mark clears it before its first transaction. The directory was
//!   synced before that, so no old file can reappear then.
//!
//! # On failure
//! Before the control file is written nothing has changed, and the statement returns an error. After that
//! nothing may fail: an I/O error ends the server, and the next start completes the reset.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cohort_base::{BinlogPos, CommitSeq};
use cohort_binlog::{GtidState, SEQ_NO_MAX, StreamOut};
use cohort_log::LogReservation;

use crate::binlog::Binlog;
use crate::checkpoint::Sealed;
use crate::commit_env::Stopped;
use crate::coordinator::Coordinator;
use crate::error::{CheckpointError, CommitError};
use crate::fault::Severity;

/// Maximum time that the order stage is held to wait for replicas, or for the publishing thread.
const PUBLISH_WAIT: Duration = Duration::from_millis(50);

/// Reason why the binlog was not reset.
#[derive(Debug)]
pub enum ResetError {
    /// The binlog is off.
    Off,
    /// The name of a replica or other reader that has the files open.
    Reader(String),
    /// The log is archived: a restore replays the log, which does not have the removal of the files.
    Archived,
    /// GTIDs were to be set, but the binlog already has some.
    NotEmpty,
    Checkpoint(CheckpointError),
    Commit(CommitError),
}

impl fmt::Display for ResetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResetError::Off => f.write_str("the binary log is off"),
            ResetError::Reader(who) => write!(f, "{who} reads the binary log"),
            ResetError::Archived => f.write_str("the log is archived"),
            ResetError::NotEmpty => f.write_str("the binary log has transactions"),
            ResetError::Checkpoint(error) => error.fmt(f),
            ResetError::Commit(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ResetError {}

impl Coordinator {
    /// Resets the binlog for RESET MASTER [TO first]. Commits are blocked meanwhile.
    pub fn reset_binlog(&self, first: NonZeroU32) -> Result<(), ResetError> {
        self.reset_to(first, None)
    }

    /// Sets the GTID state of a binlog without transactions, which then begins with this state, for SET
    /// GLOBAL gtid_binlog_state. Durable at return.
    pub fn set_gtid_state(&self, state: GtidState) -> Result<(), ResetError> {
        self.reset_to(NonZeroU32::MIN, Some(state))
    }

    fn reset_to(&self, first: NonZeroU32, state: Option<GtidState>) -> Result<(), ResetError> {
        let Some(binlog) = &self.env().binlog else { return Err(ResetError::Off) };
        if self.is_archived() {
            return Err(ResetError::Archived);
        }
        let is_refused = || state.is_some() && !binlog.stream.lock().gtid_state().list().is_empty();
        if is_refused() {
            return Err(ResetError::NotEmpty);
        }
        self.checkpoint().map_err(ResetError::Checkpoint)?;
        let needed_bytes = state.as_ref().map_or(0, |state| binlog.stream.lock().head_bytes_max(state));
        let reservation = self.reserve_for_stream_of(binlog, needed_bytes).map_err(ResetError::Commit)?;
        let _closed = binlog.files.pins().close().map_err(ResetError::Reader)?;
        let _running = self.checkpointer.one_at_a_time();
        let done = self.pipeline.hold(|last| match is_refused() {
            true => Ok(false),
            false => {
                let state = state.clone().unwrap_or_default();
                self.reset_held(binlog, first, state, reservation, last).map(|()| true)
            }
        });
        let done = done.unwrap_or(Err(CheckpointError::Stopped));
        if let Err(error) = &done {
            self.stop_if_severe(Severity::of_checkpoint(error), error);
        }
        self.gate_opened();
        match done.map_err(ResetError::Checkpoint)? {
            true => Ok(()),
            false => Err(ResetError::NotEmpty),
        }
    }

    fn reset_held(
        &self,
        binlog: &Binlog,
        first: NonZeroU32,
        state: GtidState,
        reservation: Option<LogReservation>,
        last: CommitSeq,
    ) -> Result<(), CheckpointError> {
        if !self.is_published(last) {
            return Err(CheckpointError::Gated);
        }
        let mut sealed = Sealed::now(self, last)?;
        sealed.make_durable(self)?;
        sealed.write(self, BinlogPos::default(), Some(first))?;
        // From here on the reset has happened.
        let done = self.begin_again(binlog, first, state, reservation).and_then(|()| {
            let synced = binlog.files.sync().map_err(CheckpointError::Binlog)?;
            sealed.write(self, synced.unwrap_or_default(), None).map(drop)
        });
        done.map_err(|error| {
            if !matches!(error, CheckpointError::Stopped) {
                self.fail(&error);
            }
            CheckpointError::Stopped
        })
    }

    fn begin_again(
        &self,
        binlog: &Binlog,
        first: NonZeroU32,
        state: GtidState,
        reservation: Option<LogReservation>,
    ) -> Result<(), CheckpointError> {
        let env = self.env();
        let mut stream = binlog.stream.lock();
        let mut out = StreamOut::default();
        let batch = {
            let mut end = binlog.end.lock();
            binlog.files.remove_all().map_err(CheckpointError::Binlog)?;
            stream.restart(first.get(), state.clone(), env.now_s(), &mut out);
            let durable = self.flush_stream(binlog, reservation, &out);
            let batch = durable.map_err(|Stopped| CheckpointError::Stopped)?;
            end.position = stream.position();
            env.is_out_of_numbers.store(state.seq_no_max() >= SEQ_NO_MAX, Ordering::Relaxed);
            end.gtids = state.clone();
            *env.gtids.lock() = state;
            env.view.write().binlog_end = end.position;
            batch
        };
        if let Some(gate) = env.gate.get() {
            gate.restarted();
        }
        binlog.rotation_reserve.note_need(stream.rotation_bytes_max());
        binlog.hand_over(batch);
        Ok(())
    }

    /// Waits a moment, with the order stage held, until everything up to `last` is published. Returns whether
    /// it is.
    fn is_published(&self, last: CommitSeq) -> bool {
        self.comes_to(last, || self.env().view.read().view.seq())
    }

    /// Waits a moment, with the order stage held, until nothing up to `last` is cut off any more. Returns
    /// whether that is so.
    pub(crate) fn is_replicated(&self, last: CommitSeq) -> bool {
        self.comes_to(last, || self.env().replicated())
    }

    fn comes_to(&self, last: CommitSeq, newest: impl Fn() -> CommitSeq) -> bool {
        let deadline = Instant::now() + PUBLISH_WAIT;
        loop {
            self.gate_opened();
            if newest() >= last {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}
