//! parking_lot's locks on top of shuttle's scheduler, for model checks.
//!
//! A model check compiles a file of the product a second time, with this crate's types in place of the real
//! ones. It runs the file under a scheduler that chooses the next thread at each lock and each atomic access.
//! A schedule in which a wakeup is lost ends with all threads asleep: the scheduler reports a deadlock, with
//! the schedule that replays it. No product crate depends on this crate.

mod latch;

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::Duration;

use shuttle::sync as shuttled;

pub use latch::{ExclusiveGuard, Latch, SharedGuard, downgrade, latch_of, latch_of_shared};
pub use shuttle::sync::RwLockReadGuard;
pub use shuttle::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub use shuttle::thread;

const HELD: &str = "only a wait gives the guard away";

/// Number of threads that the scheduler delays in a schedule, each once, for as long as other threads can
/// run.
const HELD_BACK: usize = 3;

/// Runs a model under the given number of schedules, multiplied by the environment variable
/// `COHORT_MODEL_SCHEDULES`. Half of them choose the next thread at random at each step. The other half delay
/// some threads for long at random points (PCT), to find bugs that need a thread to stand still.
pub fn check(schedules: usize, model: impl Fn() + Send + Sync + Clone + 'static) {
    let asked = std::env::var("COHORT_MODEL_SCHEDULES").ok();
    let times: usize = asked.and_then(|times| times.parse().ok()).unwrap_or(1);
    let half = (schedules * times).div_ceil(2);
    shuttle::check_random(model.clone(), half);
    shuttle::check_pct(model, half, HELD_BACK);
}

/// Returns a number below `n`, chosen by the scheduler.
pub fn choose(n: u64) -> u64 {
    use shuttle::rand::Rng;
    shuttle::rand::thread_rng().gen_range(0..n)
}

/// `parking_lot::Mutex`.
#[derive(Debug, Default)]
pub struct Mutex<T>(shuttled::Mutex<T>);

/// `parking_lot::MutexGuard`. `inner` is `None` only during a wait.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    mutex: &'a shuttled::Mutex<T>,
    inner: Option<shuttled::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    /// Creates an unlocked mutex.
    pub fn new(value: T) -> Mutex<T> {
        Mutex(shuttled::Mutex::new(value))
    }

    /// Locks. Blocks.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: &self.0, inner: Some(lock(&self.0)) }
    }

    /// Locks if the mutex is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok().map(|inner| MutexGuard { mutex: &self.0, inner: Some(inner) })
    }
}

fn lock<T>(mutex: &shuttled::Mutex<T>) -> shuttled::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> MutexGuard<'_, T> {
    /// Unlocks.
    pub fn unlock_fair(guard: Self) {
        drop(guard);
    }
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

/// `parking_lot::Condvar`.
#[derive(Debug, Default)]
pub struct Condvar(shuttled::Condvar);

impl Condvar {
    /// Creates a condition variable.
    pub fn new() -> Condvar {
        Condvar::default()
    }

    /// Waits for a notification.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let inner = guard.inner.take().expect(HELD);
        guard.inner = Some(self.0.wait(inner).unwrap_or_else(PoisonError::into_inner));
    }

    /// There is no time in a model: the wait ends as soon as other threads have run.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _: Duration) {
        guard.inner = None;
        thread::yield_now();
        guard.inner = Some(lock(guard.mutex));
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// `parking_lot::RwLock`.
#[derive(Debug, Default)]
pub struct RwLock<T>(shuttled::RwLock<T>);

impl<T> RwLock<T> {
    /// Creates an unlocked lock.
    pub fn new(value: T) -> RwLock<T> {
        RwLock(shuttled::RwLock::new(value))
    }

    /// Locks in shared mode. Blocks.
    pub fn read(&self) -> shuttled::RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks in exclusive mode if it is free.
    pub fn try_write(&self) -> Option<shuttled::RwLockWriteGuard<'_, T>> {
        self.0.try_write().ok()
    }

    /// Locks in exclusive mode. Blocks.
    pub fn write(&self) -> shuttled::RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
