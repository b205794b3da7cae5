//! The page map: the locations of the pages of the last checkpoint.
//!
//! # Levels
//! The whole map is in memory. On disk it consists of *levels*, oldest first. The oldest level contains the
//! whole map as it was when the level was written. Each later level contains only what has changed since the
//! level before it. A start reads the levels in order and applies one after the other.
//!
//! A change of the map writes one new level. So that there are few levels, old ones are merged into it
//! ([`levels_kept`]):
//! ```text
//! data = the change
//! while the newest level is at most GROWTH times as large as data:  data += that level; remove the level
//! if the levels that remain have too many parts for a superblock:   remove them all
//! write data as the new newest level; if no level remained, write the whole map instead
//! ```
//! Each level was therefore more than [`GROWTH`] times as large as the next one when that was written. A
//! checkpoint writes bytes in proportion to its changes. An entry is written again only when its level is
//! merged, which happens a number of times that is logarithmic in the size of the map. The superblock names
//! the levels (`superblock.rs`).
//!
//! # Format
//! A level is a list of parts, and a part a list of records. Each part begins with a record of a tree or of a
//! removed tree. Integers are little-endian.
//! ```text
//! u8 1 | u32 index                                    the tree and all its pages were removed
//! u8 2 | u32 index | u64 root | u64 entries           a tree; the next records belong to it
//! u8 3 | u64 page id                                  the page was removed
//! u8 4 | u64 page id | u64 block | u32 bytes | u16 number of overflow values, each: u64 block | u32 bytes
//!                                                     the location of the page and of its overflow values
//! u8 5 | u32 generation | then as tag 4               the same, with the superblock that had it first
//! ```
//! Tag 4 was written by versions before COHBTR03; its generation is 0. Records with tag 1 come first in a
//! level: a tree of the same index in the same level is a new one.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::ops::Bound;

use cohort_base::{IndexId, Lsn, Reader, Truncated, Write};

use crate::page::PageId;
use crate::space::{Extent, FIRST_FREE_BLOCK};

/// A level is merged into the data written after it unless it is larger by this factor.
const GROWTH: u64 = 2;
/// Number of pages that are processed under one lock.
pub const LOOK_PAGES: usize = 4096;
/// Size of a part at which the next part of a level begins.
const PART_BYTES: usize = 64 << 20;

const DROPPED: u8 = 1;
const TREE: u8 = 2;
const REMOVED: u8 = 3;
const PAGE_WITHOUT_GENERATION: u8 = 4;
const PAGE: u8 = 5;

/// Location of a page in the last checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub image: Extent,
    /// Overflow values that its entries refer to.
    pub values: Vec<Extent>,
    /// Number of entries if the page is a leaf, otherwise 0. `None` until the image is read for the first
    /// time after a start. Not stored on disk.
    pub entries: Option<u32>,
    /// Generation of the first superblock whose map has this location: an incremental backup copies what is
    /// younger than the backup before. `u32::MAX` if it does not fit.
    pub since: u32,
}

/// A tree in the page map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeMap {
    pub root: PageId,
    /// Number of entries in the leaves' images. An estimate if an earlier version of the server wrote it.
    pub entries: u64,
    pub pages: BTreeMap<PageId, Place>,
}

/// Everything that a restart needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageMap {
    pub lsn: Lsn,
    pub next_page: u64,
    pub trees: BTreeMap<IndexId, TreeMap>,
}

/// A change of the page map.
#[derive(Default)]
pub struct MapChange {
    /// LSN of the checkpoint, or `None` for a change between checkpoints.
    pub lsn: Option<Lsn>,
    pub next_page: u64,
    /// New images, possibly of new trees.
    pub written: Vec<(IndexId, PageId, Place)>,
    /// Pages that were merged into their neighbours.
    pub removed: Vec<(IndexId, PageId)>,
    /// Roots of all trees of the new map. A tree that is not listed stays as it is.
    pub roots: Vec<(IndexId, PageId)>,
    /// Trees that were removed.
    pub dropped: Vec<IndexId>,
}

/// Keys of the records of a level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    dropped: BTreeSet<IndexId>,
    trees: BTreeMap<IndexId, BTreeSet<PageId>>,
}

impl Keys {
    /// Returns the keys of records that replace whole trees, as far as the map has them.
    pub fn of_trees(map: &PageMap, indexes: &BTreeSet<IndexId>) -> Keys {
        let trees = indexes.iter().filter_map(|index| {
            let pages = map.trees.get(index)?.pages.keys().copied().collect();
            Some((*index, pages))
        });
        let trees: BTreeMap<IndexId, BTreeSet<PageId>> = trees.collect();
        Keys { dropped: trees.keys().copied().collect(), trees }
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.dropped.is_empty() && self.trees.is_empty()
    }

    /// Adds the keys of `other`.
    pub fn merge(&mut self, other: Keys) {
        self.dropped.extend(other.dropped);
        for (index, mut pages) in other.trees {
            self.trees.entry(index).or_default().append(&mut pages);
        }
    }
}

/// A level of the page map on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Extents of its parts, each with its CRC-32C.
    pub parts: Vec<(Extent, u32)>,
    pub keys: Keys,
}

impl Level {
    /// Returns the level in the form that the superblock stores.
    pub fn parts_only(&self) -> Level {
        Level { parts: self.parts.clone(), keys: Keys::default() }
    }

    fn bytes(&self) -> u64 {
        self.parts.iter().map(|(extent, _)| u64::from(extent.bytes)).sum()
    }
}

/// Returns how many of the oldest levels are kept when a change of `bytes` bytes is written. The others are
/// merged into the new level.
pub fn levels_kept(levels: &[Level], mut bytes: u64, parts_max: usize) -> usize {
    let mut kept = levels.len();
    while let Some(newest) = levels[..kept].last().filter(|level| level.bytes() <= GROWTH * bytes) {
        bytes += newest.bytes();
        kept -= 1;
    }
    debug_assert!(
        levels[..kept].last().is_none_or(|newest| newest.bytes() > GROWTH * bytes),
        "levels of similar size are kept: their number would grow with each change"
    );
    let parts: usize = levels[..kept].iter().map(|level| level.parts.len()).sum();
    if parts < parts_max { kept } else { 0 }
}

/// Changes of one tree.
#[derive(Default)]
struct TreeChange<'c> {
    is_dropped: bool,
    root: Option<PageId>,
    /// `None` if the page was removed.
    pages: BTreeMap<PageId, Option<&'c Place>>,
}

impl TreeChange<'_> {
    /// Returns root and number of entries of the tree after the change. `former` is the tree before it.
    fn after(&self, former: Option<&TreeMap>) -> Option<(PageId, u64)> {
        let former = former.filter(|_| !self.is_dropped);
        debug_assert!(
            former.is_some() || self.root.is_some() || !self.pages.values().any(Option::is_some),
            "pages are written of a tree without a root"
        );
        let root = self.root.or(former.map(|tree| tree.root))?;
        let before = |id: &PageId| former.and_then(|tree| tree.pages.get(id));
        let more: i64 = self.pages.iter().map(|(id, now)| more_entries(before(id), *now)).sum();
        Some((root, former.map_or(0, |tree| tree.entries).saturating_add_signed(more)))
    }
}

/// Returns the change of a tree's number of entries when an image of a page replaces another.
fn more_entries(before: Option<&Place>, now: Option<&Place>) -> i64 {
    let now = i64::from(now.and_then(|place| place.entries).unwrap_or(0));
    match before.map(|place| place.entries) {
        None => now,
        Some(Some(before)) => now - i64::from(before),
        // The page was read before it was written again, so the number was known by then.
        Some(None) => 0,
    }
}

/// A change, by tree and page.
pub struct Sorted<'c> {
    trees: BTreeMap<IndexId, TreeChange<'c>>,
}

impl<'c> Sorted<'c> {
    /// Sorts a change.
    pub fn new(change: &'c MapChange) -> Sorted<'c> {
        let mut trees: BTreeMap<IndexId, TreeChange<'c>> = BTreeMap::new();
        for index in &change.dropped {
            trees.entry(*index).or_default().is_dropped = true;
        }
        for (index, root) in &change.roots {
            trees.entry(*index).or_default().root = Some(*root);
        }
        for (index, id) in &change.removed {
            trees.entry(*index).or_default().pages.insert(*id, None);
        }
        for (index, id, place) in &change.written {
            trees.entry(*index).or_default().pages.insert(*id, Some(place));
        }
        Sorted { trees }
    }

    /// Returns the keys of the map that change, and the approximate size of their records.
    pub fn keys(&self, map: &PageMap) -> (Keys, u64) {
        let (mut keys, mut bytes) = (Keys::default(), 0);
        for (index, change) in &self.trees {
            let former = map.trees.get(index);
            if change.is_dropped && former.is_some() {
                keys.dropped.insert(*index);
                bytes += 5;
            }
            let is_recorded = |root| change.is_dropped || former.is_none_or(|tree| tree.root != root);
            if change.root.is_some_and(is_recorded) || !change.pages.is_empty() {
                keys.trees.insert(*index, change.pages.keys().copied().collect());
                let values: usize = change.pages.values().flatten().map(|place| place.values.len()).sum();
                bytes += 21 + 27 * change.pages.len() as u64 + 12 * values as u64;
            }
        }
        (keys, bytes)
    }

    /// Returns root and number of entries of a tree after the change.
    fn tree(&self, map: &PageMap, index: IndexId) -> Option<(PageId, u64)> {
        let former = map.trees.get(&index);
        match self.trees.get(&index) {
            Some(change) => change.after(former),
            None => former.map(|tree| (tree.root, tree.entries)),
        }
    }

    /// Returns the location of a page after the change.
    fn place<'a>(&'a self, map: &'a PageMap, index: IndexId, id: PageId) -> Option<&'a Place> {
        let change = self.trees.get(&index);
        if let Some(place) = change.and_then(|change| change.pages.get(&id)) {
            return *place;
        }
        let former = map.trees.get(&index).filter(|_| change.is_none_or(|change| !change.is_dropped));
        former.and_then(|tree| tree.pages.get(&id))
    }

    fn indexes(&self, map: &PageMap) -> BTreeSet<IndexId> {
        map.trees.keys().chain(self.trees.keys()).copied().collect()
    }

    /// Returns up to `limit` page ids of a tree after `after`, from the map and from the change. Includes
    /// pages that the change removes.
    fn ids_after(&self, map: &PageMap, index: IndexId, after: Option<PageId>, limit: usize) -> Vec<PageId> {
        let range = (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        let of_map = map.trees.get(&index).into_iter().flat_map(|tree| tree.pages.range(range));
        let of_change = self.trees.get(&index).into_iter().flat_map(|tree| tree.pages.range(range));
        let mut ids: Vec<PageId> = of_map.map(|(id, _)| *id).take(limit).collect();
        ids.extend(of_change.map(|(id, _)| *id).take(limit));
        ids.sort_unstable();
        ids.dedup();
        ids.truncate(limit);
        debug_assert!(after.is_none_or(|after| ids.iter().all(|id| *id > after)), "a page is written twice");
        ids
    }
}

/// Writes levels part by part.
pub struct LevelWriter<'w> {
    out: Vec<u8>,
    part_bytes: usize,
    /// Receives each finished part.
    emit: &'w mut dyn FnMut(&[u8]) -> io::Result<()>,
}

/// Function that calls its argument with the map in force, under its lock.
pub type LookAtMap<'l> = &'l dyn Fn(&mut dyn FnMut(&PageMap));

impl<'w> LevelWriter<'w> {
    /// Creates a writer that passes finished parts to `emit`.
    pub fn new(emit: &'w mut dyn FnMut(&[u8]) -> io::Result<()>) -> LevelWriter<'w> {
        LevelWriter { out: Vec::new(), part_bytes: PART_BYTES, emit }
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            debug_assert!(
                matches!(self.out[0], DROPPED | TREE),
                "a page before its tree: no start reads this part"
            );
            (self.emit)(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }

    /// Writes the state of the keys after the change.
    pub fn changed(mut self, look: LookAtMap<'_>, change: &Sorted<'_>, keys: &Keys) -> io::Result<()> {
        for index in &keys.dropped {
            self.out.put_u8(DROPPED);
            self.out.put_u32(index.0);
        }
        for (index, pages) in &keys.trees {
            if !self.tree(look, change, *index) {
                continue;
            }
            let ids: Vec<PageId> = pages.iter().copied().collect();
            for ids in ids.chunks(LOOK_PAGES) {
                look(&mut |map| ids.iter().for_each(|id| self.page(*id, change.place(map, *index, *id))));
                self.part_ends(look, change, *index)?;
            }
        }
        self.flush()
    }

    /// Writes the whole map after the change.
    pub fn whole(mut self, look: LookAtMap<'_>, change: &Sorted<'_>) -> io::Result<()> {
        let mut indexes = BTreeSet::new();
        look(&mut |map| indexes = change.indexes(map));
        for index in indexes {
            if !self.tree(look, change, index) {
                continue;
            }
            let mut last = None;
            loop {
                let before = last;
                look(&mut |map| {
                    for id in change.ids_after(map, index, before, LOOK_PAGES) {
                        if let Some(place) = change.place(map, index, id) {
                            self.page(id, Some(place));
                        }
                        last = Some(id);
                    }
                });
                if last == before {
                    break;
                }
                self.part_ends(look, change, index)?;
            }
        }
        self.flush()
    }

    /// Writes the record of a tree. Returns false if the tree does not exist after the change.
    fn tree(&mut self, look: LookAtMap<'_>, change: &Sorted<'_>, index: IndexId) -> bool {
        let mut tree = None;
        look(&mut |map| tree = change.tree(map, index));
        if let Some((root, entries)) = tree {
            self.out.put_u8(TREE);
            self.out.put_u32(index.0);
            self.out.put_u64(root.0);
            self.out.put_u64(entries);
        }
        tree.is_some()
    }

    fn page(&mut self, id: PageId, place: Option<&Place>) {
        self.out.put_u8(if place.is_some() { PAGE } else { REMOVED });
        if let Some(place) = place {
            self.out.put_u32(place.since);
        }
        self.out.put_u64(id.0);
        if let Some(place) = place {
            debug_assert!(place.image.block >= FIRST_FREE_BLOCK, "an image in a superblock");
            debug_assert!(place.image.bytes > 0, "an image without bytes");
            debug_assert!(
                place.values.len() <= usize::from(u16::MAX),
                "the number of overflow values does not fit"
            );
            put_extent(&mut self.out, place.image);
            self.out.put_u16(place.values.len() as u16);
            place.values.iter().for_each(|value| put_extent(&mut self.out, *value));
        }
    }

    /// Ends a part that is large enough. The next part then begins with a record of the same tree.
    fn part_ends(&mut self, look: LookAtMap<'_>, change: &Sorted<'_>, index: IndexId) -> io::Result<()> {
        if self.out.len() < self.part_bytes {
            return Ok(());
        }
        self.flush()?;
        self.tree(look, change, index);
        Ok(())
    }
}

fn put_extent(out: &mut Vec<u8>, extent: Extent) {
    out.put_u64(extent.block);
    out.put_u32(extent.bytes);
}

fn extent(r: &mut Reader<'_>) -> Result<Extent, Truncated> {
    Ok(Extent { block: r.u64()?, bytes: r.u32()? })
}

fn place(r: &mut Reader<'_>) -> Result<Place, Truncated> {
    let mut place = Place { image: extent(r)?, ..Place::default() };
    for _ in 0..r.u16()? {
        place.values.push(extent(r)?);
    }
    Ok(place)
}

impl PageMap {
    fn places(&self) -> impl Iterator<Item = &Place> {
        self.trees.values().flat_map(|tree| tree.pages.values())
    }

    /// Returns the overflow values that the map refers to.
    pub fn values(&self) -> impl Iterator<Item = Extent> {
        self.places().flat_map(|place| place.values.iter().copied())
    }

    /// Returns the images and overflow values that the map refers to.
    pub fn extents(&self) -> impl Iterator<Item = Extent> {
        self.places().map(|place| place.image).chain(self.values())
    }

    /// Checks the conditions that a restart relies on beyond the format of the records: each page has one
    /// location and a number below the next one, and no two extents overlap, including the extents of the map
    /// itself (`parts`).
    pub fn check(&self, parts: impl Iterator<Item = Extent>) -> Result<(), String> {
        let mut pages = HashSet::new();
        for id in self.trees.values().flat_map(|tree| tree.pages.keys()) {
            if id.0 >= self.next_page || !pages.insert(*id) {
                let what = "is listed twice, or has a number that was never assigned";
                return Err(format!("the page map is damaged: page {} {what}", id.0));
            }
        }
        let mut used: Vec<Extent> = self.extents().chain(parts).collect();
        used.sort_unstable();
        let first = used.first().is_some_and(|extent| extent.block < FIRST_FREE_BLOCK);
        let twice =
            used.windows(2).find(|pair| pair[0].block.saturating_add(pair[0].blocks()) > pair[1].block);
        match used.first().filter(|_| first).or(twice.map(|pair| &pair[1])) {
            Some(extent) => Err(format!("the page map is damaged: block {} is in use twice", extent.block)),
            None => Ok(()),
        }
    }

    /// Applies the next part of a level and adds its keys to `keys`.
    pub fn read_part(&mut self, bytes: &[u8], keys: &mut Keys) -> Result<(), Truncated> {
        let (mut r, mut at) = (Reader::new(bytes), None);
        while !r.is_empty() {
            match (r.u8()?, at) {
                (DROPPED, _) => {
                    let index = IndexId(r.u32()?);
                    self.trees.remove(&index);
                    keys.dropped.insert(index);
                }
                (TREE, _) => {
                    let index = IndexId(r.u32()?);
                    let tree = self.trees.entry(index).or_default();
                    (tree.root, tree.entries) = (PageId(r.u64()?), r.u64()?);
                    keys.trees.entry(index).or_default();
                    at = Some(index);
                }
                (tag @ (REMOVED | PAGE_WITHOUT_GENERATION | PAGE), Some(index)) => {
                    let since = if tag == PAGE { r.u32()? } else { 0 };
                    let id = PageId(r.u64()?);
                    let tree = self.trees.get_mut(&index).expect("its record came before");
                    match tag {
                        REMOVED => drop(tree.pages.remove(&id)),
                        _ => drop(tree.pages.insert(id, Place { since, ..place(&mut r)? })),
                    }
                    keys.trees.get_mut(&index).expect("entered with its record").insert(id);
                }
                _ => return Err(Truncated),
            }
        }
        Ok(())
    }

    /// Applies a change. Returns the locations that the map does not contain any more, and the overflow
    /// values that are new in it.
    pub fn apply(&mut self, change: MapChange) -> (Vec<Place>, Vec<Extent>) {
        let (mut outdated, mut fresh) = (Vec::new(), Vec::new());
        self.lsn = change.lsn.unwrap_or(self.lsn);
        self.next_page = change.next_page.max(self.next_page);
        let mut more: BTreeMap<IndexId, i64> = BTreeMap::new();
        debug_assert!(
            change.written.iter().all(|(_, id, _)| id.0 < self.next_page),
            "a page with a number that a later page would get again"
        );
        debug_assert!(
            change.written.iter().map(|(_, id, _)| id).collect::<HashSet<_>>().len() == change.written.len(),
            "a page is written twice: one of its images is never freed"
        );
        for index in change.dropped {
            let tree = self.trees.remove(&index).unwrap_or_default();
            outdated.extend(tree.pages.into_values());
        }
        for (index, root) in change.roots {
            self.trees.entry(index).or_default().root = root;
        }
        for (index, id) in change.removed {
            let before = self.trees.get_mut(&index).and_then(|tree| tree.pages.remove(&id));
            *more.entry(index).or_default() += more_entries(before.as_ref(), None);
            outdated.extend(before);
        }
        for (index, id, place) in change.written {
            fresh.extend_from_slice(&place.values);
            let tree = self.trees.get_mut(&index).expect("every tree has a root");
            let more = more.entry(index).or_default();
            *more += more_entries(tree.pages.get(&id), Some(&place));
            outdated.extend(tree.pages.insert(id, place));
        }
        for (index, more) in more {
            if let Some(tree) = self.trees.get_mut(&index) {
                tree.entries = tree.entries.saturating_add_signed(more);
            }
        }
        (outdated, fresh)
    }
}

#[cfg(test)]
mod tests {
    use cohort_vfs::{Rng, SeededRng};

    use super::*;

    fn extent_of(n: u64) -> Extent {
        Extent { block: FIRST_FREE_BLOCK + n, bytes: 4096 }
    }

    /// Returns a random change of the map.
    fn some_change(rng: &SeededRng, map: &PageMap, next: &mut u64) -> MapChange {
        let mut change = MapChange::default();
        let index = IndexId(16 + rng.below(4) as u32);
        if rng.below(5) == 0 {
            change.dropped.push(index);
        }
        let former = map.trees.get(&index).filter(|_| change.dropped.is_empty());
        let root = former.map_or(PageId(*next), |tree| tree.root);
        if former.is_none() && rng.below(3) == 0 {
            return change;
        }
        change.roots.push((index, root));
        let place = |n: u64| {
            let values = (0..rng.below(3)).map(extent_of).collect();
            let since = rng.below(9) as u32;
            Place { image: extent_of(n), values, entries: Some(rng.below(1000) as u32), since }
        };
        change.written.push((index, root, place(*next)));
        for _ in 0..rng.below(30) {
            *next += 1;
            change.written.push((index, PageId(*next), place(*next)));
        }
        for (n, (id, _)) in former.into_iter().flat_map(|tree| &tree.pages).enumerate() {
            match rng.below(9) {
                0 if *id != root => change.removed.push((index, *id)),
                1 if *id != root => change.written.push((index, *id, place(n as u64))),
                _ => {}
            }
        }
        *next += 1;
        change.next_page = *next;
        change
    }

    #[test]
    fn the_levels_say_what_the_map_says() {
        for seed in 0..20 {
            let (rng, mut next) = (SeededRng::new(seed), 1);
            let mut map = PageMap::default();
            let mut levels: Vec<(Level, Vec<Vec<u8>>)> = Vec::new();
            for _ in 0..60 {
                let change = some_change(&rng, &map, &mut next);
                let sorted = Sorted::new(&change);
                let (mut keys, bytes) = sorted.keys(&map);
                let on_disk: Vec<Level> = levels.iter().map(|(level, _)| level.clone()).collect();
                let kept = levels_kept(&on_disk, bytes, 40);
                for (level, _) in levels.drain(kept..) {
                    keys.merge(level.keys);
                }
                let mut parts = Vec::new();
                let mut emit = |part: &[u8]| {
                    parts.push(part.to_vec());
                    Ok(())
                };
                let mut writer = LevelWriter::new(&mut emit);
                writer.part_bytes = 300;
                let look = |see: &mut dyn FnMut(&PageMap)| see(&map);
                let written = match kept {
                    0 => writer.whole(&look, &sorted),
                    _ => writer.changed(&look, &sorted, &keys),
                };
                written.expect("in memory");
                drop(sorted);
                map.apply(change);
                let named =
                    parts.iter().map(|part| (Extent { block: 0, bytes: part.len() as u32 }, 0)).collect();
                levels.push((Level { parts: named, keys }, parts));

                let mut read = PageMap { lsn: map.lsn, next_page: map.next_page, ..PageMap::default() };
                for (_, parts) in &levels {
                    let mut keys = Keys::default();
                    parts.iter().for_each(|part| read.read_part(part, &mut keys).expect("whole"));
                }
                for (index, tree) in &map.trees {
                    let entries = tree.pages.values().map(|place| u64::from(place.entries.unwrap_or(0)));
                    assert_eq!(entries.sum::<u64>(), tree.entries, "seed {seed}, {index:?}");
                }
                // The number of entries of a single page is kept in memory only.
                let mut expected = map.clone();
                let places = expected.trees.values_mut().flat_map(|tree| tree.pages.values_mut());
                places.for_each(|place| place.entries = None);
                assert_eq!(read, expected, "seed {seed}");
            }
            assert!(levels.len() < 12, "{} levels", levels.len());
        }
    }

    #[test]
    fn a_page_without_a_generation_is_older_than_every_backup() {
        let mut part = vec![TREE];
        part.put_u32(17);
        part.put_u64(5);
        part.put_u64(1);
        part.put_u8(PAGE_WITHOUT_GENERATION);
        part.put_u64(5);
        put_extent(&mut part, extent_of(3));
        part.put_u16(0);
        let mut map = PageMap::default();
        map.read_part(&part, &mut Keys::default()).expect("whole");
        let place = &map.trees[&IndexId(17)].pages[&PageId(5)];
        assert_eq!((place.image, place.since), (extent_of(3), 0));
    }
}
