//! ORDER BY.
//!
//! # Concepts
//! A row is stored with its sort keys: computed keys precede the row's columns. The sort order is an array of
//! [`Entry`]: the row's number, and the front of its first key as an integer, which decides most comparisons.
//! If rows arrive as vectors and keys are columns, the rows stay in vectors ([`crate::vector_sort`]); on disk
//! there is one row format.
//!
//! Rows that do not fit into memory are written as sorted *runs* and merged: [`FAN_IN`] runs of one level
//! into one of the next level whenever there are that many, and the rest while rows are read. The sort is
//! stable: runs are sorted stably and merged in their order.
//!
//! With a limit, only that many rows are kept: rows accumulate to twice the limit, are sorted and cut, and a
//! row that sorts after the last one kept is dropped at once.

use std::cmp::Ordering;

use cohort_expr::{Expr, SortKey, compare_rows};
use cohort_optimize::{JoinMethod, Node, Sort, Spans};
use cohort_types::{CountBytes, SqlResult, Value, VectorType};

use crate::batch::Batch;
use crate::limit::limit_bounds;
use crate::operator::{Input, Operator};
use crate::runtime::{Held, Run};
use crate::sort_front::{Entry, Fronts, sort_by_front, sort_equal_fronts};
use crate::spill::{Chain, ChainReader, SpillFile};
use crate::storage::{Event, Kept, Sorted};
use crate::vector_sort::VectorRows;
use crate::vectors::Vectors;

/// Number of runs merged at once.
const FAN_IN: usize = 64;
/// Estimated number of rows of a table from which on vectors pay.
const VECTOR_ROWS_MIN: f64 = 256.0;
/// With a limit, the minimum number of vectorized rows that are sorted and cut at once.
const VECTOR_ROWS_CUT_MIN: usize = 1 << 14;

/// A sort order.
#[derive(Clone)]
pub(crate) struct Order<'p> {
    /// Computed keys; they precede the row's columns.
    computed: Vec<&'p Expr>,
    /// Position of each key in keys and row.
    places: Vec<usize>,
    keys: Vec<SortKey>,
}

impl<'p> Order<'p> {
    pub fn new(keys: impl Iterator<Item = (&'p Expr, SortKey)> + Clone) -> Order<'p> {
        let is_column = |expr: &Expr| matches!(expr, Expr::Column(_));
        let computed: Vec<&Expr> = keys.clone().map(|key| key.0).filter(|expr| !is_column(expr)).collect();
        let mut next = 0;
        let mut places = Vec::new();
        for (expr, _) in keys.clone() {
            places.push(match expr {
                Expr::Column(column) => computed.len() + column.ordinal,
                _ => {
                    next += 1;
                    next - 1
                }
            });
        }
        Order { computed, places, keys: keys.map(|key| key.1).collect() }
    }

    /// Creates the order by the first columns.
    pub fn of_columns(keys: impl Iterator<Item = SortKey>) -> Order<'p> {
        let keys: Vec<SortKey> = keys.collect();
        Order { computed: Vec::new(), places: (0..keys.len()).collect(), keys }
    }

    /// Compares two rows, each preceded by its keys.
    #[inline]
    fn compare(&self, a: &[Value], b: &[Value]) -> Ordering {
        self.compare_from(0, a, b)
    }

    /// Compares two rows from the n-th key on.
    #[inline]
    fn compare_from(&self, n: usize, a: &[Value], b: &[Value]) -> Ordering {
        for (place, key) in self.places[n..].iter().zip(&self.keys[n..]) {
            let one = *place..*place + 1;
            let order = compare_rows(&a[one.clone()], &b[one], std::slice::from_ref(key));
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }
}

/// A sorter: takes rows and returns them in order.
pub(crate) struct Sorter<'p> {
    order: Order<'p>,
    /// Rows with their keys.
    rows: Batch,
    entries: Vec<Entry>,
    fronts: Fronts,
    /// The rows in memory, if they arrive as vectors.
    by_vectors: Option<Box<VectorRows>>,
    /// Number of rows wanted.
    limit: u64,
    /// The last wanted row of the last sort.
    worst: Option<Vec<Value>>,
    held: Held,
    memory: usize,
    /// The rows come from key lookups or a range of one table.
    of_range: bool,
    runs: Vec<SortedRun>,
    /// Position of the next sorted row in memory.
    next: usize,
    merge: Option<Merge>,
    sorted: bool,
}

impl<'p> Sorter<'p> {
    /// Creates a sorter for rows that were stored before.
    pub fn new(order: Order<'p>) -> Sorter<'p> {
        Sorter {
            order,
            rows: Batch::new(),
            entries: Vec::new(),
            fronts: Fronts::default(),
            by_vectors: None,
            limit: u64::MAX,
            worst: None,
            held: Held::default(),
            memory: 0,
            of_range: false,
            runs: Vec::new(),
            next: 0,
            merge: None,
            sorted: false,
        }
    }

    /// Creates a sorter for the rows of a node.
    pub fn of_rows(order: Order<'p>, node: &Node) -> Sorter<'p> {
        Sorter { of_range: is_of_range(node), ..Sorter::new(order) }
    }

    /// Removes all rows and starts.
    pub fn start(&mut self, run: Run<'_, 'p>, limit: u64) {
        self.clear(run);
        self.limit = limit;
        self.memory = run.storage().operator_memory(Kept::Sorted);
    }

    pub fn clear(&mut self, run: Run<'_, 'p>) {
        self.rows.clear();
        self.entries.clear();
        self.fronts.clear();
        self.by_vectors = None;
        self.worst = None;
        self.held.release(run);
        self.runs.clear();
        if let Some(mut merge) = self.merge.take() {
            merge.held.release(run);
        }
        self.next = 0;
        self.sorted = false;
    }

    /// Adds a row and moves its values out.
    pub fn push(&mut self, run: Run<'_, 'p>, row: &mut [Value]) -> SqlResult<()> {
        for expr in &self.order.computed {
            let value = expr.eval_output(row, run.eval)?.into_owned();
            self.rows.open_row().push(value);
        }
        self.rows.open_row().extend(crate::batch::taken(row));
        let kept = self.rows.unfinished();
        run.eval.count_row(kept)?;
        if let Some(worst) = &self.worst
            && self.order.compare(kept, worst).is_ge()
        {
            self.rows.cut_unfinished(0);
            return Ok(());
        }
        let (front, more) = match (self.order.places.first(), self.order.keys.first()) {
            (Some(place), Some(key)) => self.fronts.add(&kept[*place], key),
            _ => (0, 0),
        };
        let bytes = kept.iter().map(Value::memory_bytes).sum::<usize>() + size_of::<Entry>() + more;
        self.rows.end_row();
        self.entries.push(Entry { front, row: self.entries.len() as u32 });
        self.held.grow(run, bytes)?;
        let twice = self.wanted().saturating_mul(2).max(256);
        if self.entries.len() >= twice || self.entries.len() > u32::MAX as usize - 1 {
            self.cut(run)?;
        }
        if self.held.bytes() > self.memory { self.spill(run) } else { Ok(()) }
    }

    /// Returns true if rows may arrive as vectors, because no key is computed.
    pub fn takes_vectors(&self) -> bool {
        self.order.computed.is_empty()
    }

    /// Declares that all rows will arrive as vectors of these types.
    pub fn begin_vectors(&mut self, types: Vec<VectorType>) {
        debug_assert!(self.takes_vectors() && self.entries.is_empty(), "keys are columns, no row has come");
        let keys = self.order.places.iter().copied().zip(self.order.keys.iter().copied());
        self.by_vectors = Some(Box::new(VectorRows::new(types, keys)));
    }

    /// Adds vectorized rows.
    pub fn push_vectors(&mut self, run: Run<'_, 'p>, vectors: &Vectors) -> SqlResult<()> {
        let wanted = self.wanted();
        let rows = self.by_vectors.as_mut().expect("rows come as lanes");
        let bytes = rows.append(vectors, run.eval)?;
        self.held.grow(run, bytes)?;
        if rows.len() >= wanted.saturating_mul(2).max(VECTOR_ROWS_CUT_MIN) {
            let freed = rows.cut(wanted, run.eval)?;
            self.held.shrink(run, freed);
        }
        let is_full = self.by_vectors.as_ref().is_some_and(|rows| rows.is_full());
        if is_full || self.held.bytes() > self.memory { self.spill(run) } else { Ok(()) }
    }

    fn wanted(&self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }

    /// Returns the number of rows in memory.
    fn len(&self) -> usize {
        self.by_vectors.as_ref().map_or(self.entries.len(), |rows| rows.len())
    }

    /// Returns the number of sorted rows in memory.
    fn sorted_len(&self) -> usize {
        self.by_vectors.as_ref().map_or(self.entries.len(), |rows| rows.sorted_rows())
    }

    /// Sorts the rows in memory.
    fn sort(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        let wanted = self.wanted();
        if let Some(rows) = &mut self.by_vectors {
            return rows.sort(wanted, run.eval);
        }
        let (rows, order) = (&self.rows, &self.order);
        let row = |entry: &Entry| rows.row(entry.row as usize);
        let row_bytes = self.held.bytes() / self.entries.len().max(1);
        let fronts = &self.fronts;
        let decides = fronts.complete(&mut self.entries, order.keys.first());
        sort_by_front(&mut self.entries, run.eval)?;
        match order.keys.first() {
            None => {}
            Some(_) if decides && order.keys.len() == 1 => {}
            Some(first) if fronts.are_texts() => {
                let full = |a: &Entry, b: &Entry| {
                    fronts.compare(a, b, first).then_with(|| order.compare_from(1, row(a), row(b)))
                };
                sort_equal_fronts(&mut self.entries, row_bytes, &full, run.eval)?;
            }
            Some(_) => {
                let from = usize::from(decides);
                let full = |a: &Entry, b: &Entry| order.compare_from(from, row(a), row(b));
                sort_equal_fronts(&mut self.entries, row_bytes, &full, run.eval)?;
            }
        }
        self.entries.truncate(wanted);
        Ok(())
    }

    /// Sorts and keeps the wanted rows.
    fn cut(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.sort(run)?;
        let mut kept = Batch::new();
        let mut bytes = 0;
        self.fronts.clear();
        for (n, entry) in self.entries.iter_mut().enumerate() {
            let row = self.rows.row_mut(entry.row as usize);
            if let (Some(place), Some(key)) = (self.order.places.first(), self.order.keys.first()) {
                let (front, more) = self.fronts.add(&row[*place], key);
                entry.front = front;
                bytes += more;
            }
            bytes += row.iter().map(Value::memory_bytes).sum::<usize>() + size_of::<Entry>();
            kept.push(crate::batch::taken(row));
            entry.row = n as u32;
        }
        self.rows = kept;
        let before = self.held.bytes();
        self.held.shrink(run, before.saturating_sub(bytes));
        if self.entries.len() as u64 == self.limit {
            self.worst = self.entries.last().map(|entry| self.rows.row(entry.row as usize).to_vec());
        }
        Ok(())
    }

    /// Writes the rows in memory as a run.
    fn spill(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.sort(run)?;
        // Runs of one merge round share a file, which is deleted when they are merged.
        let file = match self.runs.last() {
            Some(last) if last.level == 0 => last.file.clone(),
            _ => SpillFile::create(run)?,
        };
        let mut chain = Chain::default();
        for entry in &self.entries {
            let row = self.rows.row(entry.row as usize);
            run.eval.count_row(row)?;
            chain.push(&file, row)?;
        }
        if let Some(rows) = &mut self.by_vectors {
            let mut row = Vec::new();
            for n in 0..rows.sorted_rows() {
                row.clear();
                row.extend(rows.row(n));
                run.eval.count_row(&row)?;
                chain.push(&file, &row)?;
            }
            rows.clear();
        }
        chain.finish(&file)?;
        self.runs.push(SortedRun { chain, file, level: 0 });
        self.rows.clear();
        self.entries.clear();
        self.fronts.clear();
        self.held.release(run);
        while let Some(last) = self.runs.last().map(|last| last.level) {
            let of_level = self.runs.iter().rev().take_while(|run| run.level == last).count();
            if of_level < FAN_IN {
                break;
            }
            self.merge_last(run, of_level, last + 1)?;
        }
        Ok(())
    }

    /// Merges the last `count` runs into one.
    fn merge_last(&mut self, run: Run<'_, 'p>, count: usize, level: u32) -> SqlResult<()> {
        let merged = self.runs.split_off(self.runs.len() - count);
        run.storage().note(Event::Merged);
        let mut merge = Merge::new(run, merged, &self.order)?;
        let file = SpillFile::create(run)?;
        let mut chain = Chain::default();
        let mut row = Vec::new();
        while chain.rows() < self.limit && merge.next(run, &self.order, &mut row)? {
            chain.push(&file, &row)?;
        }
        chain.finish(&file)?;
        merge.held.release(run);
        self.runs.push(SortedRun { chain, file, level });
        Ok(())
    }

    /// Ends the input.
    pub fn finish(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.sorted = true;
        self.worst = None;
        let limited = self.limit != u64::MAX && self.runs.is_empty();
        let note = |rows, of_range| {
            run.storage().note(Event::Sorted(Sorted { rows, of_range, limited }));
        };
        if self.runs.is_empty() {
            self.sort(run)?;
            note(self.len() as u64, self.of_range);
            return Ok(());
        }
        if self.len() > 0 {
            self.spill(run)?;
        }
        let rows: u64 = self.runs.iter().map(|run| run.chain.rows()).sum();
        note(rows.min(self.limit), self.of_range);
        run.storage().note(Event::Merged);
        self.merge = Some(Merge::new(run, std::mem::take(&mut self.runs), &self.order)?);
        Ok(())
    }

    /// Returns true if [`Sorter::finish`] was called.
    pub fn is_sorted(&self) -> bool {
        self.sorted
    }

    /// Skips at most `rows` rows and returns the number skipped. Returns `None` if they must be read instead.
    pub fn skip(&mut self, rows: u64) -> Option<u64> {
        if self.merge.is_some() {
            return None;
        }
        let left = (self.sorted_len() - self.next) as u64;
        let skipped = rows.min(left);
        self.next += skipped as usize;
        Some(skipped)
    }

    /// Appends at most `want` rows in order.
    pub fn read(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        let keys = self.order.computed.len();
        if let Some(merge) = &mut self.merge {
            let mut row = Vec::new();
            for _ in 0..want {
                if out.is_full()
                    || self.next as u64 >= self.limit
                    || !merge.next(run, &self.order, &mut row)?
                {
                    break;
                }
                self.next += 1;
                out.push(row.drain(keys..));
            }
            return Ok(());
        }
        let end = self.sorted_len().min(self.next.saturating_add(want));
        while self.next < end && !out.is_full() {
            match &self.by_vectors {
                Some(rows) => out.push(rows.row(self.next)),
                None => {
                    let row = self.entries[self.next].row as usize;
                    out.push(crate::batch::taken(&mut self.rows.row_mut(row)[keys..]));
                }
            }
            self.next += 1;
        }
        Ok(())
    }
}

/// Returns true if rows come from key lookups or a range of one table.
fn is_of_range(mut node: &Node) -> bool {
    loop {
        node = match node {
            Node::Filter { input, .. }
            | Node::OneTimeFilter { input, .. }
            | Node::Project { input, .. }
            | Node::Extend { input, .. } => input,
            Node::Scan(scan) => return !matches!(scan.access.spans, Spans::Full),
            _ => return false,
        };
    }
}

/// A merge of runs: a heap of the runs that have rows left, the smallest row on top.
struct Merge {
    runs: Vec<MergedRun>,
    heap: Vec<usize>,
    /// Memory of one row per run and of the block it was read from.
    held: Held,
}

/// A sorted run on disk.
struct SortedRun {
    chain: Chain,
    file: SpillFile,
    /// Number of times its rows were merged.
    level: u32,
}

struct MergedRun {
    run: SortedRun,
    reader: ChainReader,
    row: Vec<Value>,
    row_bytes: usize,
    /// Bytes charged for the largest row so far and its block.
    held_bytes: usize,
}

impl MergedRun {
    /// Replaces the row with the next one. Returns false at the end.
    fn read(&mut self, run: Run<'_, '_>, held: &mut Held) -> SqlResult<bool> {
        self.row.clear();
        if !self.reader.next(&self.run.file, &self.run.chain, &mut self.row)? {
            return Ok(false);
        }
        run.eval.count_row(&self.row)?;
        self.row_bytes = self.row.iter().map(Value::memory_bytes).sum();
        let bytes = self.reader.buffer_bytes() + self.row_bytes;
        if bytes > self.held_bytes {
            held.grow(run, bytes - self.held_bytes)?;
            self.held_bytes = bytes;
        }
        Ok(true)
    }
}

impl Merge {
    fn new(run: Run<'_, '_>, runs: Vec<SortedRun>, order: &Order<'_>) -> SqlResult<Merge> {
        let mut merge = Merge { runs: Vec::new(), heap: Vec::new(), held: Held::default() };
        for sorted in runs {
            let reader = ChainReader::default();
            let mut merged = MergedRun { run: sorted, reader, row: Vec::new(), row_bytes: 0, held_bytes: 0 };
            if merged.read(run, &mut merge.held)? {
                merge.heap.push(merge.runs.len());
            }
            merge.runs.push(merged);
        }
        for at in (0..merge.heap.len() / 2).rev() {
            merge.sink(run, at, order)?;
        }
        Ok(merge)
    }

    /// Replaces `row` with the smallest remaining row. Returns false if there is none.
    fn next(&mut self, run: Run<'_, '_>, order: &Order<'_>, row: &mut Vec<Value>) -> SqlResult<bool> {
        let Some(top) = self.heap.first() else { return Ok(false) };
        let merged = &mut self.runs[*top];
        std::mem::swap(row, &mut merged.row);
        if !merged.read(run, &mut self.held)? {
            self.heap.swap_remove(0);
        }
        self.sink(run, 0, order)?;
        Ok(true)
    }

    /// Sifts down the heap entry at `at`.
    fn sink(&mut self, run: Run<'_, '_>, mut at: usize, order: &Order<'_>) -> SqlResult<()> {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len()
                    && self.comes_before(run, self.heap[child], self.heap[least], order)?
                {
                    least = child;
                }
            }
            if least == at {
                return Ok(());
            }
            self.heap.swap(at, least);
            at = least;
        }
    }

    /// Compares the current rows of two runs. Of equal rows, the earlier run's comes first.
    fn comes_before(&self, run: Run<'_, '_>, a: usize, b: usize, order: &Order<'_>) -> SqlResult<bool> {
        run.eval.count_bytes(self.runs[a].row_bytes.min(self.runs[b].row_bytes))?;
        Ok(order.compare(&self.runs[a].row, &self.runs[b].row).then(a.cmp(&b)).is_lt())
    }
}

/// The ORDER BY operator.
pub(crate) struct SortOperator<'p> {
    node: &'p Sort,
    input: Input<'p>,
    sorter: Sorter<'p>,
}

impl<'p> SortOperator<'p> {
    pub fn new(node: &'p Sort, input: Input<'p>) -> SortOperator<'p> {
        let order = Order::new(node.keys.iter().map(|(expr, key)| (expr, *key)));
        SortOperator { node, input, sorter: Sorter::of_rows(order, &node.input) }
    }

    /// Reads and sorts all rows.
    fn sort(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        if self.sorter.is_sorted() {
            return Ok(());
        }
        if self.sorter.limit > 0
            && self.sorter.takes_vectors()
            && expects_many(&self.node.input)
            && let Some(types) = self.input.vector_types(run)?
        {
            self.sorter.begin_vectors(types.clone());
            let mut vectors = Vectors::new(types);
            while self.input.next_vectors(run, &mut vectors)? {
                self.sorter.push_vectors(run, &vectors)?;
            }
            return self.sorter.finish(run);
        }
        let mut batch = Batch::new();
        while self.sorter.limit > 0 && self.input.refill_all(run, &mut batch)? {
            for n in 0..batch.len() {
                self.sorter.push(run, batch.row_mut(n))?;
            }
        }
        self.sorter.finish(run)
    }
}

/// Returns true if the estimated number of rows is large enough for vectors.
fn expects_many(node: &Node) -> bool {
    match node {
        Node::Scan(scan) => scan.rows >= VECTOR_ROWS_MIN,
        Node::Filter { input, .. } | Node::OneTimeFilter { input, .. } | Node::Project { input, .. } => {
            expects_many(input)
        }
        Node::Join(join) => {
            let many_on_right = match &join.method {
                JoinMethod::Lookup(scan) => scan.rows >= VECTOR_ROWS_MIN,
                JoinMethod::Hash { right, .. } | JoinMethod::Loop { right, .. } => expects_many(right),
                JoinMethod::Json(_) => false,
            };
            many_on_right || expects_many(&join.left)
        }
        _ => false,
    }
}

impl<'p> Operator<'p> for SortOperator<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        let limit = match &self.node.limit {
            Some(limit) => {
                let (offset, count) = limit_bounds(limit, run.eval)?;
                offset.saturating_add(count)
            }
            None => u64::MAX,
        };
        self.sorter.start(run, limit);
        self.input.open(run)
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        self.sort(run)?;
        self.sorter.read(run, out, want)
    }

    fn skip(&mut self, run: Run<'_, 'p>, rows: u64) -> SqlResult<Option<u64>> {
        self.sort(run)?;
        Ok(self.sorter.skip(rows))
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.sorter.clear(run);
        self.input.close(run);
    }
}
