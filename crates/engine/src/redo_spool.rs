//! Redo that is written to files while a transaction or a load runs: [`RedoSpool`].

use std::io;

use crate::redo::{RedoFile, RedoFiles, RedoWriter};

/// Size from which a file is complete. Replay has a file in memory.
const FILE_BYTES: u64 = 64 << 20;

/// Redo in files.
#[derive(Default)]
pub struct RedoSpool {
    /// The file that is being written, and its length.
    open: Option<(Box<dyn RedoWriter>, u64)>,
    full: Vec<RedoFile>,
    /// Redo that is not written yet.
    pub piece: Vec<u8>,
}

impl RedoSpool {
    /// Writes the piece to the current file.
    pub fn write(&mut self, files: &dyn RedoFiles) -> io::Result<()> {
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

    /// Makes all written redo durable.
    pub fn finish(mut self) -> io::Result<Vec<RedoFile>> {
        if let Some((file, _)) = self.open {
            self.full.push(file.finish()?);
        }
        Ok(self.full)
    }
}
