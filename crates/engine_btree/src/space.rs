//! Free-space management of the data file.
//!
//! Space is allocated in extents of whole blocks. The allocator takes the shortest free run that is long
//! enough, and among equal ones the first in the file, so that the file's end becomes free and can be cut
//! off. Nothing here is durable: at a start, everything that the page map does not refer to is free.
//!
//! A backup pins blocks ([`Space::pin`]). An extent of pinned blocks that is freed is *held*: its space is
//! not allocated again before the last pin of it is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::block_set::BlockSet;

/// Unit of allocation in the data file.
pub const BLOCK_BYTES: u64 = 4096;
/// First block after the superblock's two copies.
pub const FIRST_FREE_BLOCK: u64 = 2;

/// Number of free runs up to which all of them are checked.
const CHECKED_RUNS_MAX: usize = 64;

/// Location of an image or an overflow value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// Number of the first block.
    pub block: u64,
    /// Bytes in use, from the start of the first block.
    pub bytes: u32,
}

impl Extent {
    /// Returns the number of blocks.
    pub fn blocks(&self) -> u64 {
        u64::from(self.bytes).div_ceil(BLOCK_BYTES).max(1)
    }

    /// Returns its blocks.
    pub fn block_range(&self) -> std::ops::Range<u64> {
        self.block..self.block + self.blocks()
    }

    /// Returns the offset in the file.
    pub fn offset(&self) -> u64 {
        self.block * BLOCK_BYTES
    }

    /// Returns the offset of the end of its bytes, or `None` if that is beyond the largest offset.
    pub fn end_byte(&self) -> Option<u64> {
        self.block.checked_mul(BLOCK_BYTES)?.checked_add(u64::from(self.bytes))
    }
}

/// Free blocks. Protected by a lock that is held during no I/O.
#[derive(Debug)]
pub struct Space {
    /// Free runs: first block -> number of blocks. Adjacent runs are joined.
    free: BTreeMap<u64, u64>,
    /// Free runs by length, as (number of blocks, first block).
    by_len: BTreeSet<(u64, u64)>,
    free_blocks: u64,
    /// All blocks from here on are unused.
    end: u64,
    /// Pinned blocks, by the number of the pin.
    pins: BTreeMap<u64, Arc<BlockSet>>,
    next_pin: u64,
    /// Extents that were freed while they were pinned.
    held: Vec<Extent>,
}

impl Space {
    /// Creates the state in which all blocks except those of the extents are free.
    pub fn new(used: impl IntoIterator<Item = Extent>) -> Space {
        let mut used: Vec<(u64, u64)> = used.into_iter().map(|e| (e.block, e.blocks())).collect();
        used.sort_unstable();
        let mut space = Space {
            free: BTreeMap::new(),
            by_len: BTreeSet::new(),
            free_blocks: 0,
            end: FIRST_FREE_BLOCK,
            pins: BTreeMap::new(),
            next_pin: 0,
            held: Vec::new(),
        };
        for (block, blocks) in used {
            if block > space.end {
                space.put_run(space.end, block - space.end);
            }
            space.end = space.end.max(block + blocks);
        }
        space.check_invariants();
        space
    }

    /// Checks the invariants in builds with debug assertions, as far as there are few free runs.
    fn check_invariants(&self) {
        if !cfg!(debug_assertions) || self.free.len() > CHECKED_RUNS_MAX {
            return;
        }
        debug_assert_eq!(self.by_len.len(), self.free.len(), "a free run is in one of the lists only");
        debug_assert!(
            self.free.iter().all(|(at, len)| self.by_len.contains(&(*len, *at))),
            "a free run is listed with another length"
        );
        debug_assert_eq!(self.free.values().sum::<u64>(), self.free_blocks, "free blocks are counted wrong");
        debug_assert!(
            self.free.iter().zip(self.free.keys().skip(1)).all(|((at, len), next)| at + len < *next),
            "free runs overlap, or adjacent ones are not joined"
        );
        debug_assert!(
            self.free.first_key_value().is_none_or(|(at, _)| *at >= FIRST_FREE_BLOCK),
            "a superblock is free"
        );
        debug_assert!(
            self.free.last_key_value().is_none_or(|(at, len)| at + len < self.end),
            "the end of the file is free, and not cut off"
        );
    }

    fn put_run(&mut self, at: u64, len: u64) {
        debug_assert!(len > 0, "a free run without blocks");
        let other = self.free.insert(at, len);
        debug_assert!(other.is_none(), "two free runs begin at block {at}");
        self.by_len.insert((len, at));
        self.free_blocks += len;
    }

    fn take_run(&mut self, at: u64, len: u64) {
        let was = self.free.remove(&at);
        debug_assert_eq!(was, Some(len), "a run that is not free is taken: block {at}");
        let was_listed = self.by_len.remove(&(len, at));
        debug_assert!(was_listed, "a free run is missing in the list by length");
        self.free_blocks -= len;
    }

    /// Allocates an extent.
    pub fn allot(&mut self, bytes: u32) -> Extent {
        let mut extent = Extent { block: self.end, bytes };
        let blocks = extent.blocks();
        match self.by_len.range((blocks, 0)..).next().copied() {
            Some((len, at)) => {
                self.take_run(at, len);
                if len > blocks {
                    self.put_run(at + blocks, len - blocks);
                }
                extent.block = at;
            }
            None => self.end += blocks,
        }
        debug_assert!(extent.block >= FIRST_FREE_BLOCK, "a superblock would be overwritten");
        debug_assert!(extent.block + blocks <= self.end, "an extent beyond the end of the used part");
        debug_assert!(
            self.free
                .range(..extent.block + blocks)
                .next_back()
                .is_none_or(|(at, len)| at + len <= extent.block),
            "an allocated extent is free"
        );
        self.check_invariants();
        extent
    }

    /// Pins allocated blocks: from now on, extents of them are held when they are freed. Returns the number
    /// of the pin.
    pub fn pin(&mut self, blocks: Arc<BlockSet>) -> u64 {
        self.next_pin += 1;
        self.pins.insert(self.next_pin, blocks);
        self.next_pin
    }

    /// Ends a pin, and frees the extents that were held only for it.
    pub fn unpin(&mut self, pin: u64) {
        self.pins.remove(&pin);
        let held = std::mem::take(&mut self.held);
        held.into_iter().for_each(|extent| self.free(extent));
    }

    /// Returns the bytes of held extents.
    pub fn held_bytes(&self) -> u64 {
        self.held.iter().map(|extent| extent.blocks() * BLOCK_BYTES).sum()
    }

    /// Returns the extents that are held for pins.
    pub fn held(&self) -> &[Extent] {
        &self.held
    }

    /// Frees an extent. If it is pinned, it is held until it is not.
    pub fn free(&mut self, extent: Extent) {
        match self.pins.values().any(|pin| pin.has(extent.block)) {
            true => self.held.push(extent),
            false => self.free_now(extent),
        }
    }

    fn free_now(&mut self, extent: Extent) {
        let (mut at, mut len) = (extent.block, extent.blocks());
        assert!(at >= FIRST_FREE_BLOCK && at + len <= self.end, "{extent:?} was given out");
        if let Some((before, before_len)) = self.free.range(..at).next_back().map(|(a, l)| (*a, *l)) {
            assert!(before + before_len <= at, "{extent:?} is freed once");
            if before + before_len == at {
                self.take_run(before, before_len);
                (at, len) = (before, before_len + len);
            }
        }
        if let Some((next, next_len)) = self.free.range(at..).next().map(|(a, l)| (*a, *l)) {
            assert!(at + len <= next, "{extent:?} is freed once");
            if at + len == next {
                self.take_run(next, next_len);
                len += next_len;
            }
        }
        if at + len == self.end {
            self.end = at;
        } else {
            self.put_run(at, len);
        }
        debug_assert!(self.end >= FIRST_FREE_BLOCK, "the used part ends inside of the superblocks");
        self.check_invariants();
    }

    /// Returns the free runs before the end as extents. A run longer than an extent can be is returned with
    /// the maximum length.
    pub fn free_runs(&self) -> Vec<Extent> {
        let bytes = |len: u64| u32::try_from(len * BLOCK_BYTES).unwrap_or(u32::MAX);
        self.free.iter().map(|(block, len)| Extent { block: *block, bytes: bytes(*len) }).collect()
    }

    /// Returns the end of the used part of the file, in blocks.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the number of free blocks before the end.
    pub fn free_blocks(&self) -> u64 {
        self.free_blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_extent_is_allocated_again_after_its_last_pin() {
        let one = |block| Extent { block, bytes: 4096 };
        let mut space = Space::new([one(2), one(3), one(4)]);
        let mut blocks = BlockSet::default();
        blocks.add(3..4);
        let blocks = Arc::new(blocks);
        let pins = [space.pin(Arc::clone(&blocks)), space.pin(blocks)];
        space.free(one(3));
        space.free(one(2));
        assert_eq!((space.held_bytes(), space.free_blocks()), (4096, 1));
        assert_eq!([space.allot(1).block, space.allot(1).block], [2, 5], "block 3 is pinned");
        space.unpin(pins[0]);
        assert_eq!(space.allot(1).block, 6, "block 3 is pinned by the other one");
        space.unpin(pins[1]);
        assert_eq!((space.held_bytes(), space.allot(1).block), (0, 3));
    }

    #[test]
    fn freed_neighbours_are_joined_and_the_end_moves_back() {
        let mut space = Space::new([Extent { block: 5, bytes: 4097 }]);
        assert_eq!(space.allot(1), Extent { block: 2, bytes: 1 });
        assert_eq!(space.allot(3 * 4096), Extent { block: 7, bytes: 3 * 4096 });
        assert_eq!(space.allot(8192), Extent { block: 3, bytes: 8192 });
        assert_eq!((space.end(), space.free_blocks()), (10, 0));
        space.free(Extent { block: 2, bytes: 1 });
        space.free(Extent { block: 5, bytes: 4097 });
        space.free(Extent { block: 3, bytes: 8192 });
        assert_eq!(space.free_blocks(), 5);
        space.free(Extent { block: 7, bytes: 3 * 4096 });
        assert_eq!((space.end(), space.free_blocks()), (2, 0));
    }
}
