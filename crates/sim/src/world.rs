//! The commit path on an in-memory disk: the reference engine and the B+tree engine, small segments and small
//! binlog files, no threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cohort_base::{DomainId, ParticipantId, ServerId};
use cohort_binlog::event::Checksum;
use cohort_binlog::{BinlogName, Sealed};
use cohort_commit::{
    ArchiveSettings, BinlogPart, BinlogSettings, Coordinator, CoordinatorOptions, GroupCommitOptions,
    GroupKind, GtidHints, LogLayout, RecoveryError, Unreleased,
};
use cohort_engine::{Engine, Participant, ReferenceEngine};
use cohort_engine_btree::{BtreeEngine, BtreeOptions};
use cohort_locks::{KillFlag, LockOwner, LockTable, WaitLimit, WritePermit};
use cohort_log::{LogOptions, Preallocation};
use cohort_vfs::{SeededRng, SharedFs, SimClock, World as Machine};

/// The disk of a world. It survives crashes; wrapped in faults it fails on command.
pub type Disk = SharedFs;

const DATADIR: &str = "/data";
const SEGMENT_BYTES: u64 = 32 << 10;
const BINLOG_FILE_BYTES: u64 = 4 << 10;

/// A small buffer pool. Purge runs only when called.
const RIGHT_OPTIONS: BtreeOptions = BtreeOptions {
    pool_bytes: 8 * 16384,
    rollback_segments: 2,
    undo_bytes: 4096,
    young_views: 2,
    has_threads: false,
    wait_slot_of: || None,
};

/// Settings that a start may get wrong.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Participant id of the second engine.
    pub right_engine: u8,
    /// Base name of the binlog; `None` means `skip-log-bin`.
    pub binlog: Option<&'static str>,
    /// The treatment of unreleased transactions: `init_rpl_role=SLAVE` truncates them.
    pub unreleased: Unreleased,
    /// One shared log, or one per engine.
    pub layout: LogLayout,
    /// The log is archived.
    pub is_archived: bool,
}

impl Setup {
    /// Returns the default setup with this layout.
    pub fn of(layout: LogLayout) -> Setup {
        Setup { layout, ..Setup::default() }
    }
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            right_engine: 2,
            binlog: Some("binlog"),
            unreleased: Unreleased::Keep,
            layout: LogLayout::Shared,
            is_archived: false,
        }
    }
}

/// A running server without SQL.
#[derive(Clone)]
pub struct World {
    pub coordinator: Arc<Coordinator>,
    /// The reference engine (left) and the B+tree engine (right).
    pub engines: [Arc<dyn Engine>; 2],
    pub locks: Arc<LockTable>,
    /// Set when the log has failed.
    pub is_stopped: Arc<AtomicBool>,
    /// A clock that advances only on request.
    pub clock: Arc<SimClock>,
}

impl World {
    /// Returns a write permit for a commit with these locks.
    pub fn permit(&self, locks: &mut LockOwner) -> WritePermit {
        let permit = self.locks.permit_write(locks, WaitLimit::NoWait, &KillFlag::default());
        permit.expect("nothing keeps commits out")
    }

    /// Opens the world and recovers what is on the disk.
    pub fn open(disk: &Disk) -> Result<World, RecoveryError> {
        World::open_as(disk, Setup::default())
    }

    /// Like [`World::open`], with a setup that may differ from the one the disk was written with.
    pub fn open_as(disk: &Disk, setup: Setup) -> Result<World, RecoveryError> {
        World::open_at(disk, Path::new(DATADIR), setup)
    }

    /// Like [`World::open_as`], in another data directory, such as a backup.
    pub fn open_at(disk: &Disk, datadir: &Path, setup: Setup) -> Result<World, RecoveryError> {
        disk.create_dir_all(datadir).map_err(|e| RecoveryError::Io(datadir.to_path_buf(), e))?;
        let left = ReferenceEngine::open(ParticipantId(1), disk.clone(), datadir.join("left"))?;
        let id = ParticipantId(setup.right_engine);
        let right = BtreeEngine::open(id, disk, &datadir.join("right"), RIGHT_OPTIONS)?;
        let engines: [Arc<dyn Engine>; 2] = [Arc::new(left), Arc::new(right)];
        let participants = engines.iter().map(|e| e.clone() as Arc<dyn Participant>).collect();
        let shared = engines.to_vec();
        let locks = LockTable::new(1, cohort_locks::this_thread);
        let is_stopped = Arc::new(AtomicBool::new(false));
        let clock = SimClock::new(1_700_000_000_000_000);
        let machine = Machine { fs: disk.clone(), clock: clock.clone(), rng: SeededRng::shared(1) };
        let options = options(setup, datadir, is_stopped.clone());
        let coordinator = Coordinator::open(machine, options, participants, shared, locks.clone())?;
        Ok(World { coordinator, engines, locks, is_stopped, clock })
    }

    /// Returns the paths of all binlog files, oldest first, once everything published is written to them.
    pub fn binlog_files(&self) -> Result<Vec<PathBuf>, String> {
        let found = self.coordinator.with_binlog_files(|files| {
            files.numbers().iter().map(|&number| files.name().path(number)).collect()
        });
        found.expect("the binlog is on").map_err(|e| e.to_string())
    }
}

fn options(setup: Setup, datadir: &Path, is_stopped: Arc<AtomicBool>) -> CoordinatorOptions {
    CoordinatorOptions {
        datadir: datadir.to_path_buf(),
        log: LogOptions {
            segment_bytes: SEGMENT_BYTES,
            segments_ahead: 1,
            preallocation: Preallocation::Inline,
            is_archived: setup.is_archived,
            ..LogOptions::default()
        },
        layout: setup.layout,
        binlog: setup.binlog.map(|base| BinlogSettings {
            name: BinlogName::new(datadir, base),
            file_bytes_max: BINLOG_FILE_BYTES,
            server_id: ServerId(1),
            server_version: "10.11.99-MariaDB-cohort-log".to_owned(),
            checksum: Checksum::Crc32,
            is_verifying_all: true,
        }),
        group_commit: GroupCommitOptions::default(),
        is_early_release: true,
        unreleased: setup.unreleased,
        checkpoint_bytes: u64::MAX,
        checkpoint_bytes_max: u64::MAX,
        free_bytes_min: 0,
        has_threads: false,
        archive: setup.is_archived.then(|| ArchiveSettings {
            to: "/archive".to_owned(),
            server_uuid: "sim".to_owned(),
            backlog_bytes_max: u64::MAX,
            timeout: Duration::ZERO,
        }),
        on_stop: Arc::new(move |_| is_stopped.store(true, Ordering::SeqCst)),
        failpoint: None,
    }
}

/// Builds a transaction's binlog part, with domain 0, server 1 and timestamp 1.
pub fn part(events: Sealed) -> BinlogPart {
    BinlogPart {
        xa: None,
        events,
        kind: GroupKind::Transaction,
        domain: DomainId(0),
        server: ServerId(1),
        seq_no: None,
        hints: GtidHints::default(),
        timestamp: 1,
    }
}
