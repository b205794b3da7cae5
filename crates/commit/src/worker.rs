//! A thread that runs concurrently with the recovery pass. It processes work items in order, and ends early
//! only with an error.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use crate::recovery_error::RecoveryError;

/// Maximum number of work items in the channel.
const WORK_MAX: usize = 4;

/// Handle of the thread, for the recovery pass.
pub struct Worker<'scope, W, T> {
    to_thread: Option<SyncSender<W>>,
    thread: Option<ScopedJoinHandle<'scope, Result<T, RecoveryError>>>,
}

impl<'scope, W: Send + 'scope, T: Send + 'scope> Worker<'scope, W, T> {
    /// Starts the thread; it ends with [`Worker::finish`], or when this is dropped.
    pub fn start(
        scope: &'scope Scope<'scope, '_>,
        run: impl FnOnce(&Receiver<W>) -> Result<T, RecoveryError> + Send + 'scope,
    ) -> Worker<'scope, W, T> {
        let (to_thread, work) = sync_channel(WORK_MAX);
        Worker { to_thread: Some(to_thread), thread: Some(scope.spawn(move || run(&work))) }
    }

    /// Sends a work item to the thread, and waits while the channel is full. Returns the thread's error if
    /// one has ended it.
    pub fn give(&mut self, work: W) -> Result<(), RecoveryError> {
        match self.to_thread.as_ref().expect("not finished").send(work) {
            Ok(()) => Ok(()),
            Err(_) => self.finish().map(|_| unreachable!("the thread ends early only with an error")),
        }
    }

    /// Waits until all work items are processed. Called once.
    pub fn finish(&mut self) -> Result<T, RecoveryError> {
        self.to_thread = None;
        match self.thread.take().expect("not finished").join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}
