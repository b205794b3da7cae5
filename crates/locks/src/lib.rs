//! Row, range and metadata locks with one wait-for graph. `README.md` has the theory.
//!
//! A transaction is a [`LockOwner`]; the owners of one session are a [`Party`]. An owner takes row locks
//! ([`LockTable::lock_row`]) and metadata locks ([`LockTable::lock_name`]); a caller that must wait does so
//! here, and a cycle of waiters, over all kinds of locks, is found the moment it closes.
//!
//! | file | concept |
//! |---|---|
//! | `mode.rs` | modes and what they conflict with |
//! | `queue.rs` | holders and waiters of one lock; who goes on next |
//! | `rows.rs`, `names.rs` | locks of rows and of names |
//! | `groups.rs` | locks of one transaction on neighbouring rows |
//! | `ranges.rs` | locks of key ranges, and the keys put into them |
//! | `points.rs`, `intervals.rs` | the keys of one transaction; the ranges of one |
//! | `owner.rs` | transactions, their waits, KILL |
//! | `party.rs` | sessions: the nodes of the graph |
//! | `permit.rs` | the proof that a commit holds the server's name |
//! | `graph.rs` | cycles and victims |
//! | `sleep.rs` | how a waiter sleeps |
//! | `sync.rs` | locks and atomics, replaced in model checks |
//! | `table.rs` | taking, waiting, releasing |
//! | `scan.rs` | the same for ranges |

mod graph;
mod groups;
mod intervals;
mod mode;
mod names;
mod owner;
mod party;
mod permit;
mod points;
mod queue;
mod ranges;
mod rows;
mod scan;
mod sleep;
mod sync;
mod table;
mod waits;

pub use mode::{MetadataMode, NameKey, RowMode, WaitPolicy};
pub use owner::{KillFlag, KillLevel, LockOwner};
pub use party::{Part, Party};
pub use permit::WritePermit;
pub use points::{LockSpan, Towards};
pub use ranges::{RangeScan, Step, StepTo, Uncommitted};
pub use sleep::{Sleeper, SleeperOf, this_thread};
pub use table::{Granted, LockError, LockStats, LockTable, WaitLimit, Wakeups};
pub use waits::{Deadlock, DeadlockMember, LockWait, RangeWish, WaitedFor};
