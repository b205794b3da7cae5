//! Checkpoints: the state at one LSN, written out of place while everybody goes on.
//!
//! 1. `begin_checkpoint`, the order stage held: the list of changed pages becomes the checkpoint's, and a
//!    view of the horizon is pinned. Microseconds.
//! 2. `finish`: page after page is latched with others, reconciled and written; pages that are about to
//!    change their structure were captured (`changes.rs`).
//! 3. The page map with the new places is written, then synced with all images, then the superblock.
//!
//! # On failure
//! The former superblock stays in force. The pages are listed again for the next checkpoint, and what was
//! written is free again.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cohort_base::{IndexId, Lsn};
use cohort_engine::{CheckpointTask, EngineError};

use crate::changes::{Reconciled, Running};
use crate::inner::{Inner, Pin};
use crate::page::PageId;
use crate::store::{MapChange, Place};
use crate::tree::Tree;

/// A checkpoint that has begun. Dropped unfinished, it failed.
pub struct Checkpoint {
    inner: Arc<Inner>,
    lsn: Lsn,
    running: Arc<Running>,
    trees: Arc<BTreeMap<IndexId, Arc<Tree>>>,
    /// Key spaces dropped before it began.
    dropped: Vec<IndexId>,
    written: Vec<(IndexId, PageId, Place)>,
    is_finished: bool,
    /// Keeps the versions of the horizon.
    _pin: Pin,
}

impl Checkpoint {
    /// The order stage is held, and all that is ordered is hardened and published.
    pub fn begin(inner: &Arc<Inner>, lsn: Lsn) -> Checkpoint {
        let pin = inner.pin();
        let running = inner.ground.changes.begin(pin.seq);
        inner.unflushed_bytes.store(0, Ordering::Relaxed);
        Checkpoint {
            inner: Arc::clone(inner),
            lsn,
            running,
            trees: inner.directory.read().clone(),
            dropped: std::mem::take(&mut *inner.dropped.lock()),
            written: Vec::new(),
            is_finished: false,
            _pin: pin,
        }
    }

    fn write_all(&mut self) -> Result<(), EngineError> {
        let mut pending: Vec<(PageId, IndexId)> =
            self.running.pending.lock().iter().map(|(id, index)| (*id, *index)).collect();
        // In one order, so that a run can be repeated.
        pending.sort_unstable();
        for (id, index) in pending {
            self.write_captured()?;
            // A dropped tree's pages are gone; the page map loses them with the tree.
            if self.inner.tree(index).is_none() {
                self.running.pending.lock().remove(&id);
                continue;
            }
            let reconciled = {
                let frame = match self.inner.ground.pool.shared(index, id) {
                    Ok(frame) => frame,
                    Err(_) if self.inner.tree(index).is_none() => continue,
                    Err(error) => return Err(error),
                };
                // Otherwise it was captured meanwhile.
                let is_ours = self.running.pending.lock().remove(&id).is_some();
                is_ours.then(|| self.inner.ground.changes.reconcile(frame.page(), self.running.horizon))
            };
            if let Some(reconciled) = reconciled {
                self.write_one(reconciled)?;
            }
        }
        self.write_captured()
    }

    fn write_captured(&mut self) -> Result<(), EngineError> {
        self.running.take_captured().into_iter().try_for_each(|reconciled| self.write_one(reconciled))
    }

    fn write_one(&mut self, reconciled: Reconciled) -> Result<(), EngineError> {
        let Reconciled { index, page, image, values, is_all } = reconciled;
        if !is_all {
            self.inner.ground.changes.list_again([(page, index)]);
        }
        let image = self.inner.store.write(&image).map_err(|error| {
            self.inner.ground.changes.list_again([(page, index)]);
            EngineError::Io(error)
        })?;
        self.written.push((index, page, Place { image, values }));
        Ok(())
    }

    fn publish(&mut self) -> Result<(), EngineError> {
        let inner = &self.inner;
        let _alone = inner.publishing.lock();
        // One look for all that follows: a tree that is dropped meanwhile goes with the next checkpoint.
        let directory = inner.directory.read().clone();
        let (written, orphaned): (Vec<_>, Vec<_>) = std::mem::take(&mut self.written)
            .into_iter()
            .partition(|(index, ..)| directory.contains_key(index));
        orphaned.into_iter().for_each(|(_, _, place)| inner.store.free(place.image));
        let pages: HashSet<PageId> = written.iter().map(|(_, page, _)| *page).collect();
        let has_root = |tree: &&Arc<Tree>| {
            directory.contains_key(&tree.index)
                && (pages.contains(&tree.root)
                    || inner.store.with_map(|map| map.trees.contains_key(&tree.index)))
        };
        let told =
            |tree: &Arc<Tree>| (tree.index, tree.root, tree.entries.load(Ordering::Relaxed).max(0) as u64);
        let roots = self.trees.values().filter(has_root).map(told).collect();
        let change = MapChange {
            lsn: Some(self.lsn),
            next_page: inner.ground.next_page(),
            written: written.clone(),
            roots,
            dropped: self.dropped.clone(),
        };
        if let Err(error) = inner.store.change_map(change) {
            self.written = written;
            return Err(EngineError::Io(error));
        }
        Ok(())
    }
}

impl CheckpointTask for Checkpoint {
    fn finish(mut self: Box<Self>) -> Result<(), EngineError> {
        self.write_all()?;
        self.publish()?;
        self.is_finished = true;
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
        let captured = self.running.take_captured();
        let pending = std::mem::take(&mut *self.running.pending.lock());
        inner.ground.changes.list_again(pending);
        inner.ground.changes.list_again(captured.into_iter().map(|r| (r.page, r.index)));
        inner.ground.changes.list_again(self.written.iter().map(|(index, page, _)| (*page, *index)));
        inner.dropped.lock().extend(self.dropped.drain(..));
        // After a failed superblock nobody knows whether it names them, so their extents stay taken until the
        // next start.
    }
}
