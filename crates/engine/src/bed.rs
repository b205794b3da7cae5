//! Where a session sleeps while an engine's own threads do something for it.

use std::sync::Arc;

/// A place to sleep that is not a thread. Nothing that others may need is held meanwhile: whoever would go on
/// with the sleeper may be waiting for it.
pub trait Bed: Send + Sync {
    /// Sleeps until [`Bed::wake`] is called; may return early. After an earlier `wake` it returns at once.
    fn sleep(&self);

    /// Wakes the sleeper; from any thread, holding no lock.
    fn wake(&self);
}

/// Returns the caller's bed; none: it is a thread of its own, and may as well do the work itself.
pub type BedOf = fn() -> Option<Arc<dyn Bed>>;
