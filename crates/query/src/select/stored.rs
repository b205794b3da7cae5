//! Direct plans on stored rows ([`StoredWay`]): sends columns, or adds rows up.
//!
//! Rows arrive in batches of the engine. KILL and time limits are checked once per batch, which is also what
//! a scan reads between two checks.

use cohort_expr::{Aggregate, AggregateState, Gathered};
use cohort_row::{Stored, read_point};
use cohort_session::StatementContext;
use cohort_table::OpenTable;
use cohort_types::{Interrupt, RowError, SqlResult, StoredColumns, Value, Vector, VectorReader, VectorType};

use crate::plan::{StoredAggregate, StoredAggregateKind};
use crate::select::Flow;
use crate::select::output::Output;
use crate::select::sink::StoredScan;

/// Evaluation steps that a row counts as. A row may be read from disk.
const STEPS_OF_A_ROW: usize = 16;

/// Counts rows, and checks for KILL and time limits.
pub(super) fn rows_done(ctx: &StatementContext<'_>, rows: usize) -> SqlResult<()> {
    ctx.trx.check_killed()?;
    ctx.eval.steps(u32::try_from(rows * STEPS_OF_A_ROW).unwrap_or(u32::MAX))
}

impl Output<'_> {
    /// Sends columns of the rows in scan order.
    pub(super) fn send_stored(
        &mut self,
        ctx: &mut StatementContext<'_>,
        items: &[usize],
        mut scan: StoredScan<'_>,
    ) -> SqlResult<()> {
        let refuse = |error| scan.table.row_error(error);
        let columns = StoredColumns::new(&scan.table.layout, items.iter().copied(), &refuse);
        loop {
            let left = if self.select.count_all { u64::MAX } else { self.window.left() };
            let rows_max = usize::try_from(left).unwrap_or(usize::MAX);
            let Some(found) = scan.next(ctx, rows_max)? else { return Ok(()) };
            let flow = match &found {
                Stored::Single => self.send_rows(ctx, &columns, &[scan.cursor.single()])?,
                Stored::Entries(entries) => {
                    let rows: Vec<&[u8]> = scan.cursor.stored_rows(entries.clone()).collect();
                    self.send_rows(ctx, &columns, &rows)?
                }
            };
            if flow == Flow::Stop {
                return Ok(());
            }
        }
    }

    /// Sends columns of the row with a clustered key, if it exists.
    pub(super) fn send_point(
        &mut self,
        ctx: &mut StatementContext<'_>,
        items: &[usize],
        table: &OpenTable,
        key: &[u8],
    ) -> SqlResult<()> {
        let mut row = Vec::new();
        if !read_point(ctx.trx, table, key, &mut row)? {
            return Ok(());
        }
        let refuse = |error| table.row_error(error);
        let columns = StoredColumns::new(&table.layout, items.iter().copied(), &refuse);
        self.send_rows(ctx, &columns, &[&row]).map(drop)
    }

    /// Counts rows in their final order against the limit, and sends them.
    pub(super) fn send_rows(
        &mut self,
        ctx: &mut StatementContext<'_>,
        columns: &StoredColumns<'_>,
        rows: &[&[u8]],
    ) -> SqlResult<Flow> {
        let sent = self.window.pass(rows.len());
        let mut flow = Flow::Continue;
        if !sent.is_empty() {
            let hold = ctx.trx.hold_until();
            flow = self.sink.stored_rows(&ctx.eval, hold, columns, &rows[sent])?;
        }
        rows_done(ctx, rows.len())?;
        Ok(match self.select.count_all {
            true => Flow::Continue,
            false if self.window.is_full() => Flow::Stop,
            false => flow,
        })
    }
}

/// Aggregates over all rows.
pub(super) struct Totals {
    totals: Vec<Total>,
    /// The first row, if needed.
    first: Option<Vec<Value>>,
    rows: u64,
}

struct Total {
    aggregate: StoredAggregate,
    /// `None` if it reads no column.
    reader: Option<VectorReader>,
    vector: Vector,
    /// The sum; for minimum and maximum, the number itself.
    total: i128,
    count: u64,
}

impl Totals {
    /// Aggregates the rows of a scan.
    pub(super) fn of(
        ctx: &mut StatementContext<'_>,
        aggregates: &[StoredAggregate],
        reads_first_row: bool,
        mut scan: StoredScan<'_>,
    ) -> SqlResult<Totals> {
        let refuse = |error| scan.table.row_error(error);
        let shape = StoredColumns::new(&scan.table.layout, [], &refuse);
        let totals = aggregates.iter().map(|aggregate| Total::new(scan.table, *aggregate)).collect();
        let mut all = Totals { totals, first: None, rows: 0 };
        while let Some(found) = scan.next(ctx, usize::MAX)? {
            let rows: Vec<&[u8]> = match &found {
                Stored::Single => vec![scan.cursor.single()],
                Stored::Entries(entries) => scan.cursor.stored_rows(entries.clone()).collect(),
            };
            if let (true, None, [first, ..]) = (reads_first_row, &all.first, rows.as_slice()) {
                let mut row = Vec::new();
                scan.table.decode(first, scan.columns, &mut row)?;
                all.first = Some(row);
            }
            let is_plain = rows.iter().all(|row| shape.is_plain(row));
            for total in &mut all.totals {
                total.read(scan.table, &rows, is_plain).map_err(refuse)?;
                total.add(rows.len());
            }
            all.rows += rows.len() as u64;
            rows_done(ctx, rows.len())?;
        }
        Ok(all)
    }

    /// Returns the number of rows.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the first row, if it was needed and exists.
    pub(super) fn take_first(&mut self) -> Option<Vec<Value>> {
        self.first.take()
    }

    /// Returns the states of the aggregates.
    pub(super) fn states(&self, aggregates: &[Aggregate]) -> Vec<AggregateState> {
        aggregates.iter().zip(&self.totals).map(|(aggregate, total)| total.state(aggregate)).collect()
    }
}

impl Total {
    fn new(table: &OpenTable, aggregate: StoredAggregate) -> Total {
        let reader = match aggregate.of {
            StoredAggregateKind::Rows => None,
            _ => {
                Some(table.layout.vector(aggregate.column).expect("the plan has looked at the column's type"))
            }
        };
        Total { aggregate, reader, vector: Vector::default(), total: 0, count: 0 }
    }

    /// Reads the column of some rows.
    fn read(&mut self, table: &OpenTable, rows: &[&[u8]], is_plain: bool) -> Result<(), RowError> {
        let Some(reader) = &self.reader else { return Ok(()) };
        self.vector.clear();
        if !reader.ty().is_text() {
            self.vector.numbers.reserve(rows.len());
        }
        if !is_plain {
            return rows.iter().try_for_each(|row| {
                let value = table.layout.decode_one(row, self.aggregate.column)?;
                let is_in_place = self.vector.push_value(&value, reader.ty());
                if is_in_place { Ok(()) } else { Err(RowError::Corrupt) }
            });
        }
        let rows = rows.iter().copied();
        match self.aggregate.of {
            StoredAggregateKind::Present => reader.read_lens(rows, &mut self.vector),
            _ => reader.read(rows, &mut self.vector),
        }
    }

    /// Accumulates what was read from `rows` rows.
    fn add(&mut self, rows: usize) {
        let vector = &self.vector;
        let nulls = vector.nulls.iter().filter(|is_null| **is_null).count();
        let present = vector.numbers.iter().enumerate().filter(|(n, _)| !vector.is_null(*n));
        let present = present.map(|(_, number)| *number);
        let found = match self.aggregate.of {
            StoredAggregateKind::Rows | StoredAggregateKind::Present => None,
            // NULL is 0 in a vector.
            StoredAggregateKind::Total => {
                self.total += vector.numbers.iter().map(|number| i128::from(*number)).sum::<i128>();
                None
            }
            StoredAggregateKind::Least => present.min(),
            StoredAggregateKind::Greatest => present.max(),
        };
        if let Some(found) = found.map(i128::from) {
            let is_better = match self.aggregate.of {
                StoredAggregateKind::Least => found < self.total,
                _ => found > self.total,
            };
            if self.count == 0 || is_better {
                self.total = found;
            }
        }
        self.count += (rows - nulls) as u64;
    }

    fn state(&self, aggregate: &Aggregate) -> AggregateState {
        let (total, count) = (self.total, self.count);
        let ty = self.reader.as_ref().map_or(VectorType::Int, VectorReader::ty);
        aggregate.gathered(match self.aggregate.of {
            StoredAggregateKind::Rows | StoredAggregateKind::Present => Gathered::Count(count),
            StoredAggregateKind::Total => match ty {
                VectorType::Decimal { scale } => Gathered::Total { total, scale, is_int: false, count },
                _ => Gathered::Total { total, scale: 0, is_int: true, count },
            },
            StoredAggregateKind::Least | StoredAggregateKind::Greatest if count == 0 => {
                Gathered::Extreme(Value::Null)
            }
            StoredAggregateKind::Least | StoredAggregateKind::Greatest => {
                Gathered::Extreme(ty.value_of(total as i64))
            }
        })
    }
}
