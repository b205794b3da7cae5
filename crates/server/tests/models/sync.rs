//! Replaces `crate::sync` in the files under check: the scheduler's locks with parking_lot's interface.

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::Duration;

use shuttle::rand::Rng;
use shuttle::sync as shuttled;

pub(crate) use shuttle::sync::atomic;
pub(crate) use shuttle::{thread, thread_local};

#[derive(Default)]
pub(crate) struct Mutex<T>(shuttled::Mutex<T>);

/// The inner guard is missing only during a wait for a condition.
pub(crate) struct MutexGuard<'a, T> {
    lock: &'a shuttled::Mutex<T>,
    inner: Option<shuttled::MutexGuard<'a, T>>,
}

const HELD: &str = "the guard is given away while waiting only";

impl<T> Mutex<T> {
    pub fn new(value: T) -> Mutex<T> {
        Mutex(shuttled::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { lock: &self.0, inner: Some(lock(&self.0)) }
    }
}

fn lock<T>(mutex: &shuttled::Mutex<T>) -> shuttled::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inner.as_ref().expect(HELD)
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect(HELD)
    }
}

#[derive(Default)]
pub(crate) struct Condvar(shuttled::Condvar);

pub(crate) struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    pub fn new() -> Condvar {
        Condvar::default()
    }

    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let inner = guard.inner.take().expect(HELD);
        guard.inner = Some(self.0.wait(inner).unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until a notification, or until other threads had their turn: there is no time here, so the
    /// scheduler's random numbers decide.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _: Duration) -> WaitTimeoutResult {
        let times_out = shuttle::rand::thread_rng().gen_bool(0.5);
        if times_out {
            guard.inner = None;
            thread::yield_now();
            guard.inner = Some(lock(guard.lock));
        } else {
            self.wait(guard);
        }
        WaitTimeoutResult(times_out)
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
