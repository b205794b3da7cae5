//! Redo of a large transaction as SST files that the database takes in by one step.
//!
//! A memtable takes a gigabyte of writes in seconds, and the order stage would be held for all of them. So
//! the writes are sorted into files beside the database while the transaction is prepared; taking them in
//! moves the files and writes a line in the manifest. What the memtable holds in the same range is flushed
//! first: little, because a checkpoint went before, and hardened, because the order stage is held and the log
//! hardened (I3).

use std::path::PathBuf;
use std::sync::Arc;

use cohort_engine::{EngineError, Redo, StagedRedo};
use rocksdb::{DB, Options, SstFileWriter, WriteBatchIterator};

use crate::engine::io_error;
use crate::redo;
use crate::sst::{MemtableFlush, SstFiles};

/// Files that hold one transaction's writes.
pub struct Staged(SstFiles);

/// Writes sorted operations; the first error ends it.
struct Writer<'a> {
    files: &'a mut SstFiles,
    outcome: Result<(), rocksdb::Error>,
}

impl Staged {
    /// Writes `redo`, whose keys ascend, into files named after `prefix`; they are synced.
    pub fn write(
        db: Arc<DB>,
        options: &'static Options,
        prefix: PathBuf,
        redo: &Redo,
    ) -> Result<Staged, EngineError> {
        let mut files = SstFiles::new(db, options, prefix);
        let mut writer = Writer { files: &mut files, outcome: Ok(()) };
        redo::join(&[redo])?.iterate(&mut writer);
        writer.outcome.and_then(|()| files.close()).map_err(io_error)?;
        Ok(Staged(files))
    }
}

impl Writer<'_> {
    fn add(&mut self, operation: impl FnOnce(&mut SstFileWriter<'static>) -> Result<(), rocksdb::Error>) {
        if self.outcome.is_ok() {
            self.outcome = self.files.writer().and_then(operation);
        }
    }
}

impl WriteBatchIterator for Writer<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.add(|file| file.put(key, value));
    }

    fn delete(&mut self, key: &[u8]) {
        self.add(|file| file.delete(key));
    }
}

impl StagedRedo for Staged {
    fn apply(mut self: Box<Self>) {
        if let Err(error) = self.0.take_in(MemtableFlush::Allowed) {
            // I6: the transaction is hardened. Recovery applies it from the log.
            log::error!("RocksDB refused a hardened transaction, stopping: {error}");
            std::process::abort();
        }
    }
}
