//! Redo that engines write into spill files while they prepare, so that it is never in memory as a whole.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cohort_binlog::SpillDir;
use cohort_engine::{RedoFile, RedoFileGuard, RedoFiles, RedoWriter};
use cohort_vfs::SharedFile;

use crate::coordinator::Coordinator;
use crate::prepare::INLINE_REDO_BYTES_MAX;

impl RedoFiles for Coordinator {
    fn inline_bytes_max(&self) -> usize {
        INLINE_REDO_BYTES_MAX
    }

    fn create(&self) -> io::Result<Box<dyn RedoWriter>> {
        let (name, file) = self.spill.create_redo()?;
        let hold = FileGuard { dir: Arc::clone(&self.spill), name, is_kept: AtomicBool::new(false) };
        Ok(Box::new(Writer { hold: Arc::new(hold), file, bytes: 0, crc: 0 }))
    }
}

/// Guard of a spill file: removes it when dropped, unless `keep` was called.
struct FileGuard {
    dir: Arc<SpillDir>,
    name: String,
    is_kept: AtomicBool,
}

impl RedoFileGuard for FileGuard {
    fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }
}

impl Drop for FileGuard {
    fn drop(&mut self) {
        if !self.is_kept.load(Ordering::Relaxed) {
            // Nothing refers to the file; if it cannot be removed now, the next start removes it.
            let _ = self.dir.remove(&self.name);
        }
    }
}

struct Writer {
    hold: Arc<FileGuard>,
    file: SharedFile,
    bytes: u64,
    crc: u32,
}

impl RedoWriter for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(bytes, self.bytes)?;
        self.bytes += bytes.len() as u64;
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<RedoFile> {
        self.file.sync_data()?;
        self.hold.dir.sync_names()?;
        Ok(RedoFile { name: self.hold.name.clone(), bytes: self.bytes, crc: self.crc, hold: self.hold })
    }
}
