//! The one log: ordered, checksummed, preallocated, synced once for everybody who waits.
//!
//! A log is a directory: segments `log.000001`, `log.000002`, ... of equal size, which together are one
//! stream of bytes addressed by [`Lsn`](cohort_base::Lsn), and `log.control`, which says where recovery
//! starts.
//!
//! ```text
//! Recovery::open -> next, next, ... -> finish -> Log: reserve -> append -> flush -> (checkpoint) -> close
//! ```
//!
//! | file | concept |
//! |---|---|
//! | `record.rs` | format of a record |
//! | `segment.rs`, `segments.rs` | format and making of a segment; the stream over all of them |
//! | `control.rs` | the control file |
//! | `tail.rs` | what is appended and not hardened |
//! | `space.rs` | reservations, segments made ready ahead |
//! | `log.rs` | append, flush, checkpoint, close |
//! | `scan.rs` | reading; where the log ends, and what is damage |
//! | `recovery.rs`, `reader.rs` | reading at start, and while the log goes on |

mod control;
mod error;
mod log;
mod options;
mod reader;
mod record;
mod recovery;
mod scan;
mod segment;
mod segments;
mod space;
mod tail;

pub use error::{FullCause, LogError};
pub use log::{Log, Room, Span};
pub use options::{LogOptions, LogStats, Preallocation};
pub use reader::LogReader;
pub use record::{Record, RecordKind};
pub use recovery::{NewLog, Opened, Recovery};
