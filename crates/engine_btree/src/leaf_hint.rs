//! Search hints: descents that start at the end of the same reader's last descent.
//!
//! # Concepts
//! A reader of keys in ascending order, or nearly so, visits the same leaf and the same inner nodes
//! repeatedly. It keeps references to the leaf of its last descent and to that leaf's parent, without
//! latches. The next descent tries the leaf first, then the parent. This needs one or two latches instead of
//! one per level, and no searches in the nodes above.
//!
//! # Validity
//! A page that is still in its tree has, under its latch, the fences that determine which keys it covers,
//! regardless of splits and merges meanwhile. A page that was merged into a neighbour is marked as such
//! ([`Frame::is_gone`]).
//!
//! The references pin their pages: two for each reader.
//!
//! [`Frame::is_gone`]: crate::frame::Frame::is_gone

use cohort_base::EngineWork;
use cohort_engine::EngineError;

use crate::frame::{Frame, Latch, Shared};
use crate::pool::{Fetch, Touch};
use crate::sync::{Ordering, latch_of_shared};
use crate::tree::{Side, Tree, TreeContext};

/// The end of a reader's last descent.
#[derive(Default)]
pub struct LeafHint {
    leaf: Option<Latch>,
    parent: Option<Latch>,
}

impl LeafHint {
    /// Returns the leaf that covers the key, latched in shared mode.
    pub fn leaf(
        &mut self,
        tree: &Tree,
        context: &TreeContext,
        key: &[u8],
        touch: Touch,
    ) -> Result<Shared, EngineError> {
        if let Some(frame) = latched(&self.leaf, 0, key) {
            context.pool.hits.fetch_add(1, Ordering::Relaxed);
            EngineWork::page_accessed();
            return Ok(frame);
        }
        if let Some(parent) = latched(&self.parent, 1, key) {
            let page = parent.page();
            let place = page.child_place(key);
            let child = page.child(place);
            // If the leaf must be waited for, descend again from the root.
            if let Fetch::Here(leaf) = context.pool.try_shared(tree.index, child, touch)? {
                tree.check_child(context, page, place, &leaf)?;
                leaf.page().touch_slots();
                self.leaf = Some(latch_of_shared(&leaf).clone());
                return Ok(leaf);
            }
        }
        let (leaf, parent) = tree.leaf_and_parent(context, &Side::Covering(key), touch)?;
        self.leaf = Some(latch_of_shared(&leaf).clone());
        self.parent = parent;
        Ok(leaf)
    }
}

/// Returns the page, latched in shared mode, if it has this level and covers the key.
fn latched(page: &Option<Latch>, level: u8, key: &[u8]) -> Option<Shared> {
    let frame = page.as_ref()?.read_arc();
    let is_it = |frame: &Frame| {
        !frame.is_gone && frame.has_page() && frame.page().level() == level && frame.page().covers(key)
    };
    is_it(&frame).then_some(frame)
}
