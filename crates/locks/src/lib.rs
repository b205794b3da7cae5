//! Row locks and metadata locks with one wait-for graph.
//!
//! A transaction is a [`LockOwner`]. It takes row locks ([`LockTable::lock_row`]) and metadata locks
//! ([`LockTable::lock_name`]); whoever must wait does so here, and a cycle of waiters, over both kinds of locks, is found
//! the moment it closes.

mod api;

pub use api::{
    Blocking, Granted, KillFlag, KillLevel, LockError, LockOwner, LockStats, LockTable, MetadataMode,
    NameKey, RowMode, WaitLimit,
};
