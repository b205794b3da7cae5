//! Index lookup join: looks up each left row in a table.
//!
//! Many left rows are gathered and sorted by key before the lookups: neighbours in an index share pages, so
//! most of the pages needed were read recently. The order of the left rows is kept only if there are few, and
//! for locking reads, which must lock in the order of the plan.
//!
//! If the consumer wants many rows, the matches of all gathered rows are requested at once
//! ([`crate::Storage::next_match`]). An inner join takes the matches in the cheapest reading order.

use cohort_expr::Expr;
use cohort_optimize::{Join, JoinKind, ReadMode, Scan, Spans};
use cohort_types::{Interrupt, SqlResult, Value, VectorType, row_memory_bytes};

use super::left::Left;
use super::vector_lookup::{GATHERED_BYTES_MAX, GATHERED_ROWS_MAX, VectorLookup, matching};
use crate::batch::Batch;
use crate::operator::{Input, Operator};
use crate::runtime::{Held, Run};
use crate::scan::Cursor;
use crate::storage::{MATCHED_BYTES, Matching};
use crate::vectors::Vectors;

/// Minimum number of left rows for which they are sorted.
const SORTED_ROWS_MIN: usize = 256;
/// Number of rows requested by the consumer from which on matches are prefetched.
const MATCHED_WANT_MIN: usize = 256;

/// The index lookup join operator.
pub(crate) struct Lookup<'p> {
    join: &'p Join,
    scan: &'p Scan,
    left: Left<'p>,
    cursor: Cursor<'p>,
    /// The cursor is positioned among the matches of the current row.
    seeking: bool,
    /// A key has at most one row.
    is_unique: bool,
    /// Column of the left row by which rows are sorted.
    sorted_by: Option<usize>,
    /// Number of rows to gather next.
    gather: usize,
    /// The left side has no rows after the gathered ones.
    is_last: bool,
    held: Held,
    found: Vec<Value>,
    /// The left rows are matched all at once.
    matched: Option<Matching>,
    for_matches: Held,
    /// The vectorized join, once the consumer reads vectors.
    vectors: Option<Box<VectorLookup<'p>>>,
}

impl<'p> Lookup<'p> {
    pub fn new(join: &'p Join, left: Input<'p>, scan: &'p Scan) -> Lookup<'p> {
        Lookup {
            join,
            scan,
            left: Left::new(join, left),
            cursor: Cursor::new(scan),
            seeking: false,
            is_unique: scan.is_of_unique_key(),
            sorted_by: leading_column(scan).filter(|_| scan.mode == ReadMode::Snapshot),
            gather: 0,
            is_last: false,
            held: Held::default(),
            found: Vec::new(),
            matched: None,
            for_matches: Held::default(),
            vectors: None,
        }
    }

    /// Advances to the next left row.
    fn advance(&mut self, run: Run<'_, 'p>, want: usize) -> SqlResult<bool> {
        if self.is_last && self.left.at + 1 >= self.left.rows.len() {
            return Ok(false);
        }
        if !self.left.advance(run, want)? {
            return Ok(false);
        }
        if let Some(column) = self.sorted_by
            && self.left.at == 0
            && self.left.rows.len() >= SORTED_ROWS_MIN
        {
            self.gather(run)?;
            self.left.rows.sort_by_number(column);
        }
        if self.left.at == 0 {
            self.matched = None;
            if want >= MATCHED_WANT_MIN && self.left.rows.len() > 1 {
                self.begin_matches(run)?;
            }
        }
        Ok(true)
    }

    fn drop_vectors(&mut self, run: Run<'_, 'p>) {
        if let Some(mut vectors) = self.vectors.take() {
            vectors.release(run);
        }
    }

    /// Starts a batched lookup of all left rows, if possible.
    fn begin_matches(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        let matching = match matching(self.join, self.scan) {
            Matching::InAnyOrder if self.left.kind == JoinKind::Left => Matching::All,
            matching => matching,
        };
        let has_room = self.for_matches.bytes() > 0 || self.for_matches.grow(run, MATCHED_BYTES).is_ok();
        if has_room && self.cursor.begin_matches(run, self.left.row(), matching)? {
            self.matched = Some(matching);
        }
        Ok(())
    }

    /// Returns matches of any left rows, until there are no more or enough.
    fn take_matches(&mut self, run: Run<'_, 'p>, out: &mut Batch, target: usize) -> SqlResult<()> {
        while out.has_room(target) {
            run.eval.step()?;
            self.found.clear();
            let Some(n) = self.cursor.next_match(run, &self.left.rows, None, &mut self.found)? else {
                self.left.at = self.left.rows.len() - 1;
                self.matched = None;
                self.seeking = false;
                return Ok(());
            };
            out.open_row().extend_from_slice(self.left.rows.row(n));
            out.open_row().append(&mut self.found);
            match self.left.on {
                Some(on) if !on.passes(out.unfinished(), run.eval)? => out.cut_unfinished(0),
                _ => out.end_row(),
            }
        }
        Ok(())
    }

    /// Reads the next match of the current row.
    fn read_match(&mut self, run: Run<'_, 'p>) -> SqlResult<bool> {
        self.found.clear();
        match self.matched {
            None => self.cursor.read_into(run, &mut self.found),
            Some(_) => {
                let n = Some(self.left.at);
                Ok(self.cursor.next_match(run, &self.left.rows, n, &mut self.found)?.is_some())
            }
        }
    }

    /// Gathers more left rows.
    fn gather(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.held.release(run);
        let rows = &mut self.left.rows;
        let mut counted = 0;
        while rows.len() < self.gather {
            let bytes = (counted..rows.len()).map(|n| row_memory_bytes(rows.row(n))).sum();
            counted = rows.len();
            let has_room = self.held.grow(run, bytes).is_ok();
            if !has_room || self.held.bytes() > GATHERED_BYTES_MAX {
                break;
            }
            if self.left.input.next(run, rows, run.state.batch_rows)? == 0 {
                self.is_last = true;
                break;
            }
        }
        self.gather = (rows.len() * 4).min(GATHERED_ROWS_MAX);
        Ok(())
    }
}

impl<'p> Operator<'p> for Lookup<'p> {
    fn open(&mut self, run: Run<'_, 'p>) -> SqlResult<()> {
        self.seeking = false;
        self.gather = 0;
        self.is_last = false;
        self.matched = None;
        self.held.release(run);
        self.drop_vectors(run);
        self.left.open(run)
    }

    fn vector_types(&mut self, run: Run<'_, 'p>) -> SqlResult<Option<Vec<VectorType>>> {
        let (input, cursor) = (&mut self.left.input, &mut self.cursor);
        self.vectors =
            VectorLookup::new(self.join, self.scan, self.sorted_by, input, cursor, run)?.map(Box::new);
        Ok(self.vectors.as_ref().map(|vectors| vectors.types()))
    }

    fn next_vectors(&mut self, run: Run<'_, 'p>, out: &mut Vectors) -> SqlResult<bool> {
        match &mut self.vectors {
            Some(vectors) => vectors.next(run, &mut self.left.input, &mut self.cursor, out),
            None => Ok(false),
        }
    }

    fn next(&mut self, run: Run<'_, 'p>, out: &mut Batch, want: usize) -> SqlResult<()> {
        let target = out.len().saturating_add(want);
        while out.has_room(target) {
            run.eval.step()?;
            if !self.seeking {
                if !self.advance(run, want)? {
                    break;
                }
                if self.matched.is_none() {
                    self.cursor.seek(run, self.left.row(), None)?;
                }
                self.seeking = true;
            }
            if self.matched == Some(Matching::InAnyOrder) {
                self.take_matches(run, out, target)?;
                continue;
            }
            if !self.read_match(run)? {
                self.left.end_matches(out, self.cursor.width());
                self.seeking = false;
                continue;
            }
            self.left.begin(out);
            out.open_row().append(&mut self.found);
            let is_decided = self.left.decide(run, out)?;
            self.seeking = !(is_decided || self.is_unique && self.left.matched);
        }
        self.left.return_lent(out);
        Ok(())
    }

    fn close(&mut self, run: Run<'_, 'p>) {
        self.cursor.close(run);
        self.matched = None;
        self.held.release(run);
        self.for_matches.release(run);
        self.drop_vectors(run);
        self.left.input.close(run);
    }
}

/// Returns the left column whose value is the first part of the key.
fn leading_column(scan: &Scan) -> Option<usize> {
    let Spans::List(spans) = &scan.access.spans else { return None };
    match spans.as_slice() {
        [span] => match span.eq.first()? {
            Expr::Column(column) => Some(column.ordinal),
            _ => None,
        },
        _ => None,
    }
}
