//! Statistics about a running server: [`Statements`] counts statements by digest, [`SessionSums`] by kind
//! for sessions and accounts. [`History`] keeps figures of the last day.

mod directory;
mod history;
mod latencies;
mod measured;
mod session_sums;
mod shards;
mod statements;
mod sync;

pub use directory::{Sample, StatementKey};
pub use history::{
    BINS, Bins, Extract, Gauge, History, HistoryFile, Reading, Schema, Slot, TIERS, TOP_MAX, Tier,
    TopStatement, TopStatements, bin_of,
};
pub use latencies::Latencies;
pub use measured::{Measure, Measured};
pub use session_sums::SessionSums;
pub use shards::{KindTimes, Totals};
pub use statements::{StatementRef, StatementRow, Statements};
