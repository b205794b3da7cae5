//! Runs the statements of sessions. Most statements are implemented in lower crates; this crate dispatches to
//! them.
//!
//! | module | concept |
//! |---|---|
//! | `kept` | [`database`]: creates a database with its statement caches |
//! | `session` | [`Session`]: one connection's state; runs commands one after the other |
//! | `variables` | SET, and the settings that it copies to other modules |
//! | `prepared`, `prepared_statements` | prepared statements of a session: execution; their list |
//! | `prepared_texts` | the parts of them that sessions share |
//! | `running_plan` | plans of running statements: SHOW EXPLAIN, SHOW ANALYZE |
//! | `session_log`, `work` | statements in the general, slow and audit logs; their results |
//! | `frame`, `statement_frames` | frames of statements, which measure them for the statistics |
//! | `outfile` | SELECT ... INTO OUTFILE |
//! | `analyze` | ANALYZE of a statement |
//! | `applier` | [`Applier`]: a session that applies a source's events |
//! | `handler`, `open_handler` | HANDLER |
//! | `account_tables/` | changes of `mysql.global_priv` and similar tables, as account statements |
//! | `dispatch` | dispatch of a statement to the code that runs it |
//! | `cached_plan` | [`CachedPlan`]: a statement's plan, and the conditions for its reuse |
//! | `explain`, `explain_access`, `explain_json`, `plan_json` | EXPLAIN, ANALYZE of a statement |
//! | `slow_plan` | plan information in the slow log |
//! | `inner_query` | queries inside statements of other kinds |
//! | `program/` | stored programs in a session: compound statements, CALL |
//! | `statement/` | the dispatch of all statements, and those of sessions and transactions |

#[cfg(test)]
extern crate self as cohort_exec;

mod account_tables;
mod analyze;
mod applier;
mod bulk;
mod cached_plan;
mod dispatch;
mod explain;
mod explain_access;
mod explain_json;
mod explain_tree;
mod field_list;
mod frame;
mod get_diagnostics;
mod handler;
mod inner_query;
#[cfg(test)]
mod inner_tests;
mod known_statement;
mod log_settings;
mod named_tables;
mod open_handler;
mod outfile;
mod plan_json;
mod plan_locks;
mod prepared;
mod prepared_statements;
mod prepared_texts;
mod program;
mod running_plan;
mod session;
mod session_log;
mod setup_tables;
mod shared_caches;
mod slow_plan;
mod statement;
mod statement_frames;
mod statement_names;
mod text_logging;
mod unfilled;
mod variable_values;
mod variables;
mod work;
mod xa;

pub use applier::{AllowsOutcome, Applier, ApplyRules, Conversions, DdlEnd, FinishedGroup, GroupHead};
pub use cached_plan::CachedPlan;
pub use cohort_ddl::{drop_orphans, set_page_formats};
pub use cohort_dml::{KeySet, RowKeys};
pub use cohort_expr::TimeZone;
pub use cohort_info::{STORED_TABLES, create_text_of_mysql, information_schema, reset_error};
pub use cohort_session::{
    AccountUsages, ApplierReport, Audit, AuditSink, Client, CloneReport, CloneStage, Closer, Command,
    ConnectionEvent, ConnectionInfo, Database, DatabaseParts, EncryptedSession, ErrorLogRow, EventKind, Ids,
    LogFiles, LogRows, MemoryLimits, Origin, Process, ProcessIdentity, ProcessList, ProcessSnapshot,
    ReplicaControl, ReplicaRow, ReplicaThreads, ReplicaUntil, ServerCallbacks, ServerFiles, SessionState,
    SourceName, SourceOption, SourceReport, StatementContext, StatementLog, VirtualColumn, VirtualTable,
    VirtualTables, WordList, adjusted_audit_users, check_domains, event_name, parse_gtids,
};
pub use cohort_sql::{message_without_secrets, without_secrets};
pub use cohort_table::SourceTemporaryTables;
pub use cohort_trx::BinlogCache;
pub use prepared::PrepareInfo;
pub use program::enable::run_programs;
pub use program::{EventOutcome, EventRun, next_run, run_event};
pub use session::Session;
pub use shared_caches::{SharedCaches, database};
pub use statement_names::{StatementNames, names_in};
