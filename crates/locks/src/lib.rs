//! Row, range and metadata locks with one wait-for graph. `README.md` explains the theory.
//!
//! A transaction is a [`LockOwner`]; the owners of one session form a [`Party`]. An owner takes row locks
//! ([`LockTable::lock_row`]) and metadata locks ([`LockTable::lock_metadata`]). Requests that conflict wait
//! inside this crate. The graph covers all kinds of locks, and the wait that closes a cycle detects the
//! deadlock.
//!
//! | file | concept |
//! |---|---|
//! | `mode.rs` | lock modes and their conflicts |
//! | `queue.rs` | holders and waiters of one lock; the grant order |
//! | `rows.rs`, `names.rs` | row locks; metadata locks |
//! | `row_key.rs` | identities of rows and of groups of rows |
//! | `groups.rs` | one transaction's locks on neighbouring rows, as bitmaps |
//! | `ranges.rs` | locks of key ranges, and insert intentions |
//! | `points.rs`, `intervals.rs` | one transaction's inserted keys; its locked ranges |
//! | `owner.rs` | the part of a transaction that other threads see, and its wait |
//! | `kill.rs` | the KILL flag of a session |
//! | `party.rs` | sessions: the nodes of the graph |
//! | `permit.rs` | the proof that a commit holds the global lock |
//! | `graph.rs` | cycles and deadlock victims |
//! | `sleep.rs` | how a waiter sleeps |
//! | `sync.rs` | locks and atomics, replaced in model checks |
//! | `table.rs`, `lock_owner.rs` | the lock table: taking, waiting, releasing; its owners |
//! | `scan.rs` | taking and waiting for range locks |

mod graph;
mod groups;
mod intervals;
mod kill;
mod lock_owner;
mod mode;
mod names;
mod owner;
mod party;
mod permit;
mod points;
mod queue;
mod ranges;
mod row_key;
mod rows;
mod scan;
mod sleep;
mod sync;
mod table;
mod wait_report;
mod waits;

pub use kill::{KillFlag, KillLevel};
pub use mode::{MetadataKey, MetadataMode, ProgramKind, RowMode, WaitPolicy};
pub use party::{Part, Party, SessionName};
pub use permit::WritePermit;
pub use points::{LockSpan, Towards};
pub use ranges::{RangeScan, Step, StepTo, Uncommitted};
pub use sleep::{Sleeper, SleeperOf, this_thread};
pub use table::{Granted, LockError, LockOwner, LockStats, LockTable, WaitLimit, Wakeups};
pub use waits::{Deadlock, DeadlockMember, LockWait, RangeWish, WaitedFor};
