//! Redo of a large transaction as SST files that the database takes in by one step.
//!
//! A memtable takes a gigabyte of writes in seconds, and the order stage would be held for all of them. So the writes are
//! sorted into files beside the database while the transaction is prepared; taking them in moves the files and writes a line in
//! the manifest. What the memtable holds in the same range is flushed first: little, because a checkpoint went before, and hardened,
//! because the order stage is held and the log hardened (I3).

use std::path::PathBuf;
use std::sync::Arc;

use cohort_engine::{EngineError, Redo, StagedRedo};
use rocksdb::{DB, IngestExternalFileOptions, Options, SstFileWriter, WriteBatchIterator};

use crate::engine::io_error;
use crate::load::FILE_BYTES_MAX;
use crate::redo;

/// Files that hold one transaction's writes.
pub struct Staged {
    db: Arc<DB>,
    files: Vec<PathBuf>,
}

/// Writes files of sorted operations; the first error ends it.
struct Writer<'a> {
    options: &'static Options,
    prefix: PathBuf,
    staged: &'a mut Staged,
    writer: Option<SstFileWriter<'static>>,
    error: Option<rocksdb::Error>,
}

impl Staged {
    /// Writes `redo`, whose keys ascend, into files named after `prefix`; they are synced.
    pub fn write(
        db: Arc<DB>,
        options: &'static Options,
        prefix: PathBuf,
        redo: &Redo,
    ) -> Result<Staged, EngineError> {
        let mut staged = Staged { db, files: Vec::new() };
        let batch = redo::join(&[redo])?;
        let mut writer = Writer { options, prefix, staged: &mut staged, writer: None, error: None };
        batch.iterate(&mut writer);
        let outcome = match (writer.error.take(), writer.writer.take()) {
            (Some(error), _) => Err(error),
            (None, Some(mut last)) => last.finish(),
            (None, None) => Ok(()),
        };
        outcome.map_err(io_error)?;
        Ok(staged)
    }
}

impl Writer<'_> {
    fn add(&mut self, operation: impl FnOnce(&mut SstFileWriter<'static>) -> Result<(), rocksdb::Error>) {
        if self.error.is_none() {
            self.error = self.file().and_then(operation).err();
        }
    }

    /// The file that the next operation goes into.
    fn file(&mut self) -> Result<&mut SstFileWriter<'static>, rocksdb::Error> {
        if let Some(mut full) = self.writer.take_if(|writer| writer.file_size() >= FILE_BYTES_MAX) {
            full.finish()?;
        }
        if self.writer.is_none() {
            let path = self.prefix.with_extension(format!("{}.sst", self.staged.files.len()));
            let writer = SstFileWriter::create(self.options);
            writer.open(&path)?;
            self.staged.files.push(path);
            self.writer = Some(writer);
        }
        Ok(self.writer.as_mut().expect("opened above"))
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
        let files = std::mem::take(&mut self.files);
        if files.is_empty() {
            return;
        }
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        if let Err(error) = self.db.ingest_external_file_opts(&options, files) {
            // I6: the transaction is hardened. Recovery applies it from the log.
            eprintln!("[ERROR] RocksDB refused a hardened transaction, stopping: {error}");
            std::process::abort();
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        for file in &self.files {
            // A file that stays is removed when the engine opens next.
            let _ = std::fs::remove_file(file);
        }
    }
}
