//! Redo of a bulk load.
//!
//! A bulk load is durable by itself, so a crash needs no redo of it. A log that is archived must have it
//! nevertheless: a restore begins with an older state, which does not have the load. The redo is written to
//! files while the load runs, and belongs to the commit of the definition that makes the load visible. After
//! a crash it is replayed over the load, with the same result, because redo is absolute.

use std::io;

use cohort_base::IndexId;

use crate::redo::{Redo, RedoFiles};
use crate::redo_spool::RedoSpool;
use crate::traits::Engine;

/// Bytes that are written at a time.
const PIECE_BYTES: usize = 256 << 10;
/// Redo of the loads of one index, in files.
#[derive(Default)]
pub struct LoadRedo(RedoSpool);

impl LoadRedo {
    /// Adds an entry that the load of the engine gets, too.
    pub fn add(
        &mut self,
        engine: &dyn Engine,
        files: &dyn RedoFiles,
        index: IndexId,
        (key, value): (&[u8], &[u8]),
    ) -> io::Result<()> {
        engine.push_load(index, key, value, &mut self.0.piece);
        if self.0.piece.len() < PIECE_BYTES { Ok(()) } else { self.0.write(files) }
    }

    /// Makes the files durable. Returns the redo for the commit.
    pub fn finish(mut self, files: &dyn RedoFiles) -> io::Result<Vec<Redo>> {
        if !self.0.piece.is_empty() {
            self.0.write(files)?;
        }
        Ok(self.0.finish()?.into_iter().map(|file| Redo::in_file(file, None)).collect())
    }
}
