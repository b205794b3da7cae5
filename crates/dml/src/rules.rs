//! Rules for every row of a table: the values of generated columns, and CHECK constraints.

use std::sync::Arc;

use cohort_catalog::{Column, Table};
use cohort_config::VarId;
use cohort_expr::{EvalContext, Expr};
use cohort_sql::ParseOptions;
use cohort_sql::print::quoted_name;
use cohort_types::{Level, SqlError, SqlResult, TypeKind, Value, Warning};

use crate::assign::{Assigner, Strictness};
use cohort_plan::{Binder, Clause, ParamSource, PlanContext, Scope, TableNames, convert};
use cohort_session::StatementContext;

/// The generated columns and CHECK constraints of a table, bound to its rows.
#[derive(Debug, Default)]
pub struct RowRules {
    /// Generated columns in column order: an expression reads only earlier generated columns, and plain
    /// columns.
    generated: Vec<(usize, Expr)>,
    /// VIRTUAL columns that nothing in the table reads. MariaDB does not compute them when it writes a row,
    /// so their errors are ignored.
    unread: Vec<usize>,
    checks: Vec<Check>,
}

#[derive(Debug)]
struct Check {
    /// The name that error 4025 shows.
    name: String,
    expr: Expr,
    /// The column, if this is the implicit CHECK of a JSON NOT NULL column. Converted values are always
    /// valid, so only the empty text is checked: the value of a column without a default.
    json: Option<usize>,
}

impl Check {
    fn applies(&self, row: &[Value]) -> bool {
        self.json.is_none_or(|column| matches!(&row[column], Value::Str(text) if text.bytes.is_empty()))
    }
}

/// Returns the generated columns that read a column, directly or through other generated columns. `generated`
/// has all of them in column order, each with the columns that it reads.
pub fn readers_of(column: usize, generated: impl IntoIterator<Item = (usize, Vec<usize>)>) -> Vec<usize> {
    let mut readers = Vec::new();
    for (n, reads) in generated {
        if reads.iter().any(|read| *read == column || readers.contains(read)) {
            readers.push(n);
        }
    }
    readers
}

impl RowRules {
    /// Binds the rules of a table.
    pub fn of(ctx: &PlanContext<'_>, table: &Arc<Table>) -> SqlResult<RowRules> {
        let may_be_empty = |c: &Column| c.ty.kind == TypeKind::Json && !c.nullable;
        let has_rule = |c: &Column| c.generated.is_some() || c.check.is_some() || may_be_empty(c);
        if table.checks.is_empty() && !table.columns.iter().any(has_rule) {
            return Ok(RowRules::default());
        }
        let names = TableNames::new(ctx.names, table.collation);
        let fixed = PlanContext::new(&names, &[], ParamSource::Placeholders);
        let scope = Scope::of_expressions(Arc::clone(table), 0);
        let binder = Binder::new(&fixed, &scope, Clause::Values);
        let bind = |text: &str| {
            // As in MariaDB, string literals have the table's character set.
            let options = ParseOptions { collation: table.collation, ..ParseOptions::default() };
            let parsed = cohort_sql::parse(format!("SELECT {text}").as_bytes(), &options)?;
            let expr = convert::only_item(&parsed.statement);
            binder.expression(expr.ok_or_else(|| SqlError::not_supported("an expression of the table"))?)
        };
        let mut rules = RowRules::default();
        for (n, column) in table.columns.iter().enumerate() {
            if let Some(generated) = &column.generated {
                rules.generated.push((n, bind(&generated.text)?));
            }
        }
        for (n, column) in table.columns.iter().enumerate() {
            let name = || format!("{}.{}", table.name.table, column.name);
            if may_be_empty(column) {
                let expr = bind(&format!("json_valid({})", quoted_name(&column.name)))?;
                rules.checks.push(Check { name: name(), expr, json: Some(n) });
            }
            if let Some(check) = &column.check {
                rules.checks.push(Check { name: name(), expr: bind(check)?, json: None });
            }
        }
        for check in &table.checks {
            rules.checks.push(Check { name: check.name.clone(), expr: bind(&check.text)?, json: None });
        }
        rules.unread = rules.unread_columns(table);
        Ok(rules)
    }

    fn unread_columns(&self, table: &Table) -> Vec<usize> {
        let is_indexed =
            |n: &usize| table.indexes.iter().any(|index| index.columns.iter().any(|part| part.column == *n));
        let is_kept = |n: &usize| !table.columns[*n].is_virtual() || is_indexed(n);
        let kept = self.generated.iter().filter(|(n, _)| is_kept(n)).map(|(_, expr)| expr);
        let readers: Vec<&Expr> = kept.chain(self.checks.iter().map(|check| &check.expr)).collect();
        let is_read = |n: &usize| readers.iter().any(|expr| expr.columns().contains(n));
        let generated = self.generated.iter().map(|(n, _)| *n);
        generated.filter(|n| !is_kept(n) && !is_read(n)).collect()
    }

    /// Drops the implicit checks of JSON columns: copied rows keep the empty text that the column got when it
    /// was added.
    pub fn of_copies(mut self) -> RowRules {
        self.checks.retain(|check| check.json.is_none());
        self
    }

    /// Returns whether the table has no rules.
    pub(crate) fn is_empty(&self) -> bool {
        self.generated.is_empty() && self.checks.is_empty()
    }

    /// Drops the CHECK constraints and all generated columns but these.
    pub(crate) fn only_generating(mut self, columns: &[usize]) -> RowRules {
        self.checks.clear();
        self.generated.retain(|(n, _)| columns.contains(n));
        self
    }

    /// Returns the generated columns that read a column, directly or through other generated columns.
    pub(crate) fn readers_of(&self, column: usize) -> Vec<usize> {
        readers_of(column, self.generated.iter().map(|(n, expr)| (*n, expr.columns())))
    }

    /// Drops all CHECK constraints.
    pub fn drop_checks(&mut self) {
        self.checks.clear();
    }

    /// Computes the generated columns of a row.
    pub(crate) fn generate(
        &self,
        ctx: &EvalContext<'_>,
        assigner: &Assigner<'_>,
        row: &mut [Value],
        number: u64,
    ) -> SqlResult<()> {
        self.generate_those(ctx, assigner, row, number, |_| true)
    }

    /// Computes some of the generated columns of a row.
    pub(crate) fn generate_those(
        &self,
        ctx: &EvalContext<'_>,
        assigner: &Assigner<'_>,
        row: &mut [Value],
        number: u64,
        is_wanted: impl Fn(usize) -> bool,
    ) -> SqlResult<()> {
        let lenient = Assigner { strictness: Strictness::Ignore, ..*assigner };
        let quiet = (!self.unread.is_empty()).then(|| ctx.quiet());
        for (column, expr) in self.generated.iter().filter(|(column, _)| is_wanted(*column)) {
            row[*column] = match quiet.as_ref().filter(|_| self.unread.contains(column)) {
                Some(quiet) => lenient.store(quiet, *column, expr.eval(row, quiet)?.into_owned(), number)?,
                None => assigner.store(ctx, *column, expr.eval(row, ctx)?.into_owned(), number)?,
            };
        }
        Ok(())
    }

    /// Returns error 4025 if a row violates a constraint and `check_constraint_checks` is on.
    pub(crate) fn failed_check(
        &self,
        ctx: &StatementContext<'_>,
        table: &Table,
        row: &[Value],
    ) -> SqlResult<Option<SqlError>> {
        if self.checks.is_empty() || !ctx.session.settings.vars.flag(VarId::CheckConstraintChecks) {
            return Ok(None);
        }
        Ok(self.check(&ctx.eval, table, row)?.err())
    }

    /// Returns error 4025 if a row violates a constraint. A constraint that evaluates to NULL is satisfied.
    pub fn check(
        &self,
        ctx: &EvalContext<'_>,
        table: &Table,
        row: &[Value],
    ) -> SqlResult<Result<(), SqlError>> {
        for check in self.checks.iter().filter(|check| check.applies(row)) {
            if check.expr.eval_bool(row, ctx)? == Some(false) {
                let of = &table.name;
                return Ok(Err(SqlError::constraint_failed(&check.name, &of.schema, &of.table)));
            }
        }
        Ok(Ok(()))
    }

    /// Returns whether a column is generated.
    pub(crate) fn generates(&self, column: usize) -> bool {
        self.generated.iter().any(|(n, _)| *n == column)
    }

    /// Returns whether errors of the column are ignored when a row is written.
    pub fn is_unread(&self, column: usize) -> bool {
        self.unread.contains(&column)
    }

    /// Returns the generated columns with their expressions.
    pub fn into_generated(self) -> Vec<(usize, Expr)> {
        self.generated
    }

    /// Returns the generated columns.
    pub(crate) fn generated(&self) -> impl Iterator<Item = usize> {
        self.generated.iter().map(|(n, _)| *n)
    }
}

/// Reports a value given for a generated column: error 1906, or a warning if the mode is not strict. NULL
/// counts as DEFAULT.
pub(crate) fn refuse_generated(
    ctx: &EvalContext<'_>,
    assigner: &Assigner<'_>,
    column: usize,
    value: &Value,
) -> SqlResult<()> {
    if value.is_null() {
        return Ok(());
    }
    let table = assigner.table;
    let error = SqlError::generated_value_ignored(&table.columns[column].name, &table.name.table);
    if assigner.strictness == Strictness::Error {
        return Err(error);
    }
    ctx.push_warning(Warning { level: Level::Warning, error });
    Ok(())
}
