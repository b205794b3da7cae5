//! Ways down that begin where the last one of the same reader ended.
//!
//! # Concepts
//! A reader of keys in their order, or nearly so, meets a leaf, and the nodes above it, again and again. It
//! keeps the leaf of its last way down and that leaf's parent, without a latch. The next way down asks the
//! leaf first, then the parent: one latch instead of one for each level, and no search of the nodes above.
//!
//! # When a page is the right one
//! Under its latch a page that is still in its tree has the fences that say which keys belong to it, whatever
//! has been split or merged meanwhile. One that went into a neighbour says so ([`Frame::is_gone`]).
//!
//! A page that is kept stays in memory: two for each reader.
//!
//! [`Frame::is_gone`]: crate::pool::Frame::is_gone

use cohort_engine::EngineError;

use crate::pool::{Frame, Latch, Shared, Soon, Touch};
use crate::sync::{Ordering, latch_of_shared};
use crate::tree::{Ground, Side, Tree};

/// The end of a reader's last way down.
#[derive(Default)]
pub struct NearLeaf {
    leaf: Option<Latch>,
    parent: Option<Latch>,
}

impl NearLeaf {
    /// The leaf that covers the key, latched with others.
    pub fn leaf(
        &mut self,
        tree: &Tree,
        ground: &Ground,
        key: &[u8],
        touch: Touch,
    ) -> Result<Shared, EngineError> {
        if let Some(frame) = latched(&self.leaf, 0, key) {
            ground.pool.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(frame);
        }
        if let Some(parent) = latched(&self.parent, 1, key) {
            let page = parent.page();
            let place = page.child_place(key);
            let child = page.child(place);
            // What must be slept for is found anew, from the root on.
            if let Soon::Here(leaf) = ground.pool.shared_soon(tree.index, child, touch)? {
                tree.check_child(ground, page, place, &leaf)?;
                leaf.page().touch_slots();
                self.leaf = Some(latch_of_shared(&leaf).clone());
                return Ok(leaf);
            }
        }
        let (leaf, parent) = tree.leaf_and_parent(ground, &Side::Covering(key), touch)?;
        self.leaf = Some(latch_of_shared(&leaf).clone());
        self.parent = parent;
        Ok(leaf)
    }
}

/// The page, if it is the one of its level that covers the key.
fn latched(page: &Option<Latch>, level: u8, key: &[u8]) -> Option<Shared> {
    let frame = page.as_ref()?.read_arc();
    let is_it = |frame: &Frame| {
        !frame.is_gone && frame.has_page() && frame.page().level() == level && frame.page().covers(key)
    };
    is_it(&frame).then_some(frame)
}
