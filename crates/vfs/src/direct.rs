//! Writes that go past the page cache.
//!
//! A log is written once and read again only after a crash. Through the page cache every byte of it would
//! take memory that nobody reads, and be copied by the thread that commits wait for.
//!
//! # Concepts
//! - A *direct* descriptor is a second one of the same file, opened with `O_DIRECT`. The kernel takes memory,
//!   offsets and lengths there that are multiples of the device's blocks; [`ALIGN_BYTES`] is one for all disks
//!   that can be expected.
//! - The *bounce buffer* is memory so aligned. Bytes are copied there on their way.
//!
//! # On failure
//! A file system that refuses `O_DIRECT` has no direct descriptor. A device with larger blocks refuses the
//! write (`EINVAL`) before it has written anything, as does a file system that opens the descriptor and takes
//! no direct writes (`EOPNOTSUPP`). In all cases, and for bytes that are not whole blocks,
//! [`Direct::write_at`] says that the caller is to write them as usual. The kernel keeps page cache and
//! direct writes of one file coherent.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use parking_lot::Mutex;

/// What memory, offset and length are multiples of.
const ALIGN_BYTES: usize = 4096;
/// Written at once; more goes in pieces.
const PIECE_BYTES: usize = 1 << 20;
/// A larger bounce buffer is not kept for the next write.
const KEPT_BYTES_MAX: usize = 256 << 10;

/// The direct descriptor of a file.
pub(crate) struct Direct {
    file: File,
    /// One write of a file at a time goes this way; a log has one writer.
    bounce: Mutex<Vec<u8>>,
}

impl Direct {
    /// Of a file that is there. None: its file system takes no direct writes.
    pub fn open(path: &Path) -> Option<Direct> {
        let file = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(path).ok()?;
        Some(Direct { file, bounce: Mutex::default() })
    }

    /// False if nothing was written: the bytes have to take the usual way.
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

/// Whether the kernel takes no such write.
fn is_refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP))
}

/// A copy of the bytes in aligned memory.
fn aligned<'a>(bounce: &'a mut Vec<u8>, bytes: &[u8]) -> &'a [u8] {
    if bounce.len() < bytes.len() + ALIGN_BYTES {
        bounce.resize(bytes.len() + ALIGN_BYTES, 0);
    }
    let skipped = bounce.as_ptr().align_offset(ALIGN_BYTES);
    let copy = &mut bounce[skipped..skipped + bytes.len()];
    copy.copy_from_slice(bytes);
    copy
}
