//! The binary log in MariaDB's format: event codecs, the transaction cache, the byte stream that assigns
//! positions, the classic files written from the log, their index, reader and purge.
//!
//! | module | concept |
//! |---|---|
//! | `event` | one codec per event kind, each with its format; [`Event`] is the sum of them |
//! | `cache` | [`TrxCache`]: the events of a running transaction |
//! | `spill` | [`SpillDir`]: files for large caches; [`Sealed`]: a finished cache |
//! | `stream` | [`Stream`]: the growing binary log; assigns each event its position and checksum |
//! | `chunk` | [`Chunk`]: the place of a piece of the stream in the files, as stored in commit records |
//! | `gtid_deletion` | [`check_deletion`]: which GTID domains may be deleted |
//! | `gtid_state` | [`GtidState`]: the newest sequence number per domain and server |
//! | `files` | [`BinlogFiles`]: files and index of a directory; recovery, completion, purge |
//! | `file_writer` | [`BinlogFileWriter`]: the background writer of the files |
//! | `tail` | [`StreamTail`]: the newest durable bytes in memory, for readers that follow the stream |
//! | `pins` | [`Pins`]: files that have readers |
//! | `statement` | [`StatementDecoder`]: the BINLOG statement |
//! | `reader` | [`EventReader`]: reads the events of one file, also of the one being written |
//!
//! Path of a transaction: the session fills its [`TrxCache`] and seals it (prepare). The leader of the flush
//! group calls [`Stream::append_trx`] in CommitSeq order (order), and the bytes go into the log inside commit
//! records. When the flush has made them durable, the same bytes and chunks go to the [`BinlogFileWriter`],
//! which writes them to the files (I3).

mod cache;
mod chunk;
mod error;
pub mod event;
mod file_writer;
mod files;
mod gtid_deletion;
mod gtid_state;
mod index;
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
pub use file_writer::{BinlogFileWriter, BinlogFileWriterOptions, BinlogWriterStatus};
pub use files::{BinlogFiles, FileSize, OpenOptions, Recovered, Tail, VerifyScope};
pub use gtid_deletion::{DomainDeletion, check_deletion};
pub use gtid_state::{GtidState, SEQ_NO_MAX};
pub use name::{BinlogName, is_file_number};
pub use pins::{ClosedPins, Pin, Pins};
pub use reader::{EventReader, RawEvent};
pub use scan::verify_file;
pub use spill::{CopyPlace, Sealed, SpillDir, WritePiece};
pub use statement::{StatementDecoder, StatementError};
pub use stream::{GtidHead, Stream, StreamOptions, Written};
pub use tail::{Batch, StreamTail, TailPiece, TailRead};
