//! Opens all components below the executor in the data directory: catalog, engines, locks, and the commit
//! path with its recovery.

use std::fmt;
use std::path::Path;
#[cfg(not(feature = "rocksdb"))]
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cohort_backup_format::{MANIFEST, Manifest};
use cohort_base::{ParticipantId, ServerId};
use cohort_binlog::BinlogName;
use cohort_binlog::event::Checksum;
use cohort_catalog::{CATALOG, CatalogStore, CatalogVersions};
use cohort_commit::{
    Applied, ApplyStop, ArchiveSettings, ArchiveSyncOptions, BinlogSettings, Converted, Coordinator,
    CoordinatorOptions, FailpointHook, GroupCommitOptions, LogLayout, Overlap, Point, RecoveryError, Stage,
    Unreleased, convert, layout_on_disk, make_logs,
};
use cohort_config::{Globals, StatusSource, VERSION, VarId};
use cohort_engine::{Engine, EngineError, EngineSetting, PageAlgorithm, Participant};
use cohort_engine_btree::{BtreeEngine, BtreeOptions};
use cohort_locks::LockTable;
use cohort_log::LogOptions;
use cohort_replica::StateStore;
use cohort_vfs::World;

use crate::error_log::ErrorLog;
use crate::fiber::{sleeper, wait_slot};

/// Participant ids in commit records. They must never change, because they are on disk.
#[cfg(feature = "rocksdb")]
const ROCKSDB: ParticipantId = ParticipantId(1);
const INNODB: ParticipantId = ParticipantId(2);

/// Directory of RocksDB's files in the data directory.
const ROCKSDB_DIR: &str = "rocksdb";

/// Free space of the file system below which writes are refused.
const FREE_BYTES_MIN: u64 = 64 << 20;
/// Redo that triggers a checkpoint, for participants that are no storage engines: the catalog, positions of
/// appliers, prepared XA transactions.
const CHECKPOINT_BYTES: u64 = 16 << 20;

/// The data directory could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The catalog or an engine failed to open.
    Engine(&'static str, EngineError),
    /// The commit path failed to recover.
    Recovery(RecoveryError),
    /// File names in the settings conflict.
    Names(String),
    /// The directory contains tables of an engine that this server is built without.
    #[cfg(not(feature = "rocksdb"))]
    WithoutRocksdb(PathBuf),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Engine(what, error) => write!(f, "Can't open the {what}: {error}"),
            OpenError::Recovery(error) => write!(f, "Can't recover: {error}"),
            OpenError::Names(why) => f.write_str(why),
            #[cfg(not(feature = "rocksdb"))]
            OpenError::WithoutRocksdb(dir) => write!(
                f,
                "'{}' holds RocksDB's tables and this server is built without RocksDB: start one that is built with it \
                 (./x build --rocksdb); ALTER TABLE ... ENGINE=InnoDB converts tables there",
                dir.display()
            ),
        }
    }
}

impl std::error::Error for OpenError {}

/// The opened components.
pub struct Storage {
    pub commit: Arc<Coordinator>,
    pub engines: Vec<Arc<dyn Engine>>,
    pub locks: Arc<LockTable>,
    pub catalog: Arc<CatalogVersions>,
    /// Persistent state of the replica side.
    pub replica: Arc<StateStore>,
}

/// Options of the command line that are not variables.
#[derive(Clone, Debug, Default)]
pub struct StorageOptions {
    /// `--log-bin`: base name of the binary log; `None` is off.
    pub log_bin: Option<String>,
    /// `COHORT_FAILPOINT=before:flush:3`: aborts when the stage is reached for the third time. For crash
    /// tests.
    pub failpoint: Option<(Point, u64)>,
    /// Overrides `log_layout`.
    pub layout: Option<LogLayout>,
}

impl StorageOptions {
    /// Parses the value of `COHORT_FAILPOINT`.
    pub fn parse_failpoint(text: &str) -> Option<(Point, u64)> {
        let (point, count) = match text.rsplit_once(':') {
            Some((point, count)) if count.bytes().all(|b| b.is_ascii_digit()) => (point, count.parse().ok()?),
            _ => (text, 1),
        };
        Some((Point::parse(point)?, count))
    }
}

fn log_recovery(commit: &Coordinator, log: &ErrorLog) {
    let recovered = commit.recovered();
    if let Some((file, offset)) = &recovered.mended_copy {
        log.warning(format_args!(
            "{}: one of its two copies, at offset {offset}, was damaged, or torn by a crash; the other one is whole, and the damaged one was \
             rewritten from it. Nothing is lost; if the server had been stopped cleanly, the disk deserves a look",
            file.display()
        ));
    }
    if recovered.cut > 0 {
        let (cut, why) = (recovered.cut, "init_rpl_role=SLAVE");
        log.note(format_args!("{why}: {cut} transactions that no replica had acknowledged were cut"));
    }
    let former = recovered.binlog_base.as_str();
    let now = commit.binlog_file_name(1);
    let now = now.as_deref().and_then(|file| file.rsplit_once('.')).map_or("", |(base, _)| base);
    if !former.is_empty() && former != now {
        let now = if now.is_empty() { "off".to_owned() } else { format!("'{now}'") };
        log.warning(format_args!(
            "The binary log was '{former}' before this start and is {now} now: a replica that goes on with files of one \
             name does not get what was committed under another one"
        ));
    }
    if recovered.commits > 0 {
        log.note(format_args!(
            "Recovered {} transactions from {:.1} MiB of log in {:.3} s: {} changes replayed, {} found in place",
            recovered.commits,
            recovered.log_bytes as f64 / 1_048_576.0,
            recovered.ns as f64 / 1e9,
            recovered.replayed,
            recovered.skipped
        ));
    }
}

/// Opens or creates all components.
pub fn open(
    datadir: &Path,
    world: &World,
    globals: &Globals,
    options: &StorageOptions,
    log: &ErrorLog,
) -> Result<Storage, OpenError> {
    let catalog = CatalogStore::open(CATALOG, world.fs.clone(), datadir)
        .map_err(|e| OpenError::Engine("catalog", e))?;
    let catalog = Arc::new(catalog);
    let versions = catalog.versions();
    let mut engines = open_rocksdb(datadir, world, globals)?;
    engines.push(open_innodb(datadir, world, globals).map_err(|e| OpenError::Engine("InnoDB tables", e))?);
    let replica = StateStore::open(world.fs.clone(), datadir);
    let replica = Arc::new(replica.map_err(|e| OpenError::Engine("replica's state", e))?);
    // Check before the binary log is touched.
    let relay_logs: Vec<String> = replica.ordered(|state| state.relay_logs.values().cloned().collect());
    cohort_replica::check_relay_log(globals, datadir, options.log_bin.as_deref(), &relay_logs)
        .map_err(OpenError::Names)?;
    let mut participants: Vec<Arc<dyn Participant>> = vec![catalog, Arc::clone(&replica) as _];
    participants.extend(engines.iter().map(|engine| Arc::clone(engine) as Arc<dyn Participant>));
    let locks = LockTable::new(world.rng.next_u64(), sleeper);
    let commit_options = coordinator_options(datadir, globals, options, log);
    let commit =
        Coordinator::open(world.clone(), commit_options, participants, engines.clone(), Arc::clone(&locks))
            .map_err(OpenError::Recovery)?;
    commit.set_group_sync(globals.flag(VarId::BinlogGroupCommitSyncEngine));
    commit.set_group_overlap(overlap(globals));
    log_recovery(&commit, log);
    Ok(Storage { commit, engines, locks, catalog: versions, replica })
}

/// Opens the B+tree engine.
fn open_innodb(datadir: &Path, world: &World, globals: &Globals) -> Result<Arc<dyn Engine>, EngineError> {
    let options = BtreeOptions {
        pool_bytes: globals.uint(VarId::InnodbBufferPoolSize) as usize,
        rollback_segments: globals.uint(VarId::InnodbRollbackSegments) as usize,
        wait_slot_of: wait_slot,
        ..BtreeOptions::default()
    };
    let engine = BtreeEngine::open(INNODB, &world.fs, &datadir.join("innodb"), options)?;
    compression(globals).into_iter().for_each(|setting| engine.configure(setting));
    Ok(Arc::new(engine))
}

/// Returns the settings for compressed pages.
pub fn compression(globals: &Globals) -> [EngineSetting; 2] {
    let algorithm = match globals.uint(VarId::InnodbCompressionAlgorithm) {
        0 => PageAlgorithm::None,
        _ => PageAlgorithm::Zlib,
    };
    let level = globals.uint(VarId::InnodbCompressionLevel) as u8;
    [EngineSetting::PageAlgorithm(algorithm), EngineSetting::CompressionLevel(level)]
}

/// Opens RocksDB, which is the first engine if the server is built with it.
#[cfg(feature = "rocksdb")]
fn open_rocksdb(datadir: &Path, _: &World, globals: &Globals) -> Result<Vec<Arc<dyn Engine>>, OpenError> {
    let sizes = cohort_engine_rocks::RocksOptions {
        block_cache_bytes: globals.uint(VarId::RocksdbBlockCacheSize) as usize,
        background_jobs: globals.uint(VarId::RocksdbMaxBackgroundJobs) as i32,
        checkpoint_bytes: globals.uint(VarId::RocksdbWriteBufferSize),
    };
    let opened = cohort_engine_rocks::RocksEngine::open(ROCKSDB, &datadir.join(ROCKSDB_DIR), sizes);
    Ok(vec![Arc::new(opened.map_err(|e| OpenError::Engine("RocksDB tables", e))?)])
}

/// Refuses a directory that contains RocksDB tables, because this server would not see them.
#[cfg(not(feature = "rocksdb"))]
fn open_rocksdb(datadir: &Path, world: &World, _: &Globals) -> Result<Vec<Arc<dyn Engine>>, OpenError> {
    match world.fs.exists(&datadir.join(ROCKSDB_DIR)) {
        true => Err(OpenError::WithoutRocksdb(datadir.join(ROCKSDB_DIR))),
        false => Ok(Vec::new()),
    }
}

fn coordinator_options(
    datadir: &Path,
    globals: &Globals,
    options: &StorageOptions,
    log: &ErrorLog,
) -> CoordinatorOptions {
    let binlog = options.log_bin.as_deref().map(|name| BinlogSettings {
        name: BinlogName::new(datadir, name),
        file_bytes_max: globals.uint(VarId::MaxBinlogSize),
        server_id: ServerId(globals.uint(VarId::ServerId) as u32),
        server_version: format!("{VERSION}-log"),
        checksum: checksum(globals),
        is_verifying_all: false,
    });
    let on_stop = {
        let log = log.clone();
        move |error: &dyn std::fmt::Display| {
            log.error(format_args!(
                "The commit path failed. The server ends now, because it cannot acknowledge commits safely: {error}"
            ));
            std::process::abort();
        }
    };
    CoordinatorOptions {
        datadir: datadir.to_owned(),
        log: log_options(globals),
        layout: options.layout.unwrap_or_else(|| layout(globals)),
        binlog,
        group_commit: group_commit_options(globals),
        is_early_release: globals.flag(VarId::EarlyLockRelease),
        unreleased: match globals.uint(VarId::InitRplRole) {
            0 => Unreleased::Keep,
            _ => Unreleased::Cut,
        },
        checkpoint_bytes: CHECKPOINT_BYTES,
        checkpoint_bytes_max: globals.uint(VarId::CheckpointBytesMax),
        free_bytes_min: FREE_BYTES_MIN,
        has_threads: true,
        archive: archive(globals),
        on_stop: Arc::new(on_stop),
        failpoint: options.failpoint.map(|(point, count)| abort_at(point, count)),
    }
}

/// Returns the settings of the archive of the log, if there is one.
fn archive(globals: &Globals) -> Option<ArchiveSettings> {
    let to = globals.text(VarId::ArchiveTo).filter(|to| !to.is_empty())?;
    Some(ArchiveSettings {
        to: to.to_string(),
        server_uuid: globals.text(VarId::ServerUid).map_or(String::new(), |uid| uid.to_string()),
        backlog_bytes_max: globals.uint(VarId::ArchiveBacklogMax),
        timeout: Duration::from_millis(globals.uint(VarId::ArchiveTimeout)),
    })
}

/// Returns `archive_sync` and `archive_sync_timeout`.
pub fn archive_sync(globals: &Globals) -> ArchiveSyncOptions {
    ArchiveSyncOptions {
        is_enabled: globals.flag(VarId::ArchiveSync),
        timeout: Duration::from_millis(globals.uint(VarId::ArchiveSyncTimeout)),
    }
}

/// Error of `archive_sync` without `archive_to`.
pub const SYNC_WITHOUT_ARCHIVE: &str =
    "archive_sync=ON needs archive_to, the repository that commits wait for";

fn log_options(globals: &Globals) -> LogOptions {
    LogOptions {
        segment_bytes: globals.uint(VarId::LogSegmentSize),
        buffered: globals.flag(VarId::InnodbLogFileBuffering),
        is_archived: archive(globals).is_some(),
        ..LogOptions::default()
    }
}

/// Returns the value of `binlog_group_commit_overlap`.
pub fn overlap(globals: &Globals) -> Overlap {
    match globals.uint(VarId::BinlogGroupCommitOverlap) {
        0 => Overlap::Off,
        1 => Overlap::On,
        _ => Overlap::Auto,
    }
}

/// Returns the value of `log_layout`.
pub fn layout(globals: &Globals) -> LogLayout {
    match globals.uint(VarId::LogLayout) {
        0 => LogLayout::Shared,
        _ => LogLayout::Separate,
    }
}

/// Creates the logs of a new data directory.
pub fn initialize(datadir: &Path, world: &World, globals: &Globals) -> Result<(), OpenError> {
    make_logs(world, datadir, &log_options(globals), layout(globals)).map_err(OpenError::Recovery)
}

/// `--convert-log-layout`: converts the data directory to the layout of the settings. Recovers the logs
/// first.
pub fn convert_layout(
    datadir: &Path,
    world: &World,
    globals: &Globals,
    options: &StorageOptions,
    log: &ErrorLog,
) -> Result<Converted, OpenError> {
    let logs = log_options(globals);
    let found = layout_on_disk(world, datadir, &logs).map_err(OpenError::Recovery)?;
    let Some(found) = found.filter(|found| *found != layout(globals)) else { return Ok(Converted::Nothing) };
    let options = StorageOptions { layout: Some(found), ..options.clone() };
    let Storage { commit, engines, .. } = open(datadir, world, globals, &options, log)?;
    let closed = commit.close();
    closed.map_err(|error| OpenError::Recovery(RecoveryError::Checkpoint(error)))?;
    let engines: Vec<_> = engines.iter().map(|engine| (engine.id(), engine.durable_lsn())).collect();
    drop(commit);
    convert(world, datadir, &logs, &engines, layout(globals)).map_err(OpenError::Recovery)
}

/// `--apply-archive`: appends the archive in `dir` to the log of a restored backup, recovers it, and stops
/// cleanly. Returns the report, in JSON.
pub fn apply_archive(
    datadir: &Path,
    dir: &Path,
    world: &World,
    globals: &Globals,
    (timeline, stop): (Option<u32>, ApplyStop),
    log: &ErrorLog,
) -> Result<String, String> {
    let path = datadir.join(MANIFEST);
    let manifest = std::fs::read(&path).map_err(|_| {
        format!("'{}' is not a restored backup: it has no file {MANIFEST}", datadir.display())
    })?;
    let manifest = Manifest::decode(&manifest, &path).map_err(|error| error.to_string())?;
    let applied = cohort_commit::apply_archive(world, datadir, dir, timeline, stop);
    let applied = applied.map_err(|error| error.to_string())?;
    let log_bin = applied.new_binlog.clone().unwrap_or(manifest.log_bin);
    let log_bin = Some(log_bin).filter(|name| !name.is_empty());
    let options = StorageOptions { log_bin, ..StorageOptions::default() };
    let Storage { commit, .. } = open(datadir, world, globals, &options, log).map_err(|e| e.to_string())?;
    let report = report(&commit, &applied, options.log_bin.as_deref().unwrap_or_default());
    commit.close().map_err(|error| error.to_string())?;
    Ok(report)
}

fn report(commit: &Coordinator, applied: &Applied, log_bin: &str) -> String {
    let Applied { lsn, time_us, bytes, transactions, is_reached, new_binlog: _ } = applied;
    let timeline = commit.timelines().last().map_or(0, |timeline| timeline.number);
    let gtids = commit.recovered().gtids.position_text();
    let log_bin = serde_json::Value::from(log_bin);
    format!(
        "{{\"timeline\":{timeline},\"lsn\":{lsn},\"gtid_binlog_pos\":\"{gtids}\",\"time\":{time_us},\"applied_bytes\":{bytes},\
         \"applied_transactions\":{transactions},\"is_stop_reached\":{is_reached},\"log_bin\":{log_bin}}}\n"
    )
}

/// Returns the group-commit policy that the variables define.
pub fn group_commit_options(globals: &Globals) -> GroupCommitOptions {
    GroupCommitOptions {
        is_adaptive: globals.flag(VarId::AdaptiveFlushGroups),
        wait_count: globals.uint(VarId::BinlogCommitWaitCount) as usize,
        wait_us: globals.uint(VarId::BinlogCommitWaitUsec),
    }
}

/// Returns the value of `binlog_checksum`.
pub fn checksum(globals: &Globals) -> Checksum {
    match globals.uint(VarId::BinlogChecksum) {
        0 => Checksum::None,
        _ => Checksum::Crc32,
    }
}

fn abort_at(point: Point, count: u64) -> FailpointHook {
    let reached = std::sync::atomic::AtomicU64::new(0);
    Arc::new(move |at: Point| {
        if at == point && reached.fetch_add(1, Ordering::SeqCst) + 1 == count {
            std::process::abort();
        }
    })
}

/// Counters of the commit path, the locks and the engines, for SHOW STATUS.
pub struct StorageStatus {
    pub commit: Arc<Coordinator>,
    pub engines: Vec<Arc<dyn Engine>>,
    pub locks: Arc<LockTable>,
}

impl StatusSource for StorageStatus {
    fn status(&self, out: &mut Vec<(String, String)>) {
        let mut put = |name: &str, value: u64| out.push((name.to_owned(), value.to_string()));
        self.commit.status().iter().for_each(|(name, value)| put(name, *value));
        let locks = self.locks.stats();
        put("Innodb_row_lock_waits", locks.row_waits);
        put("Innodb_row_lock_current_waits", locks.row_waits_current);
        put("Innodb_row_lock_time", locks.row_wait_us_total / 1000);
        put("Innodb_row_lock_time_max", locks.row_wait_us_max / 1000);
        put("Innodb_deadlocks", locks.deadlocks);
        for engine in &self.engines {
            for (name, value) in engine.status() {
                put(&name, value);
            }
        }
    }
}

// Crash tests use the names of the stages.
const _: fn(Stage) -> Point = Point::Before;
