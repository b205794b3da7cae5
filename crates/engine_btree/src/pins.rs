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
//! # Incremental copies
//! Each location in the page map has the generation of the first superblock that had it ([`Place::since`]).
//! The mark of a pin is the generation of its superblock. A location that is not younger than the mark of an
//! earlier pin was in the map of that pin, at the same address: an image in the map is never written over. So
//! a copy that continues that of the earlier pin needs the younger pages only, each with all its overflow
//! values, the page map and the superblock. Addresses alone do not show that: a block may have been freed and
//! written again. All blocks of the state are pinned nevertheless, so that loaded trees are in none of them.
//! The loaded trees of the earlier copy are younger than its mark, and are copied again.
//!
//! # The file of the copy
//! ```text
//! block 0, 1   the superblock: that of the pin, or one more generation if there are loaded trees
//! then         the pinned blocks, at their addresses; the loaded trees, at theirs; zeros between them
//! at the end   the parts of the additional level; after all blocks of the pin, copied or not
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

use std::path::PathBuf;
use std::sync::Arc;

use cohort_engine::{EngineError, PinnedBytes, PinnedFile, PinnedFiles};

use crate::block_set::BlockSet;
use crate::inner::Inner;
use crate::map::Level;
use crate::space::{BLOCK_BYTES, Extent};
use crate::store::StorePin;
use crate::superblock::PARTS_MAX;

/// The pin of the engine's data file.
pub struct BtreePin {
    inner: Arc<Inner>,
    pin: StorePin,
    is_incremental: bool,
    /// End of the file that the superblock of the copy refers to.
    end: u64,
}

impl BtreePin {
    /// Pins the map in force, for a copy of what is younger than the mark `since`, or of everything. The
    /// caller holds `publishing`.
    pub fn new(inner: Arc<Inner>, since: Option<u64>) -> BtreePin {
        let pin = inner.store.pin(since);
        let end = pin.blocks.end() * BLOCK_BYTES;
        BtreePin { inner, pin, is_incremental: since.is_some(), end }
    }

    fn file(&self, bytes: PinnedBytes) -> PinnedFile {
        PinnedFile { path: self.inner.store.path().to_path_buf(), bytes }
    }

    fn blocks(&self, blocks: &Arc<BlockSet>) -> PinnedFile {
        let store = Arc::clone(&self.inner.store);
        let read = Box::new(move |buf: &mut [u8], offset| store.read_pinned(buf, offset));
        let (ranges, total) =
            (Box::new(Arc::clone(blocks).byte_ranges(BLOCK_BYTES)), blocks.len() * BLOCK_BYTES);
        self.file(PinnedBytes::Ranges { read, ranges, total })
    }
}

impl PinnedFiles for BtreePin {
    fn files(&mut self) -> Vec<PinnedFile> {
        vec![self.blocks(&self.pin.copied)]
    }

    fn mark(&self) -> Option<u64> {
        Some(self.pin.superblock.generation)
    }

    fn partial(&self) -> Option<(PathBuf, u64)> {
        self.is_incremental.then(|| (self.inner.store.path().to_path_buf(), self.end))
    }

    fn rest(&mut self) -> Result<Vec<PinnedFile>, EngineError> {
        let loaded = {
            let _alone = self.inner.publishing.lock();
            self.inner.store.pin_loaded(&mut self.pin).map_err(EngineError::Io)?
        };
        self.end = self.end.max(loaded.blocks.end() * BLOCK_BYTES);
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
            self.end = self.end.max(block * BLOCK_BYTES);
            superblock.levels.push(level);
        }
        let mut copies = superblock.encode();
        copies.resize(BLOCK_BYTES as usize, 0);
        copies.extend_from_within(..);
        files.push(self.file(PinnedBytes::Memory { offset: 0, bytes: copies }));
        Ok(files)
    }
}
