//! A thread that flushes one log on request, so that a leader can sync several logs concurrently.
//!
//! Only one leader makes requests at a time, and it waits for the result before the next request. The thread
//! ends with its owner.

use std::sync::Arc;
use std::thread::JoinHandle;

use cohort_base::{AbortOnUnwind, Lsn};
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

/// The sync thread of a log.
pub struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// A requested flush.
pub struct Asked<'s>(&'s Shared);

impl Syncer {
    /// Starts the thread.
    pub fn start(log: Arc<Log>) -> Syncer {
        let shared = Arc::new(Shared { state: Mutex::new(State::Idle), changed: Condvar::new() });
        let of_thread = Arc::clone(&shared);
        let run = move || {
            // A panic must end the process: the leader would wait for ever.
            let guard = AbortOnUnwind::during("a flush of an engine's log");
            while of_thread.wait_until_asked() {
                of_thread.put(State::Done(log.flush()));
            }
            guard.disarm();
        };
        let thread =
            std::thread::Builder::new().name("log-sync".to_owned()).spawn(run).expect("a thread at start");
        Syncer { shared, thread: Some(thread) }
    }

    /// Requests a flush of the log. The caller must wait for the result.
    pub fn ask(&self) -> Asked<'_> {
        self.shared.put(State::Asked);
        Asked(&self.shared)
    }
}

impl Asked<'_> {
    /// Waits for the flush. At return everything appended before the request is durable.
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

    /// Waits for a request. Returns false if the thread has to end.
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
            // A panic of the thread has ended the process.
            let _ = thread.join();
        }
    }
}
