//! Compressed images: pages and overflow values of tables with `ROW_FORMAT=COMPRESSED` or
//! `PAGE_COMPRESSED=1`.
//!
//! # Purpose
//! Each image is written to a new extent, so a compressed image simply takes fewer blocks. Pages in memory
//! are never compressed. The log and the undo are not affected.
//!
//! # On disk
//! ```text
//! image   0   4  CRC-32C of the rest
//!         4   1  255: it is compressed (`page.rs` has the level here, which is far below)
//!         5   1  1: deflate (RFC 1951)
//!         6   2  -
//!         8   4  0, an index that no page has: a server without compression takes it for another page
//!         12  4  bytes of the plain image
//!         16     the plain image in the format of `page.rs`, its own checksum included
//!
//! value   u32 length of the plain value | the value, deflated
//! ```
//! The entry that refers to a value states whether the value is compressed (`value.rs`). Each page image
//! states its own format, so a table may have both kinds of pages. A change of the page format therefore
//! causes no additional writes, and old files remain readable.
//!
//! # Granularity
//! An image takes whole blocks of 4 KiB. An image that compression would not shrink by at least one block is
//! written plain: [`Compression::image`] compresses into a buffer that is one block smaller. `KEY_BLOCK_SIZE`
//! therefore has no effect.
//!
//! # Source of the page format
//! The catalog knows the format. The server sets it for every index after a start
//! ([`Compression::set_form`]), and for each new index before loading it. Until then, in particular during
//! recovery, pages are written plain.
//!
//! # Threads
//! The thread that writes a page compresses it: a checkpoint without a latch, an eviction with the latch of
//! the page, which no other thread uses. The thread that reads a page expands it into a frame that other
//! threads cannot use yet. At most [`KEPT_MAX`] compressors of about 300 KiB each are kept for reuse.
//!
//! # On failure
//! A torn or damaged image fails the checksum over its compressed bytes before it is expanded. An image that
//! does not expand to the length in its header is rejected in the same way, with file, block and remedy.
//! CHECK TABLE expands every image and value.

use std::collections::HashMap;

use cohort_base::{IndexId, Reader};
use cohort_engine::{PageAlgorithm, PageFormat};
use flate2::{Compress, Decompress, FlushCompress, FlushDecompress, Status};

use crate::space::BLOCK_BYTES;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, RwLock};

/// Marker in place of a page's level.
const COMPRESSED: u8 = 255;
const DEFLATE: u8 = 1;
const HEAD: usize = 16;
const VALUE_HEAD: usize = 4;
/// Maximum size of a plain image. The largest realistic image has 5 MiB: a page of short entries whose
/// versions at the horizon all have the maximum length.
const IMAGE_BYTES_MAX: usize = 64 << 20;
/// Maximum size of a value that is compressed. A longer value would occupy its worker for seconds.
const VALUE_BYTES_MAX: usize = 16 << 20;
/// Maximum number of compressors, and of expanders, that are kept for reuse.
pub const KEPT_MAX: usize = 4;

/// Compression settings, reusable compressors, and counters.
pub struct Compression {
    /// Indexes whose pages are not written plain.
    forms: RwLock<HashMap<IndexId, PageFormat>>,
    /// True unless `innodb_compression_algorithm` is `none`.
    is_on: AtomicBool,
    /// `innodb_compression_level`
    level: AtomicU64,
    pub compressors: Mutex<Vec<(u8, Compress)>>,
    pub expanders: Mutex<Vec<Decompress>>,
    /// Number of images written compressed.
    pub compressed: AtomicU64,
    /// Number of images written plain because compression would have saved no block.
    pub failed: AtomicU64,
    /// Number of images that were expanded.
    pub expanded: AtomicU64,
    /// Bytes of blocks that compressed images saved.
    pub saved_bytes: AtomicU64,
}

fn blocks(bytes: usize) -> usize {
    bytes.div_ceil(BLOCK_BYTES as usize)
}

impl Default for Compression {
    /// Creates a state in which no index is compressed, with MariaDB's default settings.
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
    /// Sets `innodb_compression_algorithm`.
    pub fn set_algorithm(&self, algorithm: PageAlgorithm) {
        self.is_on.store(algorithm != PageAlgorithm::None, Ordering::Relaxed);
    }

    /// Sets `innodb_compression_level`.
    pub fn set_level(&self, level: u8) {
        self.level.store(level.into(), Ordering::Relaxed);
    }

    /// Sets the page format of future images of the indexes.
    pub fn set_form(&self, indexes: &[IndexId], form: PageFormat) {
        let mut forms = self.forms.write();
        for index in indexes {
            match form {
                PageFormat::Plain => drop(forms.remove(index)),
                form => drop(forms.insert(*index, form)),
            }
        }
    }

    /// Returns the compression level of an index, or `None` if it is written plain.
    pub fn level_of(&self, index: IndexId) -> Option<u8> {
        let form = self.forms.read().get(&index).copied().unwrap_or_default();
        let of_server = || self.level.load(Ordering::Relaxed) as u8;
        match form {
            PageFormat::Plain => None,
            PageFormat::CompressedRows => Some(of_server()),
            PageFormat::CompressedPages { .. } if !self.is_on.load(Ordering::Relaxed) => None,
            PageFormat::CompressedPages { level } => Some(level.unwrap_or_else(of_server)),
        }
    }

    /// Returns the compressed image, or `None` if the image should be written plain.
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

    /// Returns the plain image of an image in either format, or `None` if it is damaged.
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

    /// Returns the compressed value, or `None` if the value should be written plain.
    pub fn value(&self, index: IndexId, plain: &[u8]) -> Option<Vec<u8>> {
        let level = self.level_of(index).filter(|_| plain.len() <= VALUE_BYTES_MAX)?;
        let mut out = self.deflate(level, plain, VALUE_HEAD)?;
        out[..VALUE_HEAD].copy_from_slice(&(plain.len() as u32).to_le_bytes());
        Some(out)
    }

    /// Expands a value that [`Compression::value`] compressed and appends it to `out`. Returns false if it is
    /// damaged.
    pub fn expand_value(&self, value: &[u8], out: &mut Vec<u8>) -> bool {
        let mut r = Reader::new(value);
        let Ok(bytes) = r.u32() else { return false };
        bytes as usize <= VALUE_BYTES_MAX && self.inflate(&value[VALUE_HEAD..], bytes as usize, out)
    }

    /// Deflates `plain` and leaves `head` bytes free before the result. Returns `None` if that would not save
    /// at least one block.
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
            // The compressor is dropped: not every library can reset one in the middle of a stream.
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

    /// Inflates and appends `bytes` bytes to `out`. Returns false if the data has another length.
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
