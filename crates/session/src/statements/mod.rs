//! The properties of statements that their callers check before they run, as one table.
//!
//! A statement has a [`StatementKind`], and a kind has a row of [`StatementTraits`]. Code that must decide
//! something for every statement reads a column, or matches all statements without a default arm. So a new
//! statement does not compile until everything is decided.
//!
//! | module | concept |
//! |---|---|
//! | `kind` | [`StatementKind`] of a statement |
//! | `table` | the table |
//! | `names` | the objects that a statement changes |

mod kind;
mod names;
mod table;
#[cfg(test)]
mod tests;

use cohort_config::Counter;
use cohort_sql::ast::{QueryBody, Statement};
use cohort_types::Privilege;

pub use kind::kind_of;
pub use names::{ChangedNames, changed_names, row_target};
pub use table::StatementKind;

/// The properties of one kind of statement.
#[derive(Debug)]
pub struct StatementTraits {
    /// The status variables that count it. Without any, only the nested statement counts.
    pub counters: &'static [Counter],
    pub commit: ImplicitCommit,
    pub conditions: Conditions,
    pub writes: Writes,
    pub prepare: AtPrepare,
    pub programs: ProgramRule,
    pub exceptions: Exceptions,
    /// The use of the tables that it names which fails for the log tables, if any.
    pub log_tables: &'static [LogTableUse],
}

/// Whether a statement commits the open transaction before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImplicitCommit {
    Keeps,
    Commits,
    /// As the nested statement, which commits itself.
    Nested,
}

/// The treatment of the previous statement's conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conditions {
    /// Kept: this statement shows them.
    Kept,
    /// Kept until a new condition. A query clears them once its plan reads a table.
    Old,
    Cleared,
}

/// The data that a statement changes, for `read_only`, read-only transactions and resource limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    Nothing,
    /// Rows. The checks are made with their tables.
    Rows,
    /// Databases, tables or accounts: refused under `read_only` and in read-only transactions.
    Objects,
    /// Refused under `read_only`, but not in read-only transactions.
    ServerOnly,
}

/// Checks and descriptions at PREPARE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtPrepare {
    /// Error 1295: the statement could run itself without end.
    Refused,
    /// May be prepared if the nested statement may. Nothing is described.
    Nested,
    /// The statement is planned; a query describes its columns.
    Planned,
    /// The privileges are checked.
    Checked,
    /// The columns of EXPLAIN; the explained statement is planned.
    Explained,
    /// The columns of the listing.
    Listed,
    /// The column of SHOW COUNT(*) WARNINGS.
    Warnings,
    /// The column of SHOW COUNT(*) ERRORS.
    Errors,
    Nothing,
}

/// Where stored programs may contain a statement, as MariaDB 10.11 decides at their creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramRule {
    Anywhere,
    /// As the nested statement.
    Nested,
    /// Not in functions and triggers, because it returns rows: error 1415.
    NoResultSet,
    /// Not in functions and triggers, because it commits: error 1422.
    NoCommit,
    /// Not in functions and triggers: error 1336.
    NoFunction,
    /// Not in functions and triggers: error 1445.
    NoPassword,
    /// In no stored program: error 1303.
    NoCreate,
    /// In no stored program: error 1357.
    NoAlter,
    /// In no stored program: error 1576.
    NoEventBody,
    /// In no stored program: error 1314.
    Never,
}

/// A property that few kinds have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exception {
    /// Concerns temporary tables of the session only.
    Temporary,
    /// Concerns temporary tables of the session only if all its names mean such tables.
    MaybeTemporary,
    /// ROW_NUMBER of its conditions is 1 although they do not keep those of the previous statement.
    RowOne,
    /// A successful reply is a bare OK, which reveals nothing that the transaction has read. The reply of a
    /// nested statement is held back by that statement.
    BareOk,
    /// Refused under LOCK TABLES, whatever the locked tables are: error 1192.
    NotUnderLocks,
    /// A query, whose rows may be kept for a cursor.
    Cursor,
    /// Runs although the account's password has expired.
    ExpiredPassword,
    /// Bulk execution succeeds or fails as a whole.
    BulkAtOnce,
    /// Bulk execution runs it once for each row of parameters.
    BulkEach,
}

/// A set of exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceptions(u16);

/// A use of tables that the log tables refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogTableUse {
    /// Changes rows; an account with this privilege gets error 1556.
    Rows(Privilege),
    /// Locks tables: error 1556.
    Locks,
    /// Changes definitions: error 1580 with this verb.
    Definition(&'static str),
}

impl StatementKind {
    /// Returns the kind's row of the table.
    pub fn traits(self) -> &'static StatementTraits {
        &table::TABLE[self as usize]
    }
}

impl Exceptions {
    /// Returns the set of a list.
    const fn of(list: &[Exception]) -> Exceptions {
        let (mut bits, mut at) = (0, 0);
        while at < list.len() {
            bits |= 1 << list[at] as u16;
            at += 1;
        }
        Exceptions(bits)
    }
}

impl StatementTraits {
    /// Returns whether the kind has the property.
    pub fn has(&self, exception: Exception) -> bool {
        self.exceptions.0 & (1 << exception as u16) != 0
    }

    /// Returns whether the statement, which is of this kind, commits the session's transaction before it
    /// runs. The caller decides for SET of `autocommit`.
    pub fn commits(&self, statement: &Statement) -> bool {
        match self.commit {
            ImplicitCommit::Keeps => false,
            ImplicitCommit::Commits => true,
            ImplicitCommit::Nested => commits_implicitly(innermost(statement)),
        }
    }

    /// Returns ROW_NUMBER for conditions without a row of their own: 0 if the statement, which is of this
    /// kind, concerns tables.
    pub fn row_of_rest(&self, statement: &Statement) -> u64 {
        if let Statement::Query(query) = statement {
            return u64::from(matches!(&query.body, QueryBody::Select(select) if select.from.is_none()));
        }
        u64::from(self.conditions == Conditions::Old || self.has(Exception::RowOne))
    }

    /// Returns whether `read_only` refuses the statement. Row changes are checked with their tables.
    pub fn counts_as_write(&self) -> bool {
        match self.writes {
            Writes::Objects | Writes::ServerOnly => true,
            Writes::Nothing | Writes::Rows => false,
        }
    }
}

/// Returns the statement's row of the table.
pub fn traits_of(statement: &Statement) -> &'static StatementTraits {
    kind_of(statement).traits()
}

/// Returns the statement within SET STATEMENT, WAIT and NOWAIT.
pub fn innermost(statement: &Statement) -> &Statement {
    match statement {
        Statement::SetStatement { statement, .. } | Statement::WithLockWait { statement, .. } => {
            innermost(statement)
        }
        other => other,
    }
}

/// Returns [`StatementTraits::commits`] of a statement.
pub fn commits_implicitly(statement: &Statement) -> bool {
    traits_of(statement).commits(statement)
}

/// Returns whether the statement may be prepared. Error 1295 is returned for others.
pub fn may_be_prepared(statement: &Statement) -> bool {
    match traits_of(statement).prepare {
        AtPrepare::Refused => false,
        AtPrepare::Nested => may_be_prepared(innermost(statement)),
        AtPrepare::Planned
        | AtPrepare::Checked
        | AtPrepare::Explained
        | AtPrepare::Listed
        | AtPrepare::Warnings
        | AtPrepare::Errors
        | AtPrepare::Nothing => true,
    }
}
