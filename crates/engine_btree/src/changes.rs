//! Change list: the pages that a checkpoint has to write, and the content that it writes.
//!
//! # Concepts
//! - **Interval**: the time between the starts of two checkpoints. A page that changes is listed once per
//!   interval.
//! - **Horizon** of a checkpoint: the last transaction ordered when the checkpoint began. All transactions up
//!   to it are published, because a checkpoint begins only while the publish gate is open. Its images
//!   contain no later transaction.
//! - **Reconciled**: the entries of a page as they were at the horizon, without version references.
//! - **Captured**: reconciled before the page's structure changed, because the checkpoint had not reached the
//!   page yet.
//! - **Waiting**: a page whose image leaves out writes that an undecided transaction has installed in it. The
//!   next checkpoint has no other image of the page, no matter how long the transaction stays undecided.
//! - **Removed**: a page whose entries were merged into a neighbour. The next checkpoint removes it from the
//!   page map.
//!
//! # Why a checkpoint is one state
//! The checkpoint writes the pages that were listed when it began. Each image has the keys that the page
//! covered then, in their versions at the horizon. Pages that were not listed had not changed since their
//! last image. Together the images are the trees at the horizon, so the checkpoint's LSN is exact. The
//! horizon is a view in use while the checkpoint runs, so purge keeps the versions that reconciling needs.
//!
//! # Invariants
//! - A page is listed, under its latch, before a change of it can be ordered.
//! - Each page of a checkpoint is reconciled once, by the thread that takes it from `pending` under its
//!   latch.
//! - A page with versions that its image leaves out is listed for the next checkpoint, or waits. Otherwise a
//!   write that was installed before a checkpoint began and ordered afterwards would be in neither image.
//! - A page that waits for a transaction belongs to the first checkpoint that begins after the transaction is
//!   decided. The caller of [`Changes::begin`] holds the order stage, so that no transaction can be ordered
//!   within the horizon without its pages being included.
//! - If a page is written plain ([`Reconciled::is_plain`]) and is not listed again before the new page map is
//!   in force, the page equals its image, so its frame needs no eviction image.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId};
use cohort_engine::EngineError;

use crate::frame::Frame;
use crate::page::{Entry, Page, PageId, PageSpec};
use crate::space::Extent;
use crate::sync::{AtomicU64, Mutex, Ordering, RwLock, RwLockReadGuard};
use crate::trx_record::{TrxRecord, TrxState};
use crate::value;
use crate::version::{Horizon, Shown, Versions};
use crate::version_ref::{TrxNo, Undo};

/// The checkpoint image of a page.
pub struct Reconciled {
    pub index: IndexId,
    pub page: PageId,
    pub image: Vec<u8>,
    /// Overflow values that the image refers to.
    pub values: Vec<Extent>,
    /// Number of entries if the page is a leaf, otherwise 0.
    pub entries: u32,
    /// Versions that the image leaves out. If there are none, the page need not be written again until it
    /// changes.
    pub leaves_out: LeavesOut,
    /// The page in memory equals the image for all readers: no version is undecided, no older version is
    /// needed. In addition, the page was not listed for the next checkpoint.
    pub is_plain: bool,
}

/// Versions that an image leaves out.
#[derive(Debug, Default)]
pub struct LeavesOut {
    /// Set if some were ordered after the horizon.
    is_newer: bool,
    /// Undecided transactions, possibly with duplicates.
    undecided: Vec<TrxNo>,
}

type Pages = HashMap<PageId, IndexId>;

/// Pages for the next checkpoint.
#[derive(Debug, Default)]
struct Listed {
    changed: Pages,
    removed: Vec<(IndexId, PageId)>,
    /// Pages that wait, by transaction. The transaction may already be decided.
    waiting: HashMap<TrxNo, Pages>,
}

/// Pages that a checkpoint has to write.
#[derive(Debug)]
pub struct Pending(Vec<Pages>);

impl Pending {
    /// Returns whether the page is one of them.
    pub fn contains(&self, id: PageId) -> bool {
        self.0.iter().any(|pages| pages.contains_key(&id))
    }

    /// Removes a page that was written or need not be written.
    pub fn remove(&mut self, id: PageId) {
        for pages in &mut self.0 {
            pages.remove(&id);
        }
    }

    /// Returns all pages, possibly with duplicates.
    pub fn iter(&self) -> impl Iterator<Item = (PageId, IndexId)> {
        self.0.iter().flatten().map(|(id, index)| (*id, *index))
    }
}

impl LeavesOut {
    /// Adds a version of the transaction `writer`, whose state may change concurrently.
    fn add(&mut self, writer: &TrxRecord) {
        match writer.state() {
            TrxState::Committed(_) => self.is_newer = true,
            _ if self.undecided.last() == Some(&writer.number()) => {}
            TrxState::Installed | TrxState::Aborted => self.undecided.push(writer.number()),
        }
    }
}

/// A checkpoint that has begun.
pub struct Running {
    pub horizon: CommitSeq,
    /// Pages to write.
    pub pending: Mutex<Pending>,
    /// Pages that were removed before the checkpoint began.
    pub removed: Vec<(IndexId, PageId)>,
    captured: Mutex<Vec<Reconciled>>,
}

impl Running {
    /// Takes the pages that were captured since the last call.
    pub fn take_captured(&self) -> Vec<Reconciled> {
        std::mem::take(&mut *self.captured.lock())
    }
}

/// The change list.
pub struct Changes {
    versions: Arc<Versions>,
    interval: AtomicU64,
    listed: Mutex<Listed>,
    running: RwLock<Option<Arc<Running>>>,
}

impl Changes {
    /// Creates an empty list.
    pub fn new(versions: Arc<Versions>) -> Changes {
        Changes {
            versions,
            interval: AtomicU64::new(1),
            listed: Mutex::default(),
            running: RwLock::default(),
        }
    }

    /// Lists the page in the frame as changed. The caller has latched it exclusively.
    pub fn list(&self, frame: &mut Frame) {
        frame.is_changed = true;
        if frame.listed_in == self.interval.load(Ordering::Acquire) {
            return;
        }
        let (id, index) = (frame.page().id(), frame.page().index());
        let mut listed = self.listed.lock();
        let other = listed.changed.insert(id, index);
        debug_assert!(other.is_none_or(|other| other == index), "a page belongs to two indexes");
        frame.listed_in = self.interval.load(Ordering::Acquire);
    }

    /// Lists pages for the next checkpoint, regardless of the state of their frames.
    pub fn list_again(&self, pages: impl IntoIterator<Item = (PageId, IndexId)>) {
        self.listed.lock().changed.extend(pages);
    }

    /// Lists a page again whose image was written and leaves these versions out.
    pub fn list_left_out(&self, (id, index): (PageId, IndexId), leaves_out: &LeavesOut) {
        let mut listed = self.listed.lock();
        if leaves_out.is_newer {
            listed.changed.insert(id, index);
        }
        for trx in &leaves_out.undecided {
            listed.waiting.entry(*trx).or_default().insert(id, index);
        }
    }

    /// Lists pages again that the next checkpoint has to remove from the map.
    pub fn remove_again(&self, pages: &[(IndexId, PageId)]) {
        self.listed.lock().removed.extend_from_slice(pages);
    }

    /// Removes the pages of a tree that no longer exists from the list.
    pub fn forget(&self, pages: &HashSet<PageId>) {
        let mut listed = self.listed.lock();
        let Listed { changed, waiting, .. } = &mut *listed;
        waiting.values_mut().chain([changed]).for_each(|listed| listed.retain(|id, _| !pages.contains(id)));
    }

    /// Returns whether the page is listed for the next checkpoint.
    pub fn is_listed(&self, id: PageId) -> bool {
        self.listed.lock().changed.contains_key(&id)
    }

    /// Returns the number of listed pages.
    pub fn listed_len(&self) -> usize {
        self.listed.lock().changed.len()
    }

    /// Keeps checkpoints from beginning while the structure of pages changes. The caller does no I/O while it
    /// holds the guard.
    pub fn structure(&self) -> Structure<'_> {
        Structure { changes: self, running: self.running.read() }
    }

    /// Begins a checkpoint of all listed pages, between two changes of structure. The caller holds the order
    /// stage.
    pub fn begin(&self, horizon: CommitSeq) -> Arc<Running> {
        let mut running = self.running.write();
        assert!(running.is_none(), "one checkpoint runs at a time");
        let mut listed = self.listed.lock();
        self.interval.fetch_add(1, Ordering::AcqRel);
        let mut pending = vec![std::mem::take(&mut listed.changed)];
        pending.extend(listed.waiting.extract_if(|trx, _| !self.versions.is_undecided(*trx)).map(|it| it.1));
        let begun = Arc::new(Running {
            horizon,
            pending: Mutex::new(Pending(pending)),
            removed: std::mem::take(&mut listed.removed),
            captured: Mutex::default(),
        });
        *running = Some(begun.clone());
        begun
    }

    /// Ends the running checkpoint.
    pub fn end(&self) {
        let ended = self.running.write().take();
        debug_assert!(ended.is_some(), "a checkpoint ends twice: two could run at a time");
    }

    /// Returns the page's entries at the horizon. The caller holds the page's latch.
    pub fn reconcile(&self, page: &Page, horizon: CommitSeq) -> Result<Reconciled, EngineError> {
        let spec = PageSpec {
            index: page.index(),
            id: page.id(),
            level: page.level(),
            low: page.low(),
            high: page.high(),
        };
        let mut image = Page::new(spec);
        let (mut values, mut leaves_out) = (Vec::new(), LeavesOut::default());
        let mut is_plain = !self.is_listed(page.id());
        let mut key = Vec::new();
        for n in 0..page.len() {
            let entry = page.entry(n);
            if let Some(version) = entry.version.filter(|it| !self.versions.is_seen_by_all(it.trx)) {
                is_plain = false;
                if let Some(writer) = self.versions.unseen(Horizon::at(horizon), version.trx) {
                    leaves_out.add(&writer);
                }
            }
            is_plain &= !entry.is_deleted;
            let older: Undo;
            let entry = match self.versions.resolve(Horizon::at(horizon), entry.version)? {
                Shown::Entry if entry.is_deleted => continue,
                Shown::Entry => Entry { version: None, ..entry },
                Shown::Older(undo) => {
                    older = undo;
                    let Some(value) = &older.value else { continue };
                    let is_overflow = value.is_overflow;
                    Entry { is_deleted: false, is_overflow, version: None, value: &value.bytes }
                }
            };
            if entry.is_overflow {
                values.push(value::extent_of(entry.value));
            }
            key.clear();
            page.push_key(n, &mut key);
            image.append(&key, entry);
        }
        debug_assert!(image.len() <= page.len(), "an image has entries that the page does not have");
        debug_assert!(page.level() == 0 || image.len() == page.len(), "an image leaves out a child");
        debug_assert!(values.len() <= image.len(), "an image refers to overflow values of no entry");
        debug_assert!(
            !is_plain || !leaves_out.is_newer && leaves_out.undecided.is_empty(),
            "a page that differs from its image would be evicted without a write"
        );
        let entries = if page.level() == 0 { image.len() as u32 } else { 0 };
        let (index, page) = (page.index(), page.id());
        Ok(Reconciled { index, page, image: image.image(), values, entries, leaves_out, is_plain })
    }
}

/// A change of structure, which moves entries between pages.
pub struct Structure<'c> {
    changes: &'c Changes,
    running: RwLockReadGuard<'c, Option<Arc<Running>>>,
}

impl Structure<'_> {
    /// Captures the page if the running checkpoint has not written it yet. Called before its entries move to
    /// other pages; if it fails, they must not move. The caller has latched the page exclusively.
    pub fn capture(&self, frame: &mut Frame) -> Result<(), EngineError> {
        let Some(running) = self.running.as_ref() else { return Ok(()) };
        let id = frame.page().id();
        if running.pending.lock().contains(id) {
            let reconciled = self.changes.reconcile(frame.page(), running.horizon)?;
            running.pending.lock().remove(id);
            running.captured.lock().push(reconciled);
        }
        Ok(())
    }

    /// Lists the page as removed after its entries were merged into a neighbour. The page was captured
    /// before.
    pub fn remove(&self, index: IndexId, id: PageId) {
        let mut listed = self.changes.listed.lock();
        debug_assert!(
            !listed.removed.iter().rev().take(64).any(|removed| *removed == (index, id)),
            "a page is removed twice"
        );
        listed.changed.remove(&id);
        for pages in listed.waiting.values_mut() {
            pages.remove(&id);
        }
        listed.removed.push((index, id));
    }
}
