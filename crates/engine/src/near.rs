//! Where a reader was last.

use std::any::Any;

/// Kept by a reader of keys of one key space that lie near each other, and given to each of its reads
/// ([`crate::EngineTrx::get_near`]): the engine begins its search where the last one ended. What an engine
/// keeps here says nothing about rows; a search is right whatever it finds.
#[derive(Default)]
pub struct Near {
    place: Option<Box<dyn Any + Send + Sync>>,
    /// A reader that asks once keeps no place.
    is_repeated: bool,
}

impl Near {
    /// The engine's place, once the reader has asked before.
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
