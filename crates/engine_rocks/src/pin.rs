//! The pin of a backup: a checkpoint of RocksDB, made at the cut.
//!
//! RocksDB's checkpoint is a directory of hard links to its SST files, with a copy of the manifest up to now.
//! With a log size for the flush it does not flush the memtable, which only checkpoints of the server may do
//! (I3). It is made while the order stage is held, and no checkpoint of the server runs. So it has everything
//! that was flushed or ingested by transactions and bulk loads up to the cut, and nothing later: staged files
//! are ingested in the order stage.
//!
//! # On failure
//! An error at the cut is returned by `rest`. The directory is removed with the pin, or at the next start
//! with the directory of loads.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use cohort_engine::{EngineError, PinnedBytes, PinnedFile, PinnedFiles};
use rocksdb::DB;
use rocksdb::checkpoint::Checkpoint;

use crate::error::io_error;

/// Log size from which RocksDB would flush the memtable. There is no log.
const NEVER_FLUSH: u64 = u64::MAX;

/// A pinned state of the database.
pub struct RocksPin {
    db: Arc<DB>,
    /// Directory of the checkpoint.
    dir: PathBuf,
    made: Result<(), EngineError>,
}

impl RocksPin {
    /// Creates a pin whose checkpoint is going to be in `dir`, which does not exist.
    pub fn new(db: Arc<DB>, dir: PathBuf) -> RocksPin {
        RocksPin { db, dir, made: Ok(()) }
    }
}

impl PinnedFiles for RocksPin {
    fn cut(&mut self) {
        let made = Checkpoint::new(&self.db)
            .and_then(|checkpoint| checkpoint.create_checkpoint_with_log_size(&self.dir, NEVER_FLUSH));
        self.made = made.map_err(io_error);
    }

    fn rest(&mut self) -> Result<Vec<PinnedFile>, EngineError> {
        std::mem::replace(&mut self.made, Ok(()))?;
        let files = fs::read_dir(&self.dir).and_then(|entries| {
            entries
                .map(|entry| {
                    let entry = entry?;
                    let file = File::open(entry.path())?;
                    let total = file.metadata()?.len();
                    let read = Box::new(move |buf: &mut [u8], offset| read_at(&file, buf, offset));
                    let ranges = Box::new(std::iter::once(0..total).filter(|range| !range.is_empty()));
                    let bytes = PinnedBytes::Ranges { read, ranges, total };
                    Ok(PinnedFile { path: self.db.path().join(entry.file_name()), bytes })
                })
                .collect::<io::Result<Vec<PinnedFile>>>()
        });
        files.map_err(EngineError::Io)
    }
}

/// Reads until the buffer is full or the file ends.
fn read_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        match file.read_at(&mut buf[done..], offset + done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    Ok(done)
}

impl Drop for RocksPin {
    fn drop(&mut self) {
        // If it cannot be removed now, the next start removes it.
        let _ = fs::remove_dir_all(&self.dir);
    }
}
