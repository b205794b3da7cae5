//! Wait slots: let a session's fiber wait for work that an engine's own threads do.

use std::sync::Arc;

/// A wait slot that does not occupy a thread. The waiter must hold nothing that other sessions may need: the
/// worker that would resume it may itself be waiting for that.
pub trait WaitSlot: Send + Sync {
    /// Waits until [`WaitSlot::wake`] is called. May return early. Returns immediately if `wake` was called
    /// before.
    fn sleep(&self);

    /// Wakes the waiter. May be called from any thread that holds no lock.
    fn wake(&self);
}

/// Returns the caller's wait slot, or `None` if the caller runs on a thread of its own. Such a caller may as
/// well do the work itself.
pub type WaitSlotOf = fn() -> Option<Arc<dyn WaitSlot>>;
