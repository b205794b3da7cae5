//! Hash join: left rows are looked up in a hash table of the right rows.
//!
//! # States
//! - *unbuilt*: the table is built when the first left row arrives;
//! - *whole*: all right rows with keys that are not NULL are in memory. Rows are returned in the order of the
//!   left rows. The table is reused when the join is opened again, unless the right rows may have changed;
//! - *partitioned*: the right rows do not fit into memory. The rows of both sides are spilled to
//!   partitions ([`crate::partition`]), which are joined one after the other, so rows are returned in no
//!   particular order. A right partition that does not fit is partitioned again, unless it is at level
//!   [`DEEPEST`] or all of its rows read so far have the same key, which partitioning cannot separate. Such
//!   a partition is kept in memory beyond the limit. A partitioned join is rebuilt when it is opened again.
//!
//! # Invariants
//! - Both sides are partitioned by the same function of the key at each level.
//! - Left rows with a NULL key match nothing; an outer join keeps them.
//! - The join changes to another state only before it has returned a row.
//!
//! # Vectorized
//! If the consumer reads vectors, the join works on columns ([`VectorHash`]). If the right rows do not fit,
//! which is known before the first row is returned, it partitions the rows of both sides as above.

use cohort_expr::Expr;
use cohort_optimize::{HashKey, Join, JoinKind, JoinMethod};
use cohort_types::{Collation, Interrupt, SqlResult, Value, VectorType};

use super::left::Left;
use super::vector_hash::{Progress, VectorHash};
use crate::batch::{Batch, taken};
use crate::equal_key::{KeyMode, append_equal_key};
use crate::key_table::{Hashed, KeyBatch, KeyTable};
use crate::operator::{Input, Operator};
use crate::partition::{Partition, PartitionReader, Partitions};
use crate::runtime::{Held, Run};
use crate::spill::SpillFile;
use crate::storage::Kept;
use crate::vector_source::VectorSource;
use crate::vectors::{Vectors, push_rows};

/// Maximum number of partitioning levels.
const DEEPEST: u32 = 6;

/// Row number that means no row.
const NONE: u32 = u32::MAX;

/// The hash join operator.
pub(crate) struct Hash<'p> {
    join: &'p Join,
    left: Left<'p>,
    right: Input<'p>,
    keys: Vec<Key<'p>>,
    right_width: usize,
    /// The right rows may change when the join is opened again.
    varies: bool,
    table: Table,
    built: Built,
    /// Keys of the current rows.
    batch: KeyBatch,
    /// For each of them, true if its key contains a NULL.
    without_key: Vec<bool>,
    /// First match of each row in the left batch.
    first: Vec<u32>,
    key: Vec<u8>,
    /// The next match to join; `None` if the next left row comes first.
    matching: Option<u32>,
    pending: Vec<(Partition, Partition)>,
    /// The vectorized join, once the consumer reads vectors.
    vectors: Option<Box<VectorHash<'p>>>,
}

#[derive(PartialEq)]
enum Built {
    No,
    Whole,
    Parted,
}

/// One equality of the join key, with its comparison mode.
struct Key<'p> {
    left: &'p Expr,
    right: &'p Expr,
    collation: Collation,
    mode: KeyMode,
}

impl<'p> Key<'p> {
    fn new(key: &'p HashKey) -> Key<'p> {
        let mode = KeyMode::of(&key.left, &key.right);
        Key { left: &key.left, right: &key.right, collation: key.collation, mode }
    }
}

/// Right rows by key.
#[derive(Default)]
struct Table {
    keys: KeyTable,
    rows: Batch,
    /// First and last row of each key. Empty while all keys are distinct; then the n-th key is that of the
    /// n-th row.
    chains: Vec<(u32, u32)>,
    /// The next row with the same key, for each row. Empty while `chains` is empty.
    next: Vec<u32>,
    held: Held,
    memory: usize,
    /// Only one row per key is needed.
    keeps_first: bool,
}

impl Table {
    fn clear(&mut self, run: Run<'_, '_>) {
        self.keys.clear();
        self.chains.clear();
        self.rows.clear();
        self.next.clear();
        self.held.release(run);
    }

    /// Adds a row and moves its values out.
    fn add(&mut self, run: Run<'_, '_>, hashed: &Hashed, key: &[u8], row: &mut [Value]) -> SqlResult<()> {
        let number = self.rows.len() as u32;
        let mut bytes = row.iter().map(Value::memory_bytes).sum::<usize>() + 3 * size_of::<u32>();
        let chain = self.keys.find(hashed, key);
        if chain.is_some() && self.keeps_first {
            return Ok(());
        }
        if chain.is_some() && self.next.is_empty() {
            self.chains = (0..number).map(|row| (row, row)).collect();
            self.next = vec![NONE; self.rows.len()];
        }
        match chain {
            Some(chain) => {
                let last = std::mem::replace(&mut self.chains[chain].1, number);
                self.next[last as usize] = number;
            }
            None => {
                bytes += KeyTable::bytes_for(key);
                self.keys.insert(hashed, key);
                if !self.next.is_empty() {
                    self.chains.push((number, number));
                }
            }
        }
        if !self.next.is_empty() {
            self.next.push(NONE);
        }
        self.rows.push(taken(row));
        self.held.grow(run, bytes)
    }

    /// Returns the first row of a key.
    #[inline]
    fn first(&self, hashed: &Hashed, key: &[u8]) -> u32 {
        match self.keys.find(hashed, key) {
            Some(number) => self.chains.get(number).map_or(number as u32, |chain| chain.0),
            None => NONE,
        }
    }

    /// Touches the given rows to bring them into the cache before the join ([`KeyTable::touch`]).
    fn touch(&self, rows: &[u32]) {
        let present = rows.iter().filter(|row| **row != NONE);
        let nulls = present.filter(|row| self.rows.row(**row as usize).first().is_some_and(Value::is_null));
        std::hint::black_box(nulls.count());
    }

    /// Returns the next row with the same key.
    #[inline]
    fn next_match(&self, row: u32) -> u32 {
        self.next.get(row as usize).copied().unwrap_or(NONE)
    }

    fn is_full(&self) -> bool {
        self.held.bytes() > self.memory || self.rows.len() >= NONE as usize - 1
    }
}

/// Replaces `key` by the key of a row. Returns false if a part is NULL, which equals nothing.
#[inline]
fn make_key<'p>(
    keys: &[Key<'p>],
    side: impl Fn(&Key<'p>) -> &'p Expr,
    row: &[Value],
    run: Run<'_, '_>,
    key: &mut Vec<u8>,
) -> SqlResult<bool> {
    key.clear();
    append_key(keys, side, row, run, key)
}

/// Appends the key of a row.
#[inline]
fn append_key<'p>(
    keys: &[Key<'p>],
    side: impl Fn(&Key<'p>) -> &'p Expr,
    row: &[Value],
    run: Run<'_, '_>,
    key: &mut Vec<u8>,
) -> SqlResult<bool> {
    for part in keys {
        let value = match part.mode {
            KeyMode::Real => side(part).eval(row, run.eval)?,
            _ => side(part).eval_output(row, run.eval)?,
        };
        if value.is_null() {
            return Ok(false);
        }
        append_equal_key(&value, part.mode, part.collation, key, run.eval)?;
    }
    Ok(true)
}

impl<'p> Hash<'p> {
    pub fn new(
        join: &'p Join,
        left: Input<'p>,
        right: Input<'p>,
        (keys, right_width): (&'p [HashKey], usize),
        varies: bool,
    ) -> Hash<'p> {
        let is_filter = matches!(join.kind, JoinKind::Semi | JoinKind::Anti);
        let table = Table { keeps_first: is_filter && join.on.is_none(), ..Table::default() };
        Hash {
            join,
            left: Left::new(join, left),
            right,
            keys: keys.iter().map(Key::new).collect(),
            right_width,
            varies,
            table,
            built: Built::No,
            batch: KeyBatch::default(),
            without_key: Vec::new(),
            first: Vec::new(),
            key: Vec::new(),
            matching: None,
            pending: Vec::new(),
            vectors: None,
        }
    }

    fn drop_vectors(&mut self, run: Run<'_, 'p>) {
        if let Some(mut vectors) = self.vectors.take() {
            vectors.release(run);
        }
    }

    /// Switches from vectors to partitions: partitions the rows of both sides.
    fn part_vectors(&mut self, run: Run<'_, 'p>, mut vectors: VectorHash<'p>) -> SqlResult<()> {
        let mut right = Partitions::new(SpillFile::create(run)?, 0);
        let stored = std::mem::take(&mut vectors.stored);
        self.part_each(run, &stored, |key| key.right, &mut right)?;
        drop(stored);
        vectors.release(run);
        self.part_each(run, &vectors.right, |key| key.right, &mut right)?;
        while vectors.right_source.next(&mut self.right, run, &mut vectors.right)? {
            self.part_each(run, &vectors.right, |key| key.right, &mut right)?;
        }
        let mut left = Partitions::new(right.file.clone(), 0);
        self.part_each(run, &vectors.left, |key| key.left, &mut left)?;
        while vectors.left_source.next(&mut self.left.input, run, &mut vectors.left)? {
            self.part_each(run, &vectors.left, |key| key.left, &mut left)?;
        }
        self.pending.extend(left.finish()?.into_iter().zip(right.finish()?));
        self.table.memory = run.storage().operator_memory(Kept::Joined);
        self.left.end_input();
        self.built = Built::Parted;
        Ok(())
    }

    fn part_each(
        &mut self,
        run: Run<'_, 'p>,
        rows: &Vectors,
        side: impl Fn(&Key<'p>) -> &'p Expr + Copy,
        spilled: &mut Partitions,
    ) -> SqlResult<()> {
        let mut row = Vec::new();
        for n in 0..rows.rows {
            row.clear();
            row.extend(rows.row(n));
            make_key(&self.keys, side, &row, run, &mut self.key)?;
            spilled.push(run, self.table.keys.hash(&self.key).hash, &row)?;
        }
        Ok(())
    }

    /// Reads the right side.
    fn build(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.table.clear(run);
        self.table.memory = run.storage().operator_memory(Kept::Joined);
        self.right.open(run)?;
        let mut spilled: Option<Partitions> = None;
        let mut batch = Batch::new();
        while self.right.refill_all(run, &mut batch)? {
            let mut from = 0;
            while from < batch.len() {
                self.hash(run, |key| key.right, &batch, from)?;
                for n in 0..self.without_key.len() {
                    if self.without_key[n] {
                        continue;
                    }
                    let (hashed, key) = self.batch.key(n);
                    if let Some(spilled) = &mut spilled {
                        spilled.push(run, hashed.hash, batch.row(from + n))?;
                        continue;
                    }
                    self.table.add(run, &hashed, key, batch.row_mut(from + n))?;
                    if self.table.is_full() {
                        spilled = Some(self.spill_table(run, 0)?);
                    }
                }
                from += self.without_key.len();
            }
        }
        match spilled {
            None => self.built = Built::Whole,
            Some(right) => {
                self.built = Built::Parted;
                self.part_left(run, right)?;
            }
        }
        Ok(())
    }

    /// Computes the keys of the rows from `from` on, or of the first of these if keys are large.
    fn hash(
        &mut self,
        run: Run<'_, 'p>,
        side: impl Fn(&Key<'p>) -> &'p Expr + Copy,
        rows: &Batch,
        from: usize,
    ) -> SqlResult<()> {
        self.batch.clear();
        self.without_key.clear();
        for row in rows.iter().skip(from) {
            if self.batch.is_full() {
                break;
            }
            let has_key = append_key(&self.keys, side, row, run, self.batch.open_key())?;
            self.batch.end_key(&self.table.keys);
            self.without_key.push(!has_key);
        }
        self.table.keys.touch(&self.batch);
        Ok(())
    }

    /// Finds the first match of each row in the left batch.
    fn match_batch(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        let rows = std::mem::take(&mut self.left.rows);
        self.first.clear();
        while self.first.len() < rows.len() {
            self.hash(run, |key| key.left, &rows, self.first.len())?;
            for (n, without_key) in self.without_key.iter().enumerate() {
                let (hashed, key) = self.batch.key(n);
                self.first.push(if *without_key { NONE } else { self.table.first(&hashed, key) });
            }
        }
        self.left.rows = rows;
        self.table.touch(&self.first);
        Ok(())
    }

    /// Spills the table's rows to partitions.
    fn spill_table(&mut self, run: Run<'_, 'p>, level: u32) -> SqlResult<Partitions> {
        let file = SpillFile::create(run)?;
        let mut spilled = Partitions::new(file, level);
        for row in self.table.rows.iter() {
            make_key(&self.keys, |key| key.right, row, run, &mut self.key)?;
            spilled.push(run, self.table.keys.hash(&self.key).hash, row)?;
        }
        self.table.clear(run);
        Ok(spilled)
    }

    /// Spills the left rows to partitions, starting with the current one.
    fn part_left(&mut self, run: Run<'_, 'p>, right: Partitions) -> SqlResult<()> {
        let mut left = Partitions::new(right.file.clone(), 0);
        loop {
            let row = self.left.row();
            // A row with a NULL in its key has no match in any partition.
            make_key(&self.keys, |key| key.left, row, run, &mut self.key)?;
            left.push(run, self.table.keys.hash(&self.key).hash, row)?;
            if !self.left.advance(run, run.state.batch_rows)? {
                break;
            }
        }
        self.pending.extend(left.finish()?.into_iter().zip(right.finish()?));
        Ok(())
    }

    /// Starts the next pair of partitions. Returns false if none is left.
    fn next_partition(&mut self, run: Run<'_, 'p>) -> SqlResult<bool> {
        let mut batch = Batch::new();
        'pairs: while let Some((left, right)) = self.pending.pop() {
            run.eval.step()?;
            let needs_right = matches!(self.left.kind, JoinKind::Inner | JoinKind::Semi);
            if left.chain.rows() == 0 || (needs_right && right.chain.rows() == 0) {
                continue;
            }
            self.table.clear(run);
            let level = right.level;
            let mut reader = PartitionReader::new(right);
            while reader.refill(run, &mut batch, run.state.batch_rows)? {
                for n in 0..batch.len() {
                    make_key(&self.keys, |key| key.right, batch.row(n), run, &mut self.key)?;
                    let hashed = self.table.keys.hash(&self.key);
                    self.table.add(run, &hashed, &self.key, batch.row_mut(n))?;
                    if self.table.is_full() && level < DEEPEST && self.table.keys.len() > 1 {
                        let mut spilled = self.spill_table(run, level)?;
                        for row in (n + 1..batch.len()).map(|n| batch.row(n)) {
                            self.part_again(run, row, false, &mut spilled)?;
                        }
                        while reader.refill(run, &mut batch, run.state.batch_rows)? {
                            batch
                                .iter()
                                .try_for_each(|row| self.part_again(run, row, false, &mut spilled))?;
                        }
                        let mut left_spilled = Partitions::new(spilled.file.clone(), level);
                        let mut reader = PartitionReader::new(left);
                        while reader.refill(run, &mut batch, run.state.batch_rows)? {
                            batch
                                .iter()
                                .try_for_each(|row| self.part_again(run, row, true, &mut left_spilled))?;
                        }
                        self.pending.extend(left_spilled.finish()?.into_iter().zip(spilled.finish()?));
                        continue 'pairs;
                    }
                }
            }
            self.left.read_partition(PartitionReader::new(left));
            return Ok(true);
        }
        Ok(false)
    }

    fn part_again(
        &mut self,
        run: Run<'_, 'p>,
        row: &[Value],
        is_left: bool,
        spilled: &mut Partitions,
    ) -> SqlResult<()> {
        let side = |key: &Key<'p>| if is_left { key.left } else { key.right };
        make_key(&self.keys, side, row, run, &mut self.key)?;
        spilled.push(run, self.table.keys.hash(&self.key).hash, row)
    }

    /// Advances to the next left row and finds its matches. Returns false at the end.
    fn advance(&mut self, run: Run<'_, 'p>, want: usize) -> SqlResult<bool> {
        while !self.left.advance(run, want)? {
            if self.built != Built::Parted || !self.next_partition(run)? {
                return Ok(false);
            }
        }
        if self.built == Built::No {
            self.build(run)?;
            if self.built == Built::Parted {
                return self.advance(run, want);
            }
        }
        if self.left.at == 0 {
            self.match_batch(run)?;
        }
        self.matching = Some(self.first[self.left.at]);
        Ok(true)
    }
}

impl<'p> Operator<'p> for Hash<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.matching = None;
        self.pending.clear();
        if self.varies || self.built == Built::Parted {
            self.built = Built::No;
            self.table.clear(run);
            self.drop_vectors(run);
        }
        if let Some(vectors) = &mut self.vectors {
            vectors.restart();
        }
        self.left.open(run)
    }

    fn vector_types(&mut self, run: Run<'_, 'p>) -> SqlResult<Option<Vec<VectorType>>> {
        // A table of rows that is already built is as good.
        if self.built != Built::No {
            return Ok(None);
        }
        let JoinMethod::Hash { right: right_node, keys, .. } = &self.join.method else { return Ok(None) };
        match &mut self.vectors {
            Some(vectors) if vectors.is_built => {
                let Some((source, _)) = VectorSource::of(&mut self.left.input, &self.join.left, run)? else {
                    return Ok(None);
                };
                vectors.left_source = source;
            }
            _ => {
                self.drop_vectors(run);
                let inputs = (&mut self.left.input, &mut self.right);
                self.vectors = VectorHash::new(self.join, keys, inputs, right_node, run)?.map(Box::new);
            }
        }
        Ok(self.vectors.as_ref().map(|vectors| vectors.types()))
    }

    fn next_vectors(&mut self, run: Run<'_, 'p>, out: &mut Vectors) -> SqlResult<bool> {
        if let Some(vectors) = &mut self.vectors {
            match vectors.next(run, &mut self.left.input, &mut self.right, out)? {
                Progress::Rows => return Ok(true),
                Progress::Over => return Ok(false),
                Progress::Full => {}
            }
        }
        if let Some(vectors) = self.vectors.take() {
            self.part_vectors(run, *vectors)?;
        }
        out.clear();
        let mut rows = Batch::new();
        self.next(run, &mut rows, run.state.batch_rows)?;
        push_rows(&rows, out);
        Ok(!rows.is_empty())
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        let target = out.len().saturating_add(want);
        while out.has_room(target) {
            let row = match self.matching {
                Some(row) => row,
                None => {
                    if !self.advance(run, want)? {
                        return Ok(());
                    }
                    continue;
                }
            };
            if row == NONE {
                self.left.end_matches(out, self.right_width);
                self.matching = None;
                continue;
            }
            run.eval.step()?;
            let next = self.table.next_match(row);
            self.left.begin(out);
            if self.left.on.is_some() || matches!(self.left.kind, JoinKind::Inner | JoinKind::Left) {
                out.open_row().extend_from_slice(self.table.rows.row(row as usize));
            }
            self.matching = if self.left.decide(run, out)? { None } else { Some(next) };
        }
        self.left.return_lent(out);
        Ok(())
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.pending.clear();
        self.table.clear(run);
        self.drop_vectors(run);
        self.built = Built::No;
        self.right.close(run);
        self.left.input.close(run);
    }
}
