//! The replica side: receives the transactions of other servers and applies each exactly once.
//!
//! | module | concept |
//! |---|---|
//! | `replicas` | [`Replicas`]: all connections, and the statements that manage them |
//! | `settings` | [`SourceSettings`]: the settings of one source, from CHANGE MASTER |
//! | `state` | [`StateStore`]: sources and positions, durable together with the transactions they describe |
//! | `connection` | one source: the state that its two threads share |
//! | `link` | the network connection to a source, as its client |
//! | `receiver` | the I/O thread, which fills the relay log |
//! | `relay` | the relay log |
//! | `marks`, `marker` | the part of it that was acknowledged to a semi-synchronous source |
//! | `relay_check`, `survey` | the check of an existing relay log, and its result |
//! | `kept`, `begin` | the files to keep when threads start |
//! | `replica_log` | messages of the threads in the error log |
//! | `names` | names of relay log files |
//! | `place` | a position in the source's log |
//! | `group` | boundaries of event groups |
//! | `applier` | the SQL thread, which applies the relay log, itself or through the worker pool |
//! | `worker_pool` | the applier worker pool |
//! | `job` | a group queued for the worker pool |
//! | `planner` | dependencies between groups |
//! | `domain_queues`, `ring` | queues of groups in commit order, one per domain |
//! | `open_group` | the group that the applier is reading |
//! | `owners` | domain ownership: which of several sources delivers a domain |
//! | `budget` | memory limit for all queues together |
//! | `progress` | relay log position before which all domains are ordered |
//! | `shown` | position before which all is published |
//! | `apply` | applying the events of one group through a session |
//! | `filter` | `replicate_*` |
//! | `flusher` | the thread that flushes the commits of appliers |
//! | `until` | START SLAVE UNTIL |
//! | `status` | SHOW SLAVE STATUS |
//!
//! The path of a transaction: the receiver reads it from the network and writes it to the relay log. The
//! applier reads it from there and applies it through a session of the executor. Its position is redo in its
//! own commit record (I2), so a crash leaves both or neither.

mod applier;
mod apply;
mod begin;
mod budget;
mod connection;
mod domain_queues;
mod filter;
mod flusher;
mod group;
mod job;
mod kept;
mod link;
mod marker;
mod marks;
mod names;
mod open_group;
mod owners;
mod place;
mod planner;
mod progress;
mod receiver;
mod relay;
mod relay_check;
mod replica_log;
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
mod worker_pool;

pub use names::{check_relay_log, relay_base_name};
pub use receiver::current_position;
pub use replica_log::ReplicaLog;
pub use replicas::{ReplicaParts, Replicas};
pub use settings::{Secret, SourceSettings, UseGtid};
pub use state::{Change, REPLICATION, ReplicaState, StateStore};
pub use status::ReplicaStatus;
