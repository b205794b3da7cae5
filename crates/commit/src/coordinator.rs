//! The server's commit path: opens the log, recovers, and runs the pipeline over it.
//!
//! # What is synced when
//! | what | when |
//! |---|---|
//! | the log | once per flush group, and before a checkpoint |
//! | spilled redo and events | at prepare, before the transaction is ordered |
//! | binlog files | at rotation and at checkpoints, never on the commit path |
//! | engines, catalog | at checkpoints |
//!
//! # On failure
//! `prepare` refuses: the disk is (nearly) full, the log's cap is reached and no checkpoint helps, or the
//! server stops. `order_in_sequence` refuses a sequence number that does not grow. After them nothing fails;
//! a failed log flush calls the stop hook, which ends the process.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use cohort_base::{BinlogPos, CommitSeq, Gtid, Lsn, ParticipantId, ServerId, Xid};
use cohort_binlog::event::Checksum;
use cohort_binlog::{
    Batch, BinlogFiles, BinlogName, GtidState, Materialiser, MaterialiserOptions, OpenOptions, SpillDir,
    Stream, StreamOptions, StreamOut, VerifyScope,
};
use cohort_engine::{Engine, EngineError, Participant, ReadView, StagedRedo};
use cohort_locks::LockTable;
use cohort_log::{FullCause, LogError, LogOptions, Recovery, Room};
use cohort_vfs::{OpenMode, World};
use parking_lot::{Mutex, RwLock};

use crate::checkpoint::Checkpointer;
use crate::env::{
    Binlog, BinlogEnd, FailpointHook, PublishedView, ROTATION_BYTES, ReplicaGate, ServerEnv, StopHook,
    add_to_batch, append_binlog_record,
};
use crate::metrics::{Metrics, Step};
use crate::pace::{Pace, PaceOptions};
use crate::pipeline::Pipeline;
use crate::record;
use crate::recovery::{self, Recovered, RecoveryError, Scene};
use crate::request::{BinlogPart, CommitRequest, Prepared, SpilledRedo, Trx};
use crate::seam::{CommitEnv, Stopped, Wake};
use crate::stage::{Point, Stage};
use crate::timekeeper;

/// Redo above this is spilled: the log's buffer holds no huge records.
const INLINE_REDO_BYTES_MAX: usize = 16 << 20;
/// How long `prepare` waits for a checkpoint to make room in a log that has reached its cap.
const CAP_WAIT: Duration = Duration::from_secs(30);

/// Settings of the binlog.
#[derive(Clone, Debug)]
pub struct BinlogSettings {
    pub name: BinlogName,
    /// `max_binlog_size`
    pub file_bytes_max: u64,
    pub server_id: ServerId,
    /// In the format description.
    pub server_version: String,
    pub checksum: Checksum,
    /// Verify the checksums of all files at start, not of the last ones only.
    pub is_verifying_all: bool,
}

/// Settings of the commit path.
#[derive(Clone)]
pub struct CoordinatorOptions {
    /// Where log segments, the control file and spill files lie.
    pub datadir: PathBuf,
    pub log: LogOptions,
    /// None: `skip-log-bin`.
    pub binlog: Option<BinlogSettings>,
    pub pace: PaceOptions,
    pub is_early_release: bool,
    /// What a start after a crash does with transactions that no replica is known to have (semi-synchronous
    /// replication).
    pub unreleased: Unreleased,
    /// A checkpoint starts when a participant has so many bytes of redo that are not durable.
    pub checkpoint_bytes: u64,
    /// Writes are refused while the file system has less free space than this.
    pub free_bytes_min: u64,
    /// Whether threads run (the materialiser, the checkpointer); simulations call `tick` themselves.
    pub has_threads: bool,
    pub on_stop: StopHook,
    pub failpoint: Option<FailpointHook>,
}

/// Transactions at the log's end that were hardened, but held back by the gate: no client was told of them,
/// no plain read saw them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unreleased {
    /// They are committed (I2): this server goes on as the source.
    #[default]
    Keep,
    /// They are cut off log, binlog and engines alike: another server has become the source, without them
    /// (`init_rpl_role=SLAVE`).
    Cut,
}

/// Why a commit could not be prepared; the transaction is still active and is to be rolled back.
#[derive(Debug)]
pub enum CommitError {
    /// No room in the log, or the disk is nearly full: error 1021 for the client, who may try again later.
    DiskFull(String),
    /// A spill file could not be written: error 3 for the client.
    Io(std::io::Error),
    /// The server is stopping, or the log failed: error 1053.
    Stopped,
    /// The GTID that the session asked for is not above its domain's last (`gtid_strict_mode`): error 1950.
    OutOfOrderGtid(String),
}

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommitError::DiskFull(what) => write!(f, "disk full: {what}"),
            CommitError::Io(e) => write!(f, "cannot spill the transaction: {e}"),
            CommitError::Stopped => f.write_str("the server is stopping"),
            CommitError::OutOfOrderGtid(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for CommitError {}

impl From<Stopped> for CommitError {
    fn from(_: Stopped) -> CommitError {
        CommitError::Stopped
    }
}

/// For each redo, the file it was spilled to.
type Spilled = Vec<Option<SpilledRedo>>;
/// What a participant has ready on the side.
type Staged = (ParticipantId, Box<dyn StagedRedo>);

/// The commit path, shared by all sessions.
pub struct Coordinator {
    pub(crate) pipeline: Pipeline<ServerEnv>,
    pub(crate) options: CoordinatorOptions,
    pub(crate) spill: Arc<SpillDir>,
    pub(crate) spill_path: PathBuf,
    spill_names: AtomicU64,
    pub(crate) checkpointer: Checkpointer,
    recovered: Recovered,
    is_closing: AtomicBool,
}

impl Coordinator {
    /// Recovers what is in the data directory and opens it for commits. `participants` are all of them,
    /// `engines` those that read views cover. An error has changed nothing that matters.
    pub fn open(
        world: World,
        options: CoordinatorOptions,
        participants: Vec<Arc<dyn Participant>>,
        engines: Vec<Arc<dyn Engine>>,
        locks: Arc<LockTable>,
    ) -> Result<Arc<Coordinator>, RecoveryError> {
        let spill_path = options.datadir.join("spill");
        let spill = SpillDir::open(world.fs.clone(), &spill_path)
            .map_err(|e| RecoveryError::Io(spill_path.clone(), e))?;
        let spill = Arc::new(spill);
        let began_ns = world.clock.monotonic_ns();
        let mut log = Recovery::open(&world, &options.datadir.join("log"), options.log.clone())?;
        let mended_copy = log.damaged_copy().map(|(file, offset)| (file.to_owned(), offset));
        let scene =
            Scene { fs: &world.fs, spill_dir: &spill_path, spill: &spill, participants: &participants };
        let open = |synced_to| {
            open_files(&world, options.binlog.as_ref().expect("asked with the binlog on"), synced_to)
        };
        let base = options.binlog.as_ref().map_or(String::new(), |b| b.name.base().to_owned());
        let open_binlog: Option<recovery::OpenBinlog<'_>> =
            if options.binlog.is_some() { Some(&open) } else { None };
        let (mut recovered, files) =
            recovery::recover(&mut log, &scene, open_binlog, &base, options.unreleased)?;
        recovered.mended_copy = mended_copy;
        recovered.ns = world.clock.monotonic_ns().saturating_sub(began_ns);
        let log = log.finish()?;

        let binlog = match (&options.binlog, files) {
            (Some(settings), Some(files)) => {
                Some(start_binlog(&world, settings, &options, &log, files, &spill, &recovered)?)
            }
            _ => None,
        };
        let last_seq = recovered.last_seq;
        let env = ServerEnv {
            view: RwLock::new(PublishedView {
                view: ServerEnv::make_view(&engines, last_seq),
                binlog_end: binlog.as_ref().map_or(BinlogPos::default(), |b| b.end.lock().position),
            }),
            world,
            log,
            participants,
            engines,
            locks,
            binlog,
            gtids: Mutex::new(recovered.gtids.clone()),
            next_xid: AtomicU64::new(recovered.next_xid.0),
            is_early_release: AtomicBool::new(options.is_early_release),
            metrics: Metrics::default(),
            gate: OnceLock::new(),
            spilled: Mutex::new(Vec::new()),
            on_stop: options.on_stop.clone(),
            failpoint: options.failpoint.clone(),
        };
        let coordinator = Arc::new(Coordinator {
            pipeline: Pipeline::new(env, last_seq, options.pace),
            spill,
            spill_path,
            spill_names: AtomicU64::new(0),
            checkpointer: Checkpointer::default(),
            recovered,
            is_closing: AtomicBool::new(false),
            options,
        });
        if coordinator.recovered.binlog_base != base {
            // From now on a crash recovery must find the files under this name, so the control file has to
            // say it.
            coordinator.checkpoint().map_err(RecoveryError::Checkpoint)?;
        }
        if coordinator.options.has_threads {
            Checkpointer::start(&coordinator);
            timekeeper::start(&coordinator);
        }
        Ok(coordinator)
    }

    /// What recovery found at the start.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
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
        self.env().log.stats()
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
            env.log.append(room, record::RELEASED, &[&last.0.to_le_bytes()]);
            self.harden_now()?;
            switch_off();
            Ok::<(), Stopped>(())
        });
        switched.and_then(|done| done)?;
        self.gate_opened();
        Ok(())
    }

    /// Tells the client of `seq`, which is published, although replicas are still waited for; the log must
    /// say by now that it will not be cut ([`Coordinator::release_from_replicas`]). False if no such client
    /// is parked.
    pub fn tell_early(&self, seq: CommitSeq) -> bool {
        self.pipeline.tell_early(seq)
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

    /// Reserves the log room and makes durable what is spilled; the last call that can fail (I6). May wait.
    #[allow(clippy::result_large_err)] // the request goes back to its owner to be rolled back
    pub fn prepare(&self, request: CommitRequest) -> Result<Prepared, (CommitError, Box<CommitRequest>)> {
        self.env().reached(Point::Before(Stage::Prepare));
        let began_ns = self.now_ns();
        match self.prepare_room(&request) {
            Ok((room, spilled, staged)) => {
                let since_ns = self.now_ns();
                self.metrics().record(Step::Prepare, since_ns.saturating_sub(began_ns), 1);
                let trx = Trx {
                    request,
                    spilled,
                    staged,
                    room: Some(room),
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

    /// Removes the file of a transaction that is not to be.
    fn discard_events(&self, request: &CommitRequest) {
        if let Some(part) = &request.binlog {
            // Nothing refers to the file; what cannot be removed now goes at the next start.
            let _ = self.spill.discard(&part.events);
        }
    }

    fn discard_redo(&self, spilled: &[Option<SpilledRedo>]) {
        for file in spilled.iter().flatten() {
            // As above.
            let _ = self.spill.remove(&file.name);
        }
    }

    /// Why writes are refused right now, if they are: a statement need not begin what cannot be committed.
    pub fn refusal(&self) -> Option<String> {
        self.checkpointer.refusal()
    }

    fn prepare_room(&self, request: &CommitRequest) -> Result<(Room, Spilled, Vec<Staged>), CommitError> {
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
        if let Some(why) = self.checkpointer.refusal() {
            return Err(CommitError::DiskFull(why));
        }
        self.checkpointer.fill_rotation_room(self);
        let mut spilled = Vec::with_capacity(request.redo.len());
        let reserved = self.spill_and_reserve(request, &mut spilled);
        if reserved.is_err() {
            self.discard_redo(&spilled);
        }
        let (room, staged) = reserved?;
        Ok((room, spilled, staged))
    }

    fn spill_and_reserve(
        &self,
        request: &CommitRequest,
        spilled: &mut Spilled,
    ) -> Result<(Room, Vec<Staged>), CommitError> {
        let mut bytes = record::OVERHEAD_BYTES;
        for (_, redo) in &request.redo {
            if redo.bytes.len() > INLINE_REDO_BYTES_MAX {
                spilled.push(Some(self.spill_redo(&redo.bytes).map_err(CommitError::Io)?));
            } else {
                spilled.push(None);
                bytes += redo.bytes.len() as u64;
            }
        }
        if let Some(part) = &request.binlog {
            bytes += Stream::trx_bytes_max(&part.events) + record::OVERHEAD_BYTES;
        }
        let staged = self.stage(request)?;
        Ok((self.reserve(bytes)?, staged))
    }

    /// Redo that is spilled would hold the order stage for long: engines make it ready on the side. Not while
    /// replicas are waited for, because what an engine took in this way cannot be cut any more (recovery.rs).
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
            // The engine would have to flush when it takes this in, which fails for the same reason (I6): so
            // it is applied as others are.
            eprintln!("[Warning] checkpoint before a large transaction failed: {error}");
            return Ok(Vec::new());
        }
        Ok(staged)
    }

    fn reserve(&self, bytes: u64) -> Result<Room, CommitError> {
        let mut since = None;
        loop {
            match self.env().log.reserve(bytes) {
                Ok(room) => return Ok(room),
                Err(LogError::Full(FullCause::Cap))
                    if self.options.has_threads
                        && since.get_or_insert_with(Instant::now).elapsed() < CAP_WAIT =>
                {
                    self.checkpointer.request();
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(e @ LogError::Full(_)) => return Err(CommitError::DiskFull(e.to_string())),
                Err(LogError::Poisoned { .. }) => return Err(CommitError::Stopped),
                Err(e) => return Err(CommitError::Io(std::io::Error::other(e.to_string()))),
            }
        }
    }

    fn spill_redo(&self, bytes: &[u8]) -> std::io::Result<SpilledRedo> {
        let number = self.spill_names.fetch_add(1, Ordering::Relaxed);
        let name = format!("redo-{}-{number}", self.env().world.clock.wall_us());
        let fs = &self.env().world.fs;
        let path = self.spill_path.join(&name);
        let write = || {
            let file = fs.open(&path, OpenMode::CreateNew)?;
            file.write_at(bytes, 0)?;
            file.sync_data()?;
            fs.sync_dir(&self.spill_path)
        };
        if let Err(e) = write() {
            // Nothing refers to the file; what cannot be removed now goes at the next start.
            let _ = fs.remove(&path);
            return Err(e);
        }
        Ok(SpilledRedo { name, bytes: bytes.len() as u64, crc: crc32c::crc32c(bytes) })
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
            self.discard_events(&refused.get().request);
            self.discard_redo(&refused.get().spilled);
            error
        })
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

    /// Blocks until the client of `seq` may be told, flushing itself if nobody does. For callers that cannot
    /// hold a reply back.
    pub fn wait_acknowledged(&self, seq: CommitSeq) -> Result<(), CommitError> {
        Ok(self.pipeline.wait_acknowledged(seq)?)
    }

    /// Has `wake` told when the client of `seq` may be told; false if it is already (then nothing is told).
    pub fn when_acknowledged(&self, seq: CommitSeq, wake: Arc<dyn Wake>) -> bool {
        self.pipeline.when_acknowledged(seq, wake)
    }

    /// The binlog's state after the last hardened group: position, and newest GTIDs. None with the binlog
    /// off.
    pub fn binlog_status(&self) -> Option<(BinlogPos, GtidState)> {
        let end = self.env().binlog.as_ref()?.end.lock().clone();
        Some((end.position, end.gtids))
    }

    /// The writer of the binlog's files, with the newest bytes: what replicas are served from. None with the
    /// binlog off.
    pub fn binlog_files(&self) -> Option<Arc<Materialiser>> {
        Some(Arc::clone(&self.env().binlog.as_ref()?.files))
    }

    /// The spill directory, for transaction caches that outgrow memory.
    pub fn spill_dir(&self) -> &Arc<SpillDir> {
        &self.spill
    }

    /// The binlog's files, after everything hardened so far has been written to them. None with the binlog
    /// off.
    pub fn with_binlog_files<R>(
        &self,
        work: impl FnOnce(&mut BinlogFiles) -> R,
    ) -> Option<Result<R, cohort_binlog::BinlogError>> {
        let binlog = self.env().binlog.as_ref()?;
        let position = binlog.end.lock().position;
        Some(binlog.files.catch_up(position).map(|()| binlog.files.with_files(work)))
    }

    /// FLUSH BINARY LOGS: ends the file, at once.
    pub fn rotate_binlog(&self) -> Result<(), CommitError> {
        self.append_to_stream(|stream, out, now_s| stream.rotate(out, now_s))
    }

    /// `gtid_strict_mode`: whether the number is above all of its domain so far. Others may take it until it
    /// is ordered, so it is asked again then.
    pub fn check_gtid_order(&self, gtid: Gtid) -> Result<(), CommitError> {
        check_order(self.env(), gtid)
    }

    /// `max_binlog_size`: takes effect with the next group.
    pub fn set_binlog_file_bytes_max(&self, bytes: u64) {
        if let Some(binlog) = &self.env().binlog {
            binlog.stream.lock().set_file_bytes_max(bytes);
        }
    }

    /// `binlog_checksum`: ends the file; the next one has these checksums.
    pub fn set_binlog_checksum(&self, checksum: Checksum) -> Result<(), CommitError> {
        self.append_to_stream(|stream, out, now_s| stream.set_checksum(checksum, out, now_s))
    }

    /// How many read binlog files now: replicas' dump threads.
    pub fn binlog_readers(&self) -> usize {
        self.env().binlog.as_ref().map_or(0, |binlog| binlog.files.with_files(|files| files.pins().count()))
    }

    /// Appends bytes that belong to no transaction to the binlog, hardened, between two groups.
    fn append_to_stream(
        &self,
        write: impl FnOnce(&mut Stream, &mut StreamOut, u32),
    ) -> Result<(), CommitError> {
        let env = self.env();
        let Some(binlog) = &env.binlog else { return Ok(()) };
        let room = self.reserve(ROTATION_BYTES)?;
        let hardened = self.pipeline.hold(|_| {
            let mut stream = binlog.stream.lock();
            let mut out = StreamOut::default();
            write(&mut stream, &mut out, env.now_s());
            append_binlog_record(&env.log, room, &out);
            self.harden_now()?;
            // With the order stage still held, so that no later group overtakes these bytes on their way to
            // the files.
            let mut batch = Batch::default();
            add_to_batch(&mut batch, &out);
            binlog.submit(&stream, batch);
            Ok::<(), Stopped>(())
        });
        Ok(hardened.and_then(|done| done)?)
    }

    /// Flushes the log outside of a group; a failure stops the server as it does there.
    pub(crate) fn harden_now(&self) -> Result<Lsn, Stopped> {
        self.env().log.flush().map_err(|e| {
            self.pipeline.stop();
            (self.env().on_stop)(&e);
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

    /// The server is about to stop: statements do not wait for replicas any more. Their transactions stay
    /// where they are, and nobody is told OK.
    pub fn leave_gates(&self) {
        self.pipeline.leave_gates();
    }

    /// Clean stop: no commit is taken any more, everything is flushed and closed. Sessions must be gone.
    pub fn close(&self) -> Result<(), CheckpointError> {
        self.is_closing.store(true, Ordering::SeqCst);
        self.checkpointer.stop();
        self.append_to_stream(|stream, out, now_s| stream.stop(out, now_s))
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
        self.env().log.close().map_err(CheckpointError::Log)
    }
}

/// Why a checkpoint did not complete; the log keeps everything, so it is tried again.
#[derive(Debug)]
pub enum CheckpointError {
    Engine(EngineError),
    Binlog(cohort_binlog::BinlogError),
    Log(LogError),
    /// Replicas have not got what would become durable here; later.
    Gated,
    /// The pipeline stopped.
    Stopped,
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckpointError::Engine(e) => write!(f, "{e}"),
            CheckpointError::Binlog(e) => write!(f, "{e}"),
            CheckpointError::Log(e) => write!(f, "{e}"),
            CheckpointError::Gated => f.write_str("replicas are waited for"),
            CheckpointError::Stopped => f.write_str("the commit pipeline has stopped"),
        }
    }
}

impl std::error::Error for CheckpointError {}

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

fn open_files(
    world: &World,
    settings: &BinlogSettings,
    synced_to: BinlogPos,
) -> Result<(BinlogFiles, cohort_binlog::Recovered), cohort_binlog::BinlogError> {
    let verify = if settings.is_verifying_all { VerifyScope::All } else { VerifyScope::Tail };
    BinlogFiles::open(world.fs.clone(), settings.name.clone(), OpenOptions { verify, synced_to })
}

/// Starts a new binlog file, as every start of a MariaDB server does; its head goes through the log like
/// everything else.
fn start_binlog(
    world: &World,
    settings: &BinlogSettings,
    options: &CoordinatorOptions,
    log: &cohort_log::Log,
    files: BinlogFiles,
    spill: &Arc<SpillDir>,
    recovered: &Recovered,
) -> Result<Binlog, RecoveryError> {
    let stream_options = StreamOptions {
        name: settings.name.clone(),
        file_bytes_max: settings.file_bytes_max,
        server_id: settings.server_id,
        server_version: settings.server_version.clone(),
        checksum: settings.checksum,
    };
    let now_s = (world.clock.wall_us() / 1_000_000) as u32;
    let mut out = StreamOut::default();
    let stream = Stream::open_new(
        stream_options,
        recovered.next_binlog_file,
        recovered.gtids.clone(),
        now_s,
        &mut out,
    );
    append_binlog_record(log, log.reserve(ROTATION_BYTES)?, &out);
    log.flush()?;
    let materialiser = match options.has_threads {
        true => Materialiser::start(files, spill.clone(), MaterialiserOptions::default()),
        false => Materialiser::stepped(files, spill.clone(), MaterialiserOptions::default()),
    };
    let mut batch = Batch::default();
    add_to_batch(&mut batch, &out);
    materialiser.submit(batch);
    let end = BinlogEnd { position: stream.position(), gtids: recovered.gtids.clone() };
    Ok(Binlog {
        stream: Mutex::new(stream),
        files: Arc::new(materialiser),
        rotation_room: Mutex::new(None),
        rotation_wanted: AtomicBool::new(false),
        pending: Mutex::new(None),
        end: Mutex::new(end),
    })
}
