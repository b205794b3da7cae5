//! Checkpoints: the state at one LSN, written out of place while readers and writers work.
//!
//! 1. `begin_checkpoint`, the order stage held: the list of changed pages becomes the checkpoint's, and a
//!    view of the horizon is pinned. Microseconds.
//! 2. `finish`: page after page is latched with others, reconciled and written; pages that are about to
//!    change their structure were captured (`changes.rs`).
//! 3. The page map with the new places is written, then synced with all images, then the superblock.
//!    Behind a large transaction the pages are many, and small ones are to go on beside it: they are written
//!    in steps, and the caller may have the checkpoint rest between two of them.
//! 4. Pages that have not changed since they were written need no eviction image any more.
//!
//! # On failure
//! The former superblock stays in force. The pages are listed again for the next checkpoint, and what was
//! written is free again, unless the superblock itself failed (`store.rs`).

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cohort_base::{IndexId, Lsn};
use cohort_engine::{CheckpointTask, EngineError};

use crate::changes::{Reconciled, Running};
use crate::inner::Inner;
use crate::map::{MapChange, Place};
use crate::page::PageId;
use crate::space::Extent;
use crate::store::MapError;
use crate::sync::Ordering;
use crate::tree::Tree;
use crate::views::Pin;

/// Pages that are written between two rests.
const STEP_PAGES: usize = 8;

/// A checkpoint that has begun. Dropped unfinished, it failed.
pub struct Checkpoint {
    inner: Arc<Inner>,
    lsn: Lsn,
    running: Arc<Running>,
    trees: Arc<BTreeMap<IndexId, Arc<Tree>>>,
    /// Key spaces dropped before it began.
    dropped: Vec<IndexId>,
    written: Vec<(IndexId, PageId, Place)>,
    /// Pages that it took from the list, to be listed again if it fails.
    listed: Vec<(PageId, IndexId)>,
    /// Those whose image is all that the page says.
    plain: Vec<(IndexId, PageId)>,
    /// Redo that it makes durable.
    redo_bytes: u64,
    /// Of that, redo in files: large transactions have changed pages.
    large_bytes: u64,
    freeable_bytes: u64,
    /// Long values that were doomed before it began. None of its images names them: what replaced them is
    /// older than its horizon, or they were never published. Those that the map in force does not name either
    /// are free at once, so that its own images have their place.
    doomed: Vec<Extent>,
    is_finished: bool,
    /// Keeps the versions of the horizon.
    _pin: Pin,
}

impl Checkpoint {
    /// The order stage is held, and all that is ordered is hardened and published.
    pub fn begin(inner: &Arc<Inner>, lsn: Lsn) -> Checkpoint {
        let pin = inner.views.pin();
        let running = inner.ground.changes.begin(pin.seq);
        Checkpoint {
            inner: Arc::clone(inner),
            lsn,
            running,
            trees: inner.directory.read().clone(),
            dropped: std::mem::take(&mut *inner.dropped.lock()),
            written: Vec::new(),
            listed: Vec::new(),
            plain: Vec::new(),
            redo_bytes: inner.unflushed_bytes.swap(0, Ordering::Relaxed),
            large_bytes: inner.large_bytes.swap(0, Ordering::Relaxed),
            freeable_bytes: inner.freeable_bytes.swap(0, Ordering::Relaxed),
            doomed: inner.store.take_doomed(),
            is_finished: false,
            _pin: pin,
        }
    }

    /// Whether the tree is the one that it was at the begin: a key space may be dropped or loaded anew.
    fn is_same(&self, index: IndexId, now: Option<&Arc<Tree>>) -> bool {
        self.trees.get(&index).zip(now).is_some_and(|(then, now)| Arc::ptr_eq(then, now))
    }

    /// Whether the page belongs to such a tree. A page that does not is nobody's: if the checkpoint needed
    /// it, it was captured.
    fn is_there(&self, index: IndexId, id: PageId) -> bool {
        let tree = self.inner.tree(index);
        self.is_same(index, tree.as_ref()) && tree.is_some_and(|tree| tree.pages.lock().contains(&id))
    }

    fn write_all(&mut self, rest: &mut dyn FnMut(Duration)) -> Result<(), EngineError> {
        let mut pending: Vec<(PageId, IndexId)> = self.running.pending.lock().iter().collect();
        // In one order, so that a run can be repeated.
        pending.sort_unstable();
        pending.dedup();
        self.inner.store.free_unnamed(std::mem::take(&mut self.doomed));
        let mut began = Instant::now();
        for (n, (id, index)) in pending.into_iter().enumerate() {
            self.write_captured()?;
            if let Some(reconciled) = self.reconcile(index, id)? {
                self.write_one(reconciled)?;
            }
            if self.large_bytes > 0 && n % STEP_PAGES == STEP_PAGES - 1 {
                rest(began.elapsed());
                began = Instant::now();
            }
        }
        self.write_captured()
    }

    /// None: it was captured, or nobody needs it.
    fn reconcile(&self, index: IndexId, id: PageId) -> Result<Option<Reconciled>, EngineError> {
        if !self.is_there(index, id) {
            self.running.pending.lock().remove(id);
            return Ok(None);
        }
        let frame = match self.inner.ground.pool.shared(index, id) {
            Ok(frame) => frame,
            Err(error) => {
                // A load puts its map in force before its tree.
                let _alone = self.inner.publishing.lock();
                return if self.is_there(index, id) { Err(error) } else { Ok(None) };
            }
        };
        // The capturing thread has the page latched alone.
        if !self.running.pending.lock().contains(id) {
            return Ok(None);
        }
        let reconciled = self.inner.ground.changes.reconcile(frame.page(), self.running.horizon)?;
        self.running.pending.lock().remove(id);
        Ok(Some(reconciled))
    }

    fn write_captured(&mut self) -> Result<(), EngineError> {
        self.running.take_captured().into_iter().try_for_each(|reconciled| self.write_one(reconciled))
    }

    fn write_one(&mut self, reconciled: Reconciled) -> Result<(), EngineError> {
        let Reconciled { index, page, image, values, entries, leaves_out, is_plain } = reconciled;
        self.inner.ground.changes.list_left_out((page, index), &leaves_out);
        let store = &self.inner.store;
        let written = match self.large_bytes > 0 {
            true => store.write_image_of_many(index, &image),
            false => store.write_image(index, &image),
        };
        let image = written.map_err(|error| {
            self.inner.ground.changes.list_again([(page, index)]);
            EngineError::Io(error)
        })?;
        self.listed.push((page, index));
        self.written.push((index, page, Place { image, values, entries: Some(entries) }));
        if is_plain {
            self.plain.push((index, page));
        }
        Ok(())
    }

    fn publish(&mut self) -> Result<(), MapError> {
        let all = std::mem::take(&mut self.written);
        let inner = &self.inner;
        let _alone = inner.publishing.lock();
        // One look for all that follows: a tree that is dropped meanwhile goes with the next checkpoint.
        let directory = inner.directory.read().clone();
        let is_same = |index: IndexId| self.is_same(index, directory.get(&index));
        let (written, orphaned): (Vec<_>, Vec<_>) = all.into_iter().partition(|(index, ..)| is_same(*index));
        orphaned.into_iter().for_each(|(_, _, place)| inner.store.free(place.image));
        let pages: HashSet<PageId> = written.iter().map(|(_, page, _)| *page).collect();
        let has_root = |tree: &&Arc<Tree>| {
            is_same(tree.index)
                && (pages.contains(&tree.root)
                    || inner.store.with_map(|map| map.trees.contains_key(&tree.index)))
        };
        let roots = self.trees.values().filter(has_root).map(|tree| (tree.index, tree.root)).collect();
        let removed = self.running.removed.iter().copied().filter(|(index, _)| is_same(*index)).collect();
        let change = MapChange {
            lsn: Some(self.lsn),
            next_page: inner.ground.next_page(),
            written: written.clone(),
            removed,
            roots,
            dropped: self.dropped.clone(),
        };
        let published = inner.store.change_map(change);
        self.written = written;
        published
    }
}

impl CheckpointTask for Checkpoint {
    fn finish(self: Box<Self>) -> Result<(), EngineError> {
        self.finish_at_leisure(&mut |_| ())
    }

    fn finish_at_leisure(mut self: Box<Self>, rest: &mut dyn FnMut(Duration)) -> Result<(), EngineError> {
        let done = self.write_all(rest).and_then(|()| {
            let published = self.publish();
            if matches!(published, Err(MapError::Unknown(_))) {
                self.written.clear();
            }
            published.map_err(EngineError::from)
        });
        done?;
        self.is_finished = true;
        let ground = &self.inner.ground;
        for (index, id) in std::mem::take(&mut self.plain) {
            if self.is_there(index, id) {
                ground.pool.settle(id, || !ground.changes.is_listed(id));
            }
        }
        Ok(())
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        let inner = &self.inner;
        inner.ground.changes.end();
        if self.is_finished {
            return;
        }
        let changes = &inner.ground.changes;
        let captured = self.running.take_captured();
        changes.list_again(self.running.pending.lock().iter());
        changes.list_again(captured.into_iter().map(|r| (r.page, r.index)));
        changes.list_again(self.listed.drain(..));
        changes.remove_again(&self.running.removed);
        inner.dropped.lock().extend(self.dropped.drain(..));
        inner.unflushed_bytes.fetch_add(self.redo_bytes, Ordering::Relaxed);
        inner.large_bytes.fetch_add(self.large_bytes, Ordering::Relaxed);
        inner.freeable_bytes.fetch_add(self.freeable_bytes, Ordering::Relaxed);
        inner.store.doom(self.doomed.drain(..));
        self.written.drain(..).for_each(|(_, _, place)| inner.store.free(place.image));
    }
}
