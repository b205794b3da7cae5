//! Staged redo: a large transaction in SST files that the database ingests in one step.
//!
//! Writing a gigabyte to the memtable takes seconds, and the order stage would be held meanwhile. Instead,
//! the writes are sorted into files next to the database while the transaction is prepared. Ingestion moves
//! the files and adds a record to the manifest. RocksDB first flushes the memtable if its keys overlap. There
//! is little to flush, because a checkpoint went before. It is durable in the log, because the order stage is
//! held and the log is durable (I3).

use std::path::PathBuf;
use std::sync::Arc;

use cohort_engine::{EngineError, Redo, StagedRedo};
use rocksdb::{DB, Options, SstFileWriter, WriteBatchIterator};

use crate::error::io_error;
use crate::redo;
use crate::sst::{MemtableFlush, SstFiles};

/// Files with one transaction's writes.
pub struct Staged(SstFiles);

/// Writes sorted operations and stops at the first error.
struct Writer<'a> {
    files: &'a mut SstFiles,
    outcome: Result<(), rocksdb::Error>,
}

impl Staged {
    /// Writes `redo`, whose keys ascend, to files named after `prefix` and syncs them.
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
            // I6: the transaction is durable in the log. Recovery applies it from there.
            log::error!("RocksDB refused a hardened transaction, stopping: {error}");
            std::process::abort();
        }
    }
}
