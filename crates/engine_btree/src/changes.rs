//! Which pages a checkpoint has to write, and what it writes of them.
//!
//! # Concepts
//! - **Interval**: the time between the beginnings of two checkpoints. A page that changes is listed once in
//!   it.
//! - **Horizon** of a checkpoint: the last transaction that was ordered when it began. All up to it is
//!   published, because a checkpoint begins behind an open gate, and none later is in its images.
//! - **Reconciled**: the entries of a page as they were at the horizon, without version references.
//! - **Captured**: reconciled before the page's structure changed, because the checkpoint had not come to it.
//! - **Waiting**: a page whose image leaves out what an undecided transaction has installed in it. The next
//!   checkpoint has no other image of it, however long the transaction stays undecided.
//! - **Removed**: a page whose entries went into a neighbour. The next checkpoint's map has it no more.
//!
//! # Why a checkpoint is one state
//! Its pages are those listed when it began, each with the keys it covered then and the versions of the
//! horizon; pages not listed had not changed since their last image. So together they are the trees at the
//! horizon, and the checkpoint's LSN is exact. The horizon is a live view while the checkpoint runs, so purge
//! keeps what reconciling needs.
//!
//! # Invariants
//! - A page is listed, under its latch, before a change of it can be ordered.
//! - A page of the checkpoint is reconciled once, by the thread that takes it from `pending` under its latch.
//! - A page that holds anything the image leaves out is listed for the next checkpoint, or waits: what was
//!   installed before a checkpoint began and ordered afterwards is in neither of its images otherwise.
//! - What waits for a transaction is the checkpoint's that begins next after that is decided. The order stage
//!   is held while it begins, so that the transaction is not ordered at or before its horizon unseen.
//! - A page that is written plain ([`Reconciled::is_plain`]) and that nobody lists before the new page map is
//!   in force says what its image says, so its frame needs no eviction image.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId};
use cohort_engine::EngineError;

use crate::page::{Entry, Page, PageId, PageSpec};
use crate::pool::Frame;
use crate::space::Extent;
use crate::sync::{AtomicU64, Mutex, Ordering, RwLock, RwLockReadGuard};
use crate::value;
use crate::version::{Horizon, Shown, TrxNo, TrxRecord, TrxState, Undo, Versions};

/// A page as a checkpoint writes it.
pub struct Reconciled {
    pub index: IndexId,
    pub page: PageId,
    pub image: Vec<u8>,
    /// Long values that it names.
    pub values: Vec<Extent>,
    /// How many it has, if the page is a leaf; else 0.
    pub entries: u32,
    /// What the image leaves out. Nothing: the page need not be written again until it changes.
    pub leaves_out: LeavesOut,
    /// The page in memory says the same to everybody: no version is waited for, none older is needed. And it
    /// was not listed for the next checkpoint.
    pub is_plain: bool,
}

/// Versions that an image leaves out.
#[derive(Debug, Default)]
pub struct LeavesOut {
    /// Some of transactions that were ordered behind the horizon.
    is_newer: bool,
    /// Undecided transactions, some of them twice.
    undecided: Vec<TrxNo>,
}

type Pages = HashMap<PageId, IndexId>;

/// What the next checkpoint takes.
#[derive(Debug, Default)]
struct Listed {
    changed: Pages,
    removed: Vec<(IndexId, PageId)>,
    /// By the transaction that they wait for, which may be decided by now.
    waiting: HashMap<TrxNo, Pages>,
}

/// Pages that a checkpoint has to write.
#[derive(Debug)]
pub struct Pending(Vec<Pages>);

impl Pending {
    /// Whether the page is one of them.
    pub fn contains(&self, id: PageId) -> bool {
        self.0.iter().any(|pages| pages.contains_key(&id))
    }

    /// The page was written, or need not be.
    pub fn remove(&mut self, id: PageId) {
        for pages in &mut self.0 {
            pages.remove(&id);
        }
    }

    /// All of them, some twice.
    pub fn iter(&self) -> impl Iterator<Item = (PageId, IndexId)> {
        self.0.iter().flatten().map(|(id, index)| (*id, *index))
    }
}

impl LeavesOut {
    /// A version of this transaction, whose state may change meanwhile.
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
    /// Pages to be written.
    pub pending: Mutex<Pending>,
    /// Pages removed before it began.
    pub removed: Vec<(IndexId, PageId)>,
    captured: Mutex<Vec<Reconciled>>,
}

impl Running {
    /// What was captured since the last call.
    pub fn take_captured(&self) -> Vec<Reconciled> {
        std::mem::take(&mut *self.captured.lock())
    }
}

/// The pages that changed.
pub struct Changes {
    versions: Arc<Versions>,
    interval: AtomicU64,
    listed: Mutex<Listed>,
    running: RwLock<Option<Arc<Running>>>,
}

impl Changes {
    /// Nothing has changed.
    pub fn new(versions: Arc<Versions>) -> Changes {
        Changes {
            versions,
            interval: AtomicU64::new(1),
            listed: Mutex::default(),
            running: RwLock::default(),
        }
    }

    /// The page in the frame, which the caller has latched alone, is changed.
    pub fn list(&self, frame: &mut Frame) {
        frame.is_changed = true;
        if frame.listed_in == self.interval.load(Ordering::Acquire) {
            return;
        }
        let (id, index) = (frame.page().id(), frame.page().index());
        let mut listed = self.listed.lock();
        listed.changed.insert(id, index);
        frame.listed_in = self.interval.load(Ordering::Acquire);
    }

    /// Lists pages for the next checkpoint, whatever their frames say.
    pub fn list_again(&self, pages: impl IntoIterator<Item = (PageId, IndexId)>) {
        self.listed.lock().changed.extend(pages);
    }

    /// A page's image was written and leaves this out.
    pub fn list_left_out(&self, (id, index): (PageId, IndexId), leaves_out: &LeavesOut) {
        let mut listed = self.listed.lock();
        if leaves_out.is_newer {
            listed.changed.insert(id, index);
        }
        for trx in &leaves_out.undecided {
            listed.waiting.entry(*trx).or_default().insert(id, index);
        }
    }

    /// The pages are still to be removed from the map.
    pub fn remove_again(&self, pages: &[(IndexId, PageId)]) {
        self.listed.lock().removed.extend_from_slice(pages);
    }

    /// The pages of a tree that is gone are nobody's.
    pub fn forget(&self, pages: &HashSet<PageId>) {
        let mut listed = self.listed.lock();
        let Listed { changed, waiting, .. } = &mut *listed;
        waiting.values_mut().chain([changed]).for_each(|listed| listed.retain(|id, _| !pages.contains(id)));
    }

    /// Whether the page is listed for the next checkpoint.
    pub fn is_listed(&self, id: PageId) -> bool {
        self.listed.lock().changed.contains_key(&id)
    }

    /// Number of pages listed.
    pub fn listed_len(&self) -> usize {
        self.listed.lock().changed.len()
    }

    /// Keeps checkpoints from beginning while pages change their structure. The caller does no I/O under it.
    pub fn structure(&self) -> Structure<'_> {
        Structure { changes: self, running: self.running.read() }
    }

    /// Begins a checkpoint of all that is listed, between two changes of structure. The order stage is held.
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

    /// The checkpoint that runs is over.
    pub fn end(&self) {
        *self.running.write() = None;
    }

    /// The page's entries at the horizon. The caller holds its latch.
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
        let entries = if page.level() == 0 { image.len() as u32 } else { 0 };
        let (index, page) = (page.index(), page.id());
        Ok(Reconciled { index, page, image: image.image(), values, entries, leaves_out, is_plain })
    }
}

/// A change of structure: entries move between pages.
pub struct Structure<'c> {
    changes: &'c Changes,
    running: RwLockReadGuard<'c, Option<Arc<Running>>>,
}

impl Structure<'_> {
    /// The entries of the page, which the caller has latched alone, are about to move to other pages. After
    /// an error they must not.
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

    /// The page's entries have gone into a neighbour. It was captured.
    pub fn remove(&self, index: IndexId, id: PageId) {
        let mut listed = self.changes.listed.lock();
        listed.changed.remove(&id);
        for pages in listed.waiting.values_mut() {
            pages.remove(&id);
        }
        listed.removed.push((index, id));
    }
}
