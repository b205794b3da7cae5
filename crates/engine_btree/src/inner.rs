//! State that all handles of the engine share, and purge.
//!
//! # Lock order
//! `purging` > `publishing` > leaf latches > a record's undo > a segment of records; leaf latches > a
//! record's pending frees, a tree's sets, `views`. `directory` is held without other locks and without I/O,
//! with one exception: it may be held while a new tree's root is added to the pool.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, ParticipantId};
use cohort_engine::EngineError;

use crate::page::{PAGE_BYTES, PageId};
use crate::pool_dump_state::PoolDump;
use crate::space::Extent;
use crate::store::Store;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, RwLock};
use crate::tree::{Tree, TreeContext};
use crate::trx_record::{Cleanup, OverflowValue, TrxRecord, TrxState};
use crate::undo::Cursor;
use crate::version::Versions;
use crate::views::Views;

/// Maximum number of records of each segment in one round of purge.
const PURGE_RECORDS_MAX: usize = 1024;

/// The engine's state.
pub struct Inner {
    pub id: ParticipantId,
    pub store: Arc<Store>,
    pub versions: Arc<Versions>,
    pub context: TreeContext,
    /// Copied on write when an index is added or removed, so that a checkpoint gets a consistent copy in one
    /// step.
    pub directory: RwLock<Arc<BTreeMap<IndexId, Arc<Tree>>>>,
    /// Dropped indexes that the page map in force may still contain.
    pub dropped: Mutex<Vec<IndexId>>,
    pub views: Arc<Views>,
    pub unflushed_bytes: AtomicU64,
    /// Part of `unflushed_bytes`: redo in files, of large transactions.
    pub large_bytes: AtomicU64,
    /// Bytes on disk that the next checkpoint frees, of trees that no longer exist.
    pub freeable_bytes: AtomicU64,
    /// Held during a purge, so that one runs at a time.
    purging: Mutex<()>,
    /// Held during a change of the page map, so that one runs at a time.
    pub publishing: Mutex<()>,
    pub pool_dump: PoolDump,
    /// Background work must stop.
    is_closed: AtomicBool,
}

/// Result of a round of purge.
#[derive(Debug)]
pub struct Purged {
    /// Number of transactions that purge passed.
    pub transactions: usize,
    /// Number of later transactions that were pruned because an old view is open.
    pub pruned: usize,
    /// Result of spilling the undo beyond the memory limit. After an error it stays in memory until a later
    /// round.
    pub spilled: Result<(), EngineError>,
}

/// Reason why a round of purge ended early.
#[derive(Debug)]
pub enum PurgeError {
    /// A page or old versions could not be read or written. A later round tries again.
    Later(EngineError),
    /// Old versions are damaged. It is unknown what the transaction wrote, so purge can never pass it, and
    /// the writes of an aborted transaction would stay. The server must stop. A restart needs no old
    /// versions.
    Damaged(EngineError),
    /// The engine is closed.
    Closed,
}

impl PurgeError {
    /// Classifies an error from reading the undo.
    pub fn of_undo(error: EngineError) -> PurgeError {
        match error {
            EngineError::Corrupt(_) => PurgeError::Damaged(error),
            error => PurgeError::Later(error),
        }
    }

    /// Returns the error, or `None` if the engine was closed.
    pub fn into_cause(self) -> Option<EngineError> {
        match self {
            PurgeError::Later(error) | PurgeError::Damaged(error) => Some(error),
            PurgeError::Closed => None,
        }
    }
}

impl Inner {
    pub fn new(
        id: ParticipantId,
        store: Arc<Store>,
        versions: Arc<Versions>,
        context: TreeContext,
        pool_dump: PoolDump,
    ) -> Inner {
        let views = versions.views.clone();
        Inner {
            id,
            store,
            versions,
            views,
            context,
            directory: RwLock::default(),
            dropped: Mutex::default(),
            unflushed_bytes: AtomicU64::new(0),
            large_bytes: AtomicU64::new(0),
            freeable_bytes: AtomicU64::new(0),
            purging: Mutex::new(()),
            publishing: Mutex::new(()),
            pool_dump,
            is_closed: AtomicBool::new(false),
        }
    }

    /// Returns the index's tree, if it has one.
    pub fn tree(&self, index: IndexId) -> Option<Arc<Tree>> {
        self.directory.read().get(&index).cloned()
    }

    /// Returns the index's tree. Creates it if it does not exist.
    pub fn tree_or_new(&self, index: IndexId) -> Arc<Tree> {
        if let Some(tree) = self.tree(index) {
            return tree;
        }
        let mut directory = self.directory.write();
        let create = || Tree::create(index, &self.context);
        Arc::make_mut(&mut directory).entry(index).or_insert_with(create).clone()
    }

    /// Replaces an index's tree and returns the previous one.
    pub fn replace_tree(&self, tree: Tree) -> Option<Arc<Tree>> {
        Arc::make_mut(&mut self.directory.write()).insert(tree.index, Arc::new(tree))
    }

    /// Removes an index's tree from the directory.
    pub fn remove_tree(&self, index: IndexId) -> Option<Arc<Tree>> {
        Arc::make_mut(&mut self.directory.write()).remove(&index)
    }

    /// Frees the pages and overflow values of a tree that is no longer in the directory.
    pub fn release(&self, tree: &Tree) {
        let pages: HashSet<PageId> = std::mem::take(&mut tree.pages.lock());
        self.context.changes.forget(&pages);
        let values: HashSet<Extent> = std::mem::take(&mut tree.values.lock());
        debug_assert!(
            pages.contains(&tree.root) || pages.is_empty(),
            "a tree loses its root before its pages"
        );
        let bytes =
            pages.len() as u64 * PAGE_BYTES as u64 + values.iter().map(|v| u64::from(v.bytes)).sum::<u64>();
        self.freeable_bytes.fetch_add(bytes, Ordering::Relaxed);
        pages.into_iter().for_each(|page| self.context.pool.discard(page));
        self.store.defer_free(values);
    }

    /// Defers the free of overflow values that are no longer read. Those of a dropped tree were freed with
    /// it.
    pub fn defer_free(&self, tree: &Tree, extents: impl IntoIterator<Item = Extent>) {
        let mut values = tree.values.lock();
        let owned: Vec<Extent> = extents.into_iter().filter(|extent| values.remove(extent)).collect();
        drop(values);
        let bytes = owned.iter().map(|extent| u64::from(extent.bytes)).sum();
        self.freeable_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.store.defer_free(owned);
    }

    /// Stops background work.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.pool_dump.end();
    }

    /// Returns whether the engine is closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Runs one round of purge. It removes the writes of aborted transactions and the entries that committed
    /// transactions deleted, as far as no view needs them. While an old view is open, it prunes the versions
    /// after that view. Undo beyond the memory limit is spilled to the undo file.
    pub fn purge(&self) -> Result<Purged, PurgeError> {
        let _alone = self.purging.lock();
        let oldest = self.views.oldest();
        let records = self.versions.purgeable(oldest, PURGE_RECORDS_MAX);
        debug_assert!(oldest <= self.views.applied(), "purge passes what no view sees yet");
        records.iter().try_for_each(|record| self.clean(record, oldest))?;
        self.versions.forget(&records);
        let pruned = self.prune()?;
        Ok(Purged { transactions: records.len(), pruned, spilled: self.versions.spill() })
    }

    /// Cleans up after one record. Repeating it is harmless: an entry that was restored or replaced no longer
    /// refers to the record.
    fn clean(&self, record: &TrxRecord, oldest: CommitSeq) -> Result<(), PurgeError> {
        let is_aborted = record.state() == TrxState::Aborted;
        if is_aborted || record.has_deletions() {
            let (mut cursor, mut key) = (Cursor::default(), Vec::new());
            while let Some((index, cleanup)) =
                record.next_write(&mut cursor, &mut key).map_err(PurgeError::of_undo)?
            {
                if self.is_closed() {
                    return Err(PurgeError::Closed);
                }
                self.clean_key(record, cleanup, (index, &key), oldest).map_err(PurgeError::Later)?;
            }
        }
        self.defer_free_all(if is_aborted { record.take_new_values() } else { record.take_old_values() });
        Ok(())
    }

    /// Defers the free of overflow values that are no longer read, if their trees still exist.
    pub fn defer_free_all(&self, values: Vec<OverflowValue>) {
        for OverflowValue { index, root, extent } in values {
            if let Some(tree) = self.tree(index).filter(|tree| tree.root == root) {
                self.defer_free(&tree, [extent]);
            }
        }
    }

    fn clean_key(
        &self,
        record: &TrxRecord,
        cleanup: Cleanup,
        (index, key): (IndexId, &[u8]),
        oldest: CommitSeq,
    ) -> Result<(), EngineError> {
        let Some(tree) = self.tree(index) else { return Ok(()) };
        let cleaned = match cleanup {
            Cleanup::Nothing => return Ok(()),
            Cleanup::Restore(before) => self.restore(record, &tree, key, &before, oldest),
            Cleanup::Remove => self.remove_deleted(record, &tree, key),
        };
        let done = match cleaned {
            Ok(true) => tree.merge(&self.context, key),
            other => other.map(drop),
        };
        self.unless_replaced(&tree, done)
    }

    /// Returns the result of an operation on a tree's entry. Ignores an error if the tree was dropped or
    /// reloaded meanwhile, because its pages and the entry are gone.
    pub fn unless_replaced<T: Default>(
        &self,
        tree: &Arc<Tree>,
        done: Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        match done {
            Err(_) if self.tree(tree.index).is_none_or(|now| !Arc::ptr_eq(&now, tree)) => Ok(T::default()),
            done => done,
        }
    }
}
