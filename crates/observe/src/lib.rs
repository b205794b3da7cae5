//! Statistics about a running server: [`Statements`] counts statements by digest, [`SessionSums`] by kind
//! for sessions and accounts. [`History`] keeps figures of the last day. [`Published`] shows other threads
//! what a session does.

mod directory;
mod events;
mod history;
mod latencies;
mod measured;
mod published;
mod session_sums;
mod shards;
mod statements;
mod statements_file;
mod sync;

pub use directory::{Sample, StatementKey};
pub use events::{Consumer, Events, Running, SessionEvents, StatementEvent};
pub use history::{
    BINS, Bins, Extract, Gauge, History, HistoryFile, Reading, Schema, Slot, TIERS, TOP_MAX, Tier,
    TopStatement, TopStatements, bin_of,
};
pub use latencies::{Bucket, Latencies};
pub use measured::{Measure, Measured};
pub use published::Published;
pub use session_sums::SessionSums;
pub use shards::{KindTimes, Totals};
pub use statements::{StatementRef, StatementRow, Statements};
pub use statements_file::KindNames;
