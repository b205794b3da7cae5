//! parking_lot's locks over shuttle's scheduler, for model checks.
//!
//! A model check compiles a file of the product a second time, with this crate's types in place of the real
//! ones, and runs it under a scheduler that chooses at every lock and every atomic which thread goes on. A
//! schedule in which a wake-up is lost ends with every thread asleep: the scheduler reports it as a deadlock,
//! with the schedule that replays it. No product crate depends on this one.

mod latch;

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::Duration;

use shuttle::sync as shuttled;

pub use latch::{ExclusiveGuard, Latch, SharedGuard, downgrade, latch_of, latch_of_shared};
pub use shuttle::sync::RwLockReadGuard;
pub use shuttle::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub use shuttle::thread;

const HELD: &str = "only a wait gives the guard away";

/// Threads that the scheduler holds back in a schedule, each once, for as long as others can go on.
const HELD_BACK: usize = 3;

/// Runs a model under this many schedules, times the environment's `COHORT_MODEL_SCHEDULES`. Half of them
/// choose the next thread at random at every step, the others hold some threads back for long at points
/// chosen at random (PCT): bugs that need a thread to stand still are out of reach of the first.
pub fn check(schedules: usize, model: impl Fn() + Send + Sync + Clone + 'static) {
    let asked = std::env::var("COHORT_MODEL_SCHEDULES").ok();
    let times: usize = asked.and_then(|times| times.parse().ok()).unwrap_or(1);
    let half = (schedules * times).div_ceil(2);
    shuttle::check_random(model.clone(), half);
    shuttle::check_pct(model, half, HELD_BACK);
}

/// A number below `n`, chosen by the scheduler.
pub fn choose(n: u64) -> u64 {
    use shuttle::rand::Rng;
    shuttle::rand::thread_rng().gen_range(0..n)
}

/// `parking_lot::Mutex`.
#[derive(Debug, Default)]
pub struct Mutex<T>(shuttled::Mutex<T>);

/// `parking_lot::MutexGuard`. The inner guard is gone only during a wait.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    mutex: &'a shuttled::Mutex<T>,
    inner: Option<shuttled::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    /// A free mutex.
    pub fn new(value: T) -> Mutex<T> {
        Mutex(shuttled::Mutex::new(value))
    }

    /// Waits for it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: &self.0, inner: Some(lock(&self.0)) }
    }

    /// Takes it if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok().map(|inner| MutexGuard { mutex: &self.0, inner: Some(inner) })
    }
}

fn lock<T>(mutex: &shuttled::Mutex<T>) -> shuttled::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> MutexGuard<'_, T> {
    /// Releases it.
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
    /// Nobody waits.
    pub fn new() -> Condvar {
        Condvar::default()
    }

    /// Waits for a notification.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let inner = guard.inner.take().expect(HELD);
        guard.inner = Some(self.0.wait(inner).unwrap_or_else(PoisonError::into_inner));
    }

    /// There is no time here: the wait is over as soon as others have had their turn.
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
    /// A free lock.
    pub fn new(value: T) -> RwLock<T> {
        RwLock(shuttled::RwLock::new(value))
    }

    /// Waits for a share of it.
    pub fn read(&self) -> shuttled::RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all of it if it is free.
    pub fn try_write(&self) -> Option<shuttled::RwLockWriteGuard<'_, T>> {
        self.0.try_write().ok()
    }

    /// Waits for all of it.
    pub fn write(&self) -> shuttled::RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
