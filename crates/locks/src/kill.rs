//! KILL: the flag of a session, checked by its statements.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cohort_base::EngineWork;

use crate::sleep::Sleeper;
use crate::sync::{AtomicU8, AtomicU64, Mutex, Ordering};

/// Scope of a KILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KillLevel {
    /// `KILL QUERY`: the running statement.
    Query,
    /// `KILL`: the connection.
    Connection,
}

/// KILL flag of a session. KILL sets it and wakes the statement if it sleeps; the statement checks it. Clones
/// share one flag.
#[derive(Clone, Default)]
pub struct KillFlag {
    inner: Arc<KillInner>,
}

#[derive(Default)]
struct KillInner {
    /// 0, or 1 + level.
    level: AtomicU8,
    /// Wait slot in which the statement sleeps now.
    sleeper: Mutex<Option<Arc<dyn Sleeper>>>,
    /// Start of the current lock wait, if there is one.
    waiting_since: Mutex<Option<Instant>>,
    /// Nanoseconds of all lock waits that have ended.
    waited_ns: AtomicU64,
}

impl KillFlag {
    /// Sets the flag and wakes the sleeper. A higher level replaces a lower one.
    pub fn kill(&self, level: KillLevel) {
        self.inner.level.fetch_max(1 + level as u8, Ordering::SeqCst);
        let sleeper = self.inner.sleeper.lock().clone();
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }

    /// Returns the level of the kill, if any.
    pub fn killed(&self) -> Option<KillLevel> {
        match self.inner.level.load(Ordering::SeqCst) {
            0 => None,
            1 => Some(KillLevel::Query),
            _ => Some(KillLevel::Connection),
        }
    }

    /// Clears a `KILL QUERY`, at the start of the next statement.
    pub fn clear_query(&self) {
        let query = 1 + KillLevel::Query as u8;
        // Fails if there was none, or if the connection was killed: that kill stays.
        let _ = self.inner.level.compare_exchange(query, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Returns how long the statement has been waiting for a lock, `None` if it does not wait.
    pub fn waited_for_lock(&self) -> Option<Duration> {
        self.inner.waiting_since.lock().map(|since| since.elapsed())
    }

    /// Records that a lock wait begins or ends.
    pub(crate) fn set_waiting_since(&self, since: Option<Instant>) {
        let before = std::mem::replace(&mut *self.inner.waiting_since.lock(), since);
        if let (Some(before), None) = (before, since) {
            let ns = before.elapsed().as_nanos() as u64;
            self.inner.waited_ns.fetch_add(ns, Ordering::Relaxed);
            EngineWork::lock_waited(ns);
        }
    }

    /// Returns the nanoseconds that the session's statements have waited for locks.
    pub fn waited_ns(&self) -> u64 {
        self.inner.waited_ns.load(Ordering::Relaxed)
    }

    /// Registers the wait slot before the statement sleeps. The statement checks [`KillFlag::killed`]
    /// afterwards.
    pub(crate) fn set_sleeper(&self, sleeper: Option<Arc<dyn Sleeper>>) {
        *self.inner.sleeper.lock() = sleeper;
    }
}
