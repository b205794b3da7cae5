//! The data file `btree.data`: page images, overflow values, the page map and the superblock.
//!
//! ```text
//! block 0, 1   the superblock's two copies (`superblock.rs`); the newer valid one counts
//! then         extents: images of pages, overflow values, parts of the page map (`map.rs`)
//! ```
//!
//! # Images
//! Images are never overwritten: each image is written to a new extent. There are two kinds.
//! - A *checkpoint image* contains only published versions (I3). It becomes valid with the superblock that
//!   refers to its page map. At that point the extents of the previous map become free, although the other
//!   copy of the superblock may refer to it until the next sync (below).
//! - An *eviction image* is a copy of the page in memory, including references to undo records. No page map
//!   refers to it, so a restart never reads it.
//!
//! Overflow values are written once, too. A value that is no longer read is a *deferred free*: it is freed as
//! soon as the map that the durable superblock refers to does not contain it.
//!
//! # Superblock
//! A new superblock is written after everything it refers to is durable. It is written to one copy and
//! synced, then to the other copy, which the next sync makes durable. Between these syncs the disk may have
//! the new superblock in one copy only: a crash in that time *and* damage of that copy would make a start
//! fall back to the previous superblock, whose extents may have been reused, and the checksums of pages then
//! refuse them. When the file is created, the two copies are written one after the other before one sync.
//!
//! # Size
//! Free space at the end of the file is cut off after each change of the map, if it is at least
//! [`CUT_BYTES_MIN`], and when the file is opened. The free space is computed from the map, so overflow
//! values that a run has written without a later change of the map are free then.
//!
//! # On failure
//! If the write of an image fails, the previous superblock stays in force and the write is tried again
//! ([`MapError::Unchanged`]). After a failed sync, or a failed write of a superblock for another reason than
//! lack of space, the state of the disk is unknown ([`MapError::Unknown`]). The file then accepts no further
//! superblock until a restart, and the log keeps everything. Damage is rejected with the file, the block and
//! a remedy: at the start a file that is too short, two damaged superblocks or a damaged page map, and later
//! a damaged page or overflow value when it is read.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::IndexId;
use cohort_engine::EngineError;
use cohort_vfs::{File, OpenMode, SharedFile, SharedFs, WritebackFile, is_no_space};

use crate::block_set::BlockSet;
use crate::compress::Compression;
use crate::map::{Keys, LOOK_PAGES, Level, LevelWriter, MapChange, PageMap, Place, Sorted, levels_kept};
use crate::page::{BAD_CHECKSUM, Page, PageId};
use crate::sound::{ImageOf, Unsound};
use crate::space::{BLOCK_BYTES, Extent, Space};
use crate::superblock::{PARTS_MAX, SUPERBLOCK_BYTES_MIN, Superblock, outdated_format};
use crate::sync::{AtomicU64, Mutex, Ordering};

const FILE: &str = "btree.data";
/// Advice in errors about damage.
const CURE: &str = "restore the data directory from a backup or a replica";
/// Reserve for the parts of the page map that one change can add.
const PARTS_SPARE: usize = 100;
/// Minimum length of the free end of the file that is cut off.
const CUT_BYTES_MIN: u64 = 4 << 20;

/// The superblock in force, the state that it refers to, and the locations of evicted pages.
struct State {
    generation: u64,
    /// The copy of the superblock that was written last. The next superblock is first written to the other.
    newest_copy: u64,
    map: PageMap,
    /// The map's levels on disk, oldest first.
    levels: Vec<Level>,
    /// Overflow values that the map refers to.
    named: HashSet<Extent>,
    /// Eviction images of this run, newer than the images in the map.
    evicted: HashMap<PageId, Extent>,
    /// Deferred frees: overflow values that are no longer read. The map in force may still refer to them.
    deferred_frees: Vec<Extent>,
    space: Space,
    /// For each pin of a backup, the trees that were loaded since then (`pins.rs`).
    loaded: BTreeMap<u64, BTreeSet<IndexId>>,
    /// A sync or the write of a superblock failed, so it is unknown which superblock the disk holds.
    is_poisoned: bool,
}

impl State {
    /// Returns the deferred frees that the map does not refer to. They become free at its next change.
    fn doomed_only(&self) -> impl Iterator<Item = Extent> {
        self.deferred_frees.iter().copied().filter(|extent| !self.named.contains(extent))
    }

    /// Frees overflow values. Values that the map in force refers to are deferred again. If it is unknown
    /// which map the disk holds, all of them are.
    fn free_unnamed(&mut self, values: Vec<Extent>) {
        for value in values {
            match self.is_poisoned || self.named.contains(&value) {
                true => self.deferred_frees.push(value),
                false => self.space.free(value),
            }
        }
    }
}

/// The data file, shared by all threads. Its lock is held during no I/O except that of a superblock.
pub struct Store {
    file: WritebackFile,
    path: PathBuf,
    state: Mutex<State>,
    pub compression: Compression,
    /// Bytes of the page map written so far.
    pub map_bytes: AtomicU64,
    /// Extents read and written so far (pages and overflow values), and their bytes.
    pub transfers: Transfers,
}

/// Numbers of reads and writes of a file, and their bytes.
#[derive(Default)]
pub struct Transfers {
    pub reads: AtomicU64,
    pub read_bytes: AtomicU64,
    pub writes: AtomicU64,
    pub written_bytes: AtomicU64,
}

impl Transfers {
    fn read(&self, bytes: usize) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn written(&self, bytes: usize) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.written_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// Location of the newest image of a page.
#[derive(Clone, Copy)]
struct Newest {
    extent: Extent,
    of: ImageOf,
    /// The image is a checkpoint image whose number of entries is not known.
    is_uncounted: bool,
}

/// Reason why a new map is not in force.
#[derive(Debug)]
pub enum MapError {
    /// The previous map is in force. The caller still owns the extents of the new one.
    Unchanged(io::Error),
    /// It is unknown which superblock the disk holds. The extents stay allocated until the next start.
    Unknown(io::Error),
}

impl From<MapError> for EngineError {
    fn from(error: MapError) -> EngineError {
        let (MapError::Unchanged(error) | MapError::Unknown(error)) = error;
        EngineError::Io(error)
    }
}

impl Store {
    /// Opens the file, or creates it.
    pub fn open(fs: &SharedFs, dir: &Path) -> Result<Store, EngineError> {
        fs.create_dir_all(dir).map_err(EngineError::Io)?;
        let path = dir.join(FILE);
        let file = fs.open(&path, OpenMode::CreateOrOpen).map_err(EngineError::Io)?;
        fs.sync_dir(dir).map_err(EngineError::Io)?;
        let refuse = |what: String| Err(EngineError::Corrupt(format!("{}: {what}", path.display())));
        let len = file.len().map_err(EngineError::Io)?;
        let mut found: Vec<(u64, Superblock, Vec<u8>)> = Vec::new();
        let mut outdated = None;
        for copy in 0..2 {
            let mut bytes = vec![0; BLOCK_BYTES as usize];
            let read = file.read_at(&mut bytes, copy * BLOCK_BYTES).map_err(EngineError::Io)?;
            bytes.truncate(read);
            outdated = outdated.or(outdated_format(&bytes));
            found.extend(Superblock::decode(&bytes).map(|superblock| (copy, superblock, bytes)));
        }
        found.sort_by_key(|(_, superblock, _)| superblock.generation);
        let Some((newest_copy, newest, bytes)) = found.pop() else {
            if let Some(format) = outdated {
                return refuse(format!(
                    "it has the format {format} of builds before the first release, which this version does not \
                     read; convert the data directory as docs/upgrade.md says"
                ));
            }
            // Both copies are written first when the file is created, so a longer file has been in use.
            if len > BLOCK_BYTES + SUPERBLOCK_BYTES_MIN {
                return refuse(format!("both superblocks (blocks 0 and 1) are damaged; {CURE}"));
            }
            let map = PageMap { next_page: 1, ..PageMap::default() };
            let store = Store::with(file, path, (0, 1), map, Vec::new());
            store.change_map(MapChange::default())?;
            return Ok(store);
        };
        // The previous run may have crashed or failed before it synced this superblock. What the superblock
        // refers to was synced before. Sync it now, because from here on extents that it does not refer to
        // are reused.
        match file.write_at(&bytes, newest_copy * BLOCK_BYTES) {
            Err(error) if !is_no_space(&error) => return Err(EngineError::Io(error)),
            _ => file.sync_data().map_err(EngineError::Io)?,
        }
        let mut map = PageMap { lsn: newest.lsn, next_page: newest.next_page, ..PageMap::default() };
        let mut levels = newest.levels;
        for level in &mut levels {
            let Level { parts, keys } = level;
            for (part, crc) in parts {
                let bytes = read_part(&file, *part, len).map_err(EngineError::Io)?;
                let is_whole = crc32c::crc32c(&bytes) == *crc;
                if !is_whole || map.read_part(&bytes, keys).is_err() {
                    return refuse(format!("the page map at block {} is damaged; {CURE}", part.block));
                }
            }
        }
        if let Some(beyond) = map.extents().find(|e| e.end_byte().is_none_or(|end| end > len)) {
            let block = beyond.block;
            return refuse(format!("the file ends at byte {len}, before the page at block {block}; {CURE}"));
        }
        if let Err(what) = map.check(levels.iter().flat_map(|level| level.parts.iter().map(|part| part.0))) {
            return refuse(format!("{what}; {CURE}"));
        }
        let store = Store::with(file, path, (newest.generation, newest_copy), map, levels);
        store.cut(&store.state.lock());
        Ok(store)
    }

    fn with(
        file: SharedFile,
        path: PathBuf,
        (generation, newest_copy): (u64, u64),
        map: PageMap,
        levels: Vec<Level>,
    ) -> Store {
        let parts = levels.iter().flat_map(|level| level.parts.iter().map(|(part, _)| *part));
        let space = Space::new(map.extents().chain(parts));
        let state = State {
            generation,
            newest_copy,
            named: map.values().collect(),
            map,
            levels,
            evicted: HashMap::new(),
            deferred_frees: Vec::new(),
            space,
            loaded: BTreeMap::new(),
            is_poisoned: false,
        };
        Store {
            file: WritebackFile::new(file),
            path,
            state: Mutex::new(state),
            compression: Compression::default(),
            map_bytes: AtomicU64::new(0),
            transfers: Transfers::default(),
        }
    }

    /// Returns the path of the data file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads pinned blocks. Returns fewer bytes than asked for only at the end of the file.
    pub fn read_pinned(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }

    /// Calls `look` with the map in force.
    pub fn with_map<R>(&self, look: impl FnOnce(&PageMap) -> R) -> R {
        look(&self.state.lock().map)
    }

    /// Writes bytes to a new extent without making them durable. For bulk writes: it may wait for the disk.
    pub fn write(&self, bytes: &[u8]) -> io::Result<Extent> {
        self.write_by(bytes, |offset| self.file.write_at(bytes, offset))
    }

    fn write_by(&self, bytes: &[u8], write: impl FnOnce(u64) -> io::Result<()>) -> io::Result<Extent> {
        debug_assert!(!bytes.is_empty(), "an extent without bytes");
        debug_assert!(u32::try_from(bytes.len()).is_ok(), "the length of an extent does not fit");
        let extent = self.state.lock().space.allot(bytes.len() as u32);
        match write(extent.offset()) {
            Ok(()) => {
                self.transfers.written(bytes.len());
                Ok(extent)
            }
            Err(e) => {
                self.free(extent);
                Err(e)
            }
        }
    }

    /// Writes a page image in its index's page format.
    pub fn write_image(&self, index: IndexId, image: &[u8]) -> io::Result<Extent> {
        let compressed = self.compression.image(index, image);
        let stored = compressed.as_deref().unwrap_or(image);
        self.write_by(stored, |offset| self.file.write_at_once(stored, offset))
    }

    /// Like [`Store::write_image`], for bulk writes: it may wait for the disk.
    pub fn write_image_of_many(&self, index: IndexId, image: &[u8]) -> io::Result<Extent> {
        let compressed = self.compression.image(index, image);
        self.write(compressed.as_deref().unwrap_or(image))
    }

    /// Frees an extent that the map in force does not refer to.
    pub fn free(&self, extent: Extent) {
        self.state.lock().space.free(extent);
    }

    /// Defers the free of overflow values that are no longer read, until the map in force does not refer to
    /// them.
    pub fn defer_free(&self, values: impl IntoIterator<Item = Extent>) {
        self.state.lock().deferred_frees.extend(values);
    }

    /// Takes the deferred frees, for [`Store::free_unnamed`].
    pub fn take_deferred_frees(&self) -> Vec<Extent> {
        std::mem::take(&mut self.state.lock().deferred_frees)
    }

    /// Frees those of the values that the map does not refer to and defers the others again.
    pub fn free_unnamed(&self, values: Vec<Extent>) {
        self.state.lock().free_unnamed(values);
    }

    /// Reads an extent.
    pub fn read(&self, extent: Extent) -> Result<Vec<u8>, EngineError> {
        // The reference may have been damaged before its checksum was computed, so it may have any value.
        let end = self.state.lock().space.end();
        if extent.block.checked_add(extent.blocks()).is_none_or(|beyond| beyond > end) {
            return Err(self.corrupt(extent, "it lies beyond what is in use of the file"));
        }
        let mut bytes = vec![0; extent.bytes as usize];
        let read = self.file.read_at(&mut bytes, extent.offset()).map_err(EngineError::Io)?;
        self.transfers.read(read);
        if read < bytes.len() {
            return Err(self.corrupt(extent, "the file ends inside it"));
        }
        Ok(bytes)
    }

    /// Returns the error for damage in an extent.
    pub fn corrupt(&self, extent: Extent, what: &str) -> EngineError {
        EngineError::Corrupt(format!(
            "{}: block {}, {} bytes: {what}; {CURE}",
            self.path.display(),
            extent.block,
            extent.bytes
        ))
    }

    /// Reads a page that is not in memory.
    pub fn read_page(&self, index: IndexId, id: PageId) -> Result<Page, EngineError> {
        let newest = self.newest_of(index, id).ok_or_else(|| self.no_place(id))?;
        let page = self.page_of(self.read(newest.extent)?, newest, index, id)?;
        self.note_entries(newest, &page);
        Ok(page)
    }

    /// Returns the location of the newest image of a page that is not in memory.
    fn newest_of(&self, index: IndexId, id: PageId) -> Option<Newest> {
        let state = self.state.lock();
        if let Some(extent) = state.evicted.get(&id) {
            return Some(Newest { extent: *extent, of: ImageOf::Eviction, is_uncounted: false });
        }
        let place = state.map.trees.get(&index)?.pages.get(&id)?;
        let is_uncounted = place.entries.is_none();
        Some(Newest { extent: place.image, of: ImageOf::Checkpoint, is_uncounted })
    }

    /// Stores the number of entries of a checkpoint image when it is read for the first time. The change of
    /// the map that replaces the image uses it to update the tree's number of entries.
    fn note_entries(&self, newest: Newest, page: &Page) {
        if !newest.is_uncounted {
            return;
        }
        let mut state = self.state.lock();
        let tree = state.map.trees.get_mut(&page.index());
        let place = tree.and_then(|tree| tree.pages.get_mut(&page.id()));
        if let Some(place) = place.filter(|place| place.image == newest.extent) {
            place.entries = Some(if page.level() == 0 { page.len() as u32 } else { 0 });
        }
    }

    /// Like [`Store::read_page`], but returns `None` if it would have to wait for the disk.
    pub fn read_page_cached(&self, index: IndexId, id: PageId) -> Result<Option<Page>, EngineError> {
        let Some(newest) = self.newest_of(index, id) else { return Ok(None) };
        let extent = newest.extent;
        let mut bytes = vec![0; extent.bytes as usize];
        match self.file.try_read_at(&mut bytes, extent.offset()).map_err(EngineError::Io)? {
            Some(read) if read == bytes.len() => {
                let page = self.page_of(bytes, newest, index, id)?;
                self.note_entries(newest, &page);
                Ok(Some(page))
            }
            // The caller then reads the page with [`Store::read_page`], which returns the error.
            _ => Ok(None),
        }
    }

    /// Returns those of the pages that the map in force contains, ordered by the location of their images.
    pub fn in_file_order(&self, pages: Vec<(IndexId, PageId)>) -> Vec<(IndexId, PageId)> {
        let mut placed: Vec<(Extent, IndexId, PageId)> = self.with_map(|map| {
            let image = |index: IndexId, id: PageId| Some(map.trees.get(&index)?.pages.get(&id)?.image);
            let placed = pages.into_iter().filter_map(|(index, id)| Some((image(index, id)?, index, id)));
            placed.collect()
        });
        placed.sort_unstable_by_key(|(image, ..)| image.block);
        placed.into_iter().map(|(_, index, id)| (index, id)).collect()
    }

    /// Reads a page as a restart would.
    pub fn read_image(&self, index: IndexId, id: PageId) -> Result<Page, EngineError> {
        let extent = self.with_map(|map| Some(map.trees.get(&index)?.pages.get(&id)?.image));
        let extent = extent.ok_or_else(|| self.no_place(id))?;
        let image = Newest { extent, of: ImageOf::Checkpoint, is_uncounted: false };
        self.page_of(self.read(extent)?, image, index, id)
    }

    fn no_place(&self, id: PageId) -> EngineError {
        let (path, id) = (self.path.display(), id.0);
        EngineError::Corrupt(format!("{path}: page {id} has no place in the page map; {CURE}"))
    }

    fn page_of(
        &self,
        bytes: Vec<u8>,
        image: Newest,
        index: IndexId,
        id: PageId,
    ) -> Result<Page, EngineError> {
        let plain = self.compression.plain(bytes).ok_or(BAD_CHECKSUM);
        let page = plain
            .and_then(|plain| Page::from_image(plain, image.of))
            .map_err(|what| self.unsound(image.extent, id, what))?;
        if (page.index(), page.id()) != (index, id) {
            return Err(self.corrupt(image.extent, "it holds another page"));
        }
        if page.level() > 0 && !self.knows_children(image, &page) {
            return Err(self.unsound(image.extent, id, "it names a child that its index tree does not have"));
        }
        Ok(page)
    }

    /// Returns whether the map that contains an inner node's image also contains the node's children.
    fn knows_children(&self, image: Newest, page: &Page) -> bool {
        let state = self.state.lock();
        let Some(tree) = state.map.trees.get(&page.index()) else { return true };
        // If another map came into force meanwhile, its images are different.
        let is_named = tree.pages.get(&page.id()).is_some_and(|place| place.image == image.extent);
        let is_known = |n: usize| tree.pages.contains_key(&page.child(n));
        image.of == ImageOf::Eviction || !is_named || (0..page.len()).all(is_known)
    }

    /// Returns the error for a page that does not match its parent's entry.
    pub fn misplaced(&self, index: IndexId, id: PageId, what: Unsound) -> EngineError {
        match self.newest_of(index, id) {
            Some(newest) => self.unsound(newest.extent, id, what),
            None => self.no_place(id),
        }
    }

    fn unsound(&self, extent: Extent, id: PageId, what: Unsound) -> EngineError {
        self.corrupt(extent, &format!("page {}: {what}", id.0))
    }

    /// Writes the eviction image of a page.
    pub fn evict(&self, page: &Page) -> io::Result<()> {
        let extent = self.write_image(page.index(), &page.image())?;
        let mut state = self.state.lock();
        if let Some(old) = state.evicted.insert(page.id(), extent) {
            state.space.free(old);
        }
        Ok(())
    }

    /// Frees a page's eviction image, because the page in memory equals its checkpoint image or no longer
    /// exists.
    pub fn forget_evicted(&self, id: PageId) {
        let mut state = self.state.lock();
        if let Some(old) = state.evicted.remove(&id) {
            state.space.free(old);
        }
    }

    /// Puts a changed page map in force, durably. Callers exclude each other.
    pub fn change_map(&self, mut change: MapChange) -> Result<(), MapError> {
        if self.state.lock().is_poisoned {
            let error = io::Error::other("an earlier sync failed; restart the server");
            return Err(MapError::Unchanged(error));
        }
        let since = u32::try_from(self.state.lock().generation + 1).unwrap_or(u32::MAX);
        change.written.iter_mut().for_each(|(.., place)| place.since = since);
        let (kept, fresh) = self.write_level(&change).map_err(MapError::Unchanged)?;
        let fresh_parts: Vec<Extent> =
            fresh.iter().flat_map(|level| &level.parts).map(|(part, _)| *part).collect();
        let superblock = {
            let state = self.state.lock();
            Superblock {
                generation: state.generation + 1,
                lsn: change.lsn.unwrap_or(state.map.lsn),
                next_page: change.next_page.max(state.map.next_page),
                levels: state.levels[..kept].iter().chain(&fresh).map(Level::parts_only).collect(),
            }
        };
        self.put_in_force(&superblock).inspect_err(|error| {
            if matches!(error, MapError::Unchanged(_)) {
                fresh_parts.iter().for_each(|part| self.free(*part));
            }
        })?;
        let mut state = self.state.lock();
        let state = &mut *state;
        debug_assert_eq!(
            superblock.generation,
            state.generation + 1,
            "two changes of the page map run at a time"
        );
        if change.lsn.is_none() {
            let loaded = change.roots.iter().map(|(index, _)| *index);
            state.loaded.values_mut().for_each(|pin| pin.extend(loaded.clone()));
        }
        let (outdated, fresh_values) = state.map.apply(change);
        state.generation = superblock.generation;
        let merged = state.levels.drain(kept..).flat_map(|level| level.parts);
        let gone: Vec<Extent> = merged.map(|(part, _)| part).collect();
        state.levels.extend(fresh);
        outdated.iter().map(|place| place.image).chain(gone).for_each(|image| state.space.free(image));
        outdated.iter().flat_map(|place| &place.values).for_each(|value| _ = state.named.remove(value));
        state.named.extend(fresh_values);
        let deferred_frees = std::mem::take(&mut state.deferred_frees);
        state.free_unnamed(deferred_frees);
        self.cut(state);
        Ok(())
    }

    /// Writes the newest level of the page map: the change, and the levels that are merged into it. Returns
    /// the number of older levels that stay, and the new level unless it would be empty.
    fn write_level(&self, change: &MapChange) -> io::Result<(usize, Option<Level>)> {
        let sorted = Sorted::new(change);
        let (keys, kept) = {
            let state = self.state.lock();
            let (mut keys, bytes) = sorted.keys(&state.map);
            if keys.is_empty() {
                return Ok((state.levels.len(), None));
            }
            let kept = levels_kept(&state.levels, bytes, PARTS_MAX - PARTS_SPARE);
            for level in state.levels[kept..].iter().filter(|_| kept > 0) {
                keys.merge(level.keys.clone());
            }
            (keys, kept)
        };
        let look = |see: &mut dyn FnMut(&PageMap)| see(&self.state.lock().map);
        let mut parts = Vec::new();
        let mut emit = |bytes: &[u8]| {
            self.map_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            parts.push((self.write(bytes)?, crc32c::crc32c(bytes)));
            Ok(())
        };
        let writer = LevelWriter::new(&mut emit);
        let written = match kept {
            0 => writer.whole(&look, &sorted),
            _ => writer.changed(&look, &sorted, &keys),
        };
        let kept_parts: usize = self.state.lock().levels[..kept].iter().map(|level| level.parts.len()).sum();
        let fits = kept_parts + parts.len() <= PARTS_MAX;
        let written = written.and_then(|()| match fits {
            true => Ok(()),
            false => Err(io::Error::other("the page map is larger than a superblock can name")),
        });
        if let Err(error) = written {
            parts.into_iter().for_each(|(part, _)| self.free(part));
            return Err(error);
        }
        // The keys of the oldest level are never used: a level that is merged with it is written completely.
        let keys = if kept > 0 { keys } else { Keys::default() };
        Ok((kept, (!parts.is_empty()).then_some(Level { parts, keys })))
    }

    /// Makes everything that the superblock refers to durable, then writes the superblock.
    fn put_in_force(&self, superblock: &Superblock) -> Result<(), MapError> {
        let bytes = superblock.encode();
        let newest_copy = self.state.lock().newest_copy;
        debug_assert!(newest_copy < 2, "a superblock has two copies");
        let copy = 1 - newest_copy;
        self.sync().map_err(MapError::Unchanged)?;
        match self.file.write_at_once(&bytes, copy * BLOCK_BYTES) {
            Ok(()) => self.sync().map_err(MapError::Unknown)?,
            // Nothing was written.
            Err(error) if is_no_space(&error) => {
                return Err(MapError::Unchanged(error));
            }
            Err(error) => return Err(MapError::Unknown(self.poison(error))),
        }
        self.state.lock().newest_copy = copy;
        match self.file.write_at_once(&bytes, newest_copy * BLOCK_BYTES) {
            // The next change writes this copy first.
            Err(error) if !is_no_space(&error) => Err(MapError::Unknown(self.poison(error))),
            _ => Ok(()),
        }
    }

    /// Cuts off the free end of the file. Errors are ignored: the file then stays longer.
    fn cut(&self, state: &State) {
        let end = state.space.end() * BLOCK_BYTES;
        if self.file.len().is_ok_and(|len| len > end + CUT_BYTES_MIN) {
            let _ = self.file.set_len(end);
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data().map_err(|error| self.poison(error))
    }

    /// Marks the store as poisoned and returns an error that the caller does not treat as retryable.
    fn poison(&self, error: io::Error) -> io::Error {
        self.state.lock().is_poisoned = true;
        io::Error::other(format!("{} cannot be made durable: {error}", self.path.display()))
    }

    /// Returns a description of an extent that overlaps another or lies in free space, if there is one.
    pub fn verify_space(&self) -> Option<String> {
        let (mut used, free) = {
            let state = self.state.lock();
            let evicted = state.evicted.values().chain(state.space.held()).copied();
            let used: Vec<Extent> = state
                .map
                .extents()
                .chain(state.levels.iter().flat_map(|level| level.parts.iter().map(|(part, _)| *part)))
                .chain(evicted)
                .chain(state.doomed_only())
                .collect();
            (used, state.space.free_runs())
        };
        used.extend(free);
        used.sort_unstable();
        let overlap = used.windows(2).find(|pair| pair[0].block + pair[0].blocks() > pair[1].block)?;
        let [first, second] = overlap else { unreachable!("windows of two") };
        Some(format!("{}: blocks {} and {} are in use twice", self.path.display(), first.block, second.block))
    }

    /// Returns the number of the file's blocks and how many of these are free.
    pub fn blocks(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.space.end(), state.space.free_blocks())
    }

    /// Pins the images that the map in force refers to. The copy of the pin needs those that are younger than
    /// the superblock `since`, or all. The map must not change meanwhile.
    pub fn pin(self: &Arc<Self>, since: Option<u64>) -> StorePin {
        let mut blocks = BlockSet::default();
        let indexes: Vec<IndexId> = self.with_map(|map| map.trees.keys().copied().collect());
        indexes.iter().for_each(|index| self.add_tree(*index, None, &mut blocks));
        let mut fresh = since.map(|_| BlockSet::default());
        if let Some(fresh) = &mut fresh {
            indexes.iter().for_each(|index| self.add_tree(*index, since, fresh));
        }
        let mut state = self.state.lock();
        let state = &mut *state;
        state.levels.iter().flat_map(|level| &level.parts).for_each(|(part, _)| {
            blocks.add(part.block_range());
            fresh.iter_mut().for_each(|fresh| fresh.add(part.block_range()));
        });
        let superblock = Superblock {
            generation: state.generation,
            lsn: state.map.lsn,
            next_page: state.map.next_page,
            levels: state.levels.iter().map(Level::parts_only).collect(),
        };
        let blocks = Arc::new(blocks);
        let copied = fresh.map_or_else(|| Arc::clone(&blocks), Arc::new);
        let number = state.space.pin(Arc::clone(&blocks));
        state.loaded.insert(number, BTreeSet::new());
        StorePin { store: Arc::clone(self), numbers: vec![number], superblock, blocks, copied }
    }

    /// Adds the blocks of a tree's pages that are younger than the superblock `since`, or of all, some pages
    /// under one lock. The map must not change meanwhile.
    fn add_tree(&self, index: IndexId, since: Option<u64>, blocks: &mut BlockSet) {
        let is_wanted = |place: &Place| {
            since.is_none_or(|since| place.since == u32::MAX || u64::from(place.since) > since)
        };
        let mut after = Bound::Unbounded;
        loop {
            let added = self.with_map(|map| {
                let pages = map.trees.get(&index)?.pages.range((after, Bound::Unbounded));
                pages.take(LOOK_PAGES).fold(None, |_, (id, place)| {
                    if is_wanted(place) {
                        blocks.add(place.image.block_range());
                        place.values.iter().for_each(|value| blocks.add(value.block_range()));
                    }
                    Some(*id)
                })
            });
            match added {
                Some(last) => after = Bound::Excluded(last),
                None => return,
            }
        }
    }

    /// Pins the trees that were loaded since the pin was made, as the map in force has them, and returns the
    /// level of the page map that adds them to the map of the pin. The map must not change meanwhile.
    pub fn pin_loaded(&self, pin: &mut StorePin) -> io::Result<LoadedTrees> {
        let loaded = self.state.lock().loaded.remove(&pin.numbers[0]).unwrap_or_default();
        let mut blocks = BlockSet::default();
        loaded.iter().for_each(|index| self.add_tree(*index, None, &mut blocks));
        let blocks = Arc::new(blocks);
        let (keys, next_page) = {
            let mut state = self.state.lock();
            pin.numbers.push(state.space.pin(Arc::clone(&blocks)));
            (Keys::of_trees(&state.map, &loaded), state.map.next_page)
        };
        let mut parts = Vec::new();
        let mut emit = |part: &[u8]| {
            parts.push(part.to_vec());
            Ok(())
        };
        let look = |see: &mut dyn FnMut(&PageMap)| see(&self.state.lock().map);
        let nothing = MapChange::default();
        LevelWriter::new(&mut emit).changed(&look, &Sorted::new(&nothing), &keys)?;
        Ok(LoadedTrees { blocks, parts, next_page })
    }

    /// Ends the pins with these numbers.
    pub fn unpin(&self, numbers: &[u64]) {
        let mut state = self.state.lock();
        for number in numbers {
            state.loaded.remove(number);
            state.space.unpin(*number);
        }
        self.cut(&state);
    }

    /// Returns the bytes that are free, except that backups pin them.
    pub fn held_bytes(&self) -> u64 {
        self.state.lock().space.held_bytes()
    }
}

/// A pinned state of the data file.
pub struct StorePin {
    pub store: Arc<Store>,
    /// Numbers of its pins in the free space: that of the state, and later that of the loaded trees.
    pub numbers: Vec<u64>,
    pub superblock: Superblock,
    pub blocks: Arc<BlockSet>,
    /// Part of `blocks` that the copy needs.
    pub copied: Arc<BlockSet>,
}

impl Drop for StorePin {
    fn drop(&mut self) {
        self.store.unpin(&self.numbers);
    }
}

/// The trees that were loaded since a pin.
pub struct LoadedTrees {
    pub blocks: Arc<BlockSet>,
    /// Parts of the level that adds them to the page map of the pin.
    pub parts: Vec<Vec<u8>>,
    pub next_page: u64,
}

/// Reads a part of the page map. Returns no bytes if the file ends before the end of the part.
fn read_part(file: &SharedFile, part: Extent, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if part.end_byte().is_some_and(|end| end <= len) {
        bytes.resize(part.bytes as usize, 0);
        file.read_at(&mut bytes, part.offset())?;
    }
    Ok(bytes)
}
