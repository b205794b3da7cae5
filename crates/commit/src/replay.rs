//! Replay of redo, concurrently with reading the log: one thread passes the redo to the participants, in
//! batches and in log order.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::Scope;

use cohort_base::ParticipantId;
use cohort_engine::{Participant, Redo};

use crate::recovery_error::RecoveryError;
use crate::worker::Worker;

/// Size at which a participant's redo is handed over.
const BATCH_BYTES: usize = 1 << 20;

/// Index of the participant, and its redo in log order.
type Batch = (usize, Vec<Redo>);

/// Handle of the replay thread, for the recovery pass.
pub struct Replay<'scope> {
    participants: &'scope [Arc<dyn Participant>],
    /// Gathered redo and its size, by index of the participant.
    gathered: Vec<(Vec<Redo>, usize)>,
    worker: Worker<'scope, Batch, ()>,
}

impl<'scope> Replay<'scope> {
    /// Starts the thread; it ends with [`Replay::finish`], or when this is dropped.
    pub fn start(
        scope: &'scope Scope<'scope, '_>,
        participants: &'scope [Arc<dyn Participant>],
    ) -> Replay<'scope> {
        let run = move |batches: &Receiver<Batch>| {
            batches.iter().try_for_each(|(at, redo)| Ok(participants[at].replay(&redo)?))
        };
        Replay {
            participants,
            gathered: participants.iter().map(|_| Default::default()).collect(),
            worker: Worker::start(scope, run),
        }
    }

    /// Adds the next redo of a participant.
    pub fn add(&mut self, id: ParticipantId, redo: Redo) -> Result<(), RecoveryError> {
        let at =
            self.participants.iter().position(|p| p.id() == id).expect("the pass knows its participants");
        let (gathered, bytes) = &mut self.gathered[at];
        *bytes += redo.bytes.len();
        gathered.push(redo);
        if *bytes >= BATCH_BYTES { self.hand_over(at) } else { Ok(()) }
    }

    fn hand_over(&mut self, at: usize) -> Result<(), RecoveryError> {
        let (gathered, _) = std::mem::take(&mut self.gathered[at]);
        if gathered.is_empty() { Ok(()) } else { self.worker.give((at, gathered)) }
    }

    /// Replays what is left. At return everything is replayed.
    pub fn finish(&mut self) -> Result<(), RecoveryError> {
        (0..self.participants.len()).try_for_each(|at| self.hand_over(at))?;
        self.worker.finish()
    }
}
