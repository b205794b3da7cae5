//! The change of one row, step by step ([`RowPipeline`]).
//!
//! # Steps
//! Each statement assigns the values of the row by itself. [`RowPipeline::run`] then has the order of the
//! steps, for every kind of change:
//!
//! | step | contents |
//! |---|---|
//! | assign | values are converted for their columns, DEFAULT |
//! | before | hooks, which may change the new row; then NOT NULL |
//! | | an UPDATE whose row is unchanged skips the next three steps |
//! | generate | ON UPDATE CURRENT_TIMESTAMP, generated columns |
//! | check | WITH CHECK OPTION of views, then CHECK constraints |
//! | write | AUTO_INCREMENT, locks, unique keys, foreign keys and their actions, engine, row event |
//! | after | hooks |
//!
//! Without hooks, NOT NULL is checked when a value is assigned. A column of an INSERT without a value has its
//! default before the row's values are assigned.
//!
//! # Which change takes which steps
//!
//! | change | steps |
//! |---|---|
//! | INSERT, LOAD DATA, CREATE TABLE .. SELECT | all |
//! | UPDATE of one table or of several | all |
//! | ON DUPLICATE KEY UPDATE | the INSERT's up to write, whose place the UPDATE's steps take |
//! | REPLACE | the INSERT's; within write, the DELETE's of each conflicting row, or one overwritten row |
//! | DELETE | before, write, after |
//! | row events | assign, generated columns that the event leaves out, write; hooks by `slave_run_triggers_for_rbr` |
//! | foreign key actions | assign, write: `cohort_row` changes the children within the parent's write |
//!
//! As in MariaDB, row events and foreign key actions touch no ON UPDATE column and check no constraint, and
//! foreign key actions run no hook. DDL rejects CHECK constraints and generated columns over columns that an
//! action sets.
//!
//! # AUTO_INCREMENT
//! As in MariaDB, a value is drawn when the row is written: a row that a check refuses uses none. Until then
//! hooks, generated columns and checks see 0. DDL rejects constraints and stored columns over the column.
//! VIRTUAL columns over it are computed once more after the draw.

use std::sync::Arc;

use cohort_catalog::{DefaultValue, OnUpdate, Table};
use cohort_plan::{PlanContext, RowCheck};
use cohort_row::{Duplicate, TableWriter};
use cohort_session::{RowHook, SessionState, StatementContext};
use cohort_types::{ErrorCode, Level, SqlError, SqlResult, Value, Warning};

use crate::assign::{self, Assigner, NullRule, Strictness};
use crate::rules::RowRules;

/// The steps of a table's row changes, bound when the statement is planned.
#[derive(Default)]
pub(crate) struct RowSteps {
    pub(crate) rules: RowRules,
    /// The conditions of views WITH CHECK OPTION.
    view_checks: Vec<RowCheck>,
    hooks: Vec<Arc<dyn RowHook>>,
    /// NOT NULL columns without DEFAULT that an INSERT does not name. Hooks see NULL and may set them.
    unassigned: Vec<usize>,
    /// ON UPDATE CURRENT_TIMESTAMP columns that the statement does not assign.
    touched: Vec<usize>,
    /// The AUTO_INCREMENT column, if a step before the draw may see its missing value.
    undrawn: Option<usize>,
    /// Generated columns computed from the AUTO_INCREMENT column.
    drawn_readers: Vec<usize>,
}

impl RowSteps {
    /// Binds the steps. An UPDATE, or the UPDATE of an INSERT, assigns the columns `updated`.
    pub(crate) fn of(
        ctx: &PlanContext<'_>,
        session: &SessionState,
        table: &Arc<Table>,
        view_checks: Vec<RowCheck>,
        updated: &[usize],
    ) -> SqlResult<RowSteps> {
        RowSteps::bind(ctx, table, view_checks, hooks_of(session, table), updated)
    }

    /// Binds the steps of rows that are written into a new table, which has no hooks.
    pub(crate) fn of_new_table(ctx: &PlanContext<'_>, table: &Arc<Table>) -> SqlResult<RowSteps> {
        RowSteps::bind(ctx, table, Vec::new(), Vec::new(), &[])
    }

    fn bind(
        ctx: &PlanContext<'_>,
        table: &Arc<Table>,
        view_checks: Vec<RowCheck>,
        hooks: Vec<Arc<dyn RowHook>>,
        updated: &[usize],
    ) -> SqlResult<RowSteps> {
        let rules = RowRules::of(ctx, table)?;
        let is_touched =
            |n: &usize| table.columns[*n].on_update == OnUpdate::CurrentTimestamp && !updated.contains(n);
        let drawn = table.columns.iter().position(|column| column.auto_increment);
        let is_seen = !rules.is_empty() || !view_checks.is_empty() || !hooks.is_empty();
        Ok(RowSteps {
            view_checks,
            hooks,
            unassigned: Vec::new(),
            touched: (0..table.columns.len()).filter(is_touched).collect(),
            undrawn: drawn.filter(|column| is_seen && !table.columns[*column].nullable),
            drawn_readers: drawn.map(|column| rules.readers_of(column)).unwrap_or_default(),
            rules,
        })
    }

    /// Returns the steps of a DELETE.
    pub(crate) fn of_delete(session: &SessionState, table: &Arc<Table>) -> RowSteps {
        RowSteps { hooks: hooks_of(session, table), ..RowSteps::default() }
    }

    /// Creates the pipeline of the rows that a statement deletes.
    pub(crate) fn of_deletes<'p>(&'p self, table: &'p Table, ignore: bool) -> RowPipeline<'p> {
        let strictness = if ignore { Strictness::Ignore } else { Strictness::Error };
        RowPipeline::new(self, table, strictness, NullRule::Adjust)
    }

    /// Returns the steps of row events, which compute these generated columns.
    pub(crate) fn of_event(rules: RowRules, computed: &[usize], hooks: Vec<Arc<dyn RowHook>>) -> RowSteps {
        RowSteps { rules: rules.only_generating(computed), hooks, ..RowSteps::default() }
    }

    /// Returns whether hooks run for the rows. They may change any column.
    pub(crate) fn has_hooks(&self) -> bool {
        !self.hooks.is_empty()
    }

    /// Returns whether hooks see deleted rows.
    pub(crate) fn has_delete_hooks(&self) -> bool {
        self.hooks.iter().any(|hook| hook.sees_deletes())
    }

    /// Returns the NOT NULL columns without DEFAULT if hooks precede inserts. As in MariaDB, the hooks see
    /// NULL in such a column without a value, and NULL is reported after they have run.
    pub(crate) fn lacking_values(&self, table: &Table) -> Vec<usize> {
        let lacks_value = |column: &usize| {
            let column = &table.columns[*column];
            let has_value = column.nullable || column.auto_increment || column.generated.is_some();
            !has_value && matches!(column.default, DefaultValue::None)
        };
        match self.hooks.iter().any(|hook| hook.precedes_inserts()) {
            true => (0..table.columns.len()).filter(lacks_value).collect(),
            false => Vec::new(),
        }
    }

    /// Takes those columns out of the ones that an INSERT does not name that are left to the hooks.
    pub(crate) fn leave_to_hooks(&mut self, table: &Table, unnamed: &mut Vec<usize>) {
        self.unassigned = self.lacking_values(table);
        self.unassigned.retain(|column| unnamed.contains(column));
        unnamed.retain(|column| !self.unassigned.contains(column));
    }

    /// Returns the columns that an INSERT leaves to the hooks.
    pub(crate) fn unassigned(&self) -> &[usize] {
        &self.unassigned
    }

    /// Returns the columns that an UPDATE may change besides those that the statement assigns.
    pub(crate) fn changed(&self, table: &Table) -> Vec<usize> {
        match self.has_hooks() {
            true => (0..table.columns.len()).collect(),
            false => self.touched.iter().copied().chain(self.rules.generated()).collect(),
        }
    }
}

/// Returns the hooks of a table.
pub(crate) fn hooks_of(session: &SessionState, table: &Arc<Table>) -> Vec<Arc<dyn RowHook>> {
    session.db.row_hooks.get().map(|hooks| hooks.of(table)).unwrap_or_default()
}

/// A row with its change.
pub(crate) struct RowChange<'r> {
    /// `None` for an insert.
    pub old: Option<&'r [Value]>,
    /// `None` for a delete.
    pub new: Option<&'r mut [Value]>,
    /// The number of the row within the statement, for conditions. The first row is 1.
    pub number: u64,
}

impl<'r> RowChange<'r> {
    pub(crate) fn insert(new: &'r mut [Value], number: u64) -> RowChange<'r> {
        RowChange { old: None, new: Some(new), number }
    }

    pub(crate) fn update(old: &'r [Value], new: &'r mut [Value], number: u64) -> RowChange<'r> {
        RowChange { old: Some(old), new: Some(new), number }
    }

    pub(crate) fn delete(old: &'r [Value]) -> RowChange<'r> {
        RowChange { old: Some(old), new: None, number: 1 }
    }
}

/// The outcome of a row change.
#[derive(Debug)]
pub(crate) enum Outcome {
    Done,
    /// The new row equals the old one.
    Unchanged,
    /// IGNORE skips the row because of a check. There is a warning.
    FailsCheck,
    /// IGNORE skips the row because another row has one of its keys. There is no warning yet.
    Duplicate(Duplicate),
    /// IGNORE skips the row because of a foreign key. There is no warning yet.
    Foreign(SqlError),
    /// The write step skipped the row, or changed another row instead of it. Its conditions are reported.
    Skipped,
}

/// The steps of one execution of a statement.
#[derive(Clone, Copy)]
pub(crate) struct RowPipeline<'p> {
    pub steps: &'p RowSteps,
    pub assigner: Assigner<'p>,
}

impl<'p> RowPipeline<'p> {
    /// Creates the pipeline. With hooks, NULL in NOT NULL columns is reported after the hooks have run.
    pub(crate) fn new(
        steps: &'p RowSteps,
        table: &'p Table,
        strictness: Strictness,
        null: NullRule,
    ) -> RowPipeline<'p> {
        let assigner = Assigner { table, strictness, null, keeps_null: steps.has_hooks() };
        RowPipeline { steps, assigner }
    }

    /// Returns whether IGNORE skips rows that cannot be written.
    pub(crate) fn ignores(&self) -> bool {
        self.assigner.strictness == Strictness::Ignore
    }

    /// Takes a row, whose values are assigned, through the steps. `write` writes the new row, which is empty
    /// for a delete.
    pub(crate) fn run(
        &self,
        ctx: &mut StatementContext<'_>,
        mut row: RowChange<'_>,
        write: impl FnOnce(&mut StatementContext<'_>, &mut [Value]) -> SqlResult<Outcome>,
    ) -> SqlResult<Outcome> {
        let undrawn = self.show_undrawn(&mut row);
        if self.steps.has_hooks() {
            self.before(ctx, &mut row)?;
        }
        let is_same = row.old.is_some() && row.old == row.new.as_deref();
        let outcome = match is_same {
            true => Outcome::Unchanged,
            false => {
                self.generate(ctx, &mut row)?;
                if !self.check(ctx, &row)? {
                    return Ok(Outcome::FailsCheck);
                }
                let new = row.new.as_deref_mut().unwrap_or_default();
                if let Some(column) = undrawn.filter(|column| is_zero(&new[*column])) {
                    new[column] = Value::Null;
                }
                write(ctx, new)?
            }
        };
        if self.steps.has_hooks() && matches!(outcome, Outcome::Done | Outcome::Unchanged) {
            self.after(ctx, &mut row)?;
        }
        Ok(outcome)
    }

    /// Updates a row that `writer` has locked under `key`. The hooks after the change run also for a row that
    /// IGNORE leaves as it is, as in MariaDB.
    pub(crate) fn update(
        &self,
        ctx: &mut StatementContext<'_>,
        writer: &mut TableWriter,
        key: &[u8],
        row: RowChange<'_>,
    ) -> SqlResult<Outcome> {
        let (old, mut ignored) = (row.old.unwrap_or_default(), None);
        let outcome =
            self.run(ctx, row, |ctx, new| match self.write_update(ctx, writer, key, (old, new))? {
                outcome @ (Outcome::Duplicate(_) | Outcome::Foreign(_)) => {
                    ignored = Some(outcome);
                    Ok(Outcome::Done)
                }
                outcome => Ok(outcome),
            })?;
        Ok(ignored.unwrap_or(outcome))
    }

    /// Updates a row for ON DUPLICATE KEY UPDATE.
    pub(crate) fn update_duplicate(
        &self,
        ctx: &mut StatementContext<'_>,
        writer: &mut TableWriter,
        key: &[u8],
        row: RowChange<'_>,
    ) -> SqlResult<Outcome> {
        let old = row.old.unwrap_or_default();
        self.run(ctx, row, |ctx, new| self.write_update(ctx, writer, key, (old, new)))
    }

    fn write_update(
        &self,
        ctx: &mut StatementContext<'_>,
        writer: &mut TableWriter,
        key: &[u8],
        (old, new): (&[Value], &mut [Value]),
    ) -> SqlResult<Outcome> {
        let written = match writer.update(ctx.trx, key, old, new) {
            Err(error) if self.ignores() && is_foreign(&error) => return Ok(Outcome::Foreign(error)),
            written => written?,
        };
        match written {
            Ok(()) => Ok(Outcome::Done),
            Err(duplicate) if self.ignores() => Ok(Outcome::Duplicate(duplicate)),
            Err(duplicate) => {
                let zone = &ctx.session.settings.env.time_zone;
                Err(writer.table().duplicate_error(duplicate.index, new, zone))
            }
        }
    }

    /// Deletes a row that `writer` has locked under `key`. Returns false if IGNORE keeps it because of a
    /// foreign key, with a warning.
    pub(crate) fn delete(
        &self,
        ctx: &mut StatementContext<'_>,
        writer: &mut TableWriter,
        key: &[u8],
        old: &[Value],
    ) -> SqlResult<bool> {
        let outcome =
            self.run(ctx, RowChange::delete(old), |ctx, _| match writer.delete(ctx.trx, key, old) {
                Err(error) if self.ignores() && is_foreign(&error) => Ok(Outcome::Foreign(error)),
                deleted => deleted.map(|()| Outcome::Done),
            })?;
        if let Outcome::Foreign(error) = outcome {
            warn(ctx, error);
            return Ok(false);
        }
        Ok(true)
    }

    /// Shows 0 for a missing AUTO_INCREMENT value. Returns the column if it did.
    fn show_undrawn(&self, row: &mut RowChange<'_>) -> Option<usize> {
        let column = self.steps.undrawn.filter(|_| row.old.is_none())?;
        let value = &mut row.new.as_deref_mut()?[column];
        value.is_null().then(|| {
            *value = self.assigner.table.columns[column].ty.implicit_default();
            column
        })
    }

    /// Runs the hooks before a change. They see the generated columns and touched columns of the new row.
    #[cold]
    fn before(&self, ctx: &mut StatementContext<'_>, row: &mut RowChange<'_>) -> SqlResult<()> {
        let (old, number) = (row.old, row.number);
        let mut touched = Vec::new();
        if let Some(new) = row.new.as_deref_mut() {
            if old.is_some() {
                self.touch(ctx, new)?;
                touched.extend(self.steps.touched.iter().map(|column| (*column, new[*column].clone())));
            }
            self.steps.rules.generate(&ctx.eval, &self.assigner, new, number)?;
        }
        for hook in &self.steps.hooks {
            hook.before(ctx, old, row.new.as_deref_mut())?;
        }
        let Some(new) = row.new.as_deref_mut() else { return Ok(()) };
        // The generate step touches them again, if the row changes otherwise.
        if let Some(old) = old {
            for (column, value) in touched {
                if new[column] == value {
                    new[column].clone_from(&old[column]);
                }
            }
        }
        let last = Assigner { keeps_null: false, ..self.assigner };
        for (column, described) in self.assigner.table.columns.iter().enumerate() {
            if new[column].is_null() && !described.nullable && described.generated.is_none() {
                new[column] = match old.is_none() && self.steps.unassigned.contains(&column) {
                    true => last.default(&ctx.eval, column, &assign::Default::Missing, new, number)?,
                    false => last.store(&ctx.eval, column, Value::Null, number)?,
                };
            }
        }
        Ok(())
    }

    /// Runs the hooks after a change. As in MariaDB, they see touched columns even if the row is unchanged.
    #[cold]
    fn after(&self, ctx: &mut StatementContext<'_>, row: &mut RowChange<'_>) -> SqlResult<()> {
        let is_same = row.old.is_some() && row.old == row.new.as_deref();
        if let Some(new) = row.new.as_deref_mut().filter(|_| is_same) {
            self.touch(ctx, new)?;
        }
        self.steps.hooks.iter().try_for_each(|hook| hook.after(ctx, row.old, row.new.as_deref()))?;
        if let (true, Some(old), Some(new)) = (is_same, row.old, row.new.as_deref_mut()) {
            new.clone_from_slice(old);
        }
        Ok(())
    }

    /// Sets the ON UPDATE CURRENT_TIMESTAMP columns that the statement does not assign.
    fn touch(&self, ctx: &StatementContext<'_>, new: &mut [Value]) -> SqlResult<()> {
        for &column in &self.steps.touched {
            let now = Value::Timestamp(ctx.eval.env.now_micros);
            new[column] = self.assigner.store(&ctx.eval, column, now, 1)?;
        }
        Ok(())
    }

    /// Computes the columns that no value is assigned to.
    fn generate(&self, ctx: &StatementContext<'_>, row: &mut RowChange<'_>) -> SqlResult<()> {
        let Some(new) = row.new.as_deref_mut() else { return Ok(()) };
        if row.old.is_some() {
            self.touch(ctx, new)?;
        }
        self.steps.rules.generate(&ctx.eval, &self.assigner, new, row.number)
    }

    /// Computes the columns that read the AUTO_INCREMENT column again. Their conditions were reported.
    pub(crate) fn generate_drawn(&self, ctx: &StatementContext<'_>, new: &mut [Value]) -> SqlResult<()> {
        let readers = &self.steps.drawn_readers;
        if readers.is_empty() {
            return Ok(());
        }
        let lenient = Assigner { strictness: Strictness::Ignore, ..self.assigner };
        self.steps.rules.generate_those(&ctx.eval.quiet(), &lenient, new, 1, |n| readers.contains(&n))
    }

    /// Checks the conditions of views and tables. Returns false if IGNORE skips the row, with a warning.
    fn check(&self, ctx: &StatementContext<'_>, row: &RowChange<'_>) -> SqlResult<bool> {
        let Some(new) = row.new.as_deref() else { return Ok(true) };
        let refused = match failed_view_check(&self.steps.view_checks, new, ctx)? {
            Some(error) => Some(error),
            None => self.steps.rules.failed_check(ctx, self.assigner.table, new)?,
        };
        let Some(error) = refused else { return Ok(true) };
        // A single row of VALUES fails even with IGNORE.
        let is_single = row.old.is_none() && self.assigner.null == NullRule::Error;
        if is_single || !self.ignores() {
            return Err(error);
        }
        warn(ctx, error);
        Ok(false)
    }
}

/// Adds the warning about a row that IGNORE skips.
pub(crate) fn warn(ctx: &StatementContext<'_>, error: SqlError) {
    ctx.eval.push_warning(Warning { level: Level::Warning, error });
}

/// Returns error 1369 if a row fails a view's WITH CHECK OPTION.
fn failed_view_check(
    checks: &[RowCheck],
    row: &[Value],
    ctx: &StatementContext<'_>,
) -> SqlResult<Option<SqlError>> {
    for check in checks {
        if !check.condition.passes(row, &ctx.eval)? {
            return Ok(Some(SqlError::view_check_failed(&check.view.schema, &check.view.table)));
        }
    }
    Ok(None)
}

/// Returns whether a foreign key refused a row: errors 1451 and 1452.
pub(crate) fn is_foreign(error: &SqlError) -> bool {
    matches!(error.code, ErrorCode::RowIsReferenced | ErrorCode::NoReferencedRow)
}

/// Returns whether an AUTO_INCREMENT column has a value that stands for the next one.
pub(crate) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Int(v) => *v == 0,
        Value::UInt(v) => *v == 0,
        Value::Float(v) => *v == 0.0,
        Value::Double(v) => *v == 0.0,
        _ => false,
    }
}
