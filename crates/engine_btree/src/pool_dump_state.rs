//! State of the dump and the load of the buffer pool.

use std::time::Duration;

use cohort_engine::{PoolDumpState, PoolDumpStates};
use cohort_vfs::SharedFs;

use crate::sync::{AtomicBool, Mutex, Ordering};

/// Pause of a load while sessions wait for reads, and of a wait for its end.
pub const PAUSE: Duration = Duration::from_millis(1);

/// State of dump and load.
pub struct PoolDump {
    pub fs: SharedFs,
    pub state: Mutex<PoolDumpStates>,
    pub is_aborted: AtomicBool,
}

impl PoolDump {
    /// Creates the state before any request.
    pub fn new(fs: SharedFs) -> PoolDump {
        PoolDump { fs, state: Mutex::default(), is_aborted: AtomicBool::new(false) }
    }

    /// Returns the progress of dump and load.
    pub fn state(&self) -> PoolDumpStates {
        self.state.lock().clone()
    }

    pub fn set_load(&self, load: PoolDumpState) {
        self.state.lock().load = load;
    }

    /// Aborts a load and waits until it has ended.
    pub fn end(&self) {
        self.is_aborted.store(true, Ordering::SeqCst);
        while matches!(self.state.lock().load, PoolDumpState::Running { .. }) {
            std::thread::sleep(PAUSE);
        }
    }

    /// Starts a load. Returns false if one is running.
    pub fn begin_load(&self) -> bool {
        let mut state = self.state.lock();
        if matches!(state.load, PoolDumpState::Running { .. }) {
            return false;
        }
        self.is_aborted.store(false, Ordering::SeqCst);
        state.load = PoolDumpState::Running { done: 0, of: 0 };
        true
    }
}
