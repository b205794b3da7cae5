//! The deterministic world: the whole commit path (log, binlog, two engines) over a file system in memory
//! that crashes on command, a bank as workload, and the checks that every crash must pass.
//!
//! | module | concept |
//! |---|---|
//! | `bank` | [`Bank`]: accounts in two engines, transfers between them, everything told by the binlog too |
//! | `branches` | [`Branches`]: XA branches over both engines, half by half |
//! | `world` | opens the commit path over a given disk |
//! | `kill` | a real server killed under load, and the checker that knows what was acknowledged |
//! | `bulk` | the same for statements of many rows and for indexes made on filled tables |
//! | `held` | [`Holder`]: holds up one kind of operation, while a test looks at what others do |
//! | `replica` | [`Replica`]: holds commits back as semi-synchronous replication does |
//! | `explore` | crashes a run at its k-th write or sync for every k, recovers, checks |

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
