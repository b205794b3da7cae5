//! Statistics about a running server: [`Statements`] counts statements by digest, [`SessionSums`] by kind
//! for sessions and accounts. [`History`] keeps figures of the last day. [`Published`] shows other threads
//! what a session does. [`RoutineLines`] counts the lines of stored programs.

mod damaged;
mod directory;
mod events;
mod history;
mod latencies;
mod measured;
mod published;
mod routine_lines;
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
pub use routine_lines::{LineCount, ProgramLines, ProgramName, RoutineLines};
pub use session_sums::SessionSums;
pub use shards::{KindTimes, Totals};
pub use statements::{StatementRef, StatementRow, Statements};
pub use statements_file::KindNames;
