//! History of a server's figures: three tiers of slots in bounded memory, two of them in a file.
//!
//! # Concepts
//! - A *series* is a counter or a gauge. A [`Reading`] has the values of all series at one moment.
//! - A *slot* covers an interval between readings: differences of counters; last, smallest and largest value
//!   of gauges; counts of values by bucket of histograms ([`bins`]). Percentiles are computed when a slot is
//!   read, never averaged.
//! - A *tier* keeps the newest slots of one length: [`TIERS`]. A slot of a longer tier is merged from shorter
//!   ones. The slots of minutes also name the statements that took most time.
//!
//! | file | concept |
//! |---|---|
//! | `tiers` | lengths and numbers of slots |
//! | `rings` | [`History`]: the slots in memory |
//! | `slot` | layout and merging of slots |
//! | `bins` | histograms of a slot |
//! | `file` | keeps the longer tiers over a restart |
//! | `top` | the statements of a minute that took most time |
//!
//! # Clocks
//! A slot has the wall-clock time of its begin and its length by the monotonic clock. After a restart, a
//! suspend or a step of the clock, the begin of a slot is not the end of the slot before it: a gap. If the
//! clock was set back, older slots that overlap newer ones are not read any more.
//!
//! # Failure
//! See `file`. Without the file the history is kept in memory only.

mod bins;
mod file;
mod rings;
mod slot;
mod tiers;
mod top;

pub use bins::{BINS, Bins, bin_of};
pub use file::HistoryFile;
pub use rings::{Extract, History};
pub use slot::{Gauge, Reading, Schema, Slot};
pub use tiers::{TIERS, Tier};
pub use top::{TOP_MAX, TopStatement, TopStatements};
