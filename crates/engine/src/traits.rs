//! The contract between the server and a storage engine.
//!
//! # Life of a transaction
//!
//! ```text
//! begin -> get/scan/put/delete/savepoint... -> prepare -> (order stage) commit_ordered -> durable
//!                                          \-> dropped: rolled back, no other transaction saw its writes
//! ```
//!
//! A large transaction may flush its write set any number of times before it commits
//! ([`EngineTrx::install_part`]). Its memory and its commit time then do not grow with its size.
//!
//! | call | thread | may block | may fail | durable at return |
//! |---|---|---|---|---|
//! | [`EngineTrx`] methods | the session's worker | on disk reads | yes | nothing |
//! | [`EngineTrx::prepare`] | the session's worker, all locks of its writes held until it is ordered | yes | yes, the last chance (I6) | nothing; the redo goes into the commit record |
//! | [`Participant::commit_ordered`] | the holder of the order stage | no | no: it aborts the process instead | nothing (I3) |
//! | [`Participant::stage`] | the session's worker, after prepare | yes | yes | the staged files |
//! | [`StagedRedo::apply`] | the session's worker, holding the order stage, log durable | milliseconds | no: it aborts the process instead | possibly everything: the log is durable already (I3) |
//! | [`Engine::snapshot`] | the holder of the order stage | no | no | - |
//! | [`Participant::begin_checkpoint`] | the checkpointer, holding the order stage, log durable | microseconds | yes | nothing |
//! | [`CheckpointTask::finish`] | the checkpointer, holding nothing | yes | yes | all redo below the checkpoint's LSN |
//! | [`Participant::replay`] | recovery, before any session | yes | yes | nothing |

use std::fmt;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cohort_base::{CommitSeq, IndexId, Lsn, OverBudget, ParticipantId};
use cohort_vfs::SharedClock;

use crate::caller::SearchHint;
use crate::pool_dump::{PoolDumpRequest, PoolDumpStates};
use crate::read_view::{EngineSnapshot, ReadView};
use crate::redo::{Redo, RedoFiles};

/// Callback that receives one write at a time: index, key, and value or `None` for a deletion.
pub type EachWrite<'a> = dyn FnMut(IndexId, &[u8], Option<&[u8]>) -> ControlFlow<()> + 'a;

/// State that a read uses. A transaction's own writes are merged into both.
#[derive(Clone, Copy, Debug)]
pub enum ReadAt<'a> {
    /// A published state, for plain reads (I5).
    View(&'a ReadView),
    /// The newest ordered state. Locking reads and writes use it under the row's lock; searches for the rows
    /// to lock use it without a lock.
    Latest,
}

/// Parameters of [`EngineTrx::scan`].
#[derive(Clone, Copy, Debug)]
pub struct ScanRequest<'r> {
    pub at: ReadAt<'r>,
    pub index: IndexId,
    pub range: &'r KeyRange,
    /// The end of the range that the scan starts from.
    pub direction: Direction,
    /// Maximum number of entries to append.
    pub limit: usize,
}

impl<'r> ScanRequest<'r> {
    /// Requests the first `limit` entries of a range.
    pub fn forward(at: ReadAt<'r>, index: IndexId, range: &'r KeyRange, limit: usize) -> ScanRequest<'r> {
        ScanRequest { at, index, range, direction: Direction::Forward, limit }
    }
}

/// A range of keys, `start <= key < end`. `None` leaves that end open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    pub start: Option<Vec<u8>>,
    pub end: Option<Vec<u8>>,
}

/// Scan direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}

/// Keys and values that a scan found, in one allocation that is reused.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// For each entry, the end of its key and the end of its value in `bytes`.
    ends: Vec<(u32, u32)>,
    /// Key at which the last scan stopped, if the scan stopped without finding an entry.
    stop: Option<Box<[u8]>>,
}

impl Batch {
    /// Removes all entries and keeps the allocation.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.stop = None;
    }

    /// Resets the stop key. Engines call it at the start of each scan.
    pub fn begin(&mut self) {
        self.stop = None;
    }

    /// Records that the scan stopped at `key` after a long stretch without an entry, so that the caller can
    /// check for KILL. The rest of the range starts at `key` (Forward) or ends before it (Backward).
    pub fn stop_at(&mut self, key: &[u8]) {
        self.stop = Some(key.into());
    }

    /// Cuts `range` to its remaining part, after a scan of it that returned true.
    pub fn cut(&self, range: &mut KeyRange, direction: Direction) {
        let (key, is_found) = match &self.stop {
            Some(stop) => (stop.to_vec(), false),
            None => {
                let last = self.len().checked_sub(1).expect("a scan that may go on says from where");
                (self.get(last).0.to_vec(), true)
            }
        };
        match direction {
            Direction::Forward => {
                let mut start = key;
                if is_found {
                    start.push(0);
                }
                range.start = Some(start);
            }
            Direction::Backward => range.end = Some(key),
        }
    }

    /// Reserves memory for `entries` more entries with `bytes` bytes in total.
    pub fn reserve(&mut self, entries: usize, bytes: usize) {
        self.ends.reserve(entries);
        self.bytes.reserve(bytes);
    }

    /// Appends an entry. Scans are bounded, so a batch stays far below 4 GiB.
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len() as u32));
    }

    /// Appends an entry whose key is given in three pieces.
    #[inline]
    pub fn push_parts(&mut self, key: [&[u8]; 3], value: &[u8]) {
        let bytes = key[0].len() + key[1].len() + key[2].len() + value.len();
        self.bytes.reserve(bytes);
        key.into_iter().for_each(|part| self.bytes.extend_from_slice(part));
        let key_end = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len() as u32));
    }

    /// Appends an entry. The key is `prefix` followed by the first `suffix_len` bytes of `entry`; the value
    /// is the rest of `entry`.
    #[inline]
    pub fn push_joined(&mut self, prefix: &[u8], entry: &[u8], suffix_len: usize) {
        self.bytes.reserve(prefix.len() + entry.len());
        self.bytes.extend_from_slice(prefix);
        let key_end = (self.bytes.len() + suffix_len) as u32;
        self.bytes.extend_from_slice(entry);
        self.ends.push((key_end, self.bytes.len() as u32));
    }

    /// Returns the number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether the batch has no entries.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the total size of all keys and values.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the n-th key and value.
    #[inline]
    pub fn get(&self, n: usize) -> (&[u8], &[u8]) {
        let start = if n == 0 { 0 } else { self.ends[n - 1].1 as usize };
        let (key_end, end) = self.ends[n];
        (&self.bytes[start..key_end as usize], &self.bytes[key_end as usize..end as usize])
    }

    /// Returns the n-th value.
    #[inline]
    pub fn value(&self, n: usize) -> &[u8] {
        let (key_end, end) = self.ends[n];
        &self.bytes[key_end as usize..end as usize]
    }

    /// Returns the values of a range of entries.
    #[inline]
    pub fn values(&self, entries: Range<usize>) -> impl Iterator<Item = &[u8]> {
        self.ends[entries].iter().map(|(key_end, end)| &self.bytes[*key_end as usize..*end as usize])
    }

    /// Returns all entries in scan order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        (0..self.len()).map(|n| self.get(n))
    }
}

/// A multi-get request ([`EngineTrx::get_many`]).
pub struct MultiGet<'l> {
    /// Index to search.
    pub index: IndexId,
    pub keys: &'l [&'l [u8]],
    /// The multi-get stops once the batch holds this many bytes.
    pub bytes_max: usize,
    /// Receives the entries that exist.
    pub batch: &'l mut Batch,
    /// Receives, for each entry, the position of its key in `keys`.
    pub found: &'l mut Vec<u32>,
}

impl MultiGet<'_> {
    /// Looks up the keys one by one. `get` replaces the value and returns whether the key exists. Returns the
    /// number of keys that were looked up.
    pub fn one_by_one(
        &mut self,
        get: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> Result<bool, EngineError>,
    ) -> Result<usize, EngineError> {
        let mut value = Vec::new();
        for (n, key) in self.keys.iter().enumerate() {
            if get(key, &mut value)? {
                self.batch.push(key, &value);
                self.found.push(n as u32);
            }
            if self.batch.size_bytes() >= self.bytes_max {
                return Ok(n + 1);
            }
        }
        Ok(self.keys.len())
    }
}

/// A point to which a transaction can roll back its writes. It becomes invalid when a part of the transaction
/// is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint(pub usize);

/// Errors of an engine, classified by what the caller must do.
#[derive(Debug)]
pub enum EngineError {
    /// A file could not be read or written. The statement fails with this text. A retry may succeed once
    /// space is available again.
    Io(io::Error),
    /// A page, file or key does not decode. The statement fails and an administrator must investigate.
    Corrupt(String),
    /// The transaction exceeds the engine's limit. The client must make it smaller.
    TooLarge {
        /// The limit.
        bytes_max: u64,
    },
    /// The session or the server would exceed its memory limit. The statement fails.
    OverBudget(OverBudget),
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineError::Io(e) => write!(f, "engine I/O error: {e}"),
            EngineError::Corrupt(what) => write!(f, "engine data is corrupt: {what}"),
            EngineError::TooLarge { bytes_max } => write!(f, "the transaction exceeds {bytes_max} bytes"),
            EngineError::OverBudget(over) => over.fmt(f),
        }
    }
}

impl std::error::Error for EngineError {}

/// Estimated size of an index, for the planner and SHOW.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexStats {
    /// Estimated number of entries.
    pub entries: u64,
    /// Estimated bytes on disk and in memory.
    pub bytes: u64,
}

/// A component whose redo is stored in commit records: each storage engine, and the catalog. The commit
/// coordinator knows participants only through this trait.
pub trait Participant: Send + Sync {
    /// Returns the number that identifies the participant in commit records.
    fn id(&self) -> ParticipantId;

    /// Returns a description of the participant and the location of its files, for errors at startup.
    fn place(&self) -> String {
        format!("participant {}", self.id())
    }

    /// Makes prepared transactions visible to `Latest` reads, in the given order, as one step. `seq` is the
    /// position of the last one. The caller holds the order stage (I1). The call must not fail (I6): an
    /// engine that cannot continue aborts the process.
    fn commit_ordered(&self, seq: CommitSeq, redo: &[&Redo]);

    /// Prepares redo that is too large for the order stage, so that it can be applied in one step. Returns
    /// `None` if the redo is applied like any other.
    fn stage(&self, redo: &Redo) -> Result<Option<Box<dyn StagedRedo>>, EngineError> {
        let _ = redo;
        Ok(None)
    }

    /// Starts to make everything that is applied so far durable. The caller holds the order stage. The log is
    /// durable up to `lsn` and contains nothing beyond, so whatever the engine writes now is durable in the
    /// log (I3). Must be quick: the work is done in [`CheckpointTask::finish`].
    fn begin_checkpoint(&self, lsn: Lsn) -> Result<Box<dyn CheckpointTask>, EngineError>;

    /// Returns the LSN of the last durable checkpoint. Replay starts there or earlier.
    fn durable_lsn(&self) -> Lsn;

    /// Returns the bytes of redo that are applied and not durable yet. The checkpointer starts a checkpoint
    /// when this grows too large.
    fn unflushed_bytes(&self) -> u64;

    /// Returns the limit for [`Participant::unflushed_bytes`] that triggers a checkpoint, or `None` to use
    /// the server's settings.
    fn checkpoint_bytes(&self) -> Option<u64> {
        None
    }

    /// Returns the bytes of unused disk space that the next checkpoint frees.
    fn freeable_bytes(&self) -> u64 {
        0
    }

    /// Pins the files of the newest checkpoint for a backup. No checkpoint runs meanwhile. With `since`, the
    /// mark of an earlier pin whose copy is complete, the files may be partial: without what that copy has.
    fn pin(&self, _since: Option<u64>) -> Result<Box<dyn PinnedFiles>, EngineError> {
        let what = format!("{} has no backup", self.place());
        Err(EngineError::Io(io::Error::new(io::ErrorKind::Unsupported, what)))
    }

    /// Applies redo again, in the given order. Recovery calls it in log order, starting at `durable_lsn()` or
    /// earlier, from one thread at a time.
    fn replay(&self, redo: &[Redo]) -> Result<(), EngineError>;
}

/// Files of a participant that do not change while the value exists (`pinned.rs`).
pub trait PinnedFiles: Send {
    /// Returns what to copy first. Called once.
    fn files(&mut self) -> Vec<PinnedFile> {
        Vec::new()
    }

    /// Returns the mark of the pinned state, if later copies can continue this one.
    fn mark(&self) -> Option<u64> {
        None
    }

    /// Returns the partial file and its length, if there is one. The length is known after `rest`.
    fn partial(&self) -> Option<(PathBuf, u64)> {
        None
    }

    /// Notes the end of the copy. Must be quick: the order stage is held.
    fn cut(&mut self) {}

    /// Returns what else to copy. Called once, after `cut`, and before the next checkpoint may begin.
    fn rest(&mut self) -> Result<Vec<PinnedFile>, EngineError>;
}

/// Bytes of one file. A file may come in several values, which have no byte in common.
pub struct PinnedFile {
    /// Absolute path in the data directory, under which the copy needs it.
    pub path: PathBuf,
    pub bytes: PinnedBytes,
}

/// Function that reads a file at an offset. Returns fewer bytes than asked for only at the end of the file.
pub type ReadPinned = Box<dyn Fn(&mut [u8], u64) -> io::Result<usize> + Send>;

/// Source of a file's bytes.
pub enum PinnedBytes {
    /// Bytes in memory, for this offset. The file exists also if there are none.
    Memory { offset: u64, bytes: Vec<u8> },
    /// Ranges of the file, ascending and apart.
    Ranges {
        read: ReadPinned,
        ranges: Box<dyn Iterator<Item = Range<u64>> + Send>,
        /// Approximate sum of their lengths.
        total: u64,
    },
}

impl PinnedBytes {
    /// Returns the approximate number of bytes.
    pub fn total(&self) -> u64 {
        match self {
            PinnedBytes::Memory { bytes, .. } => bytes.len() as u64,
            PinnedBytes::Ranges { total, .. } => *total,
        }
    }
}

/// Staged redo, ready to be ingested in one step. Dropping it without [`StagedRedo::apply`] discards it.
pub trait StagedRedo: Send {
    /// Does the work of [`Participant::commit_ordered`] in time that does not depend on the size of the redo.
    /// The caller holds the order stage, and the log is durable up to the last ordered transaction, which
    /// includes this one. It must not fail (I6).
    fn apply(self: Box<Self>);
}

/// A storage engine, shared by all sessions.
pub trait Engine: Participant {
    /// Returns the engine's name in `ENGINE=`, in MariaDB's spelling.
    fn name(&self) -> &'static str;

    /// Starts a transaction. Costs nothing until its first write.
    fn begin(&self) -> Box<dyn EngineTrx>;

    /// Returns the current state, which is the state after the last ordered transaction. The caller holds the
    /// order stage.
    fn snapshot(&self) -> Arc<dyn EngineSnapshot>;

    /// Loads an index that no other session can see yet (a new index, a copied table), outside of any
    /// transaction. An index can be loaded several times; later keys may lie between earlier ones.
    fn bulk_load(&self, index: IndexId) -> Result<Box<dyn BulkLoad>, EngineError>;

    /// Returns whether the redo of bulk loads can be written ([`Engine::push_load`]).
    fn logs_loads(&self) -> bool {
        false
    }

    /// Appends redo that puts an entry into an index, in the engine's own format.
    fn push_load(&self, index: IndexId, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let _ = (index, key, value, out);
        unreachable!("the engine does not log bulk loads");
    }

    /// Frees indexes that no catalog entry refers to any more. A read view may still cover them, but no
    /// statement reads them.
    fn drop_indexes(&self, indexes: &[IndexId]) -> Result<(), EngineError>;

    /// Sets the page format for future writes of these indexes. Pages on disk are readable in any format. The
    /// server calls this after each start, and for each new index before loading it. Engines that choose
    /// their own file format ignore it.
    fn set_page_format(&self, indexes: &[IndexId], form: PageFormat) {
        let _ = (indexes, form);
    }

    /// Returns all indexes that have entries. At startup the server drops those that the catalog does not
    /// know.
    fn indexes(&self) -> Result<Vec<IndexId>, EngineError>;

    /// Returns the estimated size of an index.
    fn stats(&self, index: IndexId) -> IndexStats;

    /// Returns up to `count` ascending keys that divide the index into parts of similar size. They need not
    /// be keys that exist. Returns no keys if the engine has no estimate.
    fn sample(&self, index: IndexId, count: usize) -> Result<Vec<Vec<u8>>, EngineError> {
        let _ = (index, count);
        Ok(Vec::new())
    }

    /// Returns name and value pairs for SHOW STATUS.
    fn status(&self) -> Vec<(String, u64)>;

    /// Returns the text for SHOW ENGINE STATUS.
    fn report(&self) -> String {
        String::new()
    }

    /// Passes each page in memory to `look`, in no order, until `look` breaks. A page that is loaded or
    /// evicted meanwhile may be passed twice or not at all. Engines without a buffer pool of their own pass
    /// none.
    fn pages_in_memory(&self, look: &mut dyn FnMut(PageInMemory) -> ControlFlow<()>) {
        let _ = look;
    }

    /// Reads the whole index for CHECK TABLE and returns its defects, in any order. Calls `goes_on` from time
    /// to time with the part that is done, in thousandths, and stops early if it returns false.
    fn verify(
        &self,
        index: IndexId,
        goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Vec<String>, EngineError> {
        let _ = (index, goes_on);
        Ok(Vec::new())
    }

    /// Dumps or loads the set of pages in memory. A dump is complete at return; a load continues in a thread.
    /// [`Engine::warmth`] reports the progress of both. Engines without a buffer pool of their own do
    /// nothing.
    fn dump_or_load_pool(&self, request: PoolDumpRequest, clock: &SharedClock) {
        let _ = (request, clock);
    }

    /// Returns the progress of dump and load, or `None` if the engine supports neither.
    fn warmth(&self) -> Option<PoolDumpStates> {
        None
    }

    /// Applies a new value of a setting. Engines ignore the settings of other engines.
    fn configure(&self, setting: EngineSetting) {
        let _ = setting;
    }
}

/// A page of a buffer pool, for information_schema and diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageInMemory {
    pub number: u64,
    /// The newest image on disk is older than the page.
    pub is_changed: bool,
    /// The page was used since the clock hand last passed.
    pub is_used: bool,
    /// A thread has pinned the page.
    pub is_held: bool,
    /// `None` if another thread held the page's latch exclusively at that moment.
    pub contents: Option<PageContents>,
}

/// Contents of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageContents {
    pub index: IndexId,
    pub entries: u64,
    /// Bytes of the entries, their keys and the header.
    pub bytes: u64,
}

/// On-disk page format of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageFormat {
    /// Uncompressed.
    #[default]
    Plain,
    /// `ROW_FORMAT=COMPRESSED`: zlib at the server's level.
    CompressedRows,
    /// `PAGE_COMPRESSED=1`: the server's algorithm.
    CompressedPages {
        /// `PAGE_COMPRESSION_LEVEL`, 1 to 9. `None` selects the server's level.
        level: Option<u8>,
    },
}

/// Supported values of `innodb_compression_algorithm`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageAlgorithm {
    /// Pages are written uncompressed.
    None,
    #[default]
    Zlib,
}

/// Engine settings that can change while the server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineSetting {
    /// `innodb_buffer_pool_size`
    PoolBytes(usize),
    /// `innodb_rollback_segments`
    RollbackSegments(usize),
    /// `innodb_compression_algorithm`
    PageAlgorithm(PageAlgorithm),
    /// `innodb_compression_level`, 0 to 9.
    CompressionLevel(u8),
}

/// The part of a checkpoint that waits for the disk.
pub trait CheckpointTask: Send {
    /// Waits until everything below the checkpoint's LSN is durable.
    fn finish(self: Box<Self>) -> Result<(), EngineError>;

    /// Like [`CheckpointTask::finish`], but throttled. A long task calls `rest` between two steps with the
    /// duration of the last step and continues when `rest` returns.
    fn finish_throttled(self: Box<Self>, rest: &mut dyn FnMut(Duration)) -> Result<(), EngineError> {
        let _ = rest;
        self.finish()
    }
}

/// A load of entries in ascending key order into an index that is not visible yet. The entries are durable
/// after `finish`. Dropping the load without it discards them.
pub trait BulkLoad: Send {
    /// Adds an entry. Keys must ascend strictly.
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), EngineError>;
    /// Makes all entries visible and durable.
    fn finish(self: Box<Self>) -> Result<(), EngineError>;
}

/// One transaction in one engine. Its writes are private until `commit_ordered`.
pub trait EngineTrx: Send {
    /// Reads one key into `value`, which is cleared first. Returns false if the key does not exist.
    fn get(
        &self,
        at: ReadAt<'_>,
        index: IndexId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<bool, EngineError>;

    /// Like [`EngineTrx::get`], with a search hint for a reader whose keys lie near each other.
    fn get_with_hint(
        &self,
        at: ReadAt<'_>,
        index: IndexId,
        key: &[u8],
        value: &mut Vec<u8>,
        hint: &mut SearchHint,
    ) -> Result<bool, EngineError> {
        let _ = hint;
        self.get(at, index, key, value)
    }

    /// Looks up several keys, preferably near each other. Returns how many were looked up, which is at least
    /// one unless there are none.
    fn get_many(
        &self,
        at: ReadAt<'_>,
        looks: &mut MultiGet<'_>,
        hint: &mut SearchHint,
    ) -> Result<usize, EngineError> {
        let index = looks.index;
        looks.one_by_one(&mut |key, value| self.get_with_hint(at, index, key, value, hint))
    }

    /// Appends up to `limit` entries of the range to `batch`, from its start (Forward) or its end (Backward).
    /// It appends fewer if the entries are long or far apart. Returns true if the range may hold more: the
    /// caller continues with the rest of it ([`Batch::cut`]). Work per call is bounded. Returning true with
    /// no new entries means that the scan skipped many invisible entries and stopped so that the caller can
    /// check for KILL. Two calls at `Latest` may see different states.
    fn scan(&self, request: &ScanRequest<'_>, batch: &mut Batch) -> Result<bool, EngineError>;

    /// Like [`EngineTrx::scan`], with a search hint for a reader whose ranges lie near each other.
    fn scan_with_hint(
        &self,
        request: &ScanRequest<'_>,
        batch: &mut Batch,
        hint: &mut SearchHint,
    ) -> Result<bool, EngineError> {
        let _ = hint;
        self.scan(request, batch)
    }

    /// Writes a key.
    fn put(&mut self, index: IndexId, key: &[u8], value: &[u8]) -> Result<(), EngineError>;

    /// Deletes a key, whether or not it exists.
    fn delete(&mut self, index: IndexId, key: &[u8]) -> Result<(), EngineError>;

    /// Returns a savepoint for [`EngineTrx::rollback_to`]. Statements take one before they write.
    fn savepoint(&mut self) -> Savepoint;

    /// Undoes all writes since the savepoint.
    fn rollback_to(&mut self, savepoint: Savepoint);

    /// Returns whether the transaction has written nothing.
    fn is_read_only(&self) -> bool;

    /// Returns the approximate memory that writes use until they are installed.
    fn memory_bytes(&self) -> usize;

    /// Passes the writes to `each`, ordered by index and key, until `each` breaks. Another transaction that
    /// repeats these writes has the same effect. Must not be called after a part was installed.
    fn each_write(&self, each: &mut EachWrite<'_>) -> ControlFlow<()>;

    /// Returns whether [`EngineTrx::install_part`] has an effect.
    fn installs_parts(&self) -> bool {
        false
    }

    /// Flushes the write set so far into the index and frees its memory. Only the transaction's own reads see
    /// these writes. Later writes of the same keys are allowed. The caller holds the locks of the keys and
    /// releases them after the transaction is dropped or ordered. Earlier savepoints become invalid: only
    /// dropping the transaction undoes installed writes. After an error the caller may only drop the
    /// transaction.
    fn install_part(&mut self, files: &dyn RedoFiles) -> Result<(), EngineError> {
        let _ = files;
        Ok(())
    }

    /// Completes the transaction's writes and returns its redo. Every error surfaces here (I6). No writes may
    /// follow. Must not be called after a part was installed.
    fn prepare(&mut self) -> Result<Redo, EngineError>;

    /// Like [`EngineTrx::prepare`], for any transaction. Large redo is returned in files, in several for very
    /// large redo. All elements belong together, in this order.
    fn prepare_into(&mut self, files: &dyn RedoFiles, redo: &mut Vec<Redo>) -> Result<(), EngineError> {
        let _ = files;
        redo.push(self.prepare()?);
        Ok(())
    }
}
