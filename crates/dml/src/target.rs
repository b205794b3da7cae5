//! Finds the rows that UPDATE and DELETE change under exclusive locks, according to ORDER BY and LIMIT.
//!
//! Rows are changed while the scan runs, unless the change could move a row within the scanned index, or
//! ORDER BY needs all rows first. In these cases the scan collects the keys, and each row is read again
//! before it is changed (it has been locked since it was found).

use std::sync::Arc;

use cohort_catalog::{ROWS, Table};
use cohort_expr::{EvalContext, SortKey, compare_rows, sort_rows};
use cohort_query::count_sort;
use cohort_run::{NodeCounters, Sorted, spent_since};
use cohort_types::{Columns, SqlResult, Value, row_memory_bytes};

use crate::target_plan::TargetPlan;
use cohort_optimize::{ReadMode, Spans};
use cohort_row::{CursorOptions, KeySpan, TableCursor, TableWriter, resolve, row_done};
use cohort_session::StatementContext;
use cohort_trx::{Counted, WaitPolicy};

/// When rows may be changed, relative to the scan that finds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    WhileScanning,
    AfterScanning,
}

/// The callback that changes a row. It gets the clustered key and the values, which it may modify.
pub(super) type Change<'c> =
    dyn FnMut(&mut StatementContext<'_>, &mut TableWriter, &[u8], &mut Vec<Value>) -> SqlResult<()> + 'c;

/// The scan, and the counters of what it reads.
struct Search<'t> {
    cursor: TableCursor,
    counters: Option<&'t NodeCounters>,
    /// Rows that were looked at.
    read: u64,
}

/// A row found, with its sort values.
struct Found {
    sort: Vec<Value>,
    key: Box<[u8]>,
}

impl TargetPlan {
    /// Finds the rows and calls `change` for each, which may change the values of the columns `written`.
    /// `wait` is the policy for rows that other transactions have locked.
    pub(super) fn for_each(
        &self,
        ctx: &mut StatementContext<'_>,
        wait: WaitPolicy,
        order: Order,
        written: &[usize],
        change: &mut Change<'_>,
    ) -> SqlResult<()> {
        let Some(profile) = ctx.session.statement.profile() else {
            return self.for_each_row(ctx, wait, order, written, None, change);
        };
        let (start, counters) = (profile.clock(), profile.counters(self.part));
        counters.count(1, 0, 0);
        let outcome = self.for_each_row(ctx, wait, order, written, Some(counters), change);
        counters.spend(&spent_since(start));
        outcome
    }

    fn for_each_row(
        &self,
        ctx: &mut StatementContext<'_>,
        wait: WaitPolicy,
        order: Order,
        written: &[usize],
        counters: Option<&NodeCounters>,
        change: &mut Change<'_>,
    ) -> SqlResult<()> {
        if matches!(self.access.spans, Spans::Full) {
            ctx.session.statement.reads_whole_table.set(true);
            let is_delete = written.is_empty();
            ctx.trx.counts().count(if is_delete { Counted::DeleteScan } else { Counted::UpdateScan });
        }
        let mut writer = TableWriter::open(ctx.trx, &self.table)?;
        writer.narrow_images(ctx.trx, written.iter().copied());
        let limit = self.limit_rows(&ctx.eval)?;
        let spans = resolve(&self.access, writer.table(), &[], &ctx.eval)?;
        let single = matches!(&*spans.spans, [KeySpan::Point(_)]);
        let options = CursorOptions {
            mode: ReadMode::LockExclusive(wait),
            columns: Columns::All,
            changes: writer.row_changes(),
            rows_expected: limit.filter(|_| self.sort.is_empty()),
        };
        if limit == Some(0) {
            return Ok(());
        }
        let cursor = TableCursor::open(ctx.trx, &self.table, spans, options)?;
        let mut search = Search { cursor, counters, read: 0 };
        if self.sort.is_empty() && (single || order == Order::WhileScanning) {
            return self.change_while_scanning(ctx, &mut search, &mut writer, limit, change);
        }
        let found = self.collect(ctx, &mut search, limit)?;
        let mut row = Vec::new();
        for (found, number) in found.into_iter().zip(1..) {
            ctx.check_interrupt()?;
            ctx.eval.set_row_number(number);
            if writer.fetch(ctx.trx, &found.key, &mut row)? {
                change(ctx, &mut writer, &found.key, &mut row)?;
            }
        }
        Ok(())
    }

    fn change_while_scanning(
        &self,
        ctx: &mut StatementContext<'_>,
        search: &mut Search<'_>,
        writer: &mut TableWriter,
        limit: Option<u64>,
        change: &mut Change<'_>,
    ) -> SqlResult<()> {
        let mut row = Vec::new();
        let mut left = limit.unwrap_or(u64::MAX);
        while left > 0 && self.next(ctx, search, &mut row)? {
            ctx.eval.set_row_number(search.read);
            change(ctx, writer, search.cursor.key(), &mut row)?;
            left -= 1;
        }
        Ok(())
    }

    /// Returns the keys of all rows, sorted and limited.
    fn collect(
        &self,
        ctx: &mut StatementContext<'_>,
        search: &mut Search<'_>,
        limit: Option<u64>,
    ) -> SqlResult<Vec<Found>> {
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let scan_max = if self.sort.is_empty() { limit } else { usize::MAX };
        let (mut found, mut row) = (Vec::new(), Vec::new());
        while found.len() < scan_max && self.next(ctx, search, &mut row)? {
            let mut sort = Vec::with_capacity(self.sort.len());
            for (expr, _) in &self.sort {
                sort.push(expr.eval_output(&row, &ctx.eval)?.into_owned());
            }
            found.push(Found { sort, key: search.cursor.key().into() });
        }
        if !self.sort.is_empty() {
            let keys: Vec<SortKey> = self.sort.iter().map(|(_, key)| *key).collect();
            let key_bytes = found.iter().map(|row| row_memory_bytes(&row.sort)).sum();
            sort_rows(&mut found, key_bytes, &|a, b| compare_rows(&a.sort, &b.sort, &keys), &ctx.eval)?;
            found.truncate(limit);
            let sorted = Sorted {
                rows: found.len() as u64,
                of_range: !matches!(self.access.spans, Spans::Full),
                limited: limit < usize::MAX,
            };
            count_sort(ctx.process.counts(), sorted);
        }
        Ok(found)
    }

    fn next(
        &self,
        ctx: &mut StatementContext<'_>,
        search: &mut Search<'_>,
        row: &mut Vec<Value>,
    ) -> SqlResult<bool> {
        ctx.check_interrupt()?;
        let (trx, eval) = (&mut *ctx.trx, &ctx.eval);
        let filter = |row: &[Value]| match &self.filter {
            Some(filter) => row_done(eval).and_then(|()| filter.passes(row, eval)),
            None => Ok(true),
        };
        let mut read = 0;
        let mut counting = |row: &[Value]| {
            read += 1;
            filter(row)
        };
        let found = search.cursor.next(trx, &mut counting, row)?;
        search.read += read;
        if let Some(counters) = search.counters {
            counters.count(0, read, found.into());
        }
        Ok(found)
    }

    fn limit_rows(&self, ctx: &EvalContext<'_>) -> SqlResult<Option<u64>> {
        let Some(limit) = &self.limit else { return Ok(None) };
        cohort_run::limit_value(limit, ctx).map(Some)
    }

    /// Decides whether changing these columns may move a row within the scanned index.
    pub(super) fn order_for(&self, columns: &[usize]) -> Order {
        let parts = |index: usize| self.table.indexes[index].columns.iter();
        let moves = |index| parts(index).any(|part| columns.contains(&part.column));
        // If the clustered key changes, all index entries change, because they end with it.
        if moves(self.access.index) || moves(ROWS) { Order::AfterScanning } else { Order::WhileScanning }
    }

    /// Returns the table that is written. The statement must take its metadata lock.
    pub(crate) fn written(&self) -> &Arc<Table> {
        &self.table
    }

    /// Returns the name that the statement uses for the table.
    pub(crate) fn alias(&self) -> &str {
        &self.scope.tables[0].name
    }
}
