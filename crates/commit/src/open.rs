//! The start: opens the log, recovers, opens the binlog, and makes the [`Coordinator`].

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use cohort_base::{BinlogPos, CommitSeq};
use cohort_binlog::event::Checksum;
use cohort_binlog::{BinlogFiles, OpenOptions, SEQ_NO_MAX, SpillDir, VerifyScope};
use cohort_engine::{Engine, Participant};
use cohort_locks::LockTable;
use cohort_vfs::World;
use parking_lot::{Mutex, RwLock};

use crate::archive::gate::ArchiveGate;
use crate::archive::names::prepare_spill;
use crate::archive::stats::ArchiveStats;
use crate::archive::times::GroupTimes;
use crate::binlog::Binlog;
use crate::checkpoint_state::Checkpointer;
use crate::coordinator::Coordinator;
use crate::env::{PublishedView, ServerEnv};
use crate::group_commit_timer;
use crate::metrics::Metrics;
use crate::open_logs::{FoundLogs, FoundSeparate, open_logs};
use crate::options::{BinlogSettings, CoordinatorOptions};
use crate::pipeline::Pipeline;
use crate::recovery::{self, Scene};
use crate::recovery_error::RecoveryError;
use crate::separate_recovery::{self, SeparateScene};
use crate::xa::XaBranches;

impl Coordinator {
    /// Recovers a data directory and opens it for commits. `participants` are all participants except the XA
    /// branches, which are added here; `engines` are the participants that read views cover. After an error
    /// nothing of value has changed.
    pub fn open(
        world: World,
        options: CoordinatorOptions,
        mut participants: Vec<Arc<dyn Participant>>,
        engines: Vec<Arc<dyn Engine>>,
        locks: Arc<LockTable>,
    ) -> Result<Arc<Coordinator>, RecoveryError> {
        let xa = Arc::new(XaBranches::open(world.fs.clone(), &options.datadir)?);
        participants.push(Arc::clone(&xa) as _);
        let spill_path = options.datadir.join("spill");
        let spill = SpillDir::open(world.fs.clone(), &spill_path)
            .map_err(|e| RecoveryError::Io(spill_path.clone(), e))?;
        let spill = Arc::new(spill);
        let began_ns = world.clock.monotonic_ns();
        let mut logs = open_logs(&world, &options, &engines)?;
        let mended_copy = logs.damaged_copy();
        let scene =
            Scene { fs: &world.fs, spill_dir: &spill_path, spill: &spill, participants: &participants };
        let open = |synced_to| {
            open_files(&world, options.binlog.as_ref().expect("asked with the binlog on"), synced_to)
        };
        let base = options.binlog.as_ref().map_or(String::new(), |b| b.name.base().to_owned());
        let remove_all = || {
            let settings = options.binlog.as_ref().expect("asked with the binlog on");
            BinlogFiles::remove_all_of(&world.fs, &settings.name)
        };
        let on_disk = recovery::BinlogOnDisk { open: &open, remove_all: &remove_all };
        let on_disk = options.binlog.is_some().then_some(on_disk);
        let mut is_first = false;
        let (mut recovered, files) = match &mut logs {
            FoundLogs::Shared(log) => recovery::recover(log, &scene, on_disk, &base, options.unreleased)?,
            FoundLogs::Separate(FoundSeparate { logs, checkpoint, .. }) => {
                check_settings(&options)?;
                let named = checkpoint.separate.as_ref().map_or(0, |named| named.from.len());
                // What was restored must be in a checkpoint before anything is added to the logs.
                is_first = named < engines.len() || checkpoint.restored.is_some();
                let of = SeparateScene {
                    scene: &scene,
                    checkpoint: checkpoint.clone(),
                    unreleased: options.unreleased,
                };
                separate_recovery::recover(logs, of, on_disk, &base)?
            }
        };
        recovered.mended_copy = mended_copy;
        recovered.ns = world.clock.monotonic_ns().saturating_sub(began_ns);
        let logs = logs.finish(recovered.last_seq, options.has_threads)?;
        let times = match &options.archive {
            Some(_) => {
                prepare_spill(logs.main(), &spill, &mut recovered.spilled);
                Some(GroupTimes::after(recovered.time_us))
            }
            None => None,
        };
        // Not earlier: the log may have named more spill files before it was cut.
        let named = recovered.spilled.iter().map(|(_, name)| name.as_str()).collect();
        spill.retain(&named).map_err(|e| RecoveryError::Io(spill_path.clone(), e))?;

        let binlog = match (&options.binlog, files) {
            (Some(settings), Some(files)) => {
                Some(Binlog::start(&world, settings, options.has_threads, &*logs, files, &spill, &recovered)?)
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
            logs,
            participants,
            engines,
            locks,
            binlog,
            gtids: Mutex::new(recovered.gtids.clone()),
            is_out_of_numbers: AtomicBool::new(recovered.gtids.seq_no_max() >= SEQ_NO_MAX),
            next_xid: AtomicU64::new(recovered.next_xid.0),
            is_early_release: AtomicBool::new(options.is_early_release),
            times,
            archive_gate: options.archive.is_some().then(ArchiveGate::default),
            replicated: AtomicU64::new(last_seq.0),
            applied: AtomicU64::new(0),
            metrics: Metrics::default(),
            gate: OnceLock::new(),
            spilled: Mutex::new(std::mem::take(&mut recovered.spilled)),
            on_stop: options.on_stop.clone(),
            failpoint: options.failpoint.clone(),
        };
        let coordinator = Arc::new(Coordinator {
            pipeline: Pipeline::new(env, last_seq, options.group_commit),
            spill,
            checkpointer: Checkpointer::default(),
            recovered,
            archive: ArchiveStats::default(),
            xa,
            is_closing: AtomicBool::new(false),
            checkpoint_bytes_max: AtomicU64::new(options.checkpoint_bytes_max),
            options,
        });
        coordinator.count_backups();
        if coordinator.options.archive.is_some() {
            // Until the archiver knows what the repository has.
            coordinator.checkpointer.keep_for_archive_after(CommitSeq(0));
        }
        let is_known =
            coordinator.recovered.binlog_base == base && !coordinator.recovered.is_binlog_restarted;
        if is_known && !is_first {
            coordinator.checkpointer.set_binlog_from(coordinator.recovered.binlog_synced.file);
        } else {
            // From now on a crash recovery must find the logs, and the binlog files under this name, so the
            // control file has to name them.
            let first = coordinator.checkpointer.try_checkpoint(&coordinator);
            first.map_err(RecoveryError::Checkpoint)?;
        }
        if coordinator.options.has_threads {
            Checkpointer::start(&coordinator);
            group_commit_timer::start(&coordinator);
        }
        Ok(coordinator)
    }
}

/// Refuses settings that the separate layout does not support.
fn check_settings(options: &CoordinatorOptions) -> Result<(), RecoveryError> {
    match &options.binlog {
        Some(binlog) if binlog.checksum == Checksum::None => Err(RecoveryError::Setting(
            "binlog_checksum=NONE is not supported with log_layout=separate: recovery finds the end of the binary log by \
             its checksums",
        )),
        _ => Ok(()),
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
