//! Checkpoints: write the state at one LSN out of place, concurrently with readers and writers.
//!
//! 1. `begin_checkpoint`, with the order stage held: the checkpoint takes over the list of changed pages and
//!    pins a view of the horizon. Takes microseconds.
//! 2. `finish`: the checkpoint latches each page in shared mode, reconciles it and writes it. Pages whose
//!    structure is about to change were captured (`changes.rs`). After a large transaction there are many
//!    pages; they are written in steps, and the caller may pause the checkpoint between two steps in favour
//!    of small transactions.
//! 3. The page map with the new locations is written and synced together with all images, then the
//!    superblock.
//! 4. The eviction images of pages that have not changed since they were written are freed.
//!
//! # On failure
//! The previous superblock stays in force. The pages are listed again for the next checkpoint, and the
//! written extents are freed unless the superblock itself failed (`store.rs`).

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

/// Number of pages that are written between two pauses.
const STEP_PAGES: usize = 8;

/// A checkpoint that has begun. Dropping it unfinished means that it failed.
pub struct Checkpoint {
    inner: Arc<Inner>,
    lsn: Lsn,
    running: Arc<Running>,
    trees: Arc<BTreeMap<IndexId, Arc<Tree>>>,
    /// Indexes that were dropped before the checkpoint began.
    dropped: Vec<IndexId>,
    written: Vec<(IndexId, PageId, Place)>,
    /// Pages taken from the list. They are listed again if the checkpoint fails.
    listed: Vec<(PageId, IndexId)>,
    /// Pages that are equal to their images.
    plain: Vec<(IndexId, PageId)>,
    /// Bytes of redo that the checkpoint makes durable.
    redo_bytes: u64,
    /// Part of `redo_bytes`: redo in files. If there is some, large transactions have changed pages.
    large_bytes: u64,
    freeable_bytes: u64,
    /// Overflow values whose free was deferred before the checkpoint began. None of its images refers to
    /// them: they were replaced before the horizon, or were never published. Values that the map in force
    /// does not refer to either are freed immediately, so that the images can use their space.
    deferred_frees: Vec<Extent>,
    is_finished: bool,
    /// Keeps the versions of the horizon.
    _pin: Pin,
}

impl Checkpoint {
    /// Begins a checkpoint. The caller holds the order stage, and all ordered transactions are durable and
    /// published.
    pub fn begin(inner: &Arc<Inner>, lsn: Lsn) -> Checkpoint {
        let pin = inner.views.pin();
        let running = inner.context.changes.begin(pin.seq);
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
            deferred_frees: inner.store.take_deferred_frees(),
            is_finished: false,
            _pin: pin,
        }
    }

    /// Returns whether the tree is the one that existed when the checkpoint began. An index may be dropped or
    /// reloaded.
    fn is_same(&self, index: IndexId, now: Option<&Arc<Tree>>) -> bool {
        self.trees.get(&index).zip(now).is_some_and(|(then, now)| Arc::ptr_eq(then, now))
    }

    /// Returns whether the page belongs to such a tree. A page that does not is unused: if the checkpoint
    /// needed it, it was captured.
    fn is_there(&self, index: IndexId, id: PageId) -> bool {
        let tree = self.inner.tree(index);
        self.is_same(index, tree.as_ref()) && tree.is_some_and(|tree| tree.pages.lock().contains(&id))
    }

    fn write_all(&mut self, rest: &mut dyn FnMut(Duration)) -> Result<(), EngineError> {
        let mut pending: Vec<(PageId, IndexId)> = self.running.pending.lock().iter().collect();
        // In a fixed order, so that a run can be repeated.
        pending.sort_unstable();
        pending.dedup();
        self.inner.store.free_unnamed(std::mem::take(&mut self.deferred_frees));
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

    /// Reconciles a page. Returns `None` if it was captured or is not needed.
    fn reconcile(&self, index: IndexId, id: PageId) -> Result<Option<Reconciled>, EngineError> {
        if !self.is_there(index, id) {
            self.running.pending.lock().remove(id);
            return Ok(None);
        }
        let frame = match self.inner.context.pool.shared(index, id) {
            Ok(frame) => frame,
            Err(error) => {
                // A bulk load puts its map in force before its tree.
                let _alone = self.inner.publishing.lock();
                return if self.is_there(index, id) { Err(error) } else { Ok(None) };
            }
        };
        // A thread that captures a page holds its exclusive latch, so this check is safe.
        if !self.running.pending.lock().contains(id) {
            return Ok(None);
        }
        let reconciled = self.inner.context.changes.reconcile(frame.page(), self.running.horizon)?;
        self.running.pending.lock().remove(id);
        Ok(Some(reconciled))
    }

    fn write_captured(&mut self) -> Result<(), EngineError> {
        self.running.take_captured().into_iter().try_for_each(|reconciled| self.write_one(reconciled))
    }

    fn write_one(&mut self, reconciled: Reconciled) -> Result<(), EngineError> {
        let Reconciled { index, page, image, values, entries, leaves_out, is_plain } = reconciled;
        self.inner.context.changes.list_left_out((page, index), &leaves_out);
        let store = &self.inner.store;
        let written = match self.large_bytes > 0 {
            true => store.write_image_of_many(index, &image),
            false => store.write_image(index, &image),
        };
        let image = written.map_err(|error| {
            self.inner.context.changes.list_again([(page, index)]);
            EngineError::Io(error)
        })?;
        self.listed.push((page, index));
        self.written.push((index, page, Place { image, values, entries: Some(entries), since: 0 }));
        if is_plain {
            self.plain.push((index, page));
        }
        Ok(())
    }

    fn publish(&mut self) -> Result<(), MapError> {
        let all = std::mem::take(&mut self.written);
        let inner = &self.inner;
        let _alone = inner.publishing.lock();
        // Use one copy of the directory for all checks below. The next checkpoint removes a tree that is
        // dropped meanwhile.
        let directory = inner.directory.read().clone();
        let is_same = |index: IndexId| self.is_same(index, directory.get(&index));
        let left: Vec<_> = self.running.pending.lock().iter().collect();
        debug_assert!(
            left.into_iter().all(|(id, index)| !self.is_there(index, id)),
            "a changed page is not in the checkpoint: redo of its changes would be lost (I7)"
        );
        let (written, orphaned): (Vec<_>, Vec<_>) = all.into_iter().partition(|(index, ..)| is_same(*index));
        orphaned.into_iter().for_each(|(_, _, place)| inner.store.free(place.image));
        let pages: HashSet<PageId> = written.iter().map(|(_, page, _)| *page).collect();
        debug_assert_eq!(
            pages.len(),
            written.len(),
            "a checkpoint writes a page twice: one image is never freed"
        );
        let has_root = |tree: &&Arc<Tree>| {
            is_same(tree.index)
                && (pages.contains(&tree.root)
                    || inner.store.with_map(|map| map.trees.contains_key(&tree.index)))
        };
        let roots = self.trees.values().filter(has_root).map(|tree| (tree.index, tree.root)).collect();
        let removed = self.running.removed.iter().copied().filter(|(index, _)| is_same(*index)).collect();
        let change = MapChange {
            lsn: Some(self.lsn),
            next_page: inner.context.next_page(),
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
        self.finish_throttled(&mut |_| ())
    }

    fn finish_throttled(mut self: Box<Self>, rest: &mut dyn FnMut(Duration)) -> Result<(), EngineError> {
        let done = self.write_all(rest).and_then(|()| {
            let published = self.publish();
            if matches!(published, Err(MapError::Unknown(_))) {
                self.written.clear();
            }
            published.map_err(EngineError::from)
        });
        done?;
        self.is_finished = true;
        let context = &self.inner.context;
        for (index, id) in std::mem::take(&mut self.plain) {
            if self.is_there(index, id) {
                context.pool.mark_clean(id, || !context.changes.is_listed(id));
            }
        }
        Ok(())
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        let inner = &self.inner;
        inner.context.changes.end();
        if self.is_finished {
            return;
        }
        let changes = &inner.context.changes;
        let captured = self.running.take_captured();
        changes.list_again(self.running.pending.lock().iter());
        changes.list_again(captured.into_iter().map(|r| (r.page, r.index)));
        changes.list_again(self.listed.drain(..));
        changes.remove_again(&self.running.removed);
        inner.dropped.lock().extend(self.dropped.drain(..));
        inner.unflushed_bytes.fetch_add(self.redo_bytes, Ordering::Relaxed);
        inner.large_bytes.fetch_add(self.large_bytes, Ordering::Relaxed);
        inner.freeable_bytes.fetch_add(self.freeable_bytes, Ordering::Relaxed);
        inner.store.defer_free(self.deferred_frees.drain(..));
        self.written.drain(..).for_each(|(_, _, place)| inner.store.free(place.image));
    }
}
