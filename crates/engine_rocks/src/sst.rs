//! SST files that are written next to the database and then ingested. Shared by bulk loads and staged
//! transactions.

use std::path::PathBuf;
use std::sync::Arc;

use rocksdb::{DB, Error, IngestExternalFileOptions, Options, SstFileWriter};

/// Size at which a file is completed and the next one started, so that compaction has units to work with.
const FILE_BYTES_MAX: u64 = 128 << 20;

/// Permission for RocksDB to flush the memtable for an ingestion if their keys overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemtableFlush {
    Allowed,
    Refused,
}

/// Files in ascending key order. Dropping them before ingestion removes them.
pub struct SstFiles {
    db: Arc<DB>,
    options: &'static Options,
    prefix: PathBuf,
    writer: Option<SstFileWriter<'static>>,
    files: Vec<PathBuf>,
}

// SAFETY: the writer is a pointer to a C++ object without thread affinity; `SstFiles` is used by one thread
// at a time.
unsafe impl Send for SstFiles {}

impl SstFiles {
    /// Creates an empty set of files whose names start with `prefix`. `options` are the options of the
    /// database, so that the tables have the same format.
    pub fn new(db: Arc<DB>, options: &'static Options, prefix: PathBuf) -> SstFiles {
        SstFiles { db, options, prefix, writer: None, files: Vec::new() }
    }

    /// Returns the writer of the file for the next key.
    pub fn writer(&mut self) -> Result<&mut SstFileWriter<'static>, Error> {
        if let Some(mut full) = self.writer.take_if(|writer| writer.file_size() >= FILE_BYTES_MAX) {
            full.finish()?;
        }
        if self.writer.is_none() {
            let path = self.prefix.with_extension(format!("{}.sst", self.files.len()));
            let writer = SstFileWriter::create(self.options);
            writer.open(&path)?;
            self.files.push(path);
            self.writer = Some(writer);
        }
        Ok(self.writer.as_mut().expect("opened above"))
    }

    /// Completes and syncs the last file.
    pub fn close(&mut self) -> Result<(), Error> {
        self.writer.take().map_or(Ok(()), |mut last| last.finish())
    }

    /// Ingests the closed files into the database in one step.
    pub fn take_in(&mut self, flush: MemtableFlush) -> Result<(), Error> {
        let files = std::mem::take(&mut self.files);
        if files.is_empty() {
            return Ok(());
        }
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        options.set_allow_blocking_flush(flush == MemtableFlush::Allowed);
        self.db.ingest_external_file_opts(&options, files)
    }
}

impl Drop for SstFiles {
    fn drop(&mut self) {
        self.writer = None;
        for file in &self.files {
            // A file that cannot be removed here is removed when the engine opens next.
            let _ = std::fs::remove_file(file);
        }
    }
}
