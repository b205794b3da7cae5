//! DO, KILL, LOAD DATA, BINLOG; values of expressions without tables.

use std::sync::Arc;

use cohort_base::ConnectionId;
use cohort_dml::run_binlog_statement;
use cohort_locks::KillLevel;
use cohort_protocol::ResultSink;
use cohort_session::{Job, Process};
use cohort_sql::ast::{self, LoadData};
use cohort_types::{Privilege, Privileges, SqlError, SqlResult, Value};

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

    fn eval(&mut self, expr: &ast::Expr, job: &Job<'_>, is_strict: bool) -> SqlResult<Value> {
        let item = ast::SelectItem::Expr { expr: expr.clone(), alias: None, text: String::new() };
        let query = ast::Query::of(ast::QueryBody::Select(Box::new(ast::Select::of(vec![item]))));
        let row = self.query_value(&query, job, is_strict)?;
        Ok(row.into_iter().next().unwrap_or(Value::Null))
    }

    /// Runs KILL.
    pub(crate) fn kill(
        &mut self,
        kill: &ast::Kill,
        job: &Job<'_>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let killed = self.kill_targets(kill, job)?;
        self.state.settings.env.row_count = killed as i64;
        self.send_ok(job.more, killed, 0, "", sink);
        Ok(())
    }

    /// Kills connections or their statements. Returns their number if an account named them.
    fn kill_targets(&mut self, kill: &ast::Kill, job: &Job<'_>) -> SqlResult<u64> {
        let mut query = None;
        let (targets, level) = match &kill.target {
            ast::KillTarget::Connection(id) => (vec![self.process_of(id, job)?], KillLevel::Connection),
            ast::KillTarget::Query(id) => (vec![self.process_of(id, job)?], KillLevel::Query),
            ast::KillTarget::ConnectionsOf(account) => (self.processes_of(account), KillLevel::Connection),
            ast::KillTarget::QueriesOf(account) => (self.processes_of(account), KillLevel::Query),
            ast::KillTarget::QueryId(id) => {
                let (process, id) = self.process_of_query(id, job)?;
                query = Some(id);
                (vec![process], KillLevel::Query)
            }
        };
        let admins = Privileges::of(&[Privilege::Super, Privilege::ConnectionAdmin]);
        let is_admin = self.state.access().everywhere().meets(admins);
        let foreign = |process: &&Arc<Process>| !is_admin && !self.state.is_own(&process.identity());
        if let Some(foreign) = targets.iter().find(foreign) {
            return Err(SqlError::not_owner_of_thread(foreign.id().0));
        }
        for process in &targets {
            match query {
                Some(query) if !process.kill_query(query) => continue,
                Some(_) => {}
                None => process.kill(level),
            }
            self.stop_waiting(process);
        }
        match (targets.iter().any(|process| process.id() == self.state.info.id), level) {
            (true, KillLevel::Connection) => Err(SqlError::connection_killed()),
            (true, _) => Err(SqlError::interrupted()),
            (false, _) => match kill.target {
                ast::KillTarget::ConnectionsOf(_) | ast::KillTarget::QueriesOf(_) => Ok(targets.len() as u64),
                _ => Ok(0),
            },
        }
    }

    /// Ends the target's waits for an acknowledgement of a replica.
    fn stop_waiting(&self, process: &Process) {
        let held = process.held_until();
        let acknowledged_early = process.hold().acknowledged_early();
        // An earlier KILL may have acknowledged the client already.
        if held > self.state.db.commit.acknowledged().max(acknowledged_early)
            && let Some(callbacks) = &*self.state.db.callbacks.read()
        {
            let before_reply = || process.hold().acknowledge_early(held);
            let own = Some(process.trx_stats().last_commit()).filter(|own| *own > acknowledged_early);
            callbacks.stop_waiting_for_replicas(held, own, process.id(), &before_reply);
        }
    }

    /// Returns the connections of a user, limited to a host if the account names one.
    fn processes_of(&self, account: &ast::Account) -> Vec<Arc<Process>> {
        let (user, host) = cohort_ddl::resolve_account(&self.state, account);
        let all = self.state.db.processes.all().into_iter();
        all.filter(|process| {
            let identity = process.identity();
            let from = identity.host.rsplit_once(':').map_or(&*identity.host, |(from, _port)| from);
            identity.user == user && (host == "%" || host == from)
        })
        .collect()
    }

    /// Returns the connection with a number. Error 1094 if there is none.
    pub(crate) fn process_of(&mut self, number: &ast::Expr, job: &Job<'_>) -> SqlResult<Arc<Process>> {
        let value = self.eval_alone(number, job)?;
        let id = value.to_int(&mut cohort_types::NoWarnings).and_then(|n| u64::try_from(n.wide()).ok());
        id.and_then(|id| self.state.db.processes.get(ConnectionId(id)))
            .ok_or_else(|| SqlError::unknown_thread(value.to_text()))
    }

    /// Returns the connection that runs the query with a number, and the number. Error 1957 if there is none.
    fn process_of_query(&mut self, number: &ast::Expr, job: &Job<'_>) -> SqlResult<(Arc<Process>, u64)> {
        let value = self.eval_alone(number, job)?;
        let id = value.to_int(&mut cohort_types::NoWarnings).and_then(|n| u64::try_from(n.wide()).ok());
        let found = id.filter(|id| *id != 0).and_then(|id| Some((self.state.db.processes.of_query(id)?, id)));
        found.ok_or_else(|| SqlError::unknown_query(&value.to_text()))
    }

    /// Runs BINLOG: applies the events of a text.
    pub(crate) fn binlog(&mut self, text: &ast::Expr, job: &Job<'_>) -> SqlResult<()> {
        let text = self.eval_alone(text, job)?;
        let bytes = text.as_bytes().unwrap_or_default().to_vec();
        self.with_context(job, |ctx| run_binlog_statement(ctx, &bytes)).map(drop)
    }
}
