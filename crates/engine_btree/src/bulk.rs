//! Bulk loads: build a tree bottom-up, with leaves filled to 15/16. The tree is durable when the load is
//! finished.
//!
//! Finished pages are written immediately, so memory holds one page of each level. The tree is invisible
//! until the page map contains it. Entries of an earlier load of the index are merged in, and the earlier
//! tree stays in place until then. Dropping an unfinished load frees its extents.

use std::sync::Arc;

use cohort_base::IndexId;
use cohort_engine::{Batch, BulkLoad, Direction, EngineError, KeyRange};

use crate::inner::Inner;
use crate::map::{MapChange, Place};
use crate::page::{Entry, PAGE_BYTES, Page, PageId, PageSpec, check_key};
use crate::scan::Asked;
use crate::space::Extent;
use crate::store::MapError;
use crate::sync::{AtomicI64, Mutex};
use crate::tree::Tree;
use crate::value;
use crate::version::Horizon;

const FILLED_BYTES: usize = PAGE_BYTES / 16 * 15;

/// The last page of one level of the new tree, which is still growing.
struct Level {
    id: PageId,
    low: Vec<u8>,
    entries: Vec<(Vec<u8>, Vec<u8>, bool)>,
    bytes: usize,
    values: Vec<Extent>,
}

/// Entries of an earlier load of the index, in key order.
struct Former {
    batch: Batch,
    at: usize,
    /// Start of the next batch, or `None` if this was the last.
    next: Option<Vec<u8>>,
}

/// Number of entries of an earlier load that are read at a time.
const FORMER_ENTRIES: usize = 1024;

impl Former {
    fn new() -> Former {
        Former { batch: Batch::default(), at: 0, next: Some(Vec::new()) }
    }

    /// Returns the next entry if its key is below `limit`.
    fn take_below(
        &mut self,
        inner: &Inner,
        index: IndexId,
        limit: Option<&[u8]>,
    ) -> Result<Option<(Vec<u8>, Vec<u8>)>, EngineError> {
        while self.at == self.batch.len() {
            let Some(start) = self.next.take() else { return Ok(None) };
            (self.at, self.next) = (0, None);
            self.batch.clear();
            let (horizon, direction) = (Horizon::LATEST, Direction::Forward);
            let asked = Asked { index, horizon, direction, start: &start, end: None };
            if inner.scan(asked, FORMER_ENTRIES, &[], &mut self.batch)? {
                let mut rest = KeyRange::default();
                self.batch.cut(&mut rest, direction);
                self.next = rest.start;
            }
        }
        let (key, value) = self.batch.get(self.at);
        if limit.is_some_and(|limit| key >= limit) {
            return Ok(None);
        }
        self.at += 1;
        Ok(Some((key.to_vec(), value.to_vec())))
    }
}

/// A load in progress.
pub struct Load {
    former: Former,
    inner: Arc<Inner>,
    index: IndexId,
    levels: Vec<Level>,
    last: Option<Vec<u8>>,
    written: Vec<(IndexId, PageId, Place)>,
    entries: u64,
    is_finished: bool,
}

impl Load {
    /// Starts a load of an index that no session sees.
    pub fn new(inner: Arc<Inner>, index: IndexId) -> Load {
        Load {
            former: Former::new(),
            inner,
            index,
            levels: Vec::new(),
            last: None,
            written: Vec::new(),
            entries: 0,
            is_finished: false,
        }
    }

    fn free(&self, extents: impl IntoIterator<Item = Extent>) {
        extents.into_iter().for_each(|extent| self.inner.store.free(extent));
    }

    fn new_level(&self, low: Vec<u8>) -> Level {
        let id = self.inner.context.new_page_id();
        Level { id, low, entries: Vec::new(), bytes: 0, values: Vec::new() }
    }

    /// Adds the entries of earlier loads up to the key.
    fn push_former(&mut self, limit: Option<&[u8]>) -> Result<(), EngineError> {
        let inner = self.inner.clone();
        while let Some((key, value)) = self.former.take_below(&inner, self.index, limit)? {
            self.push_value(key, &value)?;
        }
        Ok(())
    }

    fn push_value(&mut self, key: Vec<u8>, value: &[u8]) -> Result<(), EngineError> {
        let (kept, extent) = value::keep(&self.inner.store, self.index, value)?;
        self.entries += 1;
        self.push(0, key, kept.bytes.into_vec(), extent)
    }

    /// Adds an entry to a level. Writes a full page and adds it to the level above.
    fn push(
        &mut self,
        at: usize,
        key: Vec<u8>,
        value: Vec<u8>,
        extent: Option<Extent>,
    ) -> Result<(), EngineError> {
        if at == self.levels.len() {
            let level = self.new_level(Vec::new());
            self.levels.push(level);
        }
        let bytes = key.len() + value.len() + 16;
        let level = &self.levels[at];
        if level.bytes + bytes > FILLED_BYTES && level.entries.len() >= 2 {
            let fresh = self.new_level(key.clone());
            let full = std::mem::replace(&mut self.levels[at], fresh);
            if let Err(error) = self.write(at, full, Some(&key)) {
                self.free(extent);
                return Err(error);
            }
        }
        let level = &mut self.levels[at];
        debug_assert!(
            level.entries.last().is_none_or(|(last, ..)| *last < key),
            "keys of an earlier load and of this one come in no common order"
        );
        debug_assert!(level.low <= key, "a key below the low fence of its page");
        level.entries.push((key, value, extent.is_some()));
        level.values.extend(extent);
        level.bytes += bytes;
        Ok(())
    }

    fn write(&mut self, at: usize, level: Level, high: Option<&[u8]>) -> Result<(), EngineError> {
        self.write_as(at, level.id, &level, high)?;
        // The first entry of the level above has an empty key, like the low fence of its child.
        self.push(at + 1, level.low, level.id.0.to_le_bytes().to_vec(), None)
    }

    fn write_as(
        &mut self,
        at: usize,
        id: PageId,
        level: &Level,
        high: Option<&[u8]>,
    ) -> Result<(), EngineError> {
        let spec = PageSpec { index: self.index, id, level: at as u8, low: &level.low, high };
        let mut page = Page::new(spec);
        for (key, value, is_overflow) in &level.entries {
            page.append(key, Entry { is_deleted: false, is_overflow: *is_overflow, version: None, value });
        }
        let image = self.inner.store.write_image_of_many(self.index, &page.image()).map_err(|error| {
            self.free(level.values.iter().copied());
            EngineError::Io(error)
        })?;
        let entries = if at == 0 { level.entries.len() as u32 } else { 0 };
        debug_assert_eq!(page.len(), level.entries.len(), "entries of a load are lost");
        debug_assert_eq!(
            level.values.len(),
            level.entries.iter().filter(|(.., is_overflow)| *is_overflow).count(),
            "an overflow value without an entry is never freed"
        );
        let place = Place { image, values: level.values.clone(), entries: Some(entries), since: 0 };
        self.written.push((self.index, id, place));
        Ok(())
    }

    /// Writes the last page of each level. The topmost one is the root.
    fn write_last(&mut self) -> Result<PageId, EngineError> {
        if self.levels.is_empty() {
            let root = self.new_level(Vec::new());
            self.write_as(0, root.id, &root, None)?;
            return Ok(root.id);
        }
        let mut at = 0;
        loop {
            let is_top = at + 1 == self.levels.len();
            let spare = self.new_level(Vec::new());
            let level = std::mem::replace(&mut self.levels[at], spare);
            if is_top {
                self.write_as(at, level.id, &level, None)?;
                return Ok(level.id);
            }
            self.write(at, level, None)?;
            at += 1;
        }
    }
}

impl BulkLoad for Load {
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        assert!(self.last.as_deref().is_none_or(|last| last < key), "bulk load keys ascend strictly");
        check_key(key)?;
        self.last = Some(key.to_vec());
        self.push_former(Some(key))?;
        self.push_value(key.to_vec(), value)
    }

    fn finish(mut self: Box<Self>) -> Result<(), EngineError> {
        self.push_former(None)?;
        let root = self.write_last()?;
        let inner = self.inner.clone();
        let tree = Tree {
            index: self.index,
            root,
            entries: AtomicI64::new(self.entries as i64),
            pages: Mutex::new(self.written.iter().map(|(_, page, _)| *page).collect()),
            values: Mutex::new(self.written.iter().flat_map(|(_, _, place)| place.values.clone()).collect()),
        };
        debug_assert_eq!(tree.pages.lock().len(), self.written.len(), "two pages of a load have one number");
        debug_assert!(tree.pages.lock().contains(&root), "the root of a load was not written");
        let change = MapChange {
            lsn: None,
            next_page: inner.context.next_page(),
            written: self.written.clone(),
            removed: Vec::new(),
            roots: vec![(self.index, root)],
            dropped: vec![self.index],
        };
        let alone = inner.publishing.lock();
        inner.dropped.lock().retain(|index| *index != self.index);
        let published = inner.store.change_map(change);
        // If the superblock on disk may refer to the extents, they stay allocated until the next start.
        self.is_finished = !matches!(published, Err(MapError::Unchanged(_)));
        published?;
        let former = inner.replace_tree(tree);
        drop(alone);
        if let Some(former) = former {
            inner.release(&former);
        }
        Ok(())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        for (_, _, place) in std::mem::take(&mut self.written) {
            self.free(place.values.into_iter().chain([place.image]));
        }
        for level in std::mem::take(&mut self.levels) {
            self.free(level.values);
        }
    }
}
