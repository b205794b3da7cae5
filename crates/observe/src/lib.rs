//! Statistics about a running server: [`Statements`] counts statements by digest.

mod directory;
mod latencies;
mod measured;
mod shards;
mod statements;
mod sync;

pub use directory::{Sample, StatementKey};
pub use latencies::Latencies;
pub use measured::{Measure, Measured};
pub use shards::Totals;
pub use statements::{StatementRef, StatementRow, Statements};
