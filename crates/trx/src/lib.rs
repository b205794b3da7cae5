//! A session's transaction.
//!
//! # Concepts
//! - A session has at most one *active* transaction. It begins with BEGIN, or by itself with the first
//!   statement that needs one; then it ends with that statement under autocommit, else with COMMIT or
//!   ROLLBACK.
//! - It spans all engines: an [`EngineTrx`] per engine, begun at the first touch, one [`LockOwner`] for rows,
//!   ranges and names, one [`TrxCache`] of binlog events, and one read view over all engines.
//! - A *statement* within it can be undone alone: [`SessionTrx::statement_begin`] notes the place in every
//!   write set and in the binlog cache, [`SessionTrx::statement_end`] goes back there after an error. Locks
//!   stay.
//!
//! # States
//! ```text
//! none --begin, statement_begin--> active --commit--> prepared -> ordered -> none
//!                                         \--rollback, deadlock, failed commit------------------------> none
//! ```
//!
//! # When a reply must wait
//! [`SessionTrx::hold_until`] is the position that must be published before replies leave: the session's own
//! transactions (I4), and whatever the client has been shown of rows that were ordered but not hardened when
//! a lock on them was granted (I5). A write alone does not show rows, so a hot row is not slowed by this; but
//! an error that tells of a row (1062), and the end of a transaction that wrote nothing, do.
//!
//! # Lock order
//! Metadata locks before row locks; row locks as rows come; the auto-increment lock of a table ([`commit`])
//! last of all.
//!
//! # On failure
//! A deadlock, and a commit that could not be prepared, roll the whole transaction back. A lock wait timeout
//! and any other error roll back the statement.
//!
//! # XA
//! A branch of an XA transaction is an active transaction with a name, until it is prepared: `xa.rs`.
//!
//! | module | concept |
//! |---|---|
//! | `env` | [`TrxEnv`]: what the transactions of all sessions share |
//! | `session_trx` | [`SessionTrx`]: begin, statement, rollback |
//! | `active` | the running transaction |
//! | `engines`, `locking` | its parts in the engines; its row, range and name locks |
//! | `binlog`, `row_log`, `binlog_filter` | its binlog events, those of rows; which databases are logged |
//! | `auto_increment` | generated values |
//! | `savepoint` | SAVEPOINT |
//! | `commit`, `published` | COMMIT; waits until a transaction is published |
//! | `once` | the one commit of an applied statement |
//! | `held_locks`, `session_locks` | LOCK TABLES, FLUSH TABLES WITH READ LOCK, BACKUP |
//! | `branch`, `xa`, `xa_record`, `xa_adopt` | XA: the session's branch, its end, its record, its locks at a start |
//! | `writer` | the account in whose name a session commits |
//! | `settings` | what the session's variables say about its transactions |
//! | `gauge`, `session_counts` | what other sessions see of them; counters of reads, writes and plans |
//! | `errors` | what refusals of the layers below mean to the client |

mod active;
mod auto_increment;
mod binlog;
mod binlog_filter;
mod branch;
mod commit;
mod engines;
mod env;
mod errors;
mod gauge;
mod held_locks;
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
mod writer;
mod xa;
mod xa_adopt;
mod xa_record;

pub use binlog::image;
pub use branch::{XaEnding, XaState};
pub use commit::{DdlCommit, DetachedTrx};
pub use env::{BinlogCache, DeadlockWitness, TrxEnv, TrxEnvParts};
pub use errors::{commit_error, engine_error, lock_error, read_only, rmfail};
pub use gauge::{TrxGauge, TrxSnapshot};
pub use held_locks::{AliasLock, LockedTables, TableLock};
pub use locking::{RowLock, WaitPolicy};
pub use once::{AllowsOutcome, OnceEnd};
pub use session_counts::{Counted, SessionCounts};
pub use session_locks::active_locks;
pub use session_trx::{BeginOptions, SessionTrx};
pub use settings::{AccessMode, BinlogSettings, Isolation, TrxSettings};
pub use writer::Writer;
pub use xa::outside;
pub use xa_adopt::adopt;
