//! GROUP BY and aggregate functions.
//!
//! # Methods
//! - *hash*: a hash table of groups. Groups are returned in the order of their first rows. Rows of groups
//!   that do not fit into memory are spilled ([`crate::partition`]) and processed after the others.
//! - *ordered*: hash aggregation, and the groups are sorted by their keys.
//! - *rollup*: the rows are sorted by the keys. Each prefix of the keys has a group that ends when the prefix
//!   changes.
//!
//! # Memory
//! Rows of numbers may produce keys of megabytes, or leave texts of megabytes in the group states. So rows
//! are added in pieces that start small ([`Groups::add`]), and the memory of the states counts when a new
//! group is admitted.
//!
//! # Missing
//! Values collected by DISTINCT and GROUP_CONCAT for one group stay in memory.

use cohort_expr::{AggregateState, SortKey, append_group_key};
use cohort_optimize::{AggregateNode, Node};
use cohort_types::{SqlResult, Value, VectorType};

use crate::batch::{Batch, taken};
use crate::key_table::{Hashed, KeyBatch, KeyTable};
use crate::operator::{Input, Operator};
use crate::partition::{Partition, PartitionReader, Partitions};
use crate::rollup::Rollup;
use crate::runtime::{Held, Run};
use crate::sort::{Order, Sorter};
use crate::spill::SpillFile;
use crate::storage::{Event, Kept};
use crate::vector_groups::{SPILLED, VectorGroups, may_have_vectors};
use crate::vectors::Vectors;

/// Number of rows in the first piece.
const PIECE_ROWS_FIRST: usize = 16;
/// Memory growth per piece above which the next piece is smaller, in bytes.
const PIECE_BYTES: usize = 1 << 20;

/// The GROUP BY operator.
pub(crate) struct AggregateOperator<'p> {
    node: &'p AggregateNode,
    input: Input<'p>,
    groups: Groups<'p>,
    /// Sorts the groups (ordered) or the rows (rollup).
    sorter: Sorter<'p>,
    rollup: Option<Rollup<'p>>,
    progress: Progress,
}

#[derive(PartialEq)]
enum Progress {
    Unread,
    Yielding,
}

impl<'p> AggregateOperator<'p> {
    pub fn new(node: &'p AggregateNode, input: Input<'p>) -> AggregateOperator<'p> {
        let keys = node.keys.iter().enumerate().map(|(n, (expr, collation))| {
            let descending = node.descending.get(n).copied().unwrap_or_default();
            (expr, SortKey { collation: *collation, descending })
        });
        let order = match node.rollup {
            true => Order::new(keys),
            false => Order::of_columns(keys.map(|key| key.1)),
        };
        AggregateOperator {
            node,
            input,
            groups: Groups::new(node),
            sorter: Sorter::new(order),
            rollup: node.rollup.then(|| Rollup::new(node)),
            progress: Progress::Unread,
        }
    }

    /// Returns the vector types of the input, if keys and aggregates can be computed from vectors.
    fn vector_types(&mut self, run: Run<'_, 'p>) -> SqlResult<Option<Vec<VectorType>>> {
        match may_have_vectors(self.node) {
            true => self.input.vector_types(run),
            false => Ok(None),
        }
    }

    /// Reads all rows.
    fn read(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        let mut batch = Batch::new();
        if self.node.rollup {
            while self.input.refill_all(run, &mut batch)? {
                for n in 0..batch.len() {
                    self.sorter.push(run, batch.row_mut(n))?;
                }
            }
            return self.sorter.finish(run);
        }
        match self.vector_types(run)? {
            Some(types) => self.groups.add_all_vectors(run, &mut self.input, types)?,
            None => {
                while self.input.refill_all(run, &mut batch)? {
                    self.groups.add(run, &batch)?;
                }
            }
        }
        if self.groups.is_empty() && !self.node.is_grouped {
            self.groups.add_empty(run)?;
        }
        self.groups.finish()?;
        if self.node.ordered && !self.node.keys.is_empty() {
            loop {
                batch.clear();
                self.groups.read(run, &mut batch, run.state.batch_rows)?;
                if batch.is_empty() {
                    break;
                }
                for n in 0..batch.len() {
                    self.sorter.push(run, batch.row_mut(n))?;
                }
            }
            self.sorter.finish(run)?;
        }
        Ok(())
    }
}

impl<'p> Operator<'p> for AggregateOperator<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.groups.clear(run);
        self.sorter.start(run, u64::MAX);
        if let Some(rollup) = &mut self.rollup {
            rollup.clear(run);
        }
        self.progress = Progress::Unread;
        self.input.open(run)
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        if self.progress == Progress::Unread {
            self.read(run)?;
            self.progress = Progress::Yielding;
        }
        match &mut self.rollup {
            Some(rollup) => rollup.read(run, &mut self.sorter, out, want),
            None if self.sorter.is_sorted() => self.sorter.read(run, out, want),
            None => self.groups.read(run, out, want),
        }
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.groups.clear(run);
        self.sorter.clear(run);
        if let Some(rollup) = &mut self.rollup {
            rollup.clear(run);
        }
        self.input.close(run);
    }
}

/// A hash table of groups.
struct Groups<'p> {
    node: &'p AggregateNode,
    table: KeyTable,
    /// Keys of the current rows.
    keys: KeyBatch,
    /// Groups of the current rows; `None` for spilled rows.
    groups: Vec<Option<usize>>,
    /// Keys and first values of each group.
    values: Batch,
    /// One state per group and aggregate; empty while `by_vectors` aggregates.
    states: Vec<AggregateState>,
    /// Vectorized aggregation of the groups in memory.
    by_vectors: Option<Box<VectorGroups>>,
    /// New groups get no states.
    leaves_states: bool,
    held: Held,
    /// Bytes that the states have charged.
    gathered: usize,
    /// Number of rows per piece.
    piece_rows: usize,
    memory: Option<usize>,
    /// Spilled rows of groups that did not fit.
    spilled: Option<Partitions>,
    pending: Vec<Partition>,
    level: u32,
    /// The group to return next.
    next: usize,
}

impl<'p> Groups<'p> {
    fn new(node: &'p AggregateNode) -> Groups<'p> {
        Groups {
            node,
            table: KeyTable::default(),
            keys: KeyBatch::default(),
            groups: Vec::new(),
            values: Batch::new(),
            states: Vec::new(),
            by_vectors: None,
            leaves_states: false,
            held: Held::default(),
            gathered: 0,
            piece_rows: PIECE_ROWS_FIRST,
            memory: None,
            spilled: None,
            pending: Vec::new(),
            level: 0,
            next: 0,
        }
    }

    fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    fn clear(&mut self, run: Run<'_, '_>) {
        self.clear_table(run);
        self.spilled = None;
        self.pending.clear();
        self.level = 0;
        self.memory = None;
    }

    fn clear_table(&mut self, run: Run<'_, '_>) {
        self.table.clear();
        self.values.clear();
        self.by_vectors = None;
        self.leaves_states = false;
        for state in self.states.drain(..) {
            run.eval.let_go(state.kept_bytes());
        }
        self.gathered = 0;
        self.next = 0;
        self.held.release(run);
    }

    /// Adds rows.
    fn add(&mut self, run: Run<'_, '_>, rows: &Batch) -> SqlResult<()> {
        let mut from = 0;
        while from < rows.len() {
            let (kept, held) = (run.eval.kept_bytes(), self.held.bytes());
            from += self.add_piece(run, rows, from)?;
            let more = run.eval.kept_bytes().saturating_sub(kept);
            self.gathered += more.saturating_sub(self.held.bytes() - held);
            self.piece_rows = match more > PIECE_BYTES {
                true => (self.piece_rows / 4).max(1),
                false => (self.piece_rows * 4).min(rows.len()).max(self.piece_rows),
            };
        }
        Ok(())
    }

    /// Adds a piece of the rows, starting at `from`. Returns its length.
    fn add_piece(&mut self, run: Run<'_, '_>, rows: &Batch, from: usize) -> SqlResult<usize> {
        let piece = rows.iter().skip(from).take(self.piece_rows);
        let mut count = piece.len();
        let mut keys = std::mem::take(&mut self.keys);
        let has_keys = !self.node.keys.is_empty();
        if has_keys {
            keys.clear();
            count = 0;
            for row in piece {
                if keys.is_full() {
                    break;
                }
                for (expr, collation) in &self.node.keys {
                    let value = expr.eval_output(row, run.eval)?;
                    append_group_key(&value, *collation, keys.open_key(), run.eval)?;
                }
                keys.end_key(&self.table);
                count += 1;
            }
            self.table.touch(&keys);
        }
        let piece = || rows.iter().skip(from).take(count);
        let mut groups = std::mem::take(&mut self.groups);
        groups.clear();
        for (n, row) in piece().enumerate() {
            groups.push(if has_keys {
                let (hashed, key) = keys.key(n);
                match self.table.find(&hashed, key) {
                    Some(group) => Some(group),
                    None => self.start(run, &hashed, key, row)?,
                }
            } else if self.values.is_empty() {
                self.start(run, &self.table.hash(&[]), &[], row)?
            } else {
                Some(0)
            });
        }
        let aggregates = &self.node.aggregates;
        self.touch(&groups);
        for (row, group) in piece().zip(&groups) {
            let Some(group) = *group else { continue };
            let states = &mut self.states[group * aggregates.len()..(group + 1) * aggregates.len()];
            for (aggregate, state) in aggregates.iter().zip(states) {
                aggregate.add(state, row, run.eval)?;
            }
        }
        (self.keys, self.groups) = (keys, groups);
        Ok(count)
    }

    /// Adds all rows of the input, vectorized.
    fn add_all_vectors<'i>(
        &mut self,
        run: Run<'_, 'i>,
        input: &mut Input<'i>,
        types: Vec<VectorType>,
    ) -> SqlResult<()> {
        self.by_vectors = VectorGroups::new(self.node, &types, run.eval).map(Box::new);
        let keys = self.node.keys.iter().map(|key| &key.0).chain(&self.node.first);
        let needed: Vec<usize> = keys.flat_map(|expr| expr.columns()).collect();
        let args = self.node.aggregates.iter().flat_map(|aggregate| &aggregate.args);
        let read = needed.iter().copied().chain(args.flat_map(|expr| expr.columns()));
        let mut vectors = Vectors::of_columns(types, read);
        if let (Some(by_vectors), Node::Scan(_)) = (&self.by_vectors, &self.node.input) {
            by_vectors.narrow(&needed, &mut vectors);
        }
        let mut batch = Batch::new();
        while input.next_vectors(run, &mut vectors)? {
            // Moved out while in use, because groups are created meanwhile.
            match self.by_vectors.take() {
                Some(mut by_vectors) => {
                    let outcome = self.add_vectors(run, &vectors, &mut by_vectors);
                    self.by_vectors = Some(by_vectors);
                    outcome?;
                }
                None => {
                    batch.clear();
                    (0..vectors.rows).for_each(|n| batch.push(vectors.row(n)));
                    self.add(run, &batch)?;
                }
            }
        }
        Ok(())
    }

    fn add_vectors(
        &mut self,
        run: Run<'_, '_>,
        vectors: &Vectors,
        by_vectors: &mut VectorGroups,
    ) -> SqlResult<()> {
        self.leaves_states = true;
        let groups_before = self.values.len();
        let bytes = self.find_groups(run, vectors, by_vectors)?;
        let groups = self.values.len();
        self.held.grow(run, bytes + (groups - groups_before) * by_vectors.cell_bytes())?;
        let gathered = by_vectors.gather(vectors, groups, run.eval)?;
        self.held.grow(run, by_vectors.take_distinct_bytes())?;
        if gathered.is_ok() {
            return Ok(());
        }
        // A number does not fit: row-by-row evaluation has more digits for decimals, and the error for
        // integers.
        let aggregates = &self.node.aggregates;
        let missing = groups * aggregates.len() - self.states.len();
        self.held.grow(run, missing * size_of::<AggregateState>())?;
        for group in self.states.len() / aggregates.len().max(1)..groups {
            debug_assert_eq!(self.states.len(), group * aggregates.len(), "states of whole groups");
            self.states.extend(aggregates.iter().map(|aggregate| aggregate.new_state()));
        }
        let mut row = Vec::new();
        for (n, group) in by_vectors.groups().iter().enumerate().filter(|(_, group)| **group != SPILLED) {
            row.clear();
            row.extend(vectors.row(n));
            let first = *group as usize * aggregates.len();
            for (aggregate, state) in aggregates.iter().zip(&mut self.states[first..]) {
                aggregate.add(state, &row, run.eval)?;
            }
        }
        Ok(())
    }

    /// Finds or creates the groups of the rows. Returns the bytes of their raw keys, in addition to the
    /// groups' own.
    fn find_groups(
        &mut self,
        run: Run<'_, '_>,
        vectors: &Vectors,
        by_vectors: &mut VectorGroups,
    ) -> SqlResult<usize> {
        if !by_vectors.has_keys() {
            if self.values.is_empty() {
                let row: Vec<Value> = vectors.row(0).collect();
                self.start(run, &self.table.hash(&[]), &[], &row)?;
            }
            by_vectors.all_of(vectors.rows, 0);
            return Ok(0);
        }
        by_vectors.make_keys(vectors, &self.table);
        let (mut bytes, mut last) = (0, SPILLED);
        let mut row = Vec::new();
        for n in 0..vectors.rows {
            // Rows often arrive grouped by key.
            if last != SPILLED && by_vectors.is_like_before(n) {
                by_vectors.push(last);
                continue;
            }
            if let Some(group) = by_vectors.known(n, &self.table) {
                by_vectors.push(group);
                last = group;
                continue;
            }
            row.clear();
            row.extend(vectors.row(n));
            let group = match by_vectors.has_own_keys() {
                true => self.group_of(run, &row)?,
                false => {
                    let (hashed, key) = by_vectors.key(n);
                    self.start(run, &hashed, key, &row)?
                }
            };
            last = group.map_or(SPILLED, |group| group as u32);
            bytes += by_vectors.learn(last);
        }
        Ok(bytes)
    }

    /// Returns the group of one row, or `None` if the row was spilled.
    fn group_of(&mut self, run: Run<'_, '_>, row: &[Value]) -> SqlResult<Option<usize>> {
        let mut key = Vec::new();
        for (expr, collation) in &self.node.keys {
            append_group_key(&*expr.eval_output(row, run.eval)?, *collation, &mut key, run.eval)?;
        }
        let hashed = self.table.hash(&key);
        match self.table.find(&hashed, &key) {
            Some(group) => Ok(Some(group)),
            None => self.start(run, &hashed, &key, row),
        }
    }

    /// Touches the states of the given groups to bring them into the cache ([`KeyTable::touch`]).
    fn touch(&self, groups: &[Option<usize>]) {
        let count = self.node.aggregates.len();
        let mut seen = false;
        if count > 0 {
            groups.iter().flatten().for_each(|group| seen ^= self.states[group * count].is_distinct());
        }
        std::hint::black_box(seen);
    }

    /// Creates a group, or spills the row.
    fn start(
        &mut self,
        run: Run<'_, '_>,
        hashed: &Hashed,
        key: &[u8],
        row: &[Value],
    ) -> SqlResult<Option<usize>> {
        let memory = *self.memory.get_or_insert_with(|| run.storage().operator_memory(Kept::Table));
        if let Some(spilled) = &mut self.spilled {
            spilled.push(run, hashed.hash, row)?;
            return Ok(None);
        }
        for expr in self.node.keys.iter().map(|key| &key.0).chain(&self.node.first) {
            let value = expr.eval_output(row, run.eval)?.into_owned();
            self.values.open_row().push(value);
        }
        self.grow(run, key)?;
        if self.held.bytes() + self.gathered > memory && !self.node.keys.is_empty() {
            if self.level == 0 {
                run.storage().note(Event::TableOnDisk);
            }
            self.spilled = Some(Partitions::new(SpillFile::create(run)?, self.level));
        }
        Ok(Some(self.table.insert(hashed, key)))
    }

    /// Charges the memory of the group whose values were just appended.
    fn grow(&mut self, run: Run<'_, '_>, key: &[u8]) -> SqlResult<()> {
        let values: usize = self.values.unfinished().iter().map(Value::memory_bytes).sum();
        let mut states = 0;
        self.values.end_row();
        if !self.leaves_states {
            states = self.node.aggregates.len() * size_of::<AggregateState>();
            self.states.extend(self.node.aggregates.iter().map(|aggregate| aggregate.new_state()));
        }
        self.held.grow(run, values + states + KeyTable::bytes_for(key))
    }

    /// Adds the single group of an empty input.
    fn add_empty(&mut self, run: Run<'_, '_>) -> SqlResult<()> {
        self.by_vectors = None;
        self.leaves_states = false;
        let nulls = self.node.keys.len() + self.node.first.len();
        self.values.open_row().extend(std::iter::repeat_n(Value::Null, nulls));
        self.grow(run, &[])
    }

    /// Ends the input.
    fn finish(&mut self) -> SqlResult<()> {
        if let Some(spilled) = self.spilled.take() {
            self.pending.extend(spilled.finish()?);
        }
        Ok(())
    }

    /// Appends at most `want` groups.
    fn read(&mut self, run: Run<'_, '_>, out: &mut Batch, want: usize) -> SqlResult<()> {
        while self.next == self.values.len() {
            let Some(partition) = self.pending.pop() else { return Ok(()) };
            self.clear_table(run);
            self.level = partition.level;
            let mut reader = PartitionReader::new(partition);
            let mut batch = Batch::new();
            while reader.refill(run, &mut batch, run.state.batch_rows)? {
                self.add(run, &batch)?;
            }
            self.finish()?;
        }
        let count = self.node.aggregates.len();
        let end = self.values.len().min(self.next.saturating_add(want));
        for group in self.next..end {
            if out.is_full() {
                break;
            }
            out.open_row().extend(taken(self.values.row_mut(group)));
            for (n, aggregate) in self.node.aggregates.iter().enumerate() {
                let by_rows = self.states.get_mut(group * count + n);
                let by_rows = by_rows.map(|state| std::mem::replace(state, aggregate.new_state()));
                let by_vectors = self.by_vectors.as_ref().map(|vectors| vectors.state(group, n, aggregate));
                let state = match (by_rows, by_vectors) {
                    (Some(mut state), Some(other)) => {
                        aggregate.merge(&mut state, &other, run.eval)?;
                        state
                    }
                    (state, other) => state.or(other).unwrap_or_else(|| aggregate.new_state()),
                };
                run.eval.let_go(state.kept_bytes());
                let value = aggregate.finish(state, run.eval)?;
                out.open_row().push(value);
            }
            out.end_row();
            self.next += 1;
        }
        Ok(())
    }
}
