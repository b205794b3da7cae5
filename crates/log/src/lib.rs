//! A log: ordered, checksummed and preallocated, with one sync for all waiting threads. A server has one log,
//! or one for each engine.
//!
//! A log is a directory. Its segments `log.000001`, `log.000002`, ... have equal size and form one stream of
//! bytes addressed by [`Lsn`](cohort_base::Lsn). The file `log.control` says where recovery starts.
//!
//! ```text
//! Recovery::open -> next, next, ... -> finish -> Log: reserve -> append -> flush -> (checkpoint) -> close
//! ```
//!
//! | file | concept |
//! |---|---|
//! | `record.rs` | format of a record |
//! | `segment.rs`, `segments.rs` | format and creation of a segment; the stream over all segments |
//! | `control.rs` | the control file |
//! | `tail.rs` | the appended records that are not durable yet |
//! | `shared.rs` | the state that all handles share |
//! | `space.rs`, `preallocation.rs` | reservations; preallocation of segments |
//! | `log.rs` | append, flush, checkpoint, close |
//! | `scan.rs` | reading records; detecting the log's end and damage |
//! | `recovery.rs`, `reader.rs` | reading at the start, and while the log is appended to |
//! | `pin.rs` | pins of backups; the files of a copy |
//! | `extension.rs` | appending ranges of an archive to the log of a copy |

mod control;
mod error;
mod extension;
mod log;
mod options;
mod pin;
mod preallocation;
mod reader;
mod record;
mod recovery;
mod scan;
mod segment;
mod segments;
mod shared;
mod space;
mod tail;

pub use control::Timeline;
pub use error::{FullCause, LogError};
pub use extension::Extension;
pub use log::{Log, LogReservation, Span};
pub use options::{LogOptions, LogStats, Preallocation};
pub use pin::{LogCopy, LogFile, LogPin};
pub use reader::LogReader;
pub use record::{Record, RecordKind};
pub use recovery::{NewLog, Opened, Recovery};
