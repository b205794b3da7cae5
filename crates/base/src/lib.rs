//! Identifiers, byte codecs, histograms, and limits of stacks and memory, shared by all crates. No I/O, no
//! threads.

mod abort_on_unwind;
mod buckets;
mod budget;
mod codec;
mod engine_work;
mod histogram;
mod ids;
mod pace;
mod processor;
mod reply_barrier;
mod stack;
mod whole_chars;

pub use abort_on_unwind::AbortOnUnwind;
pub use buckets::{bucket_count, bucket_of, last_in_bucket};
pub use budget::{Budget, BudgetOf, OverBudget, Reservation};
pub use codec::{Reader, Truncated, Write};
pub use engine_work::EngineWork;
pub use histogram::{Histogram, HistogramSnapshot, add_alone};
pub use ids::{
    BinlogPos, CommitSeq, ConnectionId, DomainId, Gtid, IndexId, Lsn, ParseGtidError, ParticipantId,
    ServerId, TableId, TrxId, TrxIds, Xid,
};
pub use pace::{Pace, Progress};
pub use processor::{prefetch, throttle_pause};
pub use reply_barrier::ReplyBarrier;
pub use stack::{STACK_RESERVE, StackFloor, switch_stack};
pub use whole_chars::whole_chars;
