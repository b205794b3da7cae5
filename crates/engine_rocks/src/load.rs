//! Bulk load by SST ingestion: sorted files are written next to the database and moved into it in one step.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::IndexId;
use cohort_engine::{BulkLoad, EngineError, full_key};
use rocksdb::{DB, Options};

use crate::error::io_error;
use crate::sst::{MemtableFlush, SstFiles};

/// Returns the directory of unfinished files. It is emptied when the engine opens.
pub fn directory(datadir: &Path) -> PathBuf {
    datadir.join("bulk_load")
}

/// A bulk load of one index.
pub struct SstLoad {
    index: IndexId,
    files: SstFiles,
    key: Vec<u8>,
}

impl SstLoad {
    /// Starts a load into `index`, with files named after `prefix`.
    pub fn new(db: Arc<DB>, options: &'static Options, prefix: PathBuf, index: IndexId) -> SstLoad {
        SstLoad { index, files: SstFiles::new(db, options, prefix), key: Vec::new() }
    }
}

impl BulkLoad for SstLoad {
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        full_key(self.index, key, &mut self.key);
        self.files.writer().and_then(|file| file.put(&self.key, value)).map_err(io_error)
    }

    fn finish(mut self: Box<Self>) -> Result<(), EngineError> {
        self.files.close().map_err(io_error)?;
        // The index is new: no key in the memtable overlaps, so no memtable flush should be necessary (I3).
        self.files.take_in(MemtableFlush::Refused).map_err(io_error)
    }
}
