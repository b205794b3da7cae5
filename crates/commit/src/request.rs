//! The input of a commit: a transaction's redo, binlog events and locks.

use std::sync::Arc;

use cohort_base::{CommitSeq, DomainId, Gtid, ParticipantId, ServerId, Xid};
use cohort_binlog::Sealed;
use cohort_binlog::event::XaXid;
use cohort_engine::{Redo, StagedRedo};
use cohort_locks::{LockOwner, WritePermit};

use crate::group_commit::ClientCommits;
use crate::metrics::StageTrace;
use crate::reservations::TrxReservations;
use crate::stage;

/// Form of the transaction in the binlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// GTID, row events, XID.
    Transaction,
    /// GTID with the flags STANDALONE and DDL, then one QUERY event.
    Ddl,
    /// GTID with the flag STANDALONE, then one QUERY event.
    Statement,
    /// First half of an XA transaction: GTID with the flag PREPARED_XA, row events, XA END, XA_PREPARE.
    XaPrepare,
    /// Second half of an XA transaction: GTID with the flags STANDALONE and COMPLETED_XA, then XA COMMIT or
    /// XA ROLLBACK.
    XaEnd,
}

/// Hints in the GTID event for replicas that apply in parallel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GtidHints {
    /// The transaction waited for a row lock (flag WAITED).
    pub has_waited: bool,
    /// `skip_parallel_replication`: replicas must not apply it in parallel (flag ALLOW_PARALLEL absent).
    pub is_alone: bool,
    /// Flags in the common header of the GTID and XID events, for example SKIP_REPLICATION.
    pub event_flags: u16,
}

/// A transaction's part of the binlog.
#[derive(Debug)]
pub struct BinlogPart {
    /// The events between the GTID event and the end, complete except for positions and checksums.
    pub events: Sealed,
    pub kind: GroupKind,
    /// The XA transaction, for the two XA kinds.
    pub xa: Option<Box<XaXid>>,
    pub domain: DomainId,
    pub server: ServerId,
    /// `gtid_seq_no`, if the session has set it; otherwise the domain's next number is assigned at the order
    /// stage.
    pub seq_no: Option<u64>,
    /// Further hints in the GTID event for replicas.
    pub hints: GtidHints,
    /// Seconds since 1970 UTC, as in the event headers.
    pub timestamp: u32,
}

/// Everything of a transaction that becomes durable together.
pub struct CommitRequest {
    /// At most one per participant.
    pub redo: Vec<(ParticipantId, Redo)>,
    /// `None` with the binlog off, `sql_log_bin=0`, or nothing to log.
    pub binlog: Option<BinlogPart>,
    /// With early lock release, row locks are released at the order stage. All other locks are released when
    /// the published and acknowledged transaction is dropped.
    pub locks: LockOwner,
    /// Proof that no server-wide lock blocks this commit.
    pub permit: WritePermit,
    /// The connection's commit history, for the group-commit policy; one per session, `None` for the server's
    /// own transactions.
    pub client: Option<Arc<ClientCommits>>,
}

impl CommitRequest {
    /// Returns where the steps are traced, if they are.
    #[inline]
    pub(crate) fn trace(&self) -> Option<&StageTrace> {
        self.client.as_deref().map(|client| &client.trace).filter(|trace| trace.is_on())
    }
}

/// Redo that is too large for a log record, in a file that is durable before the transaction is ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpilledRedo {
    /// File name in the spill directory.
    pub name: String,
    pub bytes: u64,
    /// CRC-32C of the file.
    pub crc: u32,
}

/// A prepared transaction in the pipeline.
pub struct Trx {
    pub(crate) request: CommitRequest,
    /// For each element of `request.redo`, its spill file, if it is not in the record itself.
    pub(crate) spilled: Vec<Option<SpilledRedo>>,
    /// Redo that its participant ingests outside of the normal order stage.
    pub(crate) staged: Vec<(ParticipantId, Box<dyn StagedRedo>)>,
    /// Log reservations, used when the records are written.
    pub(crate) reserved: TrxReservations,
    /// Assigned at the order stage.
    pub(crate) gtid: Option<Gtid>,
    pub(crate) xid: Xid,
    /// The newest transaction that released a row lock which this one took (I8), read before this one
    /// releases its locks.
    pub(crate) depends_on: CommitSeq,
    /// When it reached its present state, prepared or ordered, by the clock of the metrics.
    pub(crate) since_ns: u64,
}

/// A request that can no longer fail: its log space is reserved, and its spill files are durable (I6). If it
/// is dropped before it is ordered, the reservation is returned.
pub type Prepared = stage::Prepared<Trx>;
