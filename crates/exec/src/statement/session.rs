//! DO, LOAD DATA, BINLOG; values of expressions without tables.

use std::sync::Arc;

use cohort_dml::run_binlog_statement;
use cohort_plan::check_alone;
use cohort_program::Named;
use cohort_protocol::ResultSink;
use cohort_session::{Job, Process};
use cohort_sql::ast::{self, LoadData};
use cohort_types::{SqlError, SqlResult, Value};

use super::kill;
use crate::session::Session;

impl Session {
    /// Runs LOAD DATA.
    pub(crate) fn load_data(
        &mut self,
        load: &LoadData,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let outcome =
            self.in_statement(job, sink, |ctx, sink| cohort_dml::load_data(ctx, load, job, sink))?;
        if let Some(id) = outcome.generated_id {
            self.state.settings.env.last_insert_id = id;
        }
        self.state.settings.env.row_count = outcome.affected as i64;
        self.send_ok(job.more, outcome.affected, outcome.insert_id, &outcome.info, sink);
        Ok(())
    }

    pub(crate) fn do_exprs(&mut self, exprs: &[ast::Expr], job: &Job<'_>) -> SqlResult<()> {
        for expr in exprs {
            self.eval_alone(expr, job)?;
        }
        Ok(())
    }

    /// Returns the value of an expression without tables.
    pub(crate) fn eval_alone(&mut self, expr: &ast::Expr, job: &Job<'_>) -> SqlResult<Value> {
        self.eval(expr, job, false)
    }

    /// Returns the value of an argument of CALL. In strict mode, a warning is an error.
    pub(crate) fn eval_argument(&mut self, expr: &ast::Expr, job: &Job<'_>) -> SqlResult<Value> {
        let is_strict = self.state.settings.env.sql_mode.is_strict();
        self.eval(expr, job, is_strict)
    }

    /// Returns the value of an expression that reads no table and calls no stored function: error 1970.
    pub(crate) fn eval_plain(&mut self, expr: &ast::Expr, clause: &str, job: &Job<'_>) -> SqlResult<Value> {
        check_plain(expr, clause)?;
        self.eval_alone(expr, job)
    }

    fn eval(&mut self, expr: &ast::Expr, job: &Job<'_>, is_strict: bool) -> SqlResult<Value> {
        check_alone(expr)?;
        let row = self.query_value(&query_of(expr), job, is_strict)?;
        Ok(row.into_iter().next().unwrap_or(Value::Null))
    }

    /// Runs KILL.
    pub(crate) fn kill(
        &mut self,
        kill: &ast::Kill,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let number = kill.number().map(|number| self.eval_plain(number, "KILL", job)).transpose()?;
        let killed = kill::kill(&self.state, kill, number)?;
        self.state.settings.env.row_count = killed as i64;
        self.send_ok(job.more, killed, 0, "", sink);
        Ok(())
    }

    /// Returns the connection with a number. Error 1094 if there is none.
    pub(crate) fn process_of(&mut self, number: &ast::Expr, job: &Job<'_>) -> SqlResult<Arc<Process>> {
        let value = self.eval_alone(number, job)?;
        kill::process_of(&self.state, &value)
    }

    /// Runs BINLOG: applies the events of a text.
    pub(crate) fn binlog(&mut self, text: &ast::Expr, job: &Job<'_>) -> SqlResult<()> {
        let text = self.eval_alone(text, job)?;
        let bytes = text.as_bytes().unwrap_or_default().to_vec();
        self.with_context(job, |ctx| run_binlog_statement(ctx, &bytes)).map(drop)
    }
}

/// Returns error 1970 if an expression reads tables or calls stored functions.
pub(crate) fn check_plain(expr: &ast::Expr, clause: &str) -> SqlResult<()> {
    let named = Named::in_statement(&ast::Statement::Query(Box::new(query_of(expr))));
    match named.tables.is_empty() && named.functions.is_empty() {
        true => Ok(()),
        false => Err(SqlError::no_subqueries_in(clause)),
    }
}

/// Returns `SELECT` of an expression.
fn query_of(expr: &ast::Expr) -> ast::Query {
    let item = ast::SelectItem::Expr { expr: expr.clone(), alias: None, text: String::new() };
    ast::Query::of(ast::QueryBody::Select(Box::new(ast::Select::of(vec![item]))))
}
