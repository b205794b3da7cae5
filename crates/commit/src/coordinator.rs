//! The server's commit path, used by its sessions: one [`Pipeline`] over the real log, binlog and
//! participants.
//!
//! Other files hold larger parts of it: the start (`open.rs`), prepare (`prepare.rs`), the binlog
//! (`binlog.rs`), checkpoints (`checkpoint.rs`), removal of old binlog files (`purge.rs`).
//!
//! # Syncs
//! | files | synced |
//! |---|---|
//! | the log; or the logs, then the binlog (`separate.rs`) | once per flush group and before a checkpoint |
//! | spilled redo and events | at prepare, before the transaction is ordered |
//! | binlog files | at checkpoints; on the commit path only where they decide |
//! | engines, catalog | at checkpoints |
//!
//! # On failure
//! `prepare` refuses a transaction (see `prepare.rs`), and `order_in_sequence` refuses a sequence number that
//! does not grow. After these calls nothing fails; a failed log flush calls the stop hook, which ends the
//! process.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cohort_base::{BinlogPos, CommitSeq, ConnectionId, DomainId, Gtid, Lsn};
use cohort_binlog::SpillDir;
use cohort_engine::ReadView;

use crate::archive::stats::ArchiveStats;
use crate::checkpoint_state::Checkpointer;
use crate::commit_env::{CommitEnv, Stopped, Wake};
use crate::env::{AppliedMark, ReplicaGate, ServerEnv};
use crate::error::{CheckpointError, CommitError};
use crate::fault::Severity;
use crate::group_commit::GroupCommitPolicy;
use crate::logs::{Overlap, engine_dir};
use crate::metrics::Metrics;
use crate::options::CoordinatorOptions;
use crate::pipeline::Pipeline;
use crate::record;
use crate::recovery::Recovered;
use crate::request::{BinlogPart, CommitRequest, Prepared};
use crate::xa::XaBranches;

/// Positions in a log, with an engine's checkpoint in it.
#[derive(Clone, Copy, Debug)]
pub struct LogPositions {
    /// Recovery of the engine starts here.
    pub checkpoint: Lsn,
    /// Everything before it is durable.
    pub durable: Lsn,
    /// The next record starts here.
    pub appended: Lsn,
}

/// The commit path, shared by all sessions.
pub struct Coordinator {
    pub(crate) pipeline: Pipeline<ServerEnv>,
    pub(crate) options: CoordinatorOptions,
    pub(crate) spill: Arc<SpillDir>,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) recovered: Recovered,
    pub(crate) archive: ArchiveStats,
    pub(crate) xa: Arc<XaBranches>,
    pub(crate) is_closing: AtomicBool,
    /// `checkpoint_bytes_max`.
    pub(crate) checkpoint_bytes_max: AtomicU64,
}

impl Coordinator {
    /// Returns the results of the recovery at the start.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// Returns the XA transactions between their two phases.
    pub fn xa(&self) -> &Arc<XaBranches> {
        &self.xa
    }

    /// Returns whether the clean stop has begun.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    pub(crate) fn env(&self) -> &ServerEnv {
        self.pipeline.env()
    }

    /// Returns the counters and times of the commit path.
    pub fn metrics(&self) -> &Metrics {
        &self.env().metrics
    }

    /// Returns nanoseconds since an arbitrary start, by the clock of the metrics.
    pub fn now_ns(&self) -> u64 {
        self.env().now_ns()
    }

    /// Returns the group-commit policy.
    pub fn group_commit(&self) -> &Arc<GroupCommitPolicy> {
        self.pipeline.group_commit()
    }

    /// Returns the counters of the log; in the separate layout, of all logs together.
    pub fn log_stats(&self) -> cohort_log::LogStats {
        self.env().logs.stats()
    }

    /// Returns the counters of an engine's log, by the engine's name. In the shared layout that is the one
    /// log.
    pub fn engine_log_stats(&self, engine: &str) -> Option<cohort_log::LogStats> {
        let engine = self.env().engines.iter().find(|it| it.name().eq_ignore_ascii_case(engine))?;
        Some(self.env().logs.stats_of(engine.id()))
    }

    /// Returns the positions in an engine's log, by the engine's name.
    pub fn engine_log_positions(&self, engine: &str) -> Option<LogPositions> {
        let engine = self.env().engines.iter().find(|it| it.name().eq_ignore_ascii_case(engine))?;
        // Read in this order, so that each position is at or after the one before.
        let checkpoint = engine.durable_lsn();
        let log = self.env().logs.log_of(engine.id());
        let durable = log.durable_end();
        Some(LogPositions { checkpoint, durable, appended: log.appended() })
    }

    /// Returns the number of syncs of the engine's log by leaders; with one log, of all its syncs.
    pub fn engine_group_syncs(&self, engine: &str) -> Option<u64> {
        let engine = self.env().engines.iter().find(|it| it.name().eq_ignore_ascii_case(engine))?;
        Some(self.env().logs.group_syncs_of(engine.id()))
    }

    /// Returns the layout of the logs.
    pub fn layout(&self) -> crate::logs::LogLayout {
        self.env().logs.layout()
    }

    /// Sets `binlog_group_commit_sync_engine`, from the next prepared transaction on. Without effect in the
    /// shared layout.
    pub fn set_group_sync(&self, is_on: bool) {
        self.env().logs.set_group_sync(is_on);
    }

    /// Sets `binlog_group_commit_overlap`, from the next group on. Without effect in the shared layout.
    pub fn set_group_overlap(&self, overlap: Overlap) {
        let logs = &self.env().logs;
        let is_on = match overlap {
            Overlap::Off => false,
            Overlap::On => true,
            Overlap::Auto => logs.is_decided_by_binlog() && self.is_binlog_apart(),
        };
        logs.set_overlap(is_on);
    }

    /// Returns whether the binlog is on a device without any engine's log.
    fn is_binlog_apart(&self) -> bool {
        let fs = &self.env().world.fs;
        let Some(binlog) = &self.options.binlog else { return false };
        let dirs = self.env().engines.iter().map(|engine| engine_dir(&self.options.datadir, engine.id()));
        fs.device(binlog.name.dir()).is_ok_and(|device| {
            dirs.into_iter().all(|dir| fs.device(&dir).is_ok_and(|of_engine| of_engine != device))
        })
    }

    /// Sets `checkpoint_bytes_max`, from the next check of the checkpoint policy on.
    pub fn set_checkpoint_bytes_max(&self, bytes: u64) {
        self.checkpoint_bytes_max.store(bytes, Ordering::Relaxed);
    }

    /// Sets `early_lock_release`, from the next ordered transaction on.
    pub fn set_early_release(&self, is_early: bool) {
        self.env().is_early_release.store(is_early, Ordering::Relaxed);
    }

    /// Returns the newest published state (I5), for a statement or transaction that starts now.
    pub fn read_view(&self) -> ReadView {
        self.env().view.read().view.clone()
    }

    /// Returns the newest published state, and the end of the binary log in that state.
    pub fn read_view_and_binlog_end(&self) -> (ReadView, BinlogPos) {
        let published = self.env().view.read();
        (published.view.clone(), published.binlog_end)
    }

    /// Installs the gate at which durable groups wait for replicas. Called once, before the first commit.
    pub fn set_replica_gate(&self, gate: Arc<dyn ReplicaGate>) {
        assert!(self.env().gate.set(gate).is_ok(), "there is one gate");
    }

    /// Publishes and acknowledges groups that the gate no longer holds. Called after a replica has
    /// acknowledged, the wait has timed out, or a setting has changed.
    pub fn gate_opened(&self) {
        self.pipeline.gate_opened();
    }

    /// Stops waiting for replicas: everything durable is published and acknowledged. `switch_off` makes the
    /// gate's `is_on` false. Before it runs, a log record makes durable that nothing so far may be cut off,
    /// because clients will get their OK.
    pub fn release_from_replicas(&self, switch_off: impl FnOnce()) -> Result<(), CommitError> {
        let env = self.env();
        let reservation = self.reserve(8)?;
        let switched = self.pipeline.hold(|last| {
            env.logs.main().append(reservation, record::RELEASED, &[&last.0.to_le_bytes()]);
            self.flush_now()?;
            switch_off();
            Ok::<(), Stopped>(())
        });
        switched.and_then(|done| done)?;
        self.gate_opened();
        Ok(())
    }

    /// Notifies the client that is parked for `seq`, which is published, although replicas are still waited
    /// for. By now the log must say that `seq` will not be cut off ([`Coordinator::release_from_replicas`]).
    /// Returns false if the client is not parked, or `seq` waits for the archive and is not published.
    pub fn acknowledge_early(&self, seq: CommitSeq, client: ConnectionId) -> bool {
        self.env().view.read().view.seq() >= seq && self.pipeline.acknowledge_early(seq, client)
    }

    /// Returns the newest transaction whose client may get its reply: it, and all before it, are durable and
    /// published.
    pub fn acknowledged(&self) -> CommitSeq {
        self.pipeline.acknowledged()
    }

    /// Returns the newest transaction that has a CommitSeq. No `Latest` read that has finished has seen a
    /// later one.
    pub fn placed(&self) -> CommitSeq {
        self.pipeline.placed()
    }

    /// Returns a mark of the engines' newest applied state. A locking scan that took the mark before reading
    /// a batch can skip reading a row again under its lock if the mark is unchanged.
    pub fn applied_mark(&self) -> AppliedMark {
        self.env().applied_mark()
    }

    /// Assigns the transaction its CommitSeq (I1). Its writes become visible to `Latest` reads and its locks
    /// are released, immediately or when the thread that holds the order stage processes it
    /// ([`Coordinator::await_ordered`]). Waits for a flush only if writes are staged (an exclusive commit),
    /// or if it leads because it ordered transactions of other threads. The reply must be held until the
    /// returned CommitSeq is acknowledged (I4).
    pub fn order(&self, prepared: Prepared) -> CommitSeq {
        if prepared.get().staged.is_empty() {
            return self.pipeline.order(prepared);
        }
        // The pipeline has stopped: the process is about to end, and the transaction is never acknowledged.
        self.pipeline.order_exclusive(prepared).unwrap_or(CommitSeq(u64::MAX))
    }

    /// Orders a transaction with its own sequence number under `gtid_strict_mode`. Refuses it unless the
    /// number is above all numbers of its domain ordered before. A refused transaction is dropped with its
    /// locks: it is rolled back.
    pub fn order_in_sequence(&self, prepared: Prepared) -> Result<CommitSeq, CommitError> {
        self.order_in_sequence_or_return(prepared).map_err(|(error, _)| error)
    }

    /// Orders like [`Coordinator::order_in_sequence`], but returns a refused request to the caller, which may
    /// still need its locks.
    #[allow(clippy::result_large_err)] // see `prepare`
    pub fn order_in_sequence_or_return(
        &self,
        prepared: Prepared,
    ) -> Result<CommitSeq, (CommitError, Box<CommitRequest>)> {
        let mut trx = prepared.into_inner();
        // The transaction is applied in the normal way: bulk loads do not bring their own sequence numbers.
        trx.staged.clear();
        let asked = self.pipeline.order_if(Prepared::new(trx), |env, trx| match &trx.request.binlog {
            Some(BinlogPart { domain, server, seq_no: Some(seq_no), .. }) => {
                check_order(env, Gtid { domain: *domain, server: *server, seq_no: *seq_no })
            }
            _ => Ok(()),
        });
        asked.map_err(|(error, refused)| {
            let refused = refused.into_inner();
            self.discard_events(&refused.request);
            self.discard_redo(&refused.spilled);
            (error, Box::new(refused.request))
        })
    }

    /// Checks for `gtid_strict_mode` that the number is above all numbers of its domain so far. Another
    /// transaction may take it before this one is ordered, so it is checked again then.
    pub fn check_gtid_order(&self, gtid: Gtid) -> Result<(), CommitError> {
        check_order(self.env(), gtid)
    }

    /// Makes the next sequence number generated for the domain larger than `seq_no`, which a replica has
    /// applied without logging it.
    pub fn raise_gtid(&self, domain: DomainId, seq_no: u64) {
        self.env().gtids.lock().raise(domain, seq_no);
    }

    /// Waits until the engines have applied the transaction: for a session that continues before it is
    /// acknowledged.
    pub fn await_ordered(&self, seq: CommitSeq) {
        self.pipeline.await_ordered(seq);
    }

    /// Flushes what is ordered unless another thread does. A worker that ordered a transaction calls this
    /// once before it continues.
    pub fn lead(&self) {
        self.pipeline.lead();
    }

    /// Leads like [`Coordinator::lead`], for a worker that has another connection to serve, and calls `lead`
    /// once it has none: it may leave the flush to an idle worker.
    pub fn lead_later(&self) {
        self.pipeline.lead_later();
    }

    /// Sets `innodb_log_file_buffering`: whether log segments prepared from now on are written through the
    /// page cache.
    pub fn set_log_buffered(&self, buffered: bool) {
        self.env().logs.set_buffered(buffered);
    }

    /// Returns whether a transaction is ordered that no leader has taken.
    pub fn has_queued(&self) -> bool {
        self.pipeline.has_queued()
    }

    /// Flushes everything ordered, whichever worker leads. At return it is published, unless replicas or the
    /// archive are waited for.
    pub fn flush_ordered(&self) -> Result<(), CommitError> {
        Ok(self.pipeline.hold(|_| ())?)
    }

    /// Blocks until the client of `seq` may get its reply. Flushes if no other thread does. For callers that
    /// cannot hold a reply.
    pub fn wait_acknowledged(&self, seq: CommitSeq) -> Result<(), CommitError> {
        Ok(self.pipeline.wait_acknowledged(seq)?)
    }

    /// Blocks like [`Coordinator::wait_acknowledged`], as long as `goes_on` returns true. Returns false once
    /// `goes_on` ended the wait.
    pub fn wait_acknowledged_while(
        &self,
        seq: CommitSeq,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<bool, CommitError> {
        Ok(self.pipeline.wait_acknowledged_while(seq, goes_on)?)
    }

    /// Returns whether the client of `seq` may get its reply, or an error if the caller must not wait for it
    /// any more.
    pub fn has_acknowledged(&self, seq: CommitSeq) -> Result<bool, CommitError> {
        Ok(self.pipeline.has_acknowledged(seq)?)
    }

    /// Registers `wake` to be called when the client of `seq` may get its reply. Returns false if it may
    /// already; `wake` is then not called.
    pub fn when_acknowledged(&self, seq: CommitSeq, wake: Arc<dyn Wake>) -> bool {
        self.pipeline.when_acknowledged(seq, wake)
    }

    /// Returns the spill directory, for transaction caches that outgrow memory.
    pub fn spill_dir(&self) -> &Arc<SpillDir> {
        &self.spill
    }

    /// Flushes the coordinator's log outside of a group. A failure stops the server as that of a group does.
    pub(crate) fn flush_now(&self) -> Result<Lsn, Stopped> {
        self.env().logs.main().flush().map_err(|error| {
            self.fail(&error);
            Stopped
        })
    }

    /// Runs one round of the background work: checks free space, reserves log space for a binlog file change,
    /// runs a checkpoint if one is due.
    pub fn tick(&self) {
        self.checkpointer.tick(self);
    }

    /// Makes everything so far durable in the engines and the binlog files, and frees the log below.
    pub fn checkpoint(&self) -> Result<(), CheckpointError> {
        self.checkpointer.checkpoint(self)
    }

    /// Prepares the stop of the server: statements no longer wait for replicas and the archive, and the
    /// binlog's files no longer for space. The waiting transactions stay in the log, and their clients get no
    /// OK.
    pub fn leave_gates(&self) {
        self.env().logs.note_stopping();
        self.pipeline.leave_gates();
    }

    /// Stops cleanly: refuses further commits, then flushes and closes everything. All sessions must have
    /// ended.
    pub fn close(&self) -> Result<(), CheckpointError> {
        self.is_closing.store(true, Ordering::SeqCst);
        if let Some(gate) = &self.env().archive_gate {
            gate.end();
        }
        self.checkpointer.stop();
        self.change_stream(|stream, out, now_s| stream.stop(out, now_s))
            .map_err(|_| CheckpointError::Stopped)?;
        match self.checkpoint() {
            // Transactions that replicas do not have stay in the log alone, so that they can still be cut
            // off; the next start replays them.
            Ok(()) | Err(CheckpointError::Gated) => {}
            Err(error) => return Err(error),
        }
        self.pipeline.stop();
        if let Some(binlog) = &self.env().binlog {
            binlog.files.close().map_err(CheckpointError::Binlog)?;
        }
        self.archive.wait_for_end();
        self.env().logs.close().map_err(CheckpointError::Log)
    }
}

fn check_order(env: &ServerEnv, gtid: Gtid) -> Result<(), CommitError> {
    let last = env.gtids.lock().last_in(gtid.domain);
    match last.filter(|last| gtid.seq_no <= last.seq_no) {
        None => Ok(()),
        Some(last) => Err(CommitError::OutOfOrderGtid(format!(
            "An attempt was made to binlog GTID {gtid} which would create an out-of-order sequence number with \
             existing GTID {last}, and gtid strict mode is enabled"
        ))),
    }
}

impl Coordinator {
    /// Ends the server: no client gets an OK any more, the reason goes to the error log, and the process ends
    /// (in tests the stop hook only records the call).
    pub(crate) fn fail(&self, error: &dyn fmt::Display) {
        self.pipeline.stop();
        (self.env().on_stop)(error);
    }

    /// Ends the server if the error is that severe.
    pub(crate) fn stop_if_severe(&self, meaning: Severity, error: &dyn fmt::Display) {
        if meaning == Severity::Stop {
            self.fail(error);
        }
    }

    /// Ends the server if a background thread has failed: the one that prepares log segments, or the writer
    /// of the binlog files.
    pub(crate) fn look_for_failures(&self) {
        let binlog = self.env().binlog.as_ref();
        let failed = match binlog.map(|binlog| binlog.files.status()) {
            Some(cohort_binlog::BinlogWriterStatus::Failed(error)) => Some(error),
            _ => None,
        };
        let failed = self.env().logs.poisoned().map(|error| error.to_string()).or(failed);
        // A log that was closed on purpose reports the same error; it is closed only after `is_closing` is
        // set.
        if let Some(error) = failed
            && !self.is_closing()
        {
            self.fail(&error);
        }
    }
}
