//! A source: sends its binary log to replicas, and to tools that read like replicas.
//!
//! | module | concept |
//! |---|---|
//! | `request` | [`DumpRequest`]: the options of a dump, from COM_BINLOG_DUMP and variables set before it |
//! | `start` | start of a dump: by file and offset, or the file with the first GTID that the replica lacks |
//! | `feed` | [`Feed`]: the durable binlog stream from a position on, read from memory or from files |
//! | `filter` | filter of events: groups that the replica has, groups beyond UNTIL |
//! | `artificial` | artificial events, which are in no file: fake ROTATE, heartbeat, dummies for old replicas |
//! | `send_buffer` | send buffer for packets to one replica |
//! | `dump` | one dump from start to end |
//! | `registry` | [`Source`]: registered replicas and running dumps |
//! | `semi_sync` | [`SemiSync`]: commits that wait for a replica |
//! | `errors` | error 1236, with the texts that tools look for |

mod artificial;
mod dump;
mod errors;
mod feed;
mod filter;
mod registry;
mod request;
mod semi_sync;
mod send_buffer;
mod start;

pub use dump::{DumpEnd, DumpObserver, DumpState, run_dump};
pub use feed::{Feed, FeedStep};
pub use registry::{DumpHandle, ReplicaHost, Source, WhyEnd};
pub use request::{
    Annotations, AtEnd, Capability, ChecksumWish, DumpRequest, GtidRequest, MarkedEvents, SemiSyncWish,
    StartAt,
};
pub use semi_sync::{SemiSync, SemiSyncCounters, SemiSyncEvent, SemiSyncLog, SemiSyncOptions};
pub use send_buffer::{ConnectionClosed, ReplicaLink};
