//! A session's transaction.
//!
//! # Concepts
//! - A session has at most one *active* transaction. It begins with BEGIN, or implicitly with the first
//!   statement that needs one. An implicit transaction ends with its statement under autocommit, otherwise
//!   with COMMIT or ROLLBACK.
//! - It spans all engines: an [`EngineTrx`] per engine, begun at its first use; one [`LockOwner`] for rows,
//!   ranges and names; one [`TrxCache`] of binlog events; and one read view over all engines.
//! - A *statement* in it can be undone alone: [`SessionTrx::statement_begin`] records the position in every
//!   write set and in the binlog cache, and [`SessionTrx::statement_end`] rolls back to it after an error.
//!   Locks are kept.
//!
//! # States
//! ```text
//! none --begin, statement_begin--> active --commit--> prepared -> ordered -> none
//!                                         \--rollback, deadlock, failed commit------------------------> none
//! ```
//!
//! # Reply barrier
//! [`SessionTrx::hold_until`] is the position that must be published before replies are sent. It covers the
//! session's own transactions (I4), and transactions whose rows the client may have observed although they
//! were ordered but not durable when the lock was granted (I5). A write alone does not show rows to the
//! client, so it does not raise the barrier, and a hot row is not slowed down. An error that reveals a row
//! (1062) raises it, and so does the end of a transaction without writes.
//!
//! # Lock order
//! Metadata locks before row locks; row locks in any order; the auto-increment lock of a table ([`commit`])
//! last.
//!
//! # On failure
//! A deadlock, and a commit that cannot be prepared, roll back the whole transaction. A lock wait timeout and
//! any other error roll back the statement.
//!
//! # XA
//! A branch of an XA transaction is an active transaction with a name, until it is prepared: `xa.rs`.
//!
//! | module | concept |
//! |---|---|
//! | `env` | [`TrxEnv`]: resources shared by the transactions of all sessions |
//! | `session_trx` | [`SessionTrx`]: begin, statement, rollback |
//! | `active` | the running transaction |
//! | `engines`, `locking` | its engine transactions; its row, range and metadata locks |
//! | `parts` | incremental flush of large write sets |
//! | `binlog`, `row_log`, `binlog_filter` | its binlog events; row events; the databases that are logged |
//! | `auto_increment` | generated values |
//! | `event_runs` | times of events' last runs |
//! | `inner` | statements inside the running one |
//! | `savepoint` | SAVEPOINT |
//! | `commit`, `published` | COMMIT; waits until a transaction is published |
//! | `once` | the single commit of an applied statement |
//! | `held_locks`, `session_locks` | LOCK TABLES, FLUSH TABLES WITH READ LOCK, BACKUP |
//! | `branch`, `xa`, `xa_record`, `xa_adopt` | XA branches: state, end, record, locks after a start |
//! | `writer` | the account on whose behalf a session commits |
//! | `settings` | the session variables that affect its transactions |
//! | `stats`, `session_counts` | statistics for other sessions; counters of reads, writes and plans |
//! | `errors` | conversion of lower-level errors to client errors |

mod active;
mod auto_increment;
mod binlog;
mod binlog_filter;
mod branch;
mod commit;
mod engines;
mod env;
mod errors;
mod event_runs;
mod held_locks;
mod inner;
mod locking;
mod once;
mod parts;
mod published;
mod row_log;
mod savepoint;
mod session_counts;
mod session_locks;
mod session_trx;
mod settings;
mod stats;
mod writer;
mod xa;
mod xa_adopt;
mod xa_record;

pub use binlog::image;
pub use branch::{XaEnding, XaState};
pub use commit::{DdlCommit, DetachedTrx};
pub use env::{BinlogCache, DeadlockObserver, TrxEnv, TrxEnvParts};
pub use errors::{commit_error, engine_error, lock_error, read_only, rmfail};
pub use event_runs::stored_event_runs;
pub use held_locks::{AliasLock, LockedTables, TableId, TableLock};
pub use inner::{AfterFailure, OuterStatement};
pub use locking::{RowLock, WaitPolicy};
pub use once::OnceEnd;
pub use savepoint::OuterSavepoints;
pub use session_counts::{Counted, PlanCounts, SessionCounts};
pub use session_locks::active_locks;
pub use session_trx::AllowsOutcome;
pub use session_trx::{BeginOptions, SessionTrx};
pub use settings::{AccessMode, BinlogSettings, Isolation, TrxSettings};
pub use stats::{TrxSnapshot, TrxStats};
pub use writer::Writer;
pub use xa::outside;
pub use xa_adopt::adopt;
