//! DISTINCT, EXCEPT and INTERSECT of two inputs: rows are returned depending on earlier rows with the same
//! key.
//!
//! # Concepts
//! Every key of the right side has a count. Then the rows of the left side are looked up; DISTINCT is EXCEPT
//! without a right side. If a key does not fit into memory, its rows are spilled, of both sides, and
//! processed after the others ([`crate::partition`]). So rows are returned in the order of the left side as
//! long as nothing is spilled.

use cohort_optimize::SetOperation;
use cohort_types::{Collation, SqlResult};

use crate::batch::{Batch, taken};
use crate::key_table::{KeyBatch, KeyTable};
use crate::operator::{Input, Operator};
use crate::partition::{Partition, PartitionReader, Partitions};
use crate::runtime::{Held, Run};
use crate::spill::SpillFile;
use crate::storage::{Event, Kept};

/// The operator for EXCEPT, INTERSECT and DISTINCT.
pub(crate) struct SetOperator<'p> {
    left: Input<'p>,
    right: Option<Input<'p>>,
    wants_common: bool,
    all: bool,
    collations: &'p [Collation],
    table: KeyTable,
    /// Per key: the remaining rows of the right side, or whether the key may still be returned.
    counts: Vec<u64>,
    /// Keys of the current rows.
    keys: KeyBatch,
    held: Held,
    memory: usize,
    spilled: Option<Spilled>,
    pending: Vec<(Partition, Partition)>,
    level: u32,
    source: Source,
    rows: Batch,
}

/// Spilled rows of both sides.
struct Spilled {
    left: Partitions,
    right: Partitions,
}

/// Source of the left rows.
enum Source {
    /// The right side has not been read.
    Unread,
    Input,
    Partition(PartitionReader),
    Done,
}

impl<'p> SetOperator<'p> {
    pub fn operation(node: &'p SetOperation, left: Input<'p>, right: Input<'p>) -> SetOperator<'p> {
        let distinct = SetOperator::distinct(left, &node.collations);
        SetOperator { right: Some(right), wants_common: node.wants_common, all: node.all, ..distinct }
    }

    pub fn distinct(input: Input<'p>, collations: &'p [Collation]) -> SetOperator<'p> {
        SetOperator {
            left: input,
            right: None,
            wants_common: false,
            all: false,
            collations,
            table: KeyTable::default(),
            counts: Vec::new(),
            keys: KeyBatch::default(),
            held: Held::default(),
            memory: 0,
            spilled: None,
            pending: Vec::new(),
            level: 0,
            source: Source::Unread,
            rows: Batch::new(),
        }
    }

    fn clear(&mut self, run: Run<'_, 'p>) {
        self.clear_table(run);
        self.spilled = None;
        self.pending.clear();
        self.level = 0;
        self.source = Source::Unread;
    }

    fn clear_table(&mut self, run: Run<'_, 'p>) {
        self.table.clear();
        self.counts.clear();
        self.held.release(run);
    }

    /// Computes the keys of the rows.
    fn hash(&mut self, run: Run<'_, 'p>, rows: &Batch) -> SqlResult<()> {
        self.keys.take_rows(rows, self.collations, &self.table, run.eval)
    }

    /// Adds the key of the n-th row. Returns false if its rows must be spilled.
    fn add_key(&mut self, run: Run<'_, 'p>, n: usize, count: u64) -> SqlResult<bool> {
        if self.spilled.is_some() {
            return Ok(false);
        }
        let (hashed, key) = self.keys.key(n);
        self.held.grow(run, KeyTable::bytes_for(key) + size_of::<u64>())?;
        self.table.insert(&hashed, key);
        self.counts.push(count);
        if self.held.bytes() > self.memory {
            if self.level == 0 {
                run.storage().note(Event::TableOnDisk);
            }
            let file = SpillFile::create(run)?;
            let right = Partitions::new(file.clone(), self.level);
            self.spilled = Some(Spilled { left: Partitions::new(file, self.level), right });
        }
        Ok(true)
    }

    fn take_right(&mut self, run: Run<'_, 'p>, rows: &Batch) -> SqlResult<()> {
        self.hash(run, rows)?;
        for (n, row) in rows.iter().enumerate() {
            let (hashed, key) = self.keys.key(n);
            match self.table.find(&hashed, key) {
                Some(number) => self.counts[number] += u64::from(self.all),
                None if self.add_key(run, n, 1)? => {}
                None => {
                    if let Some(spilled) = &mut self.spilled {
                        spilled.right.push(run, hashed.hash, row)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns true if a left row, whose key was hashed, is to be returned now.
    fn take_left(&mut self, run: Run<'_, 'p>, n: usize) -> SqlResult<bool> {
        let (hashed, key) = self.keys.key(n);
        Ok(match self.table.find(&hashed, key) {
            Some(number) => {
                let count = &mut self.counts[number];
                let matched = *count > 0;
                if self.all || self.wants_common {
                    *count = count.saturating_sub(1);
                }
                if self.all { matched == self.wants_common } else { matched && self.wants_common }
            }
            None => match &mut self.spilled {
                Some(spilled) => {
                    spilled.left.push(run, hashed.hash, self.rows.row(n))?;
                    false
                }
                // A returned key is recorded, so that it is not returned again.
                None => !self.wants_common && (self.all || self.add_key(run, n, 0)?),
            },
        })
    }

    /// Replaces the batch with rows of the left side. Returns false if there are no more.
    fn refill(&mut self, run: Run<'_, 'p>, want: usize) -> SqlResult<bool> {
        loop {
            let more = match &mut self.source {
                Source::Unread => {
                    self.read_right(run)?;
                    self.source = Source::Input;
                    continue;
                }
                Source::Input => self.left.refill(run, &mut self.rows, want)?,
                Source::Partition(reader) => reader.refill(run, &mut self.rows, want)?,
                Source::Done => return Ok(false),
            };
            if more {
                return Ok(true);
            }
            if let Some(spilled) = self.spilled.take() {
                self.pending.extend(spilled.left.finish()?.into_iter().zip(spilled.right.finish()?));
            }
            self.clear_table(run);
            let Some((left, right)) = self.pending.pop() else {
                self.source = Source::Done;
                return Ok(false);
            };
            self.level = left.level;
            let mut reader = PartitionReader::new(right);
            while reader.refill(run, &mut self.rows, run.state.batch_rows)? {
                let rows = std::mem::take(&mut self.rows);
                self.take_right(run, &rows)?;
                self.rows = rows;
            }
            self.source = Source::Partition(PartitionReader::new(left));
        }
    }

    fn read_right(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        let Some(mut right) = self.right.take() else { return Ok(()) };
        right.open(run)?;
        let mut batch = Batch::new();
        while right.refill_all(run, &mut batch)? {
            self.take_right(run, &batch)?;
        }
        self.right = Some(right);
        Ok(())
    }
}

impl<'p> Operator<'p> for SetOperator<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.clear(run);
        self.memory = run.storage().operator_memory(Kept::Table);
        self.left.open(run)
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        let before = out.len();
        while out.len() == before && self.refill(run, want)? {
            let rows = std::mem::take(&mut self.rows);
            self.hash(run, &rows)?;
            self.rows = rows;
            for n in 0..self.rows.len() {
                if self.take_left(run, n)? {
                    out.push(taken(self.rows.row_mut(n)));
                }
            }
        }
        Ok(())
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.clear(run);
        self.left.close(run);
        if let Some(right) = &mut self.right {
            right.close(run);
        }
    }
}
