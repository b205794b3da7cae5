//! Vectorized grouping: computes keys and aggregates from vectors.
//!
//! # Concepts
//! The *raw key* of a row consists of the bytes of its key columns as stored in the vectors. Rows with the
//! same raw key belong to the same group. If the keys include texts, a group may have several raw keys,
//! because different texts may compare equal. Then a table maps raw keys to groups, and only a new raw key is
//! looked up among the groups. Without texts, the raw key is the group key.
//!
//! A [`Cell`] accumulates one aggregate of one group. When the groups are read, cells are converted to the
//! states of row-by-row evaluation ([`Aggregate::gathered`]).

use cohort_expr::{
    Aggregate, AggregateKind, AggregateState, Gathered, NumberAt, Overflow, Quantifier, TruthAt,
    VectorCompiler, VectorProgram, YES, year_of_column,
};
use cohort_expr::{EvalContext, Expr};
use cohort_optimize::AggregateNode;
use cohort_types::{SqlResult, Vector, VectorType, is_whole_date, year_of};

use crate::key_table::{Hashed, KeyBatch, KeyTable};
use crate::vectors::Vectors;

/// Group number of a row that was spilled, so has no group in memory.
pub(crate) const SPILLED: u32 = u32::MAX;

/// Accumulator of one aggregate in one group.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cell {
    /// The sum in two halves; for MIN and MAX the number.
    total: [u64; 2],
    count: u64,
}

impl Cell {
    #[inline]
    fn total(&self) -> i128 {
        (u128::from(self.total[1]) << 64 | u128::from(self.total[0])) as i128
    }

    #[inline]
    fn set(&mut self, total: i128) {
        self.total = [total as u64, (total as u128 >> 64) as u64];
    }

    #[inline]
    fn add(&mut self, number: i64) {
        self.set(self.total() + i128::from(number));
        self.count += 1;
    }

    #[inline]
    fn keep_better(&mut self, number: i64, least: bool) {
        let (number, known) = (i128::from(number), self.total());
        if self.count == 0 || (if least { number < known } else { number > known }) {
            self.set(number);
        }
        self.count += 1;
    }
}

/// The accumulation of an aggregate.
enum GroupAggregate {
    Rows,
    /// Counts rows for which this is not true.
    NotNull(TruthAt),
    Total(NumberAt),
    /// The smallest or the largest number of a column.
    Extreme {
        column: usize,
        least: bool,
    },
    /// Counts the distinct numbers of a column.
    Distinct {
        column: usize,
        /// Pairs of group and number that were counted already.
        seen: KeyTable,
    },
}

/// A part of the raw key.
#[derive(Clone, Copy)]
enum RawKey {
    Column(usize),
    /// The year of a column; for a date without month or day, the whole date.
    Year(usize),
}

/// The vectorized part of a grouping.
pub(crate) struct VectorGroups {
    program: VectorProgram,
    keys: Vec<RawKey>,
    aggregates: Vec<GroupAggregate>,
    /// One cell per group and aggregate.
    cells: Vec<Cell>,
    types: Vec<VectorType>,
    /// Several raw keys may map to one group.
    has_own_keys: bool,
    raw: KeyTable,
    /// The group of each raw key.
    groups_of_raw: Vec<u32>,
    batch: KeyBatch,
    /// Groups of the current rows.
    groups: Vec<u32>,
    /// Bytes used by DISTINCT sets since the last `take_distinct_bytes`.
    distinct_bytes: usize,
}

impl VectorGroups {
    /// Returns `None` if a key or an aggregate cannot be vectorized.
    pub fn new(node: &AggregateNode, types: &[VectorType], eval: &EvalContext<'_>) -> Option<VectorGroups> {
        let key = |expr: &Expr| match expr {
            Expr::Column(column) => types.get(column.ordinal).map(|_| RawKey::Column(column.ordinal)),
            expr => {
                let column = year_of_column(expr)?;
                let is_date = matches!(types.get(column)?, VectorType::Date | VectorType::DateTime);
                is_date.then_some(RawKey::Year(column))
            }
        };
        let keys = node.keys.iter().map(|(expr, _)| key(expr)).collect::<Option<Vec<_>>>()?;
        let type_of = |place: usize| types.get(place).copied();
        let mut compiler = VectorCompiler::new(&type_of, eval);
        let mut aggregates = Vec::new();
        for aggregate in &node.aggregates {
            aggregates.push(group_aggregate(aggregate, types, &mut compiler)?);
        }
        // If a number does not fit, rows are accumulated one by one. Then the distinct values of both paths
        // could not be combined.
        let has_distinct =
            aggregates.iter().any(|aggregate| matches!(aggregate, GroupAggregate::Distinct { .. }));
        let is_plain =
            |aggregate: &Aggregate| aggregate.args.iter().all(|arg| matches!(arg, Expr::Column(_)));
        if has_distinct && !node.aggregates.iter().all(is_plain) {
            return None;
        }
        Some(VectorGroups {
            program: compiler.finish(),
            aggregates,
            cells: Vec::new(),
            has_own_keys: keys.iter().any(|key| match key {
                RawKey::Column(n) => types[*n].is_text(),
                RawKey::Year(_) => true,
            }),
            keys,
            types: types.to_vec(),
            raw: KeyTable::default(),
            groups_of_raw: Vec::new(),
            batch: KeyBatch::default(),
            groups: Vec::new(),
            distinct_bytes: 0,
        })
    }

    /// Limits the scan to text lengths for columns whose texts are not read. `needed` are columns whose texts
    /// are.
    pub fn narrow(&self, needed: &[usize], vectors: &mut Vectors) {
        // Row-by-row evaluation needs the texts.
        if self.program.may_overflow() {
            return;
        }
        for (input, column) in self.program.inputs().iter().enumerate() {
            let has_lens = self.types[*column].is_text() && !self.program.reads_texts(input);
            if has_lens && !needed.contains(column) {
                vectors.want_lens(*column);
            }
        }
    }

    /// Returns the bytes that DISTINCT sets grew by since the last call.
    pub fn take_distinct_bytes(&mut self) -> usize {
        std::mem::take(&mut self.distinct_bytes)
    }

    /// Returns true if raw keys have a table of their own and differ from group keys.
    pub fn has_own_keys(&self) -> bool {
        self.has_own_keys
    }

    /// Computes the raw keys of the rows.
    pub fn make_keys(&mut self, vectors: &Vectors, table: &KeyTable) {
        let table = if self.has_own_keys { &self.raw } else { table };
        self.groups.clear();
        self.batch.clear();
        if let [RawKey::Column(n)] = self.keys[..]
            && !self.types[n].is_text()
            && vectors.vectors[n].nulls.is_empty()
        {
            // A specialized loop for the most common key.
            for number in &vectors.vectors[n].numbers {
                self.batch.push_short(raw_number(*number), table);
            }
            return table.touch(&self.batch);
        }
        for row in 0..vectors.rows {
            let key = self.batch.open_key();
            for part in &self.keys {
                match *part {
                    RawKey::Column(n) => append_raw(&vectors.vectors[n], vectors.types[n], row, key),
                    RawKey::Year(n) => append_year(&vectors.vectors[n], row, key),
                }
            }
            self.batch.end_key(table);
        }
        table.touch(&self.batch);
    }

    /// Returns the raw key of a row.
    #[inline]
    pub fn key(&self, row: usize) -> (Hashed, &[u8]) {
        self.batch.key(row)
    }

    /// Returns the group of a row whose raw key is known.
    #[inline]
    pub fn known(&self, row: usize, table: &KeyTable) -> Option<u32> {
        let (hashed, key) = self.batch.key(row);
        match self.has_own_keys {
            true => self.raw.find(&hashed, key).map(|raw| self.groups_of_raw[raw]),
            false => table.find(&hashed, key).map(|group| group as u32),
        }
    }

    /// Assigns the next row, whose raw key is new, to a group. Returns the memory this takes, in bytes.
    pub fn learn(&mut self, group: u32) -> usize {
        let (hashed, key) = self.batch.key(self.groups.len());
        let mut bytes = 0;
        if self.has_own_keys && group != SPILLED {
            bytes = KeyTable::bytes_for(key) + size_of::<u32>();
            self.raw.insert(&hashed, key);
            self.groups_of_raw.push(group);
        }
        self.groups.push(group);
        bytes
    }

    /// Assigns the next row to a group.
    #[inline]
    pub fn push(&mut self, group: u32) {
        self.groups.push(group);
    }

    /// Assigns all rows to one group.
    pub fn all_of(&mut self, rows: usize, group: u32) {
        self.groups.clear();
        self.groups.resize(rows, group);
    }

    /// Returns true if there are keys.
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Returns true if a row has the key of the row before it.
    #[inline]
    pub fn is_like_before(&self, row: usize) -> bool {
        self.batch.is_like_before(row)
    }

    /// Accumulates the rows that were looked up last. `groups` is the total number of groups. On overflow,
    /// the cells are unchanged.
    pub fn gather(
        &mut self,
        vectors: &Vectors,
        groups: usize,
        eval: &EvalContext<'_>,
    ) -> SqlResult<Result<(), Overflow>> {
        let width = self.aggregates.len();
        self.cells.resize(groups * width, Cell::default());
        let inputs: Vec<&Vector> =
            self.program.inputs().iter().map(|place| &vectors.vectors[*place]).collect();
        if let Err(overflow) = self.program.run(&inputs, vectors.rows, eval)? {
            return Ok(Err(overflow));
        }
        if self.keys.is_empty() && self.groups.first().is_some_and(|group| *group != SPILLED) {
            for (aggregate, cell) in self.aggregates.iter_mut().zip(&mut self.cells) {
                match aggregate {
                    GroupAggregate::Distinct { column, seen } => {
                        let vector = &vectors.vectors[*column];
                        let rows = (0..vectors.rows).map(|row| (row, 0));
                        let bytes = &mut self.distinct_bytes;
                        each_new(seen, vector, rows, bytes, |_| cell.count += 1);
                    }
                    aggregate => add_all(aggregate, cell, &self.program, &inputs, vectors),
                }
            }
            return Ok(Ok(()));
        }
        for (n, aggregate) in self.aggregates.iter_mut().enumerate() {
            let cells = &mut self.cells;
            let groups = self.groups.iter().enumerate().filter(|(_, group)| **group != SPILLED);
            let groups = groups.map(|(row, group)| (row, *group as usize * width + n));
            match aggregate {
                GroupAggregate::Rows => groups.for_each(|(_, at)| cells[at].count += 1),
                GroupAggregate::NotNull(is_null) => {
                    let nulls = self.program.truths(*is_null);
                    groups.for_each(|(row, at)| cells[at].count += u64::from(nulls[row] != YES));
                }
                GroupAggregate::Total(at) => {
                    let numbers = self.program.numbers(*at, &inputs);
                    if numbers.nulls.is_empty() {
                        groups.for_each(|(row, at)| {
                            cells[at].add(numbers.numbers[row]);
                        });
                    } else {
                        groups.filter(|(row, _)| !numbers.nulls[*row]).for_each(|(row, at)| {
                            cells[at].add(numbers.numbers[row]);
                        });
                    }
                }
                GroupAggregate::Extreme { column, least } => {
                    let vector = &vectors.vectors[*column];
                    groups.filter(|(row, _)| !vector.is_null(*row)).for_each(|(row, at)| {
                        cells[at].keep_better(vector.numbers[row], *least);
                    });
                }
                GroupAggregate::Distinct { column, seen } => {
                    let vector = &vectors.vectors[*column];
                    each_new(seen, vector, groups, &mut self.distinct_bytes, |at| cells[at].count += 1);
                }
            }
        }
        Ok(Ok(()))
    }

    /// Returns the groups of the rows that were looked up last.
    pub fn groups(&self) -> &[u32] {
        &self.groups
    }

    /// Converts the cell of an aggregate to its state.
    pub fn state(&self, group: usize, n: usize, aggregate: &Aggregate) -> AggregateState {
        let cell = self.cells.get(group * self.aggregates.len() + n).copied().unwrap_or_default();
        let (total, count) = (cell.total(), cell.count);
        aggregate.gathered(match &self.aggregates[n] {
            GroupAggregate::Rows | GroupAggregate::NotNull(_) | GroupAggregate::Distinct { .. } => {
                Gathered::Count(count)
            }
            GroupAggregate::Total(at) => Gathered::Total { total, scale: at.scale, is_int: at.is_int, count },
            GroupAggregate::Extreme { .. } if count == 0 => Gathered::Extreme(cohort_types::Value::Null),
            GroupAggregate::Extreme { column, .. } => {
                Gathered::Extreme(self.types[*column].value_of(total as i64))
            }
        })
    }

    /// Returns the bytes of a group's cells.
    pub fn cell_bytes(&self) -> usize {
        self.aggregates.len() * size_of::<Cell>()
    }
}

/// Returns true if keys and aggregates can be vectorized, provided that the column types allow it.
pub(crate) fn may_have_vectors(node: &AggregateNode) -> bool {
    let is_key = |expr: &Expr| matches!(expr, Expr::Column(_)) || year_of_column(expr).is_some();
    let is_measure = |aggregate: &Aggregate| match aggregate.kind {
        AggregateKind::Min | AggregateKind::Max | AggregateKind::Count => true,
        AggregateKind::CountStar | AggregateKind::Sum | AggregateKind::Avg => {
            aggregate.options.quantifier != Quantifier::Distinct
        }
        _ => false,
    };
    node.keys.iter().all(|(expr, _)| is_key(expr)) && node.aggregates.iter().all(is_measure)
}

fn group_aggregate(
    aggregate: &Aggregate,
    types: &[VectorType],
    compiler: &mut VectorCompiler<'_>,
) -> Option<GroupAggregate> {
    let is_extreme = matches!(aggregate.kind, AggregateKind::Min | AggregateKind::Max);
    if aggregate.options.quantifier == Quantifier::Distinct && !is_extreme {
        return match (aggregate.kind, aggregate.args.as_slice()) {
            (AggregateKind::Count, [Expr::Column(column)]) => {
                let is_number = types.get(column.ordinal).is_some_and(|ty| !ty.is_text());
                let seen = KeyTable::default();
                is_number.then_some(GroupAggregate::Distinct { column: column.ordinal, seen })
            }
            _ => None,
        };
    }
    match (aggregate.kind, aggregate.args.as_slice()) {
        (AggregateKind::CountStar, _) => Some(GroupAggregate::Rows),
        (AggregateKind::Count, [arg]) => match arg {
            Expr::Const(node) if !node.value.is_null() => Some(GroupAggregate::Rows),
            arg => compiler.nulls(arg).map(GroupAggregate::NotNull),
        },
        (AggregateKind::Sum | AggregateKind::Avg, [arg]) => compiler.number(arg).map(GroupAggregate::Total),
        (AggregateKind::Min | AggregateKind::Max, [Expr::Column(column)]) => {
            let ty = *types.get(column.ordinal)?;
            let least = aggregate.kind == AggregateKind::Min;
            (!ty.is_text()).then_some(GroupAggregate::Extreme { column: column.ordinal, least })
        }
        _ => None,
    }
}

/// Calls `see` for each row whose number is new in its cell, with the cell's position.
fn each_new(
    seen: &mut KeyTable,
    vector: &Vector,
    rows: impl Iterator<Item = (usize, usize)>,
    bytes: &mut usize,
    mut see: impl FnMut(usize),
) {
    for (row, at) in rows.filter(|(row, _)| !vector.is_null(*row)) {
        let mut key = [0; 14];
        key[..8].copy_from_slice(&vector.numbers[row].to_le_bytes());
        // There are fewer than 2^48 cells.
        key[8..].copy_from_slice(&(at as u64).to_le_bytes()[..6]);
        let hashed = seen.hash(&key);
        if seen.find(&hashed, &key).is_none() {
            seen.insert(&hashed, &key);
            *bytes += KeyTable::bytes_for(&key);
            see(at);
        }
    }
}

/// Accumulates all rows in one cell.
fn add_all(
    aggregate: &GroupAggregate,
    cell: &mut Cell,
    program: &VectorProgram,
    inputs: &[&Vector],
    vectors: &Vectors,
) {
    match aggregate {
        GroupAggregate::Rows => cell.count += vectors.rows as u64,
        GroupAggregate::NotNull(is_null) => {
            cell.count += program.truths(*is_null).iter().filter(|truth| **truth != YES).count() as u64;
        }
        GroupAggregate::Total(at) => {
            let numbers = program.numbers(*at, inputs);
            if numbers.nulls.is_empty() {
                let sum = numbers.numbers.iter().map(|number| i128::from(*number)).sum::<i128>();
                cell.set(cell.total() + sum);
                cell.count += vectors.rows as u64;
            } else {
                for (number, _) in numbers.numbers.iter().zip(numbers.nulls).filter(|(_, is_null)| !**is_null)
                {
                    cell.add(*number);
                }
            }
        }
        GroupAggregate::Extreme { column, least } => {
            let vector = &vectors.vectors[*column];
            let present = vector.numbers.iter().enumerate().filter(|(row, _)| !vector.is_null(*row));
            present.for_each(|(_, number)| cell.keep_better(*number, *least));
        }
        // Accumulated by the caller, which owns the table.
        GroupAggregate::Distinct { .. } => {}
    }
}

/// Appends the year of an element, or the whole date.
#[inline]
fn append_year(vector: &Vector, row: usize, key: &mut Vec<u8>) {
    let number = vector.numbers[row];
    if vector.is_null(row) {
        key.push(0);
    } else if is_whole_date(number) {
        key.push(1);
        key.extend_from_slice(&(year_of(number) as u16).to_le_bytes());
    } else {
        key.push(2);
        key.extend_from_slice(&number.to_le_bytes());
    }
}

/// Appends the bytes of an element; different elements of a vector have different bytes.
#[inline]
fn append_raw(vector: &Vector, ty: VectorType, row: usize, key: &mut Vec<u8>) {
    if vector.is_null(row) {
        key.push(0);
    } else if ty.is_text() {
        let text = vector.text(row);
        key.push(2);
        key.extend_from_slice(&(text.len() as u32).to_le_bytes());
        key.extend_from_slice(text);
    } else {
        key.extend_from_slice(&raw_number(vector.numbers[row]));
    }
}

/// Returns the raw key of a number.
#[inline]
fn raw_number(number: i64) -> [u8; 9] {
    let mut key = [1; 9];
    key[1..].copy_from_slice(&number.to_le_bytes());
    key
}
