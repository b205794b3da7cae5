//! Statistics about a running server: [`Statements`] counts statements by digest, [`SessionSums`] by kind
//! for sessions and accounts. [`Published`] shows what a
//! session is doing to other threads.

mod directory;
mod events;
mod latencies;
mod measured;
mod published;
mod session_sums;
mod shards;
mod statements;
mod sync;

pub use directory::{Sample, StatementKey};
pub use events::{Consumer, Events, Running, SessionEvents, StatementEvent};
pub use latencies::{Bucket, Latencies};
pub use measured::{Measure, Measured};
pub use published::Published;
pub use session_sums::SessionSums;
pub use shards::Totals;
pub use statements::{StatementRef, StatementRow, Statements};
