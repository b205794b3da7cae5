//! [`LaneScan`]: the rows of a snapshot scan, a batch at a time.
//!
//! # Concepts
//! A batch of the engine holds some thousand rows as bytes: entries of the clustered index, or of one that
//! has all columns that are wanted (a covering index). The conditions of the scan are asked of all of them,
//! one condition after the other: it reads its own columns of the rows that are left ([`ColumnReader`]), runs
//! its program ([`LaneProgram`]) and *selects* rows. Only those that passed all conditions are decoded, and
//! of these only the columns that are yielded.
//!
//! # Order of conditions
//! The conditions that have a program come first as far as they stand first in the statement; from the first
//! one on that has none, all are asked row by row ([`LaneScan::rest`]). So no condition that warns is asked
//! of more or of fewer rows than it would be otherwise.
//!
//! # When rows are not plain
//! Rows written before a column was added, and such as are longer than 64 KiB, are decoded and asked row by
//! row, the whole batch with them. So is a batch in which a number does not fit 64 bits. Entries of other
//! indexes are always plain.

use std::ops::Range;

use cohort_expr::{EvalContext, Expr, LaneCompiler, LaneProgram, TruthAt, YES};
use cohort_optimize::{Columns, Scan};
use cohort_plan::conjuncts::{all_of, split};
use cohort_run::{Batch, Lanes};
use cohort_table::OpenTable;
use cohort_trx::SessionTrx;
use cohort_types::{Interrupt, Lane, LaneReader, LaneType, RowError, SqlResult, Value};

use crate::covering::EntryReader;
use crate::cursor::TableCursor;
use crate::steps::row_done;

/// Steps that a row of a batch counts for.
const STEPS_OF_A_ROW: u32 = 2;

/// What reads a scan by batches.
pub struct LaneScan {
    conditions: Vec<LaneCondition>,
    /// Asked row by row of what the others let pass.
    rest: Option<Expr>,
    /// Columns that `rest` and the expressions of conditions read.
    columns: Columns,
    /// Numbers of the entries of the batch that passed.
    selected: Vec<u32>,
    /// The one of these that is next.
    at: usize,
    /// A decoded row of the whole table.
    row: Vec<Value>,
    /// Of the columns yielded, if all have lanes.
    yields: Option<Vec<ColumnReader>>,
    /// All entries of the batch are plain.
    is_plain: bool,
    /// Entries read since somebody asked.
    examined: u64,
}

/// How a column is read.
enum ColumnReader {
    /// From rows.
    Row(LaneReader),
    /// From the entries of a secondary index.
    Entry(EntryReader),
}

struct LaneCondition {
    expr: Expr,
    program: LaneProgram,
    truth: TruthAt,
    readers: Vec<ColumnReader>,
    lanes: Vec<Lane>,
}

impl LaneScan {
    /// What reads this scan; None if it is read row by row.
    pub fn of(cursor: &TableCursor, scan: &Scan, eval: &EvalContext<'_>) -> Option<LaneScan> {
        match cursor.reads_batches() && !scan.with_key {
            true => LaneScan::new(cursor, scan, eval),
            false => None,
        }
    }

    /// What asks the conditions of a scan and yields its columns, wherever its entries come from.
    pub(crate) fn new(cursor: &TableCursor, scan: &Scan, eval: &EvalContext<'_>) -> Option<LaneScan> {
        let reader_of = |column: usize| ColumnReader::of(cursor, column);
        let type_of = |column: usize| reader_of(column).map(|reader| reader.ty());
        let mut parts = scan.filter.clone().map(split).unwrap_or_default().into_iter();
        let mut conditions = Vec::new();
        let mut rest = Vec::new();
        for expr in parts.by_ref() {
            let mut compiler = LaneCompiler::new(&type_of, eval);
            let Some(truth) = compiler.condition(&expr) else {
                rest.push(expr);
                break;
            };
            let program = compiler.finish();
            let readers: Option<Vec<ColumnReader>> =
                program.inputs().iter().map(|column| reader_of(*column)).collect();
            let readers = readers?;
            let lanes = readers.iter().map(|_| Lane::default()).collect();
            conditions.push(LaneCondition { expr, program, truth, readers, lanes });
        }
        rest.extend(parts);
        let yields = scan.columns.iter().map(|column| reader_of(*column)).collect();
        Some(LaneScan {
            conditions,
            rest: all_of(rest),
            columns: scan.read.clone(),
            selected: Vec::new(),
            at: 0,
            row: Vec::new(),
            yields,
            is_plain: false,
            examined: 0,
        })
    }

    /// The types of the columns yielded, if all have lanes.
    pub fn types(&self) -> Option<Vec<LaneType>> {
        Some(self.yields.as_ref()?.iter().map(ColumnReader::ty).collect())
    }

    /// Entries that were read since this was asked last.
    pub fn take_examined(&mut self) -> u64 {
        std::mem::take(&mut self.examined)
    }

    /// Appends the columns yielded by at most `want` rows, and says of how many; fewer at the end, and when
    /// the batch is full.
    pub fn next_rows(
        &mut self,
        cursor: &mut TableCursor,
        trx: &mut SessionTrx,
        scan: &Scan,
        out: &mut Batch,
        want: usize,
        eval: &EvalContext<'_>,
    ) -> SqlResult<usize> {
        let mut rows = 0;
        while rows < want && !out.is_full() {
            if self.at == self.selected.len() {
                if !self.select(cursor, trx, eval)? {
                    break;
                }
                continue;
            }
            let end = self.selected.len().min(self.at + want - rows);
            let first = self.at;
            for n in &self.selected[first..end] {
                if out.is_full() {
                    break;
                }
                if !scan.columns.is_empty() {
                    yield_row(cursor, *n as usize, &scan.columns, &mut self.row, out.open_row())?;
                }
                out.end_row();
                self.at += 1;
            }
            rows += self.at - first;
        }
        Ok(rows)
    }

    /// Replaces the lanes by those of the rows of one batch that pass; false at the end. [`LaneScan::types`]
    /// says of which types they are.
    pub fn next_lanes(
        &mut self,
        cursor: &mut TableCursor,
        trx: &mut SessionTrx,
        lanes: &mut Lanes,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        lanes.clear();
        while self.at == self.selected.len() {
            if !self.select(cursor, trx, eval)? {
                return Ok(false);
            }
        }
        self.read_selected(cursor, lanes)?;
        Ok(true)
    }

    /// The entries selected that were not yielded yet.
    pub(crate) fn all_selected(&self) -> &[u32] {
        &self.selected[self.at..]
    }

    /// Appends the lanes of the columns yielded of all of these.
    pub(crate) fn read_selected(&mut self, cursor: &TableCursor, lanes: &mut Lanes) -> SqlResult<()> {
        debug_assert_eq!(
            self.yields.as_ref().map(Vec::len),
            Some(lanes.lanes.len()),
            "every column has a lane"
        );
        let selected = &self.selected[self.at..];
        lanes.rows += selected.len();
        let wanted = lanes.wanted.iter().zip(&lanes.lens_wanted);
        for ((reader, lane), wanted) in self.yields.iter().flatten().zip(&mut lanes.lanes).zip(wanted) {
            match wanted {
                (true, _) => reader.read(cursor, selected, self.is_plain, lane)?,
                (false, true) => reader.read_lens(cursor, selected, self.is_plain, lane)?,
                (false, false) => {}
            }
        }
        self.at = self.selected.len();
        Ok(())
    }

    /// Reads a batch and selects the rows that pass; false at the end.
    fn select(
        &mut self,
        cursor: &mut TableCursor,
        trx: &mut SessionTrx,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        self.forget();
        let Some(entries) = cursor.take_batch(trx)? else { return Ok(false) };
        self.select_of(cursor, entries, eval)?;
        Ok(true)
    }

    /// Forgets the rows selected.
    pub(crate) fn forget(&mut self) {
        self.selected.clear();
        self.at = 0;
    }

    /// Whether conditions are asked row by row.
    pub(crate) fn asks_by_rows(&self) -> bool {
        self.rest.is_some()
    }

    /// The entry selected that is next.
    #[inline]
    pub(crate) fn selected(&self) -> Option<usize> {
        self.selected.get(self.at).map(|n| *n as usize)
    }

    /// Goes behind it.
    #[inline]
    pub(crate) fn pass(&mut self) {
        self.at += 1;
    }

    /// Appends the columns that are yielded of an entry.
    #[inline]
    pub(crate) fn yield_entry(
        &mut self,
        cursor: &TableCursor,
        entry: usize,
        scan: &Scan,
        out: &mut Vec<Value>,
    ) -> SqlResult<()> {
        match scan.columns.is_empty() {
            true => Ok(()),
            false => yield_row(cursor, entry, &scan.columns, &mut self.row, out),
        }
    }

    /// Selects those of some entries of the cursor's batch that pass.
    pub(crate) fn select_of(
        &mut self,
        cursor: &TableCursor,
        entries: Range<usize>,
        eval: &EvalContext<'_>,
    ) -> SqlResult<()> {
        self.forget();
        self.examined += entries.len() as u64;
        eval.steps(entries.len() as u32 * STEPS_OF_A_ROW)?;
        let Range { start, end } = entries;
        self.selected.extend(start as u32..end as u32);
        let layout = &cursor.open_table().layout;
        self.is_plain = cursor.covering().is_some() || (start..end).all(|n| layout.is_plain(cursor.value(n)));
        for condition in &mut self.conditions {
            if self.selected.is_empty() {
                break;
            }
            if !self.is_plain || !condition.select(cursor, &mut self.selected, eval)? {
                ask_each(cursor, &self.columns, &condition.expr, &mut self.row, &mut self.selected, eval)?;
            }
        }
        if let Some(rest) = &self.rest {
            ask_each(cursor, &self.columns, rest, &mut self.row, &mut self.selected, eval)?;
        }
        Ok(())
    }
}

impl LaneCondition {
    /// Keeps the rows that pass; false, and nothing done, when a number does not fit.
    fn select(
        &mut self,
        cursor: &TableCursor,
        selected: &mut Vec<u32>,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        for (reader, lane) in self.readers.iter().zip(&mut self.lanes) {
            lane.clear();
            reader.read(cursor, selected, true, lane)?;
        }
        let inputs: Vec<&Lane> = self.lanes.iter().collect();
        if self.program.run(&inputs, selected.len(), eval)?.is_err() {
            return Ok(false);
        }
        let mut kept = 0;
        for (n, truth) in self.program.truths(self.truth).iter().enumerate() {
            selected[kept] = selected[n];
            kept += usize::from(*truth == YES);
        }
        selected.truncate(kept);
        Ok(true)
    }
}

impl ColumnReader {
    fn of(cursor: &TableCursor, column: usize) -> Option<ColumnReader> {
        let table = cursor.open_table();
        match cursor.covering() {
            Some(covering) => covering.lane(table, cursor.index(), column).map(ColumnReader::Entry),
            None => table.layout.lane(column).map(ColumnReader::Row),
        }
    }

    fn ty(&self) -> LaneType {
        match self {
            ColumnReader::Row(reader) => reader.ty(),
            ColumnReader::Entry(reader) => reader.ty(),
        }
    }

    /// Appends the lengths of the selected rows' texts to a lane, or the column where that is as cheap.
    fn read_lens(
        &self,
        cursor: &TableCursor,
        selected: &[u32],
        is_plain: bool,
        lane: &mut Lane,
    ) -> SqlResult<()> {
        match self {
            ColumnReader::Row(reader) if is_plain => {
                let read = reader.read_lens(selected.iter().map(|n| cursor.value(*n as usize)), lane);
                read.map_err(|error| cursor.open_table().row_error(error))
            }
            _ => self.read(cursor, selected, is_plain, lane),
        }
    }

    /// Appends the column of the selected rows to a lane.
    fn read(&self, cursor: &TableCursor, selected: &[u32], is_plain: bool, lane: &mut Lane) -> SqlResult<()> {
        let table = cursor.open_table();
        match self {
            ColumnReader::Row(reader) => {
                let rows = selected.iter().map(|n| cursor.value(*n as usize));
                let read = match is_plain {
                    true => reader.read(rows, lane),
                    false => read_unlike_rows(table, reader, rows, lane),
                };
                read.map_err(|error| table.row_error(error))
            }
            ColumnReader::Entry(reader) => {
                let entries = selected.iter().map(|n| cursor.entry(*n as usize));
                reader.read(entries, lane).map_err(|error| table.key_error(cursor.index(), error))
            }
        }
    }
}

/// The same where not all rows are plain.
fn read_unlike_rows<'r>(
    table: &OpenTable,
    reader: &LaneReader,
    mut rows: impl Iterator<Item = &'r [u8]>,
    lane: &mut Lane,
) -> Result<(), RowError> {
    rows.try_for_each(|row| {
        let value = table.layout.decode_one(row, reader.column())?;
        let fits = lane.push_value(&value, reader.ty());
        if fits { Ok(()) } else { Err(RowError::Corrupt) }
    })
}

/// Appends the columns of an entry to a row. `whole` is room for a row of the table.
fn yield_row(
    cursor: &TableCursor,
    n: usize,
    columns: &[usize],
    whole: &mut Vec<Value>,
    out: &mut Vec<Value>,
) -> SqlResult<()> {
    let table = cursor.open_table();
    if cursor.covering().is_none() {
        let decoded = table.layout.decode_in_order(cursor.value(n), columns, out);
        return decoded.map_err(|error| table.row_error(error));
    }
    cursor.decode_entry(n, &Columns::All, whole)?;
    out.extend(columns.iter().map(|column| whole[*column].clone()));
    Ok(())
}

/// Asks a condition row by row and keeps the rows that pass.
fn ask_each(
    cursor: &TableCursor,
    columns: &Columns,
    condition: &Expr,
    row: &mut Vec<Value>,
    selected: &mut Vec<u32>,
    eval: &EvalContext<'_>,
) -> SqlResult<()> {
    let mut kept = 0;
    for n in 0..selected.len() {
        row_done(eval)?;
        cursor.decode_entry(selected[n] as usize, columns, row)?;
        if condition.passes(row, eval)? {
            selected[kept] = selected[n];
            kept += 1;
        }
    }
    selected.truncate(kept);
    Ok(())
}
