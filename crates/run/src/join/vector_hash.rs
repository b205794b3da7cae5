//! Vectorized hash join: reads both sides as vectors and returns vectors.
//!
//! # Concepts
//! The right rows are *stored* as columns. A hash table maps a key to its first row; chains link each row to
//! the next one with the same key. Left rows are looked up one batch at a time. The matches are a list of
//! *pairs* of row numbers. The join condition is evaluated for the pairs, and the output columns are gathered
//! by them.
//!
//! If the join kind must know whether a left row had a match, the pairs of the row are followed by a pair
//! without a right row, the *end* of the row.
//!
//! # When the right rows do not fit
//! The join stops using vectors ([`Progress::Full`]), and [`super::Hash`] partitions the rows of both sides.

use cohort_expr::{EvalContext, Expr, TruthAt, VectorCompiler, VectorProgram, YES};
use cohort_optimize::{HashKey, Join, JoinKind};
use cohort_types::{Interrupt, NO_ELEMENT, SqlResult, Value, Vector, VectorType};

use crate::key_table::{KeyBatch, KeyTable};
use crate::operator::Input;
use crate::runtime::{Held, Run};
use crate::storage::Kept;
use crate::vector_source::VectorSource;
use crate::vectors::{Vectors, column_types, right_types};

/// Maximum number of pairs built at once.
const PAIRS_MAX: usize = 4096;

/// Result of a call.
pub(super) enum Progress {
    /// Rows were returned.
    Rows,
    Over,
    /// The right side does not fit into memory.
    Full,
}

/// Left and right row number of each pair.
#[derive(Default)]
struct Pairs {
    left: Vec<u32>,
    right: Vec<u32>,
}

/// A compiled condition over pairs.
pub(super) struct PairCondition<'p> {
    expr: &'p Expr,
    program: VectorProgram,
    truth: TruthAt,
    vectors: Vec<Vector>,
    passes: Vec<bool>,
}

impl<'p> PairCondition<'p> {
    /// Compiles the condition of a join with these column types. Returns `None` if it cannot be compiled, and
    /// `Some(None)` if the join has no condition.
    pub fn of(
        join: &'p Join,
        left: &[VectorType],
        right: &[VectorType],
        eval: &EvalContext<'_>,
    ) -> Option<Option<PairCondition<'p>>> {
        let Some(expr) = &join.on else { return Some(None) };
        let type_of = |column: usize| left.iter().chain(right).nth(column).copied();
        let mut compiler = VectorCompiler::new(&type_of, eval);
        let truth = compiler.condition(expr)?;
        let program = compiler.finish();
        let vectors = program.inputs().iter().map(|_| Vector::default()).collect();
        Some(Some(PairCondition { expr, program, truth, vectors, passes: Vec::new() }))
    }

    /// Evaluates the condition and returns which pairs pass.
    pub fn ask(
        &mut self,
        (left, of_left): (&Vectors, &[u32]),
        (right, of_right): (&Vectors, &[u32]),
        eval: &EvalContext<'_>,
    ) -> SqlResult<&[bool]> {
        let width = left.vectors.len();
        for (column, vector) in self.program.inputs().iter().zip(&mut self.vectors) {
            vector.clear();
            match column.checked_sub(width) {
                None => vector.extend_from(&left.vectors[*column], of_left, left.types[*column]),
                Some(column) => vector.extend_from(&right.vectors[column], of_right, right.types[column]),
            }
        }
        let inputs: Vec<&Vector> = self.vectors.iter().collect();
        self.passes.clear();
        if self.program.run(&inputs, of_left.len(), eval)?.is_ok() {
            self.passes.extend(self.program.truths(self.truth).iter().map(|truth| *truth == YES));
            return Ok(&self.passes);
        }
        // A number does not fit: evaluate row by row.
        let mut row: Vec<Value> = Vec::new();
        for (l, r) in of_left.iter().zip(of_right) {
            row.clear();
            row.extend(left.row(*l as usize));
            let passes = *r != NO_ELEMENT && {
                row.extend(right.row(*r as usize));
                self.expr.passes(&row, eval)?
            };
            self.passes.push(passes);
        }
        Ok(&self.passes)
    }
}

/// Returns the left and the right columns that a condition reads.
pub(super) fn read_columns(
    condition: &Option<PairCondition<'_>>,
    left_width: usize,
) -> (Vec<usize>, Vec<usize>) {
    let columns = condition.iter().flat_map(|condition| condition.program.inputs().iter().copied());
    let (left, right): (Vec<usize>, Vec<usize>) = columns.partition(|column| *column < left_width);
    (left, right.into_iter().map(|column| column - left_width).collect())
}

/// Returns the column types of the join's output.
pub(super) fn joined_types(kind: JoinKind, left: &Vectors, right: &Vectors) -> Vec<VectorType> {
    let right = match kind {
        JoinKind::Inner | JoinKind::Left => right.types.as_slice(),
        JoinKind::Semi | JoinKind::Anti => &[],
    };
    left.types.iter().chain(right).copied().collect()
}

/// A vectorized hash join.
pub(super) struct VectorHash<'p> {
    kind: JoinKind,
    /// Positions of the key columns on the left and on the right.
    keys: Vec<(usize, usize)>,
    condition: Option<PairCondition<'p>>,
    pub left_source: VectorSource,
    pub right_source: VectorSource,
    /// The current left rows.
    pub left: Vectors,
    /// The right rows that were read last.
    pub right: Vectors,
    pub stored: Vectors,
    table: KeyTable,
    /// First and last row of each key.
    chains: Vec<(u32, u32)>,
    /// The next row with the same key, for each row.
    next: Vec<u32>,
    /// Only one row per key is needed.
    keeps_first: bool,
    pub is_built: bool,
    held: Held,
    batch: KeyBatch,
    without_key: Vec<bool>,
    /// First match of each left row.
    first: Vec<u32>,
    /// The current left row, its next match, and whether it had a match.
    at: usize,
    match_at: u32,
    matched: bool,
    pairs: Pairs,
    kept: Pairs,
}

impl<'p> VectorHash<'p> {
    /// Takes over both inputs, which are open. Returns `None`, with no effect, if this join cannot be
    /// vectorized.
    pub fn new(
        join: &'p Join,
        keys: &'p [HashKey],
        (left, right): (&mut Input<'p>, &mut Input<'p>),
        right_node: &'p cohort_optimize::Node,
        run: Run<'_, 'p>,
    ) -> SqlResult<Option<VectorHash<'p>>> {
        let (Some(left_types), Some(of_right)) = (column_types(&join.left), right_types(join)) else {
            return Ok(None);
        };
        let column = |expr: &Expr, types: &[VectorType]| match expr {
            Expr::Column(column) => {
                types.get(column.ordinal).filter(|ty| !ty.is_text()).map(|ty| (column.ordinal, *ty))
            }
            _ => None,
        };
        let mut columns = Vec::new();
        for key in keys {
            match (column(&key.left, &left_types), column(&key.right, &of_right)) {
                (Some((l, a)), Some((r, b))) if a == b => columns.push((l, r)),
                _ => return Ok(None),
            }
        }
        let Some(condition) = PairCondition::of(join, &left_types, &of_right, run.eval) else {
            return Ok(None);
        };
        right.open(run)?;
        let Some((right_source, of_right)) = VectorSource::of(right, right_node, run)? else {
            return Ok(None);
        };
        let Some((left_source, left_types)) = VectorSource::of(left, &join.left, run)? else {
            return Ok(None);
        };
        let is_filter = matches!(join.kind, JoinKind::Semi | JoinKind::Anti);
        let (read_of_left, read_of_right) = read_columns(&condition, left_types.len());
        let read_of_left: Vec<usize> = columns.iter().map(|key| key.0).chain(read_of_left).collect();
        let read_of_right: Vec<usize> = columns.iter().map(|key| key.1).chain(read_of_right).collect();
        let left = Vectors::of_columns(left_types, read_of_left);
        let right = Vectors::of_columns(of_right.clone(), read_of_right.iter().copied());
        Ok(Some(VectorHash {
            kind: join.kind,
            keys: columns,
            keeps_first: is_filter && condition.is_none(),
            condition,
            left_source,
            right_source,
            left,
            stored: Vectors::of_columns(of_right, read_of_right),
            right,
            table: KeyTable::default(),
            chains: Vec::new(),
            next: Vec::new(),
            is_built: false,
            held: Held::default(),
            batch: KeyBatch::default(),
            without_key: Vec::new(),
            first: Vec::new(),
            at: 0,
            match_at: NO_ELEMENT,
            matched: false,
            pairs: Pairs::default(),
            kept: Pairs::default(),
        }))
    }

    /// Returns the types of the output columns.
    pub fn types(&self) -> Vec<VectorType> {
        joined_types(self.kind, &self.left, &self.stored)
    }

    /// Restarts before the first left row and keeps the right side.
    pub fn restart(&mut self) {
        self.left.clear();
        self.at = 0;
        self.match_at = NO_ELEMENT;
        self.matched = false;
    }

    /// Releases the memory.
    pub fn release(&mut self, run: Run<'_, 'p>) {
        self.held.release(run);
    }

    /// Replaces the vectors with those of the next joined rows.
    pub fn next(
        &mut self,
        run: Run<'_, 'p>,
        left: &mut Input<'p>,
        right: &mut Input<'p>,
        out: &mut Vectors,
    ) -> SqlResult<Progress> {
        out.clear();
        self.left.want_of(&out.wanted, 0);
        let width = self.left.vectors.len();
        self.right.want_of(&out.wanted, width);
        self.stored.want_of(&out.wanted, width);
        while out.rows == 0 {
            if self.at >= self.left.rows {
                if !self.left_source.next(left, run, &mut self.left)? {
                    return Ok(Progress::Over);
                }
                if !self.is_built && !self.build(run, right)? {
                    return Ok(Progress::Full);
                }
                self.find_first();
            }
            run.eval.steps(self.left.rows as u32)?;
            self.make_pairs();
            self.keep_pairs(run)?;
            run.eval.steps(self.kept.left.len() as u32)?;
            out.gather_pairs((&self.left, &self.kept.left), (&self.stored, &self.kept.right));
        }
        Ok(Progress::Rows)
    }

    /// Stores the right side. Returns false if it does not fit; then the rows read last are not stored.
    fn build(&mut self, run: Run<'_, 'p>, right: &mut Input<'p>) -> SqlResult<bool> {
        let memory = run.storage().operator_memory(Kept::Joined);
        let mut rows = Vec::new();
        while self.right_source.next(right, run, &mut self.right)? {
            make_keys(
                self.keys.iter().map(|key| key.1),
                &self.right,
                &self.table,
                &mut self.batch,
                &mut self.without_key,
            );
            let bytes = self.right.size_bytes() + self.right.rows * size_of::<u32>();
            if self.held.bytes() + bytes > memory || self.stored.rows + self.right.rows >= NO_ELEMENT as usize
            {
                return Ok(false);
            }
            self.held.grow(run, bytes)?;
            rows.clear();
            let mut key_bytes = 0;
            for n in (0..self.right.rows).filter(|n| !self.without_key[*n]) {
                let (hashed, key) = self.batch.key(n);
                let number = self.next.len() as u32;
                match self.table.find(&hashed, key) {
                    Some(_) if self.keeps_first => continue,
                    Some(chain) => {
                        let last = std::mem::replace(&mut self.chains[chain].1, number);
                        self.next[last as usize] = number;
                    }
                    None => {
                        self.table.insert(&hashed, key);
                        self.chains.push((number, number));
                        key_bytes += KeyTable::bytes_for(key) + 2 * size_of::<u32>();
                    }
                }
                self.next.push(NO_ELEMENT);
                rows.push(n as u32);
            }
            self.stored.extend_from(&self.right, &rows);
            self.held.grow(run, key_bytes)?;
        }
        self.is_built = true;
        Ok(true)
    }

    /// Finds the first match of each left row.
    fn find_first(&mut self) {
        let keys = self.keys.iter().map(|key| key.0);
        make_keys(keys, &self.left, &self.table, &mut self.batch, &mut self.without_key);
        self.first.clear();
        for n in 0..self.left.rows {
            let (hashed, key) = self.batch.key(n);
            let found = if self.without_key[n] { None } else { self.table.find(&hashed, key) };
            self.first.push(found.map_or(NO_ELEMENT, |chain| self.chains[chain].0));
        }
        self.at = 0;
        self.matched = false;
        self.match_at = self.first.first().copied().unwrap_or(NO_ELEMENT);
    }

    /// Builds the next pairs.
    fn make_pairs(&mut self) {
        let Pairs { left, right } = &mut self.pairs;
        left.clear();
        right.clear();
        let has_ends = self.kind != JoinKind::Inner;
        while self.at < self.left.rows && left.len() < PAIRS_MAX {
            if self.match_at != NO_ELEMENT {
                left.push(self.at as u32);
                right.push(self.match_at);
                self.match_at = self.next[self.match_at as usize];
                continue;
            }
            if has_ends {
                left.push(self.at as u32);
                right.push(NO_ELEMENT);
            }
            self.at += 1;
            self.match_at = self.first.get(self.at).copied().unwrap_or(NO_ELEMENT);
        }
    }

    /// Keeps the pairs that the join kind returns.
    fn keep_pairs(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        let Pairs { left, right } = &self.pairs;
        let passes = match &mut self.condition {
            None => None,
            Some(condition) => Some(condition.ask((&self.left, left), (&self.stored, right), run.eval)?),
        };
        self.kept.left.clear();
        self.kept.right.clear();
        for (n, (l, r)) in left.iter().zip(right).enumerate() {
            let is_match = *r != NO_ELEMENT && passes.is_none_or(|passes| passes[n]);
            let is_kept = match (self.kind, *r == NO_ELEMENT) {
                (JoinKind::Inner, _) | (JoinKind::Left, false) => is_match,
                (JoinKind::Semi, false) => is_match && !self.matched,
                (JoinKind::Left | JoinKind::Anti, true) => !self.matched,
                (JoinKind::Semi, true) | (JoinKind::Anti, false) => false,
            };
            self.matched = *r != NO_ELEMENT && (self.matched || is_match);
            if is_kept {
                self.kept.left.push(*l);
                self.kept.right.push(*r);
            }
        }
        Ok(())
    }
}

/// Computes the keys of the rows, and marks those that contain a NULL.
fn make_keys(
    columns: impl Iterator<Item = usize> + Clone,
    vectors: &Vectors,
    table: &KeyTable,
    batch: &mut KeyBatch,
    without_key: &mut Vec<bool>,
) {
    batch.clear();
    without_key.clear();
    let is_one = columns.clone().count() == 1;
    for row in 0..vectors.rows {
        let mut is_null = false;
        for column in columns.clone() {
            let vector = &vectors.vectors[column];
            is_null |= vector.is_null(row);
            append_number(vector.numbers[row], is_one, batch.open_key());
        }
        batch.end_key(table);
        without_key.push(is_null);
    }
    table.touch(batch);
}

/// Appends a number. Multi-part keys get a compact encoding, because short keys are looked up faster.
#[inline]
fn append_number(number: i64, is_alone: bool, key: &mut Vec<u8>) {
    let bytes = number.to_le_bytes();
    if is_alone {
        return key.extend_from_slice(&bytes);
    }
    let used = 8 - number.leading_zeros() as usize / 8;
    key.push(used as u8);
    key.extend_from_slice(&bytes[..used]);
}
