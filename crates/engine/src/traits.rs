//! The contract between the server and a storage engine.
//!
//! # A transaction's way
//!
//! ```text
//! begin -> get/scan/put/delete/savepoint... -> prepare -> (order stage) commit_ordered -> hardened
//!                                          \-> dropped: rolled back, nothing was visible to anyone
//! ```
//!
//! A large transaction may install what it has written so far ([`EngineTrx::install_part`]), again and again,
//! so that neither its memory nor its commit grows with it.
//!
//! | call | thread | may block | may fail | durable at return |
//! |---|---|---|---|---|
//! | [`EngineTrx`] methods | the session's worker | on disk reads | yes | nothing |
//! | [`EngineTrx::prepare`] | the session's worker, all locks of its writes held until it is ordered | yes | yes, the last chance (I6) | nothing; the redo goes into the commit record |
//! | [`Participant::commit_ordered`] | the holder of the order stage | no | no: it aborts the process instead | nothing (I3) |
//! | [`Participant::stage`] | the session's worker, after prepare | yes | yes | what it wrote aside |
//! | [`StagedRedo::apply`] | the session's worker, holding the order stage, log hardened | milliseconds | no: it aborts the process instead | may be: it is hardened (I3) |
//! | [`Engine::snapshot`] | the holder of the order stage | no | no | - |
//! | [`Participant::begin_checkpoint`] | the checkpointer, holding the order stage, log hardened | microseconds | yes | nothing |
//! | [`CheckpointTask::finish`] | the checkpointer, holding nothing | yes | yes | all redo below the checkpoint's LSN |
//! | [`Participant::replay`] | recovery, before any session | yes | yes | nothing |

use std::fmt;
use std::io;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;

use cohort_base::{CommitSeq, IndexId, Lsn, OverBudget, ParticipantId};
use cohort_vfs::SharedClock;

use crate::near::Near;
use crate::read_view::{EngineSnapshot, ReadView};
use crate::redo::{Redo, RedoFiles};
use crate::warm::{WarmRequest, Warmth};

/// Is shown one write after the other: key space, key, value; no value: the key is deleted.
pub type EachWrite<'a> = dyn FnMut(IndexId, &[u8], Option<&[u8]>) -> ControlFlow<()> + 'a;

/// Which state a read looks at. A transaction's own writes are merged into both.
#[derive(Clone, Copy, Debug)]
pub enum ReadAt<'a> {
    /// A published state: plain reads (I5).
    View(&'a ReadView),
    /// The newest ordered state: locking reads and writes, under the row's lock, and unlocked searches for
    /// the rows to lock.
    Latest,
}

/// A range of keys: `start <= key < end`; `None` is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    pub start: Option<Vec<u8>>,
    pub end: Option<Vec<u8>>,
}

/// The way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}

/// Keys and values that a scan found, in one allocation that is reused.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// End of each key and end of its value in `bytes`.
    ends: Vec<(u32, u32)>,
    /// Where the last scan stopped, if it found nothing up to there.
    stop: Option<Box<[u8]>>,
}

impl Batch {
    /// Forgets the contents, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.stop = None;
    }

    /// A scan begins; engines call it.
    pub fn begin(&mut self) {
        self.stop = None;
    }

    /// The scan has found nothing on a long way and stops, so that its caller may look at KILL. The rest of
    /// the range begins at this key (Forward) or ends before it (Backward).
    pub fn stop_at(&mut self, key: &[u8]) {
        self.stop = Some(key.into());
    }

    /// Cuts the range of a scan that answered true to what is left of it.
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

    /// Makes room for so many entries of so many bytes in all, beside those that are there.
    pub fn reserve(&mut self, entries: usize, bytes: usize) {
        self.ends.reserve(entries);
        self.bytes.reserve(bytes);
    }

    /// Adds an entry at the end. A batch stays far below 4 GiB: scans are bounded.
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len() as u32));
    }

    /// Adds an entry whose key lies in parts.
    #[inline]
    pub fn push_parts(&mut self, key: [&[u8]; 3], value: &[u8]) {
        let bytes = key[0].len() + key[1].len() + key[2].len() + value.len();
        self.bytes.reserve(bytes);
        key.into_iter().for_each(|part| self.bytes.extend_from_slice(part));
        let key_end = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len() as u32));
    }

    /// Adds an entry whose value follows its key, but for what the key begins with.
    #[inline]
    pub fn push_joined(&mut self, prefix: &[u8], entry: &[u8], suffix_len: usize) {
        self.bytes.reserve(prefix.len() + entry.len());
        self.bytes.extend_from_slice(prefix);
        let key_end = (self.bytes.len() + suffix_len) as u32;
        self.bytes.extend_from_slice(entry);
        self.ends.push((key_end, self.bytes.len() as u32));
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all keys and values.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The n-th key and value.
    #[inline]
    pub fn get(&self, n: usize) -> (&[u8], &[u8]) {
        let start = if n == 0 { 0 } else { self.ends[n - 1].1 as usize };
        let (key_end, end) = self.ends[n];
        (&self.bytes[start..key_end as usize], &self.bytes[key_end as usize..end as usize])
    }

    /// The n-th value.
    #[inline]
    pub fn value(&self, n: usize) -> &[u8] {
        let (key_end, end) = self.ends[n];
        &self.bytes[key_end as usize..end as usize]
    }

    /// The values of some entries.
    #[inline]
    pub fn values(&self, entries: Range<usize>) -> impl Iterator<Item = &[u8]> {
        self.ends[entries].iter().map(|(key_end, end)| &self.bytes[*key_end as usize..*end as usize])
    }

    /// All entries in scan order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        (0..self.len()).map(|n| self.get(n))
    }
}

/// Keys that are looked for at once ([`EngineTrx::get_many`]).
pub struct Looks<'l> {
    /// Of this key space.
    pub index: IndexId,
    pub keys: &'l [&'l [u8]],
    /// The look ends once the batch holds so many bytes.
    pub bytes_max: usize,
    /// Gets the entries that are there.
    pub batch: &'l mut Batch,
    /// Gets the numbers of their keys.
    pub found: &'l mut Vec<u32>,
}

impl Looks<'_> {
    /// Asks for one key after the other: `get` replaces the value and says whether the key is there.
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

/// A place in a transaction to which its writes can be rolled back, until a part of it is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint(pub usize);

/// What went wrong in an engine, by what the caller must do.
#[derive(Debug)]
pub enum EngineError {
    /// A file could not be read or written: the statement fails with the text; retrying may help when space
    /// is back.
    Io(io::Error),
    /// A page, file or key does not decode: the statement fails and a person must look.
    Corrupt(String),
    /// The transaction is larger than the engine's limit: the client must make it smaller.
    TooLarge {
        /// The limit.
        bytes_max: u64,
    },
    /// What is to be kept in memory is more than the session or the server may use: the statement fails.
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

/// A rough picture of an index, for the planner and SHOW.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexStats {
    /// Entries, estimated.
    pub entries: u64,
    /// Bytes on disk and in memory, estimated.
    pub bytes: u64,
}

/// Who has redo in commit records: every engine, and the catalog. The commit coordinator knows participants
/// only by this.
pub trait Participant: Send + Sync {
    /// As it stands in commit records.
    fn id(&self) -> ParticipantId;

    /// What it is and where its files lie, for the person who reads why the server does not start.
    fn place(&self) -> String {
        format!("participant {}", self.id())
    }

    /// Makes prepared transactions visible to `Latest` reads, in the order given, as one step. `seq` is the
    /// last one's position. The order stage is held (I1); it must not fail (I6): an engine that cannot go on
    /// aborts the process.
    fn commit_ordered(&self, seq: CommitSeq, redo: &[&Redo]);

    /// Makes redo that is too large for the order stage ready to be taken in by one step. None: it is applied
    /// like any other.
    fn stage(&self, redo: &Redo) -> Result<Option<Box<dyn StagedRedo>>, EngineError> {
        let _ = redo;
        Ok(None)
    }

    /// Starts to make everything applied so far durable. The order stage is held, the log is hardened up to
    /// `lsn` and holds nothing beyond: so whatever is written now is hardened (I3). Must be quick; the work
    /// is in [`CheckpointTask::finish`].
    fn begin_checkpoint(&self, lsn: Lsn) -> Result<Box<dyn CheckpointTask>, EngineError>;

    /// The LSN given to the last checkpoint that is durable: replay starts here at the latest.
    fn durable_lsn(&self) -> Lsn;

    /// Bytes of redo that are applied and not durable yet: when this grows too large the checkpointer acts.
    fn unflushed_bytes(&self) -> u64;

    /// Bytes of such redo beyond which it wants a checkpoint; none: what the server's settings say.
    fn checkpoint_bytes(&self) -> Option<u64> {
        None
    }

    /// Bytes on disk that nobody needs and that the next checkpoint frees.
    fn freeable_bytes(&self) -> u64 {
        0
    }

    /// Does transactions again, in the order given. Called in log order from `durable_lsn()` or earlier, by
    /// one thread at a time.
    fn replay(&self, redo: &[Redo]) -> Result<(), EngineError>;
}

/// Redo that waits beside the data to be taken in at once. Dropped without that, nothing of it stays.
pub trait StagedRedo: Send {
    /// Takes it in: what [`Participant::commit_ordered`] does, in time that does not grow with its size. The
    /// order stage is held, and all that is ordered, this included, is hardened. It must not fail (I6).
    fn apply(self: Box<Self>);
}

/// A storage engine, shared by all sessions.
pub trait Engine: Participant {
    /// As `ENGINE=` names it, as MariaDB spells it.
    fn name(&self) -> &'static str;

    /// Starts a transaction. Costs nothing until its first write.
    fn begin(&self) -> Box<dyn EngineTrx>;

    /// The state right now, which is the state after the last ordered transaction; the order stage is held.
    fn snapshot(&self) -> Arc<dyn EngineSnapshot>;

    /// Fills a key space that nobody else can see yet (a new index, a copied table), outside of any
    /// transaction. Several loads may follow each other, with keys between those of the former.
    fn bulk_load(&self, index: IndexId) -> Result<Box<dyn BulkLoad>, EngineError>;

    /// Frees key spaces that no catalog entry names any more. A read view may still see them; nobody reads
    /// them.
    fn drop_indexes(&self, indexes: &[IndexId]) -> Result<(), EngineError>;

    /// How pages of key spaces are written to disk from now on; what lies there is read in whatever form it
    /// has. It is said anew after each start, and for new key spaces before they are filled. Engines whose
    /// files have a form of their own pass over it.
    fn set_page_form(&self, indexes: &[IndexId], form: PageForm) {
        let _ = (indexes, form);
    }

    /// All key spaces that hold anything: at start those that the catalog does not know are dropped.
    fn indexes(&self) -> Result<Vec<IndexId>, EngineError>;

    /// Estimated size of a key space.
    fn stats(&self, index: IndexId) -> IndexStats;

    /// Keys, in order, that divide a key space into parts of about one size: some of its own or of between
    /// them, at most `count`. None where nothing is known.
    fn sample(&self, index: IndexId, count: usize) -> Result<Vec<Vec<u8>>, EngineError> {
        let _ = (index, count);
        Ok(Vec::new())
    }

    /// Name and value pairs for SHOW STATUS.
    fn status(&self) -> Vec<(String, u64)>;

    /// Sentences for a person who wonders what the engine is doing: SHOW ENGINE STATUS.
    fn report(&self) -> String {
        String::new()
    }

    /// Shows `look` the pages in memory, in no order, until it breaks off. A page that comes or goes
    /// meanwhile may be shown twice, or not at all. Engines without pages of their own in memory show none.
    fn pages_in_memory(&self, look: &mut dyn FnMut(PageInMemory) -> ControlFlow<()>) {
        let _ = look;
    }

    /// CHECK TABLE: reads all of a key space and tells what is wrong with it, in any order. `goes_on` is
    /// asked every now and then; false ends it early.
    fn verify(&self, index: IndexId, goes_on: &mut dyn FnMut() -> bool) -> Result<Vec<String>, EngineError> {
        let _ = (index, goes_on);
        Ok(Vec::new())
    }

    /// Warm restart. A dump is done at return, a load goes on in a thread; both say in [`Engine::warmth`] how
    /// they went. Engines without pages of their own in memory do nothing.
    fn warm(&self, request: WarmRequest, clock: &SharedClock) {
        let _ = (request, clock);
    }

    /// How far dump and load have come; none: the engine does neither.
    fn warmth(&self) -> Option<Warmth> {
        None
    }

    /// A setting has a new value. Engines pass over those of others.
    fn configure(&self, setting: EngineSetting) {
        let _ = setting;
    }
}

/// A page in memory, for people and tools that look into the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageInMemory {
    pub number: u64,
    /// The newest image on disk does not say what the page says.
    pub is_changed: bool,
    /// Since the pool last looked for something to let go.
    pub is_used: bool,
    /// Somebody keeps it in memory just now.
    pub is_held: bool,
    /// None: it was latched alone at that moment, by who reads or changes it.
    pub contents: Option<PageContents>,
}

/// What stands in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageContents {
    pub index: IndexId,
    pub entries: u64,
    /// That entries, keys and the header take.
    pub bytes: u64,
}

/// How pages of a key space are written to disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageForm {
    /// As they are.
    #[default]
    Plain,
    /// `ROW_FORMAT=COMPRESSED`: by zlib, at the server's level.
    CompressedRows,
    /// `PAGE_COMPRESSED=1`: by the server's algorithm.
    CompressedPages {
        /// `PAGE_COMPRESSION_LEVEL`, 1 to 9; none: the server's.
        level: Option<u8>,
    },
}

/// `innodb_compression_algorithm`, as far as it is offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageAlgorithm {
    /// Pages are written as they are.
    None,
    #[default]
    Zlib,
}

/// Settings of engines that change while the server runs.
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

/// The durable half of a checkpoint.
pub trait CheckpointTask: Send {
    /// Waits until everything below the checkpoint's LSN is durable.
    fn finish(self: Box<Self>) -> Result<(), EngineError>;

    /// The same for a caller that has time: a task with much to do calls `rest` between two steps, with how
    /// long the last one took, and goes on when that returns.
    fn finish_at_leisure(self: Box<Self>, rest: &mut dyn FnMut(Duration)) -> Result<(), EngineError> {
        let _ = rest;
        self.finish()
    }
}

/// Keys and values in ascending order for a key space of its own. Durable after `finish`; dropped without it,
/// nothing stays.
pub trait BulkLoad: Send {
    /// Adds an entry; keys must ascend strictly.
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), EngineError>;
    /// Makes all entries visible and durable.
    fn finish(self: Box<Self>) -> Result<(), EngineError>;
}

/// One transaction in one engine. Its writes are private until `commit_ordered`.
pub trait EngineTrx: Send {
    /// Reads one key into `value` (which is cleared first); false if it does not exist.
    fn get(
        &self,
        at: ReadAt<'_>,
        index: IndexId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<bool, EngineError>;

    /// The same for a reader that has read near the key, or will.
    fn get_near(
        &self,
        at: ReadAt<'_>,
        index: IndexId,
        key: &[u8],
        value: &mut Vec<u8>,
        near: &mut Near,
    ) -> Result<bool, EngineError> {
        let _ = near;
        self.get(at, index, key, value)
    }

    /// Looks for keys that are best near each other. Says how many it has looked for, at least one of some.
    fn get_many(&self, at: ReadAt<'_>, looks: &mut Looks<'_>, near: &mut Near) -> Result<usize, EngineError> {
        let index = looks.index;
        looks.one_by_one(&mut |key, value| self.get_near(at, index, key, value, near))
    }

    /// Appends up to `limit` entries of the range to `batch`, from its start (Forward) or its end (Backward);
    /// fewer when they are long, or when there are long ways between them. True if the range may hold more:
    /// continue with the rest of it ([`Batch::cut`]). A call that appends nothing and answers true has passed
    /// over many entries that the reader does not see; each call does so much and no more. Two calls at
    /// `Latest` may see different states.
    fn scan(
        &self,
        at: ReadAt<'_>,
        index: IndexId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut Batch,
    ) -> Result<bool, EngineError>;

    /// The same for a reader that has read near the range, or will.
    #[allow(clippy::too_many_arguments)] // those of a scan
    fn scan_near(
        &self,
        at: ReadAt<'_>,
        index: IndexId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut Batch,
        near: &mut Near,
    ) -> Result<bool, EngineError> {
        let _ = near;
        self.scan(at, index, range, direction, limit, batch)
    }

    /// Writes a key.
    fn put(&mut self, index: IndexId, key: &[u8], value: &[u8]) -> Result<(), EngineError>;

    /// Removes a key, whether it exists or not.
    fn delete(&mut self, index: IndexId, key: &[u8]) -> Result<(), EngineError>;

    /// The present place, for [`EngineTrx::rollback_to`]; statements take one before they write.
    fn savepoint(&mut self) -> Savepoint;

    /// Undoes all writes since the savepoint.
    fn rollback_to(&mut self, savepoint: Savepoint);

    /// Whether nothing has been written.
    fn is_read_only(&self) -> bool;

    /// Bytes of memory that the writes take until they are installed, roughly.
    fn memory_bytes(&self) -> usize;

    /// Shows the writes, in the order of key spaces and keys, until `each` breaks off. Another transaction
    /// that writes the same has the same effect. Not for one that has installed a part.
    fn each_write(&self, each: &mut EachWrite<'_>) -> ControlFlow<()>;

    /// Whether [`EngineTrx::install_part`] does anything.
    fn installs_parts(&self) -> bool {
        false
    }

    /// Puts the writes so far in place and frees the memory that they take. The transaction's own reads see
    /// them there, and nobody else's; later writes of the same keys are usual ones. The caller holds the
    /// locks of the keys, and releases them after the transaction is dropped or ordered. Savepoints from
    /// before are void: nothing but dropping the transaction undoes what is in place, and nothing else may
    /// follow an error.
    fn install_part(&mut self, files: &dyn RedoFiles) -> Result<(), EngineError> {
        let _ = files;
        Ok(())
    }

    /// Finishes the transaction's writes and yields its redo; every error surfaces here (I6). No writes may
    /// follow. Not for one that has installed a part.
    fn prepare(&mut self) -> Result<Redo, EngineError>;

    /// The same for any transaction. Large redo comes in files, several for a very large one; it belongs
    /// together, in this order.
    fn prepare_into(&mut self, files: &dyn RedoFiles, redo: &mut Vec<Redo>) -> Result<(), EngineError> {
        let _ = files;
        redo.push(self.prepare()?);
        Ok(())
    }
}
