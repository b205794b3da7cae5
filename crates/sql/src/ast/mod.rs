//! Syntax trees of statements, as plain data. Names are not resolved, and nothing is checked against the
//! catalog.
//!
//! | module | statements |
//! |---|---|
//! | `expr` | expressions and literals |
//! | `query` | SELECT, UNION, VALUES, WITH; tables and joins |
//! | `json_table` | JSON_TABLE in FROM |
//! | `dml` | INSERT, REPLACE, UPDATE, DELETE |
//! | `file` | SELECT ... INTO OUTFILE, LOAD DATA |
//! | `handler` | HANDLER |
//! | `ddl` | databases, tables, indexes |
//! | `data_type` | declared types of columns and casts |
//! | `sequence` | sequences |
//! | `view` | views |
//! | `session` | transactions, SET, PREPARE, LOCK TABLES, XA, KILL |
//! | `program` | stored programs, compound statements, CALL, SIGNAL |
//! | `admin` | FLUSH, PURGE, table maintenance, replication statements |
//! | `show` | SHOW, DESCRIBE, EXPLAIN |
//! | `account` | users, grants |
//! | `walk` | traversal of expressions |
//! | `rename` | traversal of a query that can change its names |
//! | `windows` | expansion of named windows |
//!
//! Identifiers are kept as typed (quotes removed). Function names are lower case. Names of system variables
//! are lower case.

mod account;
mod admin;
mod data_type;
mod ddl;
mod dml;
mod expr;
mod file;
mod handler;
mod json_table;
mod program;
mod query;
mod rename;
mod sequence;
mod session;
mod show;
mod view;
mod walk;
mod windows;

pub use account::*;
pub use admin::*;
pub use data_type::*;
pub use ddl::*;
pub use dml::*;
pub use expr::*;
pub use file::*;
pub use handler::*;
pub use json_table::*;
pub use program::*;
pub use query::*;
pub use rename::Rename;
pub use sequence::*;
pub use session::*;
pub use show::*;
pub use view::*;

/// `name` or `db.name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The database, if written.
    pub db: Option<String>,
    /// Name of the table or routine.
    pub name: String,
}

/// One statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// SELECT, VALUES, UNION, WITH ..., also with INTO @var.
    Query(Box<Query>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    /// SELECT ... INTO OUTFILE, INTO DUMPFILE.
    QueryIntoFile(Box<QueryIntoFile>),
    LoadData(Box<LoadData>),
    /// DO expr, ...
    Do(Vec<Expr>),

    CreateDatabase(CreateDatabase),
    AlterDatabase(AlterDatabase),
    DropDatabase(DropDatabase),
    CreateTable(Box<CreateTable>),
    AlterSequence(AlterSequence),
    Handler(Handler),
    AlterTable(Box<AlterTable>),
    DropTable(DropTable),
    CreateView(Box<CreateView>),
    RenameTable(RenameTable),
    Truncate(ObjectName),
    CreateIndex(Box<CreateIndex>),
    DropIndex(DropIndex),

    /// BEGIN, START TRANSACTION.
    Begin(Begin),
    Commit(Completion),
    Rollback(Completion),
    Savepoint(String),
    RollbackTo(String),
    ReleaseSavepoint(String),
    LockTables(Vec<LockTable>),
    UnlockTables,
    Xa(Xa),

    /// SET with all kinds of items, in the order written.
    Set(Vec<SetItem>),
    /// SET STATEMENT var = value, ... FOR statement.
    SetStatement {
        items: Vec<SetItem>,
        statement: Box<Statement>,
    },
    /// A statement with WAIT n or NOWAIT, which replaces the session's lock timeouts.
    WithLockWait {
        seconds: u64,
        statement: Box<Statement>,
    },
    Prepare {
        name: String,
        source: PrepareSource,
    },
    Execute {
        name: String,
        using: Vec<Using>,
    },
    ExecuteImmediate {
        source: Expr,
        using: Vec<Using>,
    },
    Deallocate(String),
    Use(String),
    Kill(Kill),
    GetDiagnostics(GetDiagnostics),
    /// Definition or call of a stored program, a compound statement, SIGNAL, RESIGNAL.
    Program(Box<Program>),

    Show(Box<Show>),
    /// DESCRIBE table [column | 'pattern'].
    Describe {
        table: ObjectName,
        column: Option<String>,
    },
    Explain {
        format: ExplainFormat,
        statement: Box<Statement>,
    },
    Help(String),

    Flush(Flush),
    /// `to` is the number of the first binary log file.
    ResetMaster {
        to: Option<u64>,
    },
    PurgeBinaryLogs(PurgeBinaryLogs),
    /// BINLOG 'base64'.
    Binlog(Expr),
    TableMaintenance(TableMaintenance),
    Backup(Backup),
    /// CLONE.
    Clone(CloneServer),
    Plugin(Plugin),
    Shutdown,
    ChangeMaster(ChangeMaster),
    /// START SLAVE / START REPLICA.
    StartSlave(SlaveControl),
    StopSlave(SlaveControl),
    ResetSlave {
        connection: Option<String>,
        all: bool,
    },

    CreateUser(CreateUser),
    CreateRole(CreateRole),
    DropRole(DropRole),
    AlterUser(AlterUser),
    DropUser {
        if_exists: bool,
        accounts: Vec<Account>,
    },
    RenameUser(Vec<(Account, Account)>),
    Grant(Grant),
    Revoke(Revoke),
}
