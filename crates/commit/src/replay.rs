//! Replay beside the reading of the log: one thread gives the redo to the participants, in batches and in log
//! order, while the recovery pass reads on and completes the binlog files.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use cohort_base::ParticipantId;
use cohort_engine::{EngineError, Participant, Redo};

/// A participant's redo is handed over at this size.
const BATCH_BYTES: usize = 1 << 20;
/// Batches on their way.
const BATCHES_MAX: usize = 4;

/// Which participant, and its redo in log order.
type Batch = (usize, Vec<Redo>);

/// The recovery pass' end of the replay.
pub struct Replay<'scope> {
    participants: &'scope [Arc<dyn Participant>],
    /// By place among the participants: redo gathered, and its bytes.
    gathered: Vec<(Vec<Redo>, usize)>,
    to_thread: Option<SyncSender<Batch>>,
    thread: Option<ScopedJoinHandle<'scope, Result<(), EngineError>>>,
}

impl<'scope> Replay<'scope> {
    /// Starts the thread; it ends with [`Replay::finish`], or when this is dropped.
    pub fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        participants: &'scope [Arc<dyn Participant>],
    ) -> Replay<'scope> {
        let (to_thread, batches) = sync_channel(BATCHES_MAX);
        let thread = scope.spawn(move || replay(participants, &batches));
        Replay {
            participants,
            gathered: participants.iter().map(|_| Default::default()).collect(),
            to_thread: Some(to_thread),
            thread: Some(thread),
        }
    }

    /// The next redo of a participant.
    pub fn add(&mut self, id: ParticipantId, redo: Redo) -> Result<(), EngineError> {
        let at =
            self.participants.iter().position(|p| p.id() == id).expect("the pass knows its participants");
        let (gathered, bytes) = &mut self.gathered[at];
        *bytes += redo.bytes.len();
        gathered.push(redo);
        if *bytes >= BATCH_BYTES { self.hand_over(at) } else { Ok(()) }
    }

    fn hand_over(&mut self, at: usize) -> Result<(), EngineError> {
        let (gathered, _) = std::mem::take(&mut self.gathered[at]);
        let to_thread = self.to_thread.as_ref().expect("not finished");
        match gathered.is_empty() || to_thread.send((at, gathered)).is_ok() {
            true => Ok(()),
            // The thread has ended, which it does only with an error.
            false => self.join(),
        }
    }

    /// Replays what is left; at return all of it is done.
    pub fn finish(&mut self) -> Result<(), EngineError> {
        (0..self.participants.len()).try_for_each(|at| self.hand_over(at))?;
        self.join()
    }

    fn join(&mut self) -> Result<(), EngineError> {
        self.to_thread = None;
        match self.thread.take().map(ScopedJoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

fn replay(participants: &[Arc<dyn Participant>], batches: &Receiver<Batch>) -> Result<(), EngineError> {
    batches.iter().try_for_each(|(at, redo)| participants[at].replay(&redo))
}
