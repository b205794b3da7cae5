//! Bulk load by SST ingestion: sorted files are written beside the database and moved into it in one step.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::IndexId;
use cohort_engine::{BulkLoad, EngineError, full_key};
use rocksdb::{DB, IngestExternalFileOptions, Options, SstFileWriter};

use crate::engine::io_error;

/// A file is closed and the next one started at this size, so that compaction has units to work with.
pub const FILE_BYTES_MAX: u64 = 128 << 20;

/// Where unfinished files lie; emptied when the engine opens.
pub fn directory(datadir: &Path) -> PathBuf {
    datadir.join("bulk_load")
}

/// Entries of one key space on their way into the database.
pub struct SstLoad {
    db: Arc<DB>,
    options: &'static Options,
    prefix: PathBuf,
    index: IndexId,
    writer: Option<SstFileWriter<'static>>,
    files: Vec<PathBuf>,
    key: Vec<u8>,
    finished: bool,
}

// SAFETY: the writer is a pointer to a C++ object without thread affinity; `SstLoad` is used by one thread at a time.
unsafe impl Send for SstLoad {}

impl SstLoad {
    /// A load into `index`; `options` are the database's own, so that tables have the same format.
    pub fn new(db: Arc<DB>, options: &'static Options, prefix: PathBuf, index: IndexId) -> SstLoad {
        SstLoad {
            db,
            options,
            prefix,
            index,
            writer: None,
            files: Vec::new(),
            key: Vec::new(),
            finished: false,
        }
    }

    fn close_file(&mut self) -> Result<(), EngineError> {
        match self.writer.take() {
            Some(mut writer) => writer.finish().map_err(io_error),
            None => Ok(()),
        }
    }
}

impl BulkLoad for SstLoad {
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        if self.writer.as_ref().is_some_and(|w| w.file_size() >= FILE_BYTES_MAX) {
            self.close_file()?;
        }
        if self.writer.is_none() {
            let path = self.prefix.with_extension(format!("{}.sst", self.files.len()));
            let writer = SstFileWriter::create(self.options);
            writer.open(&path).map_err(io_error)?;
            self.files.push(path);
            self.writer = Some(writer);
        }
        full_key(self.index, key, &mut self.key);
        self.writer.as_mut().expect("opened above").put(&self.key, value).map_err(io_error)
    }

    fn finish(mut self: Box<Self>) -> Result<(), EngineError> {
        self.close_file()?;
        self.finished = true;
        if self.files.is_empty() {
            return Ok(());
        }
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        // The key space is new: nothing in the memtable overlaps, so no memtable flush may be needed (I3).
        options.set_allow_blocking_flush(false);
        self.db.ingest_external_file_opts(&options, self.files.clone()).map_err(io_error)
    }
}

impl Drop for SstLoad {
    fn drop(&mut self) {
        if !self.finished {
            self.writer = None;
            for file in &self.files {
                // A file that stays is removed when the engine opens next.
                let _ = std::fs::remove_file(file);
            }
        }
    }
}
