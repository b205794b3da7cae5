//! Rows put aside by the hash of a key, for operators that have no memory for all keys at once.
//!
//! An operator keeps what it has and puts rows of other keys aside. When it is done with those it keeps, it
//! takes one partition after the other in the same way: each is a level deeper, where other bits of the hash
//! decide. As every round keeps some keys, this comes to an end.

use cohort_types::{Interrupt, SqlResult, Value};

use crate::batch::Batch;
use crate::runtime::Run;
use crate::spill::{Chain, ChainReader, SpillFile};

/// Partitions of a level.
pub(crate) const FAN_OUT: usize = 16;

/// Rows that were put aside.
pub(crate) struct Partition {
    pub file: SpillFile,
    pub chain: Chain,
    pub level: u32,
}

/// Rows that are being put aside.
pub(crate) struct Partitions {
    pub file: SpillFile,
    chains: Vec<Chain>,
    level: u32,
}

impl Partitions {
    pub fn new(file: SpillFile, level: u32) -> Partitions {
        Partitions { file, chains: (0..FAN_OUT).map(|_| Chain::default()).collect(), level }
    }

    /// Puts a row aside.
    pub fn push(&mut self, run: Run<'_, '_>, hash: u64, row: &[Value]) -> SqlResult<()> {
        run.eval.step()?;
        // Hashes of 64 bits have four for each of sixteen levels.
        let which = hash.rotate_left(4 * (self.level % 16 + 1)) as usize % FAN_OUT;
        self.chains[which].push(&self.file, row)
    }

    /// No more rows come: all partitions, also those without rows.
    pub fn finish(mut self) -> SqlResult<Vec<Partition>> {
        for chain in &mut self.chains {
            chain.finish(&self.file)?;
        }
        let (file, level) = (self.file, self.level + 1);
        Ok(self.chains.into_iter().map(|chain| Partition { file: file.clone(), chain, level }).collect())
    }
}

/// Reads a partition.
pub(crate) struct PartitionReader {
    partition: Partition,
    reader: ChainReader,
}

impl PartitionReader {
    pub fn new(partition: Partition) -> PartitionReader {
        PartitionReader { partition, reader: ChainReader::default() }
    }

    /// Replaces the batch by at most `want` rows; false at the end.
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
