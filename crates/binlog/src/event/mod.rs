//! Binlog events: the common header, the checksum, and one codec per kind.
//!
//! ```text
//! timestamp u32 | type u8 | server_id u32 | event_len u32 | log_pos u32 | flags u16 | body | [crc32 u32]
//! ```
//!
//! Integers are little-endian. `event_len` includes header and checksum. `log_pos` is the position after the
//! event, modulo 2^32. The checksum (zlib's CRC-32) covers header and body. For a format description it is
//! computed with the IN_USE flag cleared, because that flag changes in place when the file is closed.
//!
//! Decoding and encoding again yields the same bytes for every event that MariaDB 10.11 writes. Unknown kinds
//! are kept as [`Event::Unknown`].

mod compressed;
mod format_description;
mod gtid;
mod gtid_list;
mod header;
mod info;
mod load_data;
mod query;
mod rows;
mod shared;
mod small;
mod status_vars;
mod table_map;
mod types;
mod user_var;
mod xa;

use std::fmt;
use std::sync::Arc;

use cohort_base::{Reader, Truncated};

pub use compressed::{PLAIN_LEN_MAX, deflate, inflate, plain_len};
pub use format_description::{FormatDescription, POST_HEADER_LENGTHS};
pub use gtid::{GtidEvent, flags_extra as gtid_flags_extra, flags2 as gtid_flags2};
pub use gtid_list::GtidListEvent;
pub use header::{
    CHECKSUM_LEN, Checksum, EVENT_LEN_MAX, EventHeader, HEADER_LEN, MAGIC, begin_event, crc_of_event,
    finish_event, flags, split_event,
};
pub use load_data::{ExecuteLoadQuery, FileBlock};
pub use query::QueryEvent;
pub(crate) use rows::encode_rows_head;
pub use rows::{Packing, RowsEvent, RowsKind, flags as rows_flags};
pub use shared::SharedBytes;
pub use small::{
    Annotate, BinlogCheckpoint, Heartbeat, Incident, Intvar, IntvarKind, Rand, Rotate, StartEncryption,
};
pub use status_vars::StatusVars;
pub use table_map::{HAS_TRIGGERS, OptionalMetadata, TableMap};
pub use types::{EventType, InGroup};
pub use user_var::{UserVar, UserVarType, UserVarValue};
pub use xa::{XaPrepare, XaXid};

/// Reason why bytes are not a valid event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end inside an event.
    Truncated,
    /// `event_len` is smaller than a header or larger than any event.
    BadLength(u32),
    /// The stored and the computed checksum.
    BadChecksum {
        /// Checksum stored in the event.
        stored: u32,
        /// Checksum computed from the bytes.
        computed: u32,
    },
    /// `log_pos` differs from the end of the event.
    BadLogPos {
        /// Position stored in the event.
        stored: u32,
        /// End of the event.
        expected: u32,
    },
    /// A field has an invalid value.
    BadValue(&'static str),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Truncated => f.write_str("the event is incomplete"),
            DecodeError::BadLength(len) => write!(f, "event length {len} is impossible"),
            DecodeError::BadChecksum { stored, computed } => {
                write!(f, "checksum is {stored:08x}, but that of the bytes is {computed:08x}")
            }
            DecodeError::BadLogPos { stored, expected } => {
                write!(f, "end position is {stored}, but the event ends at {expected}")
            }
            DecodeError::BadValue(what) => write!(f, "bad value: {what}"),
        }
    }
}

impl std::error::Error for DecodeError {}

impl From<Truncated> for DecodeError {
    fn from(_: Truncated) -> DecodeError {
        DecodeError::Truncated
    }
}

/// A decoded event without its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// 15, the first event of a file.
    FormatDescription(FormatDescription),
    /// 163, the GTID state at the start of a file.
    GtidList(GtidListEvent),
    /// 161, the oldest file that crash recovery may need.
    BinlogCheckpoint(BinlogCheckpoint),
    /// 162, starts a transaction or a single statement.
    Gtid(GtidEvent),
    /// 2 and 165 (compressed), an SQL statement.
    Query(QueryEvent),
    /// 16, ends a transaction.
    Xid(u64),
    /// 38, ends the first phase of an XA transaction.
    XaPrepare(XaPrepare),
    /// 4, names the next file.
    Rotate(Rotate),
    /// 3, the server stopped.
    Stop,
    /// 5, INSERT_ID or LAST_INSERT_ID of the next statement.
    Intvar(Intvar),
    /// 13, seeds of the next statement's RAND().
    Rand(Rand),
    /// 14, a user variable of the next statement.
    UserVar(UserVar),
    /// 26, events could not be logged.
    Incident(Incident),
    /// 27, sent to replicas only.
    Heartbeat(Heartbeat),
    /// 160, the text of the statement that caused the following row events.
    Annotate(Annotate),
    /// 19, a table that the row events of this statement refer to.
    TableMap(Arc<TableMap>),
    /// 23, 24, 25 and 166, 167, 168 (compressed).
    Rows(RowsEvent),
    /// 164, the rest of the file is encrypted.
    StartEncryption(StartEncryption),
    /// 17, the first block of a LOAD DATA file.
    BeginLoadQuery(FileBlock),
    /// 9, a further block.
    AppendBlock(FileBlock),
    /// 11, the file is not needed; contains its number.
    DeleteFile(u32),
    /// 18, the LOAD DATA statement.
    ExecuteLoadQuery(ExecuteLoadQuery),
    /// Any other kind, with its undecoded body.
    Unknown(EventType, Vec<u8>),
}

impl Event {
    /// Decodes the body (without header and checksum) of an event of this kind.
    pub fn decode(kind: EventType, body: &[u8]) -> Result<Event, DecodeError> {
        match RowsKind::of(kind) {
            Some(_) => Event::decode_shared(kind, &SharedBytes::from(body)),
            None => Event::decode_small(kind, body),
        }
    }

    /// Like [`Event::decode`], but the event shares `body`: row images are not copied.
    pub fn decode_shared(kind: EventType, body: &SharedBytes) -> Result<Event, DecodeError> {
        match RowsKind::of(kind) {
            Some((rows, packing)) => RowsEvent::decode(body, rows, packing).map(Event::Rows),
            None => Event::decode_small(kind, body),
        }
    }

    fn decode_small(kind: EventType, body: &[u8]) -> Result<Event, DecodeError> {
        let mut r = Reader::new(body);
        let event = match kind {
            EventType::FORMAT_DESCRIPTION => Event::FormatDescription(FormatDescription::decode(&mut r)?),
            EventType::GTID_LIST => Event::GtidList(GtidListEvent::decode(&mut r)?),
            EventType::BINLOG_CHECKPOINT => Event::BinlogCheckpoint(BinlogCheckpoint::decode(&mut r)?),
            EventType::GTID => Event::Gtid(GtidEvent::decode(&mut r)?),
            EventType::QUERY => Event::Query(QueryEvent::decode(&mut r, Packing::Plain)?),
            EventType::QUERY_COMPRESSED => Event::Query(QueryEvent::decode(&mut r, Packing::Compressed)?),
            EventType::XID => Event::Xid(r.u64()?),
            EventType::XA_PREPARE => Event::XaPrepare(XaPrepare::decode(&mut r)?),
            EventType::ROTATE => Event::Rotate(Rotate::decode(&mut r)?),
            EventType::STOP => Event::Stop,
            EventType::INTVAR => Event::Intvar(Intvar::decode(&mut r)?),
            EventType::RAND => Event::Rand(Rand::decode(&mut r)?),
            EventType::USER_VAR => Event::UserVar(UserVar::decode(&mut r)?),
            EventType::INCIDENT => Event::Incident(Incident::decode(&mut r)?),
            EventType::HEARTBEAT => Event::Heartbeat(Heartbeat::decode(&mut r)?),
            EventType::ANNOTATE_ROWS => Event::Annotate(Annotate::decode(&mut r)?),
            EventType::TABLE_MAP => Event::TableMap(Arc::new(TableMap::decode(&mut r)?)),
            EventType::START_ENCRYPTION => Event::StartEncryption(StartEncryption::decode(&mut r)?),
            EventType::BEGIN_LOAD_QUERY => Event::BeginLoadQuery(FileBlock::decode(&mut r)?),
            EventType::APPEND_BLOCK => Event::AppendBlock(FileBlock::decode(&mut r)?),
            EventType::DELETE_FILE => Event::DeleteFile(r.u32()?),
            EventType::EXECUTE_LOAD_QUERY => Event::ExecuteLoadQuery(ExecuteLoadQuery::decode(&mut r)?),
            _ => return Ok(Event::Unknown(kind, body.to_vec())),
        };
        if !r.is_empty() {
            return Err(DecodeError::BadValue("bytes follow the last field"));
        }
        Ok(event)
    }

    /// Returns the kind, as written in the header.
    pub fn kind(&self) -> EventType {
        match self {
            Event::FormatDescription(_) => EventType::FORMAT_DESCRIPTION,
            Event::GtidList(_) => EventType::GTID_LIST,
            Event::BinlogCheckpoint(_) => EventType::BINLOG_CHECKPOINT,
            Event::Gtid(_) => EventType::GTID,
            Event::Query(query) => match query.packing {
                Packing::Plain => EventType::QUERY,
                Packing::Compressed => EventType::QUERY_COMPRESSED,
            },
            Event::Xid(_) => EventType::XID,
            Event::XaPrepare(_) => EventType::XA_PREPARE,
            Event::Rotate(_) => EventType::ROTATE,
            Event::Stop => EventType::STOP,
            Event::Intvar(_) => EventType::INTVAR,
            Event::Rand(_) => EventType::RAND,
            Event::UserVar(_) => EventType::USER_VAR,
            Event::Incident(_) => EventType::INCIDENT,
            Event::Heartbeat(_) => EventType::HEARTBEAT,
            Event::Annotate(_) => EventType::ANNOTATE_ROWS,
            Event::TableMap(_) => EventType::TABLE_MAP,
            Event::Rows(rows) => rows.kind.event_type(rows.packing),
            Event::StartEncryption(_) => EventType::START_ENCRYPTION,
            Event::BeginLoadQuery(_) => EventType::BEGIN_LOAD_QUERY,
            Event::AppendBlock(_) => EventType::APPEND_BLOCK,
            Event::DeleteFile(_) => EventType::DELETE_FILE,
            Event::ExecuteLoadQuery(_) => EventType::EXECUTE_LOAD_QUERY,
            Event::Unknown(kind, _) => *kind,
        }
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        use cohort_base::Write;
        match self {
            Event::FormatDescription(e) => e.encode(out),
            Event::GtidList(e) => e.encode(out),
            Event::BinlogCheckpoint(e) => e.encode(out),
            Event::Gtid(e) => e.encode(out),
            Event::Query(e) => e.encode(out),
            Event::Xid(xid) => out.put_u64(*xid),
            Event::XaPrepare(e) => e.encode(out),
            Event::Rotate(e) => e.encode(out),
            Event::Stop => {}
            Event::Intvar(e) => e.encode(out),
            Event::Rand(e) => e.encode(out),
            Event::UserVar(e) => e.encode(out),
            Event::Incident(e) => e.encode(out),
            Event::Heartbeat(e) => e.encode(out),
            Event::Annotate(e) => e.encode(out),
            Event::TableMap(e) => e.encode(out),
            Event::Rows(e) => e.encode(out),
            Event::StartEncryption(e) => e.encode(out),
            Event::BeginLoadQuery(e) | Event::AppendBlock(e) => e.encode(out),
            Event::DeleteFile(number) => out.put_u32(*number),
            Event::ExecuteLoadQuery(e) => e.encode(out),
            Event::Unknown(_, body) => out.extend_from_slice(body),
        }
    }
}
