//! Execution of INSERT and REPLACE.
//!
//! A row is built in column order: first the defaults of the columns that are not named, then the values from
//! left to right. Each value may read the columns set before it (`INSERT INTO t (a, b) VALUES (1, a + 1)`).
//! Then the AUTO_INCREMENT value is generated. The writer stores the row, or returns the row that conflicts
//! with it.

use cohort_expr::EvalContext;
use cohort_row::{Duplicate, DuplicateLock, TableWriter};
use cohort_session::StatementContext;
use cohort_table::{Reserved, UsedUp, positive};
use cohort_types::{ErrorCode, Level, SqlError, SqlMode, SqlResult, Value, Warning};

use crate::asked::{Answers, Cell, RowAssignment};
use crate::assign::{Assigner, Default, NullRule, Strictness};
use crate::insert_plan::{InsertPlan, OnDuplicate, Rows};
use crate::outcome::DmlOutcome;
use crate::returning::FixedAnswers;
use crate::row_change::{Outcome, RowChange, RowPipeline, is_foreign, is_zero, warn};
use crate::rules::refuse_generated;

/// Maximum number of AUTO_INCREMENT values reserved at once when the number of rows is unknown.
const RESERVE_MAX: u64 = 1 << 16;

/// Row counts, as MariaDB defines them.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) records: u64,
    /// Rows written, including those changed by ON DUPLICATE KEY UPDATE.
    pub(super) copied: u64,
    /// Rows that IGNORE skipped because they fail a check.
    skipped: u64,
    /// Rows that REPLACE deleted or overwrote.
    pub(super) deleted: u64,
    /// Rows that ON DUPLICATE KEY UPDATE changed.
    updated: u64,
    /// Rows that ON DUPLICATE KEY UPDATE found, changed or not.
    touched: u64,
}

/// One execution of an INSERT or REPLACE.
pub(super) struct Insert<'p> {
    plan: &'p InsertPlan,
    pub(super) pipeline: RowPipeline<'p>,
    writer: TableWriter,
    pub(super) counts: Counts,
    /// Rows inserted by earlier parts of the same bulk execution.
    rows_before: u64,
    pub(super) row: Vec<Value>,
    /// The existing row followed by the new row, for ON DUPLICATE KEY UPDATE.
    existing: Vec<Value>,
    /// Columns of the SELECT that only ON DUPLICATE KEY UPDATE reads.
    source: Vec<Value>,
    /// Cached results of the subqueries in ON DUPLICATE KEY UPDATE.
    answers: Answers,
    reserved: Reserved,
    reserve_next: u64,
    /// Whether each reservation of AUTO_INCREMENT values is twice as long as the one before, up to
    /// [`RESERVE_MAX`], so that long statements reserve rarely.
    reserves_more: bool,
    /// The first generated value among the rows written.
    generated_id: Option<u64>,
    /// The AUTO_INCREMENT value of the last row written.
    last_id: u64,
    /// Result rows of RETURNING.
    returned: Vec<Vec<Value>>,
    fixed: FixedAnswers,
}

impl InsertPlan {
    /// Runs the statement. The caller has begun the statement in the transaction and taken the metadata
    /// locks.
    pub fn run(&self, ctx: &mut StatementContext<'_>) -> SqlResult<DmlOutcome> {
        ctx.annotate();
        let strictness = Assigner::strictness(&ctx.eval, self.ignore);
        ctx.eval.set_abort_on_warning(strictness == Strictness::Error);
        ctx.eval.set_forgiving(self.ignore);
        let single = self.is_single_row;
        let null = if single { NullRule::Error } else { NullRule::Adjust };
        let mut insert = Insert::begin(self, ctx, strictness, null)?;
        let outcome = insert.run(ctx);
        ctx.eval.set_abort_on_warning(false);
        outcome?;
        let returned = self.returning.as_ref().map(|_| std::mem::take(&mut insert.returned));
        Ok(DmlOutcome { returned, ..insert.outcome(ctx, single) })
    }
}

impl<'p> Insert<'p> {
    /// Prepares the execution without writing a row. The caller holds the table's metadata lock.
    pub(super) fn begin(
        plan: &'p InsertPlan,
        ctx: &mut StatementContext<'_>,
        strictness: Strictness,
        null: NullRule,
    ) -> SqlResult<Insert<'p>> {
        let mut writer = TableWriter::open(ctx.trx, &plan.table)?;
        if !plan.steps.has_hooks() {
            writer.narrow_images(ctx.trx, plan.written());
        }
        writer.lock_duplicates(match plan.on_duplicate {
            OnDuplicate::Refuse => DuplicateLock::Shared,
            OnDuplicate::Replace | OnDuplicate::Update(_) => DuplicateLock::Exclusive,
        });
        Ok(Insert {
            plan,
            pipeline: RowPipeline::new(&plan.steps, &plan.table, strictness, null),
            writer,
            counts: Counts::default(),
            rows_before: ctx.session.statement.rows_before.get(),
            row: Vec::with_capacity(plan.table.columns.len()),
            existing: Vec::new(),
            source: Vec::new(),
            answers: Answers::default(),
            reserved: Reserved { next: 0, left: 0 },
            reserve_next: 1,
            reserves_more: true,
            generated_id: None,
            last_id: 0,
            returned: Vec::new(),
            fixed: FixedAnswers::default(),
        })
    }
}

impl Insert<'_> {
    fn run(&mut self, ctx: &mut StatementContext<'_>) -> SqlResult<()> {
        let plan = self.plan;
        self.check_unnamed(ctx)?;
        match &plan.rows {
            Rows::Values(rows) => {
                // As in MariaDB, the first draw reserves a value for each row of the statement, and a later
                // one for each row that was not written since.
                self.reserve_next = rows.len() as u64;
                self.reserves_more = false;
                for cells in rows {
                    self.build(ctx, cells)?;
                    let records = self.counts.records;
                    self.put(ctx)?;
                    let passes_checks = self.counts.records == records;
                    if passes_checks && self.reserved.next > 0 {
                        self.reserve_next = (self.reserve_next - 1).max(1);
                    }
                }
                Ok(())
            }
            Rows::Query(query) => {
                let rows = cohort_query::rows(query, ctx)?;
                for values in rows {
                    self.build_from(ctx, values)?;
                    self.put(ctx)?;
                }
                Ok(())
            }
        }
    }

    /// Reports columns that get no value and have no default: error or warning 1364, once for all rows. As in
    /// MariaDB, columns assigned by ON DUPLICATE KEY UPDATE count as given.
    fn check_unnamed(&self, ctx: &StatementContext<'_>) -> SqlResult<()> {
        let plan = self.plan;
        let is_assigned = |column: usize| match &plan.on_duplicate {
            OnDuplicate::Update(assignments) => {
                assignments.iter().any(|assignment| assignment.column == column)
            }
            OnDuplicate::Refuse | OnDuplicate::Replace => false,
        };
        let is_missing =
            |column: &usize| matches!(plan.defaults[*column], Default::Missing) && !is_assigned(*column);
        let mut refused = None;
        for &column in plan.unnamed.iter().filter(|column| is_missing(column)) {
            match self.pipeline.assigner.default(&ctx.eval, column, &plan.defaults[column], &[], 1) {
                Err(error) if refused.is_some() => {
                    ctx.eval.push_warning(Warning { level: Level::Error, error: error.at_row(0) });
                }
                Err(error) => refused = Some(error.at_row(0)),
                Ok(_) => {}
            }
        }
        refused.map_or(Ok(()), Err)
    }

    /// Builds the row from a list of VALUES.
    fn build(&mut self, ctx: &mut StatementContext<'_>, cells: &[Cell]) -> SqlResult<()> {
        self.begin_row(ctx)?;
        let number = self.number();
        for (cell, &column) in cells.iter().zip(&self.plan.columns) {
            if self.plan.steps.rules.generates(column) {
                if let Cell::Expr(expr) = cell {
                    let value = expr.eval(&self.row, &ctx.eval)?.into_owned();
                    refuse_generated(&ctx.eval, &self.pipeline.assigner, column, &value)?;
                }
                continue;
            }
            let value = match cell {
                Cell::Default => {
                    let default = &self.plan.defaults[column];
                    self.pipeline.assigner.default(&ctx.eval, column, default, &self.row, number)?
                }
                Cell::Expr(expr) => {
                    let value = expr.eval(&self.row, &ctx.eval)?.into_owned();
                    self.store(&ctx.eval, column, value, number)?
                }
            };
            self.row[column] = value;
        }
        self.late_defaults(ctx)
    }

    /// Sets the defaults that read other columns, for columns that the statement does not name, and then NULL
    /// in those that are left to the hooks.
    fn late_defaults(&mut self, ctx: &StatementContext<'_>) -> SqlResult<()> {
        for &column in &self.plan.unnamed {
            let default = &self.plan.defaults[column];
            if default.reads_row() {
                let number = self.number();
                self.row[column] =
                    self.pipeline.assigner.default(&ctx.eval, column, default, &self.row, number)?;
            }
        }
        for &column in self.plan.steps.unassigned() {
            self.row[column] = Value::Null;
        }
        Ok(())
    }

    /// Builds the row from a row of the SELECT.
    fn build_from(&mut self, ctx: &mut StatementContext<'_>, values: Vec<Value>) -> SqlResult<()> {
        self.begin_row(ctx)?;
        let number = self.number();
        let mut values = values.into_iter();
        for &column in &self.plan.columns {
            let value = values.next().expect("the query has a column for each");
            if self.plan.steps.rules.generates(column) {
                refuse_generated(&ctx.eval, &self.pipeline.assigner, column, &value)?;
                continue;
            }
            self.row[column] = self.store(&ctx.eval, column, value, number)?;
        }
        self.source.clear();
        self.source.extend(values);
        self.late_defaults(ctx)
    }

    /// Returns the number of the current row, for conditions.
    pub(super) fn number(&self) -> u64 {
        self.rows_before + self.counts.records + self.counts.skipped
    }

    pub(super) fn begin_row(&mut self, ctx: &mut StatementContext<'_>) -> SqlResult<()> {
        ctx.check_interrupt()?;
        self.counts.records += 1;
        ctx.eval.set_row_number(self.number());
        self.row.clear();
        // A column without a value yet reads as its default, or as its type's implicit default.
        self.row.extend(self.plan.defaults.iter().zip(&self.plan.table.columns).map(|(default, column)| {
            match default {
                Default::Value(value) => value.clone(),
                _ if column.nullable => Value::Null,
                _ => column.ty.implicit_default(),
            }
        }));
        for &column in &self.plan.unnamed {
            let default = &self.plan.defaults[column];
            // A missing default was reported before the first row.
            if !default.reads_row() && !matches!(default, Default::Missing) {
                let number = self.number();
                self.row[column] = self.pipeline.assigner.default(&ctx.eval, column, default, &[], number)?;
            }
        }
        Ok(())
    }

    /// Converts a value for its column. For an AUTO_INCREMENT column, NULL is kept: the value is generated
    /// later.
    pub(super) fn store(
        &self,
        ctx: &EvalContext<'_>,
        column: usize,
        value: Value,
        number: u64,
    ) -> SqlResult<Value> {
        if value.is_null() && self.plan.table.columns[column].auto_increment {
            return Ok(Value::Null);
        }
        self.pipeline.assigner.store(ctx, column, value, number)
    }

    /// Takes the current row, whose values are assigned, through the steps of an insert.
    pub(super) fn put(&mut self, ctx: &mut StatementContext<'_>) -> SqlResult<()> {
        let (pipeline, number) = (self.pipeline, self.number());
        let mut row = std::mem::take(&mut self.row);
        let change = RowChange::insert(&mut row, number);
        let outcome = pipeline.run(ctx, change, |ctx, new| self.write(ctx, new));
        self.row = row;
        match outcome? {
            Outcome::Done => {
                self.counts.copied += 1;
                if let Some(returning) = &self.plan.returning {
                    self.returned.push(returning.row(&self.row, &mut self.fixed, ctx)?);
                }
            }
            Outcome::FailsCheck => {
                self.counts.records -= 1;
                self.counts.skipped += 1;
            }
            _ => {}
        }
        Ok(())
    }

    /// Draws the row's AUTO_INCREMENT value and writes the row, or handles the row that has one of its keys.
    fn write(&mut self, ctx: &mut StatementContext<'_>, new: &mut [Value]) -> SqlResult<Outcome> {
        let drawn = match self.draw(ctx, new) {
            Ok(drawn) => drawn,
            Err(error) if self.plan.ignore && error.code == ErrorCode::AutoincRange => {
                warn(ctx, error);
                return Ok(Outcome::Skipped);
            }
            Err(error) => return Err(error),
        };
        if drawn.is_some() {
            self.pipeline.generate_drawn(ctx, new)?;
        }
        let is_written = self.insert(ctx, new)?;
        match drawn {
            _ if is_written => self.note_id(new, drawn),
            Some(value) => self.give_back(ctx, value),
            None => {}
        }
        Ok(if is_written { Outcome::Done } else { Outcome::Skipped })
    }

    /// Writes the row. Returns false if it was not written because another row has one of its keys, or
    /// because IGNORE skips it.
    fn insert(&mut self, ctx: &mut StatementContext<'_>, new: &[Value]) -> SqlResult<bool> {
        let plan = self.plan;
        loop {
            let inserted = match self.writer.insert(ctx.trx, new) {
                Err(error) if plan.ignore && is_foreign(&error) => {
                    warn(ctx, error);
                    return Ok(false);
                }
                inserted => inserted?,
            };
            let Err(duplicate) = inserted else { return Ok(true) };
            match &plan.on_duplicate {
                OnDuplicate::Refuse => return self.refuse(ctx, &duplicate, new).map(|()| false),
                OnDuplicate::Replace => {
                    if self.replace(ctx, &duplicate, new)? {
                        return Ok(true);
                    }
                }
                OnDuplicate::Update(assignments) => {
                    let Some(outcome) = self.update(ctx, &duplicate, assignments, new)? else { continue };
                    self.note_update(&outcome);
                    if let (Outcome::Done | Outcome::Unchanged, Some(returning)) = (&outcome, &plan.returning)
                    {
                        self.returned.push(returning.row(&self.existing, &mut self.fixed, ctx)?);
                    }
                    return Ok(false);
                }
            }
        }
    }

    fn note_id(&mut self, row: &[Value], drawn: Option<u64>) {
        if let Some(value) = drawn {
            self.generated_id.get_or_insert(value);
        }
        if let Some((column, _)) = self.writer.table().auto_column {
            self.last_id = positive(&row[column]).unwrap_or(0);
            // An explicit value is at or above the reserved range: later generated values must follow it.
            if drawn.is_none() && self.last_id >= self.reserved.next {
                self.reserved.left = 0;
            }
        }
    }

    /// Counts a row that ON DUPLICATE KEY UPDATE found.
    fn note_update(&mut self, outcome: &Outcome) {
        if matches!(outcome, Outcome::FailsCheck | Outcome::Skipped) {
            return;
        }
        self.counts.touched += 1;
        if matches!(outcome, Outcome::Done) {
            self.counts.updated += 1;
            self.counts.copied += 1;
            if let Some((column, _)) = self.writer.table().auto_column {
                self.last_id = positive(&self.existing[column]).unwrap_or(0);
            }
        }
    }

    /// Draws the AUTO_INCREMENT value if the row has none.
    fn draw(&mut self, ctx: &mut StatementContext<'_>, new: &mut [Value]) -> SqlResult<Option<u64>> {
        let Some((column, _)) = self.writer.table().auto_column else { return Ok(None) };
        let keeps_zero = ctx.eval.env.sql_mode.has(SqlMode::NO_AUTO_VALUE_ON_ZERO);
        let wanted = match &new[column] {
            Value::Null => !self.plan.table.columns[column].nullable,
            value => !keeps_zero && is_zero(value),
        };
        if !wanted {
            return Ok(None);
        }
        let value = self.next_value(ctx, column)?;
        new[column] = self.pipeline.assigner.store(&ctx.eval, column, Value::UInt(value), self.number())?;
        Ok(Some(value))
    }

    fn next_value(&mut self, ctx: &mut StatementContext<'_>, column: usize) -> SqlResult<u64> {
        let asked = std::mem::take(&mut ctx.trx.settings.insert_id);
        if asked != 0 {
            return Ok(asked);
        }
        if self.reserved.left == 0 {
            let table = self.writer.table().clone();
            let reserved = ctx.trx.reserve_auto_increment(&table, column, self.reserve_next)?;
            self.reserved = reserved.map_err(|why| self.exhausted(column, why))?;
            if self.reserves_more {
                self.reserve_next = (self.reserve_next * 2).min(RESERVE_MAX);
            }
        }
        let value = self.reserved.next;
        self.reserved.left -= 1;
        self.reserved.next = value.saturating_add(ctx.trx.series().increment.max(1));
        Ok(value)
    }

    /// Returns the value generated for a row that was not written, so that the next row gets it.
    fn give_back(&mut self, ctx: &StatementContext<'_>, value: u64) {
        if self.reserved.next == value.saturating_add(ctx.trx.series().increment.max(1)) {
            self.reserved.next = value;
            self.reserved.left += 1;
        }
    }

    fn exhausted(&self, column: usize, why: UsedUp) -> SqlError {
        if why == UsedUp::Counter {
            return SqlError::autoinc_read_failed();
        }
        let (name, row) = (&self.plan.table.columns[column].name, self.number());
        SqlError::generated_out_of_range(name, row)
    }

    /// Reports a duplicate of a plain INSERT: error 1062. With IGNORE, adds a warning.
    fn refuse(&mut self, ctx: &StatementContext<'_>, duplicate: &Duplicate, new: &[Value]) -> SqlResult<()> {
        let error =
            self.writer.table().duplicate_error(duplicate.index, new, &ctx.session.settings.env.time_zone);
        if !self.plan.ignore {
            return Err(error);
        }
        warn(ctx, error);
        Ok(())
    }

    /// Deletes the conflicting row. If no other row can conflict, overwrites it instead and returns `true`.
    fn replace(
        &mut self,
        ctx: &mut StatementContext<'_>,
        duplicate: &Duplicate,
        new: &[Value],
    ) -> SqlResult<bool> {
        if !self.writer.fetch(ctx.trx, &duplicate.key, &mut self.existing)? {
            return Ok(false);
        }
        // A row of a referenced table is always deleted and inserted, so that foreign key actions run; and
        // with hooks of deletes, so that they see both.
        let is_deleted = !self.plan.table.referenced_by.is_empty() || self.plan.steps.has_delete_hooks();
        if !is_deleted && self.writer.table().is_last_unique(duplicate.index) {
            if self.existing == new {
                return Ok(true);
            }
            let written = self.writer.update(ctx.trx, &duplicate.key, &self.existing, new)?;
            if written.is_ok() {
                self.counts.deleted += 1;
                return Ok(true);
            }
        }
        // REPLACE has no IGNORE.
        self.pipeline.delete(ctx, &mut self.writer, &duplicate.key, &self.existing)?;
        self.counts.deleted += 1;
        Ok(false)
    }

    /// Updates the conflicting row, and reports what IGNORE skips. Returns `None` if the row no longer
    /// exists.
    fn update(
        &mut self,
        ctx: &mut StatementContext<'_>,
        duplicate: &Duplicate,
        assignments: &[RowAssignment],
        new: &[Value],
    ) -> SqlResult<Option<Outcome>> {
        if !self.writer.fetch(ctx.trx, &duplicate.key, &mut self.existing)? {
            return Ok(None);
        }
        let width = self.existing.len();
        let before = self.existing.clone();
        self.existing.extend(new.iter().cloned());
        self.existing.extend(self.source.iter().cloned());
        let all = self.existing.len();
        let (number, pipeline) = (self.number(), self.pipeline);
        let assigner = &pipeline.assigner;
        let at_once = ctx.eval.env.sql_mode.has(SqlMode::SIMULTANEOUS_ASSIGNMENT);
        let mut assigned_at_once = Vec::new();
        for (n, assignment) in assignments.iter().enumerate() {
            let RowAssignment { column, cell, .. } = assignment;
            self.existing.truncate(all);
            assignment.ask(ctx, n, &mut self.answers, &mut self.existing)?;
            if self.plan.steps.rules.generates(*column) {
                if let Cell::Expr(expr) = cell {
                    let value = expr.eval(&self.existing, &ctx.eval)?.into_owned();
                    refuse_generated(&ctx.eval, assigner, *column, &value)?;
                }
                continue;
            }
            let value = match cell {
                Cell::Default => {
                    let default = &self.plan.defaults[*column];
                    assigner.default_in_change(&ctx.eval, *column, default, &self.existing, number)?
                }
                Cell::Expr(expr) => {
                    let value = expr.eval(&self.existing, &ctx.eval)?.into_owned();
                    assigner.store(&ctx.eval, *column, value, number)?
                }
            };
            match at_once {
                true => assigned_at_once.push((*column, value)),
                false => self.existing[*column] = value,
            }
        }
        self.existing.truncate(width);
        for (column, value) in assigned_at_once {
            self.existing[column] = value;
        }
        let row = RowChange::update(&before, &mut self.existing, number);
        let outcome = pipeline.update_duplicate(ctx, &mut self.writer, &duplicate.key, row)?;
        match &outcome {
            Outcome::Duplicate(other) => {
                let zone = &ctx.session.settings.env.time_zone;
                warn(ctx, self.writer.table().duplicate_error(other.index, &self.existing, zone));
            }
            Outcome::Foreign(error) => warn(ctx, error.clone()),
            Outcome::Done | Outcome::Unchanged | Outcome::FailsCheck | Outcome::Skipped => {}
        }
        Ok(Some(outcome))
    }

    pub(super) fn outcome(&self, ctx: &StatementContext<'_>, single: bool) -> DmlOutcome {
        let Counts { records, copied, deleted, updated, touched, .. } = self.counts;
        let duplicates = if self.plan.ignore { records - copied } else { deleted + updated };
        let warnings = ctx.eval.warning_count();
        let info = if single {
            String::new()
        } else {
            format!("Records: {records}  Duplicates: {duplicates}  Warnings: {warnings}")
        };
        DmlOutcome {
            affected: copied + deleted + updated,
            // A row that was found but did not change counts once.
            found: copied + deleted + updated + (touched - updated),
            insert_id: self
                .generated_id
                .or(ctx.session.statement.next_insert_id.get())
                .unwrap_or(self.last_id),
            generated_id: self.generated_id,
            info,
            returned: None,
        }
    }
}
