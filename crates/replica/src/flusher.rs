//! Flushes what appliers have ordered: a thread of its own, so that no applier waits for the disk. Positions
//! that are published thereby leave the queue of those that are not, also when nobody asks for them.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use cohort_base::CommitSeq;
use cohort_commit::Coordinator;
use parking_lot::{Condvar, Mutex};

use crate::state::StateStore;

/// The thread and what it is told.
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

    /// This was ordered.
    pub fn note(&self, seq: CommitSeq) {
        let mut wanted = self.wanted.lock();
        wanted.newest = wanted.newest.max(seq);
        drop(wanted);
        self.wake.notify_one();
    }

    /// Nothing more comes for a while: what is ordered is flushed now.
    pub fn flush(&self) {
        self.commit.lead();
        self.state.settle(self.commit.read_view().seq());
    }

    /// An applier ends: what it ordered is published, so that a caller that sees it ended finds its rows.
    pub fn finish(&self) {
        // A server that stops says so elsewhere.
        let _ = self.commit.flush_ordered();
        self.state.settle(self.commit.read_view().seq());
    }

    /// Ends the thread.
    pub fn stop(&self) {
        self.wanted.lock().is_stopped = true;
        self.wake.notify_one();
        if let Some(thread) = self.thread.lock().take() {
            // Its panic was told by the panic hook.
            let _ = thread.join();
        }
    }
}
