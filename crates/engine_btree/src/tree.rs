//! A tree: the pages of one index, descents from the root, and splits.
//!
//! # Descents
//! | operation | latches |
//! |---|---|
//! | reads | shared, each child before its parent is released |
//! | writes of one entry | shared down to the leaf's parent, the leaf exclusively |
//! | splits | exclusive, the whole path from the root |
//!
//! Reads and writes of one entry that must wait for a page to be read release their latches, wait, and
//! descend again ([`Patience`]).
//!
//! All operations latch from the root downwards, so there are no deadlocks. The root never changes its page
//! id: when it is full, its entries move into a new child.
//!
//! # Pages that were read
//! An image may be intact but in the wrong place ([`crate::sound`]). The first descent that reaches a page
//! after it was read therefore compares the page's level and fences with the entry of its parent. Because the
//! level decreases with each step, every descent ends.
//!
//! # Invariants
//! - The children of an inner node cover its range without gaps, and each child has the fences that the
//!   node's entries state.
//! - While a checkpoint runs, a page that it has not written yet is captured before its structure changes
//!   ([`Structure::capture`](crate::changes::Structure::capture)). The checkpoint's pages therefore form the
//!   tree as it was when the checkpoint began.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use cohort_base::{EngineWork, IndexId};
use cohort_engine::EngineError;

use crate::changes::Changes;
use crate::frame::{Exclusive, Frame, Latch, Shared};
use crate::page::{Entry, Page, PageId, PageSpec, SPLIT_ENTRIES_MIN};
use crate::pool::{Fetch, Pool, Touch};
use crate::reads::Wait;
use crate::space::Extent;
use crate::sync::{AtomicI64, AtomicU64, Mutex, Ordering, latch_of_shared};

/// Maximum number of leaves that are prefetched for a scan at once.
pub const AHEAD_LEAVES: usize = 8;

/// The state that all trees of an engine share.
pub struct TreeContext {
    pub pool: Arc<Pool>,
    pub changes: Changes,
    next_page: AtomicU64,
}

impl TreeContext {
    /// Creates the context. New pages are numbered from `next_page` on.
    pub fn new(pool: Arc<Pool>, changes: Changes, next_page: u64) -> TreeContext {
        TreeContext { pool, changes, next_page: AtomicU64::new(next_page) }
    }

    /// Allocates the number of a new page.
    pub fn new_page_id(&self) -> PageId {
        PageId(self.next_page.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the number that the next new page will get.
    pub fn next_page(&self) -> u64 {
        self.next_page.load(Ordering::Relaxed)
    }
}

/// State of a descent with regard to pages that are not in memory.
#[derive(Default)]
struct Patience {
    /// The page that was waited for, pinned until the descent is complete.
    pin: Option<Latch>,
    /// A reader thread failed to read the page. The next descent reads it directly and gets the error.
    reads_itself: bool,
}

impl Patience {
    /// Waits for a page. The caller has released its latches.
    fn sleep(&mut self, wait: Wait) {
        let Wait { loading, latch, wait_slot } = wait;
        self.pin = Some(latch);
        let start = Instant::now();
        self.reads_itself |= !loading.sleep(&wait_slot);
        EngineWork::read_since(start);
    }

    fn shared(
        &self,
        context: &TreeContext,
        index: IndexId,
        id: PageId,
        touch: Touch,
    ) -> Result<Fetch<Shared>, EngineError> {
        match self.reads_itself {
            true => context.pool.shared(index, id).map(Fetch::Here),
            false => context.pool.try_shared(index, id, touch),
        }
    }

    fn exclusive(
        &self,
        context: &TreeContext,
        index: IndexId,
        id: PageId,
    ) -> Result<Fetch<Exclusive>, EngineError> {
        match self.reads_itself {
            true => context.pool.exclusive(index, id).map(Fetch::Here),
            false => context.pool.try_exclusive(index, id),
        }
    }
}

/// The tree of one index.
pub struct Tree {
    pub index: IndexId,
    pub root: PageId,
    /// Estimated number of entries: inserted minus removed.
    pub entries: AtomicI64,
    /// Ids of all pages.
    pub pages: Mutex<HashSet<PageId>>,
    /// Extents of the overflow values.
    pub values: Mutex<HashSet<Extent>>,
}

/// Target leaf of a descent.
pub enum Side<'k> {
    /// The leaf that covers the key.
    Covering(&'k [u8]),
    /// The leaf with the keys immediately below this one, or the last leaf if `None`.
    Below(Option<&'k [u8]>),
}

impl Side<'_> {
    fn child_of(&self, page: &Page) -> usize {
        match self {
            Side::Covering(key) => page.child_place(key),
            Side::Below(None) => {
                debug_assert!(!page.is_empty(), "an inner node without children");
                page.len() - 1
            }
            Side::Below(Some(key)) => match page.find(key) {
                Ok(n) | Err(n) => n.saturating_sub(1),
            },
        }
    }
}

impl Tree {
    /// Adds `by` to the estimated number of entries.
    pub fn count_entries(&self, by: i64) {
        self.entries.fetch_add(by, Ordering::Relaxed);
    }

    /// Creates a tree of one empty leaf.
    pub fn create(index: IndexId, context: &TreeContext) -> Arc<Tree> {
        let root = context.new_page_id();
        let tree = Arc::new(Tree {
            index,
            root,
            entries: AtomicI64::new(0),
            pages: Mutex::new(HashSet::from([root])),
            values: Mutex::default(),
        });
        let mut frame =
            context.pool.create(Page::new(PageSpec { index, id: root, level: 0, low: &[], high: None }));
        context.changes.list(&mut frame);
        tree
    }

    /// Returns the leaf, latched in shared mode.
    pub fn leaf(&self, context: &TreeContext, side: &Side<'_>) -> Result<Shared, EngineError> {
        self.leaf_touched(context, side, Touch::Usual)
    }

    /// Like [`Tree::leaf`], with an access pattern for the leaf.
    pub fn leaf_touched(
        &self,
        context: &TreeContext,
        side: &Side<'_>,
        touch: Touch,
    ) -> Result<Shared, EngineError> {
        let mut patience = Patience::default();
        loop {
            match self.try_node(context, side, 0, touch, &patience)? {
                Fetch::Here(leaf) => return Ok(leaf),
                Fetch::Later(wait) => patience.sleep(wait),
            }
        }
    }

    /// Returns the leaf, latched in shared mode, and its parent, which is no longer latched. There is no
    /// parent if the leaf is the root.
    pub fn leaf_and_parent(
        &self,
        context: &TreeContext,
        side: &Side<'_>,
        touch: Touch,
    ) -> Result<(Shared, Option<Latch>), EngineError> {
        let mut patience = Patience::default();
        loop {
            let parent = match self.try_node(context, side, 1, touch, &patience)? {
                Fetch::Here(parent) => parent,
                Fetch::Later(wait) => {
                    patience.sleep(wait);
                    continue;
                }
            };
            if parent.page().level() == 0 {
                return Ok((parent, None));
            }
            let place = side.child_of(parent.page());
            let child = parent.page().child(place);
            match patience.shared(context, self.index, child, touch)? {
                Fetch::Here(leaf) => {
                    self.check_child(context, parent.page(), place, &leaf)?;
                    return Ok((leaf, Some(latch_of_shared(&parent).clone())));
                }
                Fetch::Later(wait) => {
                    drop(parent);
                    patience.sleep(wait);
                }
            }
        }
    }

    /// Descends once to the node at `level`.
    fn try_node(
        &self,
        context: &TreeContext,
        side: &Side<'_>,
        level: u8,
        touch: Touch,
        patience: &Patience,
    ) -> Result<Fetch<Shared>, EngineError> {
        let mut frame = match patience.shared(context, self.index, self.root, Touch::Usual)? {
            Fetch::Here(root) => root,
            later => return Ok(later),
        };
        self.check_root(context, &frame)?;
        while frame.page().level() > level {
            let place = side.child_of(frame.page());
            let child = frame.page().child(place);
            let touch = if frame.page().level() == 1 { touch } else { Touch::Usual };
            match patience.shared(context, self.index, child, touch)? {
                Fetch::Here(next) => {
                    self.check_child(context, frame.page(), place, &next)?;
                    debug_assert!(
                        !matches!(side, Side::Covering(key) if !next.page().covers(key)),
                        "a descent leads to a page that does not cover the key"
                    );
                    frame = next;
                }
                later => return Ok(later),
            }
        }
        Ok(Fetch::Here(frame))
    }

    /// Checks the root on the first descent after it was read.
    #[inline]
    fn check_root(&self, context: &TreeContext, root: &Frame) -> Result<(), EngineError> {
        if root.is_placed() { Ok(()) } else { self.place(context, root, None) }
    }

    /// Checks the child at `place` of its parent on the first descent after the child was read.
    #[inline]
    pub fn check_child(
        &self,
        context: &TreeContext,
        parent: &Page,
        place: usize,
        child: &Frame,
    ) -> Result<(), EngineError> {
        if child.is_placed() { Ok(()) } else { self.place(context, child, Some((parent, place))) }
    }

    #[cold]
    fn place(
        &self,
        context: &TreeContext,
        frame: &Frame,
        parent: Option<(&Page, usize)>,
    ) -> Result<(), EngineError> {
        let page = frame.page();
        let is_right = match parent {
            None => page.low().is_empty() && page.high().is_none(),
            Some((parent, n)) => {
                let high = match n + 1 < parent.len() {
                    true => Some(parent.key(n + 1)),
                    false => parent.high().map(<[u8]>::to_vec),
                };
                page.level() + 1 == parent.level()
                    && page.low() == parent.key(n)
                    && page.high() == high.as_deref()
            }
        };
        if !is_right {
            let what = "it has other keys, or another level, than its parent says";
            return Err(context.pool.misplaced(self.index, page.id(), what));
        }
        frame.note_placed();
        Ok(())
    }

    /// Returns keys that divide the tree into parts of similar size. They come from the highest level that
    /// has enough keys, and from the leaves only if the tree is small.
    pub fn sample(&self, context: &TreeContext, count: usize) -> Result<Vec<Vec<u8>>, EngineError> {
        const KEYS_MIN: usize = 32;
        let mut pages = vec![self.root];
        let mut below = u8::MAX;
        loop {
            let (mut keys, mut children) = (Vec::new(), Vec::new());
            let mut level = 0;
            for id in pages {
                // If a page was merged into its neighbour meanwhile, its keys are missing here.
                let Ok(frame) = context.pool.shared(self.index, id) else { continue };
                let page = frame.page();
                // The root may have grown. A page in the wrong place is damage, which its readers report.
                if page.level() >= below {
                    continue;
                }
                level = page.level().max(level);
                (0..page.len()).for_each(|n| keys.push(page.key(n)));
                if page.level() > 0 {
                    (0..page.len()).for_each(|n| children.push(page.child(n)));
                }
            }
            if children.is_empty() || keys.len() >= KEYS_MIN.min(count) {
                let step = keys.len().div_ceil(count.max(1)).max(1);
                return Ok(keys.into_iter().step_by(step).collect());
            }
            (pages, below) = (children, level);
        }
    }

    /// Returns the leaf that covers the key, latched exclusively.
    pub fn leaf_exclusive(&self, context: &TreeContext, key: &[u8]) -> Result<Exclusive, EngineError> {
        let mut patience = Patience::default();
        loop {
            match self.try_leaf_exclusive(context, key, &patience)? {
                Some(Fetch::Here(leaf)) => return Ok(leaf),
                Some(Fetch::Later(wait)) => patience.sleep(wait),
                // The root was split meanwhile.
                None => {}
            }
        }
    }

    fn try_leaf_exclusive(
        &self,
        context: &TreeContext,
        key: &[u8],
        patience: &Patience,
    ) -> Result<Option<Fetch<Exclusive>>, EngineError> {
        let side = Side::Covering(key);
        let parent = match self.try_node(context, &side, 1, Touch::Usual, patience)? {
            Fetch::Here(parent) => parent,
            Fetch::Later(wait) => return Ok(Some(Fetch::Later(wait))),
        };
        if parent.page().level() == 0 {
            drop(parent);
            return Ok(match patience.exclusive(context, self.index, self.root)? {
                Fetch::Here(root) if root.page().level() > 0 => None,
                Fetch::Here(root) => {
                    self.check_root(context, &root)?;
                    Some(Fetch::Here(root))
                }
                later => Some(later),
            });
        }
        let place = side.child_of(parent.page());
        let child = parent.page().child(place);
        let soon = patience.exclusive(context, self.index, child)?;
        if let Fetch::Here(leaf) = &soon {
            self.check_child(context, parent.page(), place, leaf)?;
        }
        Ok(Some(soon))
    }

    /// Prefetches the leaves after the one that covers a key, or before the one with the keys below it.
    pub fn read_ahead(&self, context: &TreeContext, side: &Side<'_>) -> Result<(), EngineError> {
        let patience = Patience::default();
        let Fetch::Here(parent) = self.try_node(context, side, 1, Touch::Usual, &patience)? else {
            return Ok(());
        };
        let page = parent.page();
        if page.level() == 0 {
            return Ok(());
        }
        let at = side.child_of(page);
        let ids: Vec<PageId> = match side {
            Side::Covering(_) => (at + 1..page.len()).take(AHEAD_LEAVES).map(|n| page.child(n)).collect(),
            Side::Below(_) => (0..at).rev().take(AHEAD_LEAVES).map(|n| page.child(n)).collect(),
        };
        // These pages remain children of this page while it is latched.
        context.pool.read_ahead(self.index, ids);
        Ok(())
    }

    /// Makes room for `needed` bytes in the leaf that covers the key. Splits pages one by one, from the top,
    /// until the leaf has the space.
    pub fn split(&self, context: &TreeContext, key: &[u8], needed: usize) -> Result<(), EngineError> {
        // Read missing pages first, so that the latches below are usually not held during I/O.
        drop(self.leaf(context, &Side::Covering(key))?);
        loop {
            let mut path = self.path(context, key)?;
            if has_room(path.last().expect("a leaf").page(), needed) {
                return Ok(());
            }
            let (mut at, separator) = page_to_split(&path, key);
            if at == 0 {
                self.push_down(context, &mut path[0])?;
                continue;
            }
            let mut frame = path.remove(at);
            at -= 1;
            self.divide(context, &mut path[at], &mut frame, &separator)?;
        }
    }

    /// Returns all pages from the root to the key's leaf, latched exclusively.
    pub fn path(&self, context: &TreeContext, key: &[u8]) -> Result<Vec<Exclusive>, EngineError> {
        let mut path = vec![context.pool.exclusive(self.index, self.root)?];
        self.check_root(context, &path[0])?;
        loop {
            let page = path.last().expect("it begins with the root").page();
            if page.level() == 0 {
                return Ok(path);
            }
            let next = self.child_alone(context, page, page.child_place(key))?;
            debug_assert!(next.page().covers(key), "a descent leads to a page that does not cover the key");
            debug_assert_eq!(next.page().level() + 1, page.level(), "a descent passes over a level");
            path.push(next);
        }
    }

    /// Returns a child of a latched page, latched exclusively.
    pub fn child_alone(
        &self,
        context: &TreeContext,
        parent: &Page,
        place: usize,
    ) -> Result<Exclusive, EngineError> {
        let child = context.pool.exclusive(self.index, parent.child(place))?;
        self.check_child(context, parent, place, &child)?;
        Ok(child)
    }

    /// Moves the entries of the full root into a new child.
    fn push_down(&self, context: &TreeContext, root: &mut Exclusive) -> Result<(), EngineError> {
        let structure = context.changes.structure();
        structure.capture(root)?;
        let id = context.new_page_id();
        self.pages.lock().insert(id);
        let old = root.page();
        let (index, level) = (self.index, old.level());
        let mut child = Page::new(PageSpec { index, id, level, low: &[], high: None });
        (0..old.len()).for_each(|n| child.append(&old.key(n), old.entry(n)));
        let mut top = Page::new(PageSpec { index, id: self.root, level: level + 1, low: &[], high: None });
        top.append(&[], naming(&id.0.to_le_bytes()));
        debug_assert_eq!(child.len(), old.len(), "entries of the root are lost");
        child.check_invariants();
        top.check_invariants();
        *root.page_mut() = top;
        context.changes.list(root);
        context.changes.list(&mut context.pool.create(child));
        Ok(())
    }

    /// Moves the entries from the split point on into a new right neighbour and adds it to the parent, which
    /// has room.
    fn divide(
        &self,
        context: &TreeContext,
        parent: &mut Exclusive,
        frame: &mut Exclusive,
        split: &SplitPoint,
    ) -> Result<(), EngineError> {
        let structure = context.changes.structure();
        structure.capture(parent)?;
        structure.capture(frame)?;
        let id = context.new_page_id();
        self.pages.lock().insert(id);
        let old = frame.page().clone();
        debug_assert!(old.covers(&split.separator), "a page is split outside of its keys");
        debug_assert!(split.separator.as_slice() > old.low(), "the left half covers no key");
        debug_assert!(parent.page().covers(&split.separator), "the parent does not cover the new page");
        debug_assert_eq!(parent.page().level(), old.level() + 1, "the parent is on another level");
        let half = |id: PageId, low: &[u8], high: Option<&[u8]>, range: std::ops::Range<usize>| {
            let mut page = Page::new(PageSpec { index: self.index, id, level: old.level(), low, high });
            range.for_each(|n| page.append(&old.key(n), old.entry(n)));
            page
        };
        let right = half(id, &split.separator, old.high(), split.at..old.len());
        *frame.page_mut() = half(old.id(), old.low(), Some(&split.separator), 0..split.at);
        let place = parent.page().find(&split.separator).expect_err("separators are new");
        let is_put = parent.page_mut().insert(place, &split.separator, naming(&id.0.to_le_bytes()));
        assert!(is_put, "the parent has room");
        let left = frame.page();
        debug_assert_eq!(left.len() + right.len(), old.len(), "entries are lost in a split");
        debug_assert_eq!(left.high(), Some(right.low()), "keys between the halves are in no page");
        debug_assert_eq!(right.high(), old.high(), "keys after the right half are in no page");
        for page in [left, &right, parent.page()] {
            page.check_invariants();
        }
        context.changes.list(parent);
        context.changes.list(frame);
        context.changes.list(&mut context.pool.create(right));
        Ok(())
    }
}

/// Returns the entry of an inner node for a child.
fn naming(child: &[u8; 8]) -> Entry<'_> {
    Entry { is_deleted: false, is_overflow: false, version: None, value: child }
}

fn has_room(page: &Page, needed: usize) -> bool {
    page.free_bytes() >= needed || page.len() < SPLIT_ENTRIES_MIN
}

/// Position at which a page is split.
struct SplitPoint {
    /// Number of the first entry of the right half.
    at: usize,
    /// Low fence of the right half.
    separator: Vec<u8>,
}

/// Returns the lowest page of the path whose parent has room for its separator, or else the root, with its
/// split point.
fn page_to_split(path: &[Exclusive], key: &[u8]) -> (usize, SplitPoint) {
    let mut at = path.len() - 1;
    loop {
        let split = split_point(path[at].page(), key);
        if at == 0 || has_room(path[at - 1].page(), ENTRY_OVERHEAD + split.separator.len()) {
            return (at, split);
        }
        at -= 1;
    }
}

/// Upper bound of the size of an inner entry without its key.
const ENTRY_OVERHEAD: usize = 64;

/// Returns a split point that puts half of the bytes on each side, or all entries to the left if keys arrive
/// in ascending order.
fn split_point(page: &Page, key: &[u8]) -> SplitPoint {
    let len = page.len();
    let is_leaf = page.level() == 0;
    let is_ascending = page.high().is_none() && page.find(key) == Err(len);
    let last = page.key(len - 1);
    if is_ascending && is_leaf {
        return SplitPoint { at: len, separator: shortest_between(&last, key) };
    }
    let half = (0..len).map(|n| page.entry_bytes_at(n)).sum::<usize>() / 2;
    let mut left = 0;
    let by_bytes = (0..len).position(|n| {
        left += page.entry_bytes_at(n);
        left > half
    });
    debug_assert!(len >= 2, "a page of one entry is split");
    let at = if is_ascending { len - 1 } else { by_bytes.unwrap_or(len / 2).clamp(1, len - 1) };
    let separator = match is_leaf {
        true => shortest_between(&page.key(at - 1), &page.key(at)),
        // The separator is the child's low fence.
        false => page.key(at),
    };
    SplitPoint { at, separator }
}

/// Returns the shortest key that is above `below` and not above `upto`.
fn shortest_between(below: &[u8], upto: &[u8]) -> Vec<u8> {
    let shared = below.iter().zip(upto).take_while(|(a, b)| a == b).count();
    let between = upto[..upto.len().min(shared + 1)].to_vec();
    debug_assert!(*below < *between && *between <= *upto, "a separator that does not separate");
    between
}
