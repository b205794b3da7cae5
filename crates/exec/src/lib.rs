//! Runs statements: binds names, plans, executes, builds row images for the binlog, keeps transactions.
//!
//! | module | concept |
//! |---|---|
//! | `database` | [`Database`]: all that sessions share; a value, not a global |
//! | `process_list` | [`ProcessList`]: the connections, for SHOW PROCESSLIST and KILL |
//! | `session` | [`Session`]: one connection's state; runs commands one after the other |
//! | `session_state` | [`SessionState`]: its part that expressions and planners see |
//! | `variables` | SET, and the variables that other modules obey |
//! | `prepared`, `prepared_texts` | prepared statements; what sessions share of them |
//! | `analyze` | ANALYZE of a statement |
//! | `annotation` | the text that row events are annotated with |
//! | `binlog_filter` | which databases' changes are logged |
//! | `applier` | [`Applier`]: a session that applies a source's events |
//! | `replication` | [`ReplicaControl`]: what statements ask of the replica side |
//! | `guards` | settings that refuse statements |
//! | `handler` | HANDLER |
//! | `handler_counts` | counters of row reads and writes |
//! | `account_tables/` | changes of `mysql.global_priv` and its like as statements about accounts |
//! | `audit/` | [`Audit`]: the log of who did what |
//! | `diagnostics` | conditions of the last statement |
//! | `statement` | [`StatementContext`]: what the code of one running statement sees |
//! | `dispatch` | statement -> the code that runs it; the plan cache |
//! | `inner_query` | queries that statements of other kinds ask |
//! | `other_statements` | transactions, USE, DO, KILL, EXPLAIN, SHOW WARNINGS |
//! | `trx` | a session's transaction: engines, row locks, read view, savepoints, binlog cache, commit |
//! | `table` | rows of a table: access by index, writes with index maintenance, row images |
//! | `plan/` | plans that sessions share: direct ones and trees of operators |
//! | `select/` | runs them |
//! | `dml/` | INSERT, REPLACE, UPDATE, DELETE, BINLOG |
//! | `ddl/` | databases, tables, indexes; atomic (I2) |
//! | `sequence/` | sequences and their numbers |
//! | `temporary/` | a session's temporary tables |
//! | `virtual_table` | [`VirtualTable`]: tables that the server computes |
//! | `show/` | SHOW, information_schema |

mod access;
mod account_tables;
mod account_usage;
mod analyze;
mod annotation;
mod applier;
mod audit;
mod binlog_filter;
mod bulk;
mod database;
mod ddl;
mod diagnostics;
mod dispatch;
mod dml;
mod files;
mod gtid_position;
mod guards;
mod handler;
mod handler_counts;
mod inner_query;
mod named_tables;
mod other_statements;
mod plan;
mod prepared;
mod prepared_texts;
mod process_list;
mod profiles;
mod replication;
mod select;
mod sequence;
mod session;
mod session_state;
mod show;
mod statement;
mod statement_log;
mod statement_names;
mod table;
mod temporary;
mod text_logging;
mod transaction_track;
mod trx;
mod unfilled;
mod user_locks;
mod variables;
mod virtual_table;
mod xa;

pub use account_usage::AccountUsages;
pub use applier::{Applier, ApplyRules, Conversions, FinishedGroup, GroupHead, SourceTemporaryTables};
pub use audit::{Audit, AuditSink, Client, ConnectionEvent, adjusted_users as adjusted_audit_users};
pub use database::{Database, DatabaseParts, MemoryLimits, ReplicaRow, ServerFacts};
pub use ddl::{Ids, WordList, drop_orphans, tell_page_forms};
pub use dispatch::CachedPlan;
pub use dml::{KeySet, RowKeys};
pub use files::ServerFiles;
pub use prepared::PrepareInfo;
pub use process_list::{Closer, Command, Process, ProcessIdentity, ProcessList, ProcessSnapshot};
pub use replication::{
    ApplierReport, ReplicaControl, ReplicaThreads, ReplicaUntil, SourceName, SourceOption, SourceReport,
    check_domains,
};
pub use session::{ConnectionInfo, EncryptedSession, Session};
pub use session_state::SessionState;
pub use show::information_schema;
pub use statement::StatementContext;
pub use statement_log::{LogFiles, LogRows, StatementLog, without_secrets};
pub use statement_names::{StatementNames, names_in};
pub use table::TableRegistry;
pub use trx::{BinlogCache, TrxIds};
pub use virtual_table::{VirtualColumn, VirtualTable, VirtualTables};
