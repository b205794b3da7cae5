//! Direct writes, which bypass the page cache.
//!
//! A log is written once and read only after a crash. With the page cache, its bytes would take memory that
//! is never read, and be copied by the thread that commits wait for.
//!
//! # Concepts
//! - A *direct* descriptor is a second descriptor of the file, opened with `O_DIRECT`. Its memory, offsets
//!   and lengths must be multiples of the device's block size. [`ALIGN_BYTES`] is sufficient for all common
//!   disks.
//! - The *bounce buffer* is memory with that alignment. Bytes are copied there before they are written.
//!
//! # On failure
//! A file system that refuses `O_DIRECT` has no direct descriptor. A device with larger blocks refuses the
//! write (`EINVAL`) before it has written anything. So does a file system that opens the descriptor but does
//! not support direct writes (`EOPNOTSUPP`). In these cases, and for bytes that are not whole blocks,
//! [`Direct::write_at`] returns false and the caller writes normally. The kernel keeps the page cache and
//! direct writes of a file coherent.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use parking_lot::Mutex;

/// Alignment of memory, offset and length.
const ALIGN_BYTES: usize = 4096;
/// Maximum size of one write; longer ones are split.
const PIECE_BYTES: usize = 1 << 20;
/// A larger bounce buffer is freed after the write.
const KEPT_BYTES_MAX: usize = 256 << 10;

/// The direct descriptor of a file.
pub(crate) struct Direct {
    file: File,
    /// Allows one direct write of the file at a time; a log has one writer.
    bounce: Mutex<Vec<u8>>,
}

impl Direct {
    /// Opens the direct descriptor of an existing file. Returns `None` if its file system does not support
    /// direct writes.
    pub fn open(path: &Path) -> Option<Direct> {
        let file = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(path).ok()?;
        Some(Direct { file, bounce: Mutex::default() })
    }

    /// Writes directly. Returns false if nothing was written and the caller has to write normally.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<bool> {
        if !bytes.len().is_multiple_of(ALIGN_BYTES) || !offset.is_multiple_of(ALIGN_BYTES as u64) {
            return Ok(false);
        }
        let mut bounce = self.bounce.lock();
        let mut at = offset;
        for piece in bytes.chunks(PIECE_BYTES) {
            match self.file.write_all_at(aligned(&mut bounce, piece), at) {
                Err(error) if is_refused(&error) && at == offset => return Ok(false),
                written => written?,
            }
            at += piece.len() as u64;
        }
        if bounce.capacity() > KEPT_BYTES_MAX {
            *bounce = Vec::new();
        }
        Ok(true)
    }
}

/// Returns whether the kernel does not support this write.
fn is_refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP))
}

/// Returns a copy of the bytes in aligned memory.
fn aligned<'a>(bounce: &'a mut Vec<u8>, bytes: &[u8]) -> &'a [u8] {
    if bounce.len() < bytes.len() + ALIGN_BYTES {
        bounce.resize(bytes.len() + ALIGN_BYTES, 0);
    }
    let skipped = bounce.as_ptr().align_offset(ALIGN_BYTES);
    let copy = &mut bounce[skipped..skipped + bytes.len()];
    copy.copy_from_slice(bytes);
    copy
}
