//! The seams of the pipeline: what the stages do ([`CommitEnv`]), and who is told when a transaction is
//! through ([`Wake`]).

use std::sync::Arc;

use cohort_base::{CommitSeq, ConnectionId};

use crate::pace::ClientPace;
use crate::stage::{Gate, Hardened, Ordered, Point};

/// What the stages do. Calls come from the thread that holds the stage.
pub trait CommitEnv: Send + Sync {
    /// A transaction with all it brings.
    type Trx: Send;
    /// The state right after a group.
    type Boundary: Send;
    /// What a group leaves between its write and its hardening.
    type Written: Send;
    /// Why the log failed.
    type Error: Clone + Send;

    /// The waiters that were given a lock at the order stage. Dropping it wakes them; that happens with the
    /// order stage free again.
    type Wakeups;

    /// Order stage: engines apply, GTIDs are given, locks go (with early release). In order, all at once;
    /// must not fail or block.
    fn order(&self, batch: &mut [Ordered<Self::Trx>]) -> Self::Wakeups;

    /// The order stage is held and the transaction is hardened: engines ingest what they have staged, and the
    /// transaction's locks go. Must not fail.
    fn apply_staged(&self, trx: &mut Ordered<Self::Trx>) -> Self::Wakeups;

    /// Order stage is held and everything ordered is in the group that ends with `last`.
    fn boundary(&self, last: CommitSeq) -> Self::Boundary;

    /// The leader puts the group into the log buffer: commit ids, binlog positions, records. Must not fail
    /// (room was reserved).
    fn write(&self, group: &mut [Ordered<Self::Trx>]) -> Self::Written;

    /// The leader syncs what it has written. The group is hardened, unless it has yet to be decided.
    fn sync(&self, written: &mut Self::Written) -> Result<(), Self::Error>;

    /// Whether a group that is synced has yet to be decided, and the next one may be written and synced
    /// meanwhile.
    fn overlaps(&self, written: &Self::Written) -> bool {
        let _ = written;
        false
    }

    /// The decider hardens a synced group, if it is not hardened yet. In order.
    fn decide(&self, written: &mut Self::Written) -> Result<(), Self::Error> {
        let _ = written;
        Ok(())
    }

    /// The decider has hardened the group: its binlog bytes may be shown to files and replicas (I3). In
    /// order.
    fn hardened(&self, group: &[Hardened<Self::Trx>], written: Self::Written, boundary: &mut Self::Boundary) {
        let _ = (group, written, boundary);
    }

    /// Whether a hardened group has to wait at this gate. Quick; asked again at every group and at
    /// [`Pipeline::gate_opened`].
    fn holds(&self, gate: Gate, boundary: &Self::Boundary) -> bool {
        let _ = (gate, boundary);
        false
    }

    /// Whether hardened groups may be held at all.
    fn has_gate(&self) -> bool {
        false
    }

    /// Plain reads see the group from now on; locks that were kept until now go. In order.
    fn publish(&self, group: &mut [Hardened<Self::Trx>], boundary: &mut Self::Boundary);

    /// The group leaves the last gate; its clients are told next. In order.
    fn released(&self, group: &[Hardened<Self::Trx>], boundary: &mut Self::Boundary) {
        let _ = (group, boundary);
    }

    /// Telling the clients of so many transactions took so long.
    fn told(&self, transactions: usize, ns: u64) {
        let _ = (transactions, ns);
    }

    /// The log failed: nothing after this is durable. The real one ends the process.
    fn stop(&self, error: &Self::Error);

    /// Nanoseconds since some moment.
    fn now_ns(&self) -> u64;

    /// Whether somebody waits for a row lock that a transaction of the queue still holds (early release off).
    fn is_waited_for(&self, queue: &[Ordered<Self::Trx>]) -> bool {
        let _ = queue;
        false
    }

    /// The pace's memory of the connection a transaction came from, if it came from one.
    fn client<'a>(&self, trx: &'a Self::Trx) -> Option<&'a ClientPace> {
        let _ = trx;
        None
    }

    /// A failpoint.
    fn reached(&self, point: Point) {
        let _ = point;
    }
}

/// Told once that the awaited transaction's client may be told. Quick, and does not call back into the
/// pipeline's waiting.
pub trait Wake: Send + Sync {
    /// The transaction, and everything before it, is hardened, published, and held by no gate.
    fn acknowledged(self: Arc<Self>);

    /// The connection whose reply waits; none: something else waits for the transaction, and KILL of a client
    /// passes it over.
    fn replies_to(&self) -> Option<ConnectionId> {
        None
    }
}

/// The log failed or the server is stopping: what is not acknowledged yet may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;
