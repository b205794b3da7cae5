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

mod active;
mod binlog;
mod commit;
mod engines;
mod gauge;
mod locking;
mod published;
mod savepoint;
mod session_locks;
mod session_trx;
mod settings;
mod xa;
mod xa_adopt;
mod xa_record;

pub(crate) use binlog::{LoggedRow, all_columns, image};
pub(crate) use commit::AUTO_INCREMENT_SPACE;
pub use commit::DdlCommit;
pub(crate) use commit::DetachedTrx;
pub(crate) use commit::commit_error;
pub use engines::EngineNo;
pub(crate) use engines::engine_error;
pub use gauge::{TrxGauge, TrxSnapshot};
pub use locking::WaitPolicy;
pub(crate) use locking::{RowLock, lock_error};
pub(crate) use session_locks::{BackupGate, LockedTables, TableLock, active_locks};
pub use session_trx::{BeginOptions, BinlogCache, SessionTrx, TrxIds};
pub use settings::{AccessMode, BinlogSettings, Isolation, RowImage, TrxSettings};
pub(crate) use xa::{XaEnding, XaState, outside, rmfail};
pub(crate) use xa_adopt::adopt;
