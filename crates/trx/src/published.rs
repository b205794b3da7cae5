//! Waits until a transaction is published. The session sleeps like in a lock wait, so that waiting for the
//! flush or for a replica occupies no worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cohort_base::CommitSeq;
use cohort_commit::Wake;
use cohort_locks::{KillFlag, Sleeper};
use cohort_types::SqlResult;

use crate::errors::{commit_error, lock_error};
use crate::session_trx::SessionTrx;

/// Interval of the checks whether the server has stopped, in which case no wakeup arrives.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Wakes a session when its transaction is acknowledged.
struct Alarm {
    sleeper: Arc<dyn Sleeper>,
    has_rung: AtomicBool,
}

impl Wake for Alarm {
    fn acknowledged(self: Arc<Self>) {
        self.has_rung.store(true, Ordering::Release);
        self.sleeper.wake();
    }
}

impl SessionTrx {
    /// Waits until the session's own last transaction is published.
    pub fn await_own(&self) -> SqlResult<()> {
        self.await_published(self.last_ordered(), &self.kill)
    }

    /// Waits until `seq` and everything before it is published, until KILL has lifted the reply barrier up to
    /// it, or until KILL arrives.
    pub(super) fn await_published(&self, seq: CommitSeq, kill: &KillFlag) -> SqlResult<()> {
        let commit = &self.env.commit;
        let mut alarm: Option<Arc<Alarm>> = None;
        // Everything up to `acknowledged_early` is published.
        while seq > self.acknowledged_early() && !commit.has_acknowledged(seq).map_err(commit_error)? {
            commit.lead();
            let own = match alarm.take_if(|alarm| !alarm.has_rung.load(Ordering::Acquire)) {
                Some(own) => own,
                None => {
                    let own = Arc::new(Alarm { sleeper: self.env.locks.sleeper(), has_rung: false.into() });
                    if !commit.when_acknowledged(seq, own.clone()) {
                        return Ok(());
                    }
                    own
                }
            };
            let has_rung = || own.has_rung.load(Ordering::Acquire);
            let slept = self.env.locks.sleep_until(own.sleeper.clone(), LOOK_AGAIN, kill, has_rung);
            slept.map_err(lock_error)?;
            alarm = Some(own);
        }
        Ok(())
    }
}
