//! What a query or a change of rows needs of the tables it names.
//!
//! While a plan is made each name is checked when it is resolved, and noted. A plan that is run again, or
//! later, is checked against its notes.
//!
//! A statement *wants* privileges on a table as a whole. An account that has them on some columns only needs
//! them on each column that the statement *uses*. Columns that a change reads are used with SELECT, which it
//! does not want of the table: an account that may only write learns nothing.

use std::cell::RefCell;
use std::sync::Arc;

use cohort_catalog::Table;
use cohort_types::{Privilege, Privileges, SqlError, SqlResult};

use crate::access::check::check_table;
use crate::session_state::SessionState;

/// What a statement needs of one table.
#[derive(Clone, Debug)]
pub(crate) struct TableNeed {
    table: Arc<Table>,
    wanted: Privileges,
    /// Ordinals of columns and how they are used.
    used: Vec<(usize, Privilege)>,
}

impl TableNeed {
    /// Errors 1142, 1143.
    pub(crate) fn check(&self, session: &SessionState) -> SqlResult<()> {
        let (access, name) = (session.access(), &self.table.name);
        // Most accounts that a server has much to do with are granted all there is.
        if access.everywhere().covers(Privileges::OF_TABLE.without(Privilege::GrantOption.into())) {
            return Ok(());
        }
        let held = access.on_table(&name.schema, &name.table);
        if !held.covers(self.wanted) {
            check_table(session, self.wanted, &name.schema, &name.table)?;
        }
        let missing = self.used.iter().filter(|(_, privilege)| !held.has(*privilege));
        missing.into_iter().try_for_each(|(column, how)| check_column(session, &self.table, *column, *how))
    }
}

/// Error 1143, for a privilege that is not held on the whole table.
fn check_column(session: &SessionState, table: &Table, column: usize, how: Privilege) -> SqlResult<()> {
    let name = &table.columns[column].name;
    if session.access().on_column(&table.name, name).has(how) {
        return Ok(());
    }
    let (user, host) = &session.info.account;
    Err(SqlError::column_access_denied(how.name(), user, host, name, &table.name.table))
}

/// What the plan that is being made needs.
#[derive(Debug, Default)]
pub(crate) struct Needs(RefCell<Vec<TableNeed>>);

impl Needs {
    /// The statement names a table, on which it wants privileges that were checked before it was looked up.
    pub(crate) fn want(&self, table: &Arc<Table>, wanted: Privileges) {
        self.with(table, |need| need.wanted = need.wanted.and(wanted));
    }

    /// The statement uses a column: error 1143.
    pub(crate) fn use_column(
        &self,
        session: &SessionState,
        table: &Arc<Table>,
        column: usize,
        how: Privilege,
    ) -> SqlResult<()> {
        self.with(table, |need| {
            if !need.used.contains(&(column, how)) {
                need.used.push((column, how));
            }
        });
        check_column(session, table, column, how)
    }

    fn with(&self, table: &Arc<Table>, note: impl FnOnce(&mut TableNeed)) {
        let mut needs = self.0.borrow_mut();
        let at = needs.iter().position(|need| Arc::ptr_eq(&need.table, table)).unwrap_or_else(|| {
            needs.push(TableNeed { table: Arc::clone(table), wanted: Privileges::NONE, used: Vec::new() });
            needs.len() - 1
        });
        note(&mut needs[at]);
    }

    /// What was noted.
    pub(crate) fn take(&self) -> Vec<TableNeed> {
        self.0.take()
    }
}
