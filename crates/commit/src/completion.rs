//! Completion of the binary log's files, concurrently with reading the log. One thread opens the files,
//! verifies the part that no checkpoint has synced, and completes them from the log's bytes, in batches and
//! in log order.

use std::sync::mpsc::Receiver;
use std::thread::Scope;

use cohort_base::Lsn;
use cohort_binlog::{BinlogFiles, Chunk, Content, Recovered, SpillDir};

use crate::recovery_error::{RecoveryError, Row, refused, unreadable};
use crate::worker::Worker;

/// Size at which a batch is handed over.
const BATCH_BYTES: usize = 1 << 20;

/// The files, and their contents before completion; `None` with the binary log off.
pub type FilesFound = Option<(BinlogFiles, Recovered)>;

/// Chunks in log order.
#[derive(Default)]
struct Batch {
    chunks: Vec<Chunk>,
    /// Bytes of the inline chunks.
    bytes: Vec<u8>,
}

/// Handle of the completion thread, for the recovery pass.
pub struct Completion<'scope> {
    gathered: Batch,
    worker: Worker<'scope, Batch, FilesFound>,
}

impl<'scope> Completion<'scope> {
    /// Starts the thread, which first opens the files.
    pub fn start(
        scope: &'scope Scope<'scope, '_>,
        open: impl FnOnce() -> Result<FilesFound, RecoveryError> + Send + 'scope,
        spill: &'scope SpillDir,
    ) -> Completion<'scope> {
        let run = move |batches: &Receiver<Batch>| {
            let mut opened = open()?;
            for batch in batches {
                let (files, _) = opened.as_mut().expect("chunks come while the binary log is on");
                complete(files, &batch.chunks, &batch.bytes, spill)?;
            }
            Ok(opened)
        };
        Completion { gathered: Batch::default(), worker: Worker::start(scope, run) }
    }

    /// Adds the chunks of the next record. `bytes` starts with the bytes of the inline chunks.
    pub fn add(&mut self, lsn: Lsn, chunks: &[Chunk], bytes: &[u8]) -> Result<(), RecoveryError> {
        let inline = chunks.iter().filter(|chunk| matches!(chunk.content, Content::Inline));
        let len: u64 = inline.map(|chunk| chunk.len).sum();
        let bytes =
            usize::try_from(len).ok().and_then(|len| bytes.get(..len)).ok_or_else(|| unreadable(lsn))?;
        self.gathered.chunks.extend_from_slice(chunks);
        self.gathered.bytes.extend_from_slice(bytes);
        match self.gathered.bytes.len() >= BATCH_BYTES {
            true => self.hand_over(),
            false => Ok(()),
        }
    }

    fn hand_over(&mut self) -> Result<(), RecoveryError> {
        self.worker.give(std::mem::take(&mut self.gathered))
    }

    /// Completes what is left. At return everything is written.
    pub fn finish(&mut self) -> Result<FilesFound, RecoveryError> {
        if !self.gathered.chunks.is_empty() {
            self.hand_over()?;
        }
        self.worker.finish()
    }
}

/// Writes or compares the chunks, as each file needs (rows `Complete` and `Present`).
pub fn complete(
    files: &mut BinlogFiles,
    chunks: &[Chunk],
    mut bytes: &[u8],
    spill: &SpillDir,
) -> Result<(), RecoveryError> {
    for chunk in chunks {
        let lost = match &chunk.content {
            Content::Spilled(spilled) if !spill.exists(&spilled.name) => Some(&spilled.name),
            _ => None,
        };
        files.apply(chunk, &mut bytes, spill).map_err(|e| match lost {
            Some(name) => refused(Row::SpillLost, format!("spill file {name}: {e}")),
            None => e.into(),
        })?;
    }
    Ok(())
}
