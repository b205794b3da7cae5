//! A thread that flushes the commits of appliers, so that no applier waits for the disk. It also moves
//! published positions out of the waiting list when no session queries them.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use cohort_base::CommitSeq;
use cohort_commit::Coordinator;
use parking_lot::{Condvar, Mutex};

use crate::state::StateStore;

/// The thread and its requests.
pub struct Flusher {
    commit: Arc<Coordinator>,
    state: Arc<StateStore>,
    wanted: Mutex<Wanted>,
    wake: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Wanted {
    newest: CommitSeq,
    is_stopped: bool,
}

impl Flusher {
    /// Starts the thread.
    pub fn start(commit: Arc<Coordinator>, state: Arc<StateStore>) -> std::io::Result<Arc<Flusher>> {
        let flusher = Arc::new(Flusher {
            commit,
            state,
            wanted: Mutex::default(),
            wake: Condvar::new(),
            thread: Mutex::new(None),
        });
        let own = Arc::clone(&flusher);
        let thread = Builder::new().name("slave-flush".to_owned()).spawn(move || own.run())?;
        *flusher.thread.lock() = Some(thread);
        Ok(flusher)
    }

    fn run(&self) {
        let mut done = CommitSeq(0);
        loop {
            {
                let mut wanted = self.wanted.lock();
                while wanted.newest <= done && !wanted.is_stopped {
                    self.wake.wait(&mut wanted);
                }
                if wanted.is_stopped {
                    return;
                }
                done = wanted.newest;
            }
            self.flush();
        }
    }

    /// Requests a flush: a transaction was ordered as `seq`.
    pub fn note(&self, seq: CommitSeq) {
        let mut wanted = self.wanted.lock();
        wanted.newest = wanted.newest.max(seq);
        drop(wanted);
        self.wake.notify_one();
    }

    /// Flushes all ordered transactions now, because no further one is expected soon.
    pub fn flush(&self) {
        self.commit.lead();
        self.state.advance(self.commit.read_view().seq());
    }

    /// Publishes what an ending applier ordered, so that a caller that sees it ended also sees its rows.
    pub fn finish(&self) {
        // A failure of the log is reported elsewhere and stops the server.
        let _ = self.commit.flush_ordered();
        self.state.advance(self.commit.read_view().seq());
    }

    /// Stops the thread.
    pub fn stop(&self) {
        self.wanted.lock().is_stopped = true;
        self.wake.notify_one();
        if let Some(thread) = self.thread.lock().take() {
            // The panic hook has logged a panic of the thread.
            let _ = thread.join();
        }
    }
}
