//! Search hints: the position of a reader's last search.

use std::any::Any;

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
