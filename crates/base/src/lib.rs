//! Identifiers, byte codecs and histograms shared by every crate. No I/O, no threads.

mod codec;
mod histogram;
mod ids;

pub use codec::{Reader, Truncated, Write};
pub use histogram::{Histogram, HistogramSnapshot, add_alone};
pub use ids::{
    BinlogPos, CommitSeq, ConnectionId, DomainId, Gtid, IndexId, Lsn, ParseGtidError, ParticipantId,
    ServerId, TableId, TrxId, Xid,
};
