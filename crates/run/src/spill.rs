//! Rows on disk, for operators that exceed their memory limit.
//!
//! # Concepts
//! An operator has one [`SpillFile`], an anonymous temporary file that is deleted when it is dropped. A
//! [`Chain`] is a sequence of rows in it: a sorted run, a partition, a table. A chain collects rows in a
//! block and appends full blocks to the file, which lets any number of chains grow concurrently. A row never
//! spans blocks. A [`ChainReader`] reads a chain from any row on; there may be many readers at once.
//!
//! # On failure
//! A full disk fails the statement with error 1021, any other failure with error 3 or 2. The data is dropped
//! with the file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cohort_types::{SqlError, SqlResult, Value, append_row, take_row};

use cohort_vfs::SharedFile;

use crate::runtime::Run;

/// Size at which a block is written.
const BLOCK_BYTES: usize = 32 << 10;

/// A temporary file shared by many chains.
#[derive(Clone)]
pub(crate) struct SpillFile {
    file: SharedFile,
    end: Arc<AtomicU64>,
}

impl SpillFile {
    pub fn create(run: Run<'_, '_>) -> SqlResult<SpillFile> {
        let file = run.storage().spill_file()?;
        Ok(SpillFile { file, end: Arc::default() })
    }

    fn append(&self, bytes: &[u8]) -> SqlResult<u64> {
        let at = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file.write_at(bytes, at).map_err(|error| SqlError::temporary_file(&error, "writing"))?;
        Ok(at)
    }
}

/// Rows in a file, in insertion order.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    blocks: Vec<Block>,
    /// Rows not yet written to the file.
    tail: Vec<u8>,
    /// Number of the first of these.
    tail_first: u64,
    rows: u64,
}

#[derive(Debug)]
struct Block {
    offset: u64,
    bytes: usize,
    first_row: u64,
}

impl Chain {
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Appends a row.
    pub fn push(&mut self, file: &SpillFile, row: &[Value]) -> SqlResult<()> {
        append_row(row, &mut self.tail);
        self.rows += 1;
        if self.tail.len() >= BLOCK_BYTES { self.write_tail(file) } else { Ok(()) }
    }

    fn write_tail(&mut self, file: &SpillFile) -> SqlResult<()> {
        let offset = file.append(&self.tail)?;
        self.blocks.push(Block { offset, bytes: self.tail.len(), first_row: self.tail_first });
        self.tail_first = self.rows;
        self.tail.clear();
        Ok(())
    }

    /// Ends writing and frees the buffer.
    pub fn finish(&mut self, file: &SpillFile) -> SqlResult<()> {
        if !self.tail.is_empty() {
            self.write_tail(file)?;
        }
        self.tail = Vec::new();
        Ok(())
    }
}

/// A read position in a chain.
#[derive(Debug, Default)]
pub(crate) struct ChainReader {
    /// The next block to read; one past the last means the tail.
    next_block: usize,
    buffer: Vec<u8>,
    at: usize,
}

impl ChainReader {
    /// Positions the reader at a row.
    pub fn seek(&mut self, file: &SpillFile, chain: &Chain, row: u64) -> SqlResult<()> {
        let end = chain.blocks.partition_point(|block| block.first_row <= row);
        let (block, first) = if row >= chain.tail_first || end == 0 {
            (chain.blocks.len(), chain.tail_first)
        } else {
            (end - 1, chain.blocks[end - 1].first_row)
        };
        self.next_block = block;
        self.buffer.clear();
        self.at = 0;
        let mut passed = Vec::new();
        for _ in first..row {
            passed.clear();
            if !self.next(file, chain, &mut passed)? {
                break;
            }
        }
        Ok(())
    }

    /// Appends the values of the next row. Returns false at the end.
    pub fn next(&mut self, file: &SpillFile, chain: &Chain, out: &mut Vec<Value>) -> SqlResult<bool> {
        if self.at == self.buffer.len() && !self.load(file, chain)? {
            return Ok(false);
        }
        self.at += take_row(&self.buffer[self.at..], out).ok_or_else(damaged)?;
        Ok(true)
    }

    /// Returns the bytes of the current block.
    pub fn buffer_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    fn load(&mut self, file: &SpillFile, chain: &Chain) -> SqlResult<bool> {
        self.at = 0;
        self.buffer.clear();
        match chain.blocks.get(self.next_block) {
            Some(block) => {
                self.buffer.resize(block.bytes, 0);
                let read = file.file.read_at(&mut self.buffer, block.offset);
                let read = read.map_err(|error| SqlError::temporary_file(&error, "reading"))?;
                if read < block.bytes {
                    return Err(damaged());
                }
            }
            None if self.next_block == chain.blocks.len() => self.buffer.extend_from_slice(&chain.tail),
            None => {}
        }
        self.next_block += 1;
        Ok(!self.buffer.is_empty())
    }
}

fn damaged() -> SqlError {
    SqlError::temporary_file_damaged()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_read_from_any_row_on() {
        let fs = cohort_vfs::MemFs::new();
        let path = std::path::Path::new("spill");
        let open = cohort_vfs::Fs::open(&fs, path, cohort_vfs::OpenMode::CreateNew);
        let file = SpillFile { file: open.expect("a file"), end: Arc::default() };
        let (mut chain, mut other) = (Chain::default(), Chain::default());
        let rows = 20_000;
        for n in 0..rows {
            chain.push(&file, &[Value::Int(n), Value::text("x".repeat(n as usize % 30))]).expect("fits");
            other.push(&file, &[]).expect("fits");
        }
        for sealed in [false, true] {
            if sealed {
                chain.finish(&file).expect("fits");
                other.finish(&file).expect("fits");
            }
            for from in [0, 1, 999, 12_345, rows - 1, rows] {
                let mut reader = ChainReader::default();
                reader.seek(&file, &chain, from as u64).expect("reads");
                let mut row = Vec::new();
                for n in from..rows {
                    row.clear();
                    assert!(reader.next(&file, &chain, &mut row).expect("reads"));
                    assert_eq!(row[0], Value::Int(n));
                }
                assert!(!reader.next(&file, &chain, &mut row).expect("reads"));
            }
            let mut reader = ChainReader::default();
            let mut count = 0;
            while reader.next(&file, &other, &mut Vec::new()).expect("reads") {
                count += 1;
            }
            assert_eq!(count, rows, "rows without columns");
        }
    }
}
