//! Output stage of direct plans: HAVING, projection, DISTINCT, ORDER BY, LIMIT.

use std::cmp::Ordering;
use std::ops::Range;
use std::slice::from_ref;

use cohort_expr::{Expr, append_group_key, compare_rows, sort_rows, to_class_of, to_common_class};
use cohort_optimize::{ReadMode, Spans};
use cohort_run::Sorted;
use cohort_session::StatementContext;
use cohort_table::OpenTable;
use cohort_types::{Collation, SqlResult, Value, row_memory_bytes};
use hashbrown::HashSet;

use crate::plan::{DirectPlan, DirectTable, SortItem, SortValue, StoredWay};
use crate::select::sink::{ScanSink, StoredScan};
use crate::select::{Flow, Limits, RowCounts, RowSink, count_sort};

/// Number of rows beyond the limit that a sort keeps before it drops the last ones.
pub(super) const SORT_SLACK: usize = 1024;

/// Memory of a hash table key in addition to its bytes.
pub(super) const KEY_BYTES: usize = 48;

/// Size from which on a computed text is charged while its row is held and sent.
const LARGE_BYTES: usize = 64 << 10;

/// The last stage of a SELECT.
pub(super) struct Output<'p> {
    pub(super) select: &'p DirectPlan,
    pub(super) sink: &'p mut dyn RowSink,
    pub(super) window: Window,
    /// Values can be moved out of the row.
    moves: bool,
    distinct: Option<Distinct>,
    pub(super) sorter: Option<Sorter<'p>>,
    values: Vec<Value>,
    /// Bytes charged for the large texts in `values`.
    kept: usize,
}

impl<'p> Output<'p> {
    pub(super) fn new(select: &'p DirectPlan, limits: Limits, sink: &'p mut dyn RowSink) -> Output<'p> {
        let keep = if select.count_all { u64::MAX } else { limits.reach() };
        let collations = || select.items.iter().map(|i| i.ty().collation).collect();
        Output {
            select,
            sink,
            window: Window { limits, passed: 0, sent: 0 },
            moves: select.items_move,
            distinct: select.distinct.then(|| Distinct::new(collations())),
            sorter: (!select.sort.is_empty()).then(|| Sorter::new(&select.sort, keep)),
            values: Vec::new(),
            kept: 0,
        }
    }

    /// Returns true for LIMIT 0 without SQL_CALC_FOUND_ROWS.
    pub(super) fn is_full(&self) -> bool {
        self.window.limits.count == 0 && !self.select.count_all
    }

    /// Returns the number of rows that will be read from a scan, if known.
    pub(super) fn rows_expected(&self) -> Option<u64> {
        let all = self.sorter.is_some() || self.distinct.is_some() || self.select.count_all;
        (!all && self.window.limits.count != u64::MAX).then(|| self.window.limits.reach())
    }

    /// Sends the rows kept for sorting.
    pub(super) fn finish(mut self, ctx: &mut StatementContext<'_>) -> SqlResult<RowCounts> {
        if let Some(sorter) = self.sorter.take() {
            for mut row in sorter.finish(ctx, self.select)? {
                if self.send(ctx, &mut row)? == Flow::Stop {
                    break;
                }
            }
        }
        let Window { passed, sent, limits } = self.window;
        Ok(RowCounts { sent, found: if self.select.count_all { passed } else { passed.min(limits.reach()) } })
    }

    /// Counts a row in its final order against the limit, and sends it.
    fn send(&mut self, ctx: &mut StatementContext<'_>, values: &mut Vec<Value>) -> SqlResult<Flow> {
        let flow = self.window.send(ctx, values, self.sink)?;
        Ok(if self.select.count_all { Flow::Continue } else { flow })
    }

    fn project(&mut self, ctx: &StatementContext<'_>, row: &mut [Value]) -> SqlResult<()> {
        self.values.clear();
        self.values.reserve(self.select.items.len());
        ctx.eval.let_go(std::mem::take(&mut self.kept));
        for (n, item) in self.select.items.iter().enumerate() {
            match item {
                item if self.select.kept.get(n) == Some(&true) => {
                    let value = item.eval(row, &ctx.eval)?.into_owned();
                    self.values.push(to_class_of(value, &item.ty()));
                }
                Expr::Column(c) if self.moves => {
                    let value = std::mem::replace(&mut row[c.ordinal], Value::Null);
                    self.values.push(with_digits_of(value, c.ty.decimals));
                }
                Expr::Column(_) => self.values.push(item.eval_output(row, &ctx.eval)?.into_owned()),
                item => {
                    let value = item.eval(row, &ctx.eval)?.into_owned();
                    self.values.push(to_common_class(value, &item.ty()));
                }
            }
            if let Some(Value::Str(text)) = self.values.last()
                && text.bytes.len() >= LARGE_BYTES
            {
                // Once here, and once in the reply.
                let bytes = 2 * text.bytes.len();
                ctx.eval.keep(bytes)?;
                self.kept += bytes;
                ctx.check_interrupt()?;
            }
        }
        Ok(())
    }
}

/// Rounds an aggregate to its type: it may have more digits, such as a sum of quotients.
fn with_digits_of(value: Value, decimals: u8) -> Value {
    match value {
        Value::Decimal(number) if number.scale() > decimals => {
            Value::Decimal(number.round(i32::from(decimals)).unwrap_or(number))
        }
        other => other,
    }
}

impl ScanSink for Output<'_> {
    fn scanned(&mut self, ctx: &mut StatementContext<'_>, row: &mut Vec<Value>) -> SqlResult<Flow> {
        if let Some(having) = &self.select.having
            && !having.passes(row, &ctx.eval)?
        {
            return Ok(Flow::Continue);
        }
        let is_locking = self.select.read != ReadMode::Snapshot;
        if is_locking || (self.select.table.is_some() && ctx.trx.plain_reads_lock()) {
            // The client sees rows that may not be durable yet (I5).
            ctx.trx.mark_observed();
        }
        let mut keys = Vec::new();
        if self.sorter.is_some() {
            for item in &self.select.sort {
                if let SortValue::Expr(expr) = &item.value {
                    keys.push(expr.eval_output(row, &ctx.eval)?.into_owned());
                }
            }
        }
        self.project(ctx, row)?;
        if let Some(distinct) = &mut self.distinct
            && !distinct.is_new(ctx, &self.values)?
        {
            return Ok(Flow::Continue);
        }
        let Some(sorter) = &mut self.sorter else {
            let mut values = std::mem::take(&mut self.values);
            let flow = self.send(ctx, &mut values);
            self.values = values;
            return flow;
        };
        let next = Vec::with_capacity(self.values.len());
        sorter.push(ctx, keys, std::mem::replace(&mut self.values, next))?;
        Ok(Flow::Continue)
    }

    fn take_stored(
        &mut self,
        ctx: &mut StatementContext<'_>,
        way: &StoredWay,
        scan: StoredScan<'_>,
    ) -> SqlResult<()> {
        let StoredWay::Columns { items, keys } = way else { unreachable!("groups come by rows") };
        match self.sorter.take() {
            None => self.send_stored(ctx, items, scan),
            Some(_) => self.sort_stored(ctx, items, keys, scan),
        }
    }

    fn take_point(
        &mut self,
        ctx: &mut StatementContext<'_>,
        way: &StoredWay,
        table: &OpenTable,
        key: &[u8],
    ) -> SqlResult<bool> {
        match way {
            StoredWay::Columns { items, .. } if self.sorter.is_none() => {
                self.send_point(ctx, items, table, key).map(|()| true)
            }
            _ => Ok(false),
        }
    }
}

/// OFFSET and LIMIT, applied to rows in their final order.
pub(super) struct Window {
    pub(super) limits: Limits,
    /// Number of rows received, before the limit.
    passed: u64,
    sent: u64,
}

impl Window {
    /// Counts `rows` received rows and returns the range of them to send.
    pub(super) fn pass(&mut self, rows: usize) -> Range<usize> {
        let skipped = self.limits.offset.saturating_sub(self.passed).min(rows as u64) as usize;
        let sent = (self.limits.count - self.sent).min((rows - skipped) as u64) as usize;
        self.passed += rows as u64;
        self.sent += sent as u64;
        skipped..skipped + sent
    }

    /// Returns true if no more rows are sent.
    pub(super) fn is_full(&self) -> bool {
        self.sent >= self.limits.count
    }

    /// Returns the number of rows that can be received until no more are sent.
    pub(super) fn left(&self) -> u64 {
        self.limits.reach().saturating_sub(self.passed)
    }

    fn send(
        &mut self,
        ctx: &mut StatementContext<'_>,
        values: &mut Vec<Value>,
        sink: &mut dyn RowSink,
    ) -> SqlResult<Flow> {
        self.passed += 1;
        if self.passed <= self.limits.offset {
            return Ok(Flow::Continue);
        }
        if self.sent >= self.limits.count {
            return Ok(Flow::Stop);
        }
        self.sent += 1;
        if sink.row(&ctx.eval, ctx.trx.hold_until(), values)? == Flow::Stop || self.sent >= self.limits.count
        {
            return Ok(Flow::Stop);
        }
        Ok(Flow::Continue)
    }
}

/// The rows seen so far, for DISTINCT.
pub(super) struct Distinct {
    collations: Vec<Collation>,
    seen: HashSet<Vec<u8>, ahash::RandomState>,
    key: Vec<u8>,
}

impl Distinct {
    pub(super) fn new(collations: Vec<Collation>) -> Distinct {
        Distinct { collations, seen: HashSet::default(), key: Vec::new() }
    }

    /// Returns true if no equal row was seen before.
    pub(super) fn is_new(&mut self, ctx: &StatementContext<'_>, values: &[Value]) -> SqlResult<bool> {
        self.make_key(ctx, values)?;
        let before = self.seen.len();
        self.seen.get_or_insert_with(self.key.as_slice(), <[u8]>::to_vec);
        let is_new = self.seen.len() > before;
        if is_new {
            ctx.eval.keep(self.key.len() + KEY_BYTES)?;
        }
        Ok(is_new)
    }

    fn make_key(&mut self, ctx: &StatementContext<'_>, values: &[Value]) -> SqlResult<()> {
        self.key.clear();
        for (value, collation) in values.iter().zip(&self.collations) {
            append_group_key(value, *collation, &mut self.key, &ctx.eval)?;
        }
        Ok(())
    }
}

/// Rows to sort. The sort is stable.
pub(super) struct Sorter<'p> {
    sort: &'p [SortItem],
    rows: Vec<SortRow>,
    /// Only this many first rows are needed.
    keep: usize,
}

struct SortRow {
    /// Start of the first key, if it is a text. It decides most comparisons.
    front: Option<u64>,
    /// Values of the sort items that are expressions, in their order.
    keys: Vec<Value>,
    row: Vec<Value>,
}

impl SortRow {
    fn new(keys: Vec<Value>, row: Vec<Value>, sort: &[SortItem]) -> SortRow {
        let front = sort.first().and_then(|first| {
            let value = match first.value {
                SortValue::Item(n) => &row[n],
                SortValue::Expr(_) => &keys[0],
            };
            let Value::Str(text) = value else { return None };
            Some(first.key.collation.sort_key_front(&text.bytes))
        });
        SortRow { front, keys, row }
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Option<u64>>() + row_memory_bytes(&self.keys) + row_memory_bytes(&self.row)
    }

    fn key_bytes(&self, sort: &[SortItem]) -> usize {
        let is_key =
            |item: &SortItem| if let SortValue::Item(n) = item.value { Some(&self.row[n]) } else { None };
        self.keys.iter().chain(sort.iter().filter_map(is_key)).map(Value::memory_bytes).sum()
    }

    fn compare(&self, other: &SortRow, sort: &[SortItem]) -> Ordering {
        if let (Some(a), Some(b)) = (self.front, other.front)
            && a != b
        {
            return if sort[0].key.descending { b.cmp(&a) } else { a.cmp(&b) };
        }
        let mut keys = self.keys.iter().zip(&other.keys);
        for item in sort {
            let (a, b) = match item.value {
                SortValue::Item(n) => (&self.row[n], &other.row[n]),
                SortValue::Expr(_) => keys.next().expect("a key for each expression"),
            };
            let order = compare_rows(from_ref(a), from_ref(b), from_ref(&item.key));
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }
}

impl<'p> Sorter<'p> {
    fn new(sort: &'p [SortItem], keep: u64) -> Sorter<'p> {
        Sorter { sort, rows: Vec::new(), keep: usize::try_from(keep).unwrap_or(usize::MAX) }
    }

    fn push(&mut self, ctx: &StatementContext<'_>, keys: Vec<Value>, row: Vec<Value>) -> SqlResult<()> {
        let row = SortRow::new(keys, row, self.sort);
        ctx.eval.keep(row.memory_bytes())?;
        self.rows.push(row);
        if self.rows.len() >= self.keep.saturating_mul(2).saturating_add(SORT_SLACK) {
            self.sort(ctx)?;
            let dropped = self.rows.drain(self.keep..).map(|row| row.memory_bytes()).sum();
            ctx.eval.let_go(dropped);
        }
        Ok(())
    }

    fn sort(&mut self, ctx: &StatementContext<'_>) -> SqlResult<()> {
        let sort = self.sort;
        let key_bytes = self.rows.iter().map(|row| row.key_bytes(sort)).sum();
        sort_rows(&mut self.rows, key_bytes, &|a, b| a.compare(b, sort), &ctx.eval)
    }

    fn finish(
        mut self,
        ctx: &StatementContext<'_>,
        select: &DirectPlan,
    ) -> SqlResult<impl Iterator<Item = Vec<Value>> + use<>> {
        self.sort(ctx)?;
        count_sorted(ctx, select, self.rows.len(), self.keep);
        Ok(self.rows.into_iter().map(|sorted| sorted.row))
    }
}

/// Counts a sort of `rows` rows, of which the first `keep` are needed.
pub(super) fn count_sorted(ctx: &StatementContext<'_>, select: &DirectPlan, rows: usize, keep: usize) {
    let is_found = |table: &DirectTable| !matches!(table.access.spans, Spans::Full);
    let sorted = Sorted {
        rows: rows.min(keep) as u64,
        of_range: select.group.is_none() && select.table.as_ref().is_some_and(is_found),
        limited: keep < usize::MAX,
    };
    count_sort(ctx.process.counts(), sorted);
}
