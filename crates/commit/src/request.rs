//! What a transaction brings to its commit.

use std::sync::Arc;

use cohort_base::{CommitSeq, DomainId, Gtid, ParticipantId, ServerId, Xid};
use cohort_binlog::Sealed;
use cohort_binlog::event::XaXid;
use cohort_engine::{Redo, StagedRedo};
use cohort_locks::{LockOwner, WritePermit};

use crate::logs::Rooms;
use crate::pace::ClientPace;
use crate::stage;

/// How the transaction appears in the binlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// GTID, row events, XID.
    Transaction,
    /// GTID with the flags STANDALONE and DDL, then one QUERY event.
    Ddl,
    /// The same without the flag DDL.
    Statement,
    /// The first half of an XA transaction: GTID with the flag PREPARED_XA, row events, XA END, XA_PREPARE.
    XaPrepare,
    /// The second: GTID with the flags STANDALONE and COMPLETED_XA, then XA COMMIT or XA ROLLBACK.
    XaEnd,
}

/// What the GTID event tells replicas that apply in parallel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GtidHints {
    /// The transaction waited for a row lock (flag WAITED).
    pub has_waited: bool,
    /// `skip_parallel_replication`: to be applied alone (flag ALLOW_PARALLEL absent).
    pub is_alone: bool,
    /// Flags of the common header, of GTID and XID events; SKIP_REPLICATION belongs here.
    pub event_flags: u16,
}

/// The binlog's share.
#[derive(Debug)]
pub struct BinlogPart {
    /// The events between the GTID event and the end, finished but for positions and checksums.
    pub events: Sealed,
    pub kind: GroupKind,
    /// Whose half the group is, with the kinds of XA.
    pub xa: Option<Box<XaXid>>,
    pub domain: DomainId,
    pub server: ServerId,
    /// `gtid_seq_no` when the session set it; otherwise the next of the domain is taken at the order stage.
    pub seq_no: Option<u64>,
    /// What the GTID event tells replicas besides.
    pub hints: GtidHints,
    /// Seconds since 1970 UTC, as in the event headers.
    pub timestamp: u32,
}

/// All that a transaction wants to become durable as one.
pub struct CommitRequest {
    /// At most one per participant.
    pub redo: Vec<(ParticipantId, Redo)>,
    /// None with the binlog off, `sql_log_bin=0`, or nothing to log.
    pub binlog: Option<BinlogPart>,
    /// Row locks are released at the order stage, or at publish with early lock release off; metadata locks
    /// at publish.
    pub locks: LockOwner,
    /// Proof that no lock that keeps commits out of the server is held against this one.
    pub permit: WritePermit,
    /// The connection's memory for the pace of groups; one per session, none for the server's own
    /// transactions.
    pub client: Option<Arc<ClientPace>>,
}

/// Redo too large for a log record, in a file that is durable before the transaction is ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpilledRedo {
    /// File name in the spill directory.
    pub name: String,
    pub bytes: u64,
    /// CRC-32C of the file.
    pub crc: u32,
}

/// A prepared transaction on its way through the pipeline.
pub struct Trx {
    pub(crate) request: CommitRequest,
    /// Beside `request.redo`, by place: where the log finds redo that is not in the record itself.
    pub(crate) spilled: Vec<Option<SpilledRedo>>,
    /// Redo that its participant takes in outside of the order stage.
    pub(crate) staged: Vec<(ParticipantId, Box<dyn StagedRedo>)>,
    /// Room in the logs, taken when the records are written.
    pub(crate) rooms: Rooms,
    /// Given at the order stage.
    pub(crate) gtid: Option<Gtid>,
    pub(crate) xid: Xid,
    /// Predecessor of a row lock (I8), read before the locks go.
    pub(crate) depends_on: CommitSeq,
    /// When it reached its present state, prepared or ordered, by the clock of the metrics.
    pub(crate) since_ns: u64,
}

/// A request that nothing can stop any more: room in the log is reserved, what was spilled is durable (I6).
/// Dropping it gives the room back; it was not ordered.
pub type Prepared = stage::Prepared<Trx>;
