//! Pins of a backup: the images of one checkpoint stay in the data file until they are copied.
//!
//! # Concepts
//! - A pin ([`StorePin`]) is the superblock that was in force, and the set of all blocks that its page map
//!   refers to. Extents of these blocks that are freed later are held (`space.rs`), so nothing is written
//!   over them. Images that later checkpoints write are not pinned: the space that a pin holds is at most
//!   that of the state it pins, however long it lasts.
//! - A *loaded tree* was put into the map by a bulk load since the pin (`bulk.rs`). The log does not contain
//!   its entries, so the copy needs it as well. It is copied as the map has it at the cut, and a level of the
//!   page map that drops the tree and adds it again is appended to the levels of the pin.
//!
//! # The file of the copy
//! ```text
//! block 0, 1   the superblock: that of the pin, or one more generation if there are loaded trees
//! then         the pinned blocks, at their addresses; the loaded trees, at theirs; zeros between them
//! at the end   the parts of the additional level
//! ```
//! The two sets of blocks have no block in common: what was written since the pin was not allocated from
//! pinned blocks.
//!
//! # Invariants
//! - The map does not change while a pin is made or its loaded trees are determined: the caller holds
//!   `publishing`. For loaded trees, no checkpoint has run since the cut either. So no image of the copy has
//!   anything of a transaction after the cut.
//! - Page numbers are never used twice, so a loaded tree has no page in common with another tree of the pin.
//!
//! # On failure
//! Dropping a pin at any moment frees what it held. Nothing of it is on disk: a restart knows no pins.

use std::ops::Range;
use std::sync::Arc;

use cohort_engine::{EngineError, PinnedBytes, PinnedFile, PinnedFiles};
use cohort_vfs::File as _;

use crate::inner::Inner;
use crate::map::Level;
use crate::space::{BLOCK_BYTES, Extent};
use crate::store::Store;
use crate::superblock::{PARTS_MAX, Superblock};

/// A set of blocks of the data file: one bit for each.
#[derive(Debug, Default)]
pub struct BlockSet {
    words: Vec<u64>,
}

const WORD_BLOCKS: u64 = u64::BITS as u64;

impl BlockSet {
    /// Adds the blocks of an extent.
    pub fn add(&mut self, extent: Extent) {
        let end = extent.block + extent.blocks();
        let words = end.div_ceil(WORD_BLOCKS) as usize;
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
        for block in extent.block..end {
            self.words[(block / WORD_BLOCKS) as usize] |= 1 << (block % WORD_BLOCKS);
        }
    }

    /// Returns whether the set has the blocks of an extent, of which it has all or none.
    pub fn has(&self, extent: Extent) -> bool {
        self.has_block(extent.block)
    }

    fn has_block(&self, block: u64) -> bool {
        let word = self.words.get((block / WORD_BLOCKS) as usize);
        word.is_some_and(|word| word >> (block % WORD_BLOCKS) & 1 == 1)
    }

    /// Returns the number of blocks.
    fn len(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns the block after the last one that may be in the set.
    pub fn end(&self) -> u64 {
        self.words.len() as u64 * WORD_BLOCKS
    }

    /// Returns the first run of blocks at or after a block.
    fn run_from(&self, mut block: u64) -> Option<Range<u64>> {
        loop {
            let word = self.words.get((block / WORD_BLOCKS) as usize)? >> (block % WORD_BLOCKS);
            if word != 0 {
                block += u64::from(word.trailing_zeros());
                break;
            }
            block = (block / WORD_BLOCKS + 1) * WORD_BLOCKS;
        }
        let mut end = block;
        while self.has_block(end) {
            end += 1;
        }
        Some(block..end)
    }

    /// Returns the byte ranges of all runs, ascending.
    fn byte_ranges(self: Arc<Self>) -> impl Iterator<Item = Range<u64>> + Send {
        let mut from = 0;
        std::iter::from_fn(move || {
            let run = self.run_from(from)?;
            from = run.end;
            Some(run.start * BLOCK_BYTES..run.end * BLOCK_BYTES)
        })
    }
}

/// A pinned state of the data file.
pub struct StorePin {
    pub store: Arc<Store>,
    /// Numbers of its pins in the free space: that of the state, and later that of the loaded trees.
    pub numbers: Vec<u64>,
    pub superblock: Superblock,
    pub blocks: Arc<BlockSet>,
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

/// What a backup copies of the engine.
pub struct BtreePin {
    inner: Arc<Inner>,
    pin: StorePin,
}

impl BtreePin {
    /// Pins the map in force. The caller holds `publishing`.
    pub fn new(inner: Arc<Inner>) -> BtreePin {
        let pin = inner.store.pin();
        BtreePin { inner, pin }
    }

    fn file(&self, bytes: PinnedBytes) -> PinnedFile {
        PinnedFile { path: self.inner.store.path().to_path_buf(), bytes }
    }

    fn blocks(&self, blocks: &Arc<BlockSet>) -> PinnedFile {
        let store = Arc::clone(&self.inner.store);
        let read = Box::new(move |buf: &mut [u8], offset| store.file().read_at(buf, offset));
        let (ranges, total) = (Box::new(Arc::clone(blocks).byte_ranges()), blocks.len() * BLOCK_BYTES);
        self.file(PinnedBytes::Ranges { read, ranges, total })
    }
}

impl PinnedFiles for BtreePin {
    fn files(&mut self) -> Vec<PinnedFile> {
        vec![self.blocks(&self.pin.blocks)]
    }

    fn rest(&mut self) -> Result<Vec<PinnedFile>, EngineError> {
        let loaded = {
            let _alone = self.inner.publishing.lock();
            self.inner.store.pin_loaded(&mut self.pin).map_err(EngineError::Io)?
        };
        let mut files = vec![self.blocks(&loaded.blocks)];
        let mut superblock = self.pin.superblock.clone();
        if !loaded.parts.is_empty() {
            let named: usize = superblock.levels.iter().map(|level| level.parts.len()).sum();
            if named + loaded.parts.len() > PARTS_MAX {
                let what = "the page map of the backup is larger than a superblock can name";
                return Err(EngineError::Corrupt(what.to_owned()));
            }
            superblock.generation += 1;
            superblock.next_page = superblock.next_page.max(loaded.next_page);
            let mut block = self.pin.blocks.end().max(loaded.blocks.end());
            let mut level = Level::default();
            for bytes in loaded.parts {
                let part = Extent { block, bytes: bytes.len() as u32 };
                block += part.blocks();
                level.parts.push((part, crc32c::crc32c(&bytes)));
                files.push(self.file(PinnedBytes::Memory { offset: part.offset(), bytes }));
            }
            superblock.levels.push(level);
        }
        let mut copies = superblock.encode();
        copies.resize(BLOCK_BYTES as usize, 0);
        copies.extend_from_within(..);
        files.push(self.file(PinnedBytes::Memory { offset: 0, bytes: copies }));
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_those_of_the_blocks() {
        let mut set = BlockSet::default();
        let extents = [(2, 1), (3, 4096), (5, 4097), (60, 40_000), (128, 1), (190, 1), (191, 1), (193, 9000)];
        extents.iter().for_each(|(block, bytes)| set.add(Extent { block: *block, bytes: *bytes }));
        let runs: Vec<_> = Arc::new(set).byte_ranges().map(|r| r.start / 4096..r.end / 4096).collect();
        assert_eq!(runs, [2..4, 5..7, 60..70, 128..129, 190..192, 193..196]);
        assert_eq!(Arc::new(BlockSet::default()).byte_ranges().count(), 0);
    }
}
