//! The sampler: a thread that reads the server's figures every second and adds them to the history.
//!
//! # Failure
//! The history's file reports its failures itself, once (`cohort_observe::HistoryFile`). A tick that comes
//! late makes a longer slot; ticks that were missed are not made up for.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use cohort_observe::{History, HistoryFile, TopStatements};
use cohort_vfs::SharedFs;
use parking_lot::{Condvar, Mutex};

use super::readings::Readings;
use crate::error_log::ErrorLog;

const TICK: Duration = Duration::from_secs(1);

/// The running sampler. Dropping it stops it, and makes the file durable.
pub(super) struct Sampler {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Opens the file, and starts the thread.
    pub fn start(
        (readings, history, log): (Arc<Readings>, Arc<History>, ErrorLog),
        (fs, path): (SharedFs, &Path),
    ) -> io::Result<Sampler> {
        let (mut file, warning) = HistoryFile::open(fs, path, &history);
        if path.exists() {
            std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
        }
        let warn = move |text: String| log.warning(format_args!("{text}"));
        warning.into_iter().for_each(&warn);
        let stop: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let own = Arc::clone(&stop);
        let thread = Builder::new().name("sampler".into()).spawn(move || {
            let mut top = TopStatements::default();
            top.walk(readings.statements());
            let mut next = Instant::now();
            while !sleep_until(&own, next) {
                let reading = readings.take();
                let now_ns = reading.monotonic_ns;
                for (tier, slot) in history.tick(reading, || top.walk(readings.statements())) {
                    file.put(&history, tier, &slot, now_ns).into_iter().for_each(&warn);
                }
                next = (next + TICK).max(Instant::now());
            }
            if let Err(error) = file.sync() {
                warn(format!("Cannot write the history of figures: {error}"));
            }
        })?;
        Ok(Sampler { stop, thread: Some(thread) })
    }
}

/// Sleeps until a moment. Returns whether to stop.
fn sleep_until(stop: &(Mutex<bool>, Condvar), moment: Instant) -> bool {
    let mut is_over = stop.0.lock();
    while !*is_over && !stop.1.wait_until(&mut is_over, moment).timed_out() {}
    *is_over
}

impl Drop for Sampler {
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported its panic.
            let _ = thread.join();
        }
    }
}
