//! FLUSH PRIVILEGES while stored tables replace tables of accounts, as after a dump was loaded
//! ([decision 35]).
//!
//! ```text
//! DROP TABLE IF EXISTS db; CREATE TABLE db ..; INSERT INTO db ..     ordinary statements on a stored table
//! FLUSH PRIVILEGES
//!   -> exclusive locks on the stored tables                          `lock_replaced`
//!   -> SELECT .. FROM mysql.global_priv, mysql.db, ..                stored or computed, whichever is there
//!   -> one commit: all accounts replaced, stored tables dropped      `take_over`
//! ```
//!
//! # On failure
//! Nothing changes, and the stored tables remain. Without an account that may log in the statement fails:
//! error 1728.
//!
//! # Missing
//! A row that names an account, a role or a routine kind that does not exist is ignored, as MariaDB does.
//! Grantors and times of grants are not stored.
//!
//! [decision 35]: ../../../../docs/decisions/0035-dumps-replace-account-tables.md

use std::collections::BTreeMap;

use cohort_catalog::{Account, AccountName, TableName};
use cohort_session::access::{ACCOUNT_TABLES, check_table};
use cohort_session::{Job, StatementContext};
use cohort_sql::ast::{Flush, FlushLock, FlushTarget};
use cohort_types::{Privilege, SqlError, SqlResult, Value};

use super::description;
use super::grants::{GRANTS, drop_empty};
use super::replaced_programs::missing_programs;
use super::tables::{Row, SCHEMA};
use crate::inner_query::rows_in;
use crate::session::Session;

/// The accounts that the tables define.
type Accounts = BTreeMap<AccountName, Account>;

impl Session {
    /// Runs FLUSH.
    pub(crate) fn flush(&mut self, flush: &Flush, job: &Job<'_>) -> SqlResult<()> {
        for target in &flush.targets {
            if let FlushTarget::Tables { names, lock: FlushLock::WithReadLock } = target
                && !names.is_empty()
            {
                self.lock_flushed_tables(names)?;
            }
        }
        let replaced = match flush.targets.contains(&FlushTarget::Privileges) {
            true => self.state.db.replaced_tables(),
            false => Vec::new(),
        };
        if replaced.is_empty() {
            return self.with_context(job, |ctx| cohort_info::flush(ctx, flush));
        }
        check_table(&self.state, Privilege::Drop, SCHEMA, "global_priv")?;
        cohort_query::guards::check_read_only(&self.state)?;
        self.with_context(job, |ctx| {
            let outcome = take_over(ctx, &replaced);
            ctx.trx.rollback();
            outcome
        })?;
        // The statement was logged with the accounts, even with LOCAL: it drops tables that replicas have.
        let rest = Flush { local: true, ..flush.clone() };
        self.with_context(job, |ctx| cohort_info::flush(ctx, &rest))
    }
}

fn take_over(ctx: &mut StatementContext<'_>, replaced: &[TableName]) -> SqlResult<()> {
    // They would be read instead of the tables of the server.
    let is_hidden = |name: &TableName| ctx.session.temporary.find(&name.schema, &name.table).is_some();
    if replaced.iter().any(is_hidden) {
        return Err(SqlError::not_supported(
            "FLUSH PRIVILEGES of a session with temporary tables of these names",
        ));
    }
    cohort_ddl::lock_replaced(ctx, replaced)?;
    let defines = |name: &TableName| name.table != "user" && ACCOUNT_TABLES.contains(&&*name.table);
    let accounts = match replaced.iter().any(defines) {
        true => Some(read_accounts(ctx)?),
        false => None,
    };
    let programs = missing_programs(ctx)?;
    cohort_ddl::take_over(ctx, accounts, programs, replaced)
}

/// Reads the accounts from the tables of the schema `mysql`.
fn read_accounts(ctx: &mut StatementContext<'_>) -> SqlResult<Accounts> {
    let mut accounts = Accounts::new();
    let members = description::members_of("Priv");
    for mut row in rows_in(ctx, &format!("SELECT User, Host, {members} FROM mysql.global_priv"))? {
        let values = row.split_off(2);
        let name = (row[0].to_text(), row[1].to_text());
        accounts.insert(name.clone(), description::account(name, &values)?);
    }
    if accounts.values().all(|account| account.is_role) {
        return Err(SqlError::cannot_load_accounts("global_priv"));
    }
    for kind in &GRANTS {
        for row in rows_of(ctx, kind.table.name())? {
            if let Some(account) = accounts.get_mut(&row.account()) {
                (kind.put)(account, &row);
            }
        }
    }
    let roles: Vec<String> = accounts.values().filter(|a| a.is_role).map(|a| a.name.0.clone()).collect();
    for account in accounts.values_mut() {
        account.roles.retain(|role, _| roles.contains(role));
        drop_empty(account);
    }
    Ok(accounts)
}

fn rows_of(ctx: &mut StatementContext<'_>, table: &str) -> SqlResult<Vec<Row>> {
    let found = ctx.db.virtual_tables.find(SCHEMA, table).expect("the tables of accounts are there");
    let names: Vec<&'static str> = found.columns().iter().map(|column| column.name).collect();
    let columns: Vec<String> = names.iter().map(|name| cohort_sql::print::quoted_name(name)).collect();
    let rows = rows_in(ctx, &format!("SELECT {} FROM mysql.{table}", columns.join(", ")))?;
    Ok(rows.into_iter().map(|values: Vec<Value>| Row { names: names.clone(), values }).collect())
}
