//! Which transactions a plain read sees.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use cohort_base::{CommitSeq, ParticipantId};

/// An engine's own handle on its state right after one CommitSeq. Dropping it frees what it pins.
pub trait EngineSnapshot: Any + Send + Sync {
    /// For the engine that made it to get its own type back.
    fn as_any(&self) -> &dyn Any;
}

/// All transactions up to one published CommitSeq, over every engine (I5). Shared by all who start in the
/// same interval between two flush groups.
#[derive(Clone)]
pub struct ReadView {
    seq: CommitSeq,
    engines: Arc<[(ParticipantId, Arc<dyn EngineSnapshot>)]>,
}

impl ReadView {
    /// A view over the snapshots of all engines, taken while the order stage was held at `seq`.
    pub fn new(seq: CommitSeq, engines: Vec<(ParticipantId, Arc<dyn EngineSnapshot>)>) -> ReadView {
        ReadView { seq, engines: engines.into() }
    }

    /// The newest transaction that is visible.
    pub fn seq(&self) -> CommitSeq {
        self.seq
    }

    /// The part of one engine.
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
