//! CHANGE MASTER, START, STOP and RESET SLAVE: evaluates their options and calls the replica.

use std::sync::Arc;

use cohort_session::{
    Job, ReplicaControl, ReplicaThreads, ReplicaUntil, SourceName, SourceOption, check_domains, parse_gtids,
};
use cohort_sql::ast::{ChangeMaster, Expr, Literal, SlaveControl};
use cohort_types::{SqlError, SqlResult, Value, Warning};

use crate::session::Session;

fn no_replica() -> SqlError {
    SqlError::not_a_slave()
}

impl Session {
    /// Runs CHANGE MASTER.
    pub(crate) fn change_master(&mut self, change: &ChangeMaster, job: &Job<'_>) -> SqlResult<()> {
        let name = self.source_name(change.connection.as_deref());
        let options = self.source_options(change, job)?;
        let notes = self.replica()?.change_master(&name, &options)?;
        self.note_all(notes);
        Ok(())
    }

    /// Runs START SLAVE.
    pub(crate) fn start_replica(&mut self, start: &SlaveControl, job: &Job<'_>) -> SqlResult<()> {
        let until = self.until(start, job)?;
        let notes = self.replica()?.start(&self.source_names(start), threads(start), &until)?;
        self.note_all(notes);
        Ok(())
    }

    /// Runs STOP SLAVE. Appliers may wait for locks of the session, so it may have none: error 1192.
    pub(crate) fn stop_replica(&mut self, stop: &SlaveControl) -> SqlResult<()> {
        if self.trx.in_transaction() || self.trx.has_locked_tables() {
            return Err(cohort_trx::active_locks());
        }
        let notes = self.replica()?.stop(&self.source_names(stop), threads(stop))?;
        self.note_all(notes);
        Ok(())
    }

    /// Runs RESET SLAVE.
    pub(crate) fn reset_replica(&mut self, connection: Option<&str>, all: bool) -> SqlResult<()> {
        self.replica()?.reset(&self.source_name(connection), all)
    }

    /// Returns the control of the replica side. Error 1200 if the server has none.
    fn replica(&self) -> SqlResult<Arc<dyn ReplicaControl>> {
        self.state.db.replica.read().clone().ok_or_else(no_replica)
    }

    fn note_all(&mut self, notes: Vec<Warning>) {
        notes.into_iter().for_each(|note| self.diagnostics.push(note));
    }

    /// Returns the named connection, or `default_master_connection`.
    fn source_name(&self, named: Option<&str>) -> String {
        let default = || self.state.settings.vars.text(cohort_config::VarId::DefaultMasterConnection);
        named.map_or_else(|| default().as_deref().unwrap_or("").to_owned(), str::to_owned).to_lowercase()
    }

    fn source_names(&self, control: &SlaveControl) -> SourceName {
        match control.all {
            true => SourceName::All,
            false => SourceName::One(self.source_name(control.connection.as_deref())),
        }
    }

    fn source_options(&mut self, change: &ChangeMaster, job: &Job<'_>) -> SqlResult<Vec<SourceOption>> {
        change
            .options
            .iter()
            .map(|(name, value)| Ok((name.clone(), self.option_value(value, job)?)))
            .collect()
    }

    fn option_value(&mut self, value: &Expr, job: &Job<'_>) -> SqlResult<Value> {
        match value {
            Expr::Literal(Literal { value, .. }) => Ok(value.clone()),
            other => self.eval_alone(other, job),
        }
    }

    fn until(&mut self, start: &SlaveControl, job: &Job<'_>) -> SqlResult<ReplicaUntil> {
        if start.until.is_empty() {
            return Ok(ReplicaUntil::Never);
        }
        let (mut master, mut relay, mut gtid) = ((None, None), (None, None), None);
        for (name, value) in &start.until {
            let value = self.option_value(value, job)?;
            let number =
                || value.to_int(&mut cohort_types::NoWarnings).and_then(|n| u64::try_from(n.wide()).ok());
            match name.as_str() {
                "MASTER_LOG_FILE" => master.0 = Some(value.to_text()),
                "MASTER_LOG_POS" => master.1 = number(),
                "RELAY_LOG_FILE" => relay.0 = Some(value.to_text()),
                "RELAY_LOG_POS" => relay.1 = number(),
                "MASTER_GTID_POS" => {
                    let position = parse_gtids(&value.to_text())?;
                    check_domains(&position)?;
                    gtid = Some(position);
                }
                other => return Err(SqlError::not_supported(&format!("START SLAVE UNTIL {other}"))),
            }
        }
        match (master, relay, gtid) {
            ((None, None), (None, None), Some(gtids)) => Ok(ReplicaUntil::Gtid(gtids)),
            ((Some(file), Some(position)), (None, None), None) => Ok(ReplicaUntil::Master(file, position)),
            ((None, None), (Some(file), Some(position)), None) => Ok(ReplicaUntil::Relay(file, position)),
            _ => Err(SqlError::bad_until_condition()),
        }
    }
}

fn threads(control: &SlaveControl) -> ReplicaThreads {
    let both = !control.io_thread && !control.sql_thread;
    ReplicaThreads { io: control.io_thread || both, sql: control.sql_thread || both }
}
