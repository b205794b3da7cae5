//! Conversion of values for the columns that they are assigned to.

use std::sync::Arc;

use cohort_catalog::{DefaultValue, Table};
use cohort_expr::{EvalContext, Expr};
use cohort_plan::Binder;
use cohort_types::{
    DateTime, FixedKind, Level, SqlError, SqlResult, StoreContext, TypeKind, Value, Warning, WarningSink,
};

/// The treatment of a value that the column cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// The statement fails.
    Error,
    /// The value is adjusted, with a warning, because the mode is not strict.
    Adjust,
    /// The value is adjusted, with a warning, because of IGNORE. This includes NULL for a NOT NULL column.
    Ignore,
}

/// The treatment of NULL for a NOT NULL column where values are adjusted. A single row of VALUES still fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NullRule {
    /// Error 1048.
    Error,
    /// Warning 1048 and the type's implicit default.
    Adjust,
}

/// The value for DEFAULT, and for a column that an INSERT does not name.
#[derive(Clone, Debug)]
pub(crate) enum Default {
    /// The column's DEFAULT expression.
    Expr(Expr),
    /// A constant, converted when the table was created.
    Value(Value),
    /// A date that NO_ZERO_DATE or NO_ZERO_IN_DATE refuses: error 1978.
    Refused(Value),
    /// AUTO_INCREMENT: the value is generated.
    Generated,
    /// No default was declared: error 1364, or the type's implicit default.
    Missing,
}

impl Default {
    /// Returns whether the default reads other columns, which must have their values first.
    pub(crate) fn reads_row(&self) -> bool {
        matches!(self, Default::Expr(expr) if !expr.columns().is_empty())
    }

    /// Returns the default of a column.
    pub(crate) fn of(binder: &Binder<'_>, table: &Arc<Table>, column: usize) -> SqlResult<Default> {
        let described = &table.columns[column];
        Ok(match &described.default {
            _ if described.auto_increment && !described.nullable => Default::Generated,
            DefaultValue::Value(value) if value.is_refused_date(binder.ctx.names.env().sql_mode) => {
                Default::Refused(value.clone())
            }
            DefaultValue::Value(value) => Default::Value(value.clone()),
            DefaultValue::None if described.nullable => Default::Value(Value::Null),
            // An ENUM without DEFAULT defaults to its first member.
            DefaultValue::None if described.ty.kind == TypeKind::Enum => {
                Default::Value(described.ty.implicit_default())
            }
            DefaultValue::None => Default::Missing,
            _ => Default::Expr(binder.default_of(table, column, 0)?),
        })
    }
}

/// Adds the warnings of conversions to the statement's list.
pub(crate) struct StatementWarnings<'c, 's>(pub(crate) &'c EvalContext<'s>);

impl WarningSink for StatementWarnings<'_, '_> {
    fn warn(&mut self, warning: Warning) {
        self.0.push_warning(warning);
    }
}

/// Converts values for the columns of one table.
#[derive(Clone, Copy)]
pub(crate) struct Assigner<'t> {
    pub(crate) table: &'t Table,
    pub(crate) strictness: Strictness,
    pub(crate) null: NullRule,
    /// NULL is kept in NOT NULL columns: hooks may still replace it.
    pub(crate) keeps_null: bool,
}

impl Assigner<'_> {
    /// Returns the strictness of a statement in this session.
    pub(crate) fn strictness(ctx: &EvalContext<'_>, ignore: bool) -> Strictness {
        match ctx.env.sql_mode.is_strict() {
            _ if ignore => Strictness::Ignore,
            true => Strictness::Error,
            false => Strictness::Adjust,
        }
    }

    /// Converts `value` for the column. `row` counts from 1.
    pub(crate) fn store(
        &self,
        ctx: &EvalContext<'_>,
        column: usize,
        value: Value,
        row: u64,
    ) -> SqlResult<Value> {
        let described = &self.table.columns[column];
        if value.is_null() {
            return self.store_null(ctx, column);
        }
        let store = StoreContext {
            sql_mode: ctx.env.sql_mode,
            strict: self.strictness == Strictness::Error,
            database: &self.table.name.schema,
            table: &self.table.name.table,
            column: &described.name,
            row,
            zone: &ctx.env.time_zone,
            now_micros: ctx.env.now_micros,
        };
        let stored = described.ty.store(value, &store, &mut StatementWarnings(ctx))?;
        if stored.is_null() && FixedKind::of(described.ty.kind).is_some() && !described.nullable {
            return Ok(described.ty.implicit_default());
        }
        // A conversion can yield NULL, for example with EMPTY_STRING_IS_NULL.
        if stored.is_null() { self.store_null(ctx, column) } else { Ok(stored) }
    }

    fn store_null(&self, ctx: &EvalContext<'_>, column: usize) -> SqlResult<Value> {
        let described = &self.table.columns[column];
        if described.nullable {
            return Ok(Value::Null);
        }
        if self.keeps_null {
            return Ok(Value::Null);
        }
        // In every mode, NULL for a TIMESTAMP NOT NULL column stands for the current time.
        if described.ty.kind == TypeKind::Timestamp {
            return self.store(ctx, column, Value::Timestamp(ctx.env.now_micros), 1);
        }
        let error = SqlError::bad_null(&described.name);
        let is_error = match self.strictness {
            Strictness::Error => true,
            Strictness::Adjust => self.null == NullRule::Error,
            Strictness::Ignore => false,
        };
        if is_error {
            return Err(error);
        }
        ctx.push_warning(Warning { level: Level::Warning, error });
        Ok(described.ty.implicit_default())
    }

    /// Returns the value of DEFAULT for a column of an existing row. No value is generated, and a refused
    /// date is an incorrect value, error 1292.
    pub(crate) fn default_in_change(
        &self,
        ctx: &EvalContext<'_>,
        column: usize,
        default: &Default,
        values: &[Value],
        row: u64,
    ) -> SqlResult<Value> {
        let described = &self.table.columns[column];
        match default {
            Default::Generated => Ok(described.ty.implicit_default()),
            Default::Refused(value) if self.strictness == Strictness::Error => {
                let of = &self.table.name;
                let kind = if described.ty.kind == TypeKind::Date { "date" } else { "datetime" };
                let shown = self.shown(column, value);
                Err(SqlError::incorrect_date(kind, &shown, &of.schema, &of.table, &described.name, row))
            }
            _ => self.default(ctx, column, default, values, row),
        }
    }

    /// Formats a refused date for errors. For a TIMESTAMP, only the zero date is refused.
    fn shown(&self, column: usize, value: &Value) -> String {
        let mut shown = Vec::new();
        let zero = Value::DateTime(DateTime::default());
        let value = if matches!(value, Value::Timestamp(_)) { &zero } else { value };
        self.table.columns[column].ty.write_text(value, &mut shown);
        String::from_utf8_lossy(&shown).into_owned()
    }

    /// Returns the value of DEFAULT for the column; NULL stands for a value to generate. `values` are the
    /// row's known values, which an expression may read.
    pub(crate) fn default(
        &self,
        ctx: &EvalContext<'_>,
        column: usize,
        default: &Default,
        values: &[Value],
        row: u64,
    ) -> SqlResult<Value> {
        match default {
            Default::Value(value) => Ok(value.clone()),
            Default::Refused(value) => {
                let described = &self.table.columns[column];
                let shown = self.shown(column, value);
                let error = SqlError::incorrect_default(&shown, &described.name);
                if self.strictness == Strictness::Error {
                    return Err(error);
                }
                ctx.push_warning(Warning { level: Level::Warning, error });
                Ok(value.clone())
            }
            Default::Generated => Ok(Value::Null),
            Default::Expr(expr) => {
                let value = expr.eval(values, ctx)?.into_owned();
                self.store(ctx, column, value, row)
            }
            Default::Missing => {
                let described = &self.table.columns[column];
                let error = SqlError::no_default(&described.name);
                if self.strictness == Strictness::Error {
                    return Err(error);
                }
                ctx.push_warning(Warning { level: Level::Warning, error });
                Ok(if self.keeps_null { Value::Null } else { described.ty.implicit_default() })
            }
        }
    }
}
