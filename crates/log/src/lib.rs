//! The one log: ordered, checksummed, preallocated, synced once for everybody who waits.
//!
//! A log is a directory: segments `log.000001`, `log.000002`, ... of equal size, which together are one stream of
//! bytes addressed by [`Lsn`](cohort_base::Lsn), and `log.control`, which says where recovery starts.
//!
//! ```text
//! Recovery::open -> next, next, ... -> finish -> Log: reserve -> append -> flush -> (checkpoint) -> close
//! ```

mod error;
mod log;
mod options;
mod record;
mod recovery;

pub use error::{FullCause, LogError};
pub use log::{Claim, Log, LogReader, Room, Span};
pub use options::{LogOptions, LogStats, Preallocation};
pub use record::{Record, RecordKind};
pub use recovery::{Opened, Recovery};
