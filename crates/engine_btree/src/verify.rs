//! CHECK TABLE: verifies the invariants of a tree.
//!
//! | check | method |
//! |---|---|
//! | fences, levels, children | each leaf's path from the root, completely latched in shared mode |
//! | order of entries, and that a search finds them | each page of a path, once |
//! | reachability | a page that the tree had before and after the walk was visited |
//! | overflow values | those that entries refer to belong to the tree |
//! | images on disk | each page of the page map is read, even if it is in memory, with its overflow values |
//! | space | no two extents overlap, and none of them is free |
//!
//! Other sessions continue meanwhile. A page's low fence never changes, so a walk in key order visits every
//! page that exists from its beginning to its end.

use std::collections::HashSet;

use cohort_base::IndexId;
use cohort_engine::EngineError;

use crate::frame::Shared;
use crate::inner::Inner;
use crate::page::{Page, PageId};
use crate::tree::Tree;
use crate::value;

/// Maximum number of problems that one check reports.
const PROBLEMS_MAX: usize = 20;

/// A check of one tree.
struct Look<'t> {
    tree: &'t Tree,
    met: HashSet<PageId>,
    problems: Vec<String>,
}

impl Inner {
    /// Returns the defects of an index. Calls `goes_on` between pages.
    pub fn verify(
        &self,
        index: IndexId,
        goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Vec<String>, EngineError> {
        let Some(tree) = self.tree(index) else { return Ok(Vec::new()) };
        let pages_before = tree.pages.lock().clone();
        let mut look = Look { tree: &tree, met: HashSet::new(), problems: Vec::new() };
        let mut low = Some(Vec::new());
        while let Some(key) = low.filter(|_| look.problems.len() < PROBLEMS_MAX) {
            // If the walk ends early, unvisited pages prove nothing.
            // The second half reads the images.
            if !goes_on((look.met.len() * 500 / pages_before.len().max(1)).min(500) as u64) {
                return Ok(look.problems);
            }
            low = look.leaf(self, &key)?;
        }
        if look.problems.is_empty() {
            let pages_after = tree.pages.lock().clone();
            for page in pages_before.intersection(&pages_after).filter(|page| !look.met.contains(page)) {
                look.problems.push(format!("page {} belongs to the index and cannot be reached", page.0));
            }
        }
        self.verify_images(&mut look, goes_on);
        look.problems.extend(self.store.verify_space());
        look.problems.truncate(PROBLEMS_MAX);
        Ok(look.problems)
    }

    /// Reads everything that a restart would read.
    fn verify_images(&self, look: &mut Look<'_>, goes_on: &mut dyn FnMut(u64) -> bool) {
        let index = look.tree.index;
        let pages: Vec<PageId> = self.store.with_map(|map| {
            map.trees.get(&index).map_or(Vec::new(), |tree| tree.pages.keys().copied().collect())
        });
        for (nth, &id) in pages.iter().enumerate() {
            if look.problems.len() >= PROBLEMS_MAX || !goes_on((500 + nth * 500 / pages.len()) as u64) {
                return;
            }
            // Otherwise a new page map could come into force meanwhile, and the image's space could be
            // reused.
            let _alone = self.publishing.lock();
            let is_named = self
                .store
                .with_map(|map| map.trees.get(&index).is_some_and(|tree| tree.pages.contains_key(&id)));
            if let Some(Err(error)) = is_named.then(|| self.verify_image(index, id)) {
                look.problems.push(error.to_string());
            }
        }
    }

    fn verify_image(&self, index: IndexId, id: PageId) -> Result<(), EngineError> {
        let page = self.store.read_image(index, id)?;
        for entry in (0..page.len()).map(|n| page.entry(n)).filter(|entry| entry.is_overflow) {
            value::read_into(&self.store, entry.value, &mut Vec::new())?;
        }
        Ok(())
    }
}

impl Look<'_> {
    /// Checks the path to the leaf that covers the key. Returns the start of the next leaf.
    fn leaf(&mut self, inner: &Inner, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        let pool = &inner.context.pool;
        let mut path: Vec<Shared> = vec![pool.shared(self.tree.index, self.tree.root)?];
        self.fences(path[0].page(), (&[], None));
        loop {
            let page = path.last().expect("it begins with the root").page();
            if self.met.insert(page.id()) {
                self.entries(page);
            }
            if page.level() == 0 {
                return Ok(page.high().map(<[u8]>::to_vec));
            }
            if page.is_empty() {
                self.problem(page, "is an inner page without a child");
                return Ok(None);
            }
            let place = page.child_place(key);
            let low = page.key(place);
            let high = match place + 1 < page.len() {
                true => Some(page.key(place + 1)),
                false => page.high().map(<[u8]>::to_vec),
            };
            let (child, level) = (page.child(place), page.level());
            let next = pool.shared(self.tree.index, child)?;
            let of_child = next.page();
            self.fences(of_child, (&low, high.as_deref()));
            if of_child.level() + 1 != level {
                self.problem(of_child, "is not one level below its parent");
                return Ok(None);
            }
            if high.as_deref().is_some_and(|high| high <= key) {
                self.problem(of_child, "does not cover the keys after those of the page before it");
                return Ok(None);
            }
            if !self.tree.pages.lock().contains(&child) {
                self.problem(of_child, "does not belong to the index");
            }
            path.push(next);
        }
    }

    fn problem(&mut self, page: &Page, what: &str) {
        self.problems.push(format!("page {} {what}", page.id().0));
    }

    fn fences(&mut self, page: &Page, (low, high): (&[u8], Option<&[u8]>)) {
        if page.low() != low || page.high() != high {
            self.problem(page, "has other fences than its parent says");
        }
    }

    fn entries(&mut self, page: &Page) {
        if page.index() != self.tree.index {
            self.problem(page, "is of another index");
        }
        let mut before: Option<Vec<u8>> = None;
        for n in 0..page.len() {
            let key = page.key(n);
            if before.as_deref().is_some_and(|before| before >= key.as_slice()) {
                self.problem(page, "has entries out of order");
                return;
            }
            if !page.covers(&key) {
                self.problem(page, "has an entry outside of its fences");
                return;
            }
            if page.find(&key) != Ok(n) {
                self.problem(page, "has an entry that a search does not find");
                return;
            }
            let entry = page.entry(n);
            if entry.is_overflow && !self.tree.values.lock().contains(&value::extent_of(entry.value)) {
                self.problem(page, "names an overflow value that is not the index's");
                return;
            }
            before = Some(key);
        }
        if page.level() > 0 && !page.is_empty() && page.key(0) != page.low() {
            self.problem(page, "has a first child that does not begin where the page does");
        }
    }
}
