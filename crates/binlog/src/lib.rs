//! The binary log in MariaDB's format: event codecs, the transaction cache, the byte stream that positions
//! are assigned in, the classic files behind the log, their index, reader and purge.
//!
//! | module | concept |
//! |---|---|
//! | `event` | one codec per event kind, each with its bytes drawn; [`Event`] is the sum of them |
//! | `cache` | [`TrxCache`]: what a transaction gathered while it ran |
//! | `spill` | [`SpillDir`]: where a large cache goes; [`Sealed`]: the finished cache |
//! | `stream` | [`Stream`]: the growing binary log; gives every event its position and checksum |
//! | `chunk` | [`Chunk`]: where a piece of the stream belongs in the files; what commit records carry |
//! | `gtid_deletion` | [`check_deletion`]: which domains may be forgotten |
//! | `gtid_state` | [`GtidState`]: the newest sequence number per domain and server |
//! | `files` | [`BinlogFiles`]: files and index in a directory; recovery, completion, purge |
//! | `materialiser` | [`Materialiser`]: writes hardened chunks to the files behind the commits |
//! | `tail` | [`StreamTail`]: the newest hardened bytes in memory, for those who follow the stream |
//! | `pins` | [`Pins`]: files that a reader still needs |
//! | `statement` | [`StatementDecoder`]: the BINLOG statement |
//! | `reader` | [`EventReader`]: events of one file, the live one too |
//!
//! The way of a transaction: a session fills its [`TrxCache`] and seals it (prepare). The leader of the flush
//! group calls [`Stream::append_trx`] in CommitSeq order (order); the bytes go into the log inside commit
//! records. After the flush (hardened) the same bytes and chunks go to the [`Materialiser`], which writes
//! them to the files (I3).

mod cache;
mod chunk;
mod error;
pub mod event;
mod files;
mod gtid_deletion;
mod gtid_state;
mod index;
mod materialiser;
mod name;
mod pins;
mod reader;
mod scan;
mod spill;
mod statement;
mod stream;
mod tail;

pub use cache::{CacheError, CacheOptions, CachePos, RowImage, Stamp, TrxCache};
pub use chunk::{Chunk, Content, SpilledChunk, StreamOut};
pub use error::BinlogError;
pub use event::{Checksum, DecodeError, Event, EventHeader, EventType};
pub use files::{BinlogFiles, FileSize, OpenOptions, Recovered, Tail, VerifyScope};
pub use gtid_deletion::{DomainDeletion, check_deletion};
pub use gtid_state::{GtidState, SEQ_NO_MAX};
pub use materialiser::{Batch, MaterialiseStatus, Materialiser, MaterialiserOptions};
pub use name::BinlogName;
pub use pins::{ClosedPins, Pin, Pins};
pub use reader::{EventReader, RawEvent};
pub use scan::verify_file;
pub use spill::{CopyPlace, Sealed, SpillDir, WritePiece};
pub use statement::{StatementDecoder, StatementError};
pub use stream::{GtidHead, Stream, StreamOptions, Written};
pub use tail::{StreamTail, TailPiece, TailRead};
