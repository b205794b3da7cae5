//! The data file's blocks: which are free.
//!
//! Space is given in extents of whole blocks: the shortest free run that is long enough, of those the
//! first in the file, so that the file's end becomes free and can be cut off. Nothing here is durable: at
//! a start everything that the page map does not name is free.

use std::collections::{BTreeMap, BTreeSet};

/// Unit of space in the data file.
pub const BLOCK_BYTES: u64 = 4096;
/// The superblock's two copies.
pub const FIRST_FREE_BLOCK: u64 = 2;

/// Where an image or a long value lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// First block.
    pub block: u64,
    /// Bytes in use, from the first block's start.
    pub bytes: u32,
}

impl Extent {
    /// Blocks that it takes.
    pub fn blocks(&self) -> u64 {
        u64::from(self.bytes).div_ceil(BLOCK_BYTES).max(1)
    }

    /// Where it begins in the file.
    pub fn offset(&self) -> u64 {
        self.block * BLOCK_BYTES
    }

    /// Where its bytes end in the file; `None`: in no file.
    pub fn end_byte(&self) -> Option<u64> {
        self.block.checked_mul(BLOCK_BYTES)?.checked_add(u64::from(self.bytes))
    }
}

/// Free blocks. One lock guards it, which is held for no I/O.
#[derive(Debug)]
pub struct Space {
    /// First block -> number of blocks; neighbours are joined.
    free: BTreeMap<u64, u64>,
    /// The same runs as (number of blocks, first block).
    by_len: BTreeSet<(u64, u64)>,
    free_blocks: u64,
    /// Blocks from here on have never been used, or are free again.
    end: u64,
}

impl Space {
    /// All blocks but those of the extents are free.
    pub fn new(used: impl IntoIterator<Item = Extent>) -> Space {
        let mut used: Vec<(u64, u64)> = used.into_iter().map(|e| (e.block, e.blocks())).collect();
        used.sort_unstable();
        let mut space =
            Space { free: BTreeMap::new(), by_len: BTreeSet::new(), free_blocks: 0, end: FIRST_FREE_BLOCK };
        for (block, blocks) in used {
            if block > space.end {
                space.put_run(space.end, block - space.end);
            }
            space.end = space.end.max(block + blocks);
        }
        space
    }

    fn put_run(&mut self, at: u64, len: u64) {
        self.free.insert(at, len);
        self.by_len.insert((len, at));
        self.free_blocks += len;
    }

    fn take_run(&mut self, at: u64, len: u64) {
        self.free.remove(&at);
        self.by_len.remove(&(len, at));
        self.free_blocks -= len;
    }

    /// Takes an extent.
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
        extent
    }

    /// Gives one back.
    pub fn free(&mut self, extent: Extent) {
        let (mut at, mut len) = (extent.block, extent.blocks());
        assert!(at >= FIRST_FREE_BLOCK && at + len <= self.end, "{extent:?} was given out");
        if let Some((before, before_len)) = self.free.range(..at).next_back().map(|(a, l)| (*a, *l)) {
            assert!(before + before_len <= at, "{extent:?} is freed once");
            if before + before_len == at {
                self.take_run(before, before_len);
                (at, len) = (before, before_len + len);
            }
        }
        if let Some((behind, behind_len)) = self.free.range(at..).next().map(|(a, l)| (*a, *l)) {
            assert!(at + len <= behind, "{extent:?} is freed once");
            if at + len == behind {
                self.take_run(behind, behind_len);
                len += behind_len;
            }
        }
        if at + len == self.end {
            self.end = at;
        } else {
            self.put_run(at, len);
        }
    }

    /// What is free before the end, as extents. A run longer than an extent can be is told by its beginning.
    pub fn free_runs(&self) -> Vec<Extent> {
        let bytes = |len: u64| u32::try_from(len * BLOCK_BYTES).unwrap_or(u32::MAX);
        self.free.iter().map(|(block, len)| Extent { block: *block, bytes: bytes(*len) }).collect()
    }

    /// Blocks of the file that are in use or lie before such.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Blocks before the end that are free.
    pub fn free_blocks(&self) -> u64 {
        self.free_blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
