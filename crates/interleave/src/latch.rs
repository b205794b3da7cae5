//! Latches: locks with owned guards, as the pages of a buffer pool have them.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::{Condvar, HELD, Mutex};

/// A readers-writer lock with owned guards: `parking_lot::RwLock` with its feature `arc_lock`.
#[derive(Debug)]
pub struct Latch<T> {
    state: Mutex<LatchState<T>>,
    freed: Condvar,
}

#[derive(Debug)]
struct LatchState<T> {
    readers: usize,
    /// `None` while it is held exclusively.
    value: Option<Arc<T>>,
}

/// A shared guard. `value` is `None` only during the drop.
#[derive(Debug)]
pub struct SharedGuard<T> {
    latch: Arc<Latch<T>>,
    value: Option<Arc<T>>,
}

/// An exclusive guard. `value` is `None` only during the drop.
#[derive(Debug)]
pub struct ExclusiveGuard<T> {
    latch: Arc<Latch<T>>,
    value: Option<T>,
}

impl<T> Latch<T> {
    /// Creates an unlocked latch.
    pub fn new(value: T) -> Latch<T> {
        let state = LatchState { readers: 0, value: Some(Arc::new(value)) };
        Latch { state: Mutex::new(state), freed: Condvar::new() }
    }

    /// Locks in shared mode. Blocks.
    pub fn read_arc(self: &Arc<Self>) -> SharedGuard<T> {
        let mut state = self.state.lock();
        loop {
            if let Some(value) = state.value.clone() {
                state.readers += 1;
                return SharedGuard { latch: Arc::clone(self), value: Some(value) };
            }
            self.freed.wait(&mut state);
        }
    }

    /// Locks in shared mode unless it is held exclusively.
    pub fn try_read_arc(self: &Arc<Self>) -> Option<SharedGuard<T>> {
        let mut state = self.state.lock();
        let value = state.value.clone()?;
        state.readers += 1;
        Some(SharedGuard { latch: Arc::clone(self), value: Some(value) })
    }

    /// Locks in exclusive mode. Blocks.
    pub fn write_arc(self: &Arc<Self>) -> ExclusiveGuard<T> {
        let mut state = self.state.lock();
        loop {
            if let Some(value) = state.take() {
                return ExclusiveGuard { latch: Arc::clone(self), value: Some(value) };
            }
            self.freed.wait(&mut state);
        }
    }

    /// Locks in exclusive mode if it is free.
    pub fn try_write_arc(self: &Arc<Self>) -> Option<ExclusiveGuard<T>> {
        let value = self.state.lock().take()?;
        Some(ExclusiveGuard { latch: Arc::clone(self), value: Some(value) })
    }
}

impl<T> LatchState<T> {
    fn take(&mut self) -> Option<T> {
        let value = self.value.take_if(|_| self.readers == 0)?;
        Some(Arc::into_inner(value).expect("readers drop theirs before they are counted out"))
    }
}

/// Downgrades an exclusive lock to a shared one.
pub fn downgrade<T>(mut guard: ExclusiveGuard<T>) -> SharedGuard<T> {
    let value = Arc::new(guard.value.take().expect(HELD));
    let latch = Arc::clone(&guard.latch);
    let mut state = latch.state.lock();
    (state.readers, state.value) = (1, Some(Arc::clone(&value)));
    drop(state);
    latch.freed.notify_all();
    SharedGuard { latch, value: Some(value) }
}

/// Returns the latch of an exclusive guard.
pub fn latch_of<T>(guard: &ExclusiveGuard<T>) -> &Arc<Latch<T>> {
    &guard.latch
}

/// Returns the latch of a shared guard.
pub fn latch_of_shared<T>(guard: &SharedGuard<T>) -> &Arc<Latch<T>> {
    &guard.latch
}

impl<T> Deref for SharedGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect(HELD)
    }
}

impl<T> Drop for SharedGuard<T> {
    fn drop(&mut self) {
        self.value = None;
        self.latch.state.lock().readers -= 1;
        self.latch.freed.notify_all();
    }
}

impl<T> Deref for ExclusiveGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect(HELD)
    }
}

impl<T> DerefMut for ExclusiveGuard<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect(HELD)
    }
}

impl<T> Drop for ExclusiveGuard<T> {
    fn drop(&mut self) {
        // `None` if it was downgraded.
        if let Some(value) = self.value.take() {
            self.latch.state.lock().value = Some(Arc::new(value));
            self.latch.freed.notify_all();
        }
    }
}
