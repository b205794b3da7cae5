//! SHOW of conditions and of plans, EXPLAIN, DESCRIBE. Other SHOW statements are in the crate `info`.

use std::sync::Arc;

use cohort_catalog::Table;
use cohort_expr::{EvalContext, Expr};
use cohort_optimize::Access;
use cohort_plan::{Binder, Clause, ParamSource, PlanContext, Scope};
use cohort_protocol::{ColumnFlags, ColumnMeta, ResultSink, TypeCode};
use cohort_session::{Job, SessionNames, SessionState};
use cohort_sql::ast::{self, Statement};
use cohort_types::{Collation, ErrorCode, Level, Privileges, SqlError, SqlResult, Value};

use super::show_where::calling_back;
use crate::cached_plan::CachedPlan;
use crate::session::Session;

/// Columns of SHOW COUNT(*) WARNINGS and SHOW COUNT(*) ERRORS.
pub(crate) const WARNING_COUNT: &str = "@@session.warning_count";
pub(crate) const ERROR_COUNT: &str = "@@session.error_count";

impl Session {
    pub(crate) fn explain(
        &mut self,
        format: ast::ExplainFormat,
        statement: &Statement,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        if format.runs() {
            return self.analyze(format, statement, job, sink);
        }
        self.state.set_traced_text(job.text);
        let (columns, rows) = self.explained(format, statement, job.params)?;
        if let Statement::Query(query) = statement
            && format == ast::ExplainFormat::Extended
        {
            self.with_context(job, |ctx| {
                let text = cohort_ddl::query_text(ctx, query)?;
                ctx.eval.note(ErrorCode::Yes, text);
                Ok(())
            })?;
        }
        self.send_rows(job.more, &columns, &rows, sink);
        Ok(())
    }

    fn explained(
        &self,
        format: ast::ExplainFormat,
        statement: &Statement,
        params: &[Value],
    ) -> SqlResult<(Vec<ColumnMeta>, Vec<Vec<Value>>)> {
        let plan = self.describe(statement, params, ParamSource::Placeholders)?;
        plan.check_viewer(&self.state)?;
        crate::plan_locks::report_tables(&self.state, &plan);
        Ok(self.explanation(format, &plan, params))
    }

    fn explanation(
        &self,
        format: ast::ExplainFormat,
        plan: &CachedPlan,
        params: &[Value],
    ) -> (Vec<ColumnMeta>, Vec<Vec<Value>>) {
        use ast::ExplainFormat as F;
        let known = KnownNow { session: &self.state, params };
        match format {
            F::Json => crate::explain_json::explain_json(&plan.plan, None),
            F::Tree => crate::explain_tree::explain_tree(&plan.plan),
            _ => crate::explain::explain(&plan.plan, format == F::Extended, None, &known),
        }
    }

    pub(crate) fn show(
        &mut self,
        show: &ast::Show,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        match show {
            ast::Show::Warnings { limit } => self.show_conditions(Conditions::All, limit.as_ref(), job, sink),
            ast::Show::Errors { limit } => {
                self.show_conditions(Conditions::Errors, limit.as_ref(), job, sink)
            }
            ast::Show::CountWarnings => {
                let total = self.diagnostics.total();
                self.show_count(WARNING_COUNT, total, job, sink);
                Ok(())
            }
            ast::Show::CountErrors => {
                let errors = self.diagnostics.errors();
                self.show_count(ERROR_COUNT, errors, job, sink);
                Ok(())
            }
            ast::Show::Explain { format, connection } => {
                self.explain_of_connection(*format, connection, job, sink)
            }
            // `cohort_info::run` matches every variant.
            _ => self.show_elsewhere(show, job, sink),
        }
    }

    /// Runs DESCRIBE table, with an optional pattern for the columns.
    pub(crate) fn describe_columns(
        &mut self,
        table: &ast::ObjectName,
        pattern: Option<&str>,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let filter = pattern.map(|pattern| ast::ShowFilter::Like(pattern.to_owned()));
        let show = ast::Show::Columns { full: false, table: table.clone(), filter };
        self.show_elsewhere(&show, job, sink)
    }

    /// Runs a SHOW statement of another crate.
    fn show_elsewhere(
        &mut self,
        show: &ast::Show,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let listing = match calling_back(show) {
            None => self.with_context(job, |ctx| cohort_info::run(ctx, show))?,
            Some((bare, condition)) => {
                let mut listing = self.with_context(job, |ctx| cohort_info::run(ctx, &bare))?;
                self.keep_rows(&mut listing, condition, job)?;
                listing
            }
        };
        self.send_listing(&listing, job, sink)
    }

    pub(crate) fn send_listing(
        &mut self,
        listing: &cohort_info::Listing,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let columns = listing.meta();
        self.send_rows(job.more, &columns, &listing.rows, sink);
        Ok(())
    }

    fn show_count(&mut self, name: &str, count: u64, job: &Job<'_>, sink: &mut dyn ResultSink) {
        self.send_rows(job.more, &[count_column(name)], &[vec![Value::UInt(count)]], sink);
    }

    fn show_conditions(
        &mut self,
        which: Conditions,
        limit: Option<&ast::Limit>,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let (offset, count) = constant_limit(limit, job.params)?;
        let shown =
            self.diagnostics.list().iter().filter(|w| which == Conditions::All || w.level == Level::Error);
        let rows: Vec<Vec<Value>> = shown
            .skip(offset)
            .take(count)
            .map(|w| {
                let code = Value::UInt(w.error.number().into());
                vec![Value::text(w.level.name()), code, Value::text(w.error.message.clone())]
            })
            .collect();
        let code = ColumnMeta {
            flags: ColumnFlags::UNSIGNED.with(ColumnFlags::BINARY),
            ..ColumnMeta::expression("Code", TypeCode::Long, 4, Collation::BINARY)
        };
        let columns = [ColumnMeta::text("Level", 7), code, ColumnMeta::text("Message", 512)];
        let not_null =
            |column: ColumnMeta| ColumnMeta { flags: column.flags.with(ColumnFlags::NOT_NULL), ..column };
        let columns = columns.map(not_null);
        // The conditions listed are not conditions of SHOW itself, which has none.
        let found_rows = self.state.settings.env.found_rows;
        self.send_rows_and(0, job.more, &columns, &rows, sink);
        self.state.settings.env.found_rows = found_rows;
        Ok(())
    }

    /// Returns the columns of a base table as SELECT * describes them.
    pub(crate) fn describe_table(&self, name: &ast::ObjectName) -> SqlResult<Vec<ColumnMeta>> {
        let catalog = self.state.db.catalog();
        let names = SessionNames::new(&catalog, &self.state);
        let ctx = PlanContext::new(&names, &[], ParamSource::Placeholders);
        // The privilege check has already run.
        let scope = Scope::of_table(ctx.base_table(name, Privileges::NONE)?, None);
        let binder = Binder::new(&ctx, &scope, Clause::Select);
        let meta = |slot: usize| {
            let expr: Expr = binder.scope.column_expr(slot);
            cohort_plan::meta::column_meta(&scope.slot(slot).name, &expr, &scope)
        };
        Ok((0..scope.width()).map(meta).collect())
    }
}

/// Returns offset and count of the LIMIT of SHOW or HANDLER: literals, or variables of a program.
pub(crate) fn constant_limit(limit: Option<&ast::Limit>, params: &[Value]) -> SqlResult<(usize, usize)> {
    let number = |expr: &ast::Expr| {
        let value = match expr {
            ast::Expr::Literal(literal) => Some(&literal.value),
            ast::Expr::Param(index) => params.get(*index as usize),
            _ => None,
        };
        match value {
            // A negative variable is a large unsigned number, as in MariaDB.
            Some(Value::Int(n)) => Ok(usize::try_from(*n as u64).unwrap_or(usize::MAX)),
            Some(Value::UInt(n)) => Ok(usize::try_from(*n).unwrap_or(usize::MAX)),
            Some(Value::Null) => Ok(0),
            _ => Err(SqlError::not_supported("this LIMIT")),
        }
    };
    let Some(limit) = limit else { return Ok((0, usize::MAX)) };
    Ok((limit.offset.as_ref().map(number).transpose()?.unwrap_or(0), number(&limit.count)?))
}

/// Evaluates the facts that EXPLAIN shows.
pub(crate) struct KnownNow<'k> {
    pub(crate) session: &'k SessionState,
    pub(crate) params: &'k [Value],
}

impl crate::explain::Known for KnownNow<'_> {
    fn lacks(&self, table: &Arc<Table>, access: &Access) -> bool {
        cohort_session::has_row(self.session, self.params, table, access) == Some(false)
    }

    fn is_never(&self, condition: &Expr) -> bool {
        let eval = EvalContext::new(&self.session.settings.env, self.session, self.params);
        let value = match condition.is_const_per_execution() && !condition.is_volatile() {
            true => condition.eval(&[], &eval).ok(),
            false => None,
        };
        value.is_some_and(|value| value.to_bool(&mut cohort_types::NoWarnings) != Some(true))
    }
}

/// Condition levels to list: SHOW WARNINGS or SHOW ERRORS.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conditions {
    All,
    Errors,
}

/// Returns the column of SHOW COUNT(*) WARNINGS and SHOW COUNT(*) ERRORS.
pub(crate) fn count_column(name: &str) -> ColumnMeta {
    ColumnMeta { flags: ColumnFlags::UNSIGNED.with(ColumnFlags::BINARY), ..ColumnMeta::integer(name, 21) }
}
