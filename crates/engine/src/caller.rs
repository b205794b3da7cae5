//! Objects that a caller passes to an engine: a wait slot, in which its fiber waits for the engine's own
//! threads, and a search hint, the position of its last search.

use std::any::Any;
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

/// A search hint. A reader keeps one for keys of one index that lie near each other and passes it to each
/// read ([`crate::EngineTrx::get_with_hint`]). The engine starts its search where the last one ended. The
/// hint says nothing about rows: a search is correct whatever the hint contains.
#[derive(Default)]
pub struct SearchHint {
    place: Option<Box<dyn Any + Send + Sync>>,
    /// Set by the first read. A reader that reads only once stores no position.
    is_repeated: bool,
}

impl SearchHint {
    /// Returns the engine's position, from the reader's second read on.
    pub fn place<P: Any + Default + Send + Sync>(&mut self) -> Option<&mut P> {
        if !std::mem::replace(&mut self.is_repeated, true) {
            return None;
        }
        if !self.place.as_ref().is_some_and(|place| place.is::<P>()) {
            self.place = Some(Box::<P>::default());
        }
        self.place.as_mut()?.downcast_mut()
    }
}
