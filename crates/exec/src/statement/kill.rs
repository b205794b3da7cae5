//! KILL.

use std::sync::Arc;

use cohort_base::ConnectionId;
use cohort_locks::KillLevel;
use cohort_session::{Process, SessionState};
use cohort_sql::ast::{self, KillTarget};
use cohort_types::{NoWarnings, Privilege, Privileges, SqlError, SqlResult, Value};

/// Kills connections or their statements. `number` is the value of the number in the statement. Returns how
/// many were killed if an account named them.
pub(crate) fn kill(state: &SessionState, kill: &ast::Kill, number: Option<Value>) -> SqlResult<u64> {
    let (number, mut query) = (number.unwrap_or(Value::Null), None);
    let (targets, level) = match &kill.target {
        KillTarget::Connection(_) => (vec![process_of(state, &number)?], KillLevel::Connection),
        KillTarget::Query(_) => (vec![process_of(state, &number)?], KillLevel::Query),
        KillTarget::ConnectionsOf(account) => (processes_of(state, account), KillLevel::Connection),
        KillTarget::QueriesOf(account) => (processes_of(state, account), KillLevel::Query),
        KillTarget::QueryId(_) => {
            let (process, id) = process_of_query(state, &number)?;
            query = Some(id);
            (vec![process], KillLevel::Query)
        }
    };
    let admins = Privileges::of(&[Privilege::Super, Privilege::ConnectionAdmin]);
    let is_admin = state.access().everywhere().meets(admins);
    let foreign = |process: &&Arc<Process>| !is_admin && !state.is_own(&process.identity());
    if let Some(foreign) = targets.iter().find(foreign) {
        return Err(SqlError::not_owner_of_thread(foreign.id().0));
    }
    for process in &targets {
        match query {
            Some(query) if !process.kill_query(query) => continue,
            Some(_) => {}
            None => process.kill(level),
        }
        stop_waiting(state, process);
    }
    match (targets.iter().any(|process| process.id() == state.info.id), level) {
        (true, KillLevel::Connection) => Err(SqlError::connection_killed()),
        (true, _) => Err(SqlError::interrupted()),
        (false, _) => match kill.target {
            KillTarget::ConnectionsOf(_) | KillTarget::QueriesOf(_) => Ok(targets.len() as u64),
            _ => Ok(0),
        },
    }
}

/// Returns the connection with a number. Error 1094 if there is none.
pub(super) fn process_of(state: &SessionState, number: &Value) -> SqlResult<Arc<Process>> {
    let found = unsigned(number).and_then(|id| state.db.processes.get(ConnectionId(id)));
    found.ok_or_else(|| SqlError::unknown_thread(number.to_text()))
}

/// Returns the connection that runs the query with a number, and the number. Error 1957 if there is none.
fn process_of_query(state: &SessionState, number: &Value) -> SqlResult<(Arc<Process>, u64)> {
    let id = unsigned(number).filter(|id| *id != 0);
    let found = id.and_then(|id| Some((state.db.processes.of_query(id)?, id)));
    found.ok_or_else(|| SqlError::unknown_query(&number.to_text()))
}

fn unsigned(number: &Value) -> Option<u64> {
    number.to_int(&mut NoWarnings).and_then(|n| u64::try_from(n.wide()).ok())
}

/// Returns the connections of a user, limited to a host if the account names one.
fn processes_of(state: &SessionState, account: &ast::Account) -> Vec<Arc<Process>> {
    let (user, host) = cohort_ddl::resolve_account(state, account);
    let all = state.db.processes.all().into_iter();
    all.filter(|process| {
        let identity = process.identity();
        let from = identity.host.rsplit_once(':').map_or(&*identity.host, |(from, _port)| from);
        identity.user == user && (host == "%" || host == from)
    })
    .collect()
}

/// Ends the target's waits for an acknowledgement of a replica.
fn stop_waiting(state: &SessionState, process: &Process) {
    let held = process.held_until();
    let acknowledged_early = process.hold().acknowledged_early();
    // An earlier KILL may have acknowledged the client already.
    if held > state.db.commit.acknowledged().max(acknowledged_early)
        && let Some(callbacks) = &*state.db.callbacks.read()
    {
        let before_reply = || process.hold().acknowledge_early(held);
        let own = Some(process.trx_stats().last_commit()).filter(|own| *own > acknowledged_early);
        callbacks.stop_waiting_for_replicas(held, own, process.id(), &before_reply);
    }
}
