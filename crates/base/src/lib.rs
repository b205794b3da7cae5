//! Identifiers, byte codecs, histograms, and limits of stacks and memory, shared by all crates. No I/O, no
//! threads.

mod buckets;
mod budget;
mod codec;
mod histogram;
mod hold;
mod ids;
mod leisure;
mod no_unwind;
mod prefetch;
mod stack;

pub use buckets::{bucket_count, bucket_of, last_in_bucket};
pub use budget::{Budget, BudgetOf, OverBudget, Reservation};
pub use codec::{Reader, Truncated, Write};
pub use histogram::{Histogram, HistogramSnapshot, add_alone};
pub use hold::Hold;
pub use ids::{
    BinlogPos, CommitSeq, ConnectionId, DomainId, Gtid, IndexId, Lsn, ParseGtidError, ParticipantId,
    ServerId, TableId, TrxId, TrxIds, Xid,
};
pub use leisure::rest_after;
pub use no_unwind::NoUnwind;
pub use prefetch::prefetch;
pub use stack::{STACK_RESERVE, StackFloor, switch_stack};
