//! The privileges that a query or a row change needs on the tables that it names.
//!
//! While a statement is planned, each name is checked when it is resolved, and the need is recorded. When the
//! plan is run again, the recorded needs are checked.
//!
//! A statement *wants* privileges on a table as a whole. An account that has them only on some columns needs
//! them on each column that the statement *uses*. The columns that a change reads are used with SELECT, but
//! SELECT is not wanted on the table, so an account that may only write cannot learn the table's contents.

use std::cell::RefCell;
use std::sync::Arc;

use cohort_catalog::{AccountName, Routine, TableName};
use cohort_types::{Privilege, Privileges, RoutineKind, SqlError, SqlResult};

use crate::access::check::{changes_accounts, check_table, check_table_as};
use crate::access::held::Access;
use crate::session_state::SessionState;

/// The account whose privileges count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Viewer {
    Session,
    /// Inside a view: the view's definer.
    Definer(AccountName),
    /// The server itself, which is always allowed.
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
            Viewer::Definer(_) if session.identity.is_applier => session.access(),
            Viewer::Definer(name) => Arc::new(Access::of_definer(&session.db.catalog(), name)),
        }
    }

    /// Checks that all of these privileges are held on a table: error 1142, or 1449 if the definer no longer
    /// exists.
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
            return Err(SqlError::unknown_definer(&name.0, &name.1));
        }
        check_table_as(&access, (&name.0, &name.1), all, schema, table)
    }

    /// Checks that the account may execute a routine: error 1370.
    pub fn check_execute(
        &self,
        session: &SessionState,
        kind: RoutineKind,
        schema: &str,
        name: &str,
    ) -> SqlResult<()> {
        let (user, host) = match self {
            Viewer::Server => return Ok(()),
            Viewer::Session => &session.info.account,
            Viewer::Definer(name) => name,
        };
        match self.access(session).on_routine(kind, schema, name).has(Privilege::Execute) {
            true => Ok(()),
            false => Err(SqlError::routine_access_denied("execute", user, host, schema, name)),
        }
    }
}

/// The privileges that a statement needs on one table or view.
#[derive(Clone, Debug)]
pub struct TableNeed {
    viewer: Viewer,
    table: TableName,
    wanted: Privileges,
    /// Columns, and how they are used.
    used: Vec<(String, Privilege)>,
    /// Whether a stored table of accounts is changed.
    changes_accounts: bool,
}

impl TableNeed {
    /// Returns its approximate memory use.
    pub fn memory_bytes(&self) -> usize {
        let columns = self.used.iter().map(|(name, _)| name.len() + size_of::<(String, Privilege)>());
        size_of::<TableNeed>() + columns.sum::<usize>()
    }

    /// Checks the need: errors 1142, 1143.
    pub fn check(&self, session: &SessionState) -> SqlResult<()> {
        let (access, name) = (self.viewer.access(session), &self.table);
        if self.changes_accounts {
            self.viewer.check_table(session, self.wanted, &name.schema, &name.table)?;
        }
        // Fast path: most accounts of a busy server hold all privileges.
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

/// Returns error 1143 if a privilege that is not held on the whole table is not held on the column either.
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
        Viewer::Session | Viewer::Server => session.denied_logins(),
    };
    Err(SqlError::column_access_denied(how.name(), user, host, column, &table.table))
}

/// A stored function that a statement calls, which needs EXECUTE.
#[derive(Clone, Debug)]
pub struct RoutineNeed {
    viewer: Viewer,
    pub routine: Arc<Routine>,
}

impl PartialEq for RoutineNeed {
    fn eq(&self, other: &RoutineNeed) -> bool {
        self.viewer == other.viewer && Arc::ptr_eq(&self.routine, &other.routine)
    }
}

impl RoutineNeed {
    pub(crate) fn new(viewer: Viewer, routine: Arc<Routine>) -> RoutineNeed {
        RoutineNeed { viewer, routine }
    }

    /// Checks the need: error 1370.
    pub fn check(&self, session: &SessionState) -> SqlResult<()> {
        let Routine { kind, schema, name, .. } = &*self.routine;
        self.viewer.check_execute(session, *kind, schema, name)
    }
}

/// The needs of the plan that is being made.
#[derive(Debug, Default)]
pub struct Needs(RefCell<Vec<TableNeed>>);

impl Needs {
    /// Records privileges that the statement wants on a table. They were checked before the table was looked
    /// up.
    pub(crate) fn want(&self, viewer: &Viewer, table: &TableName, wanted: Privileges) {
        self.with(viewer, table, |need| {
            need.wanted = need.wanted.and(wanted);
            need.changes_accounts = changes_accounts(need.wanted, &table.schema, &table.table);
        });
    }

    /// Records and checks the use of a column: error 1143.
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
                changes_accounts: false,
            });
            needs.len() - 1
        });
        note(&mut needs[at]);
    }

    /// Takes the recorded needs.
    pub(crate) fn take(&self) -> Vec<TableNeed> {
        self.0.take()
    }
}
