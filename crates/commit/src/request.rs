//! What a transaction brings to its commit.

use cohort_base::{ConnectionId, DomainId, ParticipantId, ServerId};
use cohort_binlog::Sealed;
use cohort_engine::Redo;
use cohort_locks::LockOwner;

/// How the transaction appears in the binlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// GTID, row events, XID.
    Transaction,
    /// GTID with the flags STANDALONE and DDL, then one QUERY event.
    Ddl,
}

/// The binlog's share.
#[derive(Debug)]
pub struct BinlogPart {
    /// The events between the GTID event and the end, finished but for positions and checksums.
    pub events: Sealed,
    pub kind: GroupKind,
    pub domain: DomainId,
    pub server: ServerId,
    /// `gtid_seq_no` when the session set it; otherwise the next of the domain is taken at the order stage.
    pub seq_no: Option<u64>,
    pub connection: ConnectionId,
    /// Seconds since 1970 UTC, as in the event headers.
    pub timestamp: u32,
}

/// All that a transaction wants to become durable as one.
#[derive(Debug)]
pub struct CommitRequest {
    /// At most one per participant.
    pub redo: Vec<(ParticipantId, Redo)>,
    /// None with the binlog off, `sql_log_bin=0`, or nothing to log.
    pub binlog: Option<BinlogPart>,
    /// The row locks: released at the order stage, or at publish with early lock release off.
    pub locks: LockOwner,
}

/// A request that nothing can stop any more: room in the log is reserved, spilled events are on disk (I6). Dropping it
/// gives the room back; it has not been ordered.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) request: CommitRequest,
}
