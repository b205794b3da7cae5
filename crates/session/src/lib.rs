//! The environment that statements run in: the database that all sessions share, the state of one session,
//! and the context of a running statement. In addition, the services that every kind of statement needs:
//! privileges, auditing, names, statistics, sequences.
//!
//! This crate depends on no kind of statement. The crates that run statements are built on it, and keep their
//! server-wide caches in [`StatementCaches`].
//!
//! | module | concept |
//! |---|---|
//! | `database` | [`Database`]: all that sessions share; a value, not a global |
//! | `process_list` | [`ProcessList`]: the connections, for SHOW PROCESSLIST and KILL |
//! | `connection` | [`ConnectionInfo`]: the client's identity and how it is connected |
//! | `session_state` | [`SessionState`]: a session as expressions and planners see it |
//! | `hooks`, `full_text` | session callbacks of expressions; term frequencies |
//! | `statement_state` | [`StatementState`]: the state that belongs to one statement |
//! | `statements/` | the table of statements: [`StatementKind`], [`StatementTraits`] |
//! | `statement` | [`Job`], [`StatementContext`]: a statement to run; the context of a running one |
//! | `functions` | [`StatementFunctions`]: functions that run statements |
//! | `called_programs` | [`CalledPrograms`]: the programs that a statement has called |
//! | `inner_session` | [`InnerSession`]: the session as a function or a trigger sees it |
//! | `running_programs` | [`RunningPrograms`]: the functions and triggers that run inside the statement |
//! | `row_hooks` | [`RowHook`]: code that runs before and after each change of a row |
//! | `access/` | privileges |
//! | `account_usage`, `account_limits` | resource limits of accounts; how sessions enforce them |
//! | `audit/` | [`Audit`]: the audit log |
//! | `optimizer_trace`, `traced_text` | [`OptimizerTraces`]: the last trace of the optimizer; the text of its statement |
//! | `statement_trace` | [`StatementTrace`]: durations of a traced statement |
//! | `statement_log`, `general_log` | the general and the slow query log; entries of the general log |
//! | `annotation` | statement texts with their parameter values |
//! | `diagnostics` | conditions of the last statement |
//! | `profiles` | SHOW PROFILES |
//! | `clone_status` | [`CloneStatus`]: the clone that runs or ran last |
//! | `event_kind` | [`EventKind`]: kinds of statements, for statistics |
//! | `transaction_track` | transaction state reported to clients |
//! | `names` | [`SessionNames`]: name resolution in this session, for binding |
//! | `statistics`, `samples` | planner statistics of tables and indexes; the samples that they come from |
//! | `sequence/` | sequences and their numbers |
//! | `user_locks`, `user_lock_holders` | GET_LOCK |
//! | `virtual_table` | [`VirtualTable`]: tables that the server computes |
//! | `server_files`, `files` | [`ServerFiles`]: files of the machine; which of them statements may use |
//! | `replication`, `gtid_position` | [`ReplicaControl`]: control of the replica side; waits for positions |
//! | `settings` | system variables as SQL sees them |
//! | `ids`, `word_check` | ids of new tables and indexes; password restrictions |

pub mod access;
mod account_limits;
mod account_usage;
mod annotation;
mod audit;
mod called_programs;
mod callee;
mod clone_status;
mod connection;
mod database;
mod diagnostics;
mod event_kind;
mod event_runs;
mod examined;
pub mod files;
mod full_text;
mod functions;
mod general_log;
mod gtid_position;
mod hooks;
mod ids;
mod inner_session;
mod names;
mod optimizer_trace;
mod process_list;
mod profiles;
mod reached;
mod replication;
mod roots;
mod row_hooks;
mod running_programs;
mod samples;
pub mod sequence;
mod server_files;
mod session_state;
mod settings;
mod statement;
mod statement_log;
mod statement_state;
mod statement_trace;
mod statements;
mod statistics;
mod traced_text;
mod transaction_track;
mod user_lock_holders;
mod user_locks;
mod virtual_table;
mod word_check;

pub use account_usage::{AccountLimits, AccountUsages};
pub use annotation::append_statement;
pub use audit::{
    Audit, AuditSink, AuditTables, Client, ConnectionEvent, RowChange, TableUse,
    adjusted_users as adjusted_audit_users, changed_tables,
};
pub use called_programs::CalledPrograms;
pub use callee::Callee;
pub use clone_status::{CloneReport, CloneStage, CloneStatus, StageReport};
pub use connection::{ConnectionInfo, EncryptedSession};
pub use database::{
    Database, DatabaseParts, ErrorLogRow, MemoryLimits, ReplicaRow, ServerCallbacks, StatementCaches,
};
pub use diagnostics::{Diagnostics, Marked, syntax_error};
pub use event_kind::{EventKind, event_name};
pub use event_runs::EventRuns;
pub use examined::RowsExamined;
pub use functions::{FoundFunction, Returned, StatementFunction, StatementFunctions};
pub use general_log::{LOG_NOWHERE, LOG_TO_FILE, LOG_TO_TABLE, short_time, shown};
pub use ids::Ids;
pub use inner_session::{InnerSession, ProgramContext};
pub use names::SessionNames;
pub use optimizer_trace::{OptimizerTraces, TracedPlan};
pub use process_list::AcknowledgedBy;
pub use process_list::{
    Closer, Command, Logins, Process, ProcessIdentity, ProcessList, ProcessSnapshot, RunningPlan, SharedPlan,
};
pub use profiles::{MEASURES, measure_type};
pub use reached::Reached;
pub use replication::{
    ApplierReport, ReplicaControl, ReplicaThreads, ReplicaUntil, SourceName, SourceOption, SourceReport,
    check_domains, parse_gtids,
};
pub use roots::{ReachedNames, RootTable, Roots};
pub use row_hooks::{RowHook, RowHooks};
pub use running_programs::RunningPrograms;
pub use server_files::ServerFiles;
pub use session_state::{
    BinlogStatements, Changed, Identity, NamedCharsets, Origin, SessionLog, SessionState, Settings,
    check_client_charset,
};
pub use settings::set_error;
pub use statement::{Job, StatementContext};
pub use statement_log::{LogFiles, LogRows, StatementLog};
pub use statement_state::StatementState;
pub use statement_trace::StatementTrace;
pub use statements::{
    AtPrepare, ChangedNames, Conditions, Exception, ImplicitCommit, LogTableUse, ProgramRule, StatementKind,
    StatementTraits, Writes, changed_names, commits_implicitly, innermost, kind_of, may_be_prepared,
    row_target, traits_of,
};
pub use statistics::{PlanStatistics, cardinality, has_row};
pub use transaction_track::{TrackTransaction, TransactionState};
pub use virtual_table::{
    Replaceable, VirtualColumn, VirtualDefinition, VirtualTable, VirtualTables, WantedNames,
    default_create_text,
};
pub use word_check::WordList;
