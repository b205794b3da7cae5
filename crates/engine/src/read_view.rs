//! Read views: the set of transactions that a plain read sees.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use cohort_base::{CommitSeq, ParticipantId};

/// An engine's own handle on its state right after one CommitSeq. Dropping it releases the old versions that
/// it pins.
pub trait EngineSnapshot: Any + Send + Sync {
    /// Allows the engine that created the snapshot to downcast it.
    fn as_any(&self) -> &dyn Any;
}

/// All transactions up to one published CommitSeq, in every engine (I5). All statements that start between
/// the publication of two flush groups share one view.
#[derive(Clone)]
pub struct ReadView {
    seq: CommitSeq,
    engines: Arc<[(ParticipantId, Arc<dyn EngineSnapshot>)]>,
}

impl ReadView {
    /// Creates a view from the snapshots of all engines, taken while the order stage was held at `seq`.
    pub fn new(seq: CommitSeq, engines: Vec<(ParticipantId, Arc<dyn EngineSnapshot>)>) -> ReadView {
        ReadView { seq, engines: engines.into() }
    }

    /// Returns the newest transaction that is visible.
    pub fn seq(&self) -> CommitSeq {
        self.seq
    }

    /// Returns the snapshot of one engine.
    pub fn of(&self, engine: ParticipantId) -> &dyn EngineSnapshot {
        let found = self.engines.iter().find(|(id, _)| *id == engine);
        &*found.expect("a read view holds a snapshot of every engine of its server").1
    }
}

impl fmt::Debug for ReadView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadView({})", self.seq)
    }
}
