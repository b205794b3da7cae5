//! The engine as the server uses it: the implementation of [`Engine`] and [`Participant`], and the purge
//! thread.
//!
//! # Concepts
//! - [`BtreeEngine`] is a handle. All handles share one [`Inner`], which holds the state: the data file, the
//!   buffer pool, the trees, the transaction records, the open views.
//! - A transaction ([`Engine::begin`]) is a [`BtreeTrx`]. Its writes are private until its prepare installs
//!   them as versions that no other transaction sees yet; a large transaction installs parts of them earlier
//!   (`trx.rs`, `install.rs`).
//! - [`Participant::commit_ordered`] commits: it stores the CommitSeq in the transaction's record, and then
//!   makes it the CommitSeq that new views pin. It runs in the order stage, and can neither fail nor wait for
//!   I/O.
//! - A view ([`View`]) is a pinned CommitSeq. Purge does not remove versions that an open view needs
//!   (`views.rs`).
//! - A checkpoint begins in the order stage and finishes outside of it (`checkpoint.rs`). Until it has
//!   finished, the log keeps the redo; [`Participant::replay`] applies it again after a crash.
//!
//! # The purge thread
//! It repeats [`BtreeEngine::purge`]. A round removes the writes of aborted transactions, and deleted entries
//! that no view needs. If a view is held open for long, the round also removes the versions between it and
//! newer views (`prune.rs`). At its end it spills undo beyond the memory limit. After a round with little
//! work the thread pauses, because each round locks every rollback segment in turn, which delays writers.
//! Simulations have no such thread and call [`BtreeEngine::purge`] themselves. Dropping the last handle waits
//! for the end of the thread, so that nothing is written to the files afterwards.
//!
//! # On failure
//! | failure of a round of purge | action |
//! |---|---|
//! | a page or undo cannot be read or written | log it, unless the round before failed in the same way, and retry; after a second if the round has done nothing |
//! | undo is damaged | end the process: purge does not know what the transaction wrote, so it could never pass it. The next start does not read undo |
//! | a panic in the thread | end the process: old versions would accumulate until memory is exhausted |

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use cohort_base::{AbortOnUnwind, CommitSeq, IndexId, Lsn, ParticipantId};
use cohort_engine::{
    BulkLoad, CheckpointTask, Engine, EngineError, EngineSetting, EngineSnapshot, EngineTrx, IndexStats,
    PageFormat, PageInMemory, Participant, PinnedFiles, PoolDumpRequest, PoolDumpStates, Redo, WaitSlotOf,
    with_full_key,
};
use cohort_vfs::{SharedClock, SharedFs};

use crate::bulk::Load;
use crate::changes::Changes;
use crate::checkpoint::Checkpoint;
use crate::inner::{Inner, PurgeError, Purged};
use crate::pins::BtreePin;
use crate::pool::Pool;
use crate::pool_dump::{self};
use crate::pool_dump_state::PoolDump;
use crate::redo;
use crate::spill::UndoFile;
use crate::store::Store;
use crate::sync::{AtomicI64, Mutex, Ordering};
use crate::tree::{Tree, TreeContext};
use crate::trx::{BtreeTrx, Installation};
use crate::version::Versions;
use crate::views::{View, Views};

/// Pause between two rounds of purge if there was nothing to do.
const PURGE_PAUSE: Duration = Duration::from_millis(10);
/// Pause if there was little to do. A round locks every rollback segment, which delays writers.
const PURGE_GATHER: Duration = Duration::from_millis(1);
/// Number of transactions in a round from which on purge does not pause.
const PURGE_ROUND_MIN: usize = 256;
/// Pause after a round of purge that failed.
const PURGE_RETRY: Duration = Duration::from_secs(1);
/// Maximum number of threads that replay in parallel.
const REPLAY_THREADS_MAX: usize = 8;
/// Redo between two checkpoints. Limits the redo that a start after a crash must replay.
const CHECKPOINT_BYTES: u64 = 256 << 20;

/// Options of the engine.
#[derive(Clone, Copy, Debug)]
pub struct BtreeOptions {
    /// `innodb_buffer_pool_size`
    pub pool_bytes: usize,
    /// `innodb_rollback_segments`
    pub rollback_segments: usize,
    /// Memory limit of undo. The rest is spilled to the undo file.
    pub undo_bytes: usize,
    /// Number of newer views after which a view counts as held open, so that the versions after it are
    /// pruned.
    pub young_views: usize,
    /// Starts a purge thread. Simulations call [`BtreeEngine::purge`] themselves.
    pub has_threads: bool,
    /// Returns the caller's wait slot for page reads, or `None` if the caller reads the page itself.
    pub wait_slot_of: WaitSlotOf,
}

impl Default for BtreeOptions {
    fn default() -> BtreeOptions {
        BtreeOptions {
            pool_bytes: 128 << 20,
            rollback_segments: 8,
            undo_bytes: 64 << 20,
            young_views: 256,
            has_threads: true,
            wait_slot_of: || None,
        }
    }
}

/// The B+tree engine.
#[derive(Clone)]
pub struct BtreeEngine {
    pub(crate) inner: Arc<Inner>,
    replay_threads: usize,
    _threads: Arc<Threads>,
}

/// Background threads. They end with the last handle of the engine, so that the files are not written
/// afterwards.
struct Threads {
    inner: Arc<Inner>,
    purge: Option<JoinHandle<()>>,
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.inner.close();
        if let Some(purge) = self.purge.take() {
            purge.thread().unpark();
            purge.join().expect("its panic ends the process");
        }
    }
}

impl BtreeEngine {
    /// Opens the last checkpoint in `dir`, or starts empty.
    pub fn open(
        id: ParticipantId,
        fs: &SharedFs,
        dir: &Path,
        options: BtreeOptions,
    ) -> Result<BtreeEngine, EngineError> {
        let store = Arc::new(Store::open(fs, dir)?);
        let undo_file = UndoFile::open(fs, dir)?;
        let views = Arc::new(Views::new(options.young_views));
        let versions = Versions::new(options.rollback_segments, options.undo_bytes, undo_file, views);
        let versions = Arc::new(versions);
        let pool = Arc::new(Pool::new(store.clone(), options.pool_bytes, options.wait_slot_of));
        let next_page = store.with_map(|map| map.next_page);
        let context = TreeContext::new(pool, Changes::new(versions.clone()), next_page);
        let inner = Arc::new(Inner::new(id, store, versions, context, PoolDump::new(fs.clone())));
        inner.store.with_map(|map| {
            let mut directory = BTreeMap::new();
            for (index, tree) in &map.trees {
                let values: HashSet<_> = tree.pages.values().flat_map(|place| place.values.clone()).collect();
                let tree = Tree {
                    index: *index,
                    root: tree.root,
                    entries: AtomicI64::new(tree.entries as i64),
                    pages: Mutex::new(tree.pages.keys().copied().collect()),
                    values: Mutex::new(values),
                };
                directory.insert(*index, Arc::new(tree));
            }
            *inner.directory.write() = Arc::new(directory);
        });
        let purge = options.has_threads.then(|| start_purge(&inner));
        let threads = Arc::new(Threads { inner: Arc::clone(&inner), purge });
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let replay_threads = if options.has_threads { processors.min(REPLAY_THREADS_MAX) } else { 1 };
        Ok(BtreeEngine { inner, replay_threads, _threads: threads })
    }

    /// Runs one round of purge and returns the number of transactions that it passed. Returns an error only
    /// if it passed none, because the round failed or undo could not be spilled.
    pub fn purge(&self) -> Result<usize, EngineError> {
        match self.inner.purge() {
            Ok(Purged { transactions: 0, spilled, .. }) => spilled.map(|()| 0),
            Ok(Purged { transactions, .. }) => Ok(transactions),
            Err(error) => error.into_cause().map_or(Ok(0), Err),
        }
    }
}

/// Starts the purge thread, which ends when the engine is closed.
fn start_purge(inner: &Arc<Inner>) -> JoinHandle<()> {
    let inner = Arc::clone(inner);
    let run = move || {
        // If this thread died silently, old versions would accumulate until memory is exhausted.
        let guard = AbortOnUnwind::during("purge");
        let mut logged = String::new();
        while !inner.is_closed() {
            let (done, trouble) = match inner.purge() {
                Ok(Purged { transactions, pruned, spilled }) => (transactions + pruned, spilled.err()),
                Err(PurgeError::Later(error)) => (0, Some(error)),
                Err(PurgeError::Closed) => break,
                Err(PurgeError::Damaged(error)) => {
                    log::error!("purge cannot go on and the server ends now: {error}");
                    std::process::abort();
                }
            };
            let trouble = trouble.map_or_else(String::new, |error| error.to_string());
            if !trouble.is_empty() && trouble != logged {
                log::error!("purge of old row versions failed and will be retried: {trouble}");
            }
            let pause = match done {
                0 if trouble.is_empty() => PURGE_PAUSE,
                0 => PURGE_RETRY,
                1..PURGE_ROUND_MIN => PURGE_GATHER,
                _ => Duration::ZERO,
            };
            if !pause.is_zero() {
                std::thread::park_timeout(pause);
            }
            logged = trouble;
        }
        guard.disarm();
    };
    std::thread::Builder::new().name("purge".to_owned()).spawn(run).expect("a thread at start")
}

impl Participant for BtreeEngine {
    fn id(&self) -> ParticipantId {
        self.inner.id
    }

    fn place(&self) -> String {
        format!("the InnoDB tables in '{}'", self.inner.store.path().display())
    }

    fn commit_ordered(&self, seq: CommitSeq, redo: &[&Redo]) {
        for redo in redo {
            match redo.installation() {
                Some(installation) => {
                    let installation = installation.as_any().downcast_ref::<Installation>();
                    installation.expect("prepared by this engine").record.commit(seq);
                }
                None => assert!(redo.file().is_some(), "only a file of several has no token (I6)"),
            }
            let of_file = redo.file().map_or(0, |file| file.bytes);
            self.inner.large_bytes.fetch_add(of_file, Ordering::Relaxed);
            self.inner.unflushed_bytes.fetch_add(redo.size_bytes(), Ordering::Relaxed);
        }
        self.inner.views.advance(seq);
    }

    fn begin_checkpoint(&self, lsn: Lsn) -> Result<Box<dyn CheckpointTask>, EngineError> {
        Ok(Box::new(Checkpoint::begin(&self.inner, lsn)))
    }

    fn durable_lsn(&self) -> Lsn {
        self.inner.store.with_map(|map| map.lsn)
    }

    fn unflushed_bytes(&self) -> u64 {
        self.inner.unflushed_bytes.load(Ordering::Relaxed)
    }

    /// A checkpoint writes every page that changed, so it is more efficient to accumulate changes.
    fn checkpoint_bytes(&self) -> Option<u64> {
        Some(CHECKPOINT_BYTES)
    }

    fn freeable_bytes(&self) -> u64 {
        self.inner.freeable_bytes.load(Ordering::Relaxed)
    }

    fn pin(&self, since: Option<u64>) -> Result<Box<dyn PinnedFiles>, EngineError> {
        let _alone = self.inner.publishing.lock();
        Ok(Box::new(BtreePin::new(Arc::clone(&self.inner), since)))
    }

    fn replay(&self, redo: &[Redo]) -> Result<(), EngineError> {
        let bytes: usize = redo.iter().map(|redo| redo.bytes.len()).sum();
        self.inner.replay(redo, self.replay_threads)?;
        self.inner.unflushed_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }
}

impl Engine for BtreeEngine {
    fn name(&self) -> &'static str {
        "InnoDB"
    }

    fn begin(&self) -> Box<dyn EngineTrx> {
        Box::new(BtreeTrx::new(self.inner.clone()))
    }

    fn snapshot(&self) -> Arc<dyn EngineSnapshot> {
        Arc::new(View::new(self.inner.views.pin()))
    }

    fn bulk_load(&self, index: IndexId) -> Result<Box<dyn BulkLoad>, EngineError> {
        Ok(Box::new(Load::new(self.inner.clone(), index)))
    }

    fn logs_loads(&self) -> bool {
        true
    }

    fn push_load(&self, index: IndexId, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
        with_full_key(index, key, |full| redo::push(full, Some(value), out));
    }

    fn drop_indexes(&self, indexes: &[IndexId]) -> Result<(), EngineError> {
        self.inner.store.compression.set_form(indexes, PageFormat::Plain);
        for index in indexes {
            let Some(tree) = self.inner.remove_tree(*index) else { continue };
            self.inner.dropped.lock().push(*index);
            self.inner.release(&tree);
        }
        Ok(())
    }

    fn set_page_format(&self, indexes: &[IndexId], form: PageFormat) {
        self.inner.store.compression.set_form(indexes, form);
    }

    fn indexes(&self) -> Result<Vec<IndexId>, EngineError> {
        Ok(self.inner.directory.read().keys().copied().collect())
    }

    fn stats(&self, index: IndexId) -> IndexStats {
        let Some(tree) = self.inner.tree(index) else { return IndexStats::default() };
        let entries = tree.entries.load(Ordering::Relaxed).max(0) as u64;
        let pages = tree.pages.lock().len() as u64;
        let bytes = pages * crate::page::PAGE_BYTES as u64;
        IndexStats { entries, bytes }
    }

    fn sample(&self, index: IndexId, count: usize) -> Result<Vec<Vec<u8>>, EngineError> {
        match self.inner.tree(index) {
            Some(tree) => tree.sample(&self.inner.context, count),
            None => Ok(Vec::new()),
        }
    }

    fn status(&self) -> Vec<(String, u64)> {
        let pool = &self.inner.context.pool;
        let (blocks, free) = self.inner.store.blocks();
        let (compression, transfers) = (&self.inner.store.compression, &self.inner.store.transfers);
        [
            ("Innodb_buffer_pool_pages_data", pool.pages() as u64),
            ("Innodb_buffer_pool_pages_dirty", self.inner.context.changes.listed_len() as u64),
            ("Innodb_buffer_pool_read_requests", pool.hits.load(Ordering::Relaxed)),
            ("Innodb_buffer_pool_reads", pool.reads.load(Ordering::Relaxed)),
            ("Innodb_buffer_pool_read_waits", pool.sleeps.load(Ordering::Relaxed)),
            ("Innodb_buffer_pool_read_ahead", pool.ahead.load(Ordering::Relaxed)),
            ("Innodb_buffer_pool_pages_evicted", pool.evictions.load(Ordering::Relaxed)),
            ("Innodb_buffer_pool_pages_evicted_dirty", pool.evictions_dirty.load(Ordering::Relaxed)),
            ("Innodb_buffer_pool_pages_lru_flushed", pool.evictions_dirty.load(Ordering::Relaxed)),
            ("Innodb_buffer_pool_pages_lru_freed", pool.evictions.load(Ordering::Relaxed)),
            ("Innodb_data_reads", transfers.reads.load(Ordering::Relaxed)),
            ("Innodb_data_read", transfers.read_bytes.load(Ordering::Relaxed)),
            ("Innodb_data_writes", transfers.writes.load(Ordering::Relaxed)),
            ("Innodb_data_written", transfers.written_bytes.load(Ordering::Relaxed)),
            ("Innodb_data_pending_reads", pool.pending_reads()),
            ("Innodb_pages_created", pool.created.load(Ordering::Relaxed)),
            ("Innodb_pages_read", transfers.reads.load(Ordering::Relaxed)),
            ("Innodb_pages_written", transfers.writes.load(Ordering::Relaxed)),
            ("Innodb_buffer_pool_pages_flushed", transfers.writes.load(Ordering::Relaxed)),
            ("Innodb_history_list_length", self.inner.versions.history_len() as u64),
            ("Innodb_rollback_segment_waits", self.inner.versions.segment_waits()),
            ("Innodb_data_file_blocks", blocks),
            ("Innodb_page_map_written", self.inner.store.map_bytes.load(Ordering::Relaxed)),
            ("Innodb_data_file_free_blocks", free),
            ("Innodb_data_file_pinned_bytes", self.inner.store.held_bytes()),
            ("Innodb_page_compression_saved", compression.saved_bytes.load(Ordering::Relaxed)),
            ("Innodb_num_pages_page_compressed", compression.compressed.load(Ordering::Relaxed)),
            ("Innodb_num_pages_page_decompressed", compression.expanded.load(Ordering::Relaxed)),
            ("Innodb_num_pages_page_compression_error", compression.failed.load(Ordering::Relaxed)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn report(&self) -> String {
        crate::report::report(&self.inner)
    }

    fn pages_in_memory(&self, look: &mut dyn FnMut(PageInMemory) -> ControlFlow<()>) {
        self.inner.context.pool.each_resident(look);
    }

    fn verify(
        &self,
        index: IndexId,
        goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Vec<String>, EngineError> {
        self.inner.verify(index, goes_on)
    }

    fn dump_or_load_pool(&self, request: PoolDumpRequest, clock: &SharedClock) {
        pool_dump::request(&self.inner, request, clock);
    }

    fn warmth(&self) -> Option<PoolDumpStates> {
        Some(self.inner.pool_dump.state())
    }

    fn configure(&self, setting: EngineSetting) {
        match setting {
            EngineSetting::PoolBytes(bytes) => self.inner.context.pool.resize(bytes),
            EngineSetting::RollbackSegments(segments) => self.inner.versions.use_segments(segments),
            EngineSetting::PageAlgorithm(algorithm) => self.inner.store.compression.set_algorithm(algorithm),
            EngineSetting::CompressionLevel(level) => self.inner.store.compression.set_level(level),
        }
    }
}
