//! Checkpoints, and the background check of free space.
//!
//! ```text
//! checkpoint():
//!   hold the order stage, with everything ordered durable:
//!     if groups wait for replicas before they are published: wait a moment, or put the checkpoint off
//!     lsn = end of the log
//!     every participant seals what it has in memory (I3)
//!   every participant makes the sealed part durable
//!   sync the binlog files
//!   write the control file: recovery starts at lsn
//!   release log segments and spill files below lsn (I7)
//! ```
//! Only the hold delays commits: for one flush, some microseconds, and the wait for replicas.
//!
//! With semi-synchronous replication the hold waits until everything that is ordered is published (with
//! AFTER_SYNC: until a replica has it), because recovery cannot cut a transaction from the log once a
//! participant has made it durable (`recovery.rs`). After 50 ms the checkpoint is put off: it ends with
//! [`CheckpointError::Gated`], and a tick starts another one if one is still due or is requested again.
//!
//! # When
//! - A participant has more redo that is not durable in it than its limit (`checkpoint_bytes`, if it has none
//!   of its own).
//! - The log has reached half of its maximum size.
//! - A checkpoint was requested.
//! - Large transactions have left spill files, or a participant keeps much data only because the newest
//!   checkpoint refers to it (a dropped table). A new checkpoint frees both. Without this trigger they would
//!   use disk space until another trigger applies, which may take long on an idle server.
//!
//! # Space
//! Every tick checks the free space of the file system. During a long checkpoint the thread that runs it does
//! the check between the checkpoint's steps. `prepare` refuses writes, with the reason, in these cases:
//! - `free_bytes_min` is not 0, and less space is free than that, or than the largest amount of redo that one
//!   participant has only in memory;
//! - there is no space for the binlog files.
//!
//! Reads continue. A checkpoint that fails for lack of space is retried when [`RETRY`] has passed and there
//! is space for that redo; a requested one is not delayed. Any other failure ends the server (`fault.rs`).

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cohort_base::{AbortOnUnwind, BinlogPos, CommitSeq, Xid, throttle_pause};
use cohort_binlog::BinlogWriterStatus;
use cohort_engine::{CheckpointTask, Participant};

use crate::backup::error::BackupError;
use crate::binlog::NO_SPACE_FOR_BINLOG;
use crate::checkpoint_state::Checkpointer;
use crate::coordinator::Coordinator;
use crate::error::CheckpointError;
use crate::fault::Severity;
use crate::logs::Marks;
use crate::record::Checkpoint;

const TICK: Duration = Duration::from_millis(100);
/// Minimum time between a failed checkpoint and the next one that was not requested.
const RETRY: Duration = Duration::from_secs(5);
/// Maximum length of one pause of a throttled checkpoint.
const REST_MAX: Duration = Duration::from_millis(50);
/// Minimum time between two checkpoints that only free space.
const FREE_PAUSE: Duration = Duration::from_secs(1);
/// Maximum bytes of spilled events and of data of dropped tables that do not trigger a checkpoint. Spilled
/// redo always does, because it is always large.
const FREEABLE_BYTES_KEPT: u64 = 16 << 20;

impl Checkpointer {
    /// Starts the thread; it ends with the coordinator.
    pub fn start(coordinator: &Arc<Coordinator>) {
        let weak = Arc::downgrade(coordinator);
        let run = move || {
            // A panic must end the process: without the thread the log would fill up, and every write would
            // be refused.
            let guard = AbortOnUnwind::during("a checkpoint");
            loop {
                let Some(coordinator) = weak.upgrade() else { return guard.disarm() };
                let checkpointer = &coordinator.checkpointer;
                if checkpointer.is_stopped.load(Ordering::SeqCst) {
                    return guard.disarm();
                }
                checkpointer.tick(&coordinator);
                let mut requested = checkpointer.is_requested.lock();
                if !*requested {
                    checkpointer.wake.wait_for(&mut requested, TICK);
                }
            }
        };
        std::thread::Builder::new().name("checkpointer".to_owned()).spawn(run).expect("a thread at start");
    }

    /// Runs one round of the background work.
    pub fn tick(&self, coordinator: &Coordinator) {
        self.watch(coordinator);
        let now_us = coordinator.env().world.clock.wall_us();
        for sentence in coordinator.xa.forgotten(now_us) {
            log::warn!("{sentence}");
        }
        let is_requested = std::mem::take(&mut *self.is_requested.lock());
        let is_due = is_due(coordinator) || self.frees_much(coordinator);
        if !is_requested && (!is_due || self.is_too_early(coordinator)) {
            return;
        }
        match self.checkpoint(coordinator) {
            Ok(()) => *self.failed.lock() = None,
            Err(CheckpointError::Gated | CheckpointError::Stopped) => {}
            Err(error) => self.note_failure(coordinator, error.to_string()),
        }
    }

    /// Runs the checks of every tick.
    fn watch(&self, coordinator: &Coordinator) {
        coordinator.look_for_failures();
        self.watch_space(coordinator);
        self.fill_rotation_reserve(coordinator);
    }

    /// Returns whether a checkpoint would free much (anything, while writes are refused for lack of space)
    /// and is not too soon after the last one: each checkpoint holds the order stage for a moment.
    fn frees_much(&self, coordinator: &Coordinator) -> bool {
        let env = coordinator.env();
        let since_ns = env.world.clock.monotonic_ns().saturating_sub(self.ended_ns.load(Ordering::Relaxed));
        let events = env.binlog.as_ref().map_or(0, |binlog| binlog.files.spilled_bytes());
        let freeable: u64 = env.participants.iter().map(|participant| participant.freeable_bytes()).sum();
        let kept = if self.is_refusing.load(Ordering::Relaxed) { 0 } else { FREEABLE_BYTES_KEPT };
        let pinned = self.spill_kept();
        let has_spilled = env.spilled.lock().iter().any(|(seq, _)| *seq <= pinned);
        let is_much = events + freeable > kept || has_spilled;
        is_much && since_ns > FREE_PAUSE.as_nanos() as u64
    }

    /// Returns whether a checkpoint failed recently, or would fail for lack of space.
    fn is_too_early(&self, coordinator: &Coordinator) -> bool {
        let world = &coordinator.env().world;
        let retry_ns = RETRY.as_nanos() as u64;
        let is_fresh =
            |failed: &(u64, String)| world.clock.monotonic_ns().saturating_sub(failed.0) < retry_ns;
        self.failed.lock().as_ref().is_some_and(is_fresh)
            || world
                .fs
                .free_bytes(&coordinator.options.datadir)
                .is_ok_and(|free| free < unflushed(coordinator))
    }

    fn note_failure(&self, coordinator: &Coordinator, error: String) {
        coordinator.metrics().checkpoint_failures.fetch_add(1, Ordering::Relaxed);
        let mut failed = self.failed.lock();
        if failed.as_ref().is_none_or(|(_, before)| *before != error) {
            log::error!("checkpoint failed and will be retried: {error}");
        }
        *failed = Some((coordinator.env().world.clock.monotonic_ns(), error));
    }

    fn watch_space(&self, coordinator: &Coordinator) {
        let env = coordinator.env();
        let options = &coordinator.options;
        let needed = needed_bytes(coordinator);
        let free = env.world.fs.free_bytes(&options.datadir);
        let why = match (free, env.binlog.as_ref().map(|b| b.files.status())) {
            (Ok(free), _) if free < needed => Some(format!(
                "{} has {} MiB free, writes need {} MiB",
                options.datadir.display(),
                free >> 20,
                needed >> 20
            )),
            (_, Some(BinlogWriterStatus::NoSpace)) => Some(NO_SPACE_FOR_BINLOG.to_owned()),
            _ => None,
        };
        self.is_refusing.store(why.is_some(), Ordering::Relaxed);
        let mut refusal = self.refusal.lock();
        if why.is_some() != refusal.is_some() {
            match &why {
                Some(why) => log::error!("writes are rejected until disk space is available: {why}"),
                None => log::info!("disk space is available again; writes are accepted"),
            }
        }
        *refusal = why;
    }

    /// Refills the reservation for a binlog file change. Also called by every transaction that is prepared,
    /// because several files a second can be filled.
    pub fn fill_rotation_reserve(&self, coordinator: &Coordinator) {
        let env = coordinator.env();
        if let Some(binlog) = &env.binlog {
            env.logs.fill_rotation_reserve(&binlog.rotation_reserve);
        }
    }

    /// Makes everything so far durable outside of the log, and frees the log below. A failure other than lack
    /// of space ends the server.
    pub fn checkpoint(&self, coordinator: &Coordinator) -> Result<(), CheckpointError> {
        self.judged(coordinator, self.try_checkpoint(coordinator))
    }

    /// Runs a checkpoint, and then `pin` before the next one may begin.
    pub fn checkpoint_and<T>(
        &self,
        coordinator: &Coordinator,
        pin: impl FnOnce(&Checkpoint) -> Result<T, BackupError>,
    ) -> Result<T, BackupError> {
        let mut pinned = None;
        let done = self.try_checkpoint_and(coordinator, |checkpoint| pinned = Some(pin(checkpoint)));
        self.judged(coordinator, done).map_err(BackupError::Checkpoint)?;
        pinned.expect("called at the end of a checkpoint")
    }

    fn judged(
        &self,
        coordinator: &Coordinator,
        done: Result<(), CheckpointError>,
    ) -> Result<(), CheckpointError> {
        self.ended_ns.store(coordinator.env().world.clock.monotonic_ns(), Ordering::Relaxed);
        if let Err(error) = &done {
            coordinator.stop_if_severe(Severity::of_checkpoint(error), error);
        }
        done
    }

    /// Runs a checkpoint like [`Checkpointer::checkpoint`], for a server that is still starting: on failure
    /// the caller refuses to start.
    pub fn try_checkpoint(&self, coordinator: &Coordinator) -> Result<(), CheckpointError> {
        self.try_checkpoint_and(coordinator, |_| ())
    }

    fn try_checkpoint_and(
        &self,
        coordinator: &Coordinator,
        then: impl FnOnce(&Checkpoint),
    ) -> Result<(), CheckpointError> {
        let _running = self.one_at_a_time();
        let sealed = coordinator.pipeline.hold(|last| {
            if coordinator.env().is_gated() && !coordinator.is_replicated(last) {
                return Err(CheckpointError::Gated);
            }
            Sealed::now(coordinator, last)
        });
        let mut sealed = sealed.map_err(|_| CheckpointError::Stopped)??;
        let mut watched = Instant::now();
        let binlog_synced = sealed.make_durable_throttled(coordinator, &mut |worked| {
            if watched.elapsed() > TICK {
                self.watch(coordinator);
                watched = Instant::now();
            }
            if coordinator.options.has_threads && !self.is_awaited(coordinator) {
                std::thread::sleep(throttle_pause(worked, REST_MAX));
            }
        })?;
        then(&sealed.write(coordinator, binlog_synced, None)?);
        log_needed_from(coordinator, binlog_synced)
    }

    /// Returns whether the running checkpoint, or the next one, is waited for, and so must not be throttled.
    fn is_awaited(&self, coordinator: &Coordinator) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
            || self.is_stopped.load(Ordering::SeqCst)
            || self.is_refusing.load(Ordering::Relaxed)
            || coordinator.is_closing()
            || *self.is_requested.lock()
            || is_due(coordinator)
    }
}

/// A checkpoint of the state at one moment.
pub struct Sealed {
    marks: Marks,
    last_seq: CommitSeq,
    next_xid: Xid,
    binlog_end: BinlogPos,
    tasks: Vec<Box<dyn CheckpointTask>>,
}

impl Sealed {
    /// Seals the present state. The order stage is held, and `last_seq` is not cut off any more.
    pub fn now(coordinator: &Coordinator, last_seq: CommitSeq) -> Result<Sealed, CheckpointError> {
        let env = coordinator.env();
        let binlog_end =
            env.binlog.as_ref().map_or(BinlogPos::default(), |binlog| binlog.end.lock().position);
        // The log holds only durable records here: the last group was flushed, and BINLOG records are flushed
        // when they are appended.
        let marks = env.logs.marks();
        let tasks: Result<Vec<Box<dyn CheckpointTask>>, _> =
            env.participants.iter().map(|p| p.begin_checkpoint(marks.of(p.id()))).collect();
        let tasks = tasks.map_err(CheckpointError::Engine)?;
        let next_xid = Xid(env.next_xid.load(Ordering::Relaxed));
        Ok(Sealed { marks, last_seq, next_xid, binlog_end, tasks })
    }

    /// Makes the sealed state durable. Returns the position up to which the binlog's files are synced.
    pub fn make_durable(&mut self, coordinator: &Coordinator) -> Result<BinlogPos, CheckpointError> {
        self.make_durable_throttled(coordinator, &mut |_| ())
    }

    fn make_durable_throttled(
        &mut self,
        coordinator: &Coordinator,
        rest: &mut dyn FnMut(Duration),
    ) -> Result<BinlogPos, CheckpointError> {
        for task in self.tasks.drain(..) {
            task.finish_throttled(rest).map_err(CheckpointError::Engine)?;
        }
        let Some(binlog) = &coordinator.env().binlog else { return Ok(BinlogPos::default()) };
        let synced = binlog.files.sync().map_err(CheckpointError::Binlog)?;
        // Not beyond the hold: later bytes may still be cut off.
        Ok(synced.unwrap_or_default().min(self.binlog_end))
    }

    /// Makes recovery begin here, with the binlog's files synced up to `binlog_synced`. With `restart` the
    /// binlog is being reset: recovery removes its files.
    pub fn write(
        &self,
        coordinator: &Coordinator,
        binlog_synced: BinlogPos,
        restart: Option<NonZeroU32>,
    ) -> Result<Checkpoint, CheckpointError> {
        let env = coordinator.env();
        let checkpoint = Checkpoint {
            last_seq: self.last_seq,
            next_xid: self.next_xid,
            binlog_synced,
            binlog_base: coordinator.options.binlog.as_ref().map_or("", |b| b.name.base()).to_owned(),
            durable: env.participants.iter().map(|p| (p.id(), p.durable_lsn())).collect(),
            binlog_restart: restart,
            separate: env.logs.engine_logs(&self.marks),
            restored: None,
        };
        let main = env.logs.main();
        main.checkpoint(self.marks.main, &checkpoint.encode()).map_err(CheckpointError::Log)?;
        // The coordinator's log says where recovery starts. The checkpoints of the engines' logs only release
        // the part below.
        env.logs.release_engine_logs(&self.marks).map_err(CheckpointError::Log)?;
        coordinator.checkpointer.set_binlog_from(binlog_synced.file);
        coordinator.metrics().checkpoints.fetch_add(1, Ordering::Relaxed);
        remove_spilled(coordinator, self.last_seq);
        Ok(checkpoint)
    }
}

/// Where the binlog decides: logs in it the first of its files that recovery may read, if that has changed.
fn log_needed_from(coordinator: &Coordinator, synced: BinlogPos) -> Result<(), CheckpointError> {
    let binlog = coordinator.env().binlog.as_ref();
    let is_news = binlog.is_some_and(|binlog| binlog.stream.lock().is_news(synced.file));
    if !is_news || coordinator.is_closing() || synced.file == 0 {
        return Ok(());
    }
    let logged =
        coordinator.change_stream(|stream, out, now_s| stream.log_needed_from(synced.file, now_s, out));
    logged.map_err(|_| CheckpointError::Stopped)
}

/// Removes the spill files that neither a recovery nor a backup can need any more (I7).
fn remove_spilled(coordinator: &Coordinator, freed: CommitSeq) {
    let freed = freed.min(coordinator.checkpointer.spill_kept());
    let mut spilled = coordinator.env().spilled.lock();
    for (_, name) in spilled.extract_if(.., |(seq, _)| *seq <= freed) {
        // A file that cannot be removed now is removed at the next start.
        let _ = coordinator.spill.remove(&name);
    }
}

/// Returns the free space below which writes are refused.
pub(crate) fn needed_bytes(coordinator: &Coordinator) -> u64 {
    match coordinator.options.free_bytes_min {
        0 => 0,
        least => least.max(unflushed(coordinator)),
    }
}

/// Returns the largest number of bytes that a participant has only in memory.
fn unflushed(coordinator: &Coordinator) -> u64 {
    coordinator.env().participants.iter().map(|p| p.unflushed_bytes()).max().unwrap_or(0)
}

fn is_due(coordinator: &Coordinator) -> bool {
    let env = coordinator.env();
    let is_large = |participant: &Arc<dyn Participant>| {
        let wanted = participant.checkpoint_bytes().unwrap_or(coordinator.options.checkpoint_bytes);
        participant.unflushed_bytes() > wanted.min(coordinator.checkpoint_bytes_max.load(Ordering::Relaxed))
    };
    let log_bytes = env.logs.retained_bytes_max();
    env.participants.iter().any(is_large) || log_bytes > coordinator.options.log.bytes_max / 2
}
