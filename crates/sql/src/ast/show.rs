//! SHOW, DESCRIBE, EXPLAIN.

use super::{Account, Expr, Limit, ObjectName, VariableScope};

/// LIKE 'pattern' or WHERE expr of a SHOW.
#[derive(Clone, Debug, PartialEq)]
pub enum ShowFilter {
    Like(String),
    Where(Expr),
}

/// Output format of EXPLAIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplainFormat {
    Traditional,
    Extended,
    Partitions,
    Json,
    /// The operators, in MySQL's notation.
    Tree,
    /// ANALYZE statement.
    Analyze,
    AnalyzeJson,
}

impl ExplainFormat {
    /// Returns whether the statement is executed.
    pub fn runs(self) -> bool {
        matches!(self, ExplainFormat::Analyze | ExplainFormat::AnalyzeJson)
    }
}

/// SHOW.
#[derive(Clone, Debug, PartialEq)]
pub enum Show {
    Databases {
        filter: Option<ShowFilter>,
    },
    Tables {
        full: bool,
        db: Option<String>,
        filter: Option<ShowFilter>,
    },
    TableStatus {
        db: Option<String>,
        filter: Option<ShowFilter>,
    },
    OpenTables {
        db: Option<String>,
        filter: Option<ShowFilter>,
    },
    Columns {
        full: bool,
        table: ObjectName,
        filter: Option<ShowFilter>,
    },
    Index {
        table: ObjectName,
        filter: Option<ShowFilter>,
    },
    CreateDatabase {
        if_not_exists: bool,
        name: String,
    },
    CreateTable(ObjectName),
    CreateSequence(ObjectName),
    CreateView(ObjectName),
    CreateUser(Option<Account>),
    /// SHOW CREATE {PROCEDURE | FUNCTION | TRIGGER | EVENT | SEQUENCE | PACKAGE [BODY]} name. The kind is in
    /// upper case.
    CreateOther {
        kind: String,
        name: ObjectName,
    },
    Variables {
        scope: VariableScope,
        filter: Option<ShowFilter>,
    },
    Status {
        scope: VariableScope,
        filter: Option<ShowFilter>,
    },
    ProcessList {
        full: bool,
    },
    Engines,
    /// SHOW ENGINE name {STATUS | MUTEX | LOGS}. `what` is in upper case.
    Engine {
        name: String,
        what: String,
    },
    Warnings {
        limit: Option<Limit>,
    },
    Errors {
        limit: Option<Limit>,
    },
    CountWarnings,
    CountErrors,
    BinaryLogs,
    BinlogEvents {
        log: Option<String>,
        from: Option<u64>,
        limit: Option<Limit>,
    },
    RelaylogEvents {
        connection: Option<String>,
        log: Option<String>,
        from: Option<u64>,
        limit: Option<Limit>,
    },
    /// SHOW MASTER STATUS, SHOW BINLOG STATUS.
    MasterStatus,
    SlaveHosts,
    /// SHOW EXPLAIN FOR, SHOW ANALYZE FOR, EXPLAIN FOR CONNECTION: the plan of another connection's
    /// statement.
    Explain {
        format: ExplainFormat,
        connection: Expr,
    },
    SlaveStatus {
        all: bool,
        connection: Option<String>,
    },
    /// SHOW GRANTS. `None` is the session's own account.
    Grants(Option<Account>),
    CharacterSet {
        filter: Option<ShowFilter>,
    },
    Collation {
        filter: Option<ShowFilter>,
    },
    Privileges,
    Plugins {
        filter: Option<ShowFilter>,
    },
    Triggers {
        db: Option<String>,
        filter: Option<ShowFilter>,
    },
    Events {
        db: Option<String>,
        filter: Option<ShowFilter>,
    },
    ProcedureStatus {
        filter: Option<ShowFilter>,
    },
    FunctionStatus {
        filter: Option<ShowFilter>,
    },
    PackageStatus {
        filter: Option<ShowFilter>,
    },
    /// SHOW USER_STATISTICS, CLIENT_STATISTICS, TABLE_STATISTICS or INDEX_STATISTICS.
    Usage {
        table: &'static str,
        filter: Option<ShowFilter>,
    },
    Profiles,
    /// SHOW PROFILE of a statement, or of the last one.
    Profile {
        /// Names of the measures to show in addition to the time.
        measures: Vec<&'static str>,
        statement: Option<u64>,
        limit: Option<Limit>,
    },
}
