//! Identifiers and byte codecs shared by every crate. No I/O, no threads.

mod codec;
mod ids;

pub use codec::{Reader, Truncated, Write};
pub use ids::{
    BinlogPos, CommitSeq, ConnectionId, DomainId, Gtid, IndexId, Lsn, ParseGtidError, ParticipantId,
    ServerId, TableId, TrxId, Xid,
};
