//! The transaction cache: collects the binlog events of a running transaction.
//!
//! # Concepts
//!
//! - The cache holds a sequence of finished events with headers. Their `event_len` excludes the checksum and
//!   their `log_pos` is meaningless: positions and checksums are assigned when the flush group closes.
//! - A *statement* consists of an optional annotation (its text), the table maps, and row events. Annotation
//!   and maps are written right before the first row, so a statement that changes no row logs nothing.
//! - The last row event is *open*: rows of the same kind and table are added to it until it would exceed
//!   `row_event_bytes_max`. The end of the statement sets the STMT_END flag in it.
//! - Replicas open the tables of a statement at its first row event. So a table that appears later ends the
//!   current run of row events (STMT_END), and the next run starts with all maps written again.
//! - Beyond `memory_bytes_max`, finished events move to a spill file ([`crate::SpillDir`]); the open event
//!   never does.
//! - Every event fits into `event_bytes_max`, which readers of the log rely on. Row events contain complete
//!   rows, so a row with larger images cannot be logged; it is refused before anything is written for it.
//!
//! # States
//!
//! empty -> (`begin_statement`, `row`, `end_statement` | `query` | `event`)* -> `seal` -> empty; `truncate`
//! goes back to a `position`, `reset` to empty.
//!
//! # On failure
//!
//! After an error the cache is as before the event, or contains part of the statement; the caller truncates
//! it to the statement's start.

use std::fmt;
use std::io;
use std::sync::Arc;

use cohort_base::ServerId;

use crate::event::{
    CHECKSUM_LEN, Checksum, Event, EventHeader, EventType, HEADER_LEN, PLAIN_LEN_MAX, Packing, QueryEvent,
    RowsKind, TableMap, begin_event, deflate, encode_rows_head, finish_event, rows_flags,
};
use crate::spill::SpillFile;
use crate::{Sealed, SpillDir};

/// Maximum length of a written event. Compression may make it slightly longer, which readers still accept.
const EVENT_BYTES_MAX: usize = PLAIN_LEN_MAX as usize;
/// Maximum bytes of a row event except its bitmaps and rows: header, table id, flags, width, checksum.
const ROWS_HEAD_BYTES_MAX: usize = HEADER_LEN + 6 + 2 + 9 + CHECKSUM_LEN;
/// Offset of the flags inside a row event.
const ROWS_FLAGS_AT: usize = HEADER_LEN + 6;

/// Limits of a cache.
#[derive(Clone, Copy, Debug)]
pub struct CacheOptions {
    /// Bytes kept in memory before the cache spills: `binlog_cache_size`.
    pub memory_bytes_max: usize,
    /// Maximum total bytes: `max_binlog_cache_size`.
    pub bytes_max: u64,
    /// A row event is closed before it would exceed this: `binlog_row_event_max_size`.
    pub row_event_bytes_max: usize,
    /// Maximum length of an event before compression. Only tests set smaller values.
    pub event_bytes_max: usize,
}

impl Default for CacheOptions {
    fn default() -> CacheOptions {
        CacheOptions {
            memory_bytes_max: 1 << 20,
            bytes_max: u64::MAX,
            row_event_bytes_max: 8192,
            event_bytes_max: EVENT_BYTES_MAX,
        }
    }
}

/// Header fields that all events of a statement share.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamp {
    /// Start of the statement in seconds since 1970.
    pub timestamp: u32,
    /// `@@server_id` of the session; when a replica applies, that of the source.
    pub server_id: ServerId,
    /// Flags of every event of the statement, see [`crate::event::flags`], for instance SKIP_REPLICATION.
    pub flags: u16,
}

/// One changed row. The bitmaps have a bit per table column, least significant bit first.
#[derive(Clone, Copy, Debug)]
pub struct RowImage<'a> {
    /// Kind of the change.
    pub kind: RowsKind,
    /// See [`crate::event::rows_flags`], without STMT_END.
    pub flags: u16,
    /// Columns in the image, for an update in the before image.
    pub present: &'a [u8],
    /// Columns in the after image of an update; otherwise empty.
    pub present_after: &'a [u8],
    /// NULL bitmap and values; for an update those of the before image, then of the after image.
    pub image: &'a [u8],
}

/// A position in a cache, for truncation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CachePos {
    bytes: u64,
    events: u64,
}

/// Reason why a cache refused an event.
#[derive(Debug)]
pub enum CacheError {
    /// The cache would exceed `bytes_max`; the statement fails with error 1197.
    TooLarge {
        /// The limit.
        bytes_max: u64,
    },
    /// One event would be longer than readers accept, and a row cannot be split; the statement fails with
    /// error 1534.
    EventTooLarge {
        /// The limit.
        bytes_max: usize,
    },
    /// The spill file cannot be written; the statement fails (error 1021 if the disk is full, else 1026).
    Spill(io::Error),
}

impl fmt::Display for CacheError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CacheError::TooLarge { bytes_max } => {
                write!(f, "the transaction needs more than {bytes_max} bytes of binary log")
            }
            CacheError::EventTooLarge { bytes_max } => {
                write!(f, "one change needs a binary log event of more than {bytes_max} bytes")
            }
            CacheError::Spill(err) => write!(f, "cannot write the transaction's spill file: {err}"),
        }
    }
}

impl std::error::Error for CacheError {}

/// The open row event at the end of the buffer.
#[derive(Clone, Copy)]
struct OpenRows {
    start: usize,
    rows_start: usize,
    table_id: u64,
    kind: RowsKind,
    flags: u16,
    packing: Packing,
}

struct AnnouncedTable {
    map: Arc<TableMap>,
    written: bool,
}

/// Binlog events of a running transaction. Used by its session only.
pub struct TrxCache {
    options: CacheOptions,
    spill_dir: Option<Arc<SpillDir>>,
    /// Events after those that are spilled.
    buf: Vec<u8>,
    /// Number of finished events in `buf`.
    buf_events: u64,
    spilled: Option<SpillFile>,
    open: Option<OpenRows>,
    stamp: Stamp,
    annotate: Vec<u8>,
    annotate_pending: bool,
    tables: Vec<AnnouncedTable>,
    /// Minimum length of an image that goes into a compressed event.
    compress_from: Option<usize>,
    /// Scratch buffer for the rows of an event that is being compressed.
    plain: Vec<u8>,
}

/// Typical size of a statement's event headers and its table map.
const STATEMENT_BYTES: usize = 256;
/// Initial capacity of the buffer, allocated at the first row of a transaction.
const FIRST_BYTES: usize = 1024;

impl TrxCache {
    /// Returns an empty cache. Without a spill directory it stays in memory regardless of its size.
    pub fn new(options: CacheOptions, spill: Option<Arc<SpillDir>>) -> TrxCache {
        TrxCache {
            options,
            spill_dir: spill,
            buf: Vec::new(),
            buf_events: 0,
            spilled: None,
            open: None,
            stamp: Stamp::default(),
            annotate: Vec::new(),
            annotate_pending: false,
            tables: Vec::new(),
            compress_from: None,
            plain: Vec::new(),
        }
    }

    /// Sets the minimum image length for compressed row events (`log_bin_compress`); `None` disables
    /// compression.
    pub fn set_compression(&mut self, bytes_min: Option<usize>) {
        self.compress_from = bytes_min;
    }

    fn packing_of(&self, row: &RowImage<'_>) -> Packing {
        match self.compress_from {
            Some(bytes_min) if row.image.len() >= bytes_min => Packing::Compressed,
            _ => Packing::Plain,
        }
    }

    /// Starts a statement, whose events get this stamp. The annotation (the SQL text) is written before the
    /// statement's first table map, so a statement that changes no row logs nothing.
    pub fn begin_statement(&mut self, stamp: Stamp, annotate: Option<&[u8]>) {
        self.close_rows(rows_flags::STMT_END);
        self.stamp = stamp;
        self.tables.clear();
        self.annotate.clear();
        self.annotate_pending = annotate.is_some_and(|sql| !sql.is_empty());
        self.annotate.extend_from_slice(annotate.unwrap_or_default());
    }

    /// Announces a table of the running statement. Announce all tables that will be written before the first
    /// row if possible; a later one ends the current run of row events.
    pub fn table_map(&mut self, map: &Arc<TableMap>) {
        if !self.tables.iter().any(|table| table.map.table_id == map.table_id) {
            self.tables.push(AnnouncedTable { map: map.clone(), written: false });
        }
    }

    /// Adds a changed row of a table that was announced in this statement.
    pub fn row(&mut self, table_id: u64, row: &RowImage<'_>) -> Result<(), CacheError> {
        let found = self.tables.iter().find(|table| table.map.table_id == table_id);
        let table = found.expect("a row belongs to a table announced in its statement");
        let (width, written) = (table.map.column_types.len() as u32, table.written);
        self.check_size(row.image.len())?;
        self.check_event(
            ROWS_HEAD_BYTES_MAX + row.present.len() + row.present_after.len() + row.image.len(),
        )?;
        if !written {
            self.close_rows(rows_flags::STMT_END);
            let annotate = if self.annotate_pending { self.annotate.len() } else { 0 };
            // Transactions with more than one statement mostly have only a few.
            let first = if self.buf.capacity() == 0 { FIRST_BYTES } else { 0 };
            self.buf.reserve((annotate + row.image.len() + STATEMENT_BYTES).max(first));
            self.write_maps();
        }
        if !self.fits_open(table_id, row) {
            self.close_rows(0);
            self.spill_if_large()?;
            self.open_rows(table_id, width, row);
        }
        self.buf.extend_from_slice(row.image);
        Ok(())
    }

    /// Ends a statement: sets STMT_END in its last row event.
    pub fn end_statement(&mut self) -> Result<(), CacheError> {
        self.close_rows(rows_flags::STMT_END);
        self.tables.clear();
        self.annotate_pending = false;
        self.spill_if_large()
    }

    /// Adds a statement as text: DDL, SAVEPOINT, the COMMIT of a group without XID.
    pub fn query(&mut self, flags: u16, query: &QueryEvent) -> Result<(), CacheError> {
        let kind = match query.packing {
            Packing::Plain => EventType::QUERY,
            Packing::Compressed => EventType::QUERY_COMPRESSED,
        };
        self.append(kind, flags, |out| query.encode(out))
    }

    /// Adds any other event.
    pub fn event(&mut self, flags: u16, event: &Event) -> Result<(), CacheError> {
        self.append(event.kind(), flags, |out| event.encode(out))
    }

    /// Adds an event that another server wrote, with its own header. For a replica that logs what it applies.
    pub fn foreign(&mut self, header: &EventHeader, body: &[u8]) -> Result<(), CacheError> {
        self.close_rows(rows_flags::STMT_END);
        self.check_size(body.len())?;
        let start = begin_event(&mut self.buf, header.kind, header.timestamp, header.server_id, header.flags);
        self.buf.extend_from_slice(body);
        finish_event(&mut self.buf, start, 0, Checksum::None);
        self.buf_events += 1;
        self.spill_if_large()
    }

    /// Returns the position after the last event, for a later truncation. Only between statements.
    pub fn position(&self) -> CachePos {
        debug_assert!(self.open.is_none(), "a position inside a statement cannot be gone back to");
        let (bytes, events) = self.spilled.as_ref().map_or((0, 0), |s| (s.event_bytes(), s.events()));
        CachePos { bytes: bytes + self.buf.len() as u64, events: events + self.buf_events }
    }

    /// Removes everything after `pos` (rollback of a statement or to a savepoint). Ends the running
    /// statement.
    pub fn truncate(&mut self, pos: CachePos) -> Result<(), CacheError> {
        self.open = None;
        self.tables.clear();
        self.annotate_pending = false;
        match &mut self.spilled {
            Some(spilled) if pos.bytes < spilled.event_bytes() => {
                spilled.truncate(pos.bytes, pos.events).map_err(CacheError::Spill)?;
                self.buf.clear();
                self.buf_events = 0;
            }
            spilled => {
                let (bytes, events) = spilled.as_ref().map_or((0, 0), |s| (s.event_bytes(), s.events()));
                self.buf.truncate((pos.bytes - bytes) as usize);
                self.buf_events = pos.events - events;
            }
        }
        Ok(())
    }

    /// Returns whether there is nothing to log.
    pub fn is_empty(&self) -> bool {
        self.size_bytes() == 0
    }

    /// Returns the bytes used in memory.
    pub fn memory_bytes(&self) -> usize {
        self.buf.len() + self.plain.len() + self.annotate.len()
    }

    /// Returns the bytes collected, in memory and spilled.
    pub fn size_bytes(&self) -> u64 {
        self.spilled.as_ref().map_or(0, |s| s.event_bytes()) + self.buf.len() as u64
    }

    /// Finishes the cache for `append_trx`; a spill file is durable on return. Afterwards the cache is empty
    /// and ready for the next transaction. After an error its contents are unchanged.
    pub fn seal(&mut self) -> Result<Sealed, CacheError> {
        self.close_rows(rows_flags::STMT_END);
        let sealed = match &mut self.spilled {
            None => Sealed::Memory { bytes: std::mem::take(&mut self.buf), events: self.buf_events },
            Some(spilled) => {
                spilled.append(&self.buf, self.buf_events).map_err(CacheError::Spill)?;
                self.buf.clear();
                self.buf_events = 0;
                spilled.seal().map_err(CacheError::Spill)?
            }
        };
        self.spilled = None;
        self.reset();
        Ok(sealed)
    }

    /// Discards everything (rollback of the transaction). Keeps the allocated memory, removes the spill file.
    pub fn reset(&mut self) {
        self.buf.clear();
        self.buf_events = 0;
        self.spilled = None;
        self.open = None;
        self.tables.clear();
        self.annotate_pending = false;
    }

    /// Reuses the memory of a body that was appended.
    pub fn recycle(&mut self, body: Sealed) {
        let Sealed::Memory { bytes, .. } = body else { return };
        if self.buf.capacity() == 0 && bytes.capacity() <= self.options.memory_bytes_max {
            self.buf = bytes;
            self.buf.clear();
        }
    }

    fn append(
        &mut self,
        kind: EventType,
        flags: u16,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), CacheError> {
        self.close_rows(rows_flags::STMT_END);
        self.check_size(0)?;
        let start = self.buf.len();
        self.write_event(kind, flags, body);
        if let Err(error) = self.check_event(self.buf.len() - start + CHECKSUM_LEN) {
            self.buf.truncate(start);
            self.buf_events -= 1;
            return Err(error);
        }
        self.spill_if_large()
    }

    fn write_event(&mut self, kind: EventType, flags: u16, body: impl FnOnce(&mut Vec<u8>)) {
        let Stamp { timestamp, server_id, flags: more } = self.stamp;
        let start = begin_event(&mut self.buf, kind, timestamp, server_id, flags | more);
        body(&mut self.buf);
        finish_event(&mut self.buf, start, 0, Checksum::None);
        self.buf_events += 1;
    }

    /// Writes the annotation, then the maps of all announced tables.
    fn write_maps(&mut self) {
        if std::mem::take(&mut self.annotate_pending) {
            let annotate = std::mem::take(&mut self.annotate);
            self.write_event(EventType::ANNOTATE_ROWS, 0, |out| out.extend_from_slice(&annotate));
            self.annotate = annotate;
        }
        let mut tables = std::mem::take(&mut self.tables);
        for table in &mut tables {
            self.write_event(EventType::TABLE_MAP, 0, |out| table.map.encode(out));
            table.written = true;
        }
        self.tables = tables;
    }

    fn open_rows(&mut self, table_id: u64, width: u32, row: &RowImage<'_>) {
        let Stamp { timestamp, server_id, flags } = self.stamp;
        let packing = self.packing_of(row);
        let kind = row.kind.event_type(packing);
        let start = begin_event(&mut self.buf, kind, timestamp, server_id, flags);
        encode_rows_head(&mut self.buf, table_id, row.flags, width, row.present, row.present_after);
        let rows_start = self.buf.len();
        self.open = Some(OpenRows { start, rows_start, table_id, kind: row.kind, flags: row.flags, packing });
    }

    fn fits_open(&self, table_id: u64, row: &RowImage<'_>) -> bool {
        let Some(open) = self.open else { return false };
        let bitmaps = row.present.len() + row.present_after.len();
        let written = &self.buf[open.rows_start - bitmaps..open.rows_start];
        open.table_id == table_id
            && open.kind == row.kind
            && open.flags == row.flags
            && open.packing == self.packing_of(row)
            && written.starts_with(row.present)
            && written.ends_with(row.present_after)
            && self.buf.len() - open.start + row.image.len() <= self.row_event_bytes_max()
    }

    fn row_event_bytes_max(&self) -> usize {
        let largest = self.options.event_bytes_max.saturating_sub(CHECKSUM_LEN);
        self.options.row_event_bytes_max.min(largest)
    }

    fn check_event(&self, bytes: usize) -> Result<(), CacheError> {
        let bytes_max = self.options.event_bytes_max;
        if bytes > bytes_max { Err(CacheError::EventTooLarge { bytes_max }) } else { Ok(()) }
    }

    /// Finishes the open row event, if any, and adds these flags to it.
    fn close_rows(&mut self, more: u16) {
        let Some(open) = self.open.take() else { return };
        if open.packing == Packing::Compressed {
            self.plain.clear();
            self.plain.extend_from_slice(&self.buf[open.rows_start..]);
            self.buf.truncate(open.rows_start);
            deflate(&self.plain, &mut self.buf);
        }
        let at = open.start + ROWS_FLAGS_AT;
        self.buf[at..at + 2].copy_from_slice(&(open.flags | more).to_le_bytes());
        finish_event(&mut self.buf, open.start, 0, Checksum::None);
        self.buf_events += 1;
    }

    fn check_size(&self, more: usize) -> Result<(), CacheError> {
        let bytes_max = self.options.bytes_max;
        match self.size_bytes() + more as u64 > bytes_max {
            true => Err(CacheError::TooLarge { bytes_max }),
            false => Ok(()),
        }
    }

    /// Moves all finished events to the spill file if they exceed the memory limit.
    fn spill_if_large(&mut self) -> Result<(), CacheError> {
        debug_assert!(self.open.is_none());
        let Some(dir) = &self.spill_dir else { return Ok(()) };
        if self.buf.len() <= self.options.memory_bytes_max {
            return Ok(());
        }
        if self.spilled.is_none() {
            self.spilled = Some(dir.create().map_err(CacheError::Spill)?);
        }
        let spilled = self.spilled.as_mut().expect("made above");
        spilled.append(&self.buf, self.buf_events).map_err(CacheError::Spill)?;
        self.buf.clear();
        self.buf_events = 0;
        Ok(())
    }
}
