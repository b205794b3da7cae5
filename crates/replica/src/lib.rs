//! The replica side: follows other servers and applies what they have done, exactly once.
//!
//! | module | concept |
//! |---|---|
//! | `replicas` | [`Replicas`]: all connections, and the statements about them |
//! | `settings` | [`SourceSettings`]: what CHANGE MASTER says |
//! | `state` | [`StateStore`]: sources and positions, durable with the transactions they speak of |
//! | `connection` | one source: what its two threads share |
//! | `link` | a connection to a source, as its client |
//! | `receiver` | the thread that fills the relay log |
//! | `relay` | the relay log |
//! | `marks`, `marker` | the part that is acknowledged to a semi-synchronous source |
//! | `survey`, `kept`, `begin` | what becomes of it when threads start |
//! | `names` | names of its files |
//! | `place` | a place in the source's log |
//! | `group` | where groups of events begin and end |
//! | `applier` | the thread that reads the relay log and applies it, or has it applied |
//! | `crew` | the workers that apply in parallel |
//! | `job` | a group on its way through a crew |
//! | `planner` | what a group must follow |
//! | `lanes`, `ring` | the order of groups, by domain |
//! | `owners` | from which of several sources each domain is taken |
//! | `budget` | how much may wait in all of them |
//! | `progress` | up to where all domains have come |
//! | `shown` | up to where all is published |
//! | `apply` | the events of one group, through a session |
//! | `filter` | `replicate_*` |
//! | `flusher` | the thread that flushes what appliers have ordered |
//! | `until` | START SLAVE UNTIL |
//! | `status` | SHOW SLAVE STATUS |
//!
//! The way of a transaction: the receiver reads it off the network into the relay log, the applier reads it
//! from there and applies it through a session of the executor; its position is redo in its own commit record
//! (I2), so a crash leaves both or neither.

mod applier;
mod apply;
mod begin;
mod budget;
mod connection;
mod crew;
mod filter;
mod flusher;
mod group;
mod job;
mod kept;
mod lanes;
mod link;
mod marker;
mod marks;
mod names;
mod owners;
mod place;
mod planner;
mod progress;
mod receiver;
mod relay;
mod replicas;
mod ring;
#[cfg(test)]
mod schedules;
mod settings;
mod shown;
mod state;
mod status;
mod survey;
mod until;

pub use names::{check_relay_log, relay_base_name};
pub use receiver::current_position;
pub use replicas::{ReplicaLog, ReplicaParts, Replicas};
pub use settings::{Secret, SourceSettings, UseGtid};
pub use state::{Change, REPLICATION, ReplicaState, StateStore};
pub use status::ReplicaStatus;
