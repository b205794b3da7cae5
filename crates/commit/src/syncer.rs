//! A thread that flushes one log whenever it is asked, so that a leader syncs several logs at once.
//!
//! One leader asks at a time, and waits for the answer before the next asks. The thread ends with its owner.

use std::sync::Arc;
use std::thread::JoinHandle;

use cohort_base::{Lsn, NoUnwind};
use cohort_log::{Log, LogError};
use parking_lot::{Condvar, Mutex};

enum State {
    Idle,
    Asked,
    Done(Result<Lsn, LogError>),
    Ending,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// The thread of a log.
pub struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// A flush that was asked for.
pub struct Asked<'s>(&'s Shared);

impl Syncer {
    /// Starts the thread.
    pub fn start(log: Arc<Log>) -> Syncer {
        let shared = Arc::new(Shared { state: Mutex::new(State::Idle), changed: Condvar::new() });
        let of_thread = Arc::clone(&shared);
        let run = move || {
            // Without it the leader would wait for ever.
            let guard = NoUnwind::during("a flush of an engine's log");
            while of_thread.wait_until_asked() {
                of_thread.put(State::Done(log.flush()));
            }
            guard.passed();
        };
        let thread =
            std::thread::Builder::new().name("log-sync".to_owned()).spawn(run).expect("a thread at start");
        Syncer { shared, thread: Some(thread) }
    }

    /// Has the log flushed; the answer must be waited for.
    pub fn ask(&self) -> Asked<'_> {
        self.shared.put(State::Asked);
        Asked(&self.shared)
    }
}

impl Asked<'_> {
    /// What was appended before the flush was asked for is hardened at return.
    pub fn wait(self) -> Result<Lsn, LogError> {
        let mut state = self.0.state.lock();
        loop {
            match std::mem::replace(&mut *state, State::Idle) {
                State::Done(outcome) => return outcome,
                other => *state = other,
            }
            self.0.changed.wait(&mut state);
        }
    }
}

impl Shared {
    fn put(&self, state: State) {
        *self.state.lock() = state;
        self.changed.notify_all();
    }

    /// False: the thread ends.
    fn wait_until_asked(&self) -> bool {
        let mut state = self.state.lock();
        loop {
            match *state {
                State::Asked => return true,
                State::Ending => return false,
                State::Idle | State::Done(_) => self.changed.wait(&mut state),
            }
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.shared.put(State::Ending);
        if let Some(thread) = self.thread.take() {
            // Its panic ends the process.
            let _ = thread.join();
        }
    }
}
