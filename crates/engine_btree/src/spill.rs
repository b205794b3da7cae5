//! The undo file `btree.undo`: undo beyond the memory limit.
//!
//! The file is created by the first spill. A restart does not need it: it is never synced, and a start
//! removes it. Chunks of undo are stored in extents of whole blocks. The checksum of each block is kept in
//! memory, so that damage is detected and not read as an old version.
//!
//! Recently read blocks are cached ([`Recent`]): if an open transaction has changed neighbouring rows in
//! order, a reader finds dozens of their old versions in one block.
//!
//! # On failure
//! If a write fails, the chunks stay in memory and the blocks are freed. If a read fails, the statement or
//! checkpoint that needs the version gets the error. Damage that purge meets stops the server (`inner.rs`).

use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use cohort_engine::EngineError;
use cohort_vfs::{OpenMode, SharedFile, SharedFs};

use crate::space::{BLOCK_BYTES, Extent, FIRST_FREE_BLOCK, Space};
use crate::sync::{AtomicU64, Mutex, Ordering};

const FILE: &str = "btree.undo";
const BLOCK: usize = BLOCK_BYTES as usize;
/// Number of blocks in the cache.
const RECENT: usize = 64;

/// Cache of recently read blocks. A block's slot is determined by its number.
#[derive(Debug, Default)]
struct Recent(Mutex<Vec<Option<RecentBlock>>>);

#[derive(Clone, Debug)]
struct RecentBlock {
    /// Number of the extent, unique among all extents ever written, and the block's position in it.
    id: (u64, usize),
    bytes: Arc<[u8]>,
}

impl Recent {
    fn place((extent, n): (u64, usize)) -> usize {
        (extent as usize).wrapping_mul(31).wrapping_add(n) % RECENT
    }

    fn get(&self, id: (u64, usize)) -> Option<Arc<[u8]>> {
        let places = self.0.lock();
        let found = places.get(Recent::place(id))?.as_ref().filter(|block| block.id == id)?;
        Some(found.bytes.clone())
    }

    fn put(&self, id: (u64, usize), bytes: Arc<[u8]>) {
        let mut places = self.0.lock();
        places.resize(RECENT, None);
        places[Recent::place(id)] = Some(RecentBlock { id, bytes });
    }
}

/// Bytes of an extent from some offset on.
#[derive(Debug)]
pub struct SpilledBytes {
    bytes: Arc<[u8]>,
    from: usize,
}

impl Deref for SpilledBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.from..]
    }
}

/// The file and its free blocks.
pub struct UndoFile {
    fs: SharedFs,
    path: PathBuf,
    file: OnceLock<SharedFile>,
    space: Mutex<Space>,
    /// Number of reads so far.
    reads: AtomicU64,
    /// Number of extents written so far.
    extents: AtomicU64,
    recent: Recent,
}

impl std::fmt::Debug for UndoFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UndoFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Chunks in the file. The blocks are freed when the last reference is dropped.
#[derive(Debug)]
pub struct SpilledExtent {
    of: Arc<UndoFile>,
    /// Number of the extent, unique among all extents ever written.
    number: u64,
    extent: Extent,
    /// CRC-32C of each block.
    checksums: Box<[u32]>,
}

impl UndoFile {
    /// Removes the file of an earlier run.
    pub fn open(fs: &SharedFs, dir: &Path) -> Result<Arc<UndoFile>, EngineError> {
        let path = dir.join(FILE);
        if fs.exists(&path) {
            fs.remove(&path).map_err(EngineError::Io)?;
        }
        let space = Mutex::new(Space::new([]));
        Ok(Arc::new(UndoFile {
            fs: fs.clone(),
            path,
            file: OnceLock::new(),
            space,
            reads: AtomicU64::new(0),
            extents: AtomicU64::new(0),
            recent: Recent::default(),
        }))
    }

    fn file(&self) -> io::Result<&SharedFile> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        // Two threads that race here open the same file.
        let file = self.fs.open(&self.path, OpenMode::CreateOrOpen)?;
        Ok(self.file.get_or_init(|| file))
    }

    /// Writes bytes to a new extent.
    pub fn write(self: &Arc<Self>, bytes: &[u8]) -> Result<Arc<SpilledExtent>, EngineError> {
        let checksums = bytes.chunks(BLOCK).map(crc32c::crc32c).collect();
        let len = u32::try_from(bytes.len()).expect("callers cut what they spill");
        debug_assert!(len > 0, "an extent of the undo file without undo");
        let extent = self.space.lock().allot(len);
        // From here on, dropping the extent frees its blocks, even if the write fails.
        let number = self.extents.fetch_add(1, Ordering::Relaxed);
        let spilled = SpilledExtent { of: self.clone(), number, extent, checksums };
        self.file().and_then(|file| file.write_at(bytes, extent.offset())).map_err(EngineError::Io)?;
        Ok(Arc::new(spilled))
    }

    /// Returns the number of reads.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Returns the bytes of the file up to its last used block, including free blocks.
    pub fn bytes(&self) -> u64 {
        (self.space.lock().end() - FIRST_FREE_BLOCK) * BLOCK_BYTES
    }
}

impl SpilledExtent {
    /// Returns at least `len` bytes from `from` on, up to the end of their last block. Blocks are verified
    /// when they are read from the file.
    pub fn read(&self, from: usize, len: usize) -> Result<SpilledBytes, EngineError> {
        debug_assert!(from + len <= self.extent.bytes as usize, "undo beyond the end of its extent");
        let (first, last) = (from / BLOCK, (from + len.max(1) - 1) / BLOCK);
        let kept = (first == last).then(|| self.of.recent.get((self.number, first))).flatten();
        let bytes = match kept {
            Some(kept) => kept,
            None => {
                let bytes: Arc<[u8]> = self.read_blocks(first, last)?.into();
                let block = match first == last {
                    true => bytes.clone(),
                    // Cache the second block: it holds the following records as well.
                    false => bytes[(last - first) * BLOCK..].into(),
                };
                self.of.recent.put((self.number, last), block);
                bytes
            }
        };
        Ok(SpilledBytes { bytes, from: from - first * BLOCK })
    }

    /// Returns all bytes of a range. Does not replace cached blocks.
    pub fn read_all(&self, from: usize, len: usize) -> Result<Vec<u8>, EngineError> {
        let first = from / BLOCK;
        let mut bytes = self.read_blocks(first, (from + len.max(1) - 1) / BLOCK)?;
        bytes.drain(..from - first * BLOCK);
        Ok(bytes)
    }

    fn read_blocks(&self, first: usize, last: usize) -> Result<Vec<u8>, EngineError> {
        let end = ((last + 1) * BLOCK).min(self.extent.bytes as usize);
        let mut bytes = vec![0; end - first * BLOCK];
        self.of.reads.fetch_add(1, Ordering::Relaxed);
        let file = self.of.file().map_err(EngineError::Io)?;
        let offset = self.extent.offset() + (first * BLOCK) as u64;
        file.read_at(&mut bytes, offset).map_err(EngineError::Io)?;
        for (n, block) in bytes.chunks(BLOCK).enumerate() {
            if crc32c::crc32c(block) != self.checksums[first + n] {
                let at = self.extent.block + (first + n) as u64;
                return Err(EngineError::Corrupt(format!(
                    "{}: block {at} holds damaged old row versions; a restart does without them",
                    self.of.path.display()
                )));
            }
        }
        Ok(bytes)
    }
}

impl Drop for SpilledExtent {
    fn drop(&mut self) {
        let mut space = self.of.space.lock();
        let before = space.end();
        space.free(self.extent);
        let end = space.end();
        if end < before
            && let Some(file) = self.of.file.get()
        {
            // If the file cannot be cut, it only uses more disk space.
            let _ = file.set_len(end * BLOCK_BYTES);
        }
    }
}
