//! The commit path over a disk in memory: two reference engines, small segments and small binlog files, no threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cohort_base::{ParticipantId, ServerId};
use cohort_binlog::BinlogName;
use cohort_binlog::event::Checksum;
use cohort_commit::{BinlogSettings, Coordinator, CoordinatorOptions, PaceOptions};
use cohort_engine::{Engine, Participant, ReferenceEngine};
use cohort_locks::LockTable;
use cohort_log::{LogOptions, Preallocation};
use cohort_vfs::{SharedFs, World as Machine};

/// What survives a crash, and what does not when it is wrapped in faults.
pub type Disk = SharedFs;

const DATADIR: &str = "/data";
const SEGMENT_BYTES: u64 = 32 << 10;
const BINLOG_FILE_BYTES: u64 = 4 << 10;

/// A running server without SQL.
pub struct World {
    pub coordinator: Arc<Coordinator>,
    pub engines: [Arc<ReferenceEngine>; 2],
    pub locks: Arc<LockTable>,
    /// Set when the log failed.
    pub is_stopped: Arc<AtomicBool>,
}

impl World {
    /// Recovers what is on the disk and opens it.
    pub fn open(disk: &Disk) -> Result<World, String> {
        disk.create_dir_all(Path::new(DATADIR)).map_err(|e| e.to_string())?;
        let engine = |id: u8, name: &str| {
            let dir = Path::new(DATADIR).join(name);
            ReferenceEngine::open(ParticipantId(id), disk.clone(), dir).map(Arc::new).map_err(|e| e.to_string())
        };
        let engines = [engine(1, "left")?, engine(2, "right")?];
        let participants = engines.iter().map(|e| e.clone() as Arc<dyn Participant>).collect();
        let shared = engines.iter().map(|e| e.clone() as Arc<dyn Engine>).collect();
        let locks = LockTable::new(1, None);
        let is_stopped = Arc::new(AtomicBool::new(false));
        let machine = Machine::sim(disk.clone(), 1);
        let coordinator =
            Coordinator::open(machine, options(is_stopped.clone()), participants, shared, locks.clone())
                .map_err(|e| e.to_string())?;
        Ok(World { coordinator, engines, locks, is_stopped })
    }

    /// Paths of all binlog files, oldest first, when everything published is in them.
    pub fn binlog_files(&self) -> Result<Vec<PathBuf>, String> {
        let found = self.coordinator.with_binlog_files(|files| {
            files.numbers().iter().map(|&number| files.name().path(number)).collect()
        });
        found.expect("the binlog is on").map_err(|e| e.to_string())
    }
}

fn options(is_stopped: Arc<AtomicBool>) -> CoordinatorOptions {
    CoordinatorOptions {
        datadir: PathBuf::from(DATADIR),
        log: LogOptions {
            segment_bytes: SEGMENT_BYTES,
            segments_ahead: 1,
            preallocation: Preallocation::Inline,
            ..LogOptions::default()
        },
        binlog: Some(BinlogSettings {
            name: BinlogName::new(Path::new(DATADIR), "binlog"),
            file_bytes_max: BINLOG_FILE_BYTES,
            server_id: ServerId(1),
            server_version: "10.11.99-MariaDB-cohort-log".to_owned(),
            checksum: Checksum::Crc32,
            is_verifying_all: true,
        }),
        pace: PaceOptions::default(),
        is_early_release: true,
        checkpoint_bytes: u64::MAX,
        free_bytes_min: 0,
        has_threads: false,
        on_stop: Arc::new(move |_| is_stopped.store(true, Ordering::SeqCst)),
        failpoint: None,
    }
}
