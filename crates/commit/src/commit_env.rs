//! The interfaces of the pipeline: the methods of [`CommitEnv`] do the work of the stages, a [`Wake`] is
//! notified when a transaction is acknowledged.

use std::sync::Arc;

use cohort_base::{CommitSeq, ConnectionId};

use crate::group_commit::ClientCommits;
use crate::stage::{Durable, Gate, Ordered, Point};

/// The work of the stages. Each method is called by the thread that holds the stage.
pub trait CommitEnv: Send + Sync {
    /// A transaction with its redo, events and locks.
    type Trx: Send;
    /// The snapshot of the state right after a group.
    type GroupSnapshot: Send;
    /// A group's state between its write and its decision.
    type Written: Send;
    /// The error of a failed log.
    type Error: Clone + Send;

    /// The waiters that were granted a lock at the order stage. They are woken when this is dropped, after
    /// the order stage was released.
    type Wakeups;

    /// Orders a batch: engines apply, GTIDs are assigned, locks are released (with early release). Called in
    /// CommitSeq order, for the whole batch together; must not fail or block.
    fn order(&self, batch: &mut [Ordered<Self::Trx>]) -> Self::Wakeups;

    /// Has the engines ingest the transaction's staged writes, and releases its locks. The order stage is
    /// held and the transaction is durable. Must not fail.
    fn apply_staged(&self, trx: &mut Ordered<Self::Trx>) -> Self::Wakeups;

    /// Takes the group's snapshot. The order stage is held, and everything ordered is in the group that ends
    /// with `last`.
    fn snapshot(&self, last: CommitSeq) -> Self::GroupSnapshot;

    /// Writes the group into the log buffer: commit ids, binlog positions, records. Called by the leader.
    /// Must not fail (space was reserved).
    fn write(&self, group: &mut [Ordered<Self::Trx>]) -> Self::Written;

    /// Syncs what the leader has written. The group is then durable, unless it has yet to be decided.
    fn sync(&self, written: &mut Self::Written) -> Result<(), Self::Error>;

    /// Returns whether a synced group has yet to be decided, and the next one may be written and synced
    /// meanwhile.
    fn overlaps(&self, written: &Self::Written) -> bool {
        let _ = written;
        false
    }

    /// Makes a synced group durable, if it is not yet. Called in group order, with the decision stage held.
    fn decide(&self, written: &mut Self::Written) -> Result<(), Self::Error> {
        let _ = written;
        Ok(())
    }

    /// Passes on the binlog bytes of a durable group: from now on files and replicas may have them (I3).
    /// Called in group order, with the decision stage held.
    fn made_durable(
        &self,
        group: &[Durable<Self::Trx>],
        written: Self::Written,
        snapshot: &mut Self::GroupSnapshot,
    ) {
        let _ = (group, written, snapshot);
    }

    /// Returns whether a durable group has to wait at this gate. Must be quick. Called again for every group
    /// and at [`Pipeline::gate_opened`](crate::Pipeline::gate_opened).
    fn holds(&self, gate: Gate, snapshot: &Self::GroupSnapshot) -> bool {
        let _ = (gate, snapshot);
        false
    }

    /// Returns whether durable groups may be held at a gate at all.
    fn has_gate(&self) -> bool {
        false
    }

    /// Makes the group visible to plain reads. Called in group order.
    fn publish(&self, group: &mut [Durable<Self::Trx>], snapshot: &mut Self::GroupSnapshot);

    /// Records that the group has passed a gate. Called in group order.
    fn passed(&self, gate: Gate, group: &[Durable<Self::Trx>], snapshot: &mut Self::GroupSnapshot) {
        let _ = (gate, group, snapshot);
    }

    /// Records how long it took to notify the clients of this number of transactions.
    fn notified(&self, transactions: usize, ns: u64) {
        let _ = (transactions, ns);
    }

    /// Handles the failure of the log: nothing after this is durable. The server's implementation ends the
    /// process.
    fn stop(&self, error: &Self::Error);

    /// Returns nanoseconds since an arbitrary start.
    fn now_ns(&self) -> u64;

    /// Returns whether a transaction waits for a row lock that a queued transaction still holds (early
    /// release off).
    fn is_waited_for(&self, queue: &[Ordered<Self::Trx>]) -> bool {
        let _ = queue;
        false
    }

    /// Returns the commit history of the transaction's connection, if it came from one.
    fn client<'a>(&self, trx: &'a Self::Trx) -> Option<&'a ClientCommits> {
        let _ = trx;
        None
    }

    /// Marks a failpoint.
    fn reached(&self, point: Point) {
        let _ = point;
    }
}

/// A waiter for the acknowledgement of a transaction. It is notified once, must be quick, and must not call
/// the waiting functions of the pipeline.
pub trait Wake: Send + Sync {
    /// Notifies that the transaction, and everything before it, is durable, published, and held by no gate.
    fn acknowledged(self: Arc<Self>);

    /// Returns the connection whose reply waits. `None` if the waiter is not a reply; KILL of a client then
    /// ignores it.
    fn replies_to(&self) -> Option<ConnectionId> {
        None
    }
}

/// The log failed or the server is stopping: unacknowledged transactions may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;
