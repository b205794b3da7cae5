//! A value on its way into a column.

use std::sync::Arc;

use cohort_catalog::{DefaultValue, Table};
use cohort_expr::{EvalContext, Expr};
use cohort_types::{
    DateTime, ErrorCode, FixedKind, Level, SqlError, SqlResult, StoreContext, TypeKind, Value, Warning,
    WarningSink,
};

use cohort_plan::Binder;

/// What happens to a value that the column cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// The statement fails.
    Error,
    /// The value is adjusted, with a warning: no strict mode.
    Adjust,
    /// The same because of IGNORE; NULL for a NOT NULL column too.
    Ignore,
}

/// What NULL for a NOT NULL column does when values are adjusted: a single row of VALUES still fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NullRule {
    /// Error 1048.
    Error,
    /// Warning 1048 and the type's implicit default.
    Adjust,
}

/// The value an INSERT gives to a column that it does not name, and DEFAULT.
#[derive(Clone, Debug)]
pub(crate) enum Default {
    /// DEFAULT of the column.
    Expr(Expr),
    /// Constant, converted when the table was made.
    Value(Value),
    /// A date that NO_ZERO_DATE or NO_ZERO_IN_DATE refuses: 1978.
    Refused(Value),
    /// AUTO_INCREMENT: to be generated.
    Generated,
    /// None was declared: 1364, or the type's implicit default.
    Missing,
}

impl Default {
    /// Whether it reads other columns, whose values must be there first.
    pub(crate) fn reads_row(&self) -> bool {
        matches!(self, Default::Expr(expr) if !expr.columns().is_empty())
    }

    /// The default of a column.
    pub(crate) fn of(binder: &Binder<'_>, table: &Arc<Table>, column: usize) -> SqlResult<Default> {
        let described = &table.columns[column];
        Ok(match &described.default {
            _ if described.auto_increment && !described.nullable => Default::Generated,
            DefaultValue::Value(value) if value.is_refused_date(binder.ctx.names.env().sql_mode) => {
                Default::Refused(value.clone())
            }
            DefaultValue::Value(value) => Default::Value(value.clone()),
            DefaultValue::None if described.nullable => Default::Value(Value::Null),
            // An ENUM without DEFAULT has its first member.
            DefaultValue::None if described.ty.kind == TypeKind::Enum => {
                Default::Value(described.ty.implicit_default())
            }
            DefaultValue::None => Default::Missing,
            _ => Default::Expr(binder.default_of(table, column, 0)?),
        })
    }
}

/// Collects what conversions warn about in the statement's list.
pub(crate) struct StatementWarnings<'c, 's>(pub(crate) &'c EvalContext<'s>);

impl WarningSink for StatementWarnings<'_, '_> {
    fn warn(&mut self, warning: Warning) {
        self.0.push_warning(warning);
    }
}

/// Assigns values to columns of one table.
#[derive(Clone, Copy)]
pub(crate) struct Assigner<'t> {
    pub(crate) table: &'t Table,
    pub(crate) strictness: Strictness,
    pub(crate) null: NullRule,
}

impl Assigner<'_> {
    /// The strictness of a statement in this session.
    pub(crate) fn strictness(ctx: &EvalContext<'_>, ignore: bool) -> Strictness {
        match ctx.env.sql_mode.is_strict() {
            _ if ignore => Strictness::Ignore,
            true => Strictness::Error,
            false => Strictness::Adjust,
        }
    }

    /// Converts `value` for the column; `row` counts from 1.
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
        // EMPTY_STRING_IS_NULL and the like.
        if stored.is_null() { self.store_null(ctx, column) } else { Ok(stored) }
    }

    fn store_null(&self, ctx: &EvalContext<'_>, column: usize) -> SqlResult<Value> {
        let described = &self.table.columns[column];
        if described.nullable {
            return Ok(Value::Null);
        }
        // Whatever the mode: a TIMESTAMP that cannot be NULL is the time then.
        if described.ty.kind == TypeKind::Timestamp {
            return self.store(ctx, column, Value::Timestamp(ctx.env.now_micros), 1);
        }
        let error = SqlError::new(ErrorCode::BadNull, format!("Column '{}' cannot be null", described.name));
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

    /// The value of DEFAULT for a column of a row that is there: nothing is generated, and a date that is
    /// rejected is an incorrect value, error 1292.
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
                let text = format!(
                    "Incorrect {} value: '{}' for column `{}`.`{}`.`{}` at row {row}",
                    if described.ty.kind == TypeKind::Date { "date" } else { "datetime" },
                    self.shown(column, value),
                    of.schema,
                    of.table,
                    described.name
                );
                Err(SqlError::new(ErrorCode::TruncatedWrongValue, text))
            }
            _ => self.default(ctx, column, default, values, row),
        }
    }

    /// A refused date as errors show it. A TIMESTAMP is refused as zero alone.
    fn shown(&self, column: usize, value: &Value) -> String {
        let mut shown = Vec::new();
        let zero = Value::DateTime(DateTime::default());
        let value = if matches!(value, Value::Timestamp(_)) { &zero } else { value };
        self.table.columns[column].ty.write_text(value, &mut shown);
        String::from_utf8_lossy(&shown).into_owned()
    }

    /// The value of DEFAULT for the column; NULL stands for a value to be generated. `values` are what is
    /// known of the row, which an expression may read.
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
                let text = format!("Incorrect default value '{shown}' for column '{}'", described.name);
                let error = SqlError::new(ErrorCode::WarnIncorrectDefault, text);
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
                let error = SqlError::new(
                    ErrorCode::NoDefaultForField,
                    format!("Field '{}' doesn't have a default value", described.name),
                );
                if self.strictness == Strictness::Error {
                    return Err(error);
                }
                ctx.push_warning(Warning { level: Level::Warning, error });
                Ok(described.ty.implicit_default())
            }
        }
    }
}
