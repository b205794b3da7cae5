//! A tree: the pages of one key space, and the ways down.
//!
//! # Ways down
//! | who | latches |
//! |---|---|
//! | readers | shared, a child before its parent goes |
//! | writers of one entry | shared down to the leaf's parent, the leaf alone |
//! | a split | alone, from the lowest ancestor that may change |
//!
//! Readers and writers of one entry that must wait for a page to be read let their latches go, sleep and go
//! down again ([`Patience`]).
//!
//! All latch downwards, so nobody waits in a circle. The root keeps its page id for good: when it is full,
//! its entries move into a new child.
//!
//! # Pages that were read
//! An image may be sound and belong elsewhere ([`crate::sound`]). So the first way down that comes to a page
//! since it was read compares its level and fences with what its parent says. A level less with each step
//! also ends every way down.
//!
//! # Invariants
//! - The children of an inner node cover its range without a hole, each with the fences that its entries say.
//! - While a checkpoint runs, a page that it has not written yet is captured before its structure changes
//!   ([`Structure::capture`](crate::changes::Structure::capture)): the checkpoint's pages make up the tree as
//!   it was when it began.

use std::collections::HashSet;
use std::sync::Arc;

use cohort_base::IndexId;
use cohort_engine::EngineError;

use crate::changes::Changes;
use crate::page::{Entry, Page, PageId, PageSpec, SPLIT_ENTRIES_MIN};
use crate::pool::{Exclusive, Frame, Latch, Pool, Shared, Soon, Touch};
use crate::reads::Wait;
use crate::space::Extent;
use crate::sync::{AtomicI64, AtomicU64, Mutex, Ordering, latch_of_shared};

/// Leaves that are read ahead of a scan at once.
pub const AHEAD_LEAVES: usize = 8;

/// What all trees of an engine share.
pub struct Ground {
    pub pool: Arc<Pool>,
    pub changes: Changes,
    next_page: AtomicU64,
}

impl Ground {
    /// For trees whose pages are numbered from `next_page` on.
    pub fn new(pool: Arc<Pool>, changes: Changes, next_page: u64) -> Ground {
        Ground { pool, changes, next_page: AtomicU64::new(next_page) }
    }

    /// A number for a new page.
    pub fn new_page_id(&self) -> PageId {
        PageId(self.next_page.fetch_add(1, Ordering::Relaxed))
    }

    /// The number that the next new page gets.
    pub fn next_page(&self) -> u64 {
        self.next_page.load(Ordering::Relaxed)
    }
}

/// How a way down deals with pages that are not in memory.
#[derive(Default)]
struct Patience {
    /// The page that was slept for, kept in memory until the way down is done.
    pin: Option<Latch>,
    /// A read of another thread failed: the next way down reads for itself, and has the error.
    reads_itself: bool,
}

impl Patience {
    /// The caller has let its latches go.
    fn sleep(&mut self, wait: Wait) {
        let Wait { loading, latch, bed } = wait;
        self.pin = Some(latch);
        if !loading.sleep(&bed) {
            self.reads_itself = true;
        }
    }

    fn shared(
        &self,
        ground: &Ground,
        index: IndexId,
        id: PageId,
        touch: Touch,
    ) -> Result<Soon<Shared>, EngineError> {
        match self.reads_itself {
            true => ground.pool.shared(index, id).map(Soon::Here),
            false => ground.pool.shared_soon(index, id, touch),
        }
    }

    fn exclusive(&self, ground: &Ground, index: IndexId, id: PageId) -> Result<Soon<Exclusive>, EngineError> {
        match self.reads_itself {
            true => ground.pool.exclusive(index, id).map(Soon::Here),
            false => ground.pool.exclusive_soon(index, id),
        }
    }
}

/// The key space of one index.
pub struct Tree {
    pub index: IndexId,
    pub root: PageId,
    /// Entries, estimated: inserted less removed.
    pub entries: AtomicI64,
    /// All its pages.
    pub pages: Mutex<HashSet<PageId>>,
    /// Extents of its long values.
    pub values: Mutex<HashSet<Extent>>,
}

/// The end of a way down: the leaf that a key belongs to.
pub enum Side<'k> {
    /// The leaf that covers the key.
    Covering(&'k [u8]),
    /// The leaf with the keys right below this one; none: the last leaf.
    Below(Option<&'k [u8]>),
}

impl Side<'_> {
    fn child_of(&self, page: &Page) -> usize {
        match self {
            Side::Covering(key) => page.child_place(key),
            Side::Below(None) => page.len() - 1,
            Side::Below(Some(key)) => match page.find(key) {
                Ok(n) | Err(n) => n.saturating_sub(1),
            },
        }
    }
}

impl Tree {
    /// Entries came or went.
    pub fn count_entries(&self, by: i64) {
        self.entries.fetch_add(by, Ordering::Relaxed);
    }

    /// A tree of one empty leaf.
    pub fn create(index: IndexId, ground: &Ground) -> Arc<Tree> {
        let root = ground.new_page_id();
        let tree = Arc::new(Tree {
            index,
            root,
            entries: AtomicI64::new(0),
            pages: Mutex::new(HashSet::from([root])),
            values: Mutex::default(),
        });
        let mut frame =
            ground.pool.create(Page::new(PageSpec { index, id: root, level: 0, low: &[], high: None }));
        ground.changes.list(&mut frame);
        tree
    }

    /// The leaf, latched with others.
    pub fn leaf(&self, ground: &Ground, side: &Side<'_>) -> Result<Shared, EngineError> {
        self.leaf_touched(ground, side, Touch::Usual)
    }

    /// The same for a use of the leaf that may be the only one.
    pub fn leaf_touched(
        &self,
        ground: &Ground,
        side: &Side<'_>,
        touch: Touch,
    ) -> Result<Shared, EngineError> {
        let mut patience = Patience::default();
        loop {
            match self.try_node(ground, side, 0, touch, &patience)? {
                Soon::Here(leaf) => return Ok(leaf),
                Soon::Later(wait) => patience.sleep(wait),
            }
        }
    }

    /// The same, and its parent, which is latched no more; none: the leaf is the root.
    pub fn leaf_and_parent(
        &self,
        ground: &Ground,
        side: &Side<'_>,
        touch: Touch,
    ) -> Result<(Shared, Option<Latch>), EngineError> {
        let mut patience = Patience::default();
        loop {
            let parent = match self.try_node(ground, side, 1, touch, &patience)? {
                Soon::Here(parent) => parent,
                Soon::Later(wait) => {
                    patience.sleep(wait);
                    continue;
                }
            };
            if parent.page().level() == 0 {
                return Ok((parent, None));
            }
            let place = side.child_of(parent.page());
            let child = parent.page().child(place);
            match patience.shared(ground, self.index, child, touch)? {
                Soon::Here(leaf) => {
                    self.check_child(ground, parent.page(), place, &leaf)?;
                    return Ok((leaf, Some(latch_of_shared(&parent).clone())));
                }
                Soon::Later(wait) => {
                    drop(parent);
                    patience.sleep(wait);
                }
            }
        }
    }

    /// One way down to the node of a level.
    fn try_node(
        &self,
        ground: &Ground,
        side: &Side<'_>,
        level: u8,
        touch: Touch,
        patience: &Patience,
    ) -> Result<Soon<Shared>, EngineError> {
        let mut frame = match patience.shared(ground, self.index, self.root, Touch::Usual)? {
            Soon::Here(root) => root,
            later => return Ok(later),
        };
        self.check_root(ground, &frame)?;
        while frame.page().level() > level {
            let place = side.child_of(frame.page());
            let child = frame.page().child(place);
            let touch = if frame.page().level() == 1 { touch } else { Touch::Usual };
            match patience.shared(ground, self.index, child, touch)? {
                Soon::Here(next) => {
                    self.check_child(ground, frame.page(), place, &next)?;
                    frame = next;
                }
                later => return Ok(later),
            }
        }
        Ok(Soon::Here(frame))
    }

    /// Checks the root on the first way down since it was read.
    #[inline]
    fn check_root(&self, ground: &Ground, root: &Frame) -> Result<(), EngineError> {
        if root.is_placed() { Ok(()) } else { self.place(ground, root, None) }
    }

    /// Checks the child that the parent names at `place` on the first way down to it since it was read.
    #[inline]
    pub fn check_child(
        &self,
        ground: &Ground,
        parent: &Page,
        place: usize,
        child: &Frame,
    ) -> Result<(), EngineError> {
        if child.is_placed() { Ok(()) } else { self.place(ground, child, Some((parent, place))) }
    }

    #[cold]
    fn place(
        &self,
        ground: &Ground,
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
            return Err(ground.pool.misplaced(self.index, page.id(), what));
        }
        frame.note_placed();
        Ok(())
    }

    /// Keys that divide the tree into parts of about one size: those of the highest level that has some, of
    /// leaves only when there are few.
    pub fn sample(&self, ground: &Ground, count: usize) -> Result<Vec<Vec<u8>>, EngineError> {
        const KEYS_MIN: usize = 32;
        let mut pages = vec![self.root];
        let mut below = u8::MAX;
        loop {
            let (mut keys, mut children) = (Vec::new(), Vec::new());
            let mut level = 0;
            for id in pages {
                // A page that went into its neighbour meanwhile takes its keys with it.
                let Ok(frame) = ground.pool.shared(self.index, id) else { continue };
                let page = frame.page();
                // The root may have grown; a page elsewhere is damage, which its readers report.
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

    /// The leaf that covers the key, latched alone.
    pub fn leaf_exclusive(&self, ground: &Ground, key: &[u8]) -> Result<Exclusive, EngineError> {
        let mut patience = Patience::default();
        loop {
            match self.try_leaf_exclusive(ground, key, &patience)? {
                Some(Soon::Here(leaf)) => return Ok(leaf),
                Some(Soon::Later(wait)) => patience.sleep(wait),
                // The root was split meanwhile.
                None => {}
            }
        }
    }

    fn try_leaf_exclusive(
        &self,
        ground: &Ground,
        key: &[u8],
        patience: &Patience,
    ) -> Result<Option<Soon<Exclusive>>, EngineError> {
        let side = Side::Covering(key);
        let parent = match self.try_node(ground, &side, 1, Touch::Usual, patience)? {
            Soon::Here(parent) => parent,
            Soon::Later(wait) => return Ok(Some(Soon::Later(wait))),
        };
        if parent.page().level() == 0 {
            drop(parent);
            return Ok(match patience.exclusive(ground, self.index, self.root)? {
                Soon::Here(root) if root.page().level() > 0 => None,
                Soon::Here(root) => {
                    self.check_root(ground, &root)?;
                    Some(Soon::Here(root))
                }
                later => Some(later),
            });
        }
        let place = side.child_of(parent.page());
        let child = parent.page().child(place);
        let soon = patience.exclusive(ground, self.index, child)?;
        if let Soon::Here(leaf) = &soon {
            self.check_child(ground, parent.page(), place, leaf)?;
        }
        Ok(Some(soon))
    }

    /// Has the leaves read that come after the one that covers `key`, or before the one with the keys below
    /// it.
    pub fn read_ahead(&self, ground: &Ground, side: &Side<'_>) -> Result<(), EngineError> {
        let patience = Patience::default();
        let Soon::Here(parent) = self.try_node(ground, side, 1, Touch::Usual, &patience)? else {
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
        // The pages stay children of this one while it is latched.
        ground.pool.read_ahead(self.index, ids);
        Ok(())
    }

    /// Makes room for so many bytes in the leaf that covers the key: one split after the other, from the top,
    /// until the leaf has it.
    pub fn split(&self, ground: &Ground, key: &[u8], needed: usize) -> Result<(), EngineError> {
        // Reads what is not in memory, so that the latches below are held for no I/O as a rule.
        drop(self.leaf(ground, &Side::Covering(key))?);
        loop {
            let mut path = self.path(ground, key)?;
            if has_room(path.last().expect("a leaf").page(), needed) {
                return Ok(());
            }
            let (mut at, separator) = page_to_split(&path, key);
            if at == 0 {
                self.push_down(ground, &mut path[0])?;
                continue;
            }
            let mut frame = path.remove(at);
            at -= 1;
            self.divide(ground, &mut path[at], &mut frame, &separator)?;
        }
    }

    /// All pages from the root down to the key's leaf, latched alone.
    pub fn path(&self, ground: &Ground, key: &[u8]) -> Result<Vec<Exclusive>, EngineError> {
        let mut path = vec![ground.pool.exclusive(self.index, self.root)?];
        self.check_root(ground, &path[0])?;
        loop {
            let page = path.last().expect("it begins with the root").page();
            if page.level() == 0 {
                return Ok(path);
            }
            let next = self.child_alone(ground, page, page.child_place(key))?;
            path.push(next);
        }
    }

    /// A child of a latched page, latched alone.
    pub fn child_alone(
        &self,
        ground: &Ground,
        parent: &Page,
        place: usize,
    ) -> Result<Exclusive, EngineError> {
        let child = ground.pool.exclusive(self.index, parent.child(place))?;
        self.check_child(ground, parent, place, &child)?;
        Ok(child)
    }

    /// Moves the entries of the full root into a new child.
    fn push_down(&self, ground: &Ground, root: &mut Exclusive) -> Result<(), EngineError> {
        let structure = ground.changes.structure();
        structure.capture(root)?;
        let id = ground.new_page_id();
        self.pages.lock().insert(id);
        let old = root.page();
        let (index, level) = (self.index, old.level());
        let mut child = Page::new(PageSpec { index, id, level, low: &[], high: None });
        (0..old.len()).for_each(|n| child.append(&old.key(n), old.entry(n)));
        let mut top = Page::new(PageSpec { index, id: self.root, level: level + 1, low: &[], high: None });
        top.append(&[], naming(&id.0.to_le_bytes()));
        *root.page_mut() = top;
        ground.changes.list(root);
        ground.changes.list(&mut ground.pool.create(child));
        Ok(())
    }

    /// Moves the entries from the split point on into a new right neighbour and enters it in the parent,
    /// which has room.
    fn divide(
        &self,
        ground: &Ground,
        parent: &mut Exclusive,
        frame: &mut Exclusive,
        split: &SplitPoint,
    ) -> Result<(), EngineError> {
        let structure = ground.changes.structure();
        structure.capture(parent)?;
        structure.capture(frame)?;
        let id = ground.new_page_id();
        self.pages.lock().insert(id);
        let old = frame.page().clone();
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
        ground.changes.list(parent);
        ground.changes.list(frame);
        ground.changes.list(&mut ground.pool.create(right));
        Ok(())
    }
}

/// An inner node's entry.
fn naming(child: &[u8; 8]) -> Entry<'_> {
    Entry { is_deleted: false, is_overflow: false, version: None, value: child }
}

fn has_room(page: &Page, needed: usize) -> bool {
    page.free_bytes() >= needed || page.len() < SPLIT_ENTRIES_MIN
}

/// Where a page is divided.
struct SplitPoint {
    /// The first entry of the right half.
    at: usize,
    /// The right half's low fence.
    separator: Vec<u8>,
}

/// The lowest page of the path whose parent has room for its separator, or the root, with its split point.
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

/// More than what an inner entry takes beside its key.
const ENTRY_OVERHEAD: usize = 64;

/// Half of the bytes to each side; all to the left when keys arrive in ascending order.
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
    let at = if is_ascending { len - 1 } else { by_bytes.unwrap_or(len / 2).clamp(1, len - 1) };
    let separator = match is_leaf {
        true => shortest_between(&page.key(at - 1), &page.key(at)),
        // It is the child's low fence.
        false => page.key(at),
    };
    SplitPoint { at, separator }
}

/// The shortest key above `below` and not above `upto`.
fn shortest_between(below: &[u8], upto: &[u8]) -> Vec<u8> {
    let shared = below.iter().zip(upto).take_while(|(a, b)| a == b).count();
    upto[..upto.len().min(shared + 1)].to_vec()
}
