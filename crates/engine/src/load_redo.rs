//! Redo of a bulk load.
//!
//! A bulk load is durable by itself, so a crash needs no redo of it. A log that is archived must have it
//! nevertheless: a restore begins with an older state, which does not have the load. The redo is written to
//! files while the load runs, and belongs to the commit of the definition that makes the load visible. After
//! a crash it is replayed over the load, with the same result, because redo is absolute.

use std::io;

use cohort_base::IndexId;

use crate::redo::{Redo, RedoFile, RedoFiles, RedoWriter};
use crate::traits::Engine;

/// Bytes that are written at a time.
const PIECE_BYTES: usize = 256 << 10;
/// Size from which a file is complete. Replay has a file in memory.
const FILE_BYTES: u64 = 64 << 20;

/// Redo of the loads of one index, in files.
#[derive(Default)]
pub struct LoadRedo {
    /// The file that is being written, and its length.
    open: Option<(Box<dyn RedoWriter>, u64)>,
    full: Vec<RedoFile>,
    piece: Vec<u8>,
}

impl LoadRedo {
    /// Adds an entry that the load of the engine gets, too.
    pub fn add(
        &mut self,
        engine: &dyn Engine,
        files: &dyn RedoFiles,
        index: IndexId,
        (key, value): (&[u8], &[u8]),
    ) -> io::Result<()> {
        engine.push_load(index, key, value, &mut self.piece);
        if self.piece.len() < PIECE_BYTES { Ok(()) } else { self.write(files) }
    }

    fn write(&mut self, files: &dyn RedoFiles) -> io::Result<()> {
        let (mut file, before) = match self.open.take() {
            Some(open) => open,
            None => (files.create()?, 0),
        };
        file.write(&self.piece)?;
        let bytes = before + self.piece.len() as u64;
        self.piece.clear();
        match bytes < FILE_BYTES {
            true => self.open = Some((file, bytes)),
            false => self.full.push(file.finish()?),
        }
        Ok(())
    }

    /// Makes the files durable. Returns the redo for the commit.
    pub fn finish(mut self, files: &dyn RedoFiles) -> io::Result<Vec<Redo>> {
        if !self.piece.is_empty() {
            self.write(files)?;
        }
        if let Some((file, _)) = self.open.take() {
            self.full.push(file.finish()?);
        }
        Ok(self.full.into_iter().map(|file| Redo::in_file(file, None)).collect())
    }
}
