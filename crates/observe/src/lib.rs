//! Statistics about a running server: [`Statements`] counts statements by digest.

mod directory;
mod lanes;
mod latencies;
mod measured;
mod statements;
mod sync;

pub use directory::{Sample, StatementKey};
pub use lanes::Totals;
pub use latencies::Latencies;
pub use measured::{Measure, Measured};
pub use statements::{StatementRef, StatementRow, Statements};
