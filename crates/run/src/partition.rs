//! Hash partitions of spilled rows, for operators whose keys do not all fit into memory.
//!
//! An operator keeps the keys that fit and spills the rows of other keys. When it is done with those in
//! memory, it processes one partition after the other in the same way. Each is one level deeper and is
//! partitioned by other bits of the hash. Every round keeps some keys, so this terminates.

use cohort_types::{Interrupt, SqlResult, Value};

use crate::batch::Batch;
use crate::runtime::Run;
use crate::spill::{Chain, ChainReader, SpillFile};

/// Number of partitions per level.
pub(crate) const FAN_OUT: usize = 16;

/// A partition of spilled rows.
pub(crate) struct Partition {
    pub file: SpillFile,
    pub chain: Chain,
    pub level: u32,
}

/// Partitions being written.
pub(crate) struct Partitions {
    pub file: SpillFile,
    chains: Vec<Chain>,
    level: u32,
}

impl Partitions {
    pub fn new(file: SpillFile, level: u32) -> Partitions {
        Partitions { file, chains: (0..FAN_OUT).map(|_| Chain::default()).collect(), level }
    }

    /// Spills a row.
    pub fn push(&mut self, run: Run<'_, '_>, hash: u64, row: &[Value]) -> SqlResult<()> {
        run.eval.step()?;
        // A 64-bit hash has four bits for each of sixteen levels.
        let which = hash.rotate_left(4 * (self.level % 16 + 1)) as usize % FAN_OUT;
        self.chains[which].push(&self.file, row)
    }

    /// Ends writing and returns all partitions, including empty ones.
    pub fn finish(mut self) -> SqlResult<Vec<Partition>> {
        for chain in &mut self.chains {
            chain.finish(&self.file)?;
        }
        let (file, level) = (self.file, self.level + 1);
        Ok(self.chains.into_iter().map(|chain| Partition { file: file.clone(), chain, level }).collect())
    }
}

/// A reader of a partition.
pub(crate) struct PartitionReader {
    partition: Partition,
    reader: ChainReader,
}

impl PartitionReader {
    pub fn new(partition: Partition) -> PartitionReader {
        PartitionReader { partition, reader: ChainReader::default() }
    }

    /// Replaces the batch with at most `want` rows. Returns false at the end.
    pub fn refill(&mut self, run: Run<'_, '_>, batch: &mut Batch, want: usize) -> SqlResult<bool> {
        batch.clear();
        while batch.has_room(want.min(run.state.batch_rows)) {
            run.eval.step()?;
            if !self.reader.next(&self.partition.file, &self.partition.chain, batch.open_row())? {
                break;
            }
            batch.end_row();
        }
        Ok(!batch.is_empty())
    }
}
