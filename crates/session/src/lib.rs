//! What a statement runs in: the database that all sessions share, the state of one session, the context of a
//! running statement; and whatever of them every kind of statement asks: who may do what, who did what,
//! names, statistics, sequences.
//!
//! Nothing here knows a kind of statement. What runs them lies above, and keeps what it wants for all
//! sessions behind [`StatementCaches`].
//!
//! | module | concept |
//! |---|---|
//! | `database` | [`Database`]: all that sessions share; a value, not a global |
//! | `process_list` | [`ProcessList`]: the connections, for SHOW PROCESSLIST and KILL |
//! | `connection` | [`ConnectionInfo`]: who is connected, and how |
//! | `session_state` | [`SessionState`]: a session as expressions and planners see it |
//! | `hooks`, `full_text` | what expressions ask of their session; how frequent words are |
//! | `statement` | [`Job`], [`StatementContext`]: a statement to run; what the code of a running one sees |
//! | `access/` | who may do what |
//! | `account_usage`, `restraint` | what accounts are bound to beyond their privileges; how sessions obey it |
//! | `audit/` | [`Audit`]: the log of who did what |
//! | `statement_log`, `general_log` | the general and the slow log; entries of the first |
//! | `annotation` | texts of statements with their values |
//! | `diagnostics` | conditions of the last statement |
//! | `profiles` | SHOW PROFILES |
//! | `transaction_track` | what clients are told of their transactions |
//! | `names` | [`SessionNames`]: what binding asks of this session |
//! | `statistics`, `samples` | what the planner knows of tables and indexes, and has seen of them |
//! | `sequence/` | sequences and their numbers |
//! | `user_locks`, `user_lock_holders` | GET_LOCK |
//! | `virtual_table` | [`VirtualTable`]: tables that the server computes |
//! | `server_files`, `files` | [`ServerFiles`]: files of the machine; which of them statements may use |
//! | `replication`, `gtid_position` | [`ReplicaControl`]: what statements ask of the replica side; waits for positions |
//! | `settings` | system variables as SQL sees them |
//! | `ids`, `word_check` | numbers of new tables and key spaces; what passwords must not be |

pub mod access;
mod account_usage;
mod annotation;
mod audit;
mod connection;
mod database;
mod diagnostics;
mod examined;
pub mod files;
mod full_text;
mod general_log;
mod gtid_position;
mod hooks;
mod ids;
mod names;
mod process_list;
mod profiles;
mod replication;
mod restraint;
mod samples;
pub mod sequence;
mod server_files;
mod session_state;
mod settings;
mod statement;
mod statement_log;
mod statistics;
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
pub use connection::{ConnectionInfo, EncryptedSession};
pub use database::{Database, DatabaseParts, MemoryLimits, ReplicaRow, ServerCallbacks, StatementCaches};
pub use diagnostics::{Conditions, Diagnostics, conditions_before, row_of_rest, syntax_error};
pub use examined::RowsExamined;
pub use general_log::{LOG_NOWHERE, LOG_TO_FILE, LOG_TO_TABLE, short_time, shown};
pub use ids::Ids;
pub use names::SessionNames;
pub use process_list::{Closer, Command, Process, ProcessIdentity, ProcessList, ProcessSnapshot};
pub use profiles::{MEASURES, measure_type};
pub use replication::{
    ApplierReport, ReplicaControl, ReplicaThreads, ReplicaUntil, SourceName, SourceOption, SourceReport,
    check_domains, parse_gtids,
};
pub use server_files::ServerFiles;
pub use session_state::{BinlogStatements, Changed, NamedCharsets, SessionState, check_client_charset};
pub use settings::set_error;
pub use statement::{Job, StatementContext};
pub use statement_log::{LogFiles, LogRows, StatementLog};
pub use statistics::{PlanStatistics, cardinality, has_row};
pub use transaction_track::{TrackTransaction, TransactionState};
pub use virtual_table::{VirtualColumn, VirtualDefinition, VirtualTable, VirtualTables, WantedNames};
pub use word_check::WordList;
