//! Changes one table by the rows of a row event.

use std::sync::Arc;

use cohort_base::Reader;
use cohort_binlog::event::{DecodeError, HAS_TRIGGERS, RowsEvent, RowsKind, TableMap};
use cohort_catalog::{Column, DefaultValue, ROWS, Table};
use cohort_config::{Globals, VarId};
use cohort_optimize::ReadMode;
use cohort_plan::{ParamSource, PlanContext};
use cohort_row::{CursorOptions, KeySpan, KeySpans, RowChanges, TableCursor, TableWriter};
use cohort_session::{SessionNames, StatementContext};
use cohort_table::OpenTable;
use cohort_trx::WaitPolicy;
use cohort_types::{BinlogColumn, Columns, ImageError, SqlError, SqlResult, Value, WireFit};

use crate::assign::{NullRule, Strictness};
use crate::row_change::{Outcome, RowChange, RowPipeline, RowSteps, hooks_of, is_foreign};
use crate::rules::RowRules;
use crate::unpack::bad_event;

/// A row image: a value for each column that it contains.
pub(super) type Image = Vec<Option<Value>>;

/// `slave_type_conversions`: the allowed conversions from another type than the source's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conversions {
    /// Allow conversions that may lose information.
    pub lossy: bool,
    /// Allow conversions to a type that can represent every value of the source's type.
    pub non_lossy: bool,
}

/// Options for applying row events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplyRules {
    /// `slave_exec_mode=IDEMPOTENT`: missing rows are skipped, existing rows are overwritten.
    pub is_idempotent: bool,
    pub conversions: Conversions,
    pub triggers: RunTriggers,
}

/// `slave_run_triggers_for_rbr`: whether row events run the triggers of their tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunTriggers {
    #[default]
    No,
    /// If the source has run none: YES and LOGGING, which are the same in MariaDB, too.
    IfNotRun,
    Always,
}

impl RunTriggers {
    fn runs(self, map: &TableMap) -> bool {
        match self {
            RunTriggers::No => false,
            RunTriggers::IfNotRun => map.flags & HAS_TRIGGERS == 0,
            RunTriggers::Always => true,
        }
    }
}

impl ApplyRules {
    /// Returns the options according to the current settings.
    pub fn of(globals: &Globals) -> ApplyRules {
        let conversions = globals.uint(VarId::SlaveTypeConversions);
        ApplyRules {
            is_idempotent: globals.uint(VarId::SlaveExecMode) == 1,
            conversions: Conversions { lossy: conversions & 1 != 0, non_lossy: conversions & 2 != 0 },
            triggers: match globals.uint(VarId::SlaveRunTriggersForRbr) {
                0 => RunTriggers::No,
                1 | 2 => RunTriggers::IfNotRun,
                _ => RunTriggers::Always,
            },
        }
    }
}

/// Returns the error for images without columns: any number of them would fit into the remaining bytes.
pub(super) fn without_columns() -> SqlError {
    bad_event(DecodeError::BadValue("row images without columns"))
}

/// Applies the rows of one event to one table.
pub(super) struct RowApplier {
    pub(super) table: Arc<Table>,
    /// The columns as described by the table map. Those beyond the local table's columns are skipped.
    pub columns: Vec<BinlogColumn>,
    pub(super) writer: TableWriter,
    pub rules: ApplyRules,
    pub steps: RowSteps,
}

/// Returns the steps of the event's rows: they compute generated columns that the after images leave out, and
/// run triggers if the settings say so.
pub fn steps(
    ctx: &StatementContext<'_>,
    table: &Arc<Table>,
    (map, event): (&TableMap, &RowsEvent),
    triggers: RunTriggers,
) -> SqlResult<RowSteps> {
    let hooks = match triggers.runs(map) {
        true => hooks_of(ctx.session, table),
        false => Vec::new(),
    };
    let present = match event.kind {
        RowsKind::Write => &event.present,
        RowsKind::Update => &event.present_after,
        RowsKind::Delete => return Ok(RowSteps::of_event(RowRules::default(), &[], hooks)),
    };
    let columns = table.columns.iter().enumerate();
    // A trigger may change what the generated columns are computed from.
    let is_computed =
        |n: usize, column: &Column| column.generated.is_some() && (!hooks.is_empty() || !bit(present, n));
    let computed: Vec<usize> = columns.filter(|(n, c)| is_computed(*n, c)).map(|(n, _)| n).collect();
    if computed.is_empty() {
        return Ok(RowSteps::of_event(RowRules::default(), &[], hooks));
    }
    let catalog = ctx.db.catalog();
    let names = SessionNames::new(&catalog, ctx.session);
    let rules = RowRules::of(&PlanContext::new(&names, &[], ParamSource::Literals), table)?;
    Ok(RowSteps::of_event(rules, &computed, hooks))
}

pub fn columns(table: &Table, map: &TableMap, rules: Conversions) -> SqlResult<Vec<BinlogColumn>> {
    let mut columns = BinlogColumn::parse_all(&map.column_types, &map.metadata)
        .map_err(|_| bad_event(DecodeError::BadValue("the column types of a table map")))?;
    for (n, (column, described)) in columns.iter_mut().zip(&table.columns).enumerate() {
        let is_taken = match column.fit(&described.ty) {
            WireFit::Same => true,
            WireFit::Widens => rules.non_lossy,
            WireFit::Narrows => rules.lossy,
            WireFit::Differs => false,
        };
        if !is_taken {
            return Err(conversion_failed(table, n, column));
        }
        // Without optional metadata the local column decides whether it is unsigned.
        column.unsigned = described.ty.unsigned;
    }
    Ok(columns)
}

/// Returns error 1677.
fn conversion_failed(table: &Table, column: usize, wire: &BinlogColumn) -> SqlError {
    let ty = table.columns.get(column).map_or_else(String::new, |described| described.ty.sql_text());
    SqlError::slave_conversion_failed(column, &table.name.schema, &table.name.table, &wire.type_text(), &ty)
}

/// Returns the value for NULL from the source. If the local column is NOT NULL, that is its default.
fn null_of(column: &Column) -> Value {
    if column.nullable { Value::Null } else { default_of(column) }
}

pub fn default_of(column: &Column) -> Value {
    match &column.default {
        DefaultValue::Value(value) => value.clone(),
        _ if column.nullable => Value::Null,
        _ => column.ty.implicit_default(),
    }
}

pub(super) fn bit(bitmap: &[u8], n: usize) -> bool {
    bitmap.get(n / 8).is_some_and(|byte| byte >> (n % 8) & 1 != 0)
}

impl RowApplier {
    pub(super) fn read_image(&self, present: &[u8], from: &mut Reader<'_>) -> SqlResult<Image> {
        let count = (0..self.columns.len()).filter(|&n| bit(present, n)).count();
        let nulls = from.bytes(count.div_ceil(8)).map_err(|e| bad_event(e.into()))?;
        let mut image = vec![None; self.table.columns.len()];
        let here = self.columns.iter().enumerate().filter(|(n, _)| bit(present, *n));
        for (place, (n, column)) in here.enumerate() {
            let is_null = bit(nulls, place);
            match self.table.columns.get(n) {
                // The local table has no such column.
                None if is_null => {}
                None => column.skip(from).map_err(|e| self.bad_image(n, column, &e))?,
                Some(described) if is_null => image[n] = Some(null_of(described)),
                Some(described) => {
                    let value = column.read(&described.ty, from);
                    image[n] = Some(value.map_err(|e| self.bad_image(n, column, &e))?);
                }
            }
        }
        Ok(image)
    }

    fn bad_image(&self, n: usize, column: &BinlogColumn, error: &ImageError) -> SqlError {
        match error {
            ImageError::Corrupt => bad_event(DecodeError::BadValue("a row image")),
            ImageError::WrongClass | ImageError::UnknownType(_) => conversion_failed(&self.table, n, column),
        }
    }

    pub fn insert(&mut self, ctx: &mut StatementContext<'_>, image: Image) -> SqlResult<()> {
        let mut row: Vec<Value> = image
            .into_iter()
            .zip(&self.table.columns)
            .map(|(value, column)| value.unwrap_or_else(|| default_of(column)))
            .collect();
        let change = RowChange::insert(&mut row, 1);
        let pipeline = pipeline(&self.steps, &self.table);
        let (writer, is_idempotent) = (&mut self.writer, self.rules.is_idempotent);
        let outcome = pipeline.run(ctx, change, |ctx, row| put(ctx, writer, row, (pipeline, is_idempotent)));
        self.passed_over(outcome)
    }

    /// Ends a change. IDEMPOTENT skips changes that foreign keys refuse.
    fn passed_over(&self, outcome: SqlResult<Outcome>) -> SqlResult<()> {
        match outcome {
            Err(error) if self.rules.is_idempotent && is_foreign(&error) => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    /// Updates a row that was found.
    pub(super) fn update(
        &mut self,
        ctx: &mut StatementContext<'_>,
        key: &[u8],
        row: &[Value],
        after: Image,
    ) -> SqlResult<()> {
        let mut new: Vec<Value> =
            after.into_iter().zip(row).map(|(new, old)| new.unwrap_or_else(|| old.clone())).collect();
        let pipeline = pipeline(&self.steps, &self.table);
        let (writer, is_idempotent) = (&mut self.writer, self.rules.is_idempotent);
        let outcome = pipeline.run(ctx, RowChange::update(row, &mut new, 1), |ctx, new| {
            match writer.update(ctx.trx, key, row, new)? {
                Err(duplicate) if !is_idempotent => {
                    let zone = &ctx.session.settings.env.time_zone;
                    Err(writer.table().duplicate_error(duplicate.index, new, zone))
                }
                Err(duplicate) => Ok(Outcome::Duplicate(duplicate)),
                Ok(()) => Ok(Outcome::Done),
            }
        });
        self.passed_over(outcome)
    }

    /// Deletes a row that was found.
    pub(super) fn delete(
        &mut self,
        ctx: &mut StatementContext<'_>,
        key: &[u8],
        row: &[Value],
    ) -> SqlResult<()> {
        let pipeline = pipeline(&self.steps, &self.table);
        let writer = &mut self.writer;
        let outcome = pipeline.run(ctx, RowChange::delete(row), |ctx, _| {
            writer.delete(ctx.trx, key, row).map(|()| Outcome::Done)
        });
        self.passed_over(outcome)
    }

    /// Returns error 1032, unless missing rows are skipped.
    pub(super) fn missing_row(&self) -> SqlResult<()> {
        if self.rules.is_idempotent {
            return Ok(());
        }
        let name = &self.table.name.table;
        Err(SqlError::record_not_found(name))
    }

    /// Returns whether a lookup by this index examines many rows per image, so that one pass for all rows of
    /// the event is better. A table with a unique key needs its rows changed in the source's order, so the
    /// answer is then false, unless there is no index to use.
    pub fn needs_scan(&self, by: Option<usize>) -> bool {
        let mut kinds = self.open().indexes.iter().map(|index| index.kind);
        by.is_none() || !kinds.any(|kind| kind.is_unique())
    }

    /// Returns the index for lookups: the primary key, else a unique key, else any other index whose columns
    /// are present.
    pub fn index_of(&self, is_there: impl Fn(usize) -> bool) -> Option<usize> {
        let open = self.open();
        let usable = |n: &usize| {
            let index = &open.indexes[*n];
            index.kind.is_declared() && index.parts.iter().all(|(column, _)| is_there(*column))
        };
        // The primary key is the first index.
        let rank = |n: &usize| match &open.table().indexes[*n] {
            index if open.table().identifies_rows(index) => 0,
            // A unique key with nullable columns may match many rows.
            index if index.kind.is_unique() => 1,
            _ => 2,
        };
        std::iter::once(ROWS)
            .chain(open.single_entry_indexes().map(|(n, _)| n))
            .filter(usable)
            .min_by_key(rank)
    }

    pub(super) fn open(&self) -> &OpenTable {
        self.writer.table()
    }

    /// Finds and locks the row of a before image with this key. Returns its clustered key and values, or
    /// `None` if it is missing and skipped.
    pub fn find(
        &mut self,
        ctx: &mut StatementContext<'_>,
        index: usize,
        key: Vec<u8>,
        before: &Image,
    ) -> SqlResult<Option<(Vec<u8>, Vec<Value>)>> {
        let by_key = self.open().indexes[index].kind.is_primary();
        let mut same = |row: &[Value]| {
            let equal = |(value, old): (&Value, &Option<Value>)| old.as_ref().is_none_or(|old| old == value);
            Ok(by_key || row.iter().zip(before).all(equal))
        };
        let spans = KeySpans { index, reverse: false, spans: vec![KeySpan::Point(key)] };
        let options = CursorOptions {
            mode: ReadMode::LockExclusive(WaitPolicy::Wait),
            columns: Columns::All,
            changes: RowChanges::Any,
            rows_expected: Some(1),
        };
        let mut cursor = TableCursor::open(ctx.trx, &self.table, spans, options)?;
        let mut row = Vec::new();
        if cursor.next(ctx.trx, &mut same, &mut row)? {
            return Ok(Some((cursor.key().to_vec(), row)));
        }
        self.missing_row().map(|()| None)
    }

    /// Returns the index range that contains the rows with the key of a before image.
    pub(super) fn span(&self, index: usize, before: &Image) -> SqlResult<KeySpan> {
        let open = self.open();
        let row: Vec<Value> = before.iter().map(|value| value.clone().unwrap_or(Value::Null)).collect();
        let mut key = Vec::new();
        open.indexes[index].encode_columns(&row, &mut key).map_err(|e| open.key_error(index, e))?;
        Ok(if open.indexes[index].is_unique_for(&row) {
            KeySpan::Point(key)
        } else {
            let end = cohort_types::prefix_end(&key);
            KeySpan::Range(cohort_engine::KeyRange { start: Some(key), end })
        })
    }
}

/// Creates the pipeline of row events, whose values need no conversion.
pub fn pipeline<'p>(steps: &'p RowSteps, table: &'p Table) -> RowPipeline<'p> {
    RowPipeline::new(steps, table, Strictness::Adjust, NullRule::Adjust)
}

/// Adds a row. In IDEMPOTENT mode, rows with conflicting keys are deleted first. As in MariaDB, they stay
/// deleted if a foreign key then refuses the new row.
pub fn put(
    ctx: &mut StatementContext<'_>,
    writer: &mut TableWriter,
    row: &[Value],
    (pipeline, is_idempotent): (RowPipeline<'_>, bool),
) -> SqlResult<Outcome> {
    loop {
        let Err(duplicate) = writer.insert(ctx.trx, row)? else { return Ok(Outcome::Done) };
        let mut before = Vec::new();
        if !is_idempotent || !writer.fetch(ctx.trx, &duplicate.key, &mut before)? {
            let zone = &ctx.session.settings.env.time_zone;
            return Err(writer.table().duplicate_error(duplicate.index, row, zone));
        }
        pipeline.run(ctx, RowChange::delete(&before), |ctx, _| {
            writer.delete(ctx.trx, &duplicate.key, &before).map(|()| Outcome::Done)
        })?;
    }
}
