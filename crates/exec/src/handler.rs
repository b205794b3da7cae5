//! HANDLER: reads a table row by row. The session remembers its position in an index.
//!
//! Each read is a separate statement and sees the same rows as a SELECT at that time. The position is the key
//! of the last row read, and stays valid if that row is deleted. The handler is closed if the table's
//! definition changes.

use std::sync::Arc;

use cohort_base::Reservation;
use cohort_catalog::{Index, Table};
use cohort_engine::KeyRange;
use cohort_expr::Expr;
use cohort_locks::MetadataMode;
use cohort_optimize::ReadMode;
use cohort_plan::{Binder, Clause, PlanContext, Scope, calls_back};
use cohort_protocol::ResultSink;
use cohort_row::{CursorOptions, KeySpan, KeySpans, RowChanges, TableCursor};
use cohort_session::access::check_all_of;
use cohort_session::{Job, SessionNames, StatementContext, TableUse};
use cohort_sql::ast::{self, Handler, HandlerAction, HandlerRead, HandlerTo, KeyComparison, ObjectName};
use cohort_table::is_current;
use cohort_types::{Columns, NoWarnings, SqlError, SqlResult, StoreContext, Value, prefix_end, successor};

use crate::open_handler::{At, OpenHandler, Place};
use crate::session::Session;
use crate::statement::constant_limit;

/// Rows of one READ, and the key of the last one.
struct Found {
    rows: Vec<Vec<Value>>,
    last: Option<Vec<u8>>,
}

impl Session {
    /// Runs a HANDLER statement.
    pub(crate) fn handler(
        &mut self,
        handler: &Handler,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        match &handler.action {
            HandlerAction::Open { alias } => self.open_handler(&handler.name, alias.as_deref())?,
            HandlerAction::Close => {
                let alias = handler.name.name.to_lowercase();
                self.handlers.remove(&alias).ok_or_else(|| unknown(&handler.name.name))?;
            }
            HandlerAction::Read(read) => return self.read_handler(&handler.name.name, read, job, sink),
        }
        self.state.settings.env.row_count = 0;
        self.send_ok(job.more, 0, 0, "", sink);
        Ok(())
    }

    fn open_handler(&mut self, name: &ObjectName, alias: Option<&str>) -> SqlResult<()> {
        let schema = name.db.as_deref().or(self.state.current_schema.as_deref());
        let schema = schema.ok_or_else(SqlError::no_database_selected)?.to_owned();
        let alias = alias.unwrap_or(&name.name).to_lowercase();
        if self.handlers.contains_key(&alias) {
            return Err(SqlError::non_unique_table(&alias));
        }
        if self.state.db.virtual_tables.has_schema(&schema) {
            return Err(SqlError::wrong_usage("HANDLER OPEN", &schema));
        }
        let table = self.table_now(&schema, &name.name);
        let catalog = self.state.db.catalog();
        let table = match table {
            Some(table) if table.is_sequence() => {
                return Err(SqlError::no_handler(&table.engine, &schema, &name.name));
            }
            Some(table) => table,
            None if catalog.view(&schema, &name.name).is_some() => {
                return Err(SqlError::not_a_base_table(&schema, &name.name));
            }
            None => return Err(SqlError::no_such_table(&schema, &name.name)),
        };
        self.handlers.insert(alias, OpenHandler { table, place: None });
        Ok(())
    }

    fn table_now(&self, schema: &str, name: &str) -> Option<Arc<Table>> {
        let own = self.state.temporary.find(schema, name);
        own.or_else(|| self.state.db.catalog().table(schema, name).cloned())
    }

    fn read_handler(
        &mut self,
        alias: &str,
        read: &HandlerRead,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let key = alias.to_lowercase();
        let table =
            self.handlers.get(&key).map(|open| Arc::clone(&open.table)).ok_or_else(|| unknown(alias))?;
        let now = self.table_now(&table.name.schema, &table.name.table);
        if !now.is_some_and(|now| Arc::ptr_eq(&now, &table)) {
            self.handlers.remove(&key);
            return Err(unknown(alias));
        }
        // The privilege may have been revoked since HANDLER OPEN.
        if self.state.temporary.find(&table.name.schema, &table.name.table).is_none() {
            let shown = table.columns.iter().filter(|column| !column.invisible);
            check_all_of(&self.state, &table.name, shown.map(|column| &*column.name))?;
        }
        let of_key = match &read.to {
            HandlerTo::Key(_, values) => values.as_slice(),
            _ => &[],
        };
        let is_refused = |part: &ast::Expr| matches!(part, ast::Expr::Sequence(_));
        if of_key.iter().chain(&read.filter).any(|expr| expr.has_subquery() || expr.has_part(is_refused)) {
            return Err(SqlError::no_subqueries_in("HANDLER..READ"));
        }
        if of_key.iter().chain(&read.filter).any(calls_back) {
            return Err(SqlError::not_supported("stored functions in HANDLER ... READ"));
        }
        let index = read.index.as_deref().map(|name| index_of(&table, name, alias)).transpose()?;
        let (skipped, count) = match &read.limit {
            None => (0, 1),
            limit => constant_limit(limit.as_ref(), job.params)?,
        };
        let place = self.handlers.get_mut(&key).and_then(|open| open.place.take());
        let place = place.filter(|place| place.index == index).map(|place| place.at);
        let mut memory = Reservation::new(Arc::clone(self.process.memory()));
        let (found, reverse) = self.with_context(job, |ctx| {
            ctx.trx.lock_table(&table, MetadataMode::SharedRead)?;
            if !ctx.db.read_catalog(|catalog| is_current(catalog, &table)) {
                // The table was altered during the wait for its metadata lock.
                return Err(unknown(alias));
            }
            if let Some(tables) = ctx.session.audit_tables() {
                tables.report_use(TableUse::Read, &table);
            }
            let (range, reverse) = range(ctx, job, &table, index.unwrap_or(0), read, &place)?;
            let spans = KeySpans { index: index.unwrap_or(0), reverse, spans: range.into_iter().collect() };
            rows(ctx, job, &table, spans, read.filter.as_ref(), (skipped, count), &mut memory)
                .map(|found| (found, reverse))
        })?;
        let at = match found.last {
            Some(key) if found.rows.len() == count => At::Key(key),
            _ if reverse => At::Before,
            _ => At::After,
        };
        if let Some(open) = self.handlers.get_mut(&key) {
            open.place = Some(Place { index, at });
        }
        let name = ObjectName { db: Some(table.name.schema.clone()), name: table.name.table.clone() };
        let shown = |n: &usize| !table.columns[*n].invisible;
        let columns = self.describe_table(&name)?;
        let columns: Vec<_> =
            columns.into_iter().enumerate().filter(|(n, _)| shown(n)).map(|(_, column)| column).collect();
        let visible = |row: Vec<Value>| -> Vec<Value> {
            row.into_iter().enumerate().filter(|(n, _)| shown(n)).map(|(_, value)| value).collect()
        };
        let rows: Vec<Vec<Value>> = found.rows.into_iter().map(visible).collect();
        self.send_rows(job.more, &columns, &rows, sink);
        Ok(())
    }
}

fn unknown(alias: &str) -> SqlError {
    SqlError::unknown_table_in(alias, "HANDLER")
}

/// Returns the position of the named index. Error 1176 if there is none, 4143 if it is not sorted.
fn index_of(table: &Table, name: &str, alias: &str) -> SqlResult<usize> {
    let is_named = |index: &Index| index.kind.is_declared() && index.name.eq_ignore_ascii_case(name);
    let found = table.indexes.iter().position(is_named).ok_or_else(|| SqlError::unknown_key(name, alias))?;
    match &table.indexes[found] {
        index if index.kind.is_sorted() => Ok(found),
        index => Err(SqlError::key_does_not_support(index.kind.method().structure, &index.name)),
    }
}

/// Returns the key range to read, and true to read it backwards. The range is `None` if no row can match.
fn range(
    ctx: &StatementContext<'_>,
    job: &Job<'_>,
    table: &Arc<Table>,
    index: usize,
    read: &HandlerRead,
    place: &Option<At>,
) -> SqlResult<(Option<KeySpan>, bool)> {
    let all = || Some(KeySpan::Range(KeyRange::default()));
    let part = |start, end| Some(KeySpan::Range(KeyRange { start, end }));
    Ok(match (&read.to, place) {
        (HandlerTo::First, _) | (HandlerTo::Next, None | Some(At::Before)) => (all(), false),
        (HandlerTo::Last, _) | (HandlerTo::Prev, None | Some(At::After)) => (all(), true),
        (HandlerTo::Next, Some(At::Key(key))) => (part(Some(successor(key)), None), false),
        (HandlerTo::Prev, Some(At::Key(key))) => (part(None, Some(key.clone())), true),
        (HandlerTo::Next, Some(At::After)) => (None, false),
        (HandlerTo::Prev, Some(At::Before)) => (None, true),
        (HandlerTo::Key(comparison, values), _) => {
            let prefix = key_prefix(ctx, job, table, index, values)?;
            let end = prefix_end(&prefix);
            match comparison {
                KeyComparison::Equal => (part(Some(prefix), end), false),
                KeyComparison::AtLeast => (part(Some(prefix), None), false),
                KeyComparison::Above if end.is_none() => (None, false),
                KeyComparison::Above => (part(end, None), false),
                KeyComparison::AtMost => (part(None, end), true),
                KeyComparison::Below => (part(None, Some(prefix)), true),
            }
        }
    })
}

/// Encodes values as the first columns of a key.
fn key_prefix(
    ctx: &StatementContext<'_>,
    job: &Job<'_>,
    table: &Arc<Table>,
    index: usize,
    values: &[cohort_sql::ast::Expr],
) -> SqlResult<Vec<u8>> {
    let open = ctx.trx.open_table(table)?;
    let parts = &open.indexes[index].parts;
    if values.len() > parts.len() {
        return Err(SqlError::too_many_key_parts(parts.len() as u32));
    }
    let catalog = ctx.db.catalog();
    let names = SessionNames::new(&catalog, ctx.session);
    let plan = PlanContext::new(&names, job.params, job.source);
    let scope = Scope::default();
    let binder = Binder::new(&plan, &scope, Clause::Values);
    let mut key = Vec::new();
    for (value, (column, part)) in values.iter().zip(parts) {
        let value = binder.expression(value)?.eval(&[], &ctx.eval)?.into_owned();
        let column = &table.columns[*column];
        let store = StoreContext {
            sql_mode: ctx.session.settings.env.sql_mode,
            strict: false,
            database: &table.name.schema,
            table: &table.name.table,
            column: &column.name,
            row: 1,
            zone: &ctx.session.settings.env.time_zone,
            now_micros: ctx.session.settings.env.now_micros,
        };
        let value = match value {
            Value::Null => Value::Null,
            value => column.ty.store(value, &store, &mut NoWarnings)?,
        };
        part.encode(&value, &mut key).map_err(|error| open.key_error(index, error))?;
    }
    Ok(key)
}

fn rows(
    ctx: &mut StatementContext<'_>,
    job: &Job<'_>,
    table: &Arc<Table>,
    spans: KeySpans,
    filter: Option<&cohort_sql::ast::Expr>,
    (skipped, count): (usize, usize),
    memory: &mut Reservation,
) -> SqlResult<Found> {
    let mut found = Found { rows: Vec::new(), last: None };
    if spans.spans.is_empty() || count == 0 {
        return Ok(found);
    }
    let filter: Option<Expr> = match filter {
        None => None,
        Some(filter) => {
            let catalog = ctx.db.catalog();
            let names = SessionNames::new(&catalog, ctx.session);
            let plan = PlanContext::new(&names, job.params, job.source);
            let scope = Scope::of_table(Arc::clone(table), None);
            Some(Binder::new(&plan, &scope, Clause::Where).expression(filter)?)
        }
    };
    let rows_expected = Some((skipped as u64).saturating_add(count as u64));
    let options = CursorOptions {
        mode: ReadMode::Snapshot,
        columns: Columns::All,
        rows_expected,
        changes: RowChanges::Any,
    };
    // The result may contain the transaction's own writes, which may depend on rows that are not durable yet
    // (I5).
    ctx.trx.mark_observed();
    let mut cursor = TableCursor::open(ctx.trx, table, spans, options)?;
    let mut row = Vec::new();
    let eval = &ctx.eval;
    let mut passes = |row: &[Value]| filter.as_ref().map_or(Ok(true), |filter| filter.passes(row, eval));
    let mut passed = 0;
    while found.rows.len() < count && cursor.next(ctx.trx, &mut passes, &mut row)? {
        ctx.trx.check_killed()?;
        found.last = Some(cursor.entry_key().to_vec());
        passed += 1;
        if passed > skipped {
            memory.grow(row.iter().map(|value| value.memory_bytes() as u64 + 24).sum())?;
            found.rows.push(std::mem::take(&mut row));
        }
    }
    Ok(found)
}
