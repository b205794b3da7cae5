//! The data file `btree.data`: images of pages, long values, the page map and the superblock.
//!
//! ```text
//! block 0, 1   the superblock's two copies; the newer valid one counts
//! then         extents: images of pages, long values, the page map
//!
//! superblock   8 magic "COHBTR01" | u64 generation | u64 LSN of the checkpoint | u64 next page id
//!              | u64 block of the page map | u32 its bytes | u32 its CRC-32C | u32 CRC-32C of all before
//!
//! page map     u32 number of trees, each: u32 key space | u64 root | u64 entries, estimated | u32 number of pages,
//!              each: u64 page id | u64 block | u32 bytes | u16 number of long values, each: u64 block | u32 bytes
//! ```
//!
//! # What is written when
//! A page is never written over: every image takes a new extent. Two kinds of images exist.
//! - A *checkpoint image* holds published versions only (I3). It counts from the superblock on that names its
//!   page map, and the extents that the former map named are free from then on.
//! - An *eviction image* is the page as it stands, with its version references. No page map names it, so a
//!   restart never reads it.
//!
//! A new superblock is written after everything it names is durable: to the older of the two copies, synced,
//! then to the other one, which the next sync makes durable. So a copy that rots leaves one that says the
//! same, and a start never falls back to a superblock whose extents others have been given. A new file gets
//! both at once.
//!
//! The file is cut where its free end begins, behind a change of the map.
//!
//! # On failure
//! A failed write of an image leaves the former superblock in force, and is tried again
//! ([`MapError::Unchanged`]). After a failed sync or superblock nobody knows what the disk holds
//! ([`MapError::Unknown`]): the file takes no further superblock until a restart, and the log keeps
//! everything. Damage is refused with the file, the block and the cure: a file that is too short, two damaged
//! superblocks or a damaged page map at the start, a page or long value when it is read.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use cohort_base::{IndexId, Lsn, Reader, Write};
use cohort_engine::EngineError;
use cohort_vfs::{OpenMode, SharedFile, SharedFs};
use parking_lot::Mutex;

use crate::page::{Page, PageId};
use crate::space::{BLOCK_BYTES, Extent, FIRST_FREE_BLOCK, Space};

const MAGIC: &[u8; 8] = b"COHBTR01";
const FILE: &str = "btree.data";
/// What to do about damage.
const CURE: &str = "restore the data directory from a backup or a replica";
const SUPERBLOCK_BYTES: usize = 52;
/// A free end of the file is cut off when it is longer.
const CUT_BYTES_MIN: u64 = 4 << 20;

/// A page's place in the last checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub image: Extent,
    /// Long values that its entries name.
    pub values: Vec<Extent>,
}

/// A tree as the page map tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeMap {
    pub root: PageId,
    /// Entries, estimated.
    pub entries: u64,
    pub pages: BTreeMap<PageId, Place>,
}

/// All that a restart reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageMap {
    pub lsn: Lsn,
    pub next_page: u64,
    pub trees: BTreeMap<IndexId, TreeMap>,
}

impl PageMap {
    fn places(&self) -> impl Iterator<Item = &Place> {
        self.trees.values().flat_map(|tree| tree.pages.values())
    }

    fn values(&self) -> impl Iterator<Item = Extent> {
        self.places().flat_map(|place| place.values.iter().copied())
    }

    fn extents(&self) -> impl Iterator<Item = Extent> {
        self.places().map(|place| place.image).chain(self.values())
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u32(self.trees.len() as u32);
        for (index, tree) in &self.trees {
            out.put_u32(index.0);
            out.put_u64(tree.root.0);
            out.put_u64(tree.entries);
            out.put_u32(tree.pages.len() as u32);
            for (id, place) in &tree.pages {
                out.put_u64(id.0);
                put_extent(&mut out, place.image);
                out.put_u16(place.values.len() as u16);
                place.values.iter().for_each(|value| put_extent(&mut out, *value));
            }
        }
        out
    }

    fn decode(lsn: Lsn, next_page: u64, bytes: &[u8]) -> Result<PageMap, cohort_base::Truncated> {
        let mut r = Reader::new(bytes);
        let mut map = PageMap { lsn, next_page, ..PageMap::default() };
        for _ in 0..r.u32()? {
            let index = IndexId(r.u32()?);
            let mut tree = TreeMap { root: PageId(r.u64()?), entries: r.u64()?, ..TreeMap::default() };
            for _ in 0..r.u32()? {
                let id = PageId(r.u64()?);
                let mut place = Place { image: extent(&mut r)?, ..Place::default() };
                for _ in 0..r.u16()? {
                    place.values.push(extent(&mut r)?);
                }
                tree.pages.insert(id, place);
            }
            map.trees.insert(index, tree);
        }
        Ok(map)
    }
}

fn put_extent(out: &mut Vec<u8>, extent: Extent) {
    out.put_u64(extent.block);
    out.put_u32(extent.bytes);
}

fn extent(r: &mut Reader<'_>) -> Result<Extent, cohort_base::Truncated> {
    Ok(Extent { block: r.u64()?, bytes: r.u32()? })
}

#[derive(Debug)]
struct Superblock {
    generation: u64,
    lsn: Lsn,
    next_page: u64,
    map: Extent,
    map_crc: u32,
}

impl Superblock {
    fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.put_u64(self.generation);
        out.put_u64(self.lsn.0);
        out.put_u64(self.next_page);
        put_extent(&mut out, self.map);
        out.put_u32(self.map_crc);
        let crc = crc32c::crc32c(&out);
        out.put_u32(crc);
        out
    }

    fn decode(bytes: &[u8]) -> Option<Superblock> {
        let (body, crc) = bytes.get(..SUPERBLOCK_BYTES)?.split_last_chunk::<4>()?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return None;
        }
        let mut r = Reader::new(body);
        if r.bytes(MAGIC.len()).ok()? != MAGIC {
            return None;
        }
        Some(Superblock {
            generation: r.u64().ok()?,
            lsn: Lsn(r.u64().ok()?),
            next_page: r.u64().ok()?,
            map: extent(&mut r).ok()?,
            map_crc: r.u32().ok()?,
        })
    }
}

/// What the superblock in force names, and where pages that are not in memory lie besides.
struct State {
    generation: u64,
    /// The copy of the superblock that was written last; the next one begins with the other.
    newest_copy: u64,
    map: PageMap,
    map_extent: Option<Extent>,
    /// Long values that the map names.
    named: HashSet<Extent>,
    /// Eviction images of this run, newer than what the map names.
    evicted: HashMap<PageId, Extent>,
    /// Long values that nobody reads any more; the map in force may still name them.
    doomed: Vec<Extent>,
    space: Space,
    /// A sync or a superblock's write failed: nobody knows which superblock the disk holds.
    is_poisoned: bool,
}

impl State {
    /// Doomed values that the map does not name: they are free at its next change.
    fn doomed_only(&self) -> impl Iterator<Item = Extent> {
        self.doomed.iter().copied().filter(|extent| !self.named.contains(extent))
    }

    /// Frees what is doomed and not named by the map in force.
    fn free_doomed(&mut self) {
        let State { doomed, named, space, .. } = self;
        doomed.extract_if(.., |extent| !named.contains(extent)).for_each(|extent| space.free(extent));
    }
}

/// The data file. Shared by all threads; its lock is held for no I/O but a superblock's.
pub struct Store {
    file: SharedFile,
    path: PathBuf,
    state: Mutex<State>,
}

/// A change of the page map.
#[derive(Default)]
pub struct MapChange {
    /// A checkpoint's position; none: the map is changed between checkpoints.
    pub lsn: Option<Lsn>,
    pub next_page: u64,
    /// New images, and trees that they begin.
    pub written: Vec<(IndexId, PageId, Place)>,
    /// Pages that went into their neighbours.
    pub removed: Vec<(IndexId, PageId)>,
    /// Roots of all trees of the new map with estimates; trees that are not here are left as they are.
    pub roots: Vec<(IndexId, PageId, u64)>,
    /// Trees that are gone.
    pub dropped: Vec<IndexId>,
}

/// Why a map is not in force.
#[derive(Debug)]
pub enum MapError {
    /// The former one is: the extents that the new one was to name are its maker's.
    Unchanged(io::Error),
    /// Nobody knows which superblock the disk holds: the extents stay taken until the next start.
    Unknown(io::Error),
}

impl From<MapError> for EngineError {
    fn from(error: MapError) -> EngineError {
        let (MapError::Unchanged(error) | MapError::Unknown(error)) = error;
        EngineError::Io(error)
    }
}

impl Store {
    /// Opens the file, or makes it.
    pub fn open(fs: &SharedFs, dir: &Path) -> Result<Store, EngineError> {
        fs.create_dir_all(dir).map_err(EngineError::Io)?;
        let path = dir.join(FILE);
        let is_new = !fs.exists(&path);
        let file = fs.open(&path, OpenMode::CreateOrOpen).map_err(EngineError::Io)?;
        if is_new {
            fs.sync_dir(dir).map_err(EngineError::Io)?;
        }
        let refuse = |what: String| Err(EngineError::Corrupt(format!("{}: {what}", path.display())));
        let len = file.len().map_err(EngineError::Io)?;
        let mut found: Vec<(u64, Superblock)> = Vec::new();
        for copy in 0..2 {
            let mut bytes = vec![0; SUPERBLOCK_BYTES];
            let read = file.read_at(&mut bytes, copy * BLOCK_BYTES).map_err(EngineError::Io)?;
            found.extend(Superblock::decode(&bytes[..read]).map(|superblock| (copy, superblock)));
        }
        found.sort_by_key(|(_, superblock)| superblock.generation);
        let Some((newest_copy, newest)) = found.pop() else {
            // Both are written when the file is made, behind an empty map: a longer file has been in use.
            if len > FIRST_FREE_BLOCK * BLOCK_BYTES + SUPERBLOCK_BYTES as u64 {
                return refuse(format!("both superblocks (blocks 0 and 1) are damaged; {CURE}"));
            }
            let map = PageMap { next_page: 1, ..PageMap::default() };
            let store = Store::with(file, path, (0, 1), map, None);
            store.change_map(MapChange::default())?;
            return Ok(store);
        };
        let mut bytes = Vec::new();
        if newest.map.offset().saturating_add(u64::from(newest.map.bytes)) <= len {
            bytes.resize(newest.map.bytes as usize, 0);
            file.read_at(&mut bytes, newest.map.offset()).map_err(EngineError::Io)?;
        }
        let map = match crc32c::crc32c(&bytes) == newest.map_crc {
            true => PageMap::decode(newest.lsn, newest.next_page, &bytes).ok(),
            false => None,
        };
        let Some(map) = map else {
            return refuse(format!("the page map at block {} is damaged; {CURE}", newest.map.block));
        };
        if let Some(beyond) = map.extents().find(|e| e.offset().saturating_add(u64::from(e.bytes)) > len) {
            let block = beyond.block;
            return refuse(format!("the file ends at byte {len}, before the page at block {block}; {CURE}"));
        }
        Ok(Store::with(file, path, (newest.generation, newest_copy), map, Some(newest.map)))
    }

    fn with(
        file: SharedFile,
        path: PathBuf,
        (generation, newest_copy): (u64, u64),
        map: PageMap,
        map_extent: Option<Extent>,
    ) -> Store {
        let space = Space::new(map.extents().chain(map_extent));
        let state = State {
            generation,
            newest_copy,
            named: map.values().collect(),
            map,
            map_extent,
            evicted: HashMap::new(),
            doomed: Vec::new(),
            space,
            is_poisoned: false,
        };
        Store { file, path, state: Mutex::new(state) }
    }

    /// The data file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks at the map in force.
    pub fn with_map<R>(&self, look: impl FnOnce(&PageMap) -> R) -> R {
        look(&self.state.lock().map)
    }

    /// Writes bytes into an extent of their own; they are not durable.
    pub fn write(&self, bytes: &[u8]) -> io::Result<Extent> {
        let extent = self.state.lock().space.allot(bytes.len() as u32);
        match self.file.write_at(bytes, extent.offset()) {
            Ok(()) => Ok(extent),
            Err(e) => {
                self.free(extent);
                Err(e)
            }
        }
    }

    /// Gives an extent back that no map in force names.
    pub fn free(&self, extent: Extent) {
        self.state.lock().space.free(extent);
    }

    /// Nobody reads these long values any more: they are free as soon as no map in force names them.
    pub fn doom(&self, values: impl IntoIterator<Item = Extent>) {
        self.state.lock().doomed.extend(values);
    }

    /// Reads an extent.
    pub fn read(&self, extent: Extent) -> Result<Vec<u8>, EngineError> {
        let mut bytes = vec![0; extent.bytes as usize];
        let read = self.file.read_at(&mut bytes, extent.offset()).map_err(EngineError::Io)?;
        if read < bytes.len() {
            return Err(self.corrupt(extent, "the file ends inside it"));
        }
        Ok(bytes)
    }

    /// The error for damage.
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
        let extent = {
            let state = self.state.lock();
            let of_map = || Some(state.map.trees.get(&index)?.pages.get(&id)?.image);
            state.evicted.get(&id).copied().or_else(of_map)
        };
        self.read_page_at(extent, index, id)
    }

    /// Reads a page as a restart would.
    pub fn read_image(&self, index: IndexId, id: PageId) -> Result<Page, EngineError> {
        let extent = self.with_map(|map| Some(map.trees.get(&index)?.pages.get(&id)?.image));
        self.read_page_at(extent, index, id)
    }

    fn read_page_at(&self, extent: Option<Extent>, index: IndexId, id: PageId) -> Result<Page, EngineError> {
        let extent = extent.ok_or_else(|| {
            let (path, id) = (self.path.display(), id.0);
            EngineError::Corrupt(format!("{path}: page {id} has no place in the page map; {CURE}"))
        })?;
        let page = Page::from_image(self.read(extent)?);
        let page = page.ok_or_else(|| self.corrupt(extent, "the page fails its checksum"))?;
        if (page.index(), page.id()) != (index, id) {
            return Err(self.corrupt(extent, "it holds another page"));
        }
        Ok(page)
    }

    /// Writes a page as it stands, so that it can leave memory.
    pub fn evict(&self, page: &Page) -> io::Result<()> {
        let extent = self.write(&page.image())?;
        let mut state = self.state.lock();
        if let Some(old) = state.evicted.insert(page.id(), extent) {
            state.space.free(old);
        }
        Ok(())
    }

    /// The page in memory is what its checkpoint image says, or it is gone: its eviction image is free.
    pub fn forget_evicted(&self, id: PageId) {
        let mut state = self.state.lock();
        if let Some(old) = state.evicted.remove(&id) {
            state.space.free(old);
        }
    }

    /// Puts a changed page map in force, durably. Callers exclude each other.
    pub fn change_map(&self, change: MapChange) -> Result<(), MapError> {
        let (mut map, generation, is_poisoned) = {
            let state = self.state.lock();
            (state.map.clone(), state.generation + 1, state.is_poisoned)
        };
        if is_poisoned {
            let error = io::Error::other("an earlier sync failed; restart the server");
            return Err(MapError::Unchanged(error));
        }
        let (outdated, fresh) = apply(change, &mut map);
        let bytes = map.encode();
        let map_extent = self.write(&bytes).map_err(MapError::Unchanged)?;
        let map_crc = crc32c::crc32c(&bytes);
        let (lsn, next_page) = (map.lsn, map.next_page);
        let superblock = Superblock { generation, lsn, next_page, map: map_extent, map_crc };
        self.put_in_force(&superblock).inspect_err(|error| {
            if matches!(error, MapError::Unchanged(_)) {
                self.free(map_extent);
            }
        })?;
        let mut state = self.state.lock();
        let state = &mut *state;
        (state.map, state.generation) = (map, generation);
        let images = outdated.iter().map(|place| place.image).chain(state.map_extent.replace(map_extent));
        images.for_each(|image| state.space.free(image));
        outdated.iter().flat_map(|place| &place.values).for_each(|value| _ = state.named.remove(value));
        state.named.extend(fresh);
        state.free_doomed();
        self.cut(state);
        Ok(())
    }

    /// Writes the superblock after what it names.
    fn put_in_force(&self, superblock: &Superblock) -> Result<(), MapError> {
        let bytes = superblock.encode();
        let newest_copy = self.state.lock().newest_copy;
        let copy = 1 - newest_copy;
        self.sync().map_err(MapError::Unchanged)?;
        match self.file.write_at(&bytes, copy * BLOCK_BYTES) {
            Ok(()) => self.sync().map_err(MapError::Unknown)?,
            // Nothing was written.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                return Err(MapError::Unchanged(error));
            }
            Err(error) => return Err(MapError::Unknown(self.poison(error))),
        }
        self.state.lock().newest_copy = copy;
        match self.file.write_at(&bytes, newest_copy * BLOCK_BYTES) {
            // The next change writes this copy first.
            Err(error) if error.kind() != io::ErrorKind::StorageFull => {
                Err(MapError::Unknown(self.poison(error)))
            }
            _ => Ok(()),
        }
    }

    /// Cuts off the free end of the file. A file that cannot be cut stays long.
    fn cut(&self, state: &State) {
        let end = state.space.end() * BLOCK_BYTES;
        if self.file.len().is_ok_and(|len| len > end + CUT_BYTES_MIN) {
            let _ = self.file.set_len(end);
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data().map_err(|error| self.poison(error))
    }

    /// The error for the caller, which is none that a later try may mend.
    fn poison(&self, error: io::Error) -> io::Error {
        self.state.lock().is_poisoned = true;
        io::Error::other(format!("{} cannot be made durable: {error}", self.path.display()))
    }

    /// What is wrong with the use of the file's blocks: an extent that overlaps another or lies in free
    /// space.
    pub fn verify_space(&self) -> Option<String> {
        let (mut used, free) = {
            let state = self.state.lock();
            let evicted = state.evicted.values().copied();
            let used: Vec<Extent> = state
                .map
                .extents()
                .chain(state.map_extent)
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

    /// Blocks of the file in use, and blocks that are free between them.
    pub fn blocks(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.space.end(), state.space.free_blocks())
    }
}

/// Changes the map. Returns the places that it does not name any more, and the long values that it names
/// since.
fn apply(change: MapChange, map: &mut PageMap) -> (Vec<Place>, Vec<Extent>) {
    let (mut outdated, mut fresh) = (Vec::new(), Vec::new());
    map.lsn = change.lsn.unwrap_or(map.lsn);
    map.next_page = change.next_page.max(map.next_page);
    for index in change.dropped {
        let tree = map.trees.remove(&index).unwrap_or_default();
        outdated.extend(tree.pages.into_values());
    }
    for (index, root, entries) in change.roots {
        let tree = map.trees.entry(index).or_default();
        (tree.root, tree.entries) = (root, entries);
    }
    for (index, id) in change.removed {
        outdated.extend(map.trees.get_mut(&index).and_then(|tree| tree.pages.remove(&id)));
    }
    for (index, id, place) in change.written {
        fresh.extend_from_slice(&place.values);
        let tree = map.trees.get_mut(&index).expect("every tree's root is told");
        outdated.extend(tree.pages.insert(id, place));
    }
    (outdated, fresh)
}
