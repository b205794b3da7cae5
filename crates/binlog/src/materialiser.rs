//! Writes hardened chunks to the files, behind the commits.
use std::sync::Arc;
use std::time::Duration;

use cohort_base::BinlogPos;

use crate::{BinlogError, BinlogFiles, Chunk, SpillDir};

/// Settings of the materialiser.
#[derive(Clone, Copy, Debug)]
pub struct MaterialiserOptions {
    /// How long handed-over bytes may lie before they are written.
    pub delay: Duration,
    /// Bytes that may lie; who hands over more waits.
    pub queue_bytes_max: usize,
    /// Pause before writing is tried again without space.
    pub retry: Duration,
}

impl Default for MaterialiserOptions {
    fn default() -> MaterialiserOptions {
        MaterialiserOptions {
            delay: Duration::from_millis(5),
            queue_bytes_max: 64 << 20,
            retry: Duration::from_millis(500),
        }
    }
}

/// Chunks of one flush group, hardened. `bytes` are those of the inline chunks.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Places.
    pub chunks: Vec<Chunk>,
    /// Bytes.
    pub bytes: Vec<u8>,
}

/// What the writer is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MaterialiseStatus {
    /// Writing, or nothing to do.
    Running,
    /// Waiting for space; new writes should be refused until this ends.
    NoSpace,
    /// An error that does not go away; the server must stop. Nothing is lost: the log holds the bytes.
    Failed(String),
}

/// The writer of the files.
pub struct Materialiser {}

impl Materialiser {
    /// Starts the background thread.
    pub fn start(_files: BinlogFiles, _spill: Arc<SpillDir>, _options: MaterialiserOptions) -> Materialiser {
        todo!()
    }

    /// Without a thread: only `step`, `catch_up` and `sync` write. For tests.
    pub fn stepped(
        _files: BinlogFiles,
        _spill: Arc<SpillDir>,
        _options: MaterialiserOptions,
    ) -> Materialiser {
        todo!()
    }

    /// Hands over hardened chunks, in order. Waits while the queue is full (threaded only).
    pub fn submit(&self, _batch: Batch) {
        todo!()
    }

    /// Writes everything handed over so far, on this thread.
    pub fn step(&self) -> Result<(), BinlogError> {
        todo!()
    }

    /// Comes back when the files hold everything up to `pos`.
    pub fn catch_up(&self, _pos: BinlogPos) -> Result<(), BinlogError> {
        todo!()
    }

    /// Writes and syncs everything handed over so far; answers up to where (for the log's checkpoint).
    pub fn sync(&self) -> Result<Option<BinlogPos>, BinlogError> {
        todo!()
    }

    /// Up to where the files hold the stream.
    pub fn written(&self) -> Option<BinlogPos> {
        todo!()
    }

    /// Up to where the files are synced: what the log must not free.
    pub fn synced(&self) -> Option<BinlogPos> {
        todo!()
    }

    /// What the writer is doing.
    pub fn status(&self) -> MaterialiseStatus {
        todo!()
    }

    /// Runs with the files between two writes: SHOW BINARY LOGS, purge, readers.
    pub fn with_files<R>(&self, _f: impl FnOnce(&mut BinlogFiles) -> R) -> R {
        todo!()
    }

    /// Writes what is left, clears the in-use mark, syncs and ends the thread. After [`crate::Stream::stop`].
    pub fn close(self) -> Result<(), BinlogError> {
        todo!()
    }
}
