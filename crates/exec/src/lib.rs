//! Runs statements: binds names, plans, executes, builds row images for the binlog, keeps transactions.
//!
//! | module | concept |
//! |---|---|
//! | `kept` | [`database`]: a database with what statements keep for all sessions |
//! | `session` | [`Session`]: one connection's state; runs commands one after the other |
//! | `variables` | SET, and the variables that other modules obey |
//! | `prepared`, `prepared_texts` | prepared statements; what sessions share of them |
//! | `session_log` | what a session tells the logs of its statements |
//! | `replica_control` | CHANGE MASTER, START and STOP SLAVE |
//! | `outfile` | SELECT ... INTO OUTFILE |
//! | `analyze` | ANALYZE of a statement |
//! | `applier` | [`Applier`]: a session that applies a source's events |
//! | `guards` | settings that refuse statements |
//! | `handler` | HANDLER |
//! | `account_tables/` | changes of `mysql.global_priv` and its like as statements about accounts |
//! | `command_counters` | which `Com_...` counts a statement |
//! | `dispatch` | statement -> the code that runs it; the plan cache |
//! | `inner_query` | queries that statements of other kinds ask |
//! | `other_statements` | transactions, USE, DO, KILL, EXPLAIN, SHOW WARNINGS |
//! | `plan/` | plans that sessions share: direct ones and trees of operators |
//! | `select/` | runs them |
//! | `dml/` | INSERT, REPLACE, UPDATE, DELETE, BINLOG |
//! | `ddl/` | databases, tables, indexes; atomic (I2) |
//! | `show/` | SHOW, information_schema |

mod account_tables;
mod analyze;
mod applier;
mod bulk;
mod command_counters;
mod ddl;
mod dispatch;
mod dml;
mod guards;
mod handler;
mod inner_query;
mod kept;
mod named_tables;
mod other_statements;
mod outfile;
mod plan;
mod prepared;
mod prepared_texts;
mod replica_control;
mod select;
mod session;
mod session_log;
mod show;
mod statement_names;
mod text_logging;
mod unfilled;
mod variables;
mod xa;

pub use applier::{Applier, ApplyRules, Conversions, FinishedGroup, GroupHead};
pub use cohort_session::{
    AccountUsages, ApplierReport, Audit, AuditSink, Client, Closer, Command, ConnectionEvent, ConnectionInfo,
    Database, DatabaseParts, EncryptedSession, Ids, LogFiles, LogRows, MemoryLimits, Process,
    ProcessIdentity, ProcessList, ProcessSnapshot, ReplicaControl, ReplicaRow, ReplicaThreads, ReplicaUntil,
    ServerFacts, ServerFiles, SessionState, SourceName, SourceOption, SourceReport, StatementContext,
    StatementLog, VirtualColumn, VirtualTable, VirtualTables, WordList, adjusted_audit_users, check_domains,
    without_secrets,
};
pub use cohort_table::SourceTemporaryTables;
pub use cohort_trx::BinlogCache;
pub use ddl::drop_orphans;
pub use dispatch::CachedPlan;
pub use dml::{KeySet, RowKeys};
pub use kept::{Kept, database};
pub use prepared::PrepareInfo;
pub use session::Session;
pub use show::information_schema;
pub use statement_names::{StatementNames, names_in};
