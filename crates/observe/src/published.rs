//! A value that its owner shows to other threads while it is in use: [`Published`].
//!
//! A session publishes the plan of its running statement, which lives on the statement's stack. Showing and
//! retracting must cost a statement next to nothing, so there is neither a lock nor a count of references:
//! the owner stores a pointer, and before the value goes it looks whether a reader is at work.
//!
//! # Protocol
//! | owner | reader, with `readers` locked |
//! |---|---|
//! | stores the pointer, uses the value | stores `is_read` = true |
//! | exchanges the pointer for the former one | loads the pointer |
//! | loads `is_read`; if true, locks `readers` once | looks at the value, stores `is_read` = false |
//!
//! # Invariants
//! - A reader that has loaded the pointer to a value is done before [`Published::during`] of that value
//!   returns. The exchange and the owner's load, and the reader's store and load, are sequentially
//!   consistent: either the reader loads the former pointer, or the owner sees the mark and waits.
//! - Values nest: the former pointer belongs to a value that is still in use, or is null.
//!
//! # Waiting
//! A reader is at work for the time of its closure, which must be short and must not wait for the owner. The
//! owner waits at most for the readers that were there when it looked.

use std::marker::PhantomData;
use std::ptr;

use crate::sync::{AtomicBool, AtomicPtr, Mutex, Ordering};

/// A place where one thread at a time shows a value to others.
pub struct Published<T: ?Sized> {
    /// Points to a reference, because a pointer to an unsized value does not fit an atomic.
    place: AtomicPtr<()>,
    is_read: AtomicBool,
    readers: Mutex<()>,
    shows: PhantomData<fn(&T)>,
}

impl<T: ?Sized> Default for Published<T> {
    fn default() -> Published<T> {
        Published {
            place: AtomicPtr::new(ptr::null_mut()),
            is_read: AtomicBool::new(false),
            readers: Mutex::default(),
            shows: PhantomData,
        }
    }
}

/// Retracts a value when it is dropped.
struct Shown<'p, T: ?Sized> {
    published: &'p Published<T>,
    before: *mut (),
}

impl<T: ?Sized> Drop for Shown<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.published.place.swap(self.before, Ordering::SeqCst);
        if self.published.is_read.load(Ordering::SeqCst) {
            self.published.await_readers();
        }
    }
}

impl<T: ?Sized + Sync> Published<T> {
    /// Shows a value while `run` runs, instead of the one that is shown now. Only one thread at a time may
    /// show values, and may continue on another thread.
    #[inline]
    pub fn during<R>(&self, value: &T, run: impl FnOnce() -> R) -> R {
        let place: *const &T = &value;
        let before = self.place.load(Ordering::Relaxed);
        self.place.store(place.cast_mut().cast(), Ordering::Release);
        let _shown = Shown { published: self, before };
        run()
    }

    /// Calls `look` with the value that is shown, if there is one.
    pub fn read<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        let _one = self.readers.lock();
        self.is_read.store(true, Ordering::SeqCst);
        let place: *const &T = self.place.load(Ordering::SeqCst).cast_const().cast();
        // SAFETY: a pointer that is not null was stored by `during`, on whose stack the reference lies that
        // it points to. `during` exchanges the pointer before it ends, and then waits until `is_read` is
        // false or `readers` was free (see the invariants), which it is not before this call ends.
        let value = unsafe { place.as_ref() };
        let seen = value.map(|value| look(value));
        self.is_read.store(false, Ordering::SeqCst);
        seen
    }
}

impl<T: ?Sized> Published<T> {
    #[cold]
    fn await_readers(&self) {
        drop(self.readers.lock());
    }
}
