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

use cohort_catalog::{AccountName, TableName};
use cohort_types::{ErrorCode, Privilege, Privileges, SqlError, SqlResult};

use crate::access::check::{check_table, check_table_as};
use crate::access::held::Access;
use crate::session_state::SessionState;

/// Whose privileges count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Viewer {
    Session,
    /// Inside of a view those of its definer.
    Definer(AccountName),
    /// Nobody's: the server itself looks.
    Server,
}

impl Viewer {
    pub fn of(definer: Option<AccountName>) -> Viewer {
        definer.map_or(Viewer::Session, Viewer::Definer)
    }

    pub fn access(&self, session: &SessionState) -> Arc<Access> {
        match self {
            Viewer::Session => session.access(),
            Viewer::Server => Arc::new(Access::of_server(&session.db.catalog())),
            Viewer::Definer(_) if session.is_applier => session.access(),
            Viewer::Definer(name) => Arc::new(Access::of_definer(&session.db.catalog(), name)),
        }
    }

    /// Needs all of these on a table: error 1142; error 1449 when the definer is gone.
    pub fn check_table(
        &self,
        session: &SessionState,
        all: Privileges,
        schema: &str,
        table: &str,
    ) -> SqlResult<()> {
        let name = match self {
            Viewer::Session => return check_table(session, all, schema, table),
            Viewer::Server => return Ok(()),
            Viewer::Definer(name) => name,
        };
        let access = self.access(session);
        if access.account().is_none() {
            let text = format!("The user specified as a definer ('{}'@'{}') does not exist", name.0, name.1);
            return Err(SqlError::new(ErrorCode::NoSuchUser, text));
        }
        check_table_as(&access, (&name.0, &name.1), all, schema, table)
    }
}

/// What a statement needs of one table or view.
#[derive(Clone, Debug)]
pub struct TableNeed {
    viewer: Viewer,
    table: TableName,
    wanted: Privileges,
    /// Columns and how they are used.
    used: Vec<(String, Privilege)>,
}

impl TableNeed {
    /// Roughly what it takes in memory.
    pub fn memory_bytes(&self) -> usize {
        let columns = self.used.iter().map(|(name, _)| name.len() + size_of::<(String, Privilege)>());
        size_of::<TableNeed>() + columns.sum::<usize>()
    }

    /// Errors 1142, 1143.
    pub fn check(&self, session: &SessionState) -> SqlResult<()> {
        let (access, name) = (self.viewer.access(session), &self.table);
        // Most accounts that a server has much to do with are granted all there is.
        if access.everywhere().covers(Privileges::OF_TABLE.without(Privilege::GrantOption.into())) {
            return Ok(());
        }
        let held = access.on_table(&name.schema, &name.table);
        if !held.covers(self.wanted) {
            self.viewer.check_table(session, self.wanted, &name.schema, &name.table)?;
        }
        let mut missing = self.used.iter().filter(|(_, privilege)| !held.has(*privilege));
        missing.try_for_each(|(column, how)| check_column(session, &self.viewer, name, column, *how))
    }
}

/// Error 1143, for a privilege that is not held on the whole table.
fn check_column(
    session: &SessionState,
    viewer: &Viewer,
    table: &TableName,
    column: &str,
    how: Privilege,
) -> SqlResult<()> {
    if viewer.access(session).on_column(table, column).has(how) {
        return Ok(());
    }
    let (user, host) = match viewer {
        Viewer::Definer((user, host)) => (user.as_str(), host.as_str()),
        Viewer::Session | Viewer::Server => session.who_is_denied(),
    };
    Err(SqlError::column_access_denied(how.name(), user, host, column, &table.table))
}

/// What the plan that is being made needs.
#[derive(Debug, Default)]
pub struct Needs(RefCell<Vec<TableNeed>>);

impl Needs {
    /// The statement names a table, on which it wants privileges that were checked before it was looked up.
    pub(crate) fn want(&self, viewer: &Viewer, table: &TableName, wanted: Privileges) {
        self.with(viewer, table, |need| need.wanted = need.wanted.and(wanted));
    }

    /// The statement uses a column: error 1143.
    pub(crate) fn use_column(
        &self,
        session: &SessionState,
        viewer: &Viewer,
        table: &TableName,
        column: &str,
        how: Privilege,
    ) -> SqlResult<()> {
        self.with(viewer, table, |need| {
            if !need.used.iter().any(|(known, used)| known == column && *used == how) {
                need.used.push((column.to_owned(), how));
            }
        });
        check_column(session, viewer, table, column, how)
    }

    fn with(&self, viewer: &Viewer, table: &TableName, note: impl FnOnce(&mut TableNeed)) {
        let mut needs = self.0.borrow_mut();
        let known = needs.iter().position(|need| need.table == *table && need.viewer == *viewer);
        let at = known.unwrap_or_else(|| {
            needs.push(TableNeed {
                viewer: viewer.clone(),
                table: table.clone(),
                wanted: Privileges::NONE,
                used: Vec::new(),
            });
            needs.len() - 1
        });
        note(&mut needs[at]);
    }

    /// What was noted.
    pub(crate) fn take(&self) -> Vec<TableNeed> {
        self.0.take()
    }
}
