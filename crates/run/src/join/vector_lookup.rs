//! Vectorized index lookup join: reads the left rows as vectors and returns vectors.
//!
//! Left rows are gathered, and the matches of all of them are requested in the order of their keys. Only the
//! columns that the keys are computed from are converted to rows.

use cohort_expr::Expr;
use cohort_optimize::{Join, JoinKind, Scan};
use cohort_types::{Interrupt, SqlResult, Value, VectorType};

use super::vector_hash::{PairCondition, joined_types, read_columns};
use crate::batch::Batch;
use crate::operator::Input;
use crate::runtime::{Held, Run};
use crate::scan::{Cursor, span_exprs};
use crate::storage::{MATCHED_BYTES, Matching};
use crate::vector_source::VectorSource;
use crate::vectors::{Vectors, column_types, scan_types};

/// Maximum number of gathered rows and of their bytes. The first batches are smaller, because the consumer
/// may stop early.
pub(super) const GATHERED_ROWS_MAX: usize = 16 << 10;
pub(super) const GATHERED_BYTES_MAX: usize = 4 << 20;

/// A vectorized index lookup join.
pub(super) struct VectorLookup<'p> {
    kind: JoinKind,
    matching: Matching,
    condition: Option<PairCondition<'p>>,
    source: VectorSource,
    /// The left rows being matched, and those read last.
    left: Vectors,
    came: Vectors,
    /// Order in which the left rows are matched.
    order: Vec<u32>,
    /// The left columns that keys are computed from, as rows; other columns are NULL.
    rows: Batch,
    key_columns: Vec<usize>,
    sorted_by: Option<usize>,
    is_matching: bool,
    /// For each left row, true if it has a match.
    has_match: Vec<bool>,
    /// The matches read last, and the left row of each.
    right: Vectors,
    of: Vec<u32>,
    numbers: Vec<u32>,
    held: Held,
}

/// Returns the kind of matches that a join needs if its rows may be returned in any order.
pub(super) fn matching(join: &Join, scan: &Scan) -> Matching {
    match join.kind {
        JoinKind::Inner | JoinKind::Left => Matching::InAnyOrder,
        JoinKind::Semi | JoinKind::Anti if join.on.is_none() && scan.filter.is_none() => Matching::One,
        JoinKind::Semi | JoinKind::Anti => Matching::Until,
    }
}

impl<'p> VectorLookup<'p> {
    /// Takes over the open input. Returns `None`, with no effect, if this join cannot be vectorized.
    pub fn new(
        join: &'p Join,
        scan: &'p Scan,
        sorted_by: Option<usize>,
        input: &mut Input<'p>,
        cursor: &mut Cursor<'p>,
        run: Run<'_, 'p>,
    ) -> SqlResult<Option<VectorLookup<'p>>> {
        let (Some(left), Some(right)) = (column_types(&join.left), scan_types(scan)) else { return Ok(None) };
        if join.kind == JoinKind::Left {
            return Ok(None);
        }
        let Some(condition) = PairCondition::of(join, &left, &right, run.eval) else { return Ok(None) };
        let mut held = Held::default();
        // No key is computed yet: NULL equals nothing.
        let no_row = vec![Value::Null; left.len()];
        if held.grow(run, MATCHED_BYTES).is_err()
            || !cursor.begin_matches(run, &no_row, matching(join, scan))?
        {
            held.release(run);
            return Ok(None);
        }
        let Some((source, left)) = VectorSource::of(input, &join.left, run)? else {
            held.release(run);
            return Ok(None);
        };
        let mut key_columns: Vec<usize> =
            span_exprs(scan).into_iter().flat_map(|expr: &Expr| expr.columns()).collect();
        key_columns.sort_unstable();
        key_columns.dedup();
        let (read_of_left, read_of_right) = read_columns(&condition, left.len());
        let read_of_left: Vec<usize> = key_columns.iter().copied().chain(read_of_left).collect();
        Ok(Some(VectorLookup {
            kind: join.kind,
            matching: matching(join, scan),
            condition,
            source,
            sorted_by: sorted_by.filter(|column| !left[*column].is_text()),
            came: Vectors::of_columns(left.clone(), read_of_left.iter().copied()),
            left: Vectors::of_columns(left, read_of_left),
            order: Vec::new(),
            rows: Batch::new(),
            key_columns,
            is_matching: false,
            has_match: Vec::new(),
            right: Vectors::of_columns(right, read_of_right),
            of: Vec::new(),
            numbers: Vec::new(),
            held,
        }))
    }

    /// Returns the types of the output columns.
    pub fn types(&self) -> Vec<VectorType> {
        joined_types(self.kind, &self.left, &self.right)
    }

    /// Releases the memory.
    pub fn release(&mut self, run: Run<'_, 'p>) {
        self.held.release(run);
    }

    /// Replaces the vectors with those of the next joined rows. Returns false at the end.
    pub fn next(
        &mut self,
        run: Run<'_, 'p>,
        input: &mut Input<'p>,
        cursor: &mut Cursor<'p>,
        out: &mut Vectors,
    ) -> SqlResult<bool> {
        out.clear();
        self.came.want_of(&out.wanted, 0);
        self.left.want_of(&out.wanted, 0);
        self.right.want_of(&out.wanted, self.left.vectors.len());
        while out.rows == 0 {
            run.eval.step()?;
            if !self.is_matching {
                if !self.gather(run, input)? {
                    return Ok(false);
                }
                self.make_rows();
                let can = cursor.begin_matches(run, self.rows.row(0), self.matching)?;
                assert!(can, "matches were found before");
                self.is_matching = true;
                self.has_match.clear();
                self.has_match.resize(self.left.rows, false);
            }
            self.of.clear();
            self.right.clear();
            self.is_matching = cursor.next_match_vectors(run, &self.rows, &mut self.of, &mut self.right)?;
            match self.is_matching {
                true => self.take_matches(run, out)?,
                false => self.take_rows(out),
            }
        }
        Ok(true)
    }

    /// Gathers left rows. Returns false if there are none.
    fn gather(&mut self, run: Run<'_, 'p>, input: &mut Input<'p>) -> SqlResult<bool> {
        self.held.shrink(run, self.held.bytes() - MATCHED_BYTES);
        self.left.clear();
        while self.left.rows < GATHERED_ROWS_MAX && self.held.bytes() < MATCHED_BYTES + GATHERED_BYTES_MAX {
            if !self.source.next(input, run, &mut self.came)? {
                break;
            }
            let has_room = self.held.grow(run, self.came.size_bytes()).is_ok();
            self.numbers.clear();
            self.numbers.extend(0..self.came.rows as u32);
            self.left.extend_from(&self.came, &self.numbers);
            if !has_room {
                break;
            }
        }
        Ok(self.left.rows > 0)
    }

    /// Builds the rows that keys are computed from.
    fn make_rows(&mut self) {
        self.order.clear();
        self.order.extend(0..self.left.rows as u32);
        if let Some(column) = self.sorted_by {
            let numbers = &self.left.vectors[column].numbers;
            if !numbers.is_sorted() {
                self.order.sort_by_key(|n| numbers[*n as usize]);
            }
        }
        self.rows.clear();
        for n in &self.order {
            let row = self.rows.open_row();
            let start = row.len();
            row.resize(start + self.left.vectors.len(), Value::Null);
            for column in &self.key_columns {
                row[start + column] = self.left.vectors[*column].value(*n as usize, self.left.types[*column]);
            }
            self.rows.end_row();
        }
    }

    /// Joins the matches read last, or only marks the left rows that have one.
    fn take_matches(&mut self, run: Run<'_, 'p>, out: &mut Vectors) -> SqlResult<()> {
        self.of.iter_mut().for_each(|n| *n = self.order[*n as usize]);
        self.numbers.clear();
        self.numbers.extend(0..self.of.len() as u32);
        if let Some(condition) = &mut self.condition {
            let passes = condition.ask((&self.left, &self.of), (&self.right, &self.numbers), run.eval)?;
            let mut kept = 0;
            for (n, passes) in passes.iter().enumerate() {
                self.of[kept] = self.of[n];
                self.numbers[kept] = n as u32;
                kept += usize::from(*passes);
            }
            self.of.truncate(kept);
            self.numbers.truncate(kept);
        }
        if matches!(self.kind, JoinKind::Semi | JoinKind::Anti) {
            self.of.iter().for_each(|n| self.has_match[*n as usize] = true);
            return Ok(());
        }
        out.gather_pairs((&self.left, &self.of), (&self.right, &self.numbers));
        Ok(())
    }

    /// Returns the rows with a match, or those without one, once all matches are known.
    fn take_rows(&mut self, out: &mut Vectors) {
        let wanted = match self.kind {
            JoinKind::Semi => true,
            JoinKind::Anti => false,
            JoinKind::Inner | JoinKind::Left => return,
        };
        self.numbers.clear();
        let found = self.has_match.iter().enumerate().filter(|(_, has_match)| **has_match == wanted);
        self.numbers.extend(found.map(|(n, _)| n as u32));
        out.extend_from(&self.left, &self.numbers);
    }
}
