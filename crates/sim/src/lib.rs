//! The deterministic world: the whole commit path (log, binlog, two engines) on an in-memory file system that
//! crashes on command, with bank transfers as workload and the checks to pass after every crash.
//!
//! | module | concept |
//! |---|---|
//! | `bank` | [`Bank`]: transfers between accounts in two engines, also logged to the binlog |
//! | `branches` | [`Branches`]: XA branches over both engines, prepared and ended in separate steps |
//! | `world` | opens the commit path on a given disk |
//! | `kill` | kills a real server under load and checks it against what was acknowledged |
//! | `bulk` | like `kill`, for large INSERTs and for indexes created on populated tables |
//! | `held` | [`Holder`]: blocks one kind of operation while a test observes other threads |
//! | `replica` | [`Replica`]: delays commits like a semi-synchronous replica |
//! | `explore` | crashes a run at its k-th write or sync for every k, recovers and checks |

mod bank;
mod branches;
mod bulk;
mod explore;
mod held;
pub mod kill;
mod replica;
mod world;

pub use bank::{Bank, Logged, Script, Violation, check};
pub use branches::{Branches, check_branches};
pub use bulk::BulkOutcome;
pub use explore::{Explored, explore, explore_recovery};
pub use held::Holder;
pub use replica::Replica;
pub use world::{Disk, Setup, World, part};
