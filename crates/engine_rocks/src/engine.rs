//! The engine: applies redo to the memtable at the order stage and flushes memtables only at checkpoints.
//!
//! # Why only checkpoints flush (I3)
//! The memtable holds all ordered transactions, whether or not they are durable in the log. An SST file must
//! hold durable transactions only. RocksDB is therefore configured never to flush by itself (no size limit,
//! no write-ahead log to bound). [`Participant::begin_checkpoint`] runs with the order stage held and the log
//! durable, so everything in the memtable that it seals is durable. It asserts that no other flush happened
//! since the last checkpoint.
//!
//! # Start of recovery
//! Before a checkpoint seals the memtable, it writes its LSN to it under a reserved key. The LSN becomes
//! durable together with the data that it describes, so the two cannot disagree. Older redo is in SST files;
//! redo from the LSN on is replayed. Replay of puts and deletes in log order may start earlier without harm.
//!
//! # Key layout
//! `index id u32 big-endian | key`. Index 0 is reserved for the engine.
//!
//! # On failure
//! If a memtable write or the ingestion of staged files fails after the transaction was ordered, I6 would be
//! violated: the process aborts, and recovery repeats the write. A failed flush or compaction fails the
//! checkpoint: the log keeps all redo, and the next checkpoint flushes the sealed memtable, too
//! (`background`).
//!
//! # Missing
//! All indexes share one column family. There are no per-index settings for compression or compaction yet.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId};
use cohort_engine::{
    BulkLoad, CheckpointTask, Engine, EngineError, EngineSnapshot, EngineTrx, IndexStats, KeyRange,
    Participant, PinnedFiles, Redo, StagedRedo, full_range,
};
use parking_lot::Mutex;
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, FlushOptions, Options, ReadOptions, WriteBatch,
    WriteOptions,
};

use crate::background::BackgroundErrors;
use crate::closing;
use crate::error::{io_error, io_error_of_text};
use crate::load::{self, SstLoad};
use crate::pin::RocksPin;
use crate::redo;
use crate::snapshot::RocksSnapshot;
use crate::staged::Staged;
use crate::trx::RocksTrx;

/// Key of the LSN up to which the state that contains it includes all redo.
const DURABLE_LSN_KEY: &[u8] = b"\0\0\0\0durable_lsn";
/// Index ids below this are reserved; the catalog does not use them.
const FIRST_TABLE_INDEX: u32 = 16;
/// Number of entries up to which [`Engine::stats`] counts exactly.
const STATS_EXACT_ENTRIES: usize = 1000;

/// Options of the engine.
#[derive(Clone, Copy, Debug)]
pub struct RocksOptions {
    /// Size of the cache of uncompressed blocks. Memory is allocated as the cache fills.
    pub block_cache_bytes: usize,
    /// Number of threads for flush and compaction.
    pub background_jobs: i32,
    /// Bytes of changes in memory that trigger a checkpoint.
    pub checkpoint_bytes: u64,
}

impl Default for RocksOptions {
    fn default() -> RocksOptions {
        RocksOptions { block_cache_bytes: 512 << 20, background_jobs: 2, checkpoint_bytes: 16 << 20 }
    }
}

/// The RocksDB engine.
pub struct RocksEngine {
    id: ParticipantId,
    db: Arc<DB>,
    /// Leaked deliberately: SST writers borrow it, and an engine lives as long as its server.
    options: &'static Options,
    latest: Arc<ReadOptions>,
    unlogged: WriteOptions,
    load_dir: PathBuf,
    loads: AtomicU64,
    durable: Arc<Mutex<Lsn>>,
    checkpoint_bytes: u64,
    errors: Arc<BackgroundErrors>,
    /// A checkpoint has sealed a memtable whose flush it has not seen complete. Set when a checkpoint begins,
    /// cleared when it is durable.
    is_unfinished: Arc<AtomicBool>,
    /// The newest snapshot and its sequence number. A server that writes to other engines requests the same
    /// state repeatedly.
    newest: Mutex<Option<(u64, Arc<RocksSnapshot>)>>,
}

fn options(sizes: RocksOptions) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(sizes.block_cache_bytes));
    table.set_bloom_filter(10.0, false);
    table.set_block_size(16 << 10);
    table.set_cache_index_and_filter_blocks(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    table.set_format_version(5);
    let mut o = Options::default();
    o.create_if_missing(true);
    o.set_block_based_table_factory(&table);
    o.set_compression_type(DBCompressionType::Lz4);
    o.set_bottommost_compression_type(DBCompressionType::Zstd);
    o.set_level_compaction_dynamic_level_bytes(true);
    o.set_max_background_jobs(sizes.background_jobs);
    o.set_keep_log_file_num(4);
    o.set_stats_dump_period_sec(0);
    o.set_max_open_files(1024);
    // Never flush by size: only a checkpoint may flush (I3). Arena blocks stay small.
    o.set_write_buffer_size(1 << 40);
    o.set_arena_block_size(1 << 20);
    // Sealed memtables accumulate only while the disk is full. At this limit a flush request would wait while
    // the order stage is held.
    o.set_max_write_buffer_number(10_000);
    o.set_min_write_buffer_number_to_merge(1);
    // Never delay a write: the order stage must not wait (I6). Sessions are throttled earlier, at prepare.
    o.set_level_zero_slowdown_writes_trigger(1 << 20);
    o.set_level_zero_stop_writes_trigger(1 << 20);
    o.set_soft_pending_compaction_bytes_limit(0);
    o.set_hard_pending_compaction_bytes_limit(0);
    o
}

impl RocksEngine {
    /// Opens the database in `dir`, or creates it.
    pub fn open(id: ParticipantId, dir: &Path, sizes: RocksOptions) -> Result<RocksEngine, EngineError> {
        let load_dir = load::directory(dir);
        if load_dir.exists() {
            std::fs::remove_dir_all(&load_dir).map_err(EngineError::Io)?;
        }
        std::fs::create_dir_all(&load_dir).map_err(EngineError::Io)?;
        let options: &'static Options = Box::leak(Box::new(options(sizes)));
        let errors = Arc::new(BackgroundErrors::default());
        errors.listen(options);
        closing::never_flush(options);
        let db = Arc::new(DB::open(options, dir).map_err(io_error)?);
        let durable = match db.get(DURABLE_LSN_KEY).map_err(io_error)? {
            None => Lsn(0),
            Some(bytes) => {
                let bytes = bytes.try_into().map_err(|_| EngineError::Corrupt("durable LSN".to_owned()))?;
                Lsn(u64::from_le_bytes(bytes))
            }
        };
        let mut unlogged = WriteOptions::default();
        unlogged.disable_wal(true);
        Ok(RocksEngine {
            id,
            db,
            options,
            latest: Arc::new(ReadOptions::default()),
            unlogged,
            load_dir,
            loads: AtomicU64::new(0),
            durable: Arc::new(Mutex::new(durable)),
            checkpoint_bytes: sizes.checkpoint_bytes,
            errors,
            is_unfinished: Arc::new(AtomicBool::new(false)),
            newest: Mutex::new(None),
        })
    }

    fn property(&self, name: &str) -> u64 {
        property(&self.db, name)
    }

    /// Returns the name prefix of the next files that are written next to the database.
    fn next_load(&self) -> PathBuf {
        self.load_dir.join(format!("load{}", self.loads.fetch_add(1, Ordering::Relaxed)))
    }

    fn write(&self, batch: WriteBatch) -> Result<(), EngineError> {
        self.db.write_opt(batch, &self.unlogged).map_err(io_error)
    }
}

fn property(db: &DB, name: &str) -> u64 {
    db.property_int_value(name).ok().flatten().unwrap_or(0)
}

impl Participant for RocksEngine {
    fn id(&self) -> ParticipantId {
        self.id
    }

    fn place(&self) -> String {
        format!("the storage engine in '{}'", self.db.path().display())
    }

    fn checkpoint_bytes(&self) -> Option<u64> {
        Some(self.checkpoint_bytes)
    }

    fn commit_ordered(&self, _seq: CommitSeq, redo: &[&Redo]) {
        let applied = redo::join(redo).and_then(|batch| self.write(batch));
        if let Err(error) = applied {
            // I6: the transaction is ordered and cannot be rolled back. Recovery applies it again from the
            // log if it is durable there.
            log::error!("RocksDB refused an ordered transaction, stopping: {error}");
            std::process::abort();
        }
    }

    fn stage(&self, redo: &Redo) -> Result<Option<Box<dyn StagedRedo>>, EngineError> {
        let prefix = self.next_load();
        Ok(Some(Box::new(Staged::write(self.db.clone(), self.options, prefix, redo)?)))
    }

    fn begin_checkpoint(&self, lsn: Lsn) -> Result<Box<dyn CheckpointTask>, EngineError> {
        let sealed = self.property("rocksdb.num-immutable-mem-table");
        // The memtables that an earlier checkpoint sealed were durable in the log at that time.
        let is_ours = self.is_unfinished.swap(true, Ordering::Relaxed);
        assert!(
            sealed == 0 || is_ours,
            "RocksDB sealed a memtable by itself: it may write what is not durable (I3)"
        );
        self.errors.take_flush();
        let mut batch = WriteBatch::default();
        batch.put(DURABLE_LSN_KEY, lsn.0.to_le_bytes());
        self.write(batch)?;
        let mut flush = FlushOptions::default();
        flush.set_wait(false);
        self.db.flush_opt(&flush).map_err(io_error)?;
        Ok(Box::new(Flush {
            db: self.db.clone(),
            lsn,
            durable: self.durable.clone(),
            errors: self.errors.clone(),
            is_unfinished: self.is_unfinished.clone(),
        }))
    }

    fn durable_lsn(&self) -> Lsn {
        *self.durable.lock()
    }

    fn unflushed_bytes(&self) -> u64 {
        self.property("rocksdb.cur-size-all-mem-tables")
    }

    fn pin(&self, _since: Option<u64>) -> Result<Box<dyn PinnedFiles>, EngineError> {
        Ok(Box::new(RocksPin::new(self.db.clone(), self.next_load())))
    }

    fn replay(&self, redo: &[Redo]) -> Result<(), EngineError> {
        self.write(redo::join_sorted(redo)?)
    }
}

/// A sealed memtable that is being flushed.
struct Flush {
    db: Arc<DB>,
    lsn: Lsn,
    durable: Arc<Mutex<Lsn>>,
    errors: Arc<BackgroundErrors>,
    is_unfinished: Arc<AtomicBool>,
}

impl CheckpointTask for Flush {
    fn finish(self: Box<Self>) -> Result<(), EngineError> {
        // A blocking flush call would seal the next memtable, too. Poll instead until this one is flushed.
        while property(&self.db, "rocksdb.num-immutable-mem-table") > 0 {
            if let Some(text) = self.errors.take_flush() {
                return Err(EngineError::Io(io_error_of_text(text)));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        *self.durable.lock() = self.lsn;
        self.is_unfinished.store(false, Ordering::Relaxed);
        Ok(())
    }
}

impl Engine for RocksEngine {
    fn name(&self) -> &'static str {
        "ROCKSDB"
    }

    fn begin(&self) -> Box<dyn EngineTrx> {
        Box::new(RocksTrx::new(self.db.clone(), self.id, self.latest.clone()))
    }

    fn snapshot(&self) -> Arc<dyn EngineSnapshot> {
        let mut newest = self.newest.lock();
        // Every write and ingestion that a snapshot must not see gets a sequence number.
        let sequence = self.db.latest_sequence_number();
        match &*newest {
            Some((of, snapshot)) if *of == sequence => snapshot.clone(),
            _ => {
                let snapshot = Arc::new(RocksSnapshot::new(&self.db));
                *newest = Some((sequence, snapshot.clone()));
                snapshot
            }
        }
    }

    fn bulk_load(&self, index: IndexId) -> Result<Box<dyn BulkLoad>, EngineError> {
        Ok(Box::new(SstLoad::new(self.db.clone(), self.options, self.next_load(), index)))
    }

    fn drop_indexes(&self, indexes: &[IndexId]) -> Result<(), EngineError> {
        for index in indexes {
            let (start, end) = full_range(*index, &KeyRange::default());
            self.db.delete_file_in_range(&start, &end).map_err(io_error)?;
            // Not logged: after a crash the server finds that the catalog does not know the index, and drops
            // it again.
            let mut batch = WriteBatch::default();
            batch.delete_range(&start, &end);
            self.write(batch)?;
        }
        Ok(())
    }

    fn indexes(&self) -> Result<Vec<IndexId>, EngineError> {
        let mut found = Vec::new();
        let mut iterator = self.db.raw_iterator();
        iterator.seek(FIRST_TABLE_INDEX.to_be_bytes());
        while let Some(key) = iterator.key() {
            let id = key.first_chunk().map(|id| u32::from_be_bytes(*id));
            let id =
                id.ok_or_else(|| EngineError::Corrupt("a key is shorter than its index id".to_owned()))?;
            found.push(IndexId(id));
            iterator.seek((id + 1).to_be_bytes());
        }
        iterator.status().map_err(io_error)?;
        Ok(found)
    }

    fn stats(&self, index: IndexId) -> IndexStats {
        let (start, end) = full_range(index, &KeyRange::default());
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(end.clone());
        options.fill_cache(false);
        let mut iterator = self.db.raw_iterator_opt(options);
        iterator.seek(&start);
        let mut counted = IndexStats::default();
        while let Some((key, value)) = iterator.item()
            && counted.entries < STATS_EXACT_ENTRIES as u64
        {
            counted.entries += 1;
            counted.bytes += (key.len() + value.len()) as u64;
            iterator.next();
        }
        if !iterator.valid() {
            return counted;
        }
        // Estimate the rest: files report their size (compressed to about half), the memtable only its share
        // of all keys.
        let file_bytes = self.db.get_approximate_sizes(&[rocksdb::Range::new(&start, &end)])[0];
        let entry_bytes = (counted.bytes / counted.entries).max(1);
        let memtable_bytes = self.property("rocksdb.cur-size-active-mem-table") / 2;
        let bytes = (2 * file_bytes).max(memtable_bytes).max(counted.bytes);
        IndexStats { entries: (bytes / entry_bytes).max(counted.entries), bytes }
    }

    fn status(&self) -> Vec<(String, u64)> {
        let named = |name: &str, property: &str| (name.to_owned(), self.property(property));
        vec![
            named("Rocksdb_memtable_total", "rocksdb.cur-size-all-mem-tables"),
            named("Rocksdb_estimate_num_keys", "rocksdb.estimate-num-keys"),
            named("Rocksdb_block_cache_usage", "rocksdb.block-cache-usage"),
            named("Rocksdb_num_snapshots", "rocksdb.num-snapshots"),
            named("Rocksdb_compaction_pending", "rocksdb.compaction-pending"),
            named("Rocksdb_background_errors", "rocksdb.background-errors"),
        ]
    }
}
