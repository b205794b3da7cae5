//! Housekeeping thread: timeouts, uptime, deadlines of sleeping fibers, and replacement of blocked workers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use cohort_config::{Counter, VarId};

use crate::shared::Shared;

/// Maximum time between two checks of the timeouts.
pub(crate) const SWEEP: Duration = Duration::from_millis(500);
/// Time after which a blocked worker is replaced if others are still active.
const REPLACE_AFTER: Duration = Duration::from_millis(2);
/// Time between two attempts when the maximum number of workers is reached.
const BOUND_REACHED: Duration = Duration::from_millis(50);

/// Flush duration from which an additional worker pays, because the leader is away for so long. With shorter
/// flushes it costs more than it helps (docs/lab/measurements.txt).
const LONG_FLUSH_NS: u64 = 1_000_000;

/// Starts the thread. It ends when the server stops.
pub(crate) fn start(shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
    Builder::new().name("housekeeping".into()).spawn(move || {
        let mut swept_ms = 0;
        while !shared.stopping.load(Ordering::Acquire) {
            let stall_ms = shared.globals.uint(VarId::ThreadPoolStallLimit);
            let next_due = shared.fibers.wake_due(Instant::now());
            let due = next_due.map_or(SWEEP, |due| due.saturating_duration_since(Instant::now()));
            shared.workers.wait_short(due.min(SWEEP).min(Duration::from_millis(stall_ms / 2)));
            shared.workers.replace_stalled(shared.now_ms(), stall_ms);
            shared.workers.want_more(more_workers(&shared));
            if shared.workers.is_short() {
                std::thread::sleep(REPLACE_AFTER);
                if shared.workers.is_short() && !shared.workers.top_up() {
                    std::thread::sleep(BOUND_REACHED);
                }
            }
            let now_ms = shared.now_ms();
            if now_ms >= swept_ms + SWEEP.as_millis() as u64 {
                swept_ms = now_ms;
                sweep(&shared, now_ms);
            }
        }
    })
}

/// Returns the number of workers wanted in addition to one for each core: none if thread_pool_size is set.
fn more_workers(shared: &Shared) -> usize {
    let is_given = shared.globals.uint(VarId::ThreadPoolSize) > 0;
    usize::from(!is_given && shared.backend.flush_ns() > LONG_FLUSH_NS)
}

fn sweep(shared: &Shared, now_ms: u64) {
    shared.status.put(Counter::Uptime, (now_ms - shared.started_ms) / 1000);
    for connection in shared.all() {
        connection.sweep(now_ms);
    }
}
