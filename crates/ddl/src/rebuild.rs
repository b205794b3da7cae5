//! Builds the indexes, or copies the rows, that an ALTER TABLE requires. `extent` determines which.
//!
//! # Concurrent access
//! | what is built | other sessions |
//! |---|---|
//! | only the description | wait; it takes no time |
//! | indexes | read and write; they wait at the beginning and at the end, and with `LOCK=SHARED` to write |
//! | rows, if a new row depends only on the old row (`clauses::is_copied_online`) | as with indexes |
//! | rows otherwise | read |
//!
//! With `LOCK=EXCLUSIVE`, and under the session's own LOCK TABLES, other sessions wait for the whole time. At
//! the end the statement upgrades its metadata lock to exclusive again, and fails after `lock_wait_timeout`.

use std::sync::Arc;

use cohort_catalog::{Column, DefaultValue, ROWS, Table};
use cohort_config::VarId;
use cohort_dml::RowRules;
use cohort_engine::{ReadAt, ReadView};
use cohort_expr::{EvalContext, Expr};
use cohort_locks::MetadataMode;
use cohort_plan::{Binder, Clause, ParamSource, PlanContext, Scope};
use cohort_row::{Built, CatchUp, Duplicates, build_index, copy_rows};
use cohort_session::{SessionNames, StatementContext};
use cohort_sql::ast::AlterOptions;
use cohort_table::{OpenTable, TouchedRows, largest_counted, positive};
use cohort_trx::SessionTrx;
use cohort_types::{
    ColumnType, ErrorCode, IntValue, Level, SqlError, SqlMode, SqlResult, StoreContext, Str, TypeKind, Value,
    Warning,
};

use super::column::{ColumnHome, value_now};
use super::counting::{Counting, Rule};
use super::describe::is_same_index;
use super::draft::Described;
use super::extent::{Allowed, Extent, extent, storage};
use super::work::{Changes, free};
use super::{DdlOutcome, clauses, engine_format, foreign};
use crate::clauses::makes_words;

/// The method that an ALTER TABLE requests.
pub(super) struct Asked<'a> {
    /// Whether the rows are copied even if nothing changes.
    pub(super) forced: bool,
    pub(super) options: &'a AlterOptions,
}

/// The outcome of a copy of rows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Copied {
    /// Rows accepted by the new table, including duplicates.
    rows: u64,
    /// Rows left out because their unique keys were taken.
    duplicates: u64,
}

impl Copied {
    pub(super) fn outcome(self, warnings: u64) -> DdlOutcome {
        let Copied { rows, duplicates } = self;
        let info = format!("Records: {rows}  Duplicates: {duplicates}  Warnings: {warnings}");
        DdlOutcome { affected: rows, info, ..DdlOutcome::default() }
    }
}

/// Builds the data that the new description needs. Returns the table to commit and the number of copied rows.
/// On error, frees the data that it loaded. The metadata lock of the table is exclusive at the call and at
/// return, but may be downgraded in between.
pub(super) fn rebuild(
    ctx: &mut StatementContext<'_>,
    before: &Arc<Table>,
    after: Described,
    asked: Asked<'_>,
    changes: &mut Changes,
) -> SqlResult<(Table, Copied)> {
    let mut after = after;
    let allowed = Allowed::of(ctx.session.settings.vars.globals());
    // The zero date is an error only if there is a row, and only copying finds out.
    let lacks_date = (0..after.table.columns.len()).any(|n| zero_date(ctx, &after, n).is_some());
    let copies = asked.forced
        || asked.options.algorithm.as_deref() == Some("COPY")
        || lacks_date
        || after.drops_duplicates(before);
    let extent = if copies { Extent::Rows } else { extent(before, &after, allowed) };
    clauses::check(before, &after, (extent, allowed), asked.options)?;
    let others = others(before, &after, extent, asked.options);
    if extent != Extent::Rows {
        let (old, new) = (before.rows().id, after.table.rows().id);
        assert_eq!(old, new, "rows that are not copied stay where they are");
        fill_old_rows(ctx, &mut after)?;
        after.table.storage = storage(before, &after);
    }
    let fresh = renumber(ctx, before, &mut after, extent);
    let loaded: Vec<_> =
        fresh.iter().map(|&n| (after.table.engine.clone(), after.table.indexes[n].id)).collect();
    let made = match extent {
        Extent::Description => Ok(Copied::default()),
        Extent::Keys if fresh.is_empty() => Ok(Copied::default()),
        Extent::Keys => build_keys(ctx, before, &after.table, &fresh, others).map(|()| Copied::default()),
        Extent::Rows => {
            let rule = match clauses::is_rebuilt_in_place(before, &after, asked.options) {
                true => Rule::InPlace,
                false => Rule::Copy,
            };
            copy_concurrently(ctx, before, &after, others, rule)
        }
    };
    let made = made.and_then(|copied| {
        if extent == Extent::Rows {
            after.table.auto_increment_start = counted(ctx, before, &after)?;
        }
        Ok(copied)
    });
    match made {
        Ok(copied) => {
            changes.loaded = loaded;
            let kept: Vec<_> = after.table.trees().collect();
            let gone = before.trees().filter(|id| !kept.contains(id));
            changes.free(&before.engine, gone);
            Ok((after.table, copied))
        }
        Err(error) => {
            free(ctx, &loaded);
            Err(error)
        }
    }
}

/// Returns the AUTO_INCREMENT counter for a table whose rows were copied: it continues after all values
/// handed out, even if their rows no longer exist. If the statement sets another AUTO_INCREMENT value, that
/// value is used.
fn counted(ctx: &mut StatementContext<'_>, before: &Arc<Table>, after: &Described) -> SqlResult<u64> {
    let start = after.table.auto_increment_start;
    let counts_on = after.table.columns.iter().zip(&after.column_origins).any(|(column, origin)| {
        column.auto_increment && origin.is_some_and(|origin| before.columns[origin].auto_increment)
    });
    if !counts_on || start != before.auto_increment_start {
        return Ok(start);
    }
    let open = ctx.trx.open_table(before)?;
    let next = ctx.trx.auto_increment_next(&open)?.filter(|next| *next > 1);
    Ok(next.map_or(start, |next| next.max(start)))
}

/// Sets the values that added columns have in existing rows.
fn fill_old_rows(ctx: &StatementContext<'_>, after: &mut Described) -> SqlResult<()> {
    let name = after.table.name.clone();
    let home = ColumnHome { schema: &name.schema, table: &name.table, collation: after.table.collation };
    for (column, origin) in after.table.columns.iter_mut().zip(&after.column_origins) {
        if origin.is_none() {
            column.value_in_old_rows = value_now(ctx, column, home)?;
        }
    }
    Ok(())
}

/// Assigns new ids to the indexes that are built, and returns their positions.
fn renumber(ctx: &StatementContext<'_>, before: &Table, after: &mut Described, extent: Extent) -> Vec<usize> {
    let catalog = ctx.db.catalog();
    let is_fresh = |n: usize, after: &Described| match extent {
        Extent::Rows => true,
        _ => n != ROWS && !is_same_index(before, after, n),
    };
    let fresh: Vec<usize> = (0..after.table.indexes.len()).filter(|&n| is_fresh(n, after)).collect();
    for &n in &fresh {
        after.table.indexes[n].id = match before.is_temporary() {
            true => ctx.session.temporary.index_id(),
            false => ctx.db.ids.index(&catalog),
        };
    }
    let ids: Vec<_> = fresh.iter().map(|&n| after.table.indexes[n].id).collect();
    engine_format::pass_to_engine(ctx.db, &after.table, &ids);
    fresh
}

/// Allowed access of other sessions while the data is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Others {
    Wait,
    Read,
    Write,
}

fn others(before: &Table, after: &Described, extent: Extent, options: &AlterOptions) -> Others {
    let lock = options.lock.as_deref().unwrap_or("DEFAULT");
    match extent {
        _ if before.is_temporary() || lock == "EXCLUSIVE" => Others::Wait,
        Extent::Description => Others::Wait,
        // Concurrently written rows would not be checked against the new foreign keys.
        Extent::Keys
            if after.new_foreign_keys.is_empty() && lock != "SHARED" && !makes_words(before, after) =>
        {
            Others::Write
        }
        Extent::Rows if lock != "SHARED" && clauses::is_copied_online(before, after, options) => {
            Others::Write
        }
        Extent::Keys | Extent::Rows => Others::Read,
    }
}

/// Builds indexes, concurrently with other sessions if they need not wait.
fn build_keys(
    ctx: &mut StatementContext<'_>,
    before: &Arc<Table>,
    table: &Table,
    fresh: &[usize],
    others: Others,
) -> SqlResult<()> {
    let table = Arc::new(table.clone());
    let open = ctx.trx.open_table(before)?;
    if others == Others::Write {
        let outcome = build_during_writes(ctx, &open, &table, fresh);
        open.set_touched(None);
        return outcome;
    }
    let_in(ctx.trx, &open, others);
    load_keys(ctx, before, &table, fresh, ReadAt::Latest)?;
    alone_again(ctx.trx, &open, others)
}

fn build_during_writes(
    ctx: &mut StatementContext<'_>,
    before: &OpenTable,
    table: &Arc<Table>,
    fresh: &[usize],
) -> SqlResult<()> {
    let concurrent = Concurrent::begin(ctx, before)?;
    load_keys(ctx, before.table(), table, fresh, ReadAt::View(&concurrent.view))?;
    ctx.process.set_state("altering table");
    let built = Built { source: before.table(), table, fresh, view: &concurrent.view };
    let catch_up = CatchUp::new(ctx.trx, &built, None, &concurrent.touched, concurrent.bytes_max)?;
    finish_concurrent(ctx.trx, before, catch_up)
}

/// State for a build concurrent with writers. At its start, the last writer has been published and the
/// metadata lock was exclusive. So the view and the rows that writers touch from then on cover all data.
struct Concurrent {
    view: ReadView,
    touched: Arc<TouchedRows>,
    bytes_max: u64,
}

impl Concurrent {
    /// Admits writers. The caller must stop the tracking of touched rows afterwards, whether the build
    /// succeeds or not.
    fn begin(ctx: &mut StatementContext<'_>, before: &OpenTable) -> SqlResult<Concurrent> {
        let bytes_max = ctx.session.settings.vars.globals().uint(VarId::InnodbOnlineAlterLogMaxSize);
        // Under LOCK TABLES, the last writer may have been this session.
        ctx.trx.await_own()?;
        let (view, touched) = (ctx.db.commit.read_view(), Arc::new(TouchedRows::new(bytes_max)));
        before.set_touched(Some(touched.clone()));
        let_in(ctx.trx, before, Others::Write);
        Ok(Concurrent { view, touched, bytes_max })
    }
}

/// Applies the writers' changes to the new data, and locks out the writers for the last round.
fn finish_concurrent(trx: &mut SessionTrx, before: &OpenTable, mut catch_up: CatchUp<'_>) -> SqlResult<()> {
    for _ in 0..ROUNDS_MAX {
        if catch_up.round(trx, false)? < ROWS_FEW {
            break;
        }
    }
    alone_again(trx, before, Others::Write)?;
    catch_up.round(trx, true)?;
    Ok(())
}

/// Maximum number of catch-up rounds, in case writers are faster than the catch-up.
const ROUNDS_MAX: usize = 16;
/// The catch-up locks out other sessions once a round had fewer rows than this.
const ROWS_FEW: usize = 1000;

/// Downgrades the exclusive metadata lock to admit other sessions. Locks of LOCK TABLES are not downgraded.
fn let_in(trx: &mut SessionTrx, table: &OpenTable, others: Others) {
    let mode = match others {
        Others::Wait => return,
        Others::Read => MetadataMode::SharedNoWrite,
        Others::Write => MetadataMode::SharedUpgradable,
    };
    trx.downgrade_metadata(&table.table_key, mode);
}

/// Upgrades the metadata lock to exclusive, waiting until no other session uses the table.
fn alone_again(trx: &mut SessionTrx, table: &OpenTable, others: Others) -> SqlResult<()> {
    match others {
        Others::Wait => Ok(()),
        Others::Read | Others::Write => trx.lock_metadata(&table.table_key, MetadataMode::Exclusive),
    }
}

fn load_keys(
    ctx: &mut StatementContext<'_>,
    before: &Table,
    table: &Arc<Table>,
    fresh: &[usize],
    at: ReadAt<'_>,
) -> SqlResult<()> {
    ctx.process.set_state("copy to tmp table");
    let total = estimate(ctx, before) * fresh.len() as u64;
    let (process, clock) = (ctx.process, &ctx.db.clock);
    for (nth, &index) in fresh.iter().enumerate() {
        let done_before = nth as u64 * (total / fresh.len() as u64);
        let mut progress =
            |rows: u64| process.set_progress((done_before + rows, total), clock.monotonic_ns());
        build_index(ctx.trx, table, index, at, &mut progress)?;
    }
    Ok(())
}

/// Copies the rows, concurrently with other sessions if they need not wait.
fn copy_concurrently(
    ctx: &mut StatementContext<'_>,
    before: &Arc<Table>,
    after: &Described,
    others: Others,
    rule: Rule,
) -> SqlResult<Copied> {
    let open = ctx.trx.open_table(before)?;
    if others == Others::Write {
        let copied = copy_during_writes(ctx, &open, after, rule);
        open.set_touched(None);
        return copied;
    }
    let_in(ctx.trx, &open, others);
    let copied = copy(ctx, before, after, rule, None)?;
    alone_again(ctx.trx, &open, others)?;
    Ok(copied)
}

fn copy_during_writes(
    ctx: &mut StatementContext<'_>,
    before: &OpenTable,
    after: &Described,
    rule: Rule,
) -> SqlResult<Copied> {
    let concurrent = Concurrent::begin(ctx, before)?;
    copy(ctx, before.table(), after, rule, Some((before, &concurrent)))
}

/// Copies the rows. With concurrent writers, also applies their changes until they are locked out.
fn copy(
    ctx: &mut StatementContext<'_>,
    before: &Arc<Table>,
    after: &Described,
    rule: Rule,
    writers: Option<(&OpenTable, &Concurrent)>,
) -> SqlResult<Copied> {
    ctx.process.set_state("copy to tmp table");
    let total = estimate(ctx, before) * after.table.indexes.len() as u64;
    let mut to = after.table.clone();
    to.clear_storage();
    let (process, clock) = (ctx.process, &ctx.db.clock);
    let mut rows = 0;
    let name = after.table.name.clone();
    let home = ColumnHome { schema: &name.schema, table: &name.table, collation: after.table.collation };
    let auto = after.table.columns.iter().position(|c| c.auto_increment);
    let fills = fills(ctx, before, after, home)?;
    let mut rules = rules_of(ctx, &after.table)?.of_copies();
    // As in MariaDB, rebuilding a table in place keeps rows that violate its constraints.
    if rule == Rule::InPlace || !ctx.session.settings.vars.flag(VarId::CheckConstraintChecks) {
        rules.drop_checks();
    }
    let eval = &ctx.eval;
    // InnoDB fills an AUTO_INCREMENT column in place only if the column is new.
    let is_new = auto.is_some_and(|auto| after.column_origins[auto].is_none());
    let rule = if is_new { rule } else { Rule::Copy };
    let max = auto.map_or(u64::MAX, |auto| largest_counted(&after.table.columns[auto].ty));
    let counting = Counting::new(ctx.trx.series(), rule, after.table.auto_increment_start, max);
    let is_repeatable = !fills.iter().any(|fill| matches!(fill, Fill::Computed(expr) if expr.is_volatile()));
    let sql_mode = ctx.session.settings.env.sql_mode;
    let counted_before = |n: usize| after.column_origins[n].is_some_and(|n| before.columns[n].auto_increment);
    let counts_zero = !sql_mode.has(SqlMode::NO_AUTO_VALUE_ON_ZERO) && !auto.is_some_and(counted_before);
    let mut converter = Converter { after, fills, rules, eval, row: 0, counting, auto, counts_zero };
    let zone = &ctx.session.settings.env.time_zone;
    let mut warnings: Vec<Warning> = Vec::new();
    let store = StoreContext {
        sql_mode,
        strict: sql_mode.is_strict() && !after.ignores,
        database: &name.schema,
        table: &name.table,
        column: "",
        row: 0,
        zone,
        now_micros: eval.env.now_micros,
    };
    let is_timestamp = |column: &cohort_catalog::Column| column.ty.kind == TypeKind::Timestamp;
    let converts = after.table.columns.iter().zip(&after.column_origins).any(|(column, origin)| {
        origin.is_some_and(|origin| is_timestamp(column) != is_timestamp(&before.columns[origin]))
    });
    if converts {
        ctx.uses_zone.set(true);
    }
    let to = Arc::new(to);
    let at = writers.map_or(ReadAt::Latest, |(_, concurrent)| ReadAt::View(&concurrent.view));
    let mut convert = |row: &[Value]| {
        let row = converter.convert(row, &store, &mut warnings)?;
        rows += u64::from(row.is_some());
        Ok(row)
    };
    let mut progress = |done: u64| process.set_progress((done, total), clock.monotonic_ns());
    let on_duplicates = if after.ignores { Duplicates::Drop } else { Duplicates::Refuse };
    let duplicates = copy_rows(ctx.trx, (before, at), &to, &mut convert, on_duplicates, &mut progress)?;
    if duplicates > 0 {
        foreign::check_may_lose_rows(ctx, before)?;
    }
    if let Some((open, concurrent)) = writers {
        process.set_state("altering table");
        // Warnings of rows that are converted again are dropped.
        let mut again = |row: &[Value]| converter.convert(row, &store, &mut Vec::new());
        let fresh: Vec<usize> = (0..to.indexes.len()).collect();
        let built = Built { source: before, table: &to, fresh: &fresh, view: &concurrent.view };
        let catch_up =
            CatchUp::new(ctx.trx, &built, Some(&mut again), &concurrent.touched, concurrent.bytes_max)?;
        finish_concurrent(ctx.trx, open, catch_up)?;
    }
    for warning in warnings {
        ctx.eval.push_warning(warning);
    }
    let is_logged = ctx.trx.settings.binlog.on && !before.is_temporary() && !ctx.session.identity.is_applier;
    if !is_repeatable && rows > 0 && is_logged {
        ctx.eval.note(ErrorCode::BinlogUnsafeStatement, UNSAFE);
    }
    Ok(Copied { rows, duplicates })
}

/// A replica computes other values for the rows.
const UNSAFE: &str = "Unsafe statement written to the binary log using statement format. Statement is unsafe \
     because it uses a system function that may return a different value on the slave";

fn rules_of(ctx: &StatementContext<'_>, table: &Table) -> SqlResult<RowRules> {
    let catalog = ctx.db.catalog();
    let names = SessionNames::new(&catalog, ctx.session);
    let plan = PlanContext::new(&names, &[], ParamSource::Placeholders);
    RowRules::of(&plan, &Arc::new(table.clone()))
}

/// The source of a column's value in the new table.
enum Fill {
    /// A column of the old table, unchanged.
    Same(usize),
    /// A column of the old table, converted from its old type.
    Converted(usize, Box<ColumnType>),
    /// A constant, equal for all rows.
    Value(Value),
    /// DEFAULT (expression) or GENERATED ALWAYS AS, computed for each row after its other columns.
    Computed(Box<Expr>),
    /// AUTO_INCREMENT.
    Counted,
    /// A zero date that NO_ZERO_DATE refuses. The first row raises the error.
    Refused(SqlError),
}

/// Returns the error for an added date column without DEFAULT, if rows would get a refused zero date.
fn zero_date(ctx: &StatementContext<'_>, after: &Described, n: usize) -> Option<SqlError> {
    let column = &after.table.columns[n];
    let is_date = matches!(column.ty.kind, TypeKind::Date | TypeKind::DateTime);
    let is_zero = after.column_origins[n].is_none()
        && is_date
        && !column.nullable
        && column.generated.is_none()
        && matches!(column.default, DefaultValue::None);
    if !is_zero || after.ignores || !ctx.session.settings.env.sql_mode.has(SqlMode::NO_ZERO_DATE) {
        return None;
    }
    let (kind, zero) = match column.ty.kind {
        TypeKind::Date => ("date", "0000-00-00"),
        _ => ("datetime", "0000-00-00 00:00:00"),
    };
    let name = &after.table.name;
    Some(SqlError::incorrect_date(kind, zero, &name.schema, &name.table, &column.name, 1))
}

fn fills(
    ctx: &StatementContext<'_>,
    before: &Table,
    after: &Described,
    home: ColumnHome<'_>,
) -> SqlResult<Vec<Fill>> {
    let catalog = ctx.db.catalog();
    let names = SessionNames::new(&catalog, ctx.session);
    let plan = PlanContext::new(&names, &[], ParamSource::Placeholders);
    let table = Arc::new(after.table.clone());
    let scope = Scope::of_table(table.clone(), None);
    let binder = Binder::new(&plan, &scope, Clause::Values);
    let generated = RowRules::of(&plan, &table)?.into_generated();
    let fill = |(n, column): (usize, &Column)| {
        Ok(match after.column_origins[n] {
            _ if column.generated.is_some() => {
                let expr = generated.iter().find(|(column, _)| *column == n).map(|(_, expr)| expr.clone());
                Fill::Computed(Box::new(expr.expect("every generated column has its expression")))
            }
            Some(origin) if before.columns[origin].ty == column.ty => Fill::Same(origin),
            Some(origin) => Fill::Converted(origin, Box::new(before.columns[origin].ty.clone())),
            None if column.auto_increment => Fill::Counted,
            None if matches!(column.default, DefaultValue::Expression(_)) => {
                Fill::Computed(Box::new(binder.default_of(&table, n, 0)?))
            }
            None => match zero_date(ctx, after, n) {
                Some(error) => Fill::Refused(error),
                None => Fill::Value(value_now(ctx, column, home)?),
            },
        })
    };
    table.columns.iter().enumerate().map(fill).collect()
}

/// Converts rows of the old table to rows of the new table.
struct Converter<'c, 's> {
    after: &'c Described,
    /// The source of each column.
    fills: Vec<Fill>,
    rules: RowRules,
    eval: &'c EvalContext<'s>,
    row: u64,
    /// Generates values for an AUTO_INCREMENT column.
    counting: Counting,
    auto: Option<usize>,
    /// Whether zeros are replaced by generated values, because the column was not AUTO_INCREMENT before.
    counts_zero: bool,
}

impl Converter<'_, '_> {
    fn convert(
        &mut self,
        row: &[Value],
        store: &StoreContext<'_>,
        warnings: &mut Vec<Warning>,
    ) -> SqlResult<Option<Vec<Value>>> {
        self.row += 1;
        let after = self.after;
        let mut made = Vec::with_capacity(self.fills.len());
        for (n, column) in after.table.columns.iter().enumerate() {
            let origin = match &self.fills[n] {
                Fill::Same(origin) | Fill::Converted(origin, _) => *origin,
                Fill::Value(value) => {
                    made.push(value.clone());
                    continue;
                }
                Fill::Refused(error) => return Err(error.clone()),
                Fill::Counted => {
                    made.push(self.count()?);
                    continue;
                }
                Fill::Computed(_) => {
                    made.push(if column.nullable { Value::Null } else { column.ty.implicit_default() });
                    continue;
                }
            };
            let value = &row[origin];
            made.push(match (&self.fills[n], value) {
                (_, Value::Null) => self.null(n, store, warnings)?,
                (Fill::Same(_), value) => value.clone(),
                // Changing the character set keeps the text: values are UTF-8 in memory.
                (fill, value) => {
                    let store = StoreContext { column: &column.name, row: self.row, ..*store };
                    let mut value = session_value(value.clone(), store.zone);
                    if let Fill::Converted(_, before) = fill {
                        value = copied(value, before, &column.ty, store.strict, warnings)?;
                    }
                    not_null(
                        column,
                        column
                            .ty
                            .store(value, &store, warnings)
                            .map_err(|e| cut(e, fill, &column.ty, &store))?,
                    )
                }
            });
        }
        if let Some(auto) = self.auto
            && matches!(self.fills[auto], Fill::Same(_) | Fill::Converted(..))
        {
            match positive(&made[auto]) {
                Some(value) => self.counting.pass(value),
                None if self.counts_zero && is_zero(&made[auto]) => made[auto] = self.count()?,
                None => {}
            }
        }
        for (n, column) in after.table.columns.iter().enumerate() {
            let Fill::Computed(expr) = &self.fills[n] else { continue };
            let is_unread = self.rules.is_unread(n);
            let quiet = is_unread.then(|| self.eval.quiet());
            let value = expr.eval(&made, quiet.as_ref().unwrap_or(self.eval))?.into_owned();
            made[n] = match value {
                Value::Null => self.null(n, store, warnings)?,
                value => {
                    let strict = store.strict && !is_unread;
                    let store = StoreContext { column: &column.name, row: self.row, strict, ..*store };
                    let mut dropped = Vec::new();
                    let warnings = if is_unread { &mut dropped } else { &mut *warnings };
                    not_null(column, column.ty.store(value, &store, warnings)?)
                }
            };
        }
        match self.rules.check(self.eval, &after.table, &made)? {
            Ok(()) => Ok(Some(made)),
            Err(error) if after.ignores => {
                warnings.push(Warning { level: Level::Warning, error });
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn count(&mut self) -> SqlResult<Value> {
        let value = self.counting.take()?;
        let ty = &self.after.table.columns[self.auto.expect("counts only what counts")].ty;
        Ok(match ty.kind {
            cohort_types::TypeKind::Float => Value::Float(value as f32),
            cohort_types::TypeKind::Double => Value::Double(value as f64),
            _ if ty.unsigned => Value::UInt(value),
            _ => Value::Int(value as i64),
        })
    }

    fn null(&mut self, n: usize, store: &StoreContext<'_>, warnings: &mut Vec<Warning>) -> SqlResult<Value> {
        let column = &self.after.table.columns[n];
        if column.nullable {
            return Ok(Value::Null);
        }
        if self.auto == Some(n) {
            return self.count();
        }
        // NULL for a TIMESTAMP NOT NULL column becomes the current time.
        if column.ty.kind == TypeKind::Timestamp {
            let store = StoreContext { column: &column.name, row: self.row, ..*store };
            return column.ty.store(Value::Timestamp(store.now_micros), &store, warnings);
        }
        let error = SqlError::data_truncated(&column.name, self.row);
        if store.strict {
            return Err(error);
        }
        warnings.push(Warning { level: Level::Warning, error });
        Ok(column.ty.implicit_default())
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Int(number) => *number == 0,
        Value::UInt(number) => *number == 0,
        Value::Float(number) => *number == 0.0,
        Value::Double(number) => *number == 0.0,
        _ => false,
    }
}

/// Converts a value to another column type where the result differs from that of an assignment. With
/// `strict`, a text that is not a number is an error.
fn copied(
    value: Value,
    before: &ColumnType,
    after: &ColumnType,
    strict: bool,
    warnings: &mut Vec<Warning>,
) -> SqlResult<Value> {
    let is_string = after.kind.is_text() || after.kind.is_binary_string();
    Ok(match value {
        value if is_string && shows_more(before) => {
            let mut text = Vec::new();
            before.write_text(&value, &mut text);
            Value::Str(Str { bytes: text, collation: after.collation })
        }
        Value::Str(_) => {
            let mut conversion_warnings = Vec::new();
            let number = number_of(&value, after.kind, &mut conversion_warnings);
            if strict
                && let Some(n) =
                    conversion_warnings.iter().position(|warning| warning.level == Level::Warning)
            {
                return Err(conversion_warnings.swap_remove(n).error);
            }
            warnings.append(&mut conversion_warnings);
            number.unwrap_or(value)
        }
        value => value,
    })
}

/// Converts a text to a number for a numeric column. This includes BIT, whose text is read as a number and
/// not as bytes. Returns `None` for other columns.
fn number_of(text: &Value, kind: TypeKind, warnings: &mut Vec<Warning>) -> Option<Value> {
    match kind {
        TypeKind::Decimal => text.to_decimal(warnings).map(Value::Decimal),
        TypeKind::Float | TypeKind::Double => text.to_f64(warnings).map(Value::Double),
        kind if kind.is_integer() || kind == TypeKind::Bit => Some(match text.to_int(warnings)? {
            IntValue::Signed(number) => Value::Int(number),
            IntValue::Unsigned(number) => Value::UInt(number),
        }),
        _ => None,
    }
}

/// Returns the error for a value that is too long for a column. From a VARCHAR to a shorter VARCHAR it is
/// "truncated", not "too long".
fn cut(error: SqlError, fill: &Fill, after: &ColumnType, store: &StoreContext<'_>) -> SqlError {
    match (error.code, fill) {
        (ErrorCode::DataTooLong, Fill::Converted(_, before))
            if before.kind == TypeKind::VarChar && after.kind == TypeKind::VarChar =>
        {
            SqlError::data_truncated(store.column, store.row)
        }
        _ => error,
    }
}

/// Returns whether the column's text has digits that its values lack: fractions and leading zeros.
fn shows_more(ty: &ColumnType) -> bool {
    ty.zerofill || matches!(ty.kind, TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp)
}

/// Converts a stored value to the form that an assignment takes.
fn session_value(value: Value, zone: &dyn cohort_types::TimeZone) -> Value {
    match value {
        Value::Timestamp(0) => Value::DateTime(Default::default()),
        Value::Timestamp(micros) => Value::DateTime(zone.to_local(micros)),
        other => other,
    }
}

fn estimate(ctx: &StatementContext<'_>, table: &Table) -> u64 {
    let engine = ctx.db.engine_named(&table.engine);
    engine.map_or(0, |e| e.stats(table.rows().id).entries)
}

/// Replaces NULL by the type's implicit default if the column is NOT NULL.
fn not_null(column: &Column, stored: Value) -> Value {
    if stored.is_null() && !column.nullable { column.ty.implicit_default() } else { stored }
}
