//! The server's commit path, as its sessions see it: one [`Pipeline`] over the real log, binlog and
//! participants.
//!
//! What needs a page of its own lies beside it: the start (`open.rs`), prepare (`prepare.rs`), the binlog
//! (`binlog.rs`), checkpoints (`checkpoint.rs`), removal of old binlog files (`purge.rs`).
//!
//! # What is synced when
//! | what | when |
//! |---|---|
//! | the log, or the logs and then the binlog (`separate.rs`) | once per flush group, and before a checkpoint |
//! | spilled redo and events | at prepare, before the transaction is ordered |
//! | binlog files | at checkpoints; on the commit path only where they decide |
//! | engines, catalog | at checkpoints |
//!
//! # On failure
//! `prepare` refuses (`prepare.rs` says when), `order_in_sequence` refuses a sequence number that does not
//! grow. After them nothing fails; a failed log flush calls the stop hook, which ends the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cohort_base::{BinlogPos, CommitSeq, ConnectionId, DomainId, Gtid, Lsn};
use cohort_binlog::SpillDir;
use cohort_engine::ReadView;

use crate::checkpoint::Checkpointer;
use crate::env::{AppliedMark, ReplicaGate, ServerEnv};
use crate::error::{CheckpointError, CommitError};
use crate::logs::engine_dir;
use crate::metrics::Metrics;
use crate::options::CoordinatorOptions;
use crate::pace::Pace;
use crate::pipeline::Pipeline;
use crate::record;
use crate::recovery::Recovered;
use crate::request::{BinlogPart, CommitRequest, Prepared};
use crate::seam::{CommitEnv, Stopped, Wake};
use crate::separate::Overlap;
use crate::xa::XaBranches;

/// How far a log has come, and an engine in it.
#[derive(Clone, Copy, Debug)]
pub struct LogPositions {
    /// Recovery needs nothing before it for the engine.
    pub checkpoint: Lsn,
    /// Survives a crash.
    pub hardened: Lsn,
    /// The next record's place.
    pub appended: Lsn,
}

/// The commit path, shared by all sessions.
pub struct Coordinator {
    pub(crate) pipeline: Pipeline<ServerEnv>,
    pub(crate) options: CoordinatorOptions,
    pub(crate) spill: Arc<SpillDir>,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) recovered: Recovered,
    pub(crate) xa: Arc<XaBranches>,
    pub(crate) is_closing: AtomicBool,
}

impl Coordinator {
    /// What recovery found at the start.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// The XA transactions between their two phases.
    pub fn xa(&self) -> &Arc<XaBranches> {
        &self.xa
    }

    /// Whether the clean stop has begun.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    pub(crate) fn env(&self) -> &ServerEnv {
        self.pipeline.env()
    }

    /// Counters.
    pub fn metrics(&self) -> &Metrics {
        &self.env().metrics
    }

    /// Nanoseconds since some moment, by the clock of the metrics.
    pub fn now_ns(&self) -> u64 {
        self.env().now_ns()
    }

    /// How groups are gathered.
    pub fn pace(&self) -> &Arc<Pace> {
        self.pipeline.pace()
    }

    /// Counters of the log.
    pub fn log_stats(&self) -> cohort_log::LogStats {
        self.env().logs.stats()
    }

    /// Counters of the log of an engine, by the engine's name: in the shared layout of the one log.
    pub fn engine_log_stats(&self, engine: &str) -> Option<cohort_log::LogStats> {
        let engine = self.env().engines.iter().find(|it| it.name().eq_ignore_ascii_case(engine))?;
        Some(self.env().logs.stats_of(engine.id()))
    }

    /// How far that log has come, and the engine in it.
    pub fn engine_log_positions(&self, engine: &str) -> Option<LogPositions> {
        let engine = self.env().engines.iter().find(|it| it.name().eq_ignore_ascii_case(engine))?;
        // In this order: none is behind the one before.
        let checkpoint = engine.durable_lsn();
        let log = self.env().logs.log_of(engine.id());
        let hardened = log.hardened();
        Some(LogPositions { checkpoint, hardened, appended: log.appended() })
    }

    /// How often leaders synced that log: with one log, all of its syncs.
    pub fn engine_group_syncs(&self, engine: &str) -> Option<u64> {
        let engine = self.env().engines.iter().find(|it| it.name().eq_ignore_ascii_case(engine))?;
        match self.env().logs.separate() {
            None => Some(self.env().logs.main().stats().syncs),
            Some(logs) => Some(logs.group_syncs_of(engine.id())),
        }
    }

    /// How many logs there are, and what decides.
    pub fn layout(&self) -> crate::logs::LogLayout {
        self.env().logs.layout()
    }

    /// `binlog_group_commit_sync_engine`: takes effect with the next transaction that is prepared. Without
    /// effect in the shared layout.
    pub fn set_group_sync(&self, is_on: bool) {
        if let Some(logs) = self.env().logs.separate() {
            logs.set_group_sync(is_on);
        }
    }

    /// `binlog_group_commit_overlap`: takes effect with the next group. Without effect in the shared layout.
    pub fn set_group_overlap(&self, overlap: Overlap) {
        let Some(logs) = self.env().logs.separate() else { return };
        logs.set_overlap(match overlap {
            Overlap::Off => false,
            Overlap::On => true,
            Overlap::Auto => self.is_binlog_apart(),
        });
    }

    /// Whether the binlog is on a device on which there is no log of an engine.
    fn is_binlog_apart(&self) -> bool {
        let fs = &self.env().world.fs;
        let Some(binlog) = &self.options.binlog else { return false };
        let dirs = self.env().engines.iter().map(|engine| engine_dir(&self.options.datadir, engine.id()));
        fs.device(binlog.name.dir()).is_ok_and(|device| {
            dirs.into_iter().all(|dir| fs.device(&dir).is_ok_and(|of_engine| of_engine != device))
        })
    }

    /// `early_lock_release`: takes effect with the next transaction that is ordered.
    pub fn set_early_release(&self, is_early: bool) {
        self.env().is_early_release.store(is_early, Ordering::Relaxed);
    }

    /// The newest published state (I5): what a statement or transaction that starts now reads.
    pub fn read_view(&self) -> ReadView {
        self.env().view.read().view.clone()
    }

    /// The same, and where the binary log ends in that state.
    pub fn read_view_and_binlog_end(&self) -> (ReadView, BinlogPos) {
        let published = self.env().view.read();
        (published.view.clone(), published.binlog_end)
    }

    /// Has hardened groups wait for replicas; once, before the first commit.
    pub fn set_replica_gate(&self, gate: Arc<dyn ReplicaGate>) {
        assert!(self.env().gate.set(gate).is_ok(), "there is one gate");
    }

    /// The gate may let groups through that it held: a replica answered, the wait timed out, or a setting
    /// changed.
    pub fn gate_opened(&self) {
        self.pipeline.gate_opened();
    }

    /// Replicas are no longer waited for: everything hardened goes on its way. `switch_off` makes the gate's
    /// `is_on` false; before it runs, the log says durably that nothing so far may be cut, because clients
    /// will be told.
    pub fn release_from_replicas(&self, switch_off: impl FnOnce()) -> Result<(), CommitError> {
        let env = self.env();
        let room = self.reserve(8)?;
        let switched = self.pipeline.hold(|last| {
            env.logs.main().append(room, record::RELEASED, &[&last.0.to_le_bytes()]);
            self.harden_now()?;
            switch_off();
            Ok::<(), Stopped>(())
        });
        switched.and_then(|done| done)?;
        self.gate_opened();
        Ok(())
    }

    /// Tells the client that is parked for `seq`, which is published, although replicas are still waited for;
    /// the log must say by now that it will not be cut ([`Coordinator::release_from_replicas`]). False if it
    /// is not parked.
    pub fn tell_early(&self, seq: CommitSeq, client: ConnectionId) -> bool {
        self.pipeline.tell_early(seq, client)
    }

    /// The newest transaction whose client may be told: it and all before it are hardened and published.
    pub fn acknowledged(&self) -> CommitSeq {
        self.pipeline.acknowledged()
    }

    /// The newest transaction that has its place in the order: no `Latest` read that is done has seen a later
    /// one.
    pub fn placed(&self) -> CommitSeq {
        self.pipeline.placed()
    }

    /// Where the engines' newest state is now, for whoever would otherwise read a row again under its lock.
    pub fn applied_mark(&self) -> AppliedMark {
        self.env().applied_mark()
    }

    /// Takes the transaction's place in the one order (I1): its writes become visible to `Latest` reads, its
    /// locks go, at once or when who is at the order stage comes to it ([`Coordinator::await_ordered`]).
    /// Never waits for the disk. The reply must be held until the returned position is acknowledged (I4).
    pub fn order(&self, prepared: Prepared) -> CommitSeq {
        if prepared.get().staged.is_empty() {
            return self.pipeline.order(prepared);
        }
        // Stopped: the process is about to end, and nobody will be told of this transaction.
        self.pipeline.order_alone(prepared).unwrap_or(CommitSeq(u64::MAX))
    }

    /// The same under `gtid_strict_mode`, for a transaction with a sequence number of its own: refused unless
    /// the number is above all of its domain that were ordered before. A refused transaction is dropped, and
    /// its locks with it: rolled back.
    pub fn order_in_sequence(&self, prepared: Prepared) -> Result<CommitSeq, CommitError> {
        self.order_in_sequence_or_return(prepared).map_err(|(error, _)| error)
    }

    /// The same; the refused request goes back to its owner, who may have more to do with its locks.
    #[allow(clippy::result_large_err)] // as in prepare
    pub fn order_in_sequence_or_return(
        &self,
        prepared: Prepared,
    ) -> Result<CommitSeq, (CommitError, Box<CommitRequest>)> {
        let mut trx = prepared.into_inner();
        // It is applied as others are: numbers of their own are not for bulk loads.
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

    /// `gtid_strict_mode`: whether the number is above all of its domain so far. Others may take it until it
    /// is ordered, so it is asked again then.
    pub fn check_gtid_order(&self, gtid: Gtid) -> Result<(), CommitError> {
        check_order(self.env(), gtid)
    }

    /// The next own sequence number of the domain is behind this one, which a replica has applied without
    /// logging it.
    pub fn raise_gtid(&self, domain: DomainId, seq_no: u64) {
        self.env().gtids.lock().raise(domain, seq_no);
    }

    /// At return the transaction is applied in the engines: for a session that goes on before it is told.
    pub fn await_ordered(&self, seq: CommitSeq) {
        self.pipeline.await_ordered(seq);
    }

    /// Flushes what is ordered if nobody does. A worker that ordered a transaction calls this once before it
    /// goes on.
    pub fn lead(&self) {
        self.pipeline.lead();
    }

    /// The same for a worker that serves somebody next, and calls `lead` when there is nobody: it may leave
    /// the flush to a worker that has nothing else to do.
    pub fn lead_later(&self) {
        self.pipeline.lead_later();
    }

    /// `innodb_log_file_buffering`: whether segments of the logs that are made ready from now on are written
    /// through the page cache.
    pub fn set_log_buffered(&self, buffered: bool) {
        self.env().logs.set_buffered(buffered);
    }

    /// Whether anything is ordered that no leader has taken.
    pub fn has_queued(&self) -> bool {
        self.pipeline.has_queued()
    }

    /// Flushes all that is ordered, whichever worker leads. At return it is published, unless replicas are
    /// waited for.
    pub fn flush_ordered(&self) -> Result<(), CommitError> {
        Ok(self.pipeline.hold(|_| ())?)
    }

    /// Blocks until the client of `seq` may be told, flushing itself if nobody does. For callers that cannot
    /// hold a reply back.
    pub fn wait_acknowledged(&self, seq: CommitSeq) -> Result<(), CommitError> {
        Ok(self.pipeline.wait_acknowledged(seq)?)
    }

    /// Visits entries as long as the caller goes on; returns false if it stops.
    pub fn wait_acknowledged_while(
        &self,
        seq: CommitSeq,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<bool, CommitError> {
        Ok(self.pipeline.wait_acknowledged_while(seq, goes_on)?)
    }

    /// Whether the client of `seq` may be told; an error when nobody shall wait for it any more.
    pub fn has_acknowledged(&self, seq: CommitSeq) -> Result<bool, CommitError> {
        Ok(self.pipeline.has_acknowledged(seq)?)
    }

    /// Has `wake` told when the client of `seq` may be told; false if it is already (then nothing is told).
    pub fn when_acknowledged(&self, seq: CommitSeq, wake: Arc<dyn Wake>) -> bool {
        self.pipeline.when_acknowledged(seq, wake)
    }

    /// The spill directory, for transaction caches that outgrow memory.
    pub fn spill_dir(&self) -> &Arc<SpillDir> {
        &self.spill
    }

    /// Flushes the coordinator's log outside of a group; a failure stops the server as it does there.
    pub(crate) fn harden_now(&self) -> Result<Lsn, Stopped> {
        self.env().logs.main().flush().map_err(|error| {
            self.fail(&error);
            Stopped
        })
    }

    /// One round of the background work: free space, rotation room, a checkpoint when one is due.
    pub fn tick(&self) {
        self.checkpointer.tick(self);
    }

    /// Makes everything so far durable in the engines and the binlog files, and frees the log below.
    pub fn checkpoint(&self) -> Result<(), CheckpointError> {
        self.checkpointer.checkpoint(self)
    }

    /// The server is about to stop: statements do not wait for replicas any more, and the binlog's files not
    /// for space. Their transactions stay where they are, and nobody is told OK.
    pub fn leave_gates(&self) {
        if let Some(logs) = self.env().logs.separate() {
            logs.note_stopping();
        }
        self.pipeline.leave_gates();
    }

    /// Clean stop: no commit is taken any more, everything is flushed and closed. Sessions must be gone.
    pub fn close(&self) -> Result<(), CheckpointError> {
        self.is_closing.store(true, Ordering::SeqCst);
        self.checkpointer.stop();
        self.change_stream(|stream, out, now_s| stream.stop(out, now_s))
            .map_err(|_| CheckpointError::Stopped)?;
        match self.checkpoint() {
            // What replicas have not got stays in the log alone, so that it can still be cut; the next start
            // replays it.
            Ok(()) | Err(CheckpointError::Gated) => {}
            Err(error) => return Err(error),
        }
        self.pipeline.stop();
        if let Some(binlog) = &self.env().binlog {
            binlog.files.close().map_err(CheckpointError::Binlog)?;
        }
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
