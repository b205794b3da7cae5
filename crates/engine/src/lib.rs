//! Contract of storage engines: the traits, the write set that log-structured engines share, an in-memory
//! reference engine, a mirror that runs two engines and compares them, and a conformance suite for all
//! engines.
//!
//! An engine is a set of ordered indexes ([`IndexId`], also called key spaces) with transactions. It knows
//! neither rows nor SQL nor the binary log. It takes no locks for its callers: `crates/locks` does. It never
//! decides whether a transaction is committed: the commit record in the log does (I2).

mod caller;
pub mod checkpoint_file;
pub mod conformance;
mod load_redo;
mod mirror;
mod pinned;
mod pool_dump;
mod read_view;
mod redo;
mod redo_memory;
mod redo_spool;
mod reference;
mod run;
mod traits;
mod write_set;

pub use caller::{SearchHint, WaitSlot, WaitSlotOf};
pub use load_redo::LoadRedo;
pub use mirror::Mirror;
pub use pinned::SmallFiles;
pub use pool_dump::{PoolDumpRequest, PoolDumpState, PoolDumpStates};
pub use read_view::{EngineSnapshot, ReadView};
pub use redo::{Installed, Redo, RedoFile, RedoFileGuard, RedoFiles, RedoWriter};
pub use redo_memory::MemoryRedo;
pub use redo_spool::RedoSpool;
pub use reference::ReferenceEngine;
pub use traits::{
    Batch, BulkLoad, CheckpointTask, Direction, EachWrite, Engine, EngineError, EngineSetting, EngineTrx,
    IndexStats, KeyRange, MultiGet, PageAlgorithm, PageContents, PageFormat, PageInMemory, Participant,
    PinnedBytes, PinnedFile, PinnedFiles, ReadAt, ReadPinned, Savepoint, ScanRequest, StagedRedo,
};
pub use write_set::{BaseScan, INDEX_ID_BYTES, WriteSet, full_key, full_range, with_full_key};

pub use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId};
