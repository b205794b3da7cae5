//! What all handles of the engine share.
//!
//! # Lock order
//! `purging` > `publishing` > leaf latches > a record's undo > a segment of records; leaf latches > a
//! record's leftovers, a tree's sets, `views`. `directory` is held alone and for no I/O, but that
//! `directory` may be held while a new tree's root is entered into the pool.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, ParticipantId};
use cohort_engine::EngineError;

use crate::page::{PAGE_BYTES, PageId};
use crate::space::Extent;
use crate::store::Store;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, RwLock};
use crate::tree::{Ground, Tree};
use crate::undo::Cursor;
use crate::version::{Cleanup, LongValue, TrxRecord, TrxState, Versions};
use crate::views::Views;
use crate::warm::Warm;

/// Records that one round of purge takes.
const PURGE_RECORDS_MAX: usize = 1024;

/// The engine's state.
pub struct Inner {
    pub id: ParticipantId,
    pub store: Arc<Store>,
    pub versions: Arc<Versions>,
    pub ground: Ground,
    /// Copied when a key space comes or goes, so that a checkpoint takes it in one step.
    pub directory: RwLock<Arc<BTreeMap<IndexId, Arc<Tree>>>>,
    /// Key spaces that were dropped and that the page map in force may name.
    pub dropped: Mutex<Vec<IndexId>>,
    pub views: Arc<Views>,
    pub unflushed_bytes: AtomicU64,
    /// Those of them that are redo in files, of large transactions.
    pub large_bytes: AtomicU64,
    /// Bytes on disk that the next checkpoint frees, of trees that are gone.
    pub freeable_bytes: AtomicU64,
    /// One purge at a time.
    purging: Mutex<()>,
    /// One change of the page map at a time.
    pub publishing: Mutex<()>,
    pub warm: Warm,
    /// Nothing is to be done any more beside callers.
    is_closed: AtomicBool,
}

/// What a round of purge has done.
#[derive(Debug)]
pub struct Purged {
    /// Transactions that it passed.
    pub transactions: usize,
    /// Those behind a view that is held that it swept.
    pub swept: usize,
    /// Whether what is left and too much is in the undo file. If not, it takes memory until a later round.
    pub spilled: Result<(), EngineError>,
}

/// Why a round of purge passed nothing.
#[derive(Debug)]
pub enum PurgeError {
    /// A page or old versions could not be read or written: a later round tries again.
    Later(EngineError),
    /// Old versions are damaged. Nobody knows what the transaction wrote, so purge never passes it, and what
    /// an aborted transaction wrote stays: the server must stop. A restart needs no old versions.
    Damaged(EngineError),
    /// The engine is closed.
    Closed,
}

impl PurgeError {
    /// Of an error of reading the undo.
    pub fn of_undo(error: EngineError) -> PurgeError {
        match error {
            EngineError::Corrupt(_) => PurgeError::Damaged(error),
            error => PurgeError::Later(error),
        }
    }

    /// What is wrong; none: nothing is.
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
        ground: Ground,
        warm: Warm,
    ) -> Inner {
        let views = versions.views.clone();
        Inner {
            id,
            store,
            versions,
            views,
            ground,
            directory: RwLock::default(),
            dropped: Mutex::default(),
            unflushed_bytes: AtomicU64::new(0),
            large_bytes: AtomicU64::new(0),
            freeable_bytes: AtomicU64::new(0),
            purging: Mutex::new(()),
            publishing: Mutex::new(()),
            warm,
            is_closed: AtomicBool::new(false),
        }
    }

    /// The key space's tree, if it has one.
    pub fn tree(&self, index: IndexId) -> Option<Arc<Tree>> {
        self.directory.read().get(&index).cloned()
    }

    /// The key space's tree, made if it has none.
    pub fn tree_or_new(&self, index: IndexId) -> Arc<Tree> {
        if let Some(tree) = self.tree(index) {
            return tree;
        }
        let mut directory = self.directory.write();
        let create = || Tree::create(index, &self.ground);
        Arc::make_mut(&mut directory).entry(index).or_insert_with(create).clone()
    }

    /// Puts a key space's tree in the place of the one that it had.
    pub fn replace_tree(&self, tree: Tree) -> Option<Arc<Tree>> {
        Arc::make_mut(&mut self.directory.write()).insert(tree.index, Arc::new(tree))
    }

    /// Takes a key space's tree out.
    pub fn remove_tree(&self, index: IndexId) -> Option<Arc<Tree>> {
        Arc::make_mut(&mut self.directory.write()).remove(&index)
    }

    /// Lets the pages and long values of a tree go that nobody finds any more.
    pub fn release(&self, tree: &Tree) {
        let pages: HashSet<PageId> = std::mem::take(&mut tree.pages.lock());
        self.ground.changes.forget(&pages);
        let values: HashSet<Extent> = std::mem::take(&mut tree.values.lock());
        let bytes =
            pages.len() as u64 * PAGE_BYTES as u64 + values.iter().map(|v| u64::from(v.bytes)).sum::<u64>();
        self.freeable_bytes.fetch_add(bytes, Ordering::Relaxed);
        pages.into_iter().for_each(|page| self.ground.pool.discard(page));
        self.store.doom(values);
    }

    /// Extents of long values that nobody reads any more. Those of a dropped tree went with it.
    pub fn doom(&self, tree: &Tree, extents: impl IntoIterator<Item = Extent>) {
        let mut values = tree.values.lock();
        let owned: Vec<Extent> = extents.into_iter().filter(|extent| values.remove(extent)).collect();
        drop(values);
        let bytes = owned.iter().map(|extent| u64::from(extent.bytes)).sum();
        self.freeable_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.store.doom(owned);
    }

    /// Ends what goes on beside callers.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.warm.end();
    }

    /// Whether the engine is closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// One round of purge: takes out what aborted transactions wrote and what committed ones deleted, as
    /// far as no view needs it. Behind a view that is held, old versions are sorted out. What is left and
    /// too much goes into the undo file.
    pub fn purge(&self) -> Result<Purged, PurgeError> {
        let _alone = self.purging.lock();
        let oldest = self.views.oldest();
        let records = self.versions.purgeable(oldest, PURGE_RECORDS_MAX);
        records.iter().try_for_each(|record| self.clean(record, oldest))?;
        self.versions.forget(&records);
        let swept = self.sweep()?;
        Ok(Purged { transactions: records.len(), swept, spilled: self.versions.spill() })
    }

    /// Repeating it is harmless: an entry that was restored or replaced does not name the record any more.
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
        self.doom_all(if is_aborted { record.take_new_values() } else { record.take_old_values() });
        Ok(())
    }

    /// Long values that nobody reads any more.
    pub fn doom_all(&self, values: Vec<LongValue>) {
        for LongValue { index, root, extent } in values {
            if let Some(tree) = self.tree(index).filter(|tree| tree.root == root) {
                self.doom(&tree, [extent]);
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
            Ok(true) => tree.merge(&self.ground, key),
            other => other.map(drop),
        };
        self.unless_replaced(&tree, done)
    }

    /// What was done to a tree's entry. The pages of a tree that was dropped or loaded anew are gone, and the
    /// entry with them.
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
