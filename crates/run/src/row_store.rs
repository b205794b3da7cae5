//! [`RowStore`]: rows stored for repeated reading, in memory, or on disk if they do not fit.

use cohort_types::{CountBytes, SqlResult, Value};

use crate::batch::{Batch, taken};
use crate::runtime::{Held, Run};
use crate::spill::{Chain, ChainReader, SpillFile};
use crate::storage::{Event, Kept};

/// Rows in insertion order.
#[derive(Default)]
pub(crate) struct RowStore {
    rows: Batch,
    held: Held,
    /// All rows, once they were spilled.
    spilled: Option<(SpillFile, Chain)>,
    /// Incremented when rows are removed or moved. Readers of an older generation must find their position
    /// again.
    generation: u64,
}

/// A read position in a store.
#[derive(Debug, Default)]
pub(crate) struct StoreReader {
    next: u64,
    generation: u64,
    chain: Option<ChainReader>,
    /// The row read last from disk.
    row: Vec<Value>,
}

impl RowStore {
    pub fn len(&self) -> u64 {
        self.spilled.as_ref().map_or(self.rows.len() as u64, |(_, chain)| chain.rows())
    }

    /// Appends a row and moves its values out.
    pub fn push(&mut self, run: Run<'_, '_>, row: &mut [Value]) -> SqlResult<()> {
        if let Some((file, chain)) = &mut self.spilled {
            run.eval.count_row(row)?;
            return chain.push(file, row);
        }
        let bytes = row.iter().map(Value::memory_bytes).sum();
        if self.held.bytes() + bytes > run.storage().operator_memory(Kept::Table) {
            self.spill(run)?;
            return self.push(run, row);
        }
        self.held.grow(run, bytes)?;
        self.rows.push(taken(row));
        Ok(())
    }

    fn spill(&mut self, run: Run<'_, '_>) -> SqlResult<()> {
        run.storage().note(Event::TableOnDisk);
        let file = SpillFile::create(run)?;
        let mut chain = Chain::default();
        for row in self.rows.iter() {
            run.eval.count_row(row)?;
            chain.push(&file, row)?;
        }
        self.spilled = Some((file, chain));
        self.generation += 1;
        self.rows = Batch::new();
        self.held.release(run);
        Ok(())
    }

    /// Removes all rows and releases the memory.
    pub fn clear(&mut self, run: Run<'_, '_>) {
        self.rows.clear();
        self.spilled = None;
        self.generation += 1;
        self.held.release(run);
    }

    /// Returns the n-th row.
    pub fn row<'s>(&'s self, reader: &'s mut StoreReader, n: u64) -> SqlResult<&'s [Value]> {
        let Some((file, chain)) = &self.spilled else { return Ok(self.rows.row(n as usize)) };
        reader.follow(self);
        // The row read last is often requested again.
        if reader.chain.is_some() && reader.next == n + 1 && !reader.row.is_empty() {
            return Ok(&reader.row);
        }
        if reader.chain.is_none() || reader.next != n {
            reader.chain.get_or_insert_default().seek(file, chain, n)?;
        }
        reader.row.clear();
        reader.chain.get_or_insert_default().next(file, chain, &mut reader.row)?;
        reader.next = n + 1;
        Ok(&reader.row)
    }

    /// Appends at most `want` rows from the reader's position on, none from `end` on. Returns their number.
    pub fn read(&self, reader: &mut StoreReader, end: u64, out: &mut Batch, want: usize) -> SqlResult<usize> {
        let most = end.saturating_sub(reader.next).min(want as u64) as usize;
        let mut rows = 0;
        match &self.spilled {
            None => {
                while rows < most && !out.is_full() {
                    out.push(self.rows.row(reader.next as usize + rows).iter().cloned());
                    rows += 1;
                }
            }
            Some((file, chain)) => {
                reader.follow(self);
                if reader.chain.is_none() {
                    reader.chain.get_or_insert_default().seek(file, chain, reader.next)?;
                }
                let from = reader.chain.get_or_insert_default();
                while rows < most && !out.is_full() {
                    from.next(file, chain, out.open_row())?;
                    out.end_row();
                    rows += 1;
                }
            }
        }
        reader.next += rows as u64;
        Ok(rows)
    }
}

impl StoreReader {
    /// Discards cached state of an older generation.
    fn follow(&mut self, store: &RowStore) {
        if self.generation != store.generation {
            self.generation = store.generation;
            self.chain = None;
            self.row.clear();
        }
    }

    /// Creates a reader positioned before the n-th row.
    pub fn at(n: u64) -> StoreReader {
        StoreReader { next: n, ..StoreReader::default() }
    }
}
