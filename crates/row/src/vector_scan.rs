//! [`VectorScan`]: vectorized snapshot scan.
//!
//! # Concepts
//! A batch of the engine holds some thousand rows as bytes: entries of the clustered index, or of a covering
//! index. The scan applies its conditions to the whole batch, one condition after the other. Each condition
//! reads its own columns of the rows still selected ([`ColumnReader`]), runs its vectorized program
//! ([`VectorProgram`]) and narrows the *selection*. Only rows that pass all conditions are decoded, and of
//! these only the output columns.
//!
//! # Order of conditions
//! The leading conditions of the statement that compile to programs are evaluated vectorized. From the first
//! one that does not compile, all conditions are evaluated row by row ([`VectorScan::rest`]). So a condition
//! that can raise warnings is evaluated for exactly the rows for which it would be evaluated otherwise.
//!
//! # Rows that are not plain
//! Rows written before a column was added, and rows longer than 64 KiB, are not *plain*. If a batch contains
//! one, the whole batch is decoded and evaluated row by row. A batch with a number that does not fit 64 bits
//! is handled in the same way. Entries of secondary indexes are always plain.

use std::ops::Range;

use cohort_expr::{EvalContext, Expr, TruthAt, VectorCompiler, VectorProgram, YES};
use cohort_optimize::{Columns, Scan};
use cohort_plan::conjuncts::{all_of, split};
use cohort_run::{Batch, Vectors};
use cohort_table::OpenTable;
use cohort_trx::SessionTrx;
use cohort_types::{Interrupt, RowError, SqlResult, Value, Vector, VectorReader, VectorType};

use crate::covering::EntryReader;
use crate::cursor::TableCursor;
use crate::steps::row_done;

/// Evaluation steps that a row of a batch counts for.
const STEPS_OF_A_ROW: u32 = 2;

/// A vectorized scan.
pub struct VectorScan {
    conditions: Vec<VectorCondition>,
    /// Conditions without a program, evaluated row by row for the rows that passed the others.
    rest: Option<Expr>,
    /// Columns read by `rest` and by the expressions of conditions.
    columns: Columns,
    /// Batch entries that passed.
    selected: Vec<u32>,
    /// Position of the next one.
    at: usize,
    /// A decoded row of the whole table.
    row: Vec<Value>,
    /// Readers of the output columns, if all have vector types.
    yields: Option<Vec<ColumnReader>>,
    /// All entries of the batch are plain.
    is_plain: bool,
    /// Entries read since the last [`VectorScan::take_examined`].
    examined: u64,
}

/// Reader of one column.
enum ColumnReader {
    /// Reads from row bytes.
    Row(VectorReader),
    /// Reads from the entries of a secondary index.
    Entry(EntryReader),
}

struct VectorCondition {
    expr: Expr,
    program: VectorProgram,
    truth: TruthAt,
    readers: Vec<ColumnReader>,
    vectors: Vec<Vector>,
}

impl VectorScan {
    /// Builds the vectorized reader of this scan, or returns `None` if it must be read row by row.
    pub fn of(cursor: &TableCursor, scan: &Scan, eval: &EvalContext<'_>) -> Option<VectorScan> {
        match cursor.reads_batches() && !scan.with_key {
            true => VectorScan::new(cursor, scan, eval),
            false => None,
        }
    }

    /// Builds the filter and output part of a scan, independent of the source of its entries.
    pub(crate) fn new(cursor: &TableCursor, scan: &Scan, eval: &EvalContext<'_>) -> Option<VectorScan> {
        let reader_of = |column: usize| ColumnReader::of(cursor, column);
        let type_of = |column: usize| reader_of(column).map(|reader| reader.ty());
        let mut parts = scan.filter.clone().map(split).unwrap_or_default().into_iter();
        let mut conditions = Vec::new();
        let mut rest = Vec::new();
        for expr in parts.by_ref() {
            let mut compiler = VectorCompiler::new(&type_of, eval);
            let Some(truth) = compiler.condition(&expr) else {
                rest.push(expr);
                break;
            };
            let program = compiler.finish();
            let readers: Option<Vec<ColumnReader>> =
                program.inputs().iter().map(|column| reader_of(*column)).collect();
            let readers = readers?;
            let vectors = readers.iter().map(|_| Vector::default()).collect();
            conditions.push(VectorCondition { expr, program, truth, readers, vectors });
        }
        rest.extend(parts);
        let yields = scan.columns.iter().map(|column| reader_of(*column)).collect();
        Some(VectorScan {
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

    /// Returns the types of the output columns, if all have vector types.
    pub fn types(&self) -> Option<Vec<VectorType>> {
        Some(self.yields.as_ref()?.iter().map(ColumnReader::ty).collect())
    }

    /// Returns the number of entries read since the last call.
    pub fn take_examined(&mut self) -> u64 {
        std::mem::take(&mut self.examined)
    }

    /// Appends the output columns of at most `want` rows and returns the number of rows. It is smaller at the
    /// end, and when the batch is full.
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

    /// Replaces the vectors by those of one batch's passing rows. Returns false at the end.
    /// [`VectorScan::types`] gives their types.
    pub fn next_vectors(
        &mut self,
        cursor: &mut TableCursor,
        trx: &mut SessionTrx,
        vectors: &mut Vectors,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        vectors.clear();
        while self.at == self.selected.len() {
            if !self.select(cursor, trx, eval)? {
                return Ok(false);
            }
        }
        self.read_selected(cursor, vectors)?;
        Ok(true)
    }

    /// Returns the selected entries that were not returned yet.
    pub(crate) fn all_selected(&self) -> &[u32] {
        &self.selected[self.at..]
    }

    /// Appends the output columns of all of these to the vectors.
    pub(crate) fn read_selected(&mut self, cursor: &TableCursor, vectors: &mut Vectors) -> SqlResult<()> {
        debug_assert_eq!(
            self.yields.as_ref().map(Vec::len),
            Some(vectors.vectors.len()),
            "every column has a lane"
        );
        let selected = &self.selected[self.at..];
        vectors.rows += selected.len();
        let wanted = vectors.wanted.iter().zip(&vectors.lens_wanted);
        for ((reader, vector), wanted) in self.yields.iter().flatten().zip(&mut vectors.vectors).zip(wanted) {
            match wanted {
                (true, _) => reader.read(cursor, selected, self.is_plain, vector)?,
                (false, true) => reader.read_lens(cursor, selected, self.is_plain, vector)?,
                (false, false) => {}
            }
        }
        self.at = self.selected.len();
        Ok(())
    }

    /// Reads a batch and selects the passing rows. Returns false at the end.
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

    /// Clears the selection.
    pub(crate) fn forget(&mut self) {
        self.selected.clear();
        self.at = 0;
    }

    /// Returns true if some conditions are evaluated row by row.
    pub(crate) fn asks_by_rows(&self) -> bool {
        self.rest.is_some()
    }

    /// Returns the next selected entry.
    #[inline]
    pub(crate) fn selected(&self) -> Option<usize> {
        self.selected.get(self.at).map(|n| *n as usize)
    }

    /// Advances to the next selected entry.
    #[inline]
    pub(crate) fn pass(&mut self) {
        self.at += 1;
    }

    /// Appends the output columns of an entry.
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

    /// Selects the passing entries from a range of the cursor's batch.
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

impl VectorCondition {
    /// Keeps the rows that pass. Returns false, with the selection unchanged, if a number does not fit.
    fn select(
        &mut self,
        cursor: &TableCursor,
        selected: &mut Vec<u32>,
        eval: &EvalContext<'_>,
    ) -> SqlResult<bool> {
        for (reader, vector) in self.readers.iter().zip(&mut self.vectors) {
            vector.clear();
            reader.read(cursor, selected, true, vector)?;
        }
        let inputs: Vec<&Vector> = self.vectors.iter().collect();
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
            Some(covering) => covering.vector(table, cursor.index(), column).map(ColumnReader::Entry),
            None => table.layout.vector(column).map(ColumnReader::Row),
        }
    }

    fn ty(&self) -> VectorType {
        match self {
            ColumnReader::Row(reader) => reader.ty(),
            ColumnReader::Entry(reader) => reader.ty(),
        }
    }

    /// Appends the lengths of the selected rows' texts to a vector, or the texts where that is as cheap.
    fn read_lens(
        &self,
        cursor: &TableCursor,
        selected: &[u32],
        is_plain: bool,
        vector: &mut Vector,
    ) -> SqlResult<()> {
        match self {
            ColumnReader::Row(reader) if is_plain => {
                let read = reader.read_lens(selected.iter().map(|n| cursor.value(*n as usize)), vector);
                read.map_err(|error| cursor.open_table().row_error(error))
            }
            _ => self.read(cursor, selected, is_plain, vector),
        }
    }

    /// Appends the column of the selected rows to a vector.
    fn read(
        &self,
        cursor: &TableCursor,
        selected: &[u32],
        is_plain: bool,
        vector: &mut Vector,
    ) -> SqlResult<()> {
        let table = cursor.open_table();
        match self {
            ColumnReader::Row(reader) => {
                let rows = selected.iter().map(|n| cursor.value(*n as usize));
                let read = match is_plain {
                    true => reader.read(rows, vector),
                    false => read_unlike_rows(table, reader, rows, vector),
                };
                read.map_err(|error| table.row_error(error))
            }
            ColumnReader::Entry(reader) => {
                let entries = selected.iter().map(|n| cursor.entry(*n as usize));
                reader.read(entries, vector).map_err(|error| table.key_error(cursor.index(), error))
            }
        }
    }
}

/// Appends a column of rows that are not all plain to a vector.
fn read_unlike_rows<'r>(
    table: &OpenTable,
    reader: &VectorReader,
    mut rows: impl Iterator<Item = &'r [u8]>,
    vector: &mut Vector,
) -> Result<(), RowError> {
    rows.try_for_each(|row| {
        let value = table.layout.decode_one(row, reader.column())?;
        let fits = vector.push_value(&value, reader.ty());
        if fits { Ok(()) } else { Err(RowError::Corrupt) }
    })
}

/// Appends the output columns of an entry to a row. `whole` is a buffer for a row of the table.
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

/// Evaluates a condition row by row and keeps the rows that pass.
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
