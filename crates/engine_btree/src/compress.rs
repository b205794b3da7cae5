//! Compressed images: pages and long values of tables with `ROW_FORMAT=COMPRESSED` or `PAGE_COMPRESSED=1`.
//!
//! # Purpose
//! An image is written to a place of its own each time, so a compressed one simply takes fewer blocks. Pages
//! in memory are never compressed, and neither log nor undo knows of it.
//!
//! # On disk
//! ```text
//! image   0   4  CRC-32C of the rest
//!         4   1  255: it is compressed (`page.rs` has the level here, which is far below)
//!         5   1  1: deflate (RFC 1951)
//!         6   2  -
//!         8   4  0, a key space that no page has: a server that cannot read it takes it for another page
//!         12  4  bytes of the plain image
//!         16     the plain image as `page.rs` draws it, its own checksum included
//!
//! value   u32 length of the plain value | the value, deflated
//! ```
//! Whether a value is compressed says the entry that names it (`value.rs`). Each image says for itself what
//! form it has, so the pages of a table may be of both kinds: a change of the form needs no other write than
//! those that come anyway, and files from before are read as they are.
//!
//! # Granularity
//! An image takes whole blocks of 4 KiB. One that saves no block is written plain ([`Compression::image`]
//! tries into a buffer of one block less). `KEY_BLOCK_SIZE` therefore decides nothing.
//!
//! # Who says it
//! The catalog does: the server tells the form of every key space at a start ([`Compression::set_form`]),
//! and of new ones before they are filled. Until then, which is while recovery replays, pages are written
//! plain.
//!
//! # Where it runs
//! A page is compressed by who writes it: a checkpoint without a latch, an eviction with the page latched
//! that nobody uses. It is expanded by who reads it, into a frame that nobody else has. Compressors are
//! kept, at most [`KEPT_MAX`] of about 300 KiB.
//!
//! # On failure
//! A torn or rotten image fails the checksum over the compressed bytes before they are expanded, and one that
//! does not expand to what its head says is refused in the same way: with file, block and cure. CHECK TABLE
//! expands every image and value.

use std::collections::HashMap;

use cohort_base::{IndexId, Reader};
use cohort_engine::{PageAlgorithm, PageForm};
use flate2::{Compress, Decompress, FlushCompress, FlushDecompress, Status};

use crate::space::BLOCK_BYTES;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, RwLock};

/// In the place of a page's level.
const COMPRESSED: u8 = 255;
const DEFLATE: u8 = 1;
const HEAD: usize = 16;
const VALUE_HEAD: usize = 4;
/// Longest image, plain: a page of short entries whose versions of the horizon are all as long as they may be
/// has 5 MiB.
const IMAGE_BYTES_MAX: usize = 64 << 20;
/// Longest value that is compressed: a longer one would keep its worker for seconds.
const VALUE_BYTES_MAX: usize = 16 << 20;
/// Compressors and expanders that are kept for the next image, of each kind.
const KEPT_MAX: usize = 4;

/// What is compressed, how, and how much of it there was.
pub struct Compression {
    /// Key spaces whose pages are not written plain.
    forms: RwLock<HashMap<IndexId, PageForm>>,
    /// `innodb_compression_algorithm` is not `none`.
    is_on: AtomicBool,
    /// `innodb_compression_level`
    level: AtomicU64,
    compressors: Mutex<Vec<(u8, Compress)>>,
    expanders: Mutex<Vec<Decompress>>,
    /// Images that were written compressed.
    pub compressed: AtomicU64,
    /// Those that would have saved no block.
    pub failed: AtomicU64,
    /// Images that were expanded.
    pub expanded: AtomicU64,
    /// Bytes of blocks that the compressed ones saved.
    pub saved_bytes: AtomicU64,
}

fn blocks(bytes: usize) -> usize {
    bytes.div_ceil(BLOCK_BYTES as usize)
}

impl Default for Compression {
    /// No key space is compressed; the settings are MariaDB's defaults.
    fn default() -> Compression {
        Compression {
            forms: RwLock::default(),
            is_on: AtomicBool::new(true),
            level: AtomicU64::new(6),
            compressors: Mutex::default(),
            expanders: Mutex::default(),
            compressed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            expanded: AtomicU64::new(0),
            saved_bytes: AtomicU64::new(0),
        }
    }
}

impl Compression {
    /// `innodb_compression_algorithm`
    pub fn set_algorithm(&self, algorithm: PageAlgorithm) {
        self.is_on.store(algorithm != PageAlgorithm::None, Ordering::Relaxed);
    }

    /// `innodb_compression_level`
    pub fn set_level(&self, level: u8) {
        self.level.store(level.into(), Ordering::Relaxed);
    }

    /// How images of the key spaces are written from now on.
    pub fn set_form(&self, indexes: &[IndexId], form: PageForm) {
        let mut forms = self.forms.write();
        for index in indexes {
            match form {
                PageForm::Plain => drop(forms.remove(index)),
                form => drop(forms.insert(*index, form)),
            }
        }
    }

    /// The level of a key space; none: it is written plain.
    fn level_of(&self, index: IndexId) -> Option<u8> {
        let form = self.forms.read().get(&index).copied().unwrap_or_default();
        let of_server = || self.level.load(Ordering::Relaxed) as u8;
        match form {
            PageForm::Plain => None,
            PageForm::CompressedRows => Some(of_server()),
            PageForm::CompressedPages { .. } if !self.is_on.load(Ordering::Relaxed) => None,
            PageForm::CompressedPages { level } => Some(level.unwrap_or_else(of_server)),
        }
    }

    /// The page's image compressed; none: it is to be written plain.
    pub fn image(&self, index: IndexId, plain: &[u8]) -> Option<Vec<u8>> {
        let level = self.level_of(index).filter(|_| plain.len() <= IMAGE_BYTES_MAX)?;
        let mut out = self.deflate(level, plain, HEAD)?;
        (out[4], out[5]) = (COMPRESSED, DEFLATE);
        out[12..HEAD].copy_from_slice(&(plain.len() as u32).to_le_bytes());
        let crc = crc32c::crc32c(&out[4..]);
        out[..4].copy_from_slice(&crc.to_le_bytes());
        self.compressed.fetch_add(1, Ordering::Relaxed);
        let saved = (blocks(plain.len()) - blocks(out.len())) as u64 * BLOCK_BYTES;
        self.saved_bytes.fetch_add(saved, Ordering::Relaxed);
        Some(out)
    }

    /// The plain image that was written in whatever form; none: it is damaged.
    pub fn plain(&self, image: Vec<u8>) -> Option<Vec<u8>> {
        if image.get(4) != Some(&COMPRESSED) {
            return Some(image);
        }
        let (crc, rest) = image.split_first_chunk::<4>()?;
        if crc32c::crc32c(rest) != u32::from_le_bytes(*crc) || image.get(5) != Some(&DEFLATE) {
            return None;
        }
        let bytes = Reader::new(image.get(12..)?).u32().ok()? as usize;
        let mut plain = Vec::new();
        if bytes > IMAGE_BYTES_MAX || !self.inflate(image.get(HEAD..)?, bytes, &mut plain) {
            return None;
        }
        self.expanded.fetch_add(1, Ordering::Relaxed);
        Some(plain)
    }

    /// A long value compressed; none: it is to be written plain.
    pub fn value(&self, index: IndexId, plain: &[u8]) -> Option<Vec<u8>> {
        let level = self.level_of(index).filter(|_| plain.len() <= VALUE_BYTES_MAX)?;
        let mut out = self.deflate(level, plain, VALUE_HEAD)?;
        out[..VALUE_HEAD].copy_from_slice(&(plain.len() as u32).to_le_bytes());
        Some(out)
    }

    /// Appends the value that [`Compression::value`] compressed. False: it is damaged.
    pub fn expand_value(&self, value: &[u8], out: &mut Vec<u8>) -> bool {
        let mut r = Reader::new(value);
        let Ok(bytes) = r.u32() else { return false };
        bytes as usize <= VALUE_BYTES_MAX && self.inflate(&value[VALUE_HEAD..], bytes as usize, out)
    }

    /// Deflates behind so many bytes of head, if all of it takes at least a block less than the plain bytes.
    fn deflate(&self, level: u8, plain: &[u8], head: usize) -> Option<Vec<u8>> {
        let room = blocks(plain.len()).saturating_sub(1) * BLOCK_BYTES as usize;
        let mut out = vec![0; room.max(head)];
        let kept = {
            let mut compressors = self.compressors.lock();
            let at = compressors.iter().position(|(of, _)| *of == level);
            at.map(|at| compressors.swap_remove(at).1)
        };
        let fresh = || Compress::new(flate2::Compression::new(level.into()), false);
        let mut compressor = kept.unwrap_or_else(fresh);
        let status = compressor.compress(plain, &mut out[head..], FlushCompress::Finish);
        if !matches!(status, Ok(Status::StreamEnd)) {
            // The compressor goes: not every library can reset one that has not come to the end.
            self.failed.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        out.truncate(head + compressor.total_out() as usize);
        out.shrink_to_fit();
        compressor.reset();
        let mut compressors = self.compressors.lock();
        if compressors.len() == KEPT_MAX {
            compressors.remove(0);
        }
        compressors.push((level, compressor));
        Some(out)
    }

    /// Appends so many bytes that were deflated. False: there were other than so many.
    fn inflate(&self, deflated: &[u8], bytes: usize, out: &mut Vec<u8>) -> bool {
        let kept = self.expanders.lock().pop();
        let mut expander = kept.unwrap_or_else(|| Decompress::new(false));
        let start = out.len();
        out.resize(start + bytes, 0);
        let status = expander.decompress(deflated, &mut out[start..], FlushDecompress::Finish);
        let is_whole = matches!(status, Ok(Status::StreamEnd))
            && expander.total_out() == bytes as u64
            && expander.total_in() == deflated.len() as u64;
        if is_whole {
            expander.reset(false);
            let mut expanders = self.expanders.lock();
            if expanders.len() < KEPT_MAX {
                expanders.push(expander);
            }
        }
        is_whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: IndexId = IndexId(16);

    fn compressing(form: PageForm) -> Compression {
        let compression = Compression::default();
        compression.set_form(&[TABLE], form);
        compression
    }

    /// An image whose head says what its body, which is not compressed, does not.
    fn stored(body: &[u8], claimed: u32) -> Vec<u8> {
        let mut image = vec![0, 0, 0, 0, 255, 1, 0, 0, 0, 0, 0, 0];
        image.extend_from_slice(&claimed.to_le_bytes());
        // RFC 1951, 3.2.4: the last block, stored: its length, and the same inverted.
        image.push(1);
        image.extend_from_slice(&(body.len() as u16).to_le_bytes());
        image.extend_from_slice(&(!body.len() as u16).to_le_bytes());
        image.extend_from_slice(body);
        let crc = crc32c::crc32c(&image[4..]);
        image[..4].copy_from_slice(&crc.to_le_bytes());
        image
    }

    #[test]
    fn the_form_on_disk_is_read() {
        let compression = Compression::default();
        assert_eq!(compression.plain(stored(b"an image", 8)).expect("whole"), b"an image");
        for claimed in [7, 9, 0, u32::MAX] {
            assert!(compression.plain(stored(b"an image", claimed)).is_none(), "{claimed} bytes claimed");
        }
        let mut trailing = stored(b"an image", 8);
        trailing.push(0);
        let crc = crc32c::crc32c(&trailing[4..]);
        trailing[..4].copy_from_slice(&crc.to_le_bytes());
        assert!(compression.plain(trailing).is_none(), "bytes behind the end");
    }

    #[test]
    fn what_saves_a_block_is_compressed_and_damage_is_noticed() {
        let compression = compressing(PageForm::CompressedRows);
        let plain: Vec<u8> = (0..12_000_u32).map(|n| (n / 100) as u8).collect();
        let image = compression.image(TABLE, &plain).expect("it saves two blocks");
        assert!(image.len() < BLOCK_BYTES as usize);
        assert_eq!(compression.saved_bytes.load(Ordering::Relaxed), 2 * BLOCK_BYTES);
        assert_eq!(compression.plain(image.clone()).expect("whole"), plain);
        for at in 0..image.len() {
            let mut damaged = image.clone();
            damaged[at] ^= 0x20;
            // An image that does not say that it is compressed is left to the checksum of plain ones.
            assert!(at == 4 || compression.plain(damaged).is_none(), "byte {at}");
        }
        assert!(compression.image(IndexId(17), &plain).is_none(), "of another key space");
        assert!(compression.image(TABLE, &plain[..4096]).is_none(), "it takes a block in any case");
        assert_eq!(compression.failed.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn the_server_says_whether_and_how_much() {
        let compression = compressing(PageForm::CompressedPages { level: None });
        assert_eq!(compression.level_of(TABLE), Some(6));
        compression.set_level(2);
        assert_eq!(compression.level_of(TABLE), Some(2));
        compression.set_form(&[TABLE], PageForm::CompressedPages { level: Some(9) });
        assert_eq!(compression.level_of(TABLE), Some(9));
        compression.set_algorithm(PageAlgorithm::None);
        assert_eq!(compression.level_of(TABLE), None);
        compression.set_form(&[TABLE], PageForm::CompressedRows);
        assert_eq!(compression.level_of(TABLE), Some(2), "which knows one algorithm only");
        compression.set_form(&[TABLE], PageForm::Plain);
        assert_eq!(compression.level_of(TABLE), None);
    }

    #[test]
    fn compressors_are_used_again_and_bounded() {
        let compression = compressing(PageForm::CompressedRows);
        let plain = vec![7; 16_000];
        for level in 0..=9 {
            compression.set_level(level);
            for _ in 0..3 {
                let image = compression.image(TABLE, &plain);
                assert_eq!(image.is_some(), level > 0, "level 0 does not compress");
                if let Some(image) = image {
                    assert_eq!(compression.plain(image).expect("whole"), plain);
                }
            }
        }
        assert_eq!(compression.compressors.lock().len(), KEPT_MAX);
        assert_eq!(compression.expanders.lock().len(), 1);
    }
}
