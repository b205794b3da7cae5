//! The transaction cache.
use std::fmt;
use std::io;
use std::sync::Arc;

use cohort_base::ServerId;

use crate::event::{Event, QueryEvent, RowsKind, TableMap};
use crate::{Sealed, SpillDir};

/// Limits of a cache.
#[derive(Clone, Copy, Debug)]
pub struct CacheOptions {
    /// Bytes held in memory before the cache spills: `binlog_cache_size`.
    pub memory_bytes_max: usize,
    /// Bytes in all: `max_binlog_cache_size`.
    pub bytes_max: u64,
    /// A row event is closed before it would grow beyond this: `binlog_row_event_max_size`.
    pub row_event_bytes_max: usize,
}

impl Default for CacheOptions {
    fn default() -> CacheOptions {
        CacheOptions { memory_bytes_max: 32 << 10, bytes_max: u64::MAX, row_event_bytes_max: 8192 }
    }
}

/// What the headers of a statement's events carry.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamp {
    /// Seconds since 1970 when the statement started.
    pub timestamp: u32,
    /// `@@server_id` of the session; of the source when a replica applies.
    pub server_id: ServerId,
    /// Flags of every event of the statement, see [`crate::event::flags`]; SKIP_REPLICATION belongs here.
    pub flags: u16,
}

/// One changed row. Bitmaps are of the table's columns, least significant bit first.
#[derive(Clone, Copy, Debug)]
pub struct RowImage<'a> {
    /// What happened to the row.
    pub kind: RowsKind,
    /// See [`crate::event::rows_flags`], without STMT_END.
    pub flags: u16,
    /// Columns in the (before) image.
    pub present: &'a [u8],
    /// Columns in the after image of an update; else empty.
    pub present_after: &'a [u8],
    /// Null bitmap and values, once, or before and after of an update.
    pub image: &'a [u8],
}

/// A place in a cache, to go back to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CachePos {
    pub(crate) bytes: u64,
    pub(crate) events: u64,
}

/// Why a cache cannot take more.
#[derive(Debug)]
pub enum CacheError {
    /// Larger than `bytes_max`; the statement fails with error 1197.
    TooLarge {
        /// The bound.
        bytes_max: u64,
    },
    /// The spill file cannot be written; the statement fails (disk full: error 1021, else 1026).
    Spill(io::Error),
}

impl fmt::Display for CacheError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CacheError::TooLarge { bytes_max } => {
                write!(f, "the transaction needs more than {bytes_max} bytes of log")
            }
            CacheError::Spill(err) => write!(f, "cannot write the transaction's spill file: {err}"),
        }
    }
}

impl std::error::Error for CacheError {}

/// What a transaction gathered while it ran.
pub struct TrxCache {}

impl TrxCache {
    /// An empty cache. Without a spill directory it stays in memory whatever its size.
    pub fn new(_options: CacheOptions, _spill: Option<Arc<SpillDir>>) -> TrxCache {
        todo!()
    }

    /// Starts a statement: its events get this stamp. The annotation (the SQL text) is written before the
    /// statement's first table map, so a statement that changes nothing leaves nothing.
    pub fn begin_statement(&mut self, _stamp: Stamp, _annotate: Option<&[u8]>) {
        todo!()
    }

    /// Announces a table of the running statement. All tables known to be written should be announced before the
    /// first row; a later one is possible and ends the row events before it.
    pub fn table_map(&mut self, _map: &Arc<TableMap>) -> Result<(), CacheError> {
        todo!()
    }

    /// Adds a changed row of a table that was announced in this statement.
    pub fn row(&mut self, _table_id: u64, _row: &RowImage<'_>) -> Result<(), CacheError> {
        todo!()
    }

    /// Ends a statement: marks its last row event.
    pub fn end_statement(&mut self) -> Result<(), CacheError> {
        todo!()
    }

    /// Adds a statement as text: DDL, SAVEPOINT, COMMIT of a group without XID.
    pub fn query(&mut self, _flags: u16, _query: &QueryEvent) -> Result<(), CacheError> {
        todo!()
    }

    /// Adds any other event.
    pub fn event(&mut self, _flags: u16, _event: &Event) -> Result<(), CacheError> {
        todo!()
    }

    /// The place behind the last event, for a rollback to here. Between statements only.
    pub fn position(&self) -> CachePos {
        todo!()
    }

    /// Forgets what came behind `pos` (rollback of a statement or to a savepoint).
    pub fn truncate(&mut self, _pos: CachePos) -> Result<(), CacheError> {
        todo!()
    }

    /// Whether nothing is to be logged.
    pub fn is_empty(&self) -> bool {
        todo!()
    }

    /// Bytes gathered, in memory and spilled.
    pub fn size_bytes(&self) -> u64 {
        todo!()
    }

    /// Finishes the cache for `append_trx`; a spill file is durable afterwards. The cache is empty and ready for
    /// the next transaction.
    pub fn seal(&mut self) -> Result<Sealed, CacheError> {
        todo!()
    }

    /// Forgets everything (rollback of the transaction); keeps the room, removes the spill file.
    pub fn reset(&mut self) {
        todo!()
    }

    /// Gives back the memory of a body that was appended.
    pub fn recycle(&mut self, _body: Sealed) {
        todo!()
    }
}
