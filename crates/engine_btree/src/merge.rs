//! Merging: moves the entries of a page that purge has made small into a neighbour, and replaces a root with
//! a single child by that child.
//!
//! A table that is used as a queue, with inserts at one end and deletions at the other, therefore keeps only
//! the pages that it needs, and scans meet no long sequences of empty leaves. Purge merges a leaf that has
//! become empty or smaller than a quarter of a page. Updates that shorten values do not merge.
//!
//! # Latches
//! All pages of the path are latched exclusively, and one neighbour at a time. Latching a neighbour while
//! the page is latched cannot deadlock, because a holder of one leaf releases it before it latches another.
//!
//! # On failure
//! A page that cannot be read ends the merge. What was merged before stays merged.

use cohort_engine::EngineError;

use crate::frame::Exclusive;
use crate::page::{PAGE_BYTES, Page, PageId, PageSpec};
use crate::tree::{Side, Tree, TreeContext};

/// Free space required after a merge, so that the page is not split again soon.
const FREE_BYTES_MIN: usize = PAGE_BYTES / 4;

/// Returns whether the page is small enough to be merged.
pub fn is_small(page: &Page) -> bool {
    page.used_bytes() < PAGE_BYTES / 4
}

impl Tree {
    /// Merges the small pages on the path to the key.
    pub fn merge(&self, ground: &TreeContext, key: &[u8]) -> Result<(), EngineError> {
        self.read_neighbours(ground, key)?;
        loop {
            let mut path = self.path(ground, key)?;
            let mut has_merged = false;
            while let Some(page) = path.pop() {
                let merged = match path.last_mut() {
                    Some(_) if !is_small(page.page()) => false,
                    Some(parent) => self.merge_page(ground, parent, page, key)?,
                    None => self.pull_up(ground, page)?,
                };
                has_merged |= merged;
            }
            // A page without a neighbour may have got one, if its parent was merged.
            if !has_merged {
                return Ok(());
            }
        }
    }

    /// Reads missing pages first, so that the latches of a merge are usually not held during I/O.
    fn read_neighbours(&self, ground: &TreeContext, key: &[u8]) -> Result<(), EngineError> {
        let leaf = self.leaf(ground, &Side::Covering(key))?;
        let (low, high) = (leaf.page().low().to_vec(), leaf.page().high().map(<[u8]>::to_vec));
        drop(leaf);
        if !low.is_empty() {
            drop(self.leaf(ground, &Side::Below(Some(&low)))?);
        }
        if let Some(high) = high {
            drop(self.leaf(ground, &Side::Covering(&high))?);
        }
        Ok(())
    }

    /// Merges a page with one of its siblings.
    fn merge_page(
        &self,
        ground: &TreeContext,
        parent: &mut Exclusive,
        mut page: Exclusive,
        key: &[u8],
    ) -> Result<bool, EngineError> {
        let place = parent.page().child_place(key);
        if place > 0 {
            let mut left = self.child_alone(ground, parent.page(), place - 1)?;
            if self.combine(ground, parent, place, &mut left, &mut page)? {
                return Ok(true);
            }
        }
        if place + 1 < parent.page().len() {
            let mut right = self.child_alone(ground, parent.page(), place + 1)?;
            return self.combine(ground, parent, place + 1, &mut page, &mut right);
        }
        Ok(false)
    }

    /// Moves the entries of `right`, the parent's child at `place`, into its left neighbour. Returns false if
    /// they do not fit.
    fn combine(
        &self,
        ground: &TreeContext,
        parent: &mut Exclusive,
        place: usize,
        left: &mut Exclusive,
        right: &mut Exclusive,
    ) -> Result<bool, EngineError> {
        let (first, second) = (left.page(), right.page());
        debug_assert_eq!(first.high(), Some(second.low()), "two pages that are no neighbours are merged");
        debug_assert_eq!(first.level(), second.level(), "two pages of several levels are merged");
        debug_assert_eq!(parent.page().child(place), second.id(), "the parent keeps a child that is gone");
        debug_assert!(place > 0, "the first child of an inner node stays the first");
        let is_one_empty = first.is_empty() || second.is_empty();
        let free_min = if is_one_empty { 0 } else { FREE_BYTES_MIN };
        if first.used_bytes().max(second.used_bytes()) + free_min > PAGE_BYTES {
            return Ok(false);
        }
        let (low, high) = (first.low(), second.high());
        let spec = PageSpec { index: self.index, id: first.id(), level: first.level(), low, high };
        let mut page = Page::new(spec);
        for of in [first, second] {
            (0..of.len()).for_each(|n| page.append(&of.key(n), of.entry(n)));
        }
        if page.used_bytes() + free_min > PAGE_BYTES {
            return Ok(false);
        }
        let structure = ground.changes.structure();
        for frame in [&mut *parent, &mut *left, &mut *right] {
            structure.capture(frame)?;
        }
        let gone = right.page().id();
        structure.remove(self.index, gone);
        right.is_gone = true;
        *left.page_mut() = page;
        parent.page_mut().remove(place);
        left.page().check_invariants();
        parent.page().check_invariants();
        ground.changes.list(left);
        ground.changes.list(parent);
        drop(structure);
        self.let_go(ground, gone);
        Ok(true)
    }

    /// Moves the entries of the root's only child into the root.
    fn pull_up(&self, ground: &TreeContext, mut root: Exclusive) -> Result<bool, EngineError> {
        if root.page().level() == 0 || root.page().len() > 1 {
            return Ok(false);
        }
        let mut child = self.child_alone(ground, root.page(), 0)?;
        let structure = ground.changes.structure();
        structure.capture(&mut root)?;
        structure.capture(&mut child)?;
        let old = child.page();
        let gone = old.id();
        let spec = PageSpec { index: self.index, id: self.root, level: old.level(), low: &[], high: None };
        let mut page = Page::new(spec);
        (0..old.len()).for_each(|n| page.append(&old.key(n), old.entry(n)));
        debug_assert!(old.low().is_empty() && old.high().is_none(), "the only child does not cover all keys");
        page.check_invariants();
        structure.remove(self.index, gone);
        child.is_gone = true;
        *root.page_mut() = page;
        ground.changes.list(&mut root);
        drop(structure);
        self.let_go(ground, gone);
        Ok(true)
    }

    /// Frees a page that is no longer reachable.
    fn let_go(&self, ground: &TreeContext, page: PageId) {
        let was_there = self.pages.lock().remove(&page);
        debug_assert!(was_there, "a page of another tree is freed");
        debug_assert_ne!(page, self.root, "the root is freed");
        ground.pool.discard(page);
    }
}
