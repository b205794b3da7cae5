//! Frames: pages in memory, each protected by a readers-writer latch.

use std::sync::Arc;

use cohort_base::IndexId;

use crate::page::{Page, PageId};
use crate::sync::{AtomicBool, ExclusiveGuard, Ordering, SharedGuard};

/// A page in memory.
#[derive(Debug)]
pub struct Frame {
    /// `None` if the page could not be read.
    pub page: Option<Page>,
    /// The newest image on disk is older than the page.
    pub is_changed: bool,
    /// The last checkpoint interval in which the page was added to the list of changed pages.
    pub listed_in: u64,
    /// The page was merged into a neighbour, so it covers no key any more. Set while the page is latched
    /// exclusively.
    pub is_gone: bool,
    /// Since the page was read, a descent has verified that the page matches its parent's entry
    /// ([`crate::tree`]).
    is_placed: AtomicBool,
}

impl Frame {
    /// Returns the page.
    pub fn page(&self) -> &Page {
        self.page.as_ref().expect("the pool gives out frames that were read")
    }

    /// Checks the identity of the page in builds with debug assertions.
    pub fn check_is(&self, index: IndexId, id: PageId) {
        if !cfg!(debug_assertions) {
            return;
        }
        debug_assert_eq!(self.page().id(), id, "a frame holds another page than the table says");
        debug_assert_eq!(self.page().index(), index, "page {} is reached through another index", id.0);
    }

    /// Returns whether the page was read.
    pub fn has_page(&self) -> bool {
        self.page.is_some()
    }

    /// Creates a frame: for a new page without an image on disk, or for a page that is about to be read
    /// (`None`).
    pub fn new(page: Option<Page>) -> Frame {
        let is_new = page.is_some();
        Frame { is_changed: is_new, page, listed_in: 0, is_gone: false, is_placed: AtomicBool::new(is_new) }
    }

    /// Returns whether the page's place in its tree was verified.
    #[inline]
    pub fn is_placed(&self) -> bool {
        self.is_placed.load(Ordering::Relaxed)
    }

    /// Records that the page's place was verified.
    pub fn note_placed(&self) {
        self.is_placed.store(true, Ordering::Relaxed);
    }

    /// Returns the page for changes.
    pub fn page_mut(&mut self) -> &mut Page {
        self.page.as_mut().expect("the pool gives out frames that were read")
    }
}

/// A frame with its latch.
pub type Latch = Arc<crate::sync::Latch<Frame>>;

/// A page latched in shared mode.
pub type Shared = SharedGuard<Frame>;

/// A page latched exclusively.
pub type Exclusive = ExclusiveGuard<Frame>;
